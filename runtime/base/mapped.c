/* A file's bytes as memory, which the system reads when they are looked at: files of tokens, texts for `mtc tokens`. */
#include "base/files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_plain(MtcFault *fault, const char *path, MtcMapped *mapped) {
    struct stat status;
    const char *why;
    mapped->file = mtc_open_file(path, &why);
    if (mapped->file < 0 || fstat(mapped->file, &status) != 0)
        return mtc_fail(fault, MTC_NO_INPUT, "%s: cannot open: %s", path, why ? why : strerror(errno));
    mapped->size = (size_t)status.st_size;
    mapped->changed = status.st_mtim;
    return 0;
}

/* No bytes cannot be mapped. */
static int map_bytes(MtcFault *fault, const char *path, MtcMapped *mapped) {
    void *bytes = mapped->size ? mmap(NULL, mapped->size, PROT_READ, MAP_PRIVATE, mapped->file, 0) : NULL;
    if (bytes == MAP_FAILED)
        return mtc_fail(fault, MTC_UNAVAILABLE, "%s: cannot map its %s: %s", path, mtc_bytes((double)mapped->size),
                        strerror(errno));
    mapped->bytes = (const uint8_t *)bytes;
    return 0;
}

static bool is_compressed(const MtcMapped *mapped) {
    uint8_t magic[2];
    ssize_t got = pread(mapped->file, magic, sizeof magic, 0);
    return got > 0 && mtc_is_gzip(magic, (size_t)got);
}

static int unpack(MtcFault *fault, const char *path, MtcMapped *mapped) {
    uint8_t *bytes;
    size_t size;
    mtc_unmap_file(mapped);
    int code = mtc_read_file(fault, path, &bytes, &size);
    if (code)
        return code;
    mapped->bytes = mapped->memory = bytes;
    mapped->size = size;
    return 0;
}

int mtc_map_file(MtcFault *fault, const char *path, MtcMapped *mapped) {
    memset(mapped, 0, sizeof *mapped);
    int code = open_plain(fault, path, mapped);
    if (!code)
        code = is_compressed(mapped) ? unpack(fault, path, mapped) : map_bytes(fault, path, mapped);
    if (code)
        mtc_unmap_file(mapped);
    return code;
}

void mtc_unmap_file(MtcMapped *mapped) {
    if (mapped->bytes && !mapped->memory)
        munmap((void *)(uintptr_t)mapped->bytes, mapped->size);
    if (mapped->file >= 0)
        close(mapped->file);
    free(mapped->memory);
    memset(mapped, 0, sizeof *mapped);
    mapped->file = -1;
}

bool mtc_mapped_is_same(const MtcMapped *mapped) {
    struct stat status;
    if (mapped->file < 0)
        return true;
    return fstat(mapped->file, &status) == 0 && (size_t)status.st_size == mapped->size &&
           status.st_mtim.tv_sec == mapped->changed.tv_sec && status.st_mtim.tv_nsec == mapped->changed.tv_nsec;
}
