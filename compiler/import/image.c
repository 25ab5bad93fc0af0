/* Convolutions and pools: of images [C, H, W], or of sequences [C, L]. */
#include "import/rules.h"

/* What a window sees along each axis of the image, and how many outputs there are. */
typedef struct Window {
    int axes; /* 1 or 2 */
    int64_t size[2], kernel[2], stride[2], dilation[2], before[2], after[2], out[2];
} Window;

/* ---- the operand ---- */

/* [C, H, W] or [C, L]; a file without a batch has one image. */
static Extents read_image(Importer *im, const Shape *shape, Window *w) {
    Extents extents = text_extents(shape);
    if (shape->batch < 0 && extents.rank > 1 && extents.size[0] == 1) {
        for (int i = 1; i < extents.rank; i++)
            extents.size[i - 1] = extents.size[i];
        extents.rank--;
    } else if (shape->batch != 0 || shape->all.size[0] != 1) {
        refuse(im, "its operand is %s; mtc takes [batch, channels, ...]", shape_text(im, shape));
    }
    w->axes = extents.rank - 1;
    if (w->axes < 1 || w->axes > 2)
        refuse(im, "its operand is %s; mtc knows images and sequences, with one or two axes behind the channels",
               shape_text(im, shape));
    for (int i = 0; i < w->axes; i++)
        w->size[i] = extents.size[1 + i];
    return extents;
}

static Shape image_shape(const Shape *x, int64_t channels, const Window *w) {
    Shape shape = *x;
    shape.all.size[1] = channels;
    for (int i = 0; i < w->axes; i++)
        shape.all.size[2 + i] = w->out[i];
    return shape;
}

/* A sequence is an image with one row. */
static Extents as_rows(Extents image, Window *w) {
    if (w->axes == 2)
        return image;
    int64_t *const at[] = {w->size, w->kernel, w->stride, w->dilation, w->before, w->after, w->out};
    static const int64_t one_row[] = {1, 1, 1, 1, 0, 0, 1};
    for (int i = 0; i < 7; i++) {
        at[i][1] = at[i][0];
        at[i][0] = one_row[i];
    }
    w->axes = 2;
    return (Extents){.rank = 3, .size = {image.size[0], 1, image.size[1]}};
}

/* ---- attributes ---- */

static void read_numbers(Importer *im, Node *node, const char *name, const Window *w, int64_t least, int64_t *at) {
    int64_t given[2 * MOST_RANK];
    const int count = ints_attribute(im, node, name, given);
    if (count && count != w->axes)
        refuse(im, "attribute %s has %d numbers, for %d axes of %s", name, count, w->axes,
               shape_text(im, &node->input[0]->shape));
    for (int i = 0; i < count; i++) {
        if (given[i] < least || given[i] > INT32_MAX)
            refuse(im, "attribute %s has %lld", name, (long long)given[i]);
        at[i] = given[i];
    }
}

static void read_pads(Importer *im, Node *node, Window *w) {
    int64_t given[2 * MOST_RANK];
    const int count = ints_attribute(im, node, "pads", given);
    if (count && count != 2 * w->axes)
        refuse(im, "attribute pads has %d numbers, for %d axes", count, w->axes);
    for (int i = 0; i < count; i++) {
        if (given[i] < 0 || given[i] > INT32_MAX / 4)
            refuse(im, "attribute pads has %lld", (long long)given[i]);
        (i < w->axes ? w->before : w->after)[i % w->axes] = given[i];
    }
}

static int64_t span(const Window *w, int i) {
    return (w->kernel[i] - 1) * w->dilation[i] + 1;
}

/* SAME_UPPER and SAME_LOWER: as many outputs as strides fit. */
static void pad_same(Window *w, bool upper) {
    for (int i = 0; i < w->axes; i++) {
        const int64_t out = (w->size[i] + w->stride[i] - 1) / w->stride[i];
        const int64_t total = (out - 1) * w->stride[i] + span(w, i) - w->size[i], all = total > 0 ? total : 0;
        w->before[i] = upper ? all / 2 : all - all / 2;
        w->after[i] = all - w->before[i];
    }
}

