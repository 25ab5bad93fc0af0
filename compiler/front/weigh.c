/* Weights of examples: `example_weight = w` in the train block. With u = w / batch for the examples of a batch, and 0 for its filler,
 *
 *     a mean over the batch is  sum(u l) / sum(u),  and 0 where that sum is 0.
 *
 * Both sums are reported, so that means over several batches are exact, too; of a batch in parts, gradients are those of each part's
 * mean times its sum(u), added up, and divided by the sum of the sums (pass/update.c). */
#include "front/lower.h"
#include "op/compose.h"

#include <float.h>

/* The field whose numbers are the weights, as they stand in the data; NULL: they are computed. */
static Field *weighing_field(const Module *module, const Node *weight) {
    while (weight->op->cls == OP_VIEW)
        weight = weight->in[0];
    Field *field = weight->op->table == TABLE_FIELD ? &module->fields.at[weight->attr.index] : NULL;
    return field && type_extent(&field->type, 1, field->type.rank) == 1 ? field : NULL;
}

static bool is_weight(Lowering *l, const Value *v, Span at) {
    const Type *type = v->kind == VALUE_TENSOR ? &v->node->type : NULL;
    if (v->kind == VALUE_ERROR)
        return false;
    if (type && type->batched && type_extent(type, 1, type->rank) == 1)
        return true;
    diag_error(l->diag, at, "example_weight is one number for each example, such as a field w : f32, not %s",
               value_kind_text(l->arena, v));
    return false;
}

/* f32[batch], none below 0: those of a field are refused where they are read. A constant for the gradient, whatever it is made of:
 * weights that learn would learn to be 0. */
static Node *weight_of(Lowering *l, Node *given) {
    Graph *g = l->g;
    Field *field = weighing_field(l->module, given);
    Node *weight = graph_reshape(g, graph_cast(g, given, DT_F32),
                                 &(Type){.dtype = DT_F32, .rank = 1, .dim = {l->module->batch}, .batched = true});
    if (field)
        field->weighs = true;
    return field ? weight : op1(g, "stop_gradient", masked(g, compare(g, "gt", weight, 0), weight));
}

static void sum_weights(Lowering *l) {
    Graph *g = l->g;
    const Module *m = l->module;
    const double batch = (double)(m->shards ? m->whole_batch : m->batch);
    Node *share = op0(g, "share", (Attr){.rank = 1, .batched = true, .dims = {m->batch}});
    l->weight_part =
        graph_name(masked(g, compare(g, "gt", share, 0), scale(g, l->weight, 1 / batch)), "example_weight_part");
    l->weight_sum = graph_reduce(g, "sum", l->weight_part, 1);
}

void lower_example_weight(Frame *frame, const Block *train) {
    Lowering *l = frame->l;
    const Stmt *s = block_find(train, "example_weight");
    l->weight = l->weight_part = l->weight_sum = NULL;
    if (!s)
        return;
    Value v = eval_setting(frame, s->value);
    if (!is_weight(l, &v, s->value->span))
        return;
    Span before = graph_at(l->g, s->span);
    l->weight = weight_of(l, v.node);
    sum_weights(l);
    graph_at(l->g, before);
    l->module->weight.name = "example_weight";
    l->module->weight.src = s->span;
}

Node *weighted_sum(Lowering *l, Node *per_example) {
    Graph *g = l->g;
    if (!per_example->type.batched)
        per_example = graph_of_each_example(g, per_example);
    Node *counted = masked(g, compare(g, "gt", l->weight_part, 0), per_example);
    return graph_reduce(g, "sum", mul(g, counted, l->weight_part), 1);
}

Node *weighted_mean(Lowering *l, Node *per_example) {
    Graph *g = l->g;
    Node *any = compare(g, "eq", l->weight_sum, 0);
    return divide(g, weighted_sum(l, per_example), select(g, any, graph_constant(g, 1), l->weight_sum));
}

/* A number of the data may be missing where its example does not count: 0 times the slope at NaN would be NaN. */
static Node *known(Lowering *l, Node *value) {
    Graph *g = l->g;
    Node *finite = compare(g, "le", op1(g, "abs", value), FLT_MAX);
    Node *known = masked(g, op2(g, "or", compare(g, "gt", l->weight, 0), finite), value);
    known->hint = arena_printf(l->arena, "known_%s", l->module->fields.at[value->attr.index].name);
    return known;
}

Node **lower_known(Lowering *l) {
    const int count = l->module->fields.count;
    Node **all = NEW_ARRAY(l->arena, Node *, count);
    for (int i = 0; i < count && l->weight; i++) {
        Node *value = graph_field(l->g, i);
        if (value->type.dtype == DT_F32 && value != l->weight)
            all[i] = known(l, value);
    }
    return all;
}

/* The nodes that name the fields stay the fields' own while the text is read: some functions ask for a field. */
void use_known(Lowering *l, Node *const *known, int from) {
    for (int id = from; id < l->g->nodes.count && l->weight; id++) {
        Node *n = l->g->nodes.at[id];
        for (int k = 0; k < n->inputs; k++)
            if (n->in[k]->op->table == TABLE_FIELD && known[n->in[k]->attr.index])
                n->in[k] = known[n->in[k]->attr.index];
    }
}
