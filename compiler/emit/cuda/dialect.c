/* CUDA C++. A kernel is a function of a tile, which a block of 256 threads computes. */
#include "emit/cuda/launches.h"
#include "emit/cuda/patch.h"
#include "emit/cuda/places.h"
#include "emit/cuda/product.h"
#include "emit/kernel/exchanges.h"
#include "emit/kernel/function.h"
#include "emit/kernel/library.h"
#include "emit/kernel/row.h"
#include "emit/kernel/tensors.h"

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

/* NULL: none. */
static const char *vector_floats(Emitter *e, const Kernel *kernel) {
    Text sum = TEXT(e->arena);
    for (int s = 0; s < kernel->stages.count; s++)
        for (int k = 0; k < kernel->stages.at[s].vectors.count; k++)
            text_printf(&sum, "%s%s", sum.length ? " + " : "", stage_extent(e, &kernel->stages.at[s]));
    return sum.length ? text_string(&sum) : NULL;
}

static void declare_rows(Emitter *e, const Kernel *kernel, Writer *out) {
    const char *rows = row_count(e, kernel), *team = team_name(e, kernel);
    const char *tiles = rows;
    bool packs = kernel->team == TEAM_THREAD && kernel->lanes > 1;
    if (kernel->rows > 1 && (kernel->team != TEAM_BLOCK || kernel->at_once > 1))
        tiles = packs ? arena_printf(e->arena, "divide_up(%s, (%d * %s::rows))", rows, kernel->lanes, team)
                      : arena_printf(e->arena, "divide_up(%s, %s::rows)", rows, team);
    write_line(out, "static constexpr int tiles = %s;", tiles);
    const char *floats = vector_floats(e, kernel);
    if (kernel->team == TEAM_THREAD || (has_warps(kernel) && !floats && !kernel->held))
        return;
    if (floats)
        write_line(out, "static constexpr int row_floats = %s; // that a row keeps from stage to stage", floats);
    write_line(out, "static constexpr int shared_bytes = team_shared<%s>(%s);", team, floats ? "row_floats" : "0");
    if (kernel->held)
        write_line(out, "static constexpr int wanted_bytes = with_row<%s>(shared_bytes, %s);",
                   c_type(e, kernel->held->type.dtype), held_extent(e, kernel));
}

/* ---- calls of the library ---- */

/* The blocks of a persistent kernel work each by itself. */
bool in_cluster(const Emitter *e, const Kernel *kernel) {
    return kernel->cluster > 1 && !program_is_persistent(e, program_of(e, kernel));
}

static void declare_library(Emitter *e, const Kernel *kernel, Writer *out) {
    const OpDef *op = kernel->call->op;
    const Node *number = kernel->operands[op->call->number];
    const char *shape = library_shape(e, kernel, false);
    const char *blocks = kernel->cluster > 1 ? arena_printf(e->arena, ", %d", kernel->cluster) : "";
    write_comment(out, 0,
                  arena_printf(e->arena, "shape: type of numbers, %s%s", op->call->meaning,
                               *blocks ? ", blocks that share the units out among them" : ""));
    write_line(out, "using Shape = %s<%s, %s%s>%s;", op->call->shape, c_type(e, number->type.dtype), shape, blocks,
               *blocks && !in_cluster(e, kernel) ? "::Apart" : "");
    write_line(out, "static constexpr int tiles = %s_tiles<Shape>();", op->name);
    write_line(out, "static constexpr int shared_bytes = %s_shared<Shape>();", op->name);
}

/* What the function reads ahead of the gate is complete there. */
static bool may_read_ahead(const Emitter *e, const Kernel *kernel) {
    const Program *program = program_of(e, kernel);
    const unsigned ahead = kernel_reads_ahead(kernel);
    for (int k = 0; k < kernel->call->inputs; k++)
        if (ahead >> k & 1 && written_in(program, kernel->operands[k]) == phase_before(program, kernel))
            return false;
    return ahead;
}