static void read_auto_pad(Importer *im, Node *node, Window *w) {
    const char *how = word_attribute(im, node, "auto_pad", "NOTSET");
    if (strcmp(how, "SAME_UPPER") == 0 || strcmp(how, "SAME_LOWER") == 0)
        pad_same(w, how[5] == 'U');
    else if (strcmp(how, "VALID") == 0)
        memset(w->before, 0, sizeof w->before), memset(w->after, 0, sizeof w->after);
    else
        only_word(im, node, "auto_pad", "NOTSET");
}

/* With ceil, one output more where the last window begins within the image, for which there is more padding behind. */
static void count_outputs(Importer *im, Window *w, bool ceil) {
    for (int i = 0; i < w->axes; i++) {
        const int64_t padded = w->size[i] + w->before[i] + w->after[i], room = padded - span(w, i);
        if (room < 0)
            refuse(im, "its kernel spans %lld, and the padded image has %lld", (long long)span(w, i),
                   (long long)padded);
        w->out[i] = room / w->stride[i] + 1;
        if (ceil && room % w->stride[i] && w->out[i] * w->stride[i] < w->size[i] + w->before[i]) {
            w->out[i]++;
            w->after[i] += (w->out[i] - 1) * w->stride[i] + span(w, i) - padded;
        }
    }
}

static void read_window(Importer *im, Node *node, Window *w) {
    for (int i = 0; i < w->axes; i++)
        w->stride[i] = w->dilation[i] = 1;
    read_numbers(im, node, "strides", w, 1, w->stride);
    read_numbers(im, node, "dilations", w, 1, w->dilation);
    read_pads(im, node, w);
    for (int i = 0; i < w->axes; i++)
        if (w->kernel[i] < 1 || w->kernel[i] > INT32_MAX || span(w, i) > INT32_MAX)
            refuse(im, "its kernel has the size %lld", (long long)w->kernel[i]);
}

/* ---- the text of a window ---- */

static bool same_before_and_after(const Window *w) {
    for (int i = 0; i < w->axes; i++)
        if (w->before[i] != w->after[i])
            return false;
    return true;
}

static const char *sizes(Importer *im, const Window *w, const int64_t *at) {
    return w->axes == 1 || at[0] == at[1] ? arena_printf(im->arena, "%lld", (long long)at[0]) : list_text(im, at, 2);
}

/* ", stride = 2", where it is not what is usual. */
static const char *option(Importer *im, const Window *w, const char *name, const int64_t *at, int64_t usual) {
    bool is_usual = true;
    for (int i = 0; i < w->axes; i++)
        is_usual &= at[i] == usual;
    return is_usual ? "" : arena_printf(im->arena, ", %s = %s", name, sizes(im, w, at));
}

/* The operand with what is seen beyond its edges written out, where that is not alike on both sides. */
static const char *padded_image(Importer *im, const char *text, const Window *w, double value) {
    for (int i = 0; i < w->axes; i++)
        if (w->before[i] || w->after[i])
            text = padded_text(im, text, 1 + i, 1 + w->axes, w->size[i], w->before[i], w->after[i], value);
    return text;
}

/* ---- convolutions ---- */

static const Tensor *filter_of(Importer *im, Node *node, const Window *w) {
    const Tensor *filter = weight_of(node, 1);
    int64_t kernel[2 * MOST_RANK];
    if (!filter || filter->element != REAL)
        refuse(im, "its filter is computed when the model runs; mtc takes it as a weight");
    if (filter->extents.rank != 2 + w->axes || filter->count == 0)
        refuse(im, "its filter is %s, for an operand of %s", sizes_text(im, &filter->extents),
               shape_text(im, &node->input[0]->shape));
    const int count = ints_attribute(im, node, "kernel_shape", kernel);
    for (int i = 0; i < count; i++)
        if (count != w->axes || kernel[i] != filter->extents.size[2 + i])
            refuse(im, "attribute kernel_shape is %s, and its filter %s", list_text(im, kernel, count),
                   sizes_text(im, &filter->extents));
    return filter;
}

