#include "data/image.h"

#include <stdlib.h>

/* Far more than any data set needs; a file of a few kB can promise a million times more. */
static const int64_t MOST_PIXELS = 1 << 26;

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
