/* The arguments of a library function, as its build function asks for them. */
#include "op/call.h"

#include <math.h>
#include <stdio.h>

static Span arg_span(const Call *call, int arg) {
    Span span = arg < call->count ? call->args[arg].src : call->src;
    return span.source ? span : call->src;
}

void call_error(Call *call, int arg, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const char *message = arena_vprintf(call->module->arena, format, args);
    va_end(args);
    diag_error(call->module->diag, arg_span(call, arg), "%s", message);
}

void call_doubt(Call *call, int arg, Span cause, const char *text, const char *cure) {
    module_doubt(call->module, (Doubt){arg_span(call, arg), cause, text, cure});
}

bool call_within(Call *call, int arg, const char *what, Bounds bounds) {
    const Value *v = &call->args[arg];
    if (v->kind != VALUE_NUMBER || v->varies)
        return v->kind == VALUE_NUMBER;
    value_bind(call->module, v, call->op->name, &bounds);
    if (bounds_hold(&bounds, v->number))
        return true;
    call_error(call, arg, "%s", bounds_refusal(call->module->arena, what, &bounds, v->number));
    return false;
}

/* "expected <what>, not a tensor f32[10]", once: a fault was reported where it was made. */
static void expected(Call *call, int arg, const char *what) {
    const Value *v = &call->args[arg];
    Text found = TEXT(call->module->arena);
    if (v->kind == VALUE_ERROR)
        return;
    if (v->kind == VALUE_NUMBER && !v->varies)
        text_number(&found, v->number);
    else
        text_puts(&found, value_kind_text(call->module->arena, v));
    call_error(call, arg, "expected %s, not %s", what, text_string(&found));
}

Node *call_tensor(Call *call, int arg) {
    Node *node = value_node(call->g, &call->args[arg]);
    if (!node && call->args[arg].kind != VALUE_LIST) /* whose fault was reported */
        expected(call, arg, "a tensor");
    return node;
}

int64_t call_size(Call *call, int arg) {
    int64_t size;
    if (value_whole(call->module, &call->args[arg], 1, INT32_MAX, &size))
        return size;
    expected(call, arg, "a size, a whole number from 1 to 2147483647");
    return -1;
}

int64_t call_int(Call *call, int arg, int64_t low, int64_t high) {
    int64_t number;
    if (value_whole(call->module, &call->args[arg], low, high, &number))
        return number;
    expected(call, arg,
             arena_printf(call->module->arena, "a whole number from %lld to %lld", (long long)low, (long long)high));
    return low - 1;
}

double call_number(Call *call, int arg) {
    value_fix(call->module, &call->args[arg]);
    if (call->args[arg].kind == VALUE_NUMBER && !call->args[arg].varies)
        return call->args[arg].number;
    expected(call, arg, "a number");
    return NAN;
}

Node *call_scalar(Call *call, int arg) {
    if (call->args[arg].kind == VALUE_NUMBER)
        return value_node(call->g, &call->args[arg]);
    expected(call, arg, "a number");
    return NULL;
}

bool call_bool(Call *call, int arg) {
    value_fix(call->module, &call->args[arg]);
    if (call->args[arg].kind != VALUE_BOOL || call->args[arg].varies)
        expected(call, arg, "true or false");
    return call->args[arg].kind == VALUE_BOOL && call->args[arg].number != 0;
}

Call call_items(const Call *call, int arg) {
    const Value *list = &call->args[arg];
    Call items = *call;
    items.args = (Value *)list->items;
    items.count = list->kind == VALUE_LIST ? list->count : 0;
    return items;
}

/* ---- what the signature says ---- */

int call_word(const Call *call, int arg, int fallback) {
    const Parameter *p = &call->signature->at[arg];
    const Value *v = &call->args[arg];
    int i = 0;
    while (v->kind == VALUE_STRING && i < p->word_count && strcmp(p->words[i], v->string) != 0)
        i++;
    return v->kind == VALUE_STRING && i < p->word_count ? i : fallback;
}

static bool is_word(Call *call, int arg) {
    const Parameter *p = &call->signature->at[arg];
    const Value *v = &call->args[arg];
    if (v->kind == VALUE_NONE || call_word(call, arg, -1) >= 0)
        return true;
    Text all = TEXT(call->module->arena);
    for (int i = 0; i < p->word_count; i++)
        text_printf(&all, "%s\"%s\"", i == 0 ? "" : i + 1 < p->word_count ? ", " : " or ", p->words[i]);
    const char *near = v->kind == VALUE_STRING ? nearest_name(v->string, p->words, p->word_count) : NULL;
    if (v->kind == VALUE_STRING)
        call_error(call, arg, "expected %s, not \"%s\"%s", text_string(&all), v->string,
                   near ? arena_printf(call->module->arena, "; did you mean \"%s\"?", near) : "");
    else
        expected(call, arg, text_string(&all));
    return false;
}

