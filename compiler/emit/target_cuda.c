/* CUDA C++. A kernel is a function of a tile, which a block of 256 threads computes. */
#include "emit/row.h"

static const char *arguments(Emitter *e, const char *text, bool declared) {
    static const char *const all[][2] = {{"t", "const Tensors &"},
                                         {"batch", "const Batch &"},
                                         {"tile", "int "},
                                         {"shared", "char *"},
                                         {"gate", "Gate &"}};
    Text result = TEXT(e->arena);
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        if (has_word(text, all[k][0]))
            text_printf(&result, "%s%s%s", result.length ? ", " : "", declared ? all[k][1] : "", all[k][0]);
    return text_string(&result);
}

static const char *signature(Emitter *e, const char *name, const char *text) {
    return arena_printf(e->arena, "static __device__ void %s(%s)", name, arguments(e, text, true));
}

static const char *call(Emitter *e, const char *name, const char *text) {
    return arena_printf(e->arena, "%s(%s)", name, arguments(e, text, false));
}

/* "auto out = [&](int i, int j, float sum) { ... };", on one line if it has one statement. */
void write_lambda(Writer *out, const char *head, const Writer *lines) {
    const char *text = text_string(&lines->text);
    if (lines->lines.count == 1) {
        write_line(out, "%s { %.*s };", head, (int)strlen(text) - 1, text);
        return;
    }
    write_open(out, "%s {", head);
    write_all(out, lines);
    write_close(out, "};");
}

/* ---- launch shapes ---- */

static const char *const team_names[] = {[TEAM_THREAD] = "Thread",
                                         [TEAM_WARP] = "Warp",
                                         [TEAM_HALF] = "Half",
                                         [TEAM_BLOCK] = "Whole",
                                         [TEAM_COLUMN] = "Column"};

/* "128 tiles of 16 x 4 outputs, 4 x 4 a thread, 64 slices of k; no panels ..." */
static void write_cut(Emitter *e, const Kernel *kernel, Writer *out) {
    static const char *const ways[] = {[FEED_STAGED] = "panels in shared memory (cuda/staged.cuh)",
                                       [FEED_PIPELINED] = "panels copied ahead to shared memory (cuda/pipelined.cuh)",
                                       [FEED_THIN] = "straight from memory (cuda/thin.cuh)",
                                       [FEED_DIRECT] = "no panels in shared memory (cuda/direct.cuh)"};
    const Tile *tile = &kernel->tile;
    const char *slices = tile->slices > 1 ? arena_printf(e->arena, ", %d slices of k", tile->slices) : "";
    write_comment(out, 0,
                  arena_printf(e->arena, "%s of %d x %d outputs, %d x %d a thread%s; %s",
                               tile_text(e->arena, kernel->tiles), tile->m, tile->n, tile->tm, tile->tn, slices,
                               ways[product_feed(kernel)]));
}

/* Warps that the only tile of a product without panels keeps busy; 0: it has several tiles, or panels. */
static int busy_warps(const Kernel *kernel) {
    enum { LANES = 32 };
    if (kernel->cls != KERNEL_CONTRACT || product_feed(kernel) != FEED_THIN || kernel->tiles > 1)
        return 0;
    int outputs = (int)((kernel->m - 1) * kernel->tile.n + kernel->n);
    return (outputs * kernel->tile.slices + LANES - 1) / LANES;
}

/* Where a single block runs a phase: behind the warps of the products before it, so that they run side by side. */
static int first_warp(Emitter *e, const Kernel *kernel) {
    enum { WARPS = 8 };
    const Program *program = program_of(e, kernel);
    const Phase *phase = &program->phases.at[kernel->phase];
    int warps = 0;
    if (program->machine->form != FORM_SOLO || !busy_warps(kernel))
        return 0;
    for (int k = 0; k < phase->kernels.count && phase->kernels.at[k] != kernel; k++)
        warps += busy_warps(phase->kernels.at[k]);
    return warps % WARPS;
}

