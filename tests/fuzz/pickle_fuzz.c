/* libFuzzer harness: files of torch.save for `mtc weights`. The first byte chooses: the rest is a file; or it is the pickle of one, put into an
 * archive with two storages of 64 bytes, so that no checksum stands before it. The file is refused with a message, or becomes safetensors
 * that the reader of programs takes; anything else is a find. */
#include "runtime/base/safetensors.h"
#include "weights/weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

extern int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { STORAGE = 64, MOST_PICKLE = 1 << 16, MOST_MEMBERS = 4 };

typedef struct Archive {
    uint8_t bytes[MOST_PICKLE + 4096];
    size_t size, header[MOST_MEMBERS];
    int members;
} Archive;

static void put(Archive *a, uint64_t number, int width) {
    for (int i = 0; i < width; i++)
        a->bytes[a->size++] = (uint8_t)(number >> 8 * i);
}

static void put_bytes(Archive *a, const void *bytes, size_t size) {
    if (size)
        memcpy(a->bytes + a->size, bytes, size);
    a->size += size;
}

static uint32_t crc_of_member(const uint8_t *bytes, size_t size) {
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ 0xEDB88320u : crc >> 1;
    }
    return ~crc;
}

/* What a member's own header and the directory both say: flags, method, time, checksum, sizes, length of the name. */
static void put_description(Archive *a, const char *name, const uint8_t *bytes, size_t size) {
    put(a, 0, 8);
    put(a, crc_of_member(bytes, size), 4);
    put(a, size, 4);
    put(a, size, 4);
    put(a, strlen(name), 2);
    put(a, 0, 2);
}

static void put_member(Archive *a, const char *name, const uint8_t *bytes, size_t size) {
    a->header[a->members++] = a->size;
    put_bytes(a, "PK\3\4\24\0", 6);
    put_description(a, name, bytes, size);
    put_bytes(a, name, strlen(name));
    put_bytes(a, bytes, size);
}

static void put_entry(Archive *a, int member, const char *name, const uint8_t *bytes, size_t size) {
    put_bytes(a, "PK\1\2\24\0\24\0", 8);
    put_description(a, name, bytes, size);
    put(a, 0, 8);
    put(a, 0, 2);
    put(a, a->header[member], 4);
    put_bytes(a, name, strlen(name));
}

static void make_archive(Archive *a, const uint8_t *pickle, size_t size) {
    static const char *const names[] = {"a/data.pkl", "a/data/0", "a/data/1"};
    static uint8_t storage[STORAGE];
    const size_t sizes[] = {size, STORAGE, STORAGE};
    const uint8_t *const bytes[] = {pickle, storage, storage};
    a->size = 0;
    a->members = 0;
    for (int i = 0; i < 3; i++)
        put_member(a, names[i], bytes[i], sizes[i]);
    const size_t directory = a->size;
    for (int i = 0; i < 3; i++)
        put_entry(a, i, names[i], bytes[i], sizes[i]);
    const size_t length = a->size - directory;
    put_bytes(a, "PK\5\6\0\0\0\0\3\0\3\0", 12);
    put(a, length, 4);
    put(a, directory, 4);
    put(a, 0, 2);
}

static void memory_file(int *file, char *path, size_t room, const uint8_t *data, size_t size) {
    if (*file < 0 && (*file = memfd_create("weights", 0)) < 0)
        abort();
    snprintf(path, room, "/proc/self/fd/%d", *file);
    if (lseek(*file, 0, SEEK_SET) != 0 || ftruncate(*file, 0) != 0 || pwrite(*file, data, size, 0) != (ssize_t)size)
        abort();
}

static void check_written(const char *path) {
    MtcFault fault = {0, {0}};
    MtcArchive archive;
    if (mtc_archive_read(&fault, path, &archive) || archive.count == 0)
        abort();
    mtc_archive_free(&archive);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static int input = -1, output = -1;
    static Archive archive;
    char from[64], to[64];
    if (size < 1 || size > MOST_PICKLE)
        return 0;
    if (data[0] % 4) {
        make_archive(&archive, data + 1, size - 1);
        memory_file(&input, from, sizeof from, archive.bytes, archive.size);
    } else {
        memory_file(&input, from, sizeof from, data + 1, size - 1);
    }
    memory_file(&output, to, sizeof to, NULL, 0);
    Arena *arena = arena_new();
    WeightsRequest request = {.input = from, .key = data[0] & 8 ? "model" : NULL, .output = to};
    if (weights_convert(diag_new(arena), &request) == 0)
        check_written(to);
    arena_free(arena);
    return 0;
}
