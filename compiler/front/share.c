/* Layers whose weights are shared: `layer f(x) = linear(x, 8)` is a function that makes its weights when it is called first, named
 * as if f were assigned; later calls take the same rows of module->weights, in the same order. */
#include "front/lower.h"

void run_layer(Frame *frame, Stmt *s) {
    Arena *arena = frame->l->arena;
    Frame *declared = NEW(arena, Frame);
    Layer *layer = NEW(arena, Layer);
    *declared = *frame;
    declared->bindings.at = NEW_ARRAY(arena, Binding, frame->bindings.count);
    if (frame->bindings.count)
        memcpy(declared->bindings.at, frame->bindings.at, (size_t)frame->bindings.count * sizeof(Binding));
    *layer = (Layer){.by = s, .frame = declared};
    frame_bind(frame, s->name.text, (Value){.kind = VALUE_LAYER, .layer = layer}, NULL);
}

/* What its expression is evaluated in: the names above the declaration, for one call. */
static Frame inner_frame(const Layer *layer, Lowering *l) {
    const Frame *declared = layer->frame;
    Frame inner = {.l = l, .fn = layer->by->fn, .path = declared->path, .indices = declared->indices};
    for (int i = 0; i < declared->bindings.count; i++)
        VEC_PUSH(l->arena, &inner.bindings, declared->bindings.at[i]);
    return inner;
}

static Value evaluate(Frame *inner, const Layer *layer) {
    Arena *arena = inner->l->arena;
    const char *name = arena_printf(arena, "%s%s", layer->by->name.text, inner->indices);
    inner->statement = scope_join(arena, inner->path, name);
    Value value = eval_values(inner, layer->by->fn->body.at[0]->value);
    layers_name(inner, name);
    return value;
}

/* ---- the weights' names, each call's own: they must agree ---- */

static const char **names_of(const Lowering *l, LayerRange weights) {
    const char **names = NEW_ARRAY(l->arena, const char *, weights.end - weights.begin);
    for (int i = weights.begin; i < weights.end; i++)
        names[i - weights.begin] = l->module->weights.at[i].name;
    return names;
}

static void restore_names(Lowering *l, LayerRange weights, const char *const *names) {
    for (int i = weights.begin; i < weights.end; i++)
        l->module->weights.at[i].name = names[i - weights.begin];
}

static void compare_names(Lowering *l, const Layer *layer) {
    for (int i = layer->weights.begin; i < layer->weights.end && l->naming; i++) {
        const char *now = l->module->weights.at[i].name, *first = layer->names[i - layer->weights.begin];
        if (strcmp(now, first) == 0)
            continue;
        diag_error(l->diag, layer->by->fn->body.at[0]->value->span,
                   "the weight that this calls '%s' is '%s' in the first call of the layer", now, first);
        return;
    }
}

/* ---- calls ---- */

static Value evaluate_first(Frame *inner, Layer *layer, const Expr *call) {
    Lowering *l = inner->l;
    const Span place = l->place;
    layer->called = true;
    layer->first = call->span;
    layer->weights.begin = l->weights;
    if (!layer->frame->fn)
        l->place = layer->by->span;
    Value value = evaluate(inner, layer);
    l->place = place;
    layer->weights.end = l->weights;
    layer->names = names_of(l, layer->weights);
    if (layer->weights.begin == layer->weights.end && value.kind != VALUE_ERROR) {
        diag_error(l->diag, layer->by->span, "layer '%s' makes no weights; what has none is a function: fn %s",
                   layer->by->name.text, layer->by->fn->signature->text);
        return value_error();
    }
    return value;
}

static Value evaluate_again(Frame *inner, const Layer *layer) {
    Lowering *l = inner->l;
    const int weights = l->weights, made = l->made;
    const char **names = names_of(l, layer->weights);
    l->weights = layer->weights.begin;
    l->made = layer->weights.end;
    Value value = evaluate(inner, layer);
    if (value.kind != VALUE_ERROR && l->weights != layer->weights.end)
        diag_error(l->diag, layer->by->fn->body.at[0]->value->span, "this has a use for %d of the %d weights of '%s'",
                   l->weights - layer->weights.begin, layer->weights.end - layer->weights.begin, layer->by->name.text);
    else if (value.kind != VALUE_ERROR)
        compare_names(l, layer);
    restore_names(l, layer->weights, names);
    l->weights = weights;
    l->made = made;
    return value;
}

Value call_layer(Frame *frame, Expr *e) {
    Lowering *l = frame->l;
    const Binding *binding = frame_find(frame, e->name.text);
    if (!binding)
        diag_error(l->diag, e->name.span,
                   "'%s' has no weights here: the statement that declares it was not carried out", e->name.text);
    if (!binding || binding->value.kind != VALUE_LAYER || e->fn->failed)
        return value_error();
    Layer *layer = binding->value.layer;
    Frame inner = inner_frame(layer, l);
    if (!bind_arguments(frame, &inner, e))
        return value_error();
    const int errors = diag_errors(l->diag);
    const bool again = layer->called;
    Value value = again ? evaluate_again(&inner, layer) : evaluate_first(&inner, layer, e);
    e->fn->returned = e->fn->body.at[0]->value->span;
    if (diag_errors(l->diag) == errors)
        return value;
    e->fn->failed = true;
    diag_note(l->diag, e->span, "in this call of '%s'", e->name.text);
    if (again)
        diag_note(l->diag, layer->first, "the first one is here");
    return value_error();
}