static void declare_product(Emitter *e, const Kernel *kernel, const char *name, Writer *out) {
    Shape shape = sizes_shape(e->sizes, kernel->contraction);
    int rank = shape.type.rank;
    const Tile *tile = &kernel->tile;
    write_cut(e, kernel, out);
    write_line(out, "using %s_product = Product<%s, %s, %s>;", name, shape.symbol[rank - 2], shape.symbol[rank - 1],
               product_depth(e, kernel->contraction));
    int warp = first_warp(e, kernel);
    const char *begins = warp ? arena_printf(e->arena, ", %d", warp) : "",
               *why = warp ? " // the last: its first warp" : "";
    write_line(out, "using %s_tile = Tile<%d, %d, %d, %d, %d%s>;%s", name, tile->m, tile->n, tile->k, tile->tm,
               tile->tn, begins, why);
    const char *tiles = kernel->batches > 1 ? "each" : "tiles";
    write_line(out, "constexpr int %s_%s = product_tiles<%s_product, %s_tile>();", name, tiles, name, name);
    if (kernel->batches > 1)
        write_line(out, "constexpr int %s_tiles = %s * %s_each;", name, shape_product(e->arena, &shape, 0, rank - 2),
                   name);
    if (product_feed(kernel) != FEED_THIN)
        write_line(out, "constexpr int %s_shared_bytes = product_shared<%s_product, %s_tile>();", name, name, name);
}

/* NULL: none. */
static const char *vector_floats(Emitter *e, const Kernel *kernel) {
    Text sum = TEXT(e->arena);
    for (int s = 0; s < kernel->stages.count; s++)
        for (int k = 0; k < kernel->stages.at[s].vectors.count; k++)
            text_printf(&sum, "%s%s", sum.length ? " + " : "", stage_extent(e, &kernel->stages.at[s]));
    return sum.length ? text_string(&sum) : NULL;
}

static bool keeps_vectors(const Kernel *kernel) {
    for (int s = 0; s < kernel->stages.count; s++)
        if (kernel->stages.at[s].vectors.count)
            return true;
    return false;
}

static void declare_rows(Emitter *e, const Kernel *kernel, const char *name, Writer *out) {
    const char *rows = row_count(e, kernel), *team = team_names[kernel->team];
    const char *tiles = rows;
    if (kernel->rows > 1 && kernel->team != TEAM_BLOCK)
        tiles = arena_printf(e->arena, "divide_up(%s, %s::rows)", rows, team);
    write_line(out, "constexpr int %s_tiles = %s;", name, tiles);
    const char *floats = vector_floats(e, kernel);
    if (kernel->team == TEAM_THREAD)
        return;
    if (floats)
        write_line(out, "constexpr int %s_row_floats = %s; // that a row keeps from stage to stage", name, floats);
    write_line(out, "constexpr int %s_shared_bytes = team_shared<%s>(%s);", name, team,
               floats ? arena_printf(e->arena, "%s_row_floats", name) : "0");
}

static void declare(Emitter *e, const Kernel *kernel, const char *name, Writer *out) {
    if (kernel->cls == KERNEL_CONTRACT)
        declare_product(e, kernel, name, out);
    else
        declare_rows(e, kernel, name, out);
}

/* ---- sections ---- */

