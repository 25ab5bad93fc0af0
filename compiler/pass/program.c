/* Questions about a Program, its invariants and its dumps. */
#include "pass/kernel.h"
#include "pass/tile.h"

const Kernel *program_producer(const Program *program, const Node *n) {
    return program->producer[n->id];
}

Node *program_assigned(const Program *program, const Node *stored) {
    return program->assigned[stored->id];
}

const Kernel *program_overwriter(const Program *program, const Node *leaf) {
    const Node *next = program->next[leaf->id];
    return next ? program->producer[next->id] : NULL;
}

/* Marks what comes behind kernels that are not done: the kernel itself, and what overwrites its loads. */
static void mark_waiting(const Program *program, const Kernel *kernel, const bool *done, bool *waits) {
    for (int i = 0; i < kernel->behind.count; i++)
        waits[kernel->id] |= !done[kernel->behind.at[i]->id];
    for (int i = 0; i < kernel->loads.count; i++) {
        const Kernel *producer = program_producer(program, kernel->loads.at[i]);
        const Kernel *overwriter = program_overwriter(program, kernel->loads.at[i]);
        waits[kernel->id] |= producer && producer != kernel && !done[producer->id];
        if (overwriter && overwriter != kernel)
            waits[overwriter->id] = true;
    }
}

bool program_has_order(const Program *program) {
    const int count = program->kernels.count;
    bool *done = NEW_ARRAY(program->arena, bool, count), *waits = NEW_ARRAY(program->arena, bool, count);
    for (int ready, left = count; left > 0; left -= ready) {
        ready = 0;
        memset(waits, 0, (size_t)count * sizeof *waits);
        for (int k = 0; k < count; k++)
            if (!done[k])
                mark_waiting(program, program->kernels.at[k], done, waits);
        for (int k = 0; k < count; k++) {
            ready += !done[k] && !waits[k];
            done[k] |= !waits[k];
        }
        if (!ready)
            return false;
    }
    return true;
}

bool kernel_reads(const Kernel *kernel, const Node *buffer) {
    for (int i = 0; i < kernel->loads.count; i++)
        if (kernel->loads.at[i] == buffer)
            return true;
    return false;
}

bool kernel_folds_trailing_axes(const Kernel *kernel) {
    return kernel->inner >> kernel->kept.rank && !(kernel->inner & ((1u << kernel->kept.rank) - 1));
}

bool kernel_has_vectors(const Kernel *kernel) {
    for (int s = 0; s < kernel->stages.count; s++)
        if (kernel->stages.at[s].contractions.count || kernel->stages.at[s].vectors.count)
            return true;
    return false;
}

int kernel_row_axes(const Kernel *kernel, const Type *type) {
    int64_t rows = 1;
    int axes = 0;
    while (axes < type->rank && rows < kernel->rows)
        rows *= type->dim[axes++];
    return rows == kernel->rows && axes < type->rank ? axes : -1;
}

/* n is the sum of the side, or a map of it that the kernel computes. */
static bool is_of_side(const Kernel *kernel, const Node *n) {
    bool is = n == kernel->side;
    if (n->op->cls == OP_MAP && !kernel_reads(kernel, n))
        for (int k = 0; k < n->inputs && !is; k++)
            is = is_of_side(kernel, n->in[k]);
    return is;
}

/* The shape alone does not tell: what is stored of a product of one row may be a vector too. */
bool kernel_stores_side(const Kernel *kernel, const Node *stored) {
    return kernel->side && type_same_shape(&stored->type, &kernel->side->type) && is_of_side(kernel, stored);
}

static bool comes_before(const Program *program, const Kernel *reader, const Node *buffer) {
    if (buffer->op->flags & OP_BUFFER)
        return true;
    const Kernel *producer = program_producer(program, buffer);
    return producer && producer->phase + !(producer->in_each || reader->leader == producer) <= reader->phase;
}

static void verify_kernel(const Program *program, const Kernel *kernel) {
    ENSURE(kernel->name && kernel->tiles > 0 && kernel->stores.count > 0);
    for (int i = 0; i < kernel->loads.count; i++)
        if (!comes_before(program, kernel, kernel->loads.at[i]))
            ICE("kernel %s reads %%%d before it is complete", kernel->name, kernel->loads.at[i]->id);
    for (int i = 0; i < kernel->stores.count; i++)
        if (program_producer(program, kernel->stores.at[i]) != kernel)
            ICE("%%%d is stored by two kernels", kernel->stores.at[i]->id);
}