static int64_t groups_of(Importer *im, Node *node, int64_t channels) {
    const int64_t groups = int_attribute(im, node, "group", 1);
    if (groups < 1 || channels % groups)
        refuse(im, "attribute group is %lld, of %lld channels", (long long)groups, (long long)channels);
    return groups;
}

static void add_bias(Importer *im, Node *node, Layer *layer) {
    const Tensor *bias = weight_of(node, 2);
    if (node->inputs < 3 || !node->input[2])
        return;
    if (!bias || bias->element != REAL || bias->count != layer->outputs)
        refuse(im, "its bias is not a weight of %lld numbers", (long long)layer->outputs);
    const Extents flat = {.rank = 1, .size = {layer->outputs}};
    layer_add(layer, "bias", tensor_as(im, bias, &flat));
    layer->has_bias = true;
}

static const char *group_text(Importer *im, int64_t groups) {
    return groups == 1 ? "" : arena_printf(im->arena, ", groups = %lld", (long long)groups);
}

void conv_rule(Importer *im, Node *node) {
    Value *x = node->input[0];
    Window w = {0};
    const Extents image = read_image(im, &x->shape, &w);
    const Tensor *filter = filter_of(im, node, &w);
    for (int i = 0; i < w.axes; i++)
        w.kernel[i] = filter->extents.size[2 + i];
    read_window(im, node, &w);
    read_auto_pad(im, node, &w);
    count_outputs(im, &w, false);
    const int64_t groups = groups_of(im, node, image.size[0]), outputs = filter->extents.size[0];
    if (filter->extents.size[1] != image.size[0] / groups || outputs % groups)
        refuse(im, "its filter is %s, for %lld channels in %lld groups", sizes_text(im, &filter->extents),
               (long long)image.size[0], (long long)groups);
    const bool even = same_before_and_after(&w);
    const char *text = operand_as(im, x, &image, even ? OR : ATOM);
    Layer *layer = layer_new(im, "conv%dd(%s, %lld, %s%s%s%s%s", w.axes, even ? text : padded_image(im, text, &w, 0),
                             (long long)outputs, sizes(im, &w, w.kernel), option(im, &w, "stride", w.stride, 1),
                             even ? option(im, &w, "padding", w.before, 0) : "",
                             option(im, &w, "dilation", w.dilation, 1), group_text(im, groups));
    layer->may_bias = true;
    layer->outputs = outputs;
    layer_add(layer, "weight", filter);
    add_bias(im, node, layer);
    const Shape shape = {.all = {.rank = 1 + w.axes, .size = {outputs, w.out[0], w.out[1]}}, .batch = -1},
                result = image_shape(&x->shape, outputs, &w);
    Expression e = layer_expression(im, layer);
    e.extents = shape.all;
    give_as(im, node, 0, REAL, &result, e);
}

/* How many outputs there are before what pads take away; output_shape says pads. */
static void read_transposed(Importer *im, Node *node, Window *w, int64_t *more) {
    int64_t shape[2 * MOST_RANK], wanted[2] = {0};
    const char *how = word_attribute(im, node, "auto_pad", "NOTSET");
    const bool upper = strcmp(how, "SAME_UPPER") == 0, same = upper || strcmp(how, "SAME_LOWER") == 0;
    const int given = ints_attribute(im, node, "output_shape", shape);
    read_numbers(im, node, "output_padding", w, 0, more);
    if (!same && strcmp(how, "VALID") != 0)
        only_word(im, node, "auto_pad", "NOTSET");
    if (given && given != w->axes)
        refuse(im, "attribute output_shape has %d numbers, for %d axes", given, w->axes);
    for (int i = 0; i < w->axes; i++) {
        const int64_t all = w->stride[i] * (w->size[i] - 1) + more[i] + span(w, i);
        wanted[i] = given ? shape[i] : same ? w->size[i] * w->stride[i] : all - w->before[i] - w->after[i];
        if (wanted[i] < 1 || wanted[i] > all)
            refuse(im, "axis %d of its result would have %lld elements, of %lld that there are", i,
                   (long long)wanted[i], (long long)all);
        if (given || same) {
            w->before[i] = upper ? (all - wanted[i]) / 2 : all - wanted[i] - (all - wanted[i]) / 2;
            w->after[i] = all - wanted[i] - w->before[i];
        }
        w->out[i] = wanted[i];
    }
}