Interval call_interval(const Call *call, int arg, Interval fallback) {
    const Call items = call_items(call, arg);
    return items.count == 2 ? (Interval){items.args[0].number, items.args[1].number} : fallback;
}

static bool is_interval(Call *call, int arg, const char *what) {
    const Parameter *p = &call->signature->at[arg];
    Call items = call_items(call, arg);
    if (call->args[arg].kind == VALUE_NONE)
        return true;
    if (items.count != 2) {
        call_error(call, arg, "%s is two numbers, [least, most]", what);
        return false;
    }
    for (int k = 0; k < items.count; k++)
        if (isnan(call_number(&items, k)) || !call_within(&items, k, what, p->bounds))
            return false;
    const Interval ends = call_interval(call, arg, (Interval){0});
    if (ends.low <= ends.high)
        return true;
    call_error(call, arg, "%s goes from the least number to the most, not from %g to %g", what, ends.low, ends.high);
    return false;
}

bool call_fits(Call *call, int arg) {
    const Parameter *p = &call->signature->at[arg];
    const char *what = arena_printf(call->module->arena, "'%s' of '%s'", p->name, call->op->name);
    if (p->words)
        return is_word(call, arg);
    if (is_of_kind(p, "interval"))
        return is_interval(call, arg, what);
    return !p->bounded || call->args[arg].kind != VALUE_NUMBER || call_within(call, arg, what, p->bounds);
}

/* ---- axes ---- */

static int axis_of(Call *call, int arg, const Value *v, const Node *of) {
    int rank = of->type.rank - of->type.batched;
    int64_t axis;
    if (value_whole(call->module, v, -rank, rank - 1, &axis))
        return (int)(axis < 0 ? axis + rank : axis) + of->type.batched;
    if (v->kind == VALUE_ERROR)
        return -1;
    const char *shape = type_user_text(call->module->arena, &of->type);
    if (rank == 0)
        call_error(call, arg, "%s has no axes; reshape(x, [1]) gives a number one", shape);
    else if (rank == 1)
        call_error(call, arg, "%s has only the axis 0, or -1 counted from the end", shape);
    else
        call_error(call, arg, "an axis of %s is a whole number from 0 to %d, or from -%d to -1", shape, rank - 1, rank);
    return -1;
}

int call_axis(Call *call, int arg, const Node *of) {
    return axis_of(call, arg, &call->args[arg], of);
}

static unsigned all_user_axes(const Node *of) {
    return ((1u << of->type.rank) - 1) & ~(unsigned)of->type.batched;
}

unsigned call_axes(Call *call, int arg, const Node *of) {
    const Value *v = &call->args[arg];
    unsigned axes = 0;
    if (v->kind == VALUE_NONE)
        return all_user_axes(of);
    const Value *items = v->kind == VALUE_LIST ? v->items : v;
    int count = v->kind == VALUE_LIST ? v->count : 1;
    for (int i = 0; i < count; i++) {
        int axis = axis_of(call, arg, &items[i], of);
        if (axis < 0)
            return 0;
        axes |= 1u << axis;
    }
    if (!axes)
        call_error(call, arg, "an empty list of axes");
    return axes;
}

bool call_parts_no_batch(Call *call, int arg, const Node *of, unsigned axes) {
    if (!(of->examples & axes))
        return true;
    call_error(call, arg, "%s is not for the examples of a batch: how many there are is known when the program runs",
               call->op->name);
    return false;
}

/* ---- weights ---- */

/* The row of the weight that this graph makes next: all graphs make the same ones, in the same order. */
static int next_weight(const Call *call) {
    const Module *module = call->module;
    int index = *call->weights;
    while (index < module->weights.count && module->weights.at[index].shared)
        index++;
    return index;
}

/* Of weights of one shape. */
static bool same_file_order(const Weight *a, const Weight *b) {
    bool same = true;
    for (int k = 0; k < a->type.rank; k++)
        same &= (a->file_order ? a->file_order[k] : k) == (b->file_order ? b->file_order[k] : k);
    return same;
}

/* Which weights are frozen is known only when all have names. */
static bool same_start(const Weight *a, const Weight *b) {
    const bool measured = a->kind == WEIGHT_BUFFER, measured_too = b->kind == WEIGHT_BUFFER;
    return measured == measured_too && a->init.kind == b->init.kind && same_file_order(a, b) &&
           memcmp(&a->init.a, &b->init.a, sizeof a->init.a) == 0 &&
           memcmp(&a->init.b, &b->init.b, sizeof a->init.b) == 0;
}

