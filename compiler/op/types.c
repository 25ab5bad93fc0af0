/* Types of results that several families share. */
#include "op/compose.h"

#include <math.h>

unsigned user_axes(const Node *n) {
    unsigned all = (1u << n->type.rank) - 1;
    return n->type.batched ? all & ~1u : all;
}

int last_axis(const Node *n) {
    return n->type.rank - 1;
}

bool infer_shape_attr(UNUSED Graph *g, Node *n) {
    n->type = type_make(DT_F32, n->attr.batched, n->attr.rank, n->attr.dims);
    return true;
}

bool infer_as_input(UNUSED Graph *g, Node *n) {
    n->type = n->in[0]->type;
    return true;
}

bool infer_real(UNUSED Graph *g, Node *n) {
    n->type = n->in[0]->type;
    for (int k = 0; k < n->inputs; k++)
        if (n->in[k]->type.dtype != DT_F32)
            return false;
    return true;
}

bool infer_number(UNUSED Graph *g, Node *n) {
    n->type = n->in[0]->type;
    return n->inputs == 1 || n->in[1]->type.dtype == n->type.dtype;
}

DType contracted_dtype(DType operands) {
    return operands == DT_I8 ? DT_I32 : DT_F32;
}

Range range_as_input(UNUSED const Graph *g, const Node *n) {
    return n->in[0]->range;
}

bool is_condition(Graph *g, const Node *n, const Node *in) {
    if (in->type.dtype == DT_BOOL)
        return true;
    diag_error(g->module->diag, n->src, "%s: expected a condition such as a comparison, found %s", n->op->name,
               type_user_text(g->arena, &in->type));
    return false;
}

const char *call_extents(Arena *arena, char of, const Type *type, int first, int end) {
    Text text = TEXT(arena);
    if (!int_holds(type_extent(type, first, end)))
        text_puts(&text, "(int64_t)");
    for (int axis = first; axis < end; axis++)
        text_printf(&text, "%s$%c%d", axis > first ? " * " : "", of, axis);
    return first < end ? text_string(&text) : "1";
}