void conv_transpose_rule(Importer *im, Node *node) {
    Value *x = node->input[0];
    Window w = {0};
    int64_t more[2] = {0}, whole[2] = {0};
    Extents image = read_image(im, &x->shape, &w);
    const Tensor *filter = filter_of(im, node, &w);
    for (int i = 0; i < w.axes; i++)
        w.kernel[i] = filter->extents.size[2 + i];
    read_window(im, node, &w);
    read_transposed(im, node, &w, more);
    const int64_t groups = groups_of(im, node, image.size[0]), outputs = filter->extents.size[1] * groups;
    if (filter->extents.size[0] != image.size[0])
        refuse(im, "its filter is %s, for %lld channels", sizes_text(im, &filter->extents), (long long)image.size[0]);
    const Shape result = image_shape(&x->shape, outputs, &w);
    if (w.axes == 1) {
        const Extents rows = {.rank = 4,
                              .size = {filter->extents.size[0], filter->extents.size[1], 1, filter->extents.size[2]}};
        filter = tensor_as(im, filter, &rows);
        more[1] = more[0];
        more[0] = 0;
    }
    image = as_rows(image, &w);
    const bool even = same_before_and_after(&w);
    Layer *layer =
        layer_new(im, "conv_transpose2d(%s, %lld, %s%s%s%s%s%s", operand_as(im, x, &image, OR), (long long)outputs,
                  sizes(im, &w, w.kernel), option(im, &w, "stride", w.stride, 1),
                  even ? option(im, &w, "padding", w.before, 0) : "", option(im, &w, "output_padding", more, 0),
                  option(im, &w, "dilation", w.dilation, 1), group_text(im, groups));
    layer->may_bias = true;
    layer->outputs = outputs;
    layer_add(layer, "weight", filter);
    add_bias(im, node, layer);
    Expression e = layer_expression(im, layer);
    for (int i = 0; i < 2; i++)
        whole[i] = w.out[i] + w.before[i] + w.after[i];
    if (!even)
        e.after = arena_printf(im->arena, "[:, %lld:%lld, %lld:%lld]", (long long)w.before[0],
                               (long long)(whole[0] - w.after[0]), (long long)w.before[1],
                               (long long)(whole[1] - w.after[1]));
    e.extents = (Extents){.rank = 3, .size = {outputs, w.out[0], w.out[1]}};
    give_as(im, node, 0, REAL, &result, e);
}

/* ---- pools ---- */

static Extents read_pool(Importer *im, Node *node, Window *w, Shape *shape) {
    const Extents image = read_image(im, &node->input[0]->shape, w);
    if (!attribute(im, node, "kernel_shape"))
        refuse(im, "attribute kernel_shape is not given");
    read_numbers(im, node, "kernel_shape", w, 1, w->kernel);
    read_window(im, node, w);
    read_auto_pad(im, node, w);
    count_outputs(im, w, int_attribute(im, node, "ceil_mode", 0) != 0);
    *shape = image_shape(&node->input[0]->shape, image.size[0], w);
    return as_rows(image, w);
}

static bool is_in_half(const Window *w) {
    for (int i = 0; i < w->axes; i++)
        if (2 * w->before[i] > w->kernel[i])
            return false;
    return true;
}

static void give_pool(Importer *im, Node *node, const Extents *image, const Window *w, const Shape *shape,
                      const char *text) {
    Expression e = text_expression(im, ATOM, "%s", text);
    e.extents = (Extents){.rank = 3, .size = {image->size[0], w->out[0], w->out[1]}};
    give_as(im, node, 0, REAL, shape, e);
}

