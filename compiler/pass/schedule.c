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
                              .launch = 1.5e-6};
const Machine machine_cpu = {.name = "cpu",
                             .multiprocessors = 4,
                             .clock = 3e9,
                             .flops = 1e11,
                             .bandwidth = 2e10,
                             .barrier = 1e-6,
                             .launch = 1e-6};

enum { PERSISTENT_WAVES = 4 };

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

static void make_phases(Program *program) {
    int levels = assign_levels(program);
    for (int level = 0; level < levels; level++) {
        Phase phase = {0};
        for (int i = 0; i < program->kernels.count; i++)
            if (program->kernels.at[i]->phase == level)
                VEC_PUSH(program->arena, &phase.kernels, program->kernels.at[i]);
        balance(&phase, program->machine);
        VEC_PUSH(program->arena, &program->phases, phase);
    }
}

static double phase_seconds(const Program *program, const Phase *phase) {
    double longest = 0, traffic = 0, arithmetic = 0;
    for (int i = 0; i < phase->kernels.count; i++) {
        const Kernel *kernel = phase->kernels.at[i];
        double own = kernel_seconds(kernel, program->machine);
        longest = own > longest ? own : longest;
        traffic += kernel->bytes / program->machine->bandwidth;
        arithmetic += kernel->flops / program->machine->flops;
    }
    double floor = traffic > arithmetic ? traffic : arithmetic;
    return longest > floor ? longest : floor;
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

static void estimate(Program *program) {
    double work = 0;
    for (int i = 0; i < program->phases.count; i++)
        work += phase_seconds(program, &program->phases.at[i]);
    program->estimate[SCHEDULE_GRAPH] = work + program->phases.count * program->machine->launch;
    program->estimate[SCHEDULE_PERSISTENT] = work + program->phases.count * barrier_seconds(program);
}

/* The persistent kernel holds the registers and shared memory of its hungriest phase on every multiprocessor; it is for
 * steps whose phases are a few waves of small tiles. */
static bool is_tiny(const Program *program) {
    return widest_phase(program) <= PERSISTENT_WAVES * (int64_t)program->machine->multiprocessors;
}

void schedule(Program *program, Schedule wanted) {
    for (int i = 0; i < program->kernels.count; i++)
        kernel_cut(program->kernels.at[i], program->machine);
    make_phases(program);
    int64_t widest = widest_phase(program), blocks = program->machine->multiprocessors;
    program->grid = widest < blocks ? widest : blocks;
    estimate(program);
    bool faster = program->estimate[SCHEDULE_PERSISTENT] < program->estimate[SCHEDULE_GRAPH];
    program->schedule = wanted != SCHEDULE_AUTO      ? wanted
                        : is_tiny(program) && faster ? SCHEDULE_PERSISTENT
                                                     : SCHEDULE_GRAPH;
}
