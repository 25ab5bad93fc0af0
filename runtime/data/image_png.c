/* PNG files, by libpng: of 1 to 8 bits, with a palette or without. Transparency is left out. */
#include "data/image.h"

#if __has_include(<png.h>)
#include <dlfcn.h>
#include <png.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct PngLibrary {
    __typeof__(&png_create_read_struct) create;
    __typeof__(&png_create_info_struct) create_info;
    __typeof__(&png_destroy_read_struct) destroy;
    __typeof__(&png_get_error_ptr) error_pointer;
    __typeof__(&png_get_io_ptr) source_pointer;
    __typeof__(&png_set_read_fn) set_source;
    __typeof__(&png_set_chunk_malloc_max) limit_chunks;
    __typeof__(&png_read_info) read_info;
    __typeof__(&png_get_image_width) width;
    __typeof__(&png_get_image_height) height;
    __typeof__(&png_get_bit_depth) depth;
    __typeof__(&png_get_color_type) colours;
    __typeof__(&png_set_expand) expand;
    __typeof__(&png_set_strip_alpha) strip_alpha;
    __typeof__(&png_set_interlace_handling) interlace;
    __typeof__(&png_read_update_info) update;
    __typeof__(&png_get_rowbytes) row_bytes;
    __typeof__(&png_read_image) read_image;
    __typeof__(&png_read_end) read_end;
    bool loaded;
} PngLibrary;

static PngLibrary png;
static pthread_once_t png_once = PTHREAD_ONCE_INIT;
static const char png_name[] = "libpng16.so.16";

static void load_png(void) {
    static const struct {
        void *function;
        const char *name;
    } wanted[] = {
        {&png.create, "png_create_read_struct"},
        {&png.create_info, "png_create_info_struct"},
        {&png.destroy, "png_destroy_read_struct"},
        {&png.error_pointer, "png_get_error_ptr"},
        {&png.source_pointer, "png_get_io_ptr"},
        {&png.set_source, "png_set_read_fn"},
        {&png.limit_chunks, "png_set_chunk_malloc_max"},
        {&png.read_info, "png_read_info"},
        {&png.width, "png_get_image_width"},
        {&png.height, "png_get_image_height"},
        {&png.depth, "png_get_bit_depth"},
        {&png.colours, "png_get_color_type"},
        {&png.expand, "png_set_expand"},
        {&png.strip_alpha, "png_set_strip_alpha"},
        {&png.interlace, "png_set_interlace_handling"},
        {&png.update, "png_read_update_info"},
        {&png.row_bytes, "png_get_rowbytes"},
        {&png.read_image, "png_read_image"},
        {&png.read_end, "png_read_end"},
    };
    void *library = dlopen(png_name, RTLD_NOW);
    png.loaded = library != NULL;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted && png.loaded; i++) {
        *(void **)wanted[i].function = dlsym(library, wanted[i].name);
        png.loaded = *(void **)wanted[i].function != NULL;
    }
}

/* A file being decoded. */
typedef struct PngReader {
    png_structp png;
    png_infop info;
    const uint8_t *at;
    size_t left;
    png_bytep *row; /* where each row goes */
    jmp_buf escape;
    char message[200];
} PngReader;

static void png_give_up(png_structp file, png_const_charp message) {
    PngReader *reader = (PngReader *)png.error_pointer(file);
    snprintf(reader->message, sizeof reader->message, "%s", message);
    longjmp(reader->escape, 1);
}

static void png_no_matter(png_structp file, png_const_charp message) {
    (void)file, (void)message;
}

static void png_take(png_structp file, png_bytep bytes, size_t size) {
    PngReader *reader = (PngReader *)png.source_pointer(file);
    if (size > reader->left)
        png_give_up(file, "it is cut off");
    memcpy(bytes, reader->at, size);
    reader->at += size;
    reader->left -= size;
}