static void library(Body *kernel) {
    const OpDef *op = kernel->kernel->call->op;
    if (!may_read_ahead(kernel->e, kernel->kernel))
        write_line(kernel->out, "gate();");
    write_line(kernel->out, "%s<Shape>(%s, tile, shared%s);", op->name, library_arguments(kernel->e, kernel->kernel),
               op->call->ahead ? ", gate" : "");
}

static void declare(Emitter *e, const Kernel *kernel, Writer *out) {
    if (kernel->cls == KERNEL_CONTRACT)
        declare_product(e, kernel, out);
    else if (kernel->cls == KERNEL_CALL)
        declare_library(e, kernel, out);
    else if (kernel->patch.sum)
        declare_patches(e, kernel, out);
    else
        declare_rows(e, kernel, out);
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
    const char *graph =
        e->module->shards
            ? "A shard of a batch is a CUDA graph of a launch or more per phase, with a block for each tile, and so is "
              "the update behind all shards"
            : "A step is a CUDA graph of a launch or more per phase, with a block for each tile";
    return arena_printf(e->arena,
                        "How it runs: a kernel is cut into tiles, and a tile is the work of one block of 256 threads: "
                        "a call of the kernel's run(). Phases run one after the other; the tiles of a phase, of all "
                        "its kernels, may run at the same time, in any order. A tile may start while the phase before "
                        "is still running; gate() returns when that has ended. What that phase does not write may be "
                        "read ahead of the gate, and is. %s (cuda/schedule.cuh).",
                        train->schedule == SCHEDULE_PERSISTENT ? persistent : graph);
}

static bool is_held(const Kernel *kernel) {
    return kernel->held;
}

static bool is_of_patches(const Kernel *kernel) {
    return kernel->patch.sum;
}

static bool has_kernel(const Emitter *e, bool (*is)(const Kernel *kernel)) {
    for (int p = 0; p < e->plan->program_count; p++)
        for (int k = 0; k < e->programs[p]->kernels.count; k++)
            if (is(e->programs[p]->kernels.at[k]))
                return true;
    return false;
}

static void includes(Emitter *e, Writer *out) {
    const bool shards = e->module->shards;
    const Include files[] = {
        {"cuda/batch.cuh", "row: the example in a row of the batch; share: its part in a mean", true},
        {"cuda/math.cuh", "relu, sigmoid ...", true},
        {"cuda/matmul.cuh", "matmul<Product<M, N, K>, Tile<m, n, k, tm, tn>>(...)", true},
        {"cuda/pack.cuh", "neighbouring numbers that a thread moves at once", true},
        {"cuda/schedule.cuh", "phases as one persistent kernel or as a CUDA graph", true},
        {"cuda/team.cuh", "the threads of a row", true},
        {"cuda/repeated.cuh", "a kernel again and again, alone", true},
        {"cuda/tokens.cuh", "tokens one after the other: graphs of their launches", e->module->decode},
        {"cuda/shard.cuh", "the shards of a batch, and their sums", shards},
        {"cuda/among.cuh", "their sums over several GPUs of a host", shards},
        {"cuda/part.cuh", "the elements of this process, of those that several share", e->plan->flat.bytes > 0},
        {"cuda/hold.cuh", "rows that are read from shared memory", has_kernel(e, is_held) || e->module->decode},
        {"cuda/patch.cuh", "sums over windows of images, channel by channel", has_kernel(e, is_of_patches)},
    };
    write_line(out, "#include \"mtc.h\" // the runtime: data, command line, checkpoints\n");
    write_includes(e, files, sizeof files / sizeof *files, out);
    write_line(out, "\n#include <algorithm>");
}

