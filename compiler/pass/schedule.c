/* The schedule: kernels at one dependency level form a phase. Values must be complete before they are read, and a
 * weight must have been read for the last time before it is overwritten in place. */
#include "pass/kernel.h"
#include "pass/tile.h"

/* Measured on an H200 by bench/limits: a grid-wide barrier, a node of a CUDA graph. */
const Machine machine_cuda = {.name = "cuda",
                              .multiprocessors = 132,
                              .blocks = true,
                              .computed_operands = true,
                              .clock = 1.98e9,
                              .flops = 60e12,
                              .bandwidth = 4.3e12,
                              .barrier = 0.92e-6,
                              .launch = 1.5e-6,
                              .latency = 1200};
const Machine machine_cpu = {.name = "cpu",
                             .multiprocessors = 4,
                             .clock = 3e9,
                             .flops = 1e11,
                             .bandwidth = 2e10,
                             .barrier = 1e-6,
                             .launch = 1e-6,
                             .latency = 1200};

/* Measured there too: the barriers of a cluster and of a block; a load of shared memory. */
enum { PERSISTENT_WAVES = 4, CLUSTER_BLOCKS = 16, SOLO_BYTES = 32 * 1024 };

static const Machine *machine_in_form(Arena *arena, const Machine *machine, Form form) {
    if (form == FORM_GRID)
        return machine;
    Machine *part = NEW(arena, Machine);
    *part = *machine;
    part->form = form;
    part->multiprocessors = form == FORM_SOLO ? 1 : CLUSTER_BLOCKS;
    part->barrier = form == FORM_SOLO ? 0.02e-6 : 0.19e-6;
    part->latency = form == FORM_SOLO ? 300 : machine->latency;
    return part;
}

/* `later` must run in a later phase than `earlier`. */
static bool follow(Kernel *later, const Kernel *earlier) {
    if (!earlier || later == earlier || later->phase > earlier->phase)
        return false;
    later->phase = earlier->phase + 1;
    return true;
}

/* The kernel comes after those that store what it reads, and before those that overwrite it. */
static bool raise_levels(Program *program, Kernel *kernel) {
    bool raised = false;
    for (int i = 0; i < kernel->behind.count; i++)
        raised |= follow(kernel, kernel->behind.at[i]);
    for (int i = 0; i < kernel->loads.count; i++) {
        const Kernel *overwriter = program_overwriter(program, kernel->loads.at[i]);
        raised |= follow(kernel, program_producer(program, kernel->loads.at[i]));
        raised |= overwriter && follow(program->kernels.at[overwriter->id], kernel);
    }
    return raised;
}

/* Longest path. Overwrites may point backwards in the order of kernels, so levels are raised until none changes. */
static int assign_levels(Program *program) {
    int count = program->kernels.count, deepest = 0;
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = 0; i < count; i++) {
            changed |= raise_levels(program, program->kernels.at[i]);
            deepest = program->kernels.at[i]->phase > deepest ? program->kernels.at[i]->phase : deepest;
        }
        ENSURE(deepest < count || !count);
    }
    return count ? deepest + 1 : 0;
}

/* When a phase has more tiles than there are multiprocessors, its short kernels use fewer and longer ones. */
static void balance(Phase *phase, const Machine *machine) {
    phase->tiles = 0;
    int64_t tiles = 0;
    double longest = 0;
    for (int i = 0; i < phase->kernels.count; i++) {
        double own = kernel_seconds(phase->kernels.at[i], machine);
        longest = own > longest ? own : longest;
        tiles += phase->kernels.at[i]->tiles;
    }
    for (int i = 0; machine->blocks && tiles > machine->multiprocessors && i < phase->kernels.count; i++)
        kernel_shrink(phase->kernels.at[i], longest, machine);
    for (int i = 0; i < phase->kernels.count; i++)
        phase->tiles += phase->kernels.at[i]->tiles;
}

/* A kernel of one row, such as a report, is soon done: some warp takes it while others are busy with what came before. */
static bool is_one_row(const Kernel *kernel) {
    return kernel->cls == KERNEL_LOOP && kernel->rows == 1;
}

static void make_phases(Program *program) {
    int levels = assign_levels(program);
    program->phases.count = 0;
    for (int level = 0; level < levels; level++) {
        Phase phase = {0};
        for (int last = 0; last < 2; last++)
            for (int i = 0; i < program->kernels.count; i++)
                if (program->kernels.at[i]->phase == level && is_one_row(program->kernels.at[i]) == last)
                    VEC_PUSH(program->arena, &phase.kernels, program->kernels.at[i]);
        balance(&phase, program->machine);
        VEC_PUSH(program->arena, &program->phases, phase);
    }
}

