/* Sums of products with windows of images, each channel by itself, as those of a filter for each channel and its gradients:
 *
 *     over taps       y[n, i, j, c]  = sum over p, q    of x[n, i + p, j + q, c] w[p, q, c]
 *     over outputs    dw[p, q, c]    = sum over n, i, j of x[n, i + p, j + q, c] dy[n, i, j, c]
 *
 * or, over taps, of other terms, such as a pool's gradient: what was sent to a pixel by those of which it was the largest.
 *
 * Neighbouring outputs see much the same pixels. A thread that has a patch of them finds each once (cuda/patch.cuh), which is less
 * to load, and less to compute where a pixel is a map of what lies in memory. */
#include <math.h>

#include "pass/tile.h"

/* Axes of windows [N, OH, OW, KH, KW, C], and ranks. */
enum { WINDOW_ROWS = 1, WINDOW_COLUMNS = 2, WINDOW_CHANNELS = 5, WINDOW_RANK = 6, PIXEL_RANK = 4 };
enum { OVER_TAPS = 1 << 3 | 1 << 4, OVER_OUTPUTS = 1 << 0 | 1 << WINDOW_ROWS | 1 << WINDOW_COLUMNS };
enum {
    MOST_OUTPUTS = 8, /* of a patch: so many sums fit the registers */
    MOST_TAPS = 25    /* which are written out, each for each output */
};

/* Zeros being around the images. */
static bool is_windows(const Node *n) {
    return n->op->cls == OP_VIEW && n->op->attrs & ATTR_SWEEP && n->type.rank == WINDOW_RANK &&
           n->in[0]->type.rank == PIXEL_RANK && n->attr.value == 0;
}

const Node *window_factor(const Node *n, const Node **other) {
    for (int k = 0; n->op->flags & OP_MULTIPLIES && k < 2; k++) {
        *other = n->in[1 - k];
        if (is_windows(n->in[k]))
            return n->in[k];
    }
    return NULL;
}

bool is_repeated_along(const Node *n, unsigned axes) {
    return n->op->flags & OP_REPEATS && (n->attr.axes & axes) == axes;
}

/* No other kernel made and stored it. */
static bool is_made_by(const Kernel *kernel, const Node *n) {
    return n && !kernel_reads(kernel, n);
}

const Node *kernel_only_sum(const Kernel *kernel) {
    const Node *sum = NULL;
    for (int s = 0; s < kernel->stages.count; s++) {
        const Stage *stage = &kernel->stages.at[s];
        const bool folds = s == 0 && stage->reduces.count == 1 && !stage->stores.count;
        if (stage->contractions.count || stage->vectors.count || (stage->inner && !folds))
            return NULL;
        sum = folds ? stage->reduces.at[0] : sum;
    }
    return sum && op_adds(sum->op) ? sum : NULL;
}

/* ---- other terms ---- */

/* It is 0 where the windows see nothing but what is around the images. */
static bool vanishes(const Node *n) {
    double number;
    if (n->op->prec == PREC_COND)
        return vanishes(n->in[1]) && graph_constant_value(n->in[2], &number) && number == 0;
    return is_windows(n) || (n->op->flags & OP_WIDENS && vanishes(n->in[0]));
}

static bool adds_seen(Patch *patch, const Node *n) {
    int k = 0;
    while (k < MOST_SEEN && patch->seen[k] && patch->seen[k] != n)
        k++;
    if (k == MOST_SEEN)
        return false;
    patch->seen[k] = n;
    const Node *first = patch->seen[0];
    return memcmp(first->attr.sweep, n->attr.sweep, sizeof n->attr.sweep) == 0 &&
           type_same_shape(&first->in[0]->type, &n->in[0]->type);
}

/* n is made of what windows see, here, and of what is the same for all outputs. */
static bool is_of_taps(Patch *patch, const Kernel *kernel, const Node *n, int depth) {
    const bool here = is_made_by(kernel, n);
    if (here && is_windows(n))
        return adds_seen(patch, n);
    bool made = here && n->op->cls == OP_MAP && depth > 0;
    for (int k = 0; made && k < n->inputs; k++)
        made = is_of_taps(patch, kernel, n->in[k], depth - 1);
    return made || is_repeated_along(n, OVER_OUTPUTS);
}

static Patch find_terms(const Kernel *kernel, const Node *sum) {
    enum { DEEPEST = 4 };
    Patch patch = {.sum = sum};
    const Node *term = sum->in[0];
    if (sum->attr.axes != OVER_TAPS || term->type.rank != WINDOW_RANK || !vanishes(term) ||
        !is_of_taps(&patch, kernel, term, DEEPEST))
        return (Patch){0};
    patch.windows = patch.seen[0];
    return patch;
}

