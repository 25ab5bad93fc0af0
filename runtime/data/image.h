/* Images: PNG and JPEG files as bytes in planes, [channels, height, width].
 *
 *     file -> pixels, row by row, grey or red, green, blue -> the field's channels -> its size -> planes
 *
 * The libraries that decode are loaded when the first image is met, as zlib is (input.c). */
#ifndef MTC_IMAGE_H
#define MTC_IMAGE_H

#include "data/dataset.h"

/* What a field expects of an image. */
typedef struct MtcImageForm {
    int channels; /* 1: grey; 3: red, green, blue */
    int64_t height, width;
    bool resize; /* images of other sizes are scaled; else they are a fault */
} MtcImageForm;

/* Is the field an image: u8[H, W], u8[1, H, W] or u8[3, H, W]? */
bool mtc_image_form(const MtcField *field, bool resize, MtcImageForm *form);

/* Does the model predict from one image and nothing else? */
bool mtc_predicts_from_image(const MtcModel *model);

/* The fields of examples that are images: the compiler has made sure that there is one image, and at most one label; -1: none. */
int mtc_image_field(const MtcModel *model);
int mtc_label_field(const MtcModel *model);
size_t mtc_image_bytes(const MtcImageForm *form);

/* Do a file's first bytes say that it is an image, in a format that is read here or not? */
enum { MTC_IMAGE_MAGIC = 12 };
bool mtc_is_image(const uint8_t *bytes, size_t size);

/* The bytes of a file as channels x height x width bytes. */
int mtc_image_decode(MtcFault *fault, const char *path, const uint8_t *bytes, size_t size, const MtcImageForm *form,
                     uint8_t *planes);

/* ---- origins of examples ---- */

/* A folder of images, in a folder for each class or all in one: in the order of the names. */
typedef struct MtcImageFiles {
    int64_t count;
    char **path;
    int *label;
    int classes;
    char **name; /* of each class: its folder's */
} MtcImageFiles;
int mtc_list_classes(MtcFault *fault, const char *folder, MtcImageFiles *files);
/* Whatever lies in the folder, or in the folders in it; a file: that one. */
int mtc_list_images(MtcFault *fault, const char *path, MtcImageFiles *files);
void mtc_image_files_free(MtcImageFiles *files);
/* The folder, the files in it, and so for each folder in it. What cannot be read is left out. */
void mtc_visit_images(const char *folder, void (*visit)(void *context, const char *path, bool is_folder),
                      void *context);
bool mtc_is_folder(const char *path);

/* What came of files: the images that could be read, and which of the files each is. Free both. */
typedef struct MtcDecoded {
    int64_t count;
    int64_t *file; /* NULL: they are all */
    uint8_t *planes;
} MtcDecoded;
/* By all processors. Files that are wrong are left out and counted where the reading says so; else the fault names the first
 * of them, and how many there are. */
int mtc_decode_files(MtcFault *fault, const MtcImageFiles *files, const MtcImageForm *form, MtcReading *reading,
                     MtcDecoded *decoded);

/* The same by all ranks, which have the same list of files: each decodes a part. `kept`: all images, where this rank has them; they become
 * those that are decoded, or are freed. */
int mtc_decode_together(MtcFault *fault, const MtcImageFiles *files, const MtcImageForm *form, uint8_t *kept,
                        MtcReading *reading, MtcDecoded *decoded);

/* The records of cifar10("folder"): a label, then 32 x 32 bytes red, as many green, as many blue. */
int mtc_read_cifar(MtcFault *fault, const MtcModel *model, const MtcOrigin *origin, const char *folder,
                   MtcExamples *examples);
/* Images to predict, for the one field that the prediction depends on. */
int mtc_read_image_input(MtcFault *fault, const MtcModel *model, const char *path, bool resize, MtcReading *reading,
                         MtcExamples *examples);

/* ---- inside ---- */

/* Rows of width x channels bytes, 1 or 3 channels. Free `at`. */
typedef struct MtcPixels {
    int64_t width, height;
    int channels;
    uint8_t *at;
} MtcPixels;

int mtc_png_decode(MtcFault *fault, const char *path, const uint8_t *bytes, size_t size, const MtcImageForm *form,
                   MtcPixels *pixels);
int mtc_jpeg_decode(MtcFault *fault, const char *path, const uint8_t *bytes, size_t size, const MtcImageForm *form,
                    MtcPixels *pixels);
/* Once the size is known, before anything is decoded: is it one that is expected? Reserves memory for the pixels. */
int mtc_pixels_reserve(MtcFault *fault, const char *path, const MtcImageForm *form, int64_t width, int64_t height,
                       int channels, MtcPixels *pixels);
void mtc_pixels_to_channels(MtcPixels *pixels, int channels);
/* Each pixel of the result is the mean of those that it covers, weighted by a triangle: bilinear where an image grows. */
void mtc_pixels_scale(const MtcPixels *pixels, int64_t width, int64_t height, uint8_t *rows);

#endif
