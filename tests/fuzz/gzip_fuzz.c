/* libFuzzer harness: what is unpacked. The first byte of an input chooses: the rest is a gzip file; the stream of a member of a zip
 * archive; or what is packed, and then damaged in one bit. A file is refused with a message or read whole, the same in pieces as
 * at once; what was packed comes out as it was, or not at all; anything else is a find. */
#define _GNU_SOURCE /* memfd_create, of memory_file.h */
#include "base/zip.h"
#include "memory_file.h"

#include <string.h>

static void check_fault(const MtcFault *fault) {
    if (!fault->code || !fault->text[0])
        abort();
}

static void put(uint8_t *at, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

/* ---- gzip ---- */

/* In pieces of 1, 2, 3 ... bytes: as many as there are, the same as in `whole`. */
static void read_pieces(const char *path, const uint8_t *whole, size_t size, int whole_code) {
    uint8_t piece[512];
    size_t got = 1, at = 0;
    MtcInput *input;
    MtcFault fault;
    memset(&fault, 0, sizeof fault);
    int code = mtc_input_open(&fault, path, &input);
    if (code)
        abort(); /* it was opened before */
    for (size_t wanted = 1; got && !code; wanted = wanted % sizeof piece + 1) {
        code = mtc_input_read(&fault, input, piece, wanted, &got);
        if (code)
            break;
        if (got > wanted || (!whole_code && (got > size - at || memcmp(whole + at, piece, got) != 0)))
            abort();
        at += got;
    }
    mtc_input_close(input);
    if (code != whole_code || (!code && at != size))
        abort();
}

/* Returns the code; *bytes is freed by the caller where there is none. */
static int read_whole(const uint8_t *data, size_t size, uint8_t **bytes, size_t *unpacked) {
    char path[64];
    int file;
    MtcFault fault;
    memset(&fault, 0, sizeof fault);
    memory_file(&file, path, sizeof path, data, size);
    int code = mtc_read_file(&fault, path, bytes, unpacked);
    if (code)
        check_fault(&fault);
    read_pieces(path, code ? NULL : *bytes, code ? 0 : *unpacked, code);
    close(file);
    return code;
}

static void read_gzip(const uint8_t *data, size_t size) {
    uint8_t *bytes;
    size_t unpacked;
    if (read_whole(data, size, &bytes, &unpacked) == 0)
        free(bytes);
}

/* ---- what was packed ---- */

static uint32_t crc_of(const uint8_t *bytes, size_t size) {
    uint32_t crc = 0xFFFFFFFFu;
    for (size_t i = 0; i < 8 * size; i++) {
        const uint32_t bit = (crc ^ bytes[i / 8] >> i % 8) & 1;
        crc = crc >> 1 ^ (bit ? 0xEDB88320u : 0);
    }
    return ~crc;
}

enum { HEAD = 10, BLOCK = 5, TAIL = 8 };

/* One block that is stored, between a head and a tail: so many bytes. */
static size_t pack(const uint8_t *data, size_t size, uint8_t *file) {
    static const uint8_t head[HEAD] = {0x1F, 0x8B, 8};
    memcpy(file, head, HEAD);
    file[HEAD] = 1; /* the last block */
    put(file + HEAD + 1, size, 2);
    put(file + HEAD + 3, ~(uint64_t)size, 2);
    memcpy(file + HEAD + BLOCK, data, size);
    put(file + HEAD + BLOCK + size, crc_of(data, size), 4);
    put(file + HEAD + BLOCK + size + 4, size, 4);
    return HEAD + BLOCK + size + TAIL;
}

/* A bit of the head may mean nothing; one of the magic makes it another file. */
static void read_packed(const uint8_t *data, size_t size) {
    uint8_t *file = (uint8_t *)malloc(HEAD + BLOCK + size + TAIL), *bytes;
    size_t packed = pack(data, size, file), unpacked;
    if (read_whole(file, packed, &bytes, &unpacked) != 0 || unpacked != size || memcmp(bytes, data, size) != 0)
        abort();
    free(bytes);
    size_t at = size ? data[0] * 31u % packed : 0;
    file[at < 2 ? 2 : at] ^= (uint8_t)(1 << (size ? data[size - 1] % 8 : 0));
    if (read_whole(file, packed, &bytes, &unpacked) == 0) {
        if (unpacked != size || memcmp(bytes, data, size) != 0)
            abort();
        free(bytes);
    }
    free(file);
}

/* ---- zip ---- */

enum { HEADER = 30, ENTRY = 46, RECORD = 22, PROMISED = 64 };

/* An archive of one member, "x", deflated to these bytes, of which it says that they are `promised` unpacked ones. */
static size_t archive_of(const uint8_t *data, size_t size, size_t promised, uint8_t *file) {
    uint8_t *entry = file + HEADER + 1 + size, *record = entry + ENTRY + 1;
    memset(file, 0, HEADER + 1 + size + ENTRY + 1 + RECORD);
    memcpy(file, "PK\3\4", 4);
    put(file + 26, 1, 2);
    file[HEADER] = 'x';
    memcpy(file + HEADER + 1, data, size);
    memcpy(entry, "PK\1\2", 4);
    put(entry + 10, 8, 2);
    put(entry + 20, size, 4);
    put(entry + 24, promised, 4);
    put(entry + 28, 1, 2);
    entry[ENTRY] = 'x';
    memcpy(record, "PK\5\6", 4);
    put(record + 10, 1, 2);
    put(record + 16, (uint64_t)(entry - file), 4);
    return (size_t)(record + RECORD - file);
}

/* Whatever comes out has no checksum of zero but by chance: a message, which says that it is not whole. */
static void read_member(const uint8_t *data, size_t size) {
    uint8_t *file = (uint8_t *)malloc(HEADER + 1 + size + ENTRY + 1 + RECORD), *bytes;
    size_t length = archive_of(data, size, size ? data[size - 1] : PROMISED, file), unpacked;
    MtcFault fault;
    MtcZip *zip;
    memset(&fault, 0, sizeof fault);
    if (mtc_zip_memory(&fault, "input", file, length, &zip) != 0)
        abort();
    if (mtc_zip_read(&fault, zip, "x", &bytes, &unpacked) == 0) {
        if (crc_of(bytes, unpacked) != 0)
            abort();
        free(bytes);
    } else
        check_fault(&fault);
    mtc_zip_close(zip);
    free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0)
        return 0;
    if (data[0] % 3 == 0)
        read_gzip(data + 1, size - 1);
    else if (data[0] % 3 == 1)
        read_member(data + 1, size - 1);
    else
        read_packed(data + 1, size - 1);
    return 0;
}