static const char *execution(const Emitter *e) {
    const Program *train = e->programs[PROGRAM_TRAIN];
    static const char *const forms[] = {
        [FORM_GRID] =
            "one launch of BLOCKS blocks: each loops over the steps, in a step over the phases, and in a phase "
            "over its share of the tiles",
        [FORM_CLUSTER] =
            "one launch of a cluster of BLOCKS neighbouring blocks: each loops over the steps, in a step over "
            "the phases, and in a phase over its share of the tiles",
        [FORM_SOLO] = "one launch of a single block, which keeps the arena in its shared memory: it loops over the "
                      "steps, in a step over the phases, and in a phase over the tiles"};
    const char *persistent = arena_printf(e->arena, "All steps are %s", forms[train->machine->form]);
    const char *graph = "A step is a CUDA graph of a launch per phase, with a block for each tile";
    return arena_printf(e->arena,
                        "How it runs: a kernel is cut into tiles, and a tile is the work of one block of 256 threads: "
                        "a call of the kernel's function. Phases run one after the other; the tiles of a phase, of all "
                        "its kernels, may run at the same time, in any order. A tile may start while the phase before "
                        "is still running; gate() returns when that has ended. What that phase does not write may be "
                        "read ahead of the gate, and is. %s (cuda/schedule.cuh).",
                        train->schedule == SCHEDULE_PERSISTENT ? persistent : graph);
}

static void includes(Emitter *e, Writer *out) {
    (void)e;
    write_line(out,
               "#include \"mtc.h\" // the runtime: data, command line, checkpoints\n\n"
               "#include \"cuda/batch.cuh\"    // row: the example in a row of the batch; share: its part in a mean\n"
               "#include \"cuda/math.cuh\"     // relu, sigmoid ...\n"
               "#include \"cuda/matmul.cuh\"   // matmul<Product<M, N, K>, Tile<m, n, k, tm, tn>>(...)\n"
               "#include \"cuda/schedule.cuh\" // phases as one persistent kernel or as a CUDA graph\n"
               "#include \"cuda/team.cuh\"     // the threads of a row\n\n"
               "#include <algorithm>");
}

static void tensors(Emitter *e, Writer *out) {
    Members members = tensors_members(e, ".", "");
    write_open(out, "struct Tensors {");
    write_line(out, "static constexpr int64_t arena_bytes = %lld;", (long long)e->plan->arena_bytes);
    write_blank(out);
    write_members(e, &members, out);
    write_blank(out);
    write_open(out, "__device__ Tensors(const MtcRun &run, char *arena) {");
    for (int k = 0; k < members.count; k++)
        write_line(out, "%s = %s;", members.at[k].name, members.at[k].value);
    write_close(out, "}");
    write_close(out, "};");
}

static void write_phase(Emitter *e, const Phase *phase, const char *name, Writer *out) {
    write_open(out,
               "static __device__ void %s(const Tensors &t, const Batch &batch, int tile, char *shared, Gate &gate) {",
               name);
    int count = phase->kernels.count;
    for (int k = 0; k < count; k++) {
        const Kernel *kernel = phase->kernels.at[k];
        if (k + 1 < count)
            write_line(out, "if (tile < %s_tiles)\n    return %s;\ntile -= %s_tiles;", kernel_name(e, kernel),
                       kernel_call(e, kernel), kernel_name(e, kernel));
        else
            write_line(out, "%s;", kernel_call(e, kernel));
    }
    write_close(out, "}");
}

static bool takes_shared(const Kernel *kernel) {
    if (kernel->cls == KERNEL_CONTRACT)
        return product_feed(kernel) != FEED_THIN;
    return kernel->team != TEAM_THREAD;
}

static bool uses_shared(const Kernel *kernel) {
    bool warps = kernel->cls == KERNEL_LOOP && (kernel->team == TEAM_WARP || kernel->team == TEAM_HALF);
    return takes_shared(kernel) && !(warps && !keeps_vectors(kernel));
}

/* The kernels of the phase up to the last that uses shared memory: their tiles must not do so at the same time. */
static int sharing_kernels(const Phase *phase) {
    int count = phase->kernels.count;
    while (count > 0 && !uses_shared(phase->kernels.at[count - 1]))
        count--;
    return count;
}

/* "h_tiles + logits_tiles": of the first `count` kernels of the phase. */
static const char *tiles_of(Emitter *e, const Phase *phase, int count) {
    Text sum = TEXT(e->arena);
    for (int k = 0; k < count; k++)
        text_printf(&sum, "%s%s_tiles", k ? " + " : "", kernel_name(e, phase->kernels.at[k]));
    return count ? text_string(&sum) : "0";
}

