/* Between which phases a value needs memory: memory.c asks, place.c makes of it who may share bytes. */
#include "plan/liveness.h"

#include "pass/access.h"

/* ---- which values, from when to when ---- */

static bool is_report(const Node *root) {
    return root->op->table == TABLE_REPORT;
}

static bool is_output(const Node *root) {
    return root->op->table == TABLE_KEPT || root->op->table == TABLE_PRINTED || root->op->table == TABLE_LAST ||
           (root->op->table == TABLE_NONE && root->inputs == 1);
}

static bool feeds(const Graph *g, const Node *value, bool (*which)(const Node *root)) {
    for (int i = 0; i < g->roots.count; i++)
        if (which(g->roots.at[i]) && g->roots.at[i]->in[0] == value)
            return true;
    return false;
}

static int last_reader(const Program *program, const Node *value, int written) {
    int last = written;
    for (int i = 0; i < program->kernels.count; i++)
        if (program->kernels.at[i]->phase > last && kernel_reads(program->kernels.at[i], value))
            last = program->kernels.at[i]->phase;
    return last;
}

static void add_value(Arena *arena, const Program *program, const Kernel *kernel, Node *value, Liveness *live) {
    const Graph *g = program->graph;
    if (program_assigned(program, value))
        return;
    int last = last_reader(program, value, kernel->phase);
    bool output = feeds(g, value, is_output);
    if (!output && last == kernel->phase && feeds(g, value, is_report))
        return;
    if (output)
        last = program->phases.count - 1;
    live->of_node[value->id] = live->values.count;
    VEC_PUSH(arena, &live->values, ((LiveValue){value, kernel->phase, last, -1, -1}));
}

static void add_phase(Arena *arena, const Program *program, const Phase *phase, Liveness *live) {
    for (int i = 0; i < phase->kernels.count; i++) {
        const Kernel *kernel = phase->kernels.at[i];
        for (int j = 0; j < kernel->stores.count; j++)
            add_value(arena, program, kernel, kernel->stores.at[j], live);
    }
}

/* ---- in place ---- */

typedef struct InPlace {
    const Kernel *kernel;
    const Node *operand;
    Access own; /* index of the element that is being written */
    int axes;   /* so many of its first must be those of what is read */
} InPlace;

static bool is_own(const InPlace *check, const Access *at, const Node *read) {
    return access_equal(at, &check->own, check->axes < read->type.rank ? check->axes : read->type.rank);
}

static bool is_fold(const Kernel *kernel, const Node *n) {
    return kernel->cls == KERNEL_LOOP && n->op->cls == OP_REDUCE && !kernel_reads(kernel, n);
}

/* A product's operands and a row's folds are checked apart. */
static Walk visit_read(void *context, Node *n, const Access *at) {
    const InPlace *check = context;
    if (n == check->operand)
        return is_own(check, at, n) ? WALK_STOP : WALK_FAIL;
    bool apart = n == check->kernel->contraction || is_fold(check->kernel, n);
    return apart || kernel_reads(check->kernel, n) ? WALK_STOP : WALK_DEEPER;
}

/* The threads of a row have read all that the folds of a stage need when the next stage begins: the last one, if it folds
 * nothing itself, may write over it. */
static bool writes_last(const Kernel *kernel, const Node *value) {
    const Stage *last = &kernel->stages.at[kernel->stages.count - 1];
    bool stored = false;
    for (int i = 0; i < last->stores.count; i++)
        stored |= last->stores.at[i] == value;
    for (int s = 0; s + 1 < kernel->stages.count; s++) {
        const Stage *stage = &kernel->stages.at[s];
        if (stage->contractions.count || (stage->inner && !stage->reduces.count))
            return false;
    }
    return stored && !last->reduces.count && !last->contractions.count &&
           (kernel->stages.count == 1 || kernel_folds_trailing_axes(kernel));
}

/* Each element is written by one thread, from values at its own index, a product, or folds of its row. */
static bool may_write_in_place(const Kernel *kernel, const Node *value) {
    return kernel->cls == KERNEL_CONTRACT || (kernel->cls == KERNEL_LOOP && writes_last(kernel, value));
}

static bool product_reads(const Kernel *kernel, const Node *operand) {
    return kernel->cls == KERNEL_CONTRACT && (kernel->a.buffer == operand || kernel->b.buffer == operand);
}

