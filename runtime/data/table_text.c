/* The text of a table: a file that is read in pieces, or unpacked into memory if it is gzip. Files are not mapped: one that is
 * cut short while it is used would end the program with SIGBUS. */
#include "base/parallel.h"
#include "data/table.h"

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

/* 0: all of the bytes are there; else what a text's `problem` is. */
static int read_at(int file, char *bytes, size_t from, size_t size) {
    for (size_t at = 0; at < size;) {
        ssize_t got = pread(file, bytes + at, size - at, (off_t)(from + at));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? errno : -1;
        at += (size_t)got;
    }
    return 0;
}

typedef struct Load {
    int file;
    char *bytes;
    size_t from, size;
    int problem;
} Load;

static void load_block(void *context, int64_t task) {
    Load *load = (Load *)context;
    size_t at = (size_t)task * LOAD_BLOCK, size = load->size - at < LOAD_BLOCK ? load->size - at : LOAD_BLOCK;
    int problem = read_at(load->file, load->bytes + at, load->from + at, size);
    if (problem)
        __atomic_store_n(&load->problem, problem, __ATOMIC_RELAXED);
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

static const char *problem_text(int problem) {
    return problem < 0 ? "it was cut short while it was read" : strerror(problem);
}

char *mtc_file_bytes(int file, size_t from, size_t size, const char **why) {
    Load load = {file, (char *)mtc_large_memory(size), from, size, 0};
    if (!load.bytes)
        load.problem = ENOMEM;
    else
        mtc_parallel((int64_t)((size + LOAD_BLOCK - 1) / LOAD_BLOCK), load_block, &load);
    if (!load.problem)
        return load.bytes;
    free(load.bytes);
    *why = problem_text(load.problem);
    return NULL;
}

static int unreadable(MtcFault *fault, const MtcTableText *text, const char *why) {
    return mtc_fail(fault, MTC_NO_INPUT, "%s: cannot read: %s", text->path, why);
}

static bool same_file(const MtcTableText *text, const struct stat *status) {
    return (size_t)status->st_size == text->file_size && status->st_mtim.tv_sec == text->changed.tv_sec &&
           status->st_mtim.tv_nsec == text->changed.tv_nsec;
}

static int changed_file(MtcFault *fault, const MtcTableText *text) {
    return mtc_fail(fault, MTC_NO_INPUT, "%s: was changed while it was read", text->path);
}

int mtc_text_check(MtcFault *fault, const MtcTableText *text) {
    struct stat status;
    if (text->problem)
        return unreadable(fault, text, problem_text(text->problem));
    return fstat(text->file, &status) == 0 && same_file(text, &status) ? 0 : changed_file(fault, text);
}

int mtc_text_open(MtcFault *fault, const char *path, MtcTableText *text) {
    struct stat status;
    memset(text, 0, sizeof *text);
    text->path = strdup(path);
    const char *why;
    text->file = mtc_open_file(path, &why);
    if (text->file < 0 || fstat(text->file, &status) != 0)
        return mtc_fail(fault, MTC_NO_INPUT, "%s: cannot open: %s", path, why ? why : strerror(errno));
    text->file_size = (size_t)status.st_size;
    text->changed = status.st_mtim;
    return text->file_size ? 0 : mtc_fail(fault, MTC_BAD_DATA, "%s: is empty", path);
}

void mtc_text_close(MtcTableText *text) {
    if (text->path && text->file >= 0)
        close(text->file);
    free(text->memory);
    free(text->path);
    memset(text, 0, sizeof *text);
}

/* ---- its digest ---- */

static const size_t DIGEST_PIECE = 512 << 10; /* stays in a processor's cache */

typedef struct Digests {
    MtcTableText *text;
    MtcDigest *piece;
    int64_t pieces, next;
} Digests;

static void set_problem(MtcTableText *text, int problem) {
    if (problem)
        __atomic_store_n(&text->problem, problem, __ATOMIC_RELAXED);
}

static void digest_pieces(void *context, int64_t worker) {
    Digests *digests = (Digests *)context;
    MtcTableText *text = digests->text;
    char *bytes = (char *)mtc_memory(NULL, DIGEST_PIECE);
    int64_t piece;
    (void)worker;
    while ((piece = __atomic_fetch_add(&digests->next, 1, __ATOMIC_RELAXED)) < digests->pieces) {
        size_t from = (size_t)piece * DIGEST_PIECE, left = text->file_size - from;
        size_t size = left < DIGEST_PIECE ? left : DIGEST_PIECE;
        int problem = read_at(text->file, bytes, from, size);
        set_problem(text, problem);
        if (problem)
            break;
        digests->piece[piece] = mtc_digest(bytes, size);
    }
    free(bytes);
}

int mtc_text_digest(MtcFault *fault, MtcTableText *text, MtcDigest *content) {
    size_t pieces = (text->file_size + DIGEST_PIECE - 1) / DIGEST_PIECE;
    Digests digests = {text, (MtcDigest *)mtc_zeroed(pieces * sizeof(MtcDigest)), (int64_t)pieces, 0};
    mtc_parallel(mtc_processors(), digest_pieces, &digests);
    *content = mtc_digest(digests.piece, pieces * sizeof *digests.piece);
    free(digests.piece);
    return mtc_text_check(fault, text);
}

/* ---- gzip ---- */

static int unpack_all(MtcFault *fault, MtcInput *input, MtcTableText *text, size_t *size) {
    size_t capacity = 4 * text->file_size + 65536, got;
    *size = 0;
    do {
        capacity = *size ? 2 * capacity : capacity;
        text->memory = (char *)mtc_memory(text->memory, capacity);
        int code = mtc_input_read(fault, input, text->memory + *size, capacity - *size, &got);
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

/* ---- pieces ---- */

/* So many bytes of the file, or of what it is unpacked to. */
static void read_raw(MtcTableText *text, char *bytes, size_t from, size_t size) {
    int problem = 0;
    if (text->memory)
        memcpy(bytes, text->memory + from, size);
    else
        problem = read_at(text->file, bytes, from, size);
    set_problem(text, problem);
}

/* Where the text ends: before the line ends that the bytes up to `end` end with. */
static size_t before_blank_lines(MtcTableText *text, size_t end) {
    char bytes[256];
    while (end > text->start && !text->problem) {
        size_t size = end - text->start < sizeof bytes ? end - text->start : sizeof bytes, left = size;
        read_raw(text, bytes, end - size, size);
        while (left > 0 && (bytes[left - 1] == '\n' || bytes[left - 1] == '\r'))
            left--;
        end -= size - left;
        if (left > 0)
            break;
    }
    return end;
}

int mtc_text_measure(MtcFault *fault, MtcTableText *text) {
    char first[3] = {0};
    size_t size = text->file_size;
    if (text->size)
        return 0;
    read_raw(text, first, 0, size < 3 ? size : 3);
    if (memcmp(first, "\x1F\x8B", 2) == 0 && size > 2) {
        int code = unpack_gzip(fault, text, &size);
        if (code)
            return code;
        memset(first, 0, sizeof first);
        read_raw(text, first, 0, size < 3 ? size : 3);
    }
    text->start = memcmp(first, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    text->size = before_blank_lines(text, size) - text->start;
    if (text->memory) {
        text->bytes = text->memory + text->start;
        text->known = text->size;
    }
    int code = mtc_text_check(fault, text);
    return code || text->size ? code : mtc_fail(fault, MTC_BAD_DATA, "%s: is empty", text->path);
}

int mtc_text_know(MtcFault *fault, MtcTableText *text, size_t size) {
    const char *why;
    if (size <= text->known)
        return 0;
    char *bytes = mtc_file_bytes(text->file, text->start, size, &why);
    if (!bytes)
        return unreadable(fault, text, why);
    free(text->memory);
    text->bytes = text->memory = bytes;
    text->known = size;
    return mtc_text_check(fault, text);
}

const char *mtc_text_piece(MtcTableText *text, size_t from, size_t size, char *buffer) {
    if (from + size <= text->known)
        return text->bytes + from;
    int problem = read_at(text->file, buffer, text->start + from, size);
    set_problem(text, problem);
    return problem ? NULL : buffer;
}

size_t mtc_text_line(MtcTableText *text, size_t at) {
    char buffer[4096];
    while (at < text->size) {
        size_t size = text->size - at < sizeof buffer ? text->size - at : sizeof buffer;
        const char *bytes = mtc_text_piece(text, at, size, buffer);
        const char *line = bytes ? (const char *)memchr(bytes, '\n', size) : NULL;
        if (!bytes || line)
            return bytes ? at + (size_t)(line - bytes) + 1 : text->size;
        at += size;
    }
    return at;
}