static void report_unlike(const Call *call, const Weight *weight, const Weight *made) {
    Module *module = call->module;
    Type now = weight_type_in_files(weight), first = made ? weight_type_in_files(made) : now;
    const char *shape = type_user_text(module->arena, &now), *before = type_user_text(module->arena, &first);
    if (!made)
        diag_error(module->diag, call->src, "this makes a weight %s, which the first call of the layer did not make",
                   shape);
    else if (!type_same_shape(&now, &first))
        diag_error(module->diag, call->src, "this takes a weight %s, and the first call of the layer made %s", shape,
                   before);
    else
        diag_error(module->diag, call->src, "this weight %s would begin otherwise than in the first call of the layer",
                   shape);
}

/* A layer that is called again: is this the weight that its first call made here? */
static bool made_alike(Call *call, const Weight *weight, int index) {
    const Weight *made = index < call->made ? &call->module->weights.at[index] : NULL;
    bool alike = made && type_same_shape(&made->type, &weight->type) && same_start(made, weight);
    if (!alike && !call->unlike)
        report_unlike(call, weight, made);
    call->unlike |= !alike;
    *call->weights = made ? index + 1 : index;
    if (alike)
        call->module->weights.at[index].name = weight->name; /* until the layer's call ends */
    return alike;
}

/* Where training() decides a size, or how a weight begins, one call makes two weights. */
static void report_resized(const Call *call, const Weight *trained, const Weight *made) {
    const Type first = weight_type_in_files(trained), now = weight_type_in_files(made);
    Module *module = call->module;
    if (type_same_shape(&first, &now))
        diag_error(module->diag, call->src, "'%s' would begin otherwise in evaluation than in training", trained->name);
    else
        diag_error(module->diag, call->src, "'%s' is %s in training, and %s in evaluation", trained->name,
                   type_user_text(module->arena, &first), type_user_text(module->arena, &now));
    diag_note(module->diag, call->src,
              "evaluation has the weights of training: training() decides what is computed "
              "with them, and nothing that they are made of");
}

/* Training makes the weights, and the other graphs take them in the same order: by the same calls. */
static bool made_in_training(Call *call, const Weight *made, int index) {
    Module *module = call->module;
    const Weight *weight = index < module->weights.count ? &module->weights.at[index] : NULL;
    const bool here = weight && span_same_place(weight->src, call->src);
    if (call->g == module->train || (here && type_same_shape(&weight->type, &made->type) && same_start(weight, made)))
        return true;
    if (call->unlike)
        return false;
    call->unlike = true;
    if (here) {
        report_resized(call, weight, made);
        return false;
    }
    if (weight)
        diag_error(module->diag, weight->src, "the next weight of training is '%s', and evaluation makes another one",
                   weight->name);
    else
        diag_error(module->diag, call->src, "evaluation makes a weight here, and training does not");
    diag_note(
        module->diag, call->src,
        "%slayers stand outside of what training() decides; layer f(x) = ... in front of it is one layer for both",
        weight ? "it is made here; " : "");
    return false;
}

static Node *make_weight(Call *call, Weight weight) {
    Module *module = call->module;
    Type type = weight_type_in_files(&weight);
    if (!type_fits(&type)) {
        diag_error(module->diag, call->src, "a weight %s is too large", type_user_text(module->arena, &type));
        return NULL;
    }
    int index = next_weight(call);
    if (call->made >= 0 ? !made_alike(call, &weight, index) : !made_in_training(call, &weight, index))
        return NULL;
    weight.src = call->src;
    weight.of = -1;
    if (index == module->weights.count)
        VEC_PUSH(module->arena, &module->weights, weight);
    *call->weights = index + 1;
    ENSURE(type_same_shape(&module->weights.at[index].type, &weight.type));
    return graph_weight(call->g, index);
}

Node *call_weight(Call *call, const char *name, const Type *type, Init init, const int *file_order) {
    return make_weight(call, (Weight){.name = name, .type = *type, .init = init, .file_order = file_order});
}

Node *call_statistic(Call *call, const char *name, const Type *type, Init init, const int *file_order) {
    Weight buffer = {.name = name, .kind = WEIGHT_BUFFER, .type = *type, .init = init, .file_order = file_order};
    return make_weight(call, buffer);
}

Node *call_buffer(Call *call, const char *name, const Type *type, Init init) {
    Module *module = call->module;
    int index = 0;
    while (index < module->weights.count &&
           (!module->weights.at[index].shared || strcmp(module->weights.at[index].name, name) != 0))
        index++;
    if (index == module->weights.count) {
        Weight buffer = {.name = name, .kind = WEIGHT_BUFFER, .type = *type, .init = init, .src = call->src, .of = -1};
        buffer.shared = true;
        VEC_PUSH(module->arena, &module->weights, buffer);
    }
    return graph_weight(call->g, index);
}
