/* Images in the language: [C, H, W] for each example, seen by the operators as [N, H, W, C]. The two transposes that each
 * function puts around its work meet those of its neighbours, and pass/layout.c takes them out. */
#include "op/window.h"

static const int channels_last[] = {0, 2, 3, 1}, channels_first[] = {0, 3, 1, 2};

/* An image that is the same for all examples is one alone, N = 1, without a batch. */
static Node *as_images(Graph *g, Node *x) {
    Type type = {.dtype = x->type.dtype, .rank = IMAGE_RANK, .dim = {1}};
    if (x->type.batched)
        return x;
    memcpy(type.dim + 1, x->type.dim, (IMAGE_RANK - 1) * sizeof *type.dim);
    return graph_reshape(g, x, &type);
}

Node *image_of(Graph *g, Node *x) {
    return graph_transpose(g, as_images(g, graph_cast(g, x, DT_F32)), channels_last);
}

Node *call_image(Call *call, int arg, const char *function) {
    Graph *g = call->g;
    Node *x = call_tensor(call, arg);
    if (!x || !call_parts_no_batch(call, arg, x, ~0u))
        return NULL;
    int rank = x->type.rank - x->type.batched, last = x->type.rank - 1;
    if (rank == IMAGE_RANK - 1)
        return image_of(g, x);
    const char *hint = rank != IMAGE_RANK - 2
                           ? ""
                           : arena_printf(g->arena, "; reshape(x, [1, %lld, %lld]) gives it one channel",
                                          (long long)x->type.dim[last - 1], (long long)x->type.dim[last]);
    call_error(call, arg, "%s needs an image [channels, rows, columns], found %s%s", function,
               type_user_text(g->arena, &x->type), hint);
    return NULL;
}

Node *of_images(Graph *g, Node *y) {
    if (!y || y->type.batched)
        return y;
    Type type = y->type;
    type.rank--;
    memmove(type.dim, type.dim + 1, (size_t)type.rank * sizeof *type.dim);
    return graph_reshape(g, y, &type);
}

Node *image_value(Graph *g, Node *image) {
    return of_images(g, graph_transpose(g, image, channels_first));
}

bool call_pair(Call *call, int arg, int64_t low, int64_t *pair) {
    const Value *value = &call->args[arg];
    Call items = call_items(call, arg);
    if (value->kind == VALUE_LIST && value->count != 2) {
        call_error(call, arg, "expected a number, or two for rows and columns, not a list of %d", value->count);
        return false;
    }
    if (value->kind == VALUE_STRING) {
        call_error(call, arg,
                   "expected a number, or [rows, columns], not \"%s\"; with stride 1 and an odd kernel, "
                   "(kernel - 1) / 2 keeps the size",
                   value->string);
        return false;
    }
    for (int k = 0; k < 2; k++) {
        pair[k] = value->kind == VALUE_LIST ? call_int(&items, k, low, INT16_MAX)
                  : k == 0                  ? call_int(call, arg, low, INT16_MAX)
                                            : pair[0];
        if (pair[k] < low)
            return false;
    }
    return true;
}

bool call_pixels(Call *call, const int64_t *own, int64_t *pixels) {
    int arg = 0;
    while (!is_of_kind(&call->signature->at[arg], "pixels"))
        ENSURE(++arg < call->count);
    memcpy(pixels, own, 2 * sizeof *own);
    return call->args[arg].kind == VALUE_NONE || call_pair(call, arg, 1, pixels);
}

/* ---- sweeps ---- */

static bool read_pair_or(Call *call, int arg, int64_t low, const int64_t *fallback, int64_t *pair) {
    if (arg >= 0 && call->args[arg].kind != VALUE_NONE)
        return call_pair(call, arg, low, pair);
    memcpy(pair, fallback, 2 * sizeof *pair);
    return true;
}

static bool check_fits(Call *call, int arg, const Type *image, const int64_t *extent, const int64_t *padding) {
    int64_t rows = image->dim[1] + 2 * padding[0], columns = image->dim[2] + 2 * padding[1];
    if (extent[0] <= rows && extent[1] <= columns)
        return true;
    bool padded = padding[0] || padding[1];
    call_error(call, arg, "a kernel that spans %lld x %lld pixels does not fit an image of %lld x %lld%s",
               (long long)extent[0], (long long)extent[1], (long long)rows, (long long)columns,
               padded ? ", padding included" : "");
    return false;
}

bool call_sweeps(Call *call, const SweepArgs *args, const Type *image, Sweeps *sweeps) {
    int64_t kernel[2], stride[2], padding[2], dilation[2], extent[2];
    if (!call_pair(call, args->kernel, 1, kernel) || !read_pair_or(call, args->stride, 1, kernel, stride) ||
        !read_pair_or(call, args->padding, 0, (int64_t[]){0, 0}, padding) ||
        !read_pair_or(call, args->dilation, 1, (int64_t[]){1, 1}, dilation))
        return false;
    for (int k = 0; k < 2; k++)
        extent[k] = (kernel[k] - 1) * dilation[k] + 1;
    if (!check_fits(call, args->kernel, image, extent, padding))
        return false;
    for (int k = 0; k < 2; k++)
        sweeps->axis[k] = (Sweep){.out = (image->dim[1 + k] + 2 * padding[k] - extent[k]) / stride[k] + 1,
                                  .kernel = kernel[k],
                                  .stride = stride[k],
                                  .dilation = dilation[k],
                                  .pad = padding[k],
                                  .spread = 1};
    return true;
}
