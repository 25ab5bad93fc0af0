#include "data/image.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool mtc_image_form(const MtcField *field, bool resize, MtcImageForm *form) {
    form->channels = field->rank == 3 ? (int)field->dim[0] : 1;
    form->height = field->rank >= 2 ? field->dim[field->rank - 2] : 0;
    form->width = field->rank >= 2 ? field->dim[field->rank - 1] : 0;
    form->resize = resize;
    return field->type == MTC_U8 && !field->classes && (field->rank == 2 || field->rank == 3) &&
           (form->channels == 1 || form->channels == 3);
}

int mtc_image_field(const MtcModel *model) {
    int f = 0;
    while (f < model->fields - 1 && model->field[f].classes)
        f++;
    return f;
}

int mtc_label_field(const MtcModel *model) {
    for (int f = 0; f < model->fields; f++)
        if (model->field[f].classes)
            return f;
    return -1;
}

/* What files begin with, and what reads them; NULL: nothing here. */
typedef struct ImageFormat {
    const char *name;
    size_t at, length;
    const char *magic;
    int (*decode)(MtcFault *fault, const char *path, const uint8_t *bytes, size_t size, const MtcImageForm *form,
                  MtcPixels *pixels);
} ImageFormat;
static const ImageFormat image_formats[] = {
    {"PNG", 0, 8, "\x89PNG\r\n\x1a\n", mtc_png_decode},
    {"JPEG", 0, 3, "\xff\xd8\xff", mtc_jpeg_decode},
    {"GIF", 0, 4, "GIF8", NULL},
    {"WebP", 8, 4, "WEBP", NULL},
    {"TIFF", 0, 4, "II*\0", NULL},
    {"TIFF", 0, 4, "MM\0*", NULL},
    {"HEIF", 4, 7, "ftyphei", NULL},
    {"AVIF", 4, 7, "ftypavi", NULL},
};

static const ImageFormat *format_of(const uint8_t *bytes, size_t size) {
    for (size_t i = 0; i < sizeof image_formats / sizeof *image_formats; i++)
        if (size >= image_formats[i].at + image_formats[i].length &&
            memcmp(bytes + image_formats[i].at, image_formats[i].magic, image_formats[i].length) == 0)
            return &image_formats[i];
    return NULL;
}

bool mtc_is_image(const uint8_t *bytes, size_t size) {
    return format_of(bytes, size) != NULL;
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
    const ImageFormat *format = format_of(bytes, size);
    if (format)
        return mtc_fail(fault, MTC_BAD_DATA, "%s: is a %s file; images are PNG or JPEG", path, format->name);
    if (!ends_like_image(path))
        return mtc_fail(fault, MTC_BAD_DATA,
                        "%s: is no image: a folder of images holds images only, files .png, .jpg or .jpeg", path);
    if (size == 0)
        return mtc_fail(fault, MTC_BAD_DATA, "%s: is empty, expected a PNG or JPEG image", path);
    return mtc_fail(fault, MTC_BAD_DATA, "%s: is no image, neither PNG nor JPEG", path);
}

int mtc_image_decode(MtcFault *fault, const char *path, const uint8_t *bytes, size_t size, const MtcImageForm *form,
                     uint8_t *planes) {
    const ImageFormat *format = format_of(bytes, size);
    MtcPixels pixels = {0, 0, 0, NULL};
    int code = format && format->decode ? format->decode(fault, path, bytes, size, form, &pixels)
                                        : no_image(fault, path, bytes, size);
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