/* Only the stored value itself, and only at its own index: another value might be stored before it is read. */
static bool reads_at_own_index(Arena *arena, const Kernel *kernel, const Node *value, const Node *operand) {
    static const Access nowhere = {{NULL}}; /* equals no index */
    const Access own = access_own(arena, operand->type.rank);
    for (int i = 0; i < kernel->stores.count; i++) {
        Node *stored = kernel->stores.at[i];
        Access at = access_own(arena, stored->type.rank);
        InPlace check = {kernel, operand, stored == value ? own : nowhere, MAX_RANK};
        if (!access_walk(arena, stored, &at, visit_read, &check))
            return false;
    }
    return true;
}

/* Folds read the row that is being written, and no other. */
static bool folds_own_row(Arena *arena, const Kernel *kernel, const Node *operand) {
    const Access own = access_own(arena, operand->type.rank);
    for (int i = 0; i < kernel->nodes.count; i++) {
        Node *fold = kernel->nodes.at[i];
        InPlace check = {kernel, operand, own, kernel->kept.rank};
        Access row = access_own(arena, fold->type.rank);
        if (is_fold(kernel, fold) && !access_walk(arena, fold, &row, visit_read, &check))
            return false;
    }
    return true;
}

static bool read_by_another(const Phase *phase, const Kernel *kernel, const Node *operand) {
    for (int i = 0; i < phase->kernels.count; i++)
        if (phase->kernels.at[i] != kernel && kernel_reads(phase->kernels.at[i], operand))
            return true;
    return false;
}

static int element_bytes(const Node *n, int real_bytes) {
    return n->type.dtype == DT_F32 ? real_bytes : dtype_info[n->type.dtype].bytes;
}

static bool may_overwrite(Arena *arena, const Program *program, const Kernel *kernel, const Node *value,
                          const LiveValue *operand, int real_bytes) {
    const Node *from = operand->node;
    return operand->last == kernel->phase && operand->first < kernel->phase &&
           type_same_shape(&from->type, &value->type) &&
           element_bytes(from, real_bytes) == element_bytes(value, real_bytes) && !product_reads(kernel, from) &&
           !read_by_another(&program->phases.at[kernel->phase], kernel, from) &&
           reads_at_own_index(arena, kernel, value, from) && folds_own_row(arena, kernel, from);
}

/* Of the operands that die with the value's kernel, the one that was written first. */
static void find_in_place(Arena *arena, const Program *program, Liveness *live, int real_bytes) {
    bool *taken = NEW_ARRAY(arena, bool, live->values.count);
    for (int i = 0; i < live->values.count; i++) {
        LiveValue *value = &live->values.at[i];
        const Kernel *kernel = program_producer(program, value->node);
        for (int k = 0; k < kernel->loads.count && may_write_in_place(kernel, value->node); k++) {
            int j = live->of_node[kernel->loads.at[k]->id];
            bool better = j >= 0 && !taken[j] && (value->over < 0 || j < value->over);
            if (better && may_overwrite(arena, program, kernel, value->node, &live->values.at[j], real_bytes))
                value->over = j;
        }
        if (value->over >= 0)
            taken[value->over] = true;
    }
}

bool is_kept(const Node *n) {
    return n->op->flags & OP_BUFFER && n->op->table == TABLE_NONE;
}

/* In bytes that nothing else of the program has. */
static void add_kept(Arena *arena, const Program *program, Liveness *live) {
    for (int i = 0; i < program->graph->nodes.count; i++) {
        Node *n = program->graph->nodes.at[i];
        if (!is_kept(n))
            continue;
        live->of_node[n->id] = live->values.count;
        VEC_PUSH(arena, &live->values, ((LiveValue){n, 0, program->phases.count - 1, -1, -1}));
    }
}

Liveness liveness(Arena *arena, const Program *program, int real_bytes) {
    Liveness live = {.of_node = NEW_ARRAY(arena, int, program->graph->nodes.count)};
    memset(live.of_node, -1, (size_t)program->graph->nodes.count * sizeof *live.of_node);
    for (int i = 0; i < program->phases.count; i++)
        add_phase(arena, program, &program->phases.at[i], &live);
    find_in_place(arena, program, &live, real_bytes);
    add_kept(arena, program, &live);
    return live;
}