static void write_tiles(Emitter *e, const Phase *phase, const char *name, Writer *out) {
    write_line(out, "constexpr int %s_tiles = %s;", name, tiles_of(e, phase, phase->kernels.count));
    if (sharing_kernels(phase) < phase->kernels.count)
        write_line(out, "constexpr int %s_sharing = %s; // of them use shared memory", name,
                   tiles_of(e, phase, sharing_kernels(phase)));
}

static void write_shared(Emitter *e, const Program *program, const char *name, Writer *out) {
    bool any = false;
    for (int k = 0; k < program->kernels.count; k++)
        any |= takes_shared(program->kernels.at[k]);
    write_line(out, "// bytes of shared memory: the most that any kernel takes");
    if (!any) {
        write_line(out, "constexpr int %s = 0;", name);
        return;
    }
    write_open(out, "constexpr int %s = std::max({", name);
    for (int k = 0; k < program->kernels.count; k++)
        if (takes_shared(program->kernels.at[k]))
            write_line(out, "%s_shared_bytes,", kernel_name(e, program->kernels.at[k]));
    write_close(out, "});");
}

/* "using Train = Step<...>;", below the "=" where that makes one line of the arguments. */
static void write_step_type(Emitter *e, const char *head, const char *const *arguments, int count, Writer *out) {
    Text step = TEXT(e->arena);
    for (int k = 0; k < count; k++)
        text_printf(&step, "%s%s", k ? ", " : "Step<", arguments[k]);
    text_puts(&step, ">;");
    bool fits = strlen(head) + 1 + step.length <= LONGEST_LINE;
    if (!fits && 4 + step.length <= LONGEST_LINE)
        write_line(out, "%s\n    %s", head, text_string(&step));
    else
        write_list(out, arena_printf(e->arena, "%s Step<", head), arguments, count, ">;");
}

static void phases(Emitter *e, const Program *program, Writer *out) {
    int count = program->phases.count;
    const char **parts = NEW_ARRAY(e->arena, const char *, count + 4), *prefix = program->prefix;
    const char *upper = names_upper(e->arena, prefix), *shared = arena_printf(e->arena, "%s_SHARED", upper);
    parts[0] = "Tensors";
    parts[1] = "BATCH";
    parts[2] = "REPORTS";
    parts[3] = shared;
    for (int p = 0; p < count; p++) {
        const char *name = arena_printf(e->arena, "%s_%d", program->prefix, p + 1);
        write_line(out, "// phase %d of %d: %s", p + 1, count, tile_text(e->arena, program->phases.at[p].tiles));
        write_tiles(e, &program->phases.at[p], name, out);
        write_phase(e, &program->phases.at[p], name, out);
        write_blank(out);
        bool all_share = sharing_kernels(&program->phases.at[p]) == program->phases.at[p].kernels.count;
        const char *sharing = all_share ? "" : arena_printf(e->arena, ", %s_sharing", name);
        parts[p + 4] = arena_printf(e->arena, "Phase<%s, %s_tiles%s>", name, name, sharing);
    }
    write_shared(e, program, shared, out);
    write_step_type(e, arena_printf(e->arena, "using %c%s =", *upper, prefix + 1), parts, count + 4, out);
}

static void write_parts(Emitter *e, Writer *out) {
    const Program *train = e->programs[PROGRAM_TRAIN];
    Notes notes = {0};
    for (int p = 0; p < train->phases.count; p++)
        for (int k = 0; k < train->phases.at[p].kernels.count; k++) {
            const char *name = kernel_name(e, train->phases.at[p].kernels.at[k]);
            const char *row = arena_printf(e->arena, "{%d, %s_tiles},", p, name);
            VEC_PUSH(e->arena, &notes, ((Note){row, arena_printf(e->arena, "kernel %d", notes.count)}));
        }
    write_line(out, "// of kernel_table: phase, tiles");
    write_notes(out, "static const Part parts[]", &notes);
    write_line(out, "static Repeated<Train> repeated;\n");
}

