/* Names of weights. The text decides them:
 *
 *   h = relu(linear(x, 128))           h.weight, h.bias
 *   h = linear(relu(linear(x, 9)), 9)  h.0.weight ... h.1.weight: several layers in one statement
 *   repeat i in 0..2 { h = f(h) }      h.0.y.weight, h.1.y.weight: f has a statement y = linear(...)
 *   h = linear(x, 9, name = "fc")      fc.weight
 *
 * A name is made from its end to its front: a layer makes "weight", the statement that it stands in puts "y." before
 * it, the statement with the call of the function puts "h.0." before that. */
#include "front/lower.h"

#include <stdlib.h>

const char *scope_join(Arena *arena, const char *path, const char *name) {
    if (!*path || !*name)
        return *path ? path : name;
    return arena_printf(arena, "%s.%s", path, name);
}

void layers_prefix(Lowering *l, LayerRange range, const char *path) {
    for (int i = range.begin; i < range.end && l->naming; i++) {
        Weight *w = &l->module->weights.at[i];
        if (!w->shared)
            w->name = scope_join(l->arena, path, w->name);
    }
}

void layers_name(Frame *frame, const char *path) {
    for (int i = 0; i < frame->layers.count; i++) {
        const char *numbered = arena_printf(frame->l->arena, "%d", i);
        bool alone = frame->layers.count == 1;
        layers_prefix(frame->l, frame->layers.at[i], alone ? path : scope_join(frame->l->arena, path, numbered));
    }
    frame->layers.count = 0;
}

/* ---- the same in all graphs ---- */

static void report_parted(Lowering *l, const Weight *weight, Span at, const char *fault) {
    diag_error(l->diag, at, fault, weight->name);
    diag_note(l->diag, weight->src,
              "layers stand outside of what training() decides; layer f(x) = ... in front of it is one layer for both");
}

void layers_match(Lowering *l, LayerRange made) {
    for (int i = made.begin; i < made.end && !l->naming && l->made < 0; i++)
        if (!l->module->weights.at[i].shared && !span_same_place(l->places.at[i], l->place)) {
            report_parted(l, &l->module->weights.at[i], l->place,
                          "evaluation makes weights in another order than training: here it takes '%s'");
            return;
        }
}

void layers_complete(Lowering *l) {
    for (int i = l->weights; i < l->module->weights.count; i++)
        if (!l->module->weights.at[i].shared) {
            report_parted(l, &l->module->weights.at[i], l->module->weights.at[i].src,
                          "training makes '%s' here, and evaluation does not");
            return;
        }
}

/* ---- names differ ---- */

static int by_name(const void *a, const void *b) {
    const Weight *first = *(const Weight *const *)a, *second = *(const Weight *const *)b;
    int order = strcmp(first->name, second->name);
    return order ? order : (first > second) - (first < second);
}

static void report_duplicate(Lowering *l, const Weight *first, const Weight *second) {
    Span at = l->places.at[second - l->module->weights.at], earlier = l->places.at[first - l->module->weights.at];
    if (span_same_place(at, earlier)) {
        at = second->src;
        earlier = first->src;
    }
    diag_error(l->diag, at, "two weights are called '%s'; give this layer another name: name = \"...\"", second->name);
    diag_note(l->diag, earlier, "the first '%s' is made here", first->name);
}

/* The first weight whose name an earlier one has already; -1 when all names differ. */
static int first_duplicate(Lowering *l, const Weight **sorted, const Weight **earlier) {
    int count = l->module->weights.count, found = -1;
    for (int i = 1; i < count; i++) {
        int row = (int)(sorted[i] - l->module->weights.at);
        if (strcmp(sorted[i]->name, sorted[i - 1]->name) != 0 || (found >= 0 && row > found))
            continue;
        found = row;
        *earlier = sorted[i - 1];
    }
    return found;
}

void layers_check(Lowering *l) {
    int count = l->module->weights.count;
    const Weight **sorted = NEW_ARRAY(l->arena, const Weight *, count), *earlier = NULL;
    for (int i = 0; i < count; i++)
        sorted[i] = &l->module->weights.at[i];
    if (count)
        qsort(sorted, (size_t)count, sizeof *sorted, by_name);
    int duplicate = first_duplicate(l, sorted, &earlier);
    if (duplicate >= 0)
        report_duplicate(l, earlier, &l->module->weights.at[duplicate]);
}
