#include "data/image.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Far more than any data set needs; a file of a few kB can promise a million times more. */
static const int64_t MOST_PIXELS = 1 << 26;

bool mtc_image_form(const MtcField *field, bool resize, MtcImageForm *form) {
    form->channels = field->rank == 3 ? (int)field->dim[0] : 1;
    form->height = field->rank >= 2 ? field->dim[field->rank - 2] : 0;
    form->width = field->rank >= 2 ? field->dim[field->rank - 1] : 0;
    form->resize = resize;
    return field->type == MTC_U8 && !field->classes && (field->rank == 2 || field->rank == 3) &&
           (form->channels == 1 || form->channels == 3);
}

const char *mtc_image_format(const uint8_t *bytes, size_t size) {
    static const struct {
        const char *name;
        size_t at, length;
        const char *magic;
    } formats[] = {{"PNG", 0, 8, "\x89PNG\r\n\x1a\n"},
                   {"JPEG", 0, 3, "\xff\xd8\xff"},
                   {"GIF", 0, 4, "GIF8"},
                   {"WebP", 8, 4, "WEBP"},
                   {"TIFF", 0, 4, "II*\0"},
                   {"TIFF", 0, 4, "MM\0*"},
                   {"HEIF", 4, 7, "ftyphei"},
                   {"AVIF", 4, 7, "ftypavi"}};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (size >= formats[i].at + formats[i].length &&
            memcmp(bytes + formats[i].at, formats[i].magic, formats[i].length) == 0)
            return formats[i].name;
    return NULL;
}

/* ---- pixels ---- */

int mtc_pixels_reserve(MtcFault *fault, const char *path, const MtcImageForm *form, int64_t width, int64_t height,
                       int channels, MtcPixels *pixels) {
    pixels->width = width;
    pixels->height = height;
    pixels->channels = channels;
    if (!form->resize && (width != form->width || height != form->height)) {
        mtc_fail(fault, MTC_BAD_DATA, "%s: is %lld x %lld pixels (width x height), expected %lld x %lld", path,
                 (long long)width, (long long)height, (long long)form->width, (long long)form->height);
        mtc_note(fault, "images of other sizes are scaled with resize = true in the model, or with predict --resize");
        return fault->code;
    }
    if (width > MOST_PIXELS / height)
        return mtc_fail(fault, MTC_BAD_DATA, "%s: is %lld x %lld pixels; at most %lld pixels are read", path,
                        (long long)width, (long long)height, (long long)MOST_PIXELS);
    pixels->at = (uint8_t *)malloc((size_t)(width * height * channels));
    return pixels->at ? 0 : mtc_no_memory(fault, (size_t)(width * height * channels), path);
}

static void repeat_grey(const uint8_t *grey, int64_t count, uint8_t *colours) {
    for (int64_t i = 0; i < count; i++)
        colours[3 * i] = colours[3 * i + 1] = colours[3 * i + 2] = grey[i];
}

/* 0.299 red + 0.587 green + 0.114 blue, the brightness of ITU-R BT.601, in 16 binary places; in place. */
static void to_grey(uint8_t *colours, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        colours[i] =
            (uint8_t)((19595u * colours[3 * i] + 38470u * colours[3 * i + 1] + 7471u * colours[3 * i + 2] + 32768u) >>
                      16);
}

void mtc_pixels_to_channels(MtcPixels *pixels, int channels) {
    const int64_t count = pixels->width * pixels->height;
    if (pixels->channels == 3 && channels == 1)
        to_grey(pixels->at, count);
    else if (pixels->channels == 1 && channels == 3) {
        uint8_t *colours = (uint8_t *)mtc_memory(NULL, (size_t)count * 3);
        repeat_grey(pixels->at, count, colours);
        free(pixels->at);
        pixels->at = colours;
    }
    pixels->channels = channels;
}

static void to_planes(const uint8_t *rows, int64_t count, int channels, uint8_t *planes) {
    for (int c = 0; c < channels; c++)
        for (int64_t i = 0; i < count; i++)
            planes[c * count + i] = rows[i * channels + c];
}

/* ---- a file ---- */

static bool ends_like_image(const char *path) {
    static const char *const endings[] = {".png", ".jpg", ".jpeg"};
    const char *ending = strrchr(path, '.');
    for (size_t i = 0; ending && i < sizeof endings / sizeof *endings; i++)
        if (strcasecmp(ending, endings[i]) == 0)
            return true;
    return false;
}

static int no_image(MtcFault *fault, const char *path, const uint8_t *bytes, size_t size) {
    const char *format = mtc_image_format(bytes, size);
    if (format)
        return mtc_fail(fault, MTC_BAD_DATA, "%s: is a %s file; images are PNG or JPEG", path, format);
    if (!ends_like_image(path))
        return mtc_fail(fault, MTC_BAD_DATA,
                        "%s: is no image: a folder of images holds images only, files .png, .jpg or .jpeg", path);
    if (size == 0)
        return mtc_fail(fault, MTC_BAD_DATA, "%s: is empty, expected a PNG or JPEG image", path);
    return mtc_fail(fault, MTC_BAD_DATA, "%s: is no image, neither PNG nor JPEG", path);
}

int mtc_image_decode(MtcFault *fault, const char *path, const uint8_t *bytes, size_t size, const MtcImageForm *form,
                     uint8_t *planes) {
    const char *format = mtc_image_format(bytes, size);
    MtcPixels pixels = {0, 0, 0, NULL};
    int code;
    if (format && strcmp(format, "PNG") == 0)
        code = mtc_png_decode(fault, path, bytes, size, form, &pixels);
    else if (format && strcmp(format, "JPEG") == 0)
        code = mtc_jpeg_decode(fault, path, bytes, size, form, &pixels);
    else
        code = no_image(fault, path, bytes, size);
    if (!code) {
        const int64_t count = form->width * form->height;
        mtc_pixels_to_channels(&pixels, form->channels);
        if (pixels.width == form->width && pixels.height == form->height)
            to_planes(pixels.at, count, form->channels, planes);
        else {
            uint8_t *rows = (uint8_t *)mtc_memory(NULL, (size_t)(count * form->channels));
            mtc_pixels_scale(&pixels, form->width, form->height, rows);
            to_planes(rows, count, form->channels, planes);
            free(rows);
        }
    }
    free(pixels.at);
    return code;
}
