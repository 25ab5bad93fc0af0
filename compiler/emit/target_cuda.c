/* CUDA C++. A kernel is a function of a tile, which a block of 256 threads computes. */
#include "emit/row.h"
#include "pass/tile.h"

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

static const char *team_name(Emitter *e, const Kernel *kernel) {
    static const char *const names[] = {
        [TEAM_THREAD] = "Thread", [TEAM_WARP] = "Warp", [TEAM_HALF] = "Half", [TEAM_BLOCK] = "Whole"};
    if (kernel->team == TEAM_COLUMN)
        return arena_printf(e->arena, "Column<%d, %d>", kernel->lanes, kernel->depth);
    return names[kernel->team];
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
    const char *rows = row_count(e, kernel), *team = team_name(e, kernel);
    const char *tiles = rows;
    bool packs = kernel->team == TEAM_THREAD && kernel->lanes > 1;
    if (kernel->rows > 1 && kernel->team != TEAM_BLOCK)
        tiles = arena_printf(e->arena, "divide_up(%s, %s%s::rows)", rows,
                             packs ? arena_printf(e->arena, "%d * ", kernel->lanes) : "", team);
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
    const char *graph = "A step is a CUDA graph of a launch or more per phase, with a block for each tile";
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
               "#include \"cuda/pack.cuh\"     // neighbouring numbers that a thread moves at once\n"
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

/* Bytes of shared memory: what the kernel takes that takes most. */
static void write_shared(Emitter *e, const Phase *phase, const char *name, Writer *out) {
    const char **all = NEW_ARRAY(e->arena, const char *, phase->kernels.count);
    int count = 0;
    for (int k = 0; k < phase->kernels.count; k++)
        if (takes_shared(phase->kernels.at[k]))
            all[count++] = arena_printf(e->arena, "%s_shared_bytes", kernel_name(e, phase->kernels.at[k]));
    const char *head = arena_printf(e->arena, "constexpr int %s_shared_bytes =", name);
    Text list = TEXT(e->arena);
    for (int k = 0; k < count; k++)
        text_printf(&list, "%s%s", k ? ", " : "", all[k]);
    const char *most = arena_printf(e->arena, count > 1 ? "std::max({%s})" : "%s", count ? text_string(&list) : "0");
    if (strlen(most) + 5 <= LONGEST_LINE) {
        write_line(out, "%s %s;", head, most);
        return;
    }
    write_open(out, "%s std::max({", head);
    for (int k = 0; k < count; k++)
        write_line(out, "%s,", all[k]);
    write_close(out, "});");
}

static void write_needs(Emitter *e, const Phase *phase, const char *name, bool all_share, Writer *out) {
    write_line(out, "constexpr int %s_tiles = %s;", name, tiles_of(e, phase, phase->kernels.count));
    write_shared(e, phase, name, out);
    if (!all_share)
        write_line(out, "constexpr int %s_sharing = %s; // of the tiles use shared memory", name,
                   tiles_of(e, phase, sharing_kernels(phase)));
}

/* "using Train = Step<...>;", below the "=" where that takes fewer lines of the arguments. */
static void write_step_type(Emitter *e, const char *head, const char *const *arguments, int count, Writer *out) {
    Writer beside = writer_like(out), below = writer_like(out);
    write_list(&beside, arena_printf(e->arena, "%s Step<", head), arguments, count, ">;");
    write_line(&below, "%s", head);
    below.indent++;
    write_list(&below, "Step<", arguments, count, ">;");
    below.indent--;
    write_all(out, below.lines.count <= beside.lines.count ? &below : &beside);
}

/* ---- launches ---- */

/* A launch of its own costs 2 us where nothing hides it; in one with others, a kernel has the registers and the shared
 * memory of the one that needs most. */
static const double long_kernel = 5e-6;

static bool is_persistent(const Emitter *e, const Program *program) {
    return program == e->programs[PROGRAM_TRAIN] && program->schedule == SCHEDULE_PERSISTENT;
}

/* In a graph, the phase's long kernels are launches of their own, and the others one more; in a persistent kernel there is
 * only one. */
static int launches_of(Emitter *e, const Program *program, const Phase *phase, Phase *launches) {
    int count = 0;
    Phase rest = {0};
    for (int k = 0; k < phase->kernels.count; k++) {
        Kernel *kernel = phase->kernels.at[k];
        bool alone = !is_persistent(e, program) && kernel_seconds(kernel, program->machine) >= long_kernel;
        Phase *launch = alone ? &launches[count++] : &rest;
        VEC_PUSH(e->arena, &launch->kernels, kernel);
        launch->tiles += kernel->tiles;
    }
    if (rest.kernels.count)
        launches[count++] = rest;
    return count;
}

static Phase *launches_new(Emitter *e, const Phase *phase) {
    return NEW_ARRAY(e->arena, Phase, phase->kernels.count + 1);
}

/* Writes the function of a launch; returns what describes it among the arguments of Step. Only a persistent kernel asks
 * which tiles share memory: it runs several one after the other. */
static const char *write_launch(Emitter *e, const Phase *launch, const char *name, const char *kind, bool persistent,
                                Writer *out) {
    bool all_share = !persistent || sharing_kernels(launch) == launch->kernels.count;
    write_needs(e, launch, name, all_share, out);
    write_phase(e, launch, name, out);
    write_blank(out);
    const char *sharing = all_share ? "" : arena_printf(e->arena, ", %s_sharing", name);
    return arena_printf(e->arena, "%s<%s, %s_tiles, %s_shared_bytes%s>", kind, name, name, name, sharing);
}

static void phases(Emitter *e, const Program *program, Writer *out) {
    enum { FIRST = 3 };
    int count = program->phases.count, parts_count = FIRST;
    const char **parts = NEW_ARRAY(e->arena, const char *, program->kernels.count + count + FIRST),
               *prefix = program->prefix;
    parts[0] = "Tensors";
    parts[1] = "BATCH";
    parts[2] = "REPORTS";
    for (int p = 0; p < count; p++) {
        const Phase *phase = &program->phases.at[p];
        Phase *launches = launches_new(e, phase);
        int several = launches_of(e, program, phase, launches);
        for (int l = 0; l < several; l++) {
            const char *name = arena_printf(e->arena, "%s_%d", prefix, p + 1);
            name = l ? arena_printf(e->arena, "%s_beside_%d", name, l) : name;
            write_line(out, "// phase %d of %d%s: %s", p + 1, count, l ? ", beside" : "",
                       tile_text(e->arena, launches[l].tiles));
            parts[parts_count++] =
                write_launch(e, &launches[l], name, l ? "Beside" : "Phase", is_persistent(e, program), out);
        }
    }
    const char *head = arena_printf(e->arena, "using %c%s =", *names_upper(e->arena, prefix), prefix + 1);
    write_step_type(e, head, parts, parts_count, out);
}

static bool has_kernel(const Phase *launch, const Kernel *kernel) {
    for (int k = 0; k < launch->kernels.count; k++)
        if (launch->kernels.at[k] == kernel)
            return true;
    return false;
}

static void write_parts(Emitter *e, Writer *out) {
    const Program *train = e->programs[PROGRAM_TRAIN];
    Notes notes = {0};
    for (int p = 0, before = 0; p < train->phases.count; p++) {
        const Phase *phase = &train->phases.at[p];
        Phase *launches = launches_new(e, phase);
        int several = launches_of(e, train, phase, launches);
        for (int k = 0; k < phase->kernels.count; k++) {
            int launch = 0;
            while (!has_kernel(&launches[launch], phase->kernels.at[k]))
                launch++;
            const char *name = kernel_name(e, phase->kernels.at[k]);
            const char *row = arena_printf(e->arena, "{%d, %s_tiles},", before + launch, name);
            VEC_PUSH(e->arena, &notes, ((Note){row, arena_printf(e->arena, "kernel %d", notes.count)}));
        }
        before += several;
    }
    write_line(out, "// of kernel_table: launch, tiles");
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

/* ---- rows ---- */

/* All threads of a column's tile stay to the end; those without a row do nothing. */
static bool is_checked(const Kernel *kernel) {
    return kernel->team == TEAM_COLUMN && !every_row_exists(kernel);
}

/* Who computes which row, i the calling thread's; all threads of a block go through the gate together. */
static void open_rows(const Body *row, const char *rows, Writer *out) {
    const Kernel *kernel = row->kernel;
    const char *team = team_name(row->e, kernel);
    if (kernel->team == TEAM_THREAD && kernel->lanes > 1)
        write_line(out, "int i = %d * (tile * THREADS + threadIdx.x);", kernel->lanes);
    else if (kernel->team == TEAM_THREAD)
        write_line(out, "int i = tile * THREADS + threadIdx.x;");
    else
        write_line(out, "%s team(shared);", team);
    if (kernel->team == TEAM_BLOCK && kernel->rows > 1)
        write_line(out, "int i = tile;");
    if (kernel->team == TEAM_COLUMN || kernel->team == TEAM_HALF || (kernel->team == TEAM_WARP && kernel->rows > 1))
        write_line(out, "int i = tile * %s::rows + team.row;", team);
    if (is_checked(kernel))
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
    const char *exists = is_checked(row->kernel) ? "exists && " : "";
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
    return is_checked(row->kernel) ? "if (exists && leads(team))" : "if (leads(team))";
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
    .contract = write_product,
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
