/* Products in tf32 on tensor cores: a number that they read is rounded once, where it is made, and not by each tile that reads it
 * (cuda/tensor_panel.cuh), which is the same number.
 *
 *      h ----> matmul          h -> to_tf32 ----> matmul
 *       \                       \
 *        `---> a sum             `---> a sum                    reads h as it is
 *
 * Where products are all that reads h, only the rounded one is stored. Else both are, where storing it takes less time than the
 * tiles would need. Weights stay as they are: their rounded copies are values of the step, and lie along k, the only way in
 * which groups of warps take floats (cuda/tensor_group.cuh). */
#include "pass/tf32.h"

#include "ir/op.h"
#include "pass/precision.h"

typedef struct Rounding {
    Graph *g;
    const Machine *machine;
    double *numbers; /* by node id: that tiles of products would round */
    bool *others;    /* somebody else reads it too */
} Rounding;

/* Its elements are those of its operand and zeros, which need no rounding. */
static bool keeps_rounded(const Node *n) {
    return is_looked_through(n) && !(n->op->attrs & ATTR_VALUE && n->attr.value != 0);
}

static Node *base_of(Node *n) {
    while (keeps_rounded(n))
        n = n->in[0];
    return n;
}

static bool is_in_tf32(const Node *n) {
    return product_is_rounded(n) && n->in[0]->type.dtype == DT_F32;
}

static int64_t extent(const Type *type, int from_last) {
    return type->dim[type->rank - from_last];
}

/* Each tile of outputs reads its lines of both operands: operand 0 is read by all tiles of a row of them. */
static double numbers_read(const Node *product, int operand) {
    enum { WIDEST = 256 };
    const Type *type = &product->in[operand]->type;
    int64_t across = extent(&product->type, operand == 0 ? 1 : 2);
    return (double)type_elements(type) * (double)((across + WIDEST - 1) / WIDEST);
}

static void count_reads(Rounding *r) {
    for (int i = 0; i < r->g->nodes.count; i++) {
        const Node *n = r->g->nodes.at[i];
        const bool product = is_in_tf32(n);
        for (int k = 0; k < n->inputs && !keeps_rounded(n); k++) {
            const Node *base = base_of(n->in[k]);
            if (product)
                r->numbers[base->id] += numbers_read(n, k);
            else
                r->others[base->id] = true;
        }
    }
}

/* In memory before the step, or written there by a function of the library. */
static bool is_stored_by_others(const Node *n) {
    return n->op->cls == OP_CALL || (n->op->cls == OP_LEAF && !n->type.batched);
}

/* Seconds that the tiles would take: a number is read, rounded in three instructions, and written back. */
static double seconds_in_tiles(const Rounding *r, const Node *n) {
    const Machine *m = r->machine;
    enum { INSTRUCTIONS = 4, ISSUED = 4 * LANES };
    return r->numbers[n->id] * INSTRUCTIONS / ISSUED / (m->multiprocessors * m->clock);
}

static double seconds_beside(const Rounding *r, const Node *n) {
    return (is_stored_by_others(n) ? 2 : 1) * (double)type_bytes(&n->type) / r->machine->bandwidth;
}

static bool pays(const Rounding *r, const Node *n) {
    bool alone = !r->others[n->id] && !is_stored_by_others(n);
    bool field = n->op->cls == OP_LEAF && n->type.batched;
    return n->type.dtype == DT_F32 && (alone || field || seconds_beside(r, n) < seconds_in_tiles(r, n));
}

static Node *rounded(Rounding *r, Node *n) {
    bool alone = !r->others[n->id] && n->op->cls != OP_LEAF;
    graph_at(r->g, n->src);
    Node *copy = op1(r->g, "to_tf32", n);
    const char *name = alone || !n->name ? n->name : arena_printf(r->g->arena, "%s.tf32", n->name);
    if (alone)
        n->name = NULL; /* what is stored has it */
    return graph_name(copy, name);
}

/* The same views of the rounded value. */
static Node *rounded_below(Rounding *r, Node *operand) {
    bool view = keeps_rounded(operand);
    return view ? same_view(r->g, operand, rounded_below(r, operand->in[0])) : rounded(r, operand);
}

static Node *turned(Graph *g, Node *matrix) {
    int order[MAX_RANK], rank = matrix->type.rank;
    for (int axis = 0; axis < rank; axis++)
        order[axis] = axis;
    order[rank - 2] = rank - 1;
    order[rank - 1] = rank - 2;
    return graph_transpose(g, matrix, order);
}

/* The copy of a weight lies along k; of one that is repeated for each example, where it lies. */
static void round_operand(Rounding *r, Node *product, int k) {
    Node *operand = product->in[k], *base = base_of(operand);
    bool *turns = k == 0 ? &product->attr.ta : &product->attr.tb, along_k = *turns == (k == 1);
    if (!pays(r, base))
        return;
    bool weight = base->op->cls == OP_LEAF && !base->type.batched && !operand->type.batched;
    if (along_k || !r->machine->warp_groups || !weight) {
        product->in[k] = rounded_below(r, operand);
        return;
    }
    graph_at(r->g, operand->src);
    product->in[k] = op1(r->g, "to_tf32", turned(r->g, operand));
    *turns = !*turns;
}

void round_where_made(Graph *g, const Machine *machine) {
    int count = g->nodes.count;
    Rounding r = {.g = g,
                  .machine = machine,
                  .numbers = NEW_ARRAY(g->arena, double, count),
                  .others = NEW_ARRAY(g->arena, bool, count)};
    if (g->module->precision != PRECISION_TF32 || !machine->tensor || machine->halves_only || g == g->module->measure)
        return;
    count_reads(&r);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < 2 && is_in_tf32(g->nodes.at[i]); k++)
            round_operand(&r, g->nodes.at[i], k);
    graph_compact(g);
}
