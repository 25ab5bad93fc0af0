/* libFuzzer harness: entries of the cache of programs. Each input is an entry as it is, and the program of one whose digest
 * is right. What is found is the program that was kept, to the byte, or nothing; anything else is a find. */
#include "emit/build/cache.h"
#include "support/file.h"
#include "support/sha256.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { DIGEST = 64 };
static const char key[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
static const char *entry; /* the file of that key */

/* Once, with a cache that is this process's. */
int LLVMFuzzerInitialize(int *argc, char ***argv) {
    static char path[256];
    char folder[] = "/tmp/mtc-programs-XXXXXX";
    (void)argc;
    (void)argv;
    if (!mkdtemp(folder) || setenv("XDG_CACHE_HOME", folder, 1) != 0)
        abort();
    snprintf(path, sizeof path, "%s/mtc/programs/%s", folder, key);
    entry = path;
    return 0;
}

static const char *find(Arena *arena, size_t *size) {
    Diag *diag = diag_new(arena);
    const char *found = cache_find(diag, key, size);
    if (!found && file_exists(entry))
        abort(); /* what is damaged is dropped */
    return found;
}

static bool same(const char *found, size_t found_size, const uint8_t *data, size_t size) {
    return found && found_size == size && memcmp(found, data, size) == 0;
}

/* What the format says, written once more. */
static bool is_right(Arena *arena, const uint8_t *data, size_t size) {
    if (size <= DIGEST)
        return false;
    Sha256 hash;
    sha256_begin(&hash);
    sha256_add(&hash, key, sizeof key);
    sha256_add(&hash, data + DIGEST, size - DIGEST);
    return memcmp(sha256_hex(&hash, arena), data, DIGEST) == 0;
}

/* An entry of these bytes. */
static void read_it(Arena *arena, const uint8_t *data, size_t size) {
    size_t found_size;
    if (!file_write_private(entry, data, size))
        abort();
    const char *found = find(arena, &found_size);
    if (is_right(arena, data, size) ? !same(found, found_size, data + DIGEST, size - DIGEST) : found != NULL)
        abort();
}

/* A program of these bytes is kept and found; with one bit turned, or cut off, it is not. */
static void keep_it(Arena *arena, const uint8_t *data, size_t size) {
    size_t found_size, whole;
    cache_put(arena, key, (const char *)data, size);
    if (!same(find(arena, &found_size), found_size, data, size))
        abort();
    char *bytes = file_read(arena, entry, &whole, NULL);
    bytes[data[0] * 131 % whole] ^= (char)(1 << data[size - 1] % 8);
    if (!file_write_private(entry, bytes, whole) || find(arena, &found_size))
        abort();
    bytes[data[0] * 131 % whole] ^= (char)(1 << data[size - 1] % 8);
    if (!file_write_private(entry, bytes, whole - 1 - data[0] % whole) || find(arena, &found_size))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Arena *arena = arena_new();
    if (size)
        keep_it(arena, data, size);
    cache_put(arena, key, "", 1);
    read_it(arena, data, size);
    arena_free(arena);
    return 0;
}