/* Beside what both pools have: kernel, stride where it is another. */
static const char *pool_text(Importer *im, const char *function, const char *x, const Window *w, const char *rest) {
    const bool strided = memcmp(w->stride, w->kernel, sizeof w->stride) != 0;
    return arena_printf(im->arena, "%s(%s, %s%s%s)", function, x, sizes(im, w, w->kernel),
                        strided ? arena_printf(im->arena, ", stride = %s", sizes(im, w, w->stride)) : "", rest);
}

void max_pool_rule(Importer *im, Node *node) {
    Window w = {0};
    Shape shape;
    const Extents image = read_pool(im, node, &w, &shape);
    const bool plain = same_before_and_after(&w) && is_in_half(&w);
    const char *x = operand_as(im, node->input[0], &image, plain ? OR : ATOM);
    const char *rest = arena_printf(im->arena, "%s%s", plain ? option(im, &w, "padding", w.before, 0) : "",
                                    option(im, &w, "dilation", w.dilation, 1));
    only_int(im, node, "storage_order", 0);
    give_pool(im, node, &image, &w, &shape,
              pool_text(im, "max_pool", plain ? x : padded_image(im, x, &w, -3.4028234663852886e38), &w, rest));
}

/* Of the window of output i along an axis, how much of the kernel counts: what lies in the image, or also in its padding. */
static double share_of(const Window *w, int axis, int64_t i, int64_t from, int64_t to) {
    const int64_t begin = i * w->stride[axis] - w->before[axis], end = begin + w->kernel[axis];
    const int64_t counted = (end < to ? end : to) - (begin > from ? begin : from);
    return (double)w->kernel[axis] / (double)counted;
}

/* The factors that make means of windows at the edges means of what counts; "": all are 1. */
static const char *shares_text(Importer *im, const Window *w, int axis, const int64_t *beyond) {
    bool all_one = true;
    Text text = TEXT(im->arena);
    if (w->out[axis] > 1024)
        refuse(im, "it counts the padding apart, for %lld outputs; mtc writes at most 1024", (long long)w->out[axis]);
    text_puts(&text, " * [");
    for (int64_t i = 0; i < w->out[axis]; i++) {
        const double share =
            share_of(w, axis, i, beyond ? -w->before[axis] : 0, w->size[axis] + (beyond ? beyond[axis] : 0));
        all_one &= share == 1;
        text_puts(&text, i ? ", " : "");
        text_printf(&text, axis == 0 ? "[%s]" : "%s", number_text(im, decimal((float)share)));
    }
    text_puts(&text, "]");
    return all_one ? "" : text_string(&text);
}

void average_pool_rule(Importer *im, Node *node) {
    Window w = {0};
    Shape shape;
    const Extents image = read_pool(im, node, &w, &shape);
    const bool with_padding = int_attribute(im, node, "count_include_pad", 0) != 0,
               plain = same_before_and_after(&w) && is_in_half(&w);
    /* What the attribute pads says, without the room that ceil_mode adds behind. */
    int64_t given[2 * MOST_RANK] = {0}, behind[2] = {0};
    const int count = ints_attribute(im, node, "pads", given);
    for (int i = 0; i < 2; i++) {
        behind[i] = count == 4 ? given[2 + i] : count == 2 && i == 1 ? given[1] : count ? 0 : w.after[i];
        if (w.dilation[i] != 1)
            refuse(im, "mtc knows no average of windows with dilation");
    }
    const char *x = operand_as(im, node->input[0], &image, plain ? OR : ATOM);
    const char *text = pool_text(im, "avg_pool", plain ? x : padded_image(im, x, &w, 0), &w,
                                 plain ? option(im, &w, "padding", w.before, 0) : "");
    const int64_t *beyond = with_padding ? behind : NULL;
    text = arena_printf(im->arena, "%s%s%s", text, shares_text(im, &w, 0, beyond), shares_text(im, &w, 1, beyond));
    give_pool(im, node, &image, &w, &shape, text);
    node->output[0]->expression.strength = PRODUCT;
}