static void verify_overwrites(const Program *program, const Kernel *kernel) {
    for (int i = 0; i < kernel->loads.count; i++) {
        const Kernel *overwriter = program_overwriter(program, kernel->loads.at[i]);
        if (overwriter && overwriter != kernel && overwriter->phase <= kernel->phase)
            ICE("kernel %s reads a leaf that %s has overwritten", kernel->name, overwriter->name);
    }
}

/* Every effect is carried out: a kernel of the program stores its value. */
static void verify_roots(const Program *program) {
    const Graph *g = program->graph;
    for (int i = 0; i < g->roots.count; i++) {
        const Node *root = g->roots.at[i], *value = root->in[root->inputs - 1];
        const Kernel *kernel = program_producer(program, value);
        bool carried = false;
        for (int r = 0; kernel && r < kernel->roots.count; r++)
            carried |= kernel->roots.at[r] == root;
        if (!carried || program->kernels.at[kernel->id] != kernel)
            ICE("no kernel carries out %%%d %s", root->id, root->op->name);
    }
}

void program_verify(const Program *program) {
    verify_roots(program);
    for (int i = 0; i < program->kernels.count; i++) {
        verify_kernel(program, program->kernels.at[i]);
        verify_overwrites(program, program->kernels.at[i]);
    }
}

/* What a kernel counts by an int, whatever it counts by 64 bits beside that. */
typedef struct Counted {
    const char *who, *what; /* "a product has", "columns" */
    int64_t count;
} Counted;

static void keep_larger(Counted *most, const char *who, const char *what, int64_t count) {
    if (count > most->count)
        *most = (Counted){who, what, count};
}

static void count_operand(Counted *most, const Kernel *kernel, const Operand *operand) {
    const Type *images = operand->kind == OPERAND_WINDOW ? &operand->view->in[0]->type : NULL;
    keep_larger(most, "the matrices have", "rows", operand->rows * (operand->batched ? kernel->batches : 1));
    if (images)
        keep_larger(most, "an image has", "numbers", type_extent(images, 1, images->rank));
}

static Counted most_counted(const Program *program, const Kernel *kernel) {
    Counted most = {"it takes", "blocks", program->machine->blocks ? kernel->tiles : 0};
    if (kernel->cls == KERNEL_CONTRACT) {
        keep_larger(&most, "the products have", "rows", kernel->batches * kernel->m);
        keep_larger(&most, "a product has", "columns", kernel->n);
        keep_larger(&most, "a sum has", "terms", kernel->k);
        count_operand(&most, kernel, &kernel->a);
        count_operand(&most, kernel, &kernel->b);
    }
    for (int k = 0; kernel->cls == KERNEL_CALL && k < kernel->call->inputs; k++)
        if (kernel->call->in[k]->type.dtype == DT_I32)
            keep_larger(&most, "there are", "indices", type_elements(&kernel->call->in[k]->type));
    return most;
}

static void report_large(const Program *program, const Node *n, const Counted *most) {
    const Module *module = program->graph->module;
    const char *batch = arena_printf(module->arena, "in a batch of %lld, ", (long long)module->batch);
    bool batched = n->type.batched && module->batch > 1;
    diag_error(module->diag, n->src, "%s%s %lld %s, more than %d: make %s smaller", batched ? batch : "", most->who,
               (long long)most->count, most->what, MOST_COUNTED, batched ? "the batch" : "it");
}

/* One message: others would tell of the same size. */
bool program_fits(const Program *program) {
    for (int i = 0; i < program->kernels.count; i++) {
        const Kernel *kernel = program->kernels.at[i];
        Counted most = most_counted(program, kernel);
        if (most.count <= MOST_COUNTED)
            continue;
        report_large(program, kernel->nodes.at[0], &most);
        return false;
    }
    return true;
}

/* ---- dumps ---- */

static void print_node(Text *out, const char *before, const Node *n) {
    text_printf(out, "%s%%%d", before, n->id);
    if (n->name)
        text_printf(out, ":%s", n->name);
}