static void write_schedule(const Program *train, Writer *out) {
    static const char *const forms[] = {[FORM_GRID] = "grid", [FORM_CLUSTER] = "cluster", [FORM_SOLO] = "solo"};
    if (train->schedule != SCHEDULE_PERSISTENT) {
        write_line(out, "static Replayed<Train> schedule;\n");
        return;
    }
    write_line(out, "constexpr int BLOCKS = %lld; // of the one launch, at most: the device must hold all at a time",
               (long long)train->grid);
    write_line(out, "static Persistent<Train, Form::%s> schedule;\n", forms[train->machine->form]);
}

static void step_section(Emitter *e, Writer *out) {
    bool persistent = e->programs[PROGRAM_TRAIN]->schedule == SCHEDULE_PERSISTENT;
    write_schedule(e->programs[PROGRAM_TRAIN], out);
    write_parts(e, out);
    write_line(out,
               "static const char *train(const MtcRun *run, int64_t steps) {\n"
               "    return schedule.train(run, steps);\n"
               "}\n"
               "\n"
               "// phases 0 .. phase of one step\n"
               "static const char *train_until(const MtcRun *run, int phase) {\n"
               "    return launch_until<Train>(run, phase);\n"
               "}\n"
               "\n"
               "static const char *shuffle(const MtcRun *run, int *order, int64_t epoch, int64_t epochs) {\n"
               "    return launch_shuffle(run, order, epoch, epochs);\n"
               "}\n"
               "\n"
               "static const char *run_kernel(const MtcRun *run, int kernel, int64_t times) {\n"
               "    return repeated.run(run, parts, kernel, times);\n"
               "}\n"
               "\n"
               "static const char *prepare(const MtcRun *) {\n"
               "    return schedule.prepare(%s);\n"
               "}\n"
               "\n"
               "static void release() {\n"
               "    schedule.release();\n"
               "    repeated.release();\n"
               "}",
               persistent ? "BLOCKS" : "");
}

static void evaluation(Emitter *e, Writer *out) {
    (void)e;
    write_line(out, "\nstatic const char *evaluate(const MtcRun *run, int64_t first, int64_t rows, int64_t slot) {\n"
                    "    return launch_evaluation<Eval>(run, first, rows, slot);\n"
                    "}");
}

static void measuring(Emitter *e, Writer *out) {
    (void)e;
    write_line(out, "\nstatic const char *measure(const MtcRun *run, int64_t first, int64_t rows) {\n"
                    "    return launch_evaluation<Measure>(run, first, rows, 0);\n"
                    "}");
}

/* ---- products ---- */

/* n is the field, perhaps in another shape and as floats. */
static bool is_raw(const Node *n, const Node *field) {
    while (n != field && n->inputs == 1 && (n->op->flags & OP_CONTIGUOUS || n->in[0]->type.dtype != n->type.dtype))
        n = n->in[0];
    return n == field;
}

typedef VEC(const Node *) NodeList;

static bool is_in(const NodeList *list, const Node *n) {
    for (int i = 0; i < list->count; i++)
        if (list->at[i] == n)
            return true;
    return false;
}

/* Calls the operand's field, and the same as a float, v. */
static void know_raw(Body *body, const Node *n, const Node *field, NodeList *seen) {
    if (is_in(seen, n))
        return;
    VEC_PUSH(body->e->arena, seen, n);
    if (is_raw(n, field))
        body_know(body, n, "v");
    for (int k = 0; k < n->inputs; k++)
        know_raw(body, n->in[k], field, seen);
}

