/* Lists of numbers where a tensor is taken: [0.5, 2], [[1, 2], [3, 4]]. Element l, in the order of the text, is chosen by its place:
 *
 *     l < 2 ? (l < 1 ? 1 : 2) : (l < 3 ? 3 : 4)
 *
 * where neighbours that are equal are one choice. Maps of `iota` like any others: short ones stand in whoever reads them, long
 * ones get a kernel, and their gradient is nobody's. */
#include "op/list.h"
#include "op/compose.h"

enum { MOST_NUMBERS = 1024 };

typedef struct Numbers {
    Graph *g;
    Type shape;
    const Value **at; /* in the order of the text */
    int64_t count;
    bool whole;        /* none has a fraction, all fit 32 bits */
    VEC(int64_t) runs; /* where equal neighbours begin */
    Node *place;
} Numbers;

static bool fail(const Numbers *numbers, Span at, const char *message) {
    diag_error(numbers->g->module->diag, at, "%s", message);
    return false;
}

/* The shape, by the first of each level. */
static bool read_shape_of(Numbers *numbers, const Value *list) {
    Type *shape = &numbers->shape;
    for (const Value *v = list; v->kind == VALUE_LIST; v = &v->items[0]) {
        if (v->count == 0)
            return fail(numbers, v->src, "an empty list is no tensor");
        if (shape->rank == MAX_RANK - 1)
            return fail(numbers, list->src, "these lists are nested deeper than a tensor has axes");
        shape->dim[shape->rank++] = v->count;
    }
    if (type_elements(shape) <= MOST_NUMBERS)
        return true;
    return fail(numbers, list->src,
                arena_printf(numbers->g->arena,
                             "a model holds lists of up to %d numbers; larger tables are weights or data",
                             MOST_NUMBERS));
}

static bool read_number(Numbers *numbers, const Value *v, int axis) {
    Arena *arena = numbers->g->arena;
    if (v->kind == VALUE_ERROR)
        return false;
    value_fix(numbers->g->module, v);
    bool row = axis < numbers->shape.rank;
    if (v->kind == VALUE_NUMBER && !v->varies && !row) {
        numbers->whole &= v->number == floor(v->number) && v->number >= INT32_MIN && v->number <= INT32_MAX;
        numbers->at[numbers->count++] = v;
        return true;
    }
    const char *found = value_kind_text(arena, v);
    if (row)
        found = arena_printf(arena, "this is %s, and the first of its neighbours a list of %lld", found,
                             (long long)numbers->shape.dim[axis]);
    else if (v->kind == VALUE_LIST)
        found = "this is a list, and the first of its neighbours a number";
    else
        found = arena_printf(arena, "a list that stands for a tensor is made of numbers, not %s%s", found,
                             v->kind == VALUE_TENSOR ? "; stack([...]) and concat([...]) join tensors" : "");
    return fail(numbers, v->src, found);
}

static bool read_numbers(Numbers *numbers, const Value *v, int axis) {
    if (v->kind != VALUE_LIST || axis == numbers->shape.rank)
        return read_number(numbers, v, axis);
    if (v->count != numbers->shape.dim[axis])
        return fail(numbers, v->src,
                    arena_printf(numbers->g->arena, "this list has %d element%s, and the first of its neighbours %lld",
                                 v->count, v->count == 1 ? "" : "s", (long long)numbers->shape.dim[axis]));
    for (int i = 0; i < v->count; i++)
        if (!read_numbers(numbers, &v->items[i], axis + 1))
            return false;
    return true;
}

/* Where neighbours that are equal begin. */
static void find_runs(Numbers *numbers) {
    for (int64_t i = 0; i < numbers->count; i++)
        if (i == 0 || numbers->at[i]->number != numbers->at[i - 1]->number)
            VEC_PUSH(numbers->g->arena, &numbers->runs, i);
}

/* Of the runs from `from` to before `to`, the number of that in which the place is. */
static Node *choose(Numbers *numbers, int from, int to) {
    Graph *g = numbers->g;
    int64_t begin = numbers->runs.at[from];
    if (to - from == 1)
        return numbers->whole ? graph_whole(g, (int32_t)numbers->at[begin]->number) : value_node(g, numbers->at[begin]);
    int middle = from + (to - from) / 2;
    Node *first = choose(numbers, from, middle), *second = choose(numbers, middle, to);
    Node *bound = graph_whole(g, (int32_t)numbers->runs.at[middle]);
    return select(g, op2(g, "lt", numbers->place, bound), first, second);
}

Node *list_tensor(Graph *g, const Value *list) {
    Numbers numbers = {.g = g, .shape = {.dtype = DT_F32}, .whole = true};
    if (!read_shape_of(&numbers, list))
        return NULL;
    numbers.at = NEW_ARRAY(g->arena, const Value *, type_elements(&numbers.shape));
    if (!read_numbers(&numbers, list, 0))
        return NULL;
    Type flat = type_make(DT_I32, false, 1, &numbers.count);
    numbers.place = graph_iota(g, &flat, 0);
    find_runs(&numbers);
    Node *chosen = choose(&numbers, 0, numbers.runs.count);
    numbers.shape.dtype = chosen->type.dtype;
    return chosen->type.rank ? graph_reshape(g, chosen, &numbers.shape) : graph_expand(g, chosen, &numbers.shape);
}