static void tensors(Emitter *e, Writer *out) {
    Members members = tensors_members(e, ".", "");
    write_open(out, "struct Tensors {");
    if (e->programs[PROGRAM_TRAIN]->schedule == SCHEDULE_PERSISTENT)
        write_line(out, "static constexpr int64_t arena_bytes = %lld;\n", (long long)e->plan->arena_bytes);
    write_line(out, "const MtcRun &run;");
    write_line(out, "char *arena;");
    write_blank(out);
    write_members(e, &members, true, out);
    write_close(out, "};");
    explain_places(e, launches_say_rows(e), out);
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

/* All steps, by the schedule. */
static void write_train(Writer *out) {
    write_line(out, "static const char *train(const MtcRun *run, int64_t steps) {\n"
                    "    return schedule.train(run, steps);\n"
                    "}\n");
}

static void write_train_shard(Writer *out) {
    write_line(out, "static Recorded shard_launches, update_launches;\n"
                    "static WholeBatches whole_batches;\n"
                    "static AmongPeers among;\n"
                    "\n"
                    "// the gradients of the shard that the clock shows\n"
                    "static const char *train_shard(const MtcRun *run) {\n"
                    "    return replay_shard<Train>(shard_launches, run);\n"
                    "}\n");
}

/* Of a shard that stops for sums over all of them. */
static void write_train_between(Emitter *e, Writer *out) {
    write_line(out, "static Recorded update_launches;\n"
                    "static AmongPeers among;\n");
    write_exchanges(e, out);
    write_line(out, "// phases from .. to - 1 of the shard that the clock shows\n"
                    "static const char *train_between(const MtcRun *run, int from, int to) {\n"
                    "    return launch_between<Train>(run, from, to);\n"
                    "}\n");
}

/* Launches of a shard are recorded when they are first asked for. */
static const char *prepares(const Emitter *e) {
    const Program *train = e->programs[PROGRAM_TRAIN];
    return e->module->shards                        ? "nullptr"
           : train->schedule == SCHEDULE_PERSISTENT ? "schedule.prepare(BLOCKS)"
                                                    : "schedule.prepare()";
}

static void write_release(const Emitter *e, Writer *out) {
    write_open(out, "static void release() {");
    if (e->module->shards && !plan_exchanges(e->plan))
        write_line(out, "shard_launches.release();\nwhole_batches.release();");
    if (e->module->shards)
        write_line(out, "update_launches.release();\namong.release();");
    else
        write_line(out, "schedule.release();");
    write_line(out, "repeated.release();");
    if (e->module->decode)
        write_line(out, "token_graphs.release();");
    if (e->module->texts)
        write_line(out, "texts_graphs.release();");
    write_close(out, "}");
}

static void step_section(Emitter *e, Writer *out) {
    const bool shards = e->module->shards;
    if (!shards)
        write_schedule(e->programs[PROGRAM_TRAIN], out);
    write_line(out, "static Repeated<Train> repeated;\n");
    if (e->module->decode)
        write_line(out, "static Tokens token_graphs; // the launches that decode one\n");
    write_buckets(e, out);
    if (e->module->texts)
        write_line(out, "static Tokens texts_graphs; // those that decode one of each text\n");
    if (plan_exchanges(e->plan))
        write_train_between(e, out);
    else if (shards)
        write_train_shard(out);
    else
        write_train(out);
    write_line(out,
               "// phases 0 .. phase of one %s\n"
               "static const char *train_until(const MtcRun *run, int phase) {\n"
               "    return launch_until<Train>(run, phase);\n"
               "}\n"
               "\n"
               "static const char *shuffle(const MtcRun *run, int *order, int64_t epoch, int64_t epochs) {\n"
               "    return launch_shuffle(run, order, epoch, epochs);\n"
               "}\n"
               "\n"
               "static const char *run_kernel(const MtcRun *run, int kernel, int64_t times) {\n"
               "    return repeated.run(run, kernel, times);\n"
               "}\n"
               "\n"
               "static const char *prepare(const MtcRun *) {\n"
               "    return %s;\n"
               "}\n",
               shards ? "shard" : "step", prepares(e));
    write_release(e, out);
}

static void write_train_whole(Emitter *e, Writer *out) {
    const PlanSums sums = plan_sums(e->plan, e->module);
    write_line(
        out,
        "\n// steps of so many shards, all of which are computed here\n"
        "static const char *train_whole(const MtcRun *run, char *waiting, int64_t shards, int64_t steps) {\n"
        "    return whole_batches.train<Train, Update>(run, {shards, run->arena + %lld, waiting, %lld}, steps);\n"
        "}",
        (long long)sums.begin, (long long)(sums.end - sums.begin));
}

static void updating(Emitter *e, Writer *out) {
    const bool stops = plan_exchanges(e->plan), fills = e->programs[PROGRAM_TRAIN]->buckets.count;
    write_line(out,
               "\n// once the sums are those of all shards\n"
               "static const char *update(const MtcRun *run) {\n"
               "    return replay_update<Update>(update_launches, run);\n"
               "}\n"
               "\n"
               "static const char *add_sums(void *to, const void *from, int64_t count) {\n"
               "    return add_reals(to, from, count);\n"
               "}\n"
               "\n"
               "static const char *add_sums_over_peers(const MtcPeers *peers, size_t offset, size_t bytes) {\n"
               "    return add_over_peers(peers, offset, bytes);\n"
               "}\n"
               "\n"
               "// steps of which each GPU computes one shard\n"
               "static const char *train_among(const MtcRun *run, const MtcPeers *peers, int64_t steps) {\n"
               "    return among.train<Train, Update>(run, peers, steps%s%s);\n"
               "}",
               stops   ? ", exchange_table"
               : fills ? ", {}"
                       : "",
               fills ? ", bucket_table" : "");
    if (!stops)
        write_train_whole(e, out);
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

/* "Decode, 1", whose first launch is of tokens with which a text begins; "Decode" */
static const char *step_of_tokens(Emitter *e, const Graph *g, const char *step, Writer *out) {
    const int once = launches_that_last(e, plan_program(e->plan, g));
    if (once)
        write_remark(out, "phase 1 is launched where run->begins alone: what it computes of weights stays");
    return once ? arena_printf(e->arena, "%s, %d", step, once) : step;
}

static void decoding(Emitter *e, Writer *out) {
    write_blank(out);
    const char *step = step_of_tokens(e, e->module->decode, "Decode", out);
    write_line(out,
               "static const char *decode(const MtcRun *run) {\n"
               "    return token_graphs.decode<%s>(run);\n"
               "}\n"
               "\n"
               "static const char *draw_tokens(const MtcRun *run, const MtcDrawing *drawing, int64_t count) {\n"
               "    return token_graphs.draw<%s>(run, drawing, count);\n"
               "}",
               step, step);
}

static void texts(Emitter *e, Writer *out) {
    write_blank(out);
    const char *step = step_of_tokens(e, e->module->texts, "Texts", out);
    write_line(out,
               "static const char *decode_texts(const MtcRun *run) {\n"
               "    return texts_graphs.decode<%s>(run);\n"
               "}\n"
               "\n"
               "static const char *draw_texts(const MtcRun *run, const MtcDrawing *drawing, int64_t count) {\n"
               "    return texts_graphs.draw<%s>(run, drawing, count);\n"
               "}",
               step, step);
}

static void prefilling(Emitter *e, Writer *out) {
    (void)e;
    write_line(out, "\nstatic const char *prefill(const MtcRun *run) {\n"
                    "    return launch_evaluation<Prefill>(run, 0, 1, 0);\n"
                    "}");
}

static void watching(Emitter *e, Writer *out) {
    (void)e;
    write_line(out, "\nstatic const char *watch(const MtcRun *run) {\n"
                    "    return launch_until<Watch>(run, Watch::launches);\n"
                    "}");
}

/* ---- rows ---- */

/* All threads of a column's tile stay to the end; those without a row do nothing. */
static bool is_checked(const Kernel *kernel) {
    return kernel->team == TEAM_COLUMN && !every_row_exists(kernel);
}

/* Of a flat weight, the elements that are the process's own; more tiles than these take do nothing. */
static void open_own_elements(const Body *row, const Buffer *flat, const char *count, Writer *out) {
    const long long place = (flat->offset - row->e->plan->flat.weights) / row->e->plan->real_bytes;
    ENSURE(row->kernel->team == TEAM_THREAD);
    const char *lanes = row->kernel->lanes > 1 ? arena_printf(row->e->arena, "%d * ", row->kernel->lanes) : "";
    write_line(out, "int64_t i = own_first(t.part_begin, %lld) + %s((int64_t)tile * THREADS + threadIdx.x);", place,
               lanes);
    write_all(out, row->before_gate);
    write_line(out, "gate();");
    write_line(out, "if (i >= own_end(t.part_end, %lld, %s))\n    return;", place, count);
}

/* Who computes which row, i the calling thread's; all threads of a block go through the gate together. */
static void open_rows(const Body *row, const char *rows, Writer *out) {
    const Kernel *kernel = row->kernel;
    const char *team = team_name(row->e, kernel), *type = index_type(row_counter(row->e->arena, kernel));
    const char *first = int_counts(kernel->rows) ? "tile" : "(int64_t)tile";
    const Buffer *flat = flat_of_kernel(row->e, kernel);
    if (flat) {
        open_own_elements(row, flat, rows, out);
        return;
    }
    if (kernel->team == TEAM_THREAD && kernel->lanes > 1)
        write_line(out, "%s i = %d * (%s * THREADS + threadIdx.x);", type, kernel->lanes, first);
    else if (kernel->team == TEAM_THREAD)
        write_line(out, "%s i = %s * THREADS + threadIdx.x;", type, first);
    else
        write_line(out, "%s team(shared);", team);
    const bool one = kernel->team == TEAM_BLOCK && kernel->at_once == 1;
    if (one && kernel->rows > 1)
        write_line(out, "int i = tile;");
    else if (kernel->team != TEAM_THREAD && (kernel->team == TEAM_COLUMN || kernel->rows > 1))
        write_line(out, "%s i = %s * %s::rows + team.row;", type, first, team);
    if (is_checked(kernel))
        write_line(out, "bool exists = i < %s;", rows);
    if (row->before_gate)
        write_all(out, row->before_gate);
    write_line(out, "gate();");
    if (kernel->team == TEAM_WARP && kernel->rows == 1)
        write_line(out, "if (team.row < WARPS - 1)\n    return;");
    else if ((kernel->team == TEAM_WARP && kernel->at_once == 1) || kernel->team == TEAM_THREAD)
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
    write_line(row->out, "float *%s = row_memory(team, shared, row_floats);", vectors[0].name);
    for (int k = 1; k < count; k++)
        write_line(row->out, "float *%s = %s + %s;", vectors[k].name, vectors[k - 1].name, vectors[k - 1].extent);
}

static void hold(const HeldRow *held, const Writer *stages, Writer *out) {
    Arena *arena = out->text.arena;
    write_line(out, "// they all read the row: from shared memory, if a block may have so much");
    write_lambda(out, arena_printf(arena, "auto %s = [&](const %s *%s)", held->stages, held->type, held->name), stages);
    write_line(out, "hold_row<%s>(%s, shared, %s, %s);", held->extent, held->address, held->bytes, held->stages);
}

static int team_threads(const Kernel *kernel) {
    return kernel->team == TEAM_BLOCK ? THREADS : kernel->team == TEAM_LANES ? kernel->depth : LANES;
}

/* Where one token is decoded, latency is all: nvcc has all loads of a loop on their way at a time if it knows how often a thread goes round,
 * and waits for the first of them if not. */
static bool has_known_turns(const Body *row, const Stage *stage) {
    const Kernel *kernel = row->kernel;
    const int64_t extent = type_elements(&stage->domain) / kernel->rows;
    return is_of_token(row->e, kernel) && kernel->team != TEAM_COLUMN &&
           extent % (stage->lanes * team_threads(kernel)) == 0;
}

static const char *loop(const Body *row, const Stage *stage, const Tree *variable) {
    Arena *arena = row->e->arena;
    const char *v = variable->text, *type = index_type(variable), *extent = stage_extent(row->e, stage);
    if (row->kernel->team == TEAM_THREAD)
        return arena_printf(arena, "for (%s %s = 0; %s < %s; %s++)", type, v, v, extent, v);
    const char *exists = is_checked(row->kernel) ? "exists && " : "";
    const char *times = stage->lanes > 1 ? arena_printf(arena, "%d * ", stage->lanes) : "";
    const char *first = arena_printf(arena, "%steam.first", times);
    const char *end = has_known_turns(row, stage) ? arena_printf(arena, "%s + %s", first, extent) : extent;
    return arena_printf(arena, "for (%s %s = %s; %s%s < %s; %s += %steam.stride)", type, v, first, exists, v, end, v,
                        times);
}

/* "float sum = rows_sum<float, WIDTH, 4>(team, i, add);", of lines for a row i and j, what it loops over. */
static void sum_rows(Body *row, const Stage *stage, const char *name, const Writer *lines) {
    const Node *sum = stage->reduces.at[0];
    const bool whole = stage->lanes > 1 && adds_integers(sum);
    const char *result = c_type(row->e, sum->type.dtype), *type = whole ? "int" : result,
               *add = names_claim(&row->names, "add");
    write_lambda(row->out, arena_printf(row->e->arena, "auto %s = [&](int i, int j, %s &%s)", add, type, name), lines);
    write_line(row->out, "%s %s = %srows_sum<%s, %s, %d>(team, i, %s);", result, name, whole ? "(float)" : "", type,
               stage_extent(row->e, stage), stage->lanes, add);
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
    Index at = stage_index(row, stage, tree_name(arena, "j"));
    const char *factors = body_text(&term, product_term(&term, n, &at));
    write_line(&terms, "return %s;", factors);
    body_know(&element, n, tree_name(arena, "sum"));
    Outputs outputs = stage_outputs(&element, stage, &at);
    body_write(&element, &outputs);
    const char *term_name = names_claim(&row->names, "term"), *store_name = names_claim(&row->names, "store");
    write_lambda(row->out, arena_printf(arena, "auto %s = [&](int j, int k)", term_name), &terms);
    write_lambda(row->out, arena_printf(arena, "auto %s = [&](int j, float sum)", store_name), &lines);
    write_line(row->out, "team_product<%s, %s>(team, %s, %s);", extent, product_depth(row->e, n), term_name,
               store_name);
    return true;
}

const Dialect dialect_cuda = {
    .name = "cuda",
    .defines = defined_in_cuda,
    .defines_kernel = called_in_cuda,
    .opens =
        "namespace { // of this file alone: a kernel may be called like a function of others, or of another program",
    .closes = "} // namespace",
    .schedules = true,
    .peers = true,
    .execution = execution,
    .includes = includes,
    .long_sum = write_long_sum,
    .tensors = tensors,
    .phases = write_launches,
    .kernels = kernels_in_launches,
    .step = step_section,
    .evaluation = evaluation,
    .measuring = measuring,
    .decoding = decoding,
    .texts = texts,
    .prefilling = prefilling,
    .updating = updating,
    .watching = watching,
    .member = "t.",
    .templates = true,
    .across = true,
    .report = "batch.reports",
    .real = "float",
    .named = "constexpr",
    .header = "cuda/%s.cuh",
    .null = "nullptr",
    .sole = "__restrict__ ",
    .near = true,
    .declare = declare,
    .function = write_kernel,
    .contract = write_product,
    .patches = write_patches,
    .library = library,
    .rows = rows,
    .row_vectors = row_vectors,
    .hold = hold,
    .loop = loop,
    .sum_rows = sum_rows,
    .fold = fold,
    .once = once,
    .sync = sync,
    .product = product,
};