/* "[](float v) { return v / 255.0f; }" */
static const char *conversion(Body *kernel, const Operand *operand) {
    Writer lines = writer_like(kernel->out);
    Body body = body_inside(kernel, &lines, "v", NULL);
    NodeList seen = {0};
    know_raw(&body, operand->value, operand->buffer, &seen);
    Index at = {0};
    for (int axis = 0; axis < operand->value->type.rank; axis++)
        index_push(&at, 1, "0");
    const char *value = body_expression(&body, operand->value, &at);
    bool captures = strstr(value, "t.") || kernel->known.count > 0;
    if (lines.lines.count == 0)
        return arena_printf(kernel->e->arena, "[%s](float v) { return %s; }", captures ? "&" : "", value);
    const char *name = names_claim(&kernel->names, "convert");
    write_line(&lines, "return %s;", value);
    write_lambda(kernel->out, arena_printf(kernel->e->arena, "auto %s = [&](float v)", name), &lines);
    return name;
}

/* "transposed(matrix<IMAGE>(t.h_weight))" */
static const char *operand_text(Body *kernel, const Operand *operand) {
    Emitter *e = kernel->e;
    Shape shape = sizes_shape(e->sizes, operand->value);
    int rank = shape.type.rank;
    const char *columns = shape.symbol[rank - 1], *matrix;
    if (operand->computed) {
        const char *field = e->field[operand->buffer->attr.index];
        matrix = arena_printf(e->arena, "gathered<%s>(t.%s, batch, %s)", columns, field, conversion(kernel, operand));
    } else {
        const char *at = tensor_name(e, plan_buffer(e->plan, operand->buffer));
        const char *place =
            operand->batched ? arena_printf(e->arena, " + b * %s", shape_product(e->arena, &shape, rank - 2, 2)) : "";
        matrix = arena_printf(e->arena, "matrix<%s>(t.%s%s)", columns, at, place);
    }
    return operand->transposed ? arena_printf(e->arena, "transposed(%s)", matrix) : matrix;
}

static void contract(Body *kernel) {
    const Kernel *k = kernel->kernel;
    const char *name = kernel->name, *tile = "tile", *left = operand_text(kernel, &k->a),
               *right = operand_text(kernel, &k->b);
    if (k->batches > 1) {
        write_line(kernel->out, "int b = tile / %s_each;", name);
        tile = arena_printf(kernel->e->arena, "tile %% %s_each", name);
    }
    write_line(kernel->out, "auto left = %s;", left);
    write_line(kernel->out, "auto right = %s;", right);
    const char *epilogues = write_epilogues(kernel);
    write_line(kernel->out, "matmul<%s_product, %s_tile>(%s, left, right, shared, gate, %s);", name, name, tile,
               epilogues);
}

/* ---- rows ---- */

/* Who computes which row, i the calling thread's; all threads of a block go through the gate together. */
static void open_rows(const Body *row, const char *rows, Writer *out) {
    const Kernel *kernel = row->kernel;
    const char *team = team_names[kernel->team];
    if (kernel->team == TEAM_THREAD)
        write_line(out, "int i = tile * THREADS + threadIdx.x;");
    else
        write_line(out, "%s team(shared);", team);
    if (kernel->team == TEAM_BLOCK && kernel->rows > 1)
        write_line(out, "int i = tile;");
    if (kernel->team == TEAM_COLUMN || kernel->team == TEAM_HALF || (kernel->team == TEAM_WARP && kernel->rows > 1))
        write_line(out, "int i = tile * %s::rows + team.row;", team);
    if (kernel->team == TEAM_COLUMN)
        write_line(out, "bool exists = i < %s;", rows);
    if (row->before_gate)
        write_all(out, row->before_gate);
    write_line(out, "gate();");
    if (kernel->team == TEAM_WARP && kernel->rows == 1)
        write_line(out, "if (team.row < WARPS - 1)\n    return;");
    else if (kernel->team == TEAM_WARP || kernel->team == TEAM_THREAD)
        write_line(out, "if (i >= %s)\n    return;", rows);
}

