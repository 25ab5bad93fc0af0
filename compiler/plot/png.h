/* PNG, written without a library: mtc needs none to run, and the bytes are the same everywhere. */
#ifndef MTC_PNG_H
#define MTC_PNG_H

#include "support/text.h"

/* Pixels of three bytes; each row begins with the byte that tells PNG's filter, 0: none. */
typedef struct Image {
    int width, height;
    uint8_t *rows;
} Image;

Image image_new(Arena *arena, int width, int height); /* black */
uint8_t *image_pixel(const Image *image, int x, int y);
/* Adds the file to `out`. */
void image_png(const Image *image, Text *out);

#endif
