/* The text of a table: a file read into memory, unpacked if it is gzip. Files are not mapped: one that is cut short while it
 * is used would end the program with SIGBUS. */
#include "parallel.h"
#include "table.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#ifndef MADV_HUGEPAGE /* strict C hides these */
#define MADV_HUGEPAGE 14
int madvise(void *memory, size_t size, int advice);
#endif

/* ---- the file ---- */

static const size_t LOAD_BLOCK = 4 << 20;

typedef struct Load {
    int file;
    char *bytes;
    size_t size;
    int problem; /* an errno; -1: the file ends too early */
} Load;

static void load_block(void *context, int64_t task) {
    Load *load = (Load *)context;
    size_t at = (size_t)task * LOAD_BLOCK, end = load->size - at < LOAD_BLOCK ? load->size : at + LOAD_BLOCK;
    while (at < end) {
        ssize_t got = pread(load->file, load->bytes + at, end - at, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            __atomic_store_n(&load->problem, got < 0 ? errno : -1, __ATOMIC_RELAXED);
            return;
        }
        at += (size_t)got;
    }
}

void *mtc_large_memory(size_t size) {
    const size_t page = 2 << 20;
    void *memory = NULL;
    if (size < page)
        return malloc(size ? size : 1);
    if (posix_memalign(&memory, page, size) != 0)
        return NULL;
    madvise(memory, size, MADV_HUGEPAGE);
    return memory;
}

char *mtc_file_bytes(int file, size_t size, const char **why) {
    Load load = {file, (char *)mtc_large_memory(size), size, 0};
    if (!load.bytes)
        load.problem = ENOMEM;
    else
        mtc_parallel((int64_t)((size + LOAD_BLOCK - 1) / LOAD_BLOCK), load_block, &load);
    if (!load.problem)
        return load.bytes;
    free(load.bytes);
    *why = load.problem < 0 ? "it was cut short while it was read" : strerror(load.problem);
    return NULL;
}

static bool same_file(const MtcTableText *text, const struct stat *status) {
    return (size_t)status->st_size == text->file_size && status->st_mtim.tv_sec == text->changed.tv_sec &&
           status->st_mtim.tv_nsec == text->changed.tv_nsec;
}

static int changed_file(MtcFault *fault, const MtcTableText *text) {
    return mtc_fail(fault, MTC_NO_INPUT, "%s: was changed while it was read", text->path);
}

static int load_file(MtcFault *fault, MtcTableText *text, int file) {
    struct stat status;
    const char *why;
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode))
        return mtc_fail(fault, MTC_NO_INPUT, "%s: is not a file", text->path);
    text->file_size = (size_t)status.st_size;
    text->changed = status.st_mtim;
    if (text->file_size == 0)
        return mtc_fail(fault, MTC_BAD_DATA, "%s: is empty", text->path);
    text->file = mtc_file_bytes(file, text->file_size, &why);
    if (!text->file)
        return mtc_fail(fault, MTC_NO_INPUT, "%s: cannot read: %s", text->path, why);
    return fstat(file, &status) == 0 && same_file(text, &status) ? 0 : changed_file(fault, text);
}

int mtc_text_open(MtcFault *fault, const char *path, MtcTableText *text) {
    memset(text, 0, sizeof *text);
    text->path = strdup(path);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return mtc_fail(fault, MTC_NO_INPUT, "%s: cannot open: %s", path, strerror(errno));
    int code = load_file(fault, text, file);
    close(file);
    return code;
}

void mtc_text_close(MtcTableText *text) {
    free(text->file);
    free(text->unpacked);
    free(text->path);
    memset(text, 0, sizeof *text);
}

static int unpack_all(MtcFault *fault, MtcInput *input, MtcTableText *text, size_t *size) {
    size_t capacity = 4 * text->file_size + 65536, got;
    *size = 0;
    do {
        capacity = *size ? 2 * capacity : capacity;
        text->unpacked = (char *)mtc_memory(text->unpacked, capacity);
        int code = mtc_input_read(fault, input, text->unpacked + *size, capacity - *size, &got);
        if (code)
            return code;
        *size += got;
    } while (*size == capacity);
    return 0;
}

/* zlib reads the file once more; the digest of a kept table is of what was read the first time. */
static int unpack_gzip(MtcFault *fault, MtcTableText *text, size_t *size) {
    struct stat status;
    MtcInput *input;
    int code = mtc_input_open(fault, text->path, &input);
    if (code)
        return code;
    code = unpack_all(fault, input, text, size);
    mtc_input_close(input);
    if (stat(text->path, &status) != 0 || !same_file(text, &status))
        code = changed_file(fault, text);
    return code;
}

int mtc_text_unpack(MtcFault *fault, MtcTableText *text) {
    const unsigned char *magic = (const unsigned char *)text->file;
    size_t size = text->file_size;
    if (text->bytes)
        return 0;
    if (size > 2 && magic[0] == 0x1F && magic[1] == 0x8B) {
        int code = unpack_gzip(fault, text, &size);
        if (code)
            return code;
    }
    const char *bytes = text->unpacked ? text->unpacked : text->file, *end = bytes + size;
    if (size >= 3 && memcmp(bytes, "\xEF\xBB\xBF", 3) == 0)
        bytes += 3;
    while (end > bytes && (end[-1] == '\n' || end[-1] == '\r'))
        end--;
    text->bytes = bytes;
    text->size = (size_t)(end - bytes);
    return text->size ? 0 : mtc_fail(fault, MTC_BAD_DATA, "%s: is empty", text->path);
}