/* Animated files have a chunk acTL before the first picture's data. */
static bool is_animated(const uint8_t *bytes, size_t size) {
    for (size_t at = 8; at + 8 <= size;) {
        size_t length =
            (size_t)bytes[at] << 24 | (size_t)bytes[at + 1] << 16 | (size_t)bytes[at + 2] << 8 | bytes[at + 3];
        const uint8_t *name = bytes + at + 4;
        if (memcmp(name, "acTL", 4) == 0)
            return true;
        if (memcmp(name, "IDAT", 4) == 0 || length > size - at - 8)
            return false;
        at += 12 + length;
    }
    return false;
}

/* The header says of what size and colours the image is; *pixels gets memory for it. */
static int read_png_header(MtcFault *fault, const char *path, PngReader *reader, const MtcImageForm *form,
                           MtcPixels *pixels) {
    png.read_info(reader->png, reader->info);
    int depth = png.depth(reader->png, reader->info), colours = png.colours(reader->png, reader->info);
    if (depth == 16)
        return mtc_fail(fault, MTC_BAD_DATA, "%s: has 16 bits for each number, and a u8 field has 8; convert it", path);
    int code =
        mtc_pixels_reserve(fault, path, form, png.width(reader->png, reader->info),
                           png.height(reader->png, reader->info), colours & PNG_COLOR_MASK_COLOR ? 3 : 1, pixels);
    if (code)
        return code;
    png.expand(reader->png);
    png.strip_alpha(reader->png);
    png.interlace(reader->png);
    png.update(reader->png, reader->info);
    if (png.row_bytes(reader->png, reader->info) != (size_t)(pixels->width * pixels->channels))
        return mtc_fail(fault, MTC_BAD_DATA, "%s: has colours of a kind that is not read", path);
    return 0;
}

static int read_png(MtcFault *fault, const char *path, PngReader *reader, const MtcImageForm *form, MtcPixels *pixels) {
    enum { LARGEST_CHUNK = 1 << 22 };
    if (setjmp(reader->escape))
        return mtc_fail(fault, MTC_BAD_DATA, "%s: is no whole PNG image: %s", path, reader->message);
    reader->png = png.create(PNG_LIBPNG_VER_STRING, reader, png_give_up, png_no_matter);
    reader->info = reader->png ? png.create_info(reader->png) : NULL;
    if (!reader->info)
        return mtc_no_memory(fault, 0, path);
    png.set_source(reader->png, reader, png_take);
    png.limit_chunks(reader->png, LARGEST_CHUNK);
    int code = read_png_header(fault, path, reader, form, pixels);
    if (code)
        return code;
    reader->row = (png_bytep *)mtc_memory(NULL, (size_t)pixels->height * sizeof *reader->row);
    for (int64_t y = 0; y < pixels->height; y++)
        reader->row[y] = pixels->at + y * pixels->width * pixels->channels;
    png.read_image(reader->png, reader->row);
    png.read_end(reader->png, NULL);
    return 0;
}

int mtc_png_decode(MtcFault *fault, const char *path, const uint8_t *bytes, size_t size, const MtcImageForm *form,
                   MtcPixels *pixels) {
    PngReader reader;
    pthread_once(&png_once, load_png);
    if (!png.loaded) {
        mtc_fail(fault, MTC_UNAVAILABLE, "%s: is a PNG image, and %s is not installed", path, png_name);
        mtc_note(fault, "install libpng (Debian, Ubuntu: apt-get install libpng16-16)");
        return fault->code;
    }
    if (is_animated(bytes, size))
        return mtc_fail(fault, MTC_BAD_DATA, "%s: is animated; an example is one image", path);
    memset(&reader, 0, sizeof reader);
    reader.at = bytes;
    reader.left = size;
    int code = read_png(fault, path, &reader, form, pixels);
    png.destroy(&reader.png, &reader.info, NULL);
    free(reader.row);
    return code;
}

#else

int mtc_png_decode(MtcFault *fault, const char *path, const uint8_t *bytes, size_t size, const MtcImageForm *form,
                   MtcPixels *pixels) {
    (void)bytes, (void)size, (void)form, (void)pixels;
    return mtc_fail(fault, MTC_UNAVAILABLE,
                    "%s: is a PNG image, and mtc was built without png.h (Debian: apt-get install libpng-dev)", path);
}

#endif