/* As long as its longest kernel, or as all tiles dealt to the blocks, or as its arithmetic and traffic. */
static double phase_seconds(const Phase *phase, const Machine *machine) {
    double longest = 0, dealt = 0, traffic = 0, arithmetic = 0;
    for (int i = 0; i < phase->kernels.count; i++) {
        const Kernel *kernel = phase->kernels.at[i];
        double own = kernel_seconds(kernel, machine);
        longest = own > longest ? own : longest;
        dealt += (double)kernel->tiles * kernel_tile_seconds(kernel, machine) / machine->multiprocessors;
        traffic += kernel->bytes / machine->bandwidth;
        arithmetic += kernel_arithmetic(kernel, machine);
    }
    double floor = traffic > arithmetic ? traffic : arithmetic, latency = longest > dealt ? longest : dealt;
    return latency > floor ? latency : floor;
}

static int64_t widest_phase(const Program *program) {
    int64_t widest = 1;
    for (int i = 0; i < program->phases.count; i++)
        widest = program->phases.at[i].tiles > widest ? program->phases.at[i].tiles : widest;
    return widest;
}

/* One block needs no grid-wide barrier. */
static double barrier_seconds(const Program *program) {
    return program->grid == 1 ? 0.02e-6 : program->machine->barrier;
}

/* `whole`: what the launches of a graph run on. */
static void estimate(Program *program, const Machine *whole) {
    program->estimate[SCHEDULE_GRAPH] = program->phases.count * whole->launch;
    program->estimate[SCHEDULE_PERSISTENT] = program->phases.count * barrier_seconds(program);
    for (int i = 0; i < program->phases.count; i++) {
        program->estimate[SCHEDULE_GRAPH] += phase_seconds(&program->phases.at[i], whole);
        program->estimate[SCHEDULE_PERSISTENT] += phase_seconds(&program->phases.at[i], program->machine);
    }
}

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static void cut_for(Program *program, const Machine *machine, const Machine *whole) {
    program->machine = machine;
    for (int i = 0; i < program->kernels.count; i++)
        kernel_cut(program->kernels.at[i], machine);
    make_phases(program);
    program->grid = smaller(widest_phase(program), machine->multiprocessors);
    estimate(program, whole);
}

/* Everything that it touches but the data set, had each value memory of its own. */
static int64_t arena_bytes(const Program *program) {
    int64_t bytes = 0;
    for (int i = 0; i < program->graph->nodes.count; i++) {
        const Node *n = program->graph->nodes.at[i];
        bool kept = n->op->table == TABLE_WEIGHT || n->op->table == TABLE_STATE;
        if (kept || program_producer(program, n))
            bytes += (type_bytes(&n->type) + 255) / 256 * 256;
    }
    return bytes;
}

/* Functions of the library take as much shared memory as they can use, and know memory of the device only. */
static bool has_calls(const Program *program) {
    for (int k = 0; k < program->kernels.count; k++)
        if (program->kernels.at[k]->cls == KERNEL_CALL)
            return true;
    return false;
}

/* The persistent kernel holds the registers and shared memory of its hungriest phase on every multiprocessor; it is for
 * steps whose phases are a few waves of small tiles. */
static bool is_tiny(const Program *program) {
    return !has_calls(program) &&
           (program->machine->form != FORM_GRID ||
            widest_phase(program) <= PERSISTENT_WAVES * (int64_t)program->machine->multiprocessors);
}

static bool uses_tensor_cores(const Program *program) {
    bool found = false;
    for (int k = 0; k < program->kernels.count; k++)
        found |= program->kernels.at[k]->cls == KERNEL_CONTRACT && program->kernels.at[k]->math != MATH_FP32;
    return found;
}

/* Tensor cores are fed by copies from memory: their operands cannot be in an arena in shared memory. */
static bool fits_form(const Program *program, Form form) {
    bool trains = program->graph == program->graph->module->train;
    bool solo = arena_bytes(program) <= SOLO_BYTES && !uses_tensor_cores(program);
    return trains && program->machine->blocks && (form != FORM_SOLO || solo);
}

/* The tiles are those of the fastest form, whatever the schedule, so that all schedules compute the same bits: of the grid,
 * where a graph is faster than a persistent kernel. Only training runs persistently. */
static void choose_form(Program *program) {
    const Machine *whole = program->machine, *best = machine_in_form(program->arena, whole, FORM_GRID);
    cut_for(program, best, whole);
    double persistent = program->estimate[SCHEDULE_PERSISTENT], graph = program->estimate[SCHEDULE_GRAPH];
    double least = graph < persistent ? graph : persistent;
    for (int form = FORM_GRID + 1; form < FORMS && is_tiny(program); form++) {
        if (!fits_form(program, form))
            continue;
        const Machine *machine = machine_in_form(program->arena, whole, form);
        cut_for(program, machine, whole);
        bool faster = program->estimate[SCHEDULE_PERSISTENT] < least;
        best = faster ? machine : best;
        least = faster ? program->estimate[SCHEDULE_PERSISTENT] : least;
    }
    cut_for(program, best, whole);
}

void schedule(Program *program, Schedule wanted) {
    choose_form(program);
    bool faster = program->estimate[SCHEDULE_PERSISTENT] < program->estimate[SCHEDULE_GRAPH];
    program->schedule = wanted != SCHEDULE_AUTO      ? wanted
                        : is_tiny(program) && faster ? SCHEDULE_PERSISTENT
                                                     : SCHEDULE_GRAPH;
}
