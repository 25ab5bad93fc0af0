/* Windows that sweep over images. Inside mtc an image is [N, H, W, C]; the language speaks of [C, H, W]. */
#ifndef MTC_WINDOW_H
#define MTC_WINDOW_H

#include "op/compose.h"

/* Axes of images [N, H, W, C], and of their windows [N, OH, OW, KH, KW, C]. */
enum { IMAGE_ROWS = 1, IMAGE_COLUMNS = 2, IMAGE_CHANNELS = 3, IMAGE_RANK = 4, TAP_ROWS = 3, TAP_COLUMNS = 4 };
enum { TAP_AXES = 1 << TAP_ROWS | 1 << TAP_COLUMNS, PIXEL_AXES = 1 << 0 | 1 << IMAGE_ROWS | 1 << IMAGE_COLUMNS };

/* A sweep along the rows and one along the columns. */
typedef struct Sweeps {
    Sweep axis[2];
} Sweeps;

/* The sweeps in which the image sees the outputs that see it: output o sees at tap k of the image what the image sees at
 * tap k of output o. `image` is [N, H, W, C]. */
Sweeps sweeps_adjoint(const Sweep *sweep, const Type *image);
Node *window(Graph *g, Node *image, const Sweep *sweep, double fill);
/* Of an image of this type: [N, OH, OW, channels]. */
Type swept_type(const Type *image, const Sweep *sweep, int64_t channels);

/* conv.c: images [N, H, W, C] with filters [O, KH, KW, C]. */
Node *build_convolution(Graph *g, const Sweeps *sweeps, Node *x, Node *w);

/* ---- in ONNX ---- */

/* A sweep over images [N, C, H, W] as its operators take it. */
typedef struct OnnxSweep {
    int64_t kernel[2], stride[2], dilation[2], pads[4];
    OnnxAttr attr[4]; /* of these */
} OnnxSweep;
/* False where it is another sort of sweep: over what is spread out, or backwards, or one that ends before the image does. */
bool onnx_sweep(const Sweep *sweep, const Type *image, OnnxSweep *result);
extern const int image_channels_first[IMAGE_RANK]; /* of [N, H, W, C] */

/* ---- in the language (image.c) ---- */

/* The argument, an image [C, H, W], as [N, H, W, C] of f32, where N is 1 without a batch; NULL after a user error. */
Node *call_image(Call *call, int arg, const char *function);
Node *image_of(Graph *g, Node *x); /* of a tensor [C, H, W] */
/* A value for each of these N images, as the language sees it: without an axis for one that is the same for all examples. */
Node *of_images(Graph *g, Node *y);
/* [N, H, W, C] as the language sees it. */
Node *image_value(Graph *g, Node *image);
/* A number for both directions, or a list of rows and columns; false after a user error. */
bool call_pair(Call *call, int arg, int64_t low, int64_t *pair);
/* What the signature's parameter of the kind "pixels" says, or the image's own rows and columns; false after a user error. */
bool call_pixels(Call *call, const int64_t *own, int64_t *pixels);
/* The arguments kernel, stride, padding, dilation, of which stride may be none: the kernel. */
typedef struct SweepArgs {
    int kernel, stride, padding, dilation; /* -1: there is none */
} SweepArgs;
/* How they sweep over the image; false after a user error. */
bool call_sweeps(Call *call, const SweepArgs *args, const Type *image, Sweeps *sweeps);

#endif