/* The patch without its sizes; without a sum if there is none. */
static Patch find_patch(const Kernel *kernel) {
    const Node *sum = kernel_only_sum(kernel), *product = sum ? sum->in[0] : NULL;
    while (is_made_by(kernel, product) && product->op->cls == OP_VIEW && product->op->flags & OP_CONTIGUOUS)
        product = product->in[0];
    Patch patch = {.sum = sum};
    patch.windows = is_made_by(kernel, product) ? window_factor(product, &patch.factor) : NULL;
    if (!patch.windows)
        return sum ? find_terms(kernel, sum) : patch;
    if (!is_made_by(kernel, patch.windows))
        return (Patch){0};
    const bool over_taps = product == sum->in[0] && sum->attr.axes == OVER_TAPS;
    const bool over_outputs =
        product != sum->in[0] && sum->attr.axes == OVER_OUTPUTS << 1 && sum->in[0]->type.rank == WINDOW_RANK + 1;
    if (over_taps && is_repeated_along(patch.factor, OVER_OUTPUTS))
        return patch;
    patch.packs = 1;
    return over_outputs && is_repeated_along(patch.factor, OVER_TAPS) ? patch : (Patch){0};
}

/* ---- sizes ---- */

/* Pixels along an axis that so many neighbouring outputs see, those between them included. */
static int64_t pixels_seen(const Sweep *s, int64_t outputs) {
    const int64_t dilation = s->dilation < 0 ? -s->dilation : s->dilation;
    return ((outputs - 1) * s->stride + (s->kernel - 1) * dilation) / s->spread + 1;
}

static bool begins_at_pixels(const Sweep *s, int64_t outputs) {
    return s->out % outputs == 0 && outputs * s->stride % s->spread == 0;
}

/* Pixels that are read for each output. */
static double reads_of(const Sweep *sweep, int64_t down, int64_t across) {
    return (double)(pixels_seen(&sweep[0], down) * pixels_seen(&sweep[1], across)) / (double)(down * across);
}

/* The patch that reads the least for each output, of those that leave enough threads. */
static void choose_size(Patch *patch, int64_t most) {
    const Sweep *sweep = patch->windows->attr.sweep;
    double least = INFINITY;
    for (int64_t down = 1; down <= MOST_OUTPUTS; down++)
        for (int64_t across = 1; down * across <= most && across <= MOST_OUTPUTS; across++) {
            const bool fits = begins_at_pixels(&sweep[0], down) && begins_at_pixels(&sweep[1], across);
            if (!fits || reads_of(sweep, down, across) >= least)
                continue;
            least = reads_of(sweep, down, across);
            patch->down = (int)down;
            patch->across = (int)across;
        }
}

/* Of packs of channels, as many as divide them, and are no more than a warp has lanes. */
static int packs_together(int64_t packs) {
    int together = LANES;
    while (packs % together)
        together--;
    return together;
}

static bool counts_by_int(const Patch *patch) {
    return type_elements(&patch->windows->in[0]->type) <= INT32_MAX &&
           type_extent(&patch->windows->type, 0, 3) * patch->windows->type.dim[WINDOW_CHANNELS] <= INT32_MAX;
}

Patch patch_of(const Kernel *kernel, const Machine *machine) {
    Patch patch = machine->blocks && machine->form == FORM_GRID ? find_patch(kernel) : (Patch){0};
    if (!patch.sum || !counts_by_int(&patch))
        return (Patch){0};
    const Sweep *sweep = patch.windows->attr.sweep;
    const int64_t channels = patch.windows->type.dim[WINDOW_CHANNELS];
    const int64_t threads =
        machine->threads / 4 * (int64_t)machine->multiprocessors; /* several loads of each are on their way */
    patch.lanes = vector_width((int)(channels % PACK_FLOATS));
    const int64_t spare = patch.packs ? MOST_OUTPUTS : kernel->rows / patch.lanes / threads;
    choose_size(&patch, spare < MOST_OUTPUTS ? spare : MOST_OUTPUTS);
    if (patch.lanes == 1 || sweep[0].kernel * sweep[1].kernel > MOST_TAPS || patch.down * patch.across < 2)
        return (Patch){0};
    if (patch.packs)
        patch.packs = packs_together(channels / patch.lanes);
    return patch;
}
