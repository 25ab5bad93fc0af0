/* JPEG files, by libjpeg (libjpeg-turbo). What the library only warns of, a file that is cut off for instance, is a fault. */
#include "data/image.h"

#include <stdio.h>
#include <string.h>
#if __has_include(<jpeglib.h>)
#include <dlfcn.h>
#include <jerror.h>
#include <jpeglib.h>
#include <pthread.h>
#include <setjmp.h>

typedef struct JpegLibrary {
    __typeof__(&jpeg_std_error) std_error;
    __typeof__(&jpeg_CreateDecompress) create;
    __typeof__(&jpeg_mem_src) source;
    __typeof__(&jpeg_read_header) read_header;
    __typeof__(&jpeg_start_decompress) start;
    __typeof__(&jpeg_read_scanlines) read_rows;
    __typeof__(&jpeg_finish_decompress) finish;
    __typeof__(&jpeg_destroy_decompress) destroy;
    bool loaded;
} JpegLibrary;

static JpegLibrary jpeg;
static pthread_once_t jpeg_once = PTHREAD_ONCE_INIT;
static const char *const jpeg_name = JPEG_LIB_VERSION >= 80 ? "libjpeg.so.8" : "libjpeg.so.62";

static void load_jpeg(void) {
    void *library = dlopen(jpeg_name, RTLD_NOW);
    if (!library)
        return;
    *(void **)&jpeg.std_error = dlsym(library, "jpeg_std_error");
    *(void **)&jpeg.create = dlsym(library, "jpeg_CreateDecompress");
    *(void **)&jpeg.source = dlsym(library, "jpeg_mem_src");
    *(void **)&jpeg.read_header = dlsym(library, "jpeg_read_header");
    *(void **)&jpeg.start = dlsym(library, "jpeg_start_decompress");
    *(void **)&jpeg.read_rows = dlsym(library, "jpeg_read_scanlines");
    *(void **)&jpeg.finish = dlsym(library, "jpeg_finish_decompress");
    *(void **)&jpeg.destroy = dlsym(library, "jpeg_destroy_decompress");
    jpeg.loaded = jpeg.std_error && jpeg.create && jpeg.source && jpeg.read_header && jpeg.start && jpeg.read_rows &&
                  jpeg.finish && jpeg.destroy;
}

/* A file being decoded. `info` finds it by client_data. */
typedef struct JpegReader {
    struct jpeg_decompress_struct info;
    struct jpeg_error_mgr error;
    struct jpeg_progress_mgr progress;
    jmp_buf escape;
    char message[JMSG_LENGTH_MAX];
} JpegReader;

static void jpeg_give_up(j_common_ptr info) {
    JpegReader *reader = (JpegReader *)info->client_data;
    info->err->format_message(info, reader->message);
    longjmp(reader->escape, 1);
}

/* Levels below 0 are warnings. Bytes between markers that mean nothing do no harm. */
static void jpeg_message(j_common_ptr info, int level) {
    if (level < 0 && info->err->msg_code != JWRN_EXTRANEOUS_DATA)
        jpeg_give_up(info);
}

/* A small file can have scans without end, each as long as the whole picture to decode. */
static void jpeg_count_scans(j_common_ptr info) {
    enum { MOST_SCANS = 200 };
    JpegReader *reader = (JpegReader *)info->client_data;
    if (reader->info.input_scan_number <= MOST_SCANS)
        return;
    snprintf(reader->message, sizeof reader->message, "it has more than %d scans", MOST_SCANS);
    longjmp(reader->escape, 1);
}

static int bad_colours(MtcFault *fault, const char *path, const JpegReader *reader) {
    bool ink = reader->info.jpeg_color_space == JCS_CMYK || reader->info.jpeg_color_space == JCS_YCCK;
    return mtc_fail(fault, MTC_BAD_DATA, "%s: has %d channels%s; images are grey or red, green, blue", path,
                    reader->info.num_components, ink ? ", the inks of print (CMYK)" : "");
}

/* The header says of what size and colours the image is; *pixels gets memory for it. */
static int read_jpeg_header(MtcFault *fault, const char *path, JpegReader *reader, const MtcImageForm *form,
                            MtcPixels *pixels) {
    struct jpeg_decompress_struct *info = &reader->info;
    jpeg.read_header(info, TRUE);
    bool grey = info->jpeg_color_space == JCS_GRAYSCALE;
    if (!grey && info->jpeg_color_space != JCS_YCbCr && info->jpeg_color_space != JCS_RGB)
        return bad_colours(fault, path, reader);
    info->out_color_space = grey ? JCS_GRAYSCALE : JCS_RGB;
    return mtc_pixels_reserve(fault, path, form, info->image_width, info->image_height, grey ? 1 : 3, pixels);
}

static int read_jpeg(MtcFault *fault, const char *path, JpegReader *reader, const uint8_t *bytes, size_t size,
                     const MtcImageForm *form, MtcPixels *pixels) {
    struct jpeg_decompress_struct *info = &reader->info;
    if (setjmp(reader->escape))
        return mtc_fail(fault, MTC_BAD_DATA, "%s: is no whole JPEG image: %s", path, reader->message);
    jpeg.create(info, JPEG_LIB_VERSION, sizeof *info);
    info->progress = &reader->progress;
    jpeg.source(info, (unsigned char *)bytes, size);
    int code = read_jpeg_header(fault, path, reader, form, pixels);
    if (code)
        return code;
    jpeg.start(info);
    while (info->output_scanline < info->output_height) {
        JSAMPROW row = pixels->at + (size_t)info->output_scanline * (size_t)(pixels->width * pixels->channels);
        jpeg.read_rows(info, &row, 1);
    }
    jpeg.finish(info);
    return 0;
}

int mtc_jpeg_decode(MtcFault *fault, const char *path, const uint8_t *bytes, size_t size, const MtcImageForm *form,
                    MtcPixels *pixels) {
    JpegReader reader;
    pthread_once(&jpeg_once, load_jpeg);
    if (!jpeg.loaded) {
        mtc_fail(fault, MTC_UNAVAILABLE, "%s: is a JPEG image, and %s is not installed", path, jpeg_name);
        mtc_note(fault, "install libjpeg-turbo (Debian: apt-get install libjpeg62-turbo, Ubuntu: libjpeg-turbo8)");
        return fault->code;
    }
    memset(&reader, 0, sizeof reader);
    reader.info.err = jpeg.std_error(&reader.error);
    reader.info.client_data = &reader;
    reader.error.error_exit = jpeg_give_up;
    reader.error.emit_message = jpeg_message;
    reader.progress.progress_monitor = jpeg_count_scans;
    int code = read_jpeg(fault, path, &reader, bytes, size, form, pixels);
    jpeg.destroy(&reader.info);
    return code;
}

#else

int mtc_jpeg_decode(MtcFault *fault, const char *path, const uint8_t *bytes, size_t size, const MtcImageForm *form,
                    MtcPixels *pixels) {
    (void)bytes, (void)size, (void)form, (void)pixels;
    return mtc_fail(fault, MTC_UNAVAILABLE,
                    "%s: is a JPEG image, and mtc was built without jpeglib.h (Debian: apt-get install libjpeg-dev)",
                    path);
}

#endif