/* The mean, or the largest, of each channel. */
void global_pool_rule(Importer *im, Node *node) {
    Value *x = node->input[0];
    Window w = {.out = {1, 1}};
    Extents image = read_image(im, &x->shape, &w);
    const Shape shape = image_shape(&x->shape, image.size[0], &w);
    image = as_rows(image, &w);
    Expression e = text_expression(im, ATOM, "%s(%s)", node->operator->text, operand_as(im, x, &image, OR));
    e.extents = (Extents){.rank = 1, .size = {image.size[0]}};
    give_as(im, node, 0, REAL, &shape, e);
}

/* ---- resize ---- */

/* How many times larger each axis gets; whole numbers. */
static int64_t factor_of(Importer *im, Node *node, int axis, int scales, int sizes_input) {
    const Tensor *scale = scales >= 0 ? weight_of(node, scales) : NULL,
                 *size = sizes_input >= 0 ? weight_of(node, sizes_input) : NULL;
    const Shape *x = &node->input[0]->shape;
    const bool by_size = size && size->count;
    if (by_size ? size->element == REAL || size->count != x->all.rank
                : !scale || scale->element != REAL || scale->count != x->all.rank)
        refuse(im, "its scales or sizes are not known when importing, one for each axis");
    const double whole = (double)x->all.size[axis] * (axis == x->batch && im->examples ? (double)im->examples : 1);
    const double factor = by_size && size->batches && size->batches[axis] ? 1
                          : by_size                                       ? (double)size->whole[axis] / whole
                                                                          : (double)scale->real[axis];
    if (!(factor >= 1 && factor < 65536) || factor != (double)(int64_t)factor)
        refuse(im, "axis %d becomes %g times as large; mtc knows whole numbers from 1 on", axis, factor);
    return (int64_t)factor;
}

/* Where an output looks, in the ways that `upsample` has. */
static const char *mode_of(Importer *im, Node *node) {
    const char *mode = word_attribute(im, node, "mode", "nearest");
    const bool old = strcmp(node->operator->name, "Upsample") == 0 || im->version < 11;
    const char *where = word_attribute(im, node, "coordinate_transformation_mode", old ? "asymmetric" : "half_pixel");
    const char *round = word_attribute(im, node, "nearest_mode", old ? "floor" : "round_prefer_floor");
    const bool half = strcmp(where, "half_pixel") == 0 || strcmp(where, "pytorch_half_pixel") == 0,
               corner = strcmp(where, "asymmetric") == 0;
    if (strcmp(mode, "nearest") == 0 &&
        ((half && strncmp(round, "round_prefer_", 13) == 0) || (corner && strcmp(round, "floor") == 0)))
        return "";
    if (strcmp(mode, "linear") == 0 && half)
        return ", mode = \"bilinear\"";
    refuse(im, "it resizes by mode \"%s\", coordinates \"%s\", rounding \"%s\", which mtc does not know",
           shown(im, mode), shown(im, where), shown(im, round));
}

void resize_rule(Importer *im, Node *node) {
    Value *x = node->input[0];
    Window w = {0};
    const bool old = strcmp(node->operator->name, "Upsample") == 0 || im->version < 11;
    const Extents image = read_image(im, &x->shape, &w);
    int64_t factor[MOST_RANK], whole = 1;
    only_int(im, node, "antialias", 0);
    for (int i = 0; i < x->shape.all.rank; i++)
        whole *= factor[i] = factor_of(im, node, i, old ? 1 : 2, old ? -1 : 3);
    if (whole == 1) {
        give_view(im, node, x, &x->shape);
        return;
    }
    if (w.axes != 2 || factor[0] != 1 || factor[1] != 1)
        refuse(im, "it resizes other axes of %s than those of an image", shape_text(im, &x->shape));
    for (int i = 0; i < 2; i++)
        w.out[i] = w.size[i] * factor[2 + i];
    const Shape shape = image_shape(&x->shape, image.size[0], &w);
    extents_count(im, &shape.all);
    Expression e = text_expression(im, ATOM, "upsample(%s, %s%s)", operand_as(im, x, &image, OR),
                                   sizes(im, &w, factor + 2), mode_of(im, node));
    e.extents = (Extents){.rank = 3, .size = {image.size[0], w.out[0], w.out[1]}};
    give_as(im, node, 0, REAL, &shape, e);
}