static void rows(Body *row, const char *rows, const Writer *lines, Writer *out) {
    open_rows(row, rows, out);
    write_all(out, lines);
}

static void row_vectors(Body *row, const RowVector *vectors, int count) {
    if (row->kernel->team == TEAM_THREAD) {
        for (int k = 0; k < count; k++)
            write_line(row->out, "float %s[%s];", vectors[k].name, vectors[k].extent);
        return;
    }
    write_line(row->out, "float *%s = row_memory(team, shared, %s_row_floats);", vectors[0].name, row->name);
    for (int k = 1; k < count; k++)
        write_line(row->out, "float *%s = %s + %s;", vectors[k].name, vectors[k - 1].name, vectors[k - 1].extent);
}

static const char *loop(const Body *row, const char *variable, const char *extent) {
    Team team = row->kernel->team;
    const char *v = variable;
    if (team == TEAM_THREAD)
        return arena_printf(row->e->arena, "for (int %s = 0; %s < %s; %s++)", v, v, extent, v);
    const char *exists = team == TEAM_COLUMN ? "exists && " : "";
    return arena_printf(row->e->arena, "for (int %s = team.first; %s%s < %s; %s += team.stride)", v, exists, v, extent,
                        v);
}

static void fold(Body *row, const Node *reduction, const char *name) {
    if (row->kernel->team != TEAM_THREAD)
        write_line(row->out, "%s = team_%s(team, %s);", name, reduction->op->name, name);
}

static const char *once(const Body *row) {
    if (row->kernel->team == TEAM_THREAD)
        return NULL;
    return row->kernel->team == TEAM_COLUMN ? "if (exists && leads(team))" : "if (leads(team))";
}

static void sync(Body *row) {
    if (row->kernel->team != TEAM_THREAD)
        write_line(row->out, "team.sync();");
}

static bool product(Body *row, const Stage *stage, const char *extent) {
    const Node *n = stage->contractions.at[0];
    if (row->kernel->team == TEAM_THREAD || row->kernel->team == TEAM_COLUMN)
        return false;
    Arena *arena = row->e->arena;
    Writer terms = writer_like(row->out), lines = writer_like(row->out);
    Body term = body_inside(row, &terms, "j", "k"), element = body_inside(row, &lines, "j", NULL);
    Index at = stage_index(row, stage, "j");
    const char *factors = product_term(&term, n, &at);
    write_line(&terms, "return %s;", factors);
    body_know(&element, n, "sum");
    Outputs outputs = stage_outputs(&element, stage, &at);
    body_write(&element, &outputs);
    const char *term_name = names_claim(&row->names, "term"), *store_name = names_claim(&row->names, "store");
    write_lambda(row->out, arena_printf(arena, "auto %s = [&](int j, int k)", term_name), &terms);
    write_lambda(row->out, arena_printf(arena, "auto %s = [&](int j, float sum)", store_name), &lines);
    write_line(row->out, "team_product<%s, %s>(team, %s, %s);", extent, product_depth(row->e, n), term_name,
               store_name);
    return true;
}

const Target target_cuda = {
    .name = "cuda",
    .schedules = true,
    .execution = execution,
    .includes = includes,
    .tensors = tensors,
    .phases = phases,
    .step = step_section,
    .evaluation = evaluation,
    .measuring = measuring,
    .call = call,
    .member = "t.",
    .report = "batch.reports",
    .real = "float",
    .declare = declare,
    .signature = signature,
    .contract = contract,
    .rows = rows,
    .row_vectors = row_vectors,
    .loop = loop,
    .fold = fold,
    .once = once,
    .sync = sync,
    .product = product,
};

Emission *emit_cuda(const Module *module, const Plan *plan, const EmitOptions *options) {
    return emit_program(module, plan, options, &target_cuda);
}