static void print_nodes(Text *out, const char *label, Node *const *nodes, int count) {
    if (!count)
        return;
    text_printf(out, "    %s", label);
    for (int i = 0; i < count; i++)
        print_node(out, " ", nodes[i]);
    text_putc(out, '\n');
}

static void print_operand(Text *out, const char *label, const Operand *operand) {
    static const char *const kinds[] = {[OPERAND_MATRIX] = "",
                                        [OPERAND_COMPUTED] = ", computed while loading",
                                        [OPERAND_WINDOW] = ", windows",
                                        [OPERAND_FILTER] = ", filters"};
    text_printf(out, "    %s", label);
    print_node(out, " ", operand->buffer);
    text_printf(out, " [%lld, %lld]%s%s\n", (long long)operand->rows, (long long)operand->cols,
                operand->transposed ? " transposed" : "", kinds[operand->kind]);
}

static void print_product(Text *out, const Kernel *kernel) {
    text_printf(out, "    product %lld x [%lld, %lld, %lld]\n", (long long)kernel->batches, (long long)kernel->m,
                (long long)kernel->n, (long long)kernel->k);
    print_operand(out, "a", &kernel->a);
    print_operand(out, "b", &kernel->b);
    if (kernel->side) {
        print_node(out, "    rides along ", kernel->side);
        text_printf(out, " = sum over k of %s\n", kernel->side_of_b ? "b" : "a");
    }
    if (kernel->folds.count)
        print_nodes(out, arena_printf(out->arena, "adds up each %lld rows:", (long long)kernel->fold_rows),
                    kernel->folds.at, kernel->folds.count);
}

static void print_call(Text *out, const Kernel *kernel) {
    text_printf(out, "    %s of", kernel->call->op->name);
    for (int k = 0; k < kernel->call->inputs; k++)
        print_node(out, " ", kernel->operands[k]);
    text_putc(out, '\n');
}

static void print_stage(Text *out, Arena *arena, int number, const Stage *stage) {
    text_printf(out, "    stage %d over %s, inner axes", number, type_graph_text(arena, &stage->domain));
    for (int axis = 0; axis < stage->domain.rank; axis++)
        if (stage->inner >> axis & 1)
            text_printf(out, " %d", axis);
    text_puts(out, stage->inner ? "\n" : " none\n");
    print_nodes(out, "  products", stage->contractions.at, stage->contractions.count);
    print_nodes(out, "  folds", stage->reduces.at, stage->reduces.count);
    print_nodes(out, "  keeps", stage->vectors.at, stage->vectors.count);
    print_nodes(out, "  stores", stage->stores.at, stage->stores.count);
}

static void print_kernel(Text *out, const Program *program, const Kernel *kernel) {
    static const char *const classes[] = {
        [KERNEL_CONTRACT] = "contract", [KERNEL_LOOP] = "loop", [KERNEL_CALL] = "call"};
    text_printf(out, "  %s %s\n", classes[kernel->cls], kernel->name);
    print_nodes(out, "computes", kernel->nodes.at, kernel->nodes.count);
    print_nodes(out, "loads", kernel->loads.at, kernel->loads.count);
    print_nodes(out, "stores", kernel->stores.at, kernel->stores.count);
    if (kernel->cls == KERNEL_CONTRACT)
        print_product(out, kernel);
    else if (kernel->cls == KERNEL_CALL)
        print_call(out, kernel);
    else
        text_printf(out, "    rows %lld\n", (long long)kernel->rows);
    for (int i = 0; i < kernel->stages.count; i++)
        print_stage(out, program->arena, i, &kernel->stages.at[i]);
}

void fused_print(const Program *program, Text *out) {
    text_printf(out, "%s: %d kernels\n", program->prefix, program->kernels.count);
    for (int i = 0; i < program->kernels.count; i++)
        print_kernel(out, program, program->kernels.at[i]);
}

