/* Reading files, plain or gzip. zlib is loaded when the first gzip file is met, so that programs do not need it to link
 * or to start. */
#include "base/files.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The functions of zlib that are used here, as zlib.h declares them. */
enum { Z_ERRNO = -1 };
typedef struct Zlib {
    void *(*open)(int file, const char *mode);
    int (*read)(void *file, void *bytes, unsigned size);
    int (*close)(void *file);
    const char *(*error)(void *file, int *code);
    int (*buffer)(void *file, unsigned size);
} Zlib;

struct MtcInput {
    char *path;
    FILE *plain;
    void *gzip;
    Zlib zlib; /* set while gzip is */
    const uint8_t *memory;
    size_t left; /* memory: bytes left; else the file's size */
    size_t file_size;
};

static const char *load_zlib(Zlib *z) {
    void *library = dlopen("libz.so.1", RTLD_NOW);
    if (!library)
        return "libz.so.1 is not installed";
    *(void **)&z->open = dlsym(library, "gzdopen");
    *(void **)&z->read = dlsym(library, "gzread");
    *(void **)&z->close = dlsym(library, "gzclose");
    *(void **)&z->error = dlsym(library, "gzerror");
    *(void **)&z->buffer = dlsym(library, "gzbuffer");
    return z->open && z->read && z->close && z->error && z->buffer ? NULL : "libz.so.1 is too old";
}

/* The descriptor is the input's from here on. */
static int open_gzip(MtcFault *fault, MtcInput *input, int file) {
    const char *problem = load_zlib(&input->zlib);
    if (!problem && !(input->gzip = input->zlib.open(file, "rb")))
        problem = "there is not enough memory to unpack it";
    if (!input->gzip)
        close(file);
    if (problem) {
        mtc_fail(fault, MTC_UNAVAILABLE, "%s: is compressed, and %s", input->path, problem);
        mtc_note(fault, "install zlib (Debian: apt-get install zlib1g), or unpack the file with gunzip");
        return fault->code;
    }
    input->zlib.buffer(input->gzip, 256 * 1024);
    return 0;
}

bool mtc_is_gzip(const uint8_t *bytes, size_t size) {
    return size >= 2 && bytes[0] == 0x1F && bytes[1] == 0x8B;
}

static int open_file(MtcFault *fault, MtcInput *input) {
    struct stat status;
    uint8_t magic[2];
    const char *why;
    const int file = mtc_open_file(input->path, &why);
    if (file < 0 || fstat(file, &status) != 0)
        return mtc_fail(fault, MTC_NO_INPUT, "%s: cannot open: %s", input->path, why ? why : strerror(errno));
    input->left = input->file_size = (size_t)status.st_size;
    const ssize_t got = pread(file, magic, sizeof magic, 0);
    if (got > 0 && mtc_is_gzip(magic, (size_t)got))
        return open_gzip(fault, input, file);
    input->plain = fdopen(file, "rb");
    if (!input->plain) {
        close(file);
        return mtc_no_memory(fault, sizeof *input, input->path);
    }
    setvbuf(input->plain, NULL, _IONBF, 0); /* reads are large */
    return 0;
}

int mtc_input_open(MtcFault *fault, const char *path, MtcInput **result) {
    MtcInput *input = (MtcInput *)calloc(1, sizeof *input);
    if (!input || !(input->path = strdup(path))) {
        free(input);
        return mtc_no_memory(fault, sizeof *input, path);
    }
    int code = open_file(fault, input);
    if (code)
        mtc_input_close(input);
    else
        *result = input;
    return code;
}

MtcInput *mtc_input_memory(const char *path, const void *bytes, size_t size) {
    MtcInput *input = (MtcInput *)calloc(1, sizeof *input);
    if (!input)
        return NULL;
    input->path = strdup(path);
    input->memory = (const uint8_t *)bytes;
    input->left = input->file_size = size;
    return input;
}

void mtc_input_close(MtcInput *input) {
    if (!input)
        return;
    if (input->plain)
        fclose(input->plain);
    if (input->gzip)
        input->zlib.close(input->gzip);
    free(input->path);
    free(input);
}

const char *mtc_input_path(const MtcInput *input) {
    return input->path;
}

/* Of the file that it was handed as a descriptor, zlib says "<fd:3>: unexpected end of file". */
static const char *without_descriptor(const char *why) {
    const char *end = strncmp(why, "<fd:", 4) == 0 ? strstr(why, ">: ") : NULL;
    return end ? end + strlen(">: ") : why;
}

static int read_gzip(MtcFault *fault, MtcInput *input, uint8_t *bytes, size_t size, size_t *got) {
    const Zlib *z = &input->zlib;
    int n = 1, code = 0;
    for (*got = 0; *got < size && n > 0; *got += n > 0 ? (size_t)n : 0)
        n = z->read(input->gzip, bytes + *got, size - *got < 1u << 30 ? (unsigned)(size - *got) : 1u << 30);
    const char *why = z->error(input->gzip, &code);
    if (n < 0 || code < 0)
        return mtc_fail(fault, MTC_BAD_DATA, "%s: is not a whole gzip file: %s", input->path,
                        code == Z_ERRNO ? strerror(errno) : without_descriptor(why));
    return 0;
}

int mtc_input_read(MtcFault *fault, MtcInput *input, void *bytes, size_t size, size_t *got) {
    if (input->gzip)
        return read_gzip(fault, input, (uint8_t *)bytes, size, got);
    if (input->memory) {
        *got = size < input->left ? size : input->left;
        memcpy(bytes, input->memory, *got);
        input->memory += *got;
        input->left -= *got;
        return 0;
    }
    *got = fread(bytes, 1, size, input->plain);
    input->left -= *got < input->left ? *got : input->left;
    if (ferror(input->plain))
        return mtc_fail(fault, MTC_NO_INPUT, "%s: cannot read: %s", input->path, strerror(errno));
    return 0;
}

size_t mtc_input_bound(const MtcInput *input, bool *exact) {
    const size_t deflate = 1032; /* the most bytes that one compressed byte can stand for */
    *exact = !input->gzip;
    if (*exact)
        return input->left;
    return input->file_size < SIZE_MAX / deflate ? input->file_size * deflate : SIZE_MAX;
}

/* To the input's end, in memory that grows as long as it is full; free *bytes, also after a fault. */
static int read_rest(MtcFault *fault, MtcInput *input, size_t capacity, uint8_t **bytes, size_t *size) {
    int code = 0;
    *bytes = NULL;
    *size = 0;
    for (bool full = true; full && !code; capacity *= 2) {
        size_t got;
        uint8_t *larger = (uint8_t *)realloc(*bytes, capacity);
        if (!larger)
            return mtc_no_memory(fault, capacity, input->path);
        *bytes = larger;
        code = mtc_input_read(fault, input, *bytes + *size, capacity - *size, &got);
        *size += code ? 0 : got;
        full = *size == capacity;
    }
    return code;
}

int mtc_read_file(MtcFault *fault, const char *path, uint8_t **bytes, size_t *size) {
    const size_t unpacked = (size_t)1 << 20; /* at first: how long it is, its end tells */
    MtcInput *input;
    int code = mtc_input_open(fault, path, &input);
    if (code)
        return code;
    bool exact;
    const size_t bound = mtc_input_bound(input, &exact);
    code = read_rest(fault, input, exact ? bound + 1 : unpacked, bytes, size);
    if (code)
        free(*bytes);
    mtc_input_close(input);
    return code;
}