static void print_tile(Text *out, const Kernel *kernel) {
    const Tile *tile = &kernel->tile;
    text_printf(out, "tile %dx%dx%d, ", tile->m, tile->n, tile->k);
    if (tile->few)
        text_printf(out, "%s, 16 columns a warp, %d slices of k", math_info[kernel->math].name, tile->slices);
    else if (tile->taps)
        text_printf(out, "%s, all taps of %d channels", math_info[kernel->math].name, TAP_CHANNELS);
    else if (tile->warps_m)
        text_printf(out, "%s, %dx%d warps, %d panels%s", math_info[kernel->math].name, tile->warps_m, tile->warps_n,
                    tile->stages, tile->splits > 1 ? ", k in parts" : "");
    else
        text_printf(out, "%dx%d a thread, %d slices of k", tile->tm, tile->tn, tile->slices);
}

static void print_cut(Text *out, const Kernel *kernel) {
    static const char *const teams[] = {
        [TEAM_THREAD] = "a thread", [TEAM_WARP] = "a warp", [TEAM_BLOCK] = "a block", [TEAM_COLUMN] = "8 threads"};
    if (kernel->cls == KERNEL_CONTRACT)
        print_tile(out, kernel);
    else if (kernel->cls == KERNEL_CALL)
        text_puts(out, kernel->call->op->name);
    else if (kernel->team == TEAM_LANES && kernel->depth != LANES / 2)
        text_printf(out, "%lld rows, %d thread%s each", (long long)kernel->rows, kernel->depth,
                    kernel->depth == 1 ? "" : "s");
    else
        text_printf(out, "%lld rows, %s %s", (long long)kernel->rows,
                    kernel->team == TEAM_LANES ? "half a warp" : teams[kernel->team],
                    kernel->at_once > 1 ? arena_printf(out->arena, "for %d", kernel->at_once) : "each");
    if (kernel->leader)
        text_printf(out, ", behind %s", kernel->leader->name);
}

/* The phases from behind bucket b's to that of the next one. */
static const char *phases_behind(const Program *program, int b) {
    const int first = program->buckets.at[b].phase + 2,
              last = b + 1 < program->buckets.count ? program->buckets.at[b + 1].phase + 1 : program->phases.count;
    return first > last    ? "behind the last"
           : first == last ? arena_printf(program->arena, "beside phase %d", first)
                           : arena_printf(program->arena, "beside phases %d to %d", first, last);
}

static void print_bucket(Text *out, const Program *program, int phase) {
    for (int b = 0; b < program->buckets.count; b++)
        if (program->buckets.at[b].phase == phase && program->buckets.at[b].bytes)
            text_printf(out, "  bucket %d: %lld bytes of sums are sent %s, and come back %s\n", b + 1,
                        (long long)program->buckets.at[b].bytes, phases_behind(program, b),
                        phases_behind(program, b + 1));
}

void schedule_print(const Program *program, Text *out) {
    static const char *const names[] = {[SCHEDULE_GRAPH] = "graph", [SCHEDULE_PERSISTENT] = "persistent"};
    text_printf(out, "%s: %d phases, %s\n", program->prefix, program->phases.count, names[program->schedule]);
    static const char *const forms[] = {
        [FORM_GRID] = "", [FORM_CLUSTER] = ", a cluster", [FORM_SOLO] = ", the arena in shared memory"};
    const Machine *machine = program->machine;
    if (machine->number)
        text_printf(out, "  planned for: %s (sm_%d)\n", machine->name, machine->number);
    text_printf(out, "  estimated: graph %.2f us, persistent %.2f us on %lld blocks%s\n",
                program->estimate[SCHEDULE_GRAPH] * 1e6, program->estimate[SCHEDULE_PERSISTENT] * 1e6,
                (long long)program->grid, forms[program->machine->form]);
    for (int p = 0; p < program->phases.count; p++) {
        const Phase *phase = &program->phases.at[p];
        text_printf(out, "  phase %d: %lld tiles\n", p + 1, (long long)phase->tiles);
        for (int i = 0; i < phase->kernels.count; i++) {
            const Kernel *kernel = phase->kernels.at[i];
            text_printf(out, "    %-24s %5lld tiles  %10.0f FLOP  %10.0f bytes  %8.2f us  ", kernel->name,
                        (long long)kernel->tiles, kernel->flops, kernel->bytes, kernel_seconds(kernel, machine) * 1e6);
            print_cut(out, kernel);
            text_putc(out, '\n');
        }
        print_bucket(out, program, p);
    }
}
