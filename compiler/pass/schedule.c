/* The schedule: kernels at one dependency level form a phase. Values must be complete before they are read, and a
 * weight must have been read for the last time before it is overwritten in place. */
#include "pass/bucket.h"
#include "pass/kernel.h"
#include "pass/tile.h"

enum { PERSISTENT_WAVES = 4, SOLO_BYTES = 32 * 1024 };

static bool raise_to(Kernel *kernel, int phase) {
    const bool raised = kernel->phase < phase;
    kernel->phase = raised ? phase : kernel->phase;
    return raised;
}

/* `later` must run in a later phase than `earlier`, or behind its tiles. */
static bool follow(Kernel *later, const Kernel *earlier) {
    return earlier && later != earlier && raise_to(later, earlier->phase + (later->leader != earlier));
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
    return raised | (kernel->leader && raise_to(kernel->leader, kernel->phase));
}

static void forget_levels(Program *program) {
    for (int i = 0; i < program->kernels.count; i++) {
        program->kernels.at[i]->phase = 0;
        program->kernels.at[i]->in_each = false;
    }
}

/* Longest path. Overwrites may point backwards in the order of kernels, so levels are raised until none changes. */
static int assign_levels(Program *program) {
    int count = program->kernels.count, deepest = 0;
    forget_levels(program);
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

/* Until each multiprocessor has a tile at most, short kernels get the fewest tiles of which none takes longer than `seconds`. */
static void shrink(Phase *phase, double seconds, const Machine *machine) {
    for (int i = 0; i < phase->kernels.count && phase->tiles > machine->multiprocessors; i++) {
        Kernel *kernel = phase->kernels.at[i];
        phase->tiles -= kernel->tiles;
        kernel_shrink(kernel, seconds, machine);
        phase->tiles += kernel->tiles;
    }
}

/* So many blocks are at work at a time, where kernels of a library or products in a launch have registers for two on a multiprocessor; 0: there
 * are none. */
static int64_t blocks_beside(const Phase *phase, const Machine *machine) {
    int64_t blocks = 0;
    for (int i = 0; i < phase->kernels.count && !blocks; i++) {
        const Kernel *kernel = phase->kernels.at[i];
        blocks =
            kernel->cls != KERNEL_LOOP && !kernel_is_long(kernel, machine) ? 2 * (int64_t)machine->multiprocessors : 0;
    }
    return blocks;
}

/* Where more tiles than these would come one round after the other, columns have fewer, of threads that add up more. */
static void lengthen_columns(Phase *phase, const Machine *machine) {
    const int64_t blocks = blocks_beside(phase, machine);
    for (int i = 0; i < phase->kernels.count && blocks && phase->tiles > blocks; i++) {
        Kernel *kernel = phase->kernels.at[i];
        phase->tiles -= kernel_has_tiles(kernel) ? kernel->tiles : 0;
        kernel_lengthen(kernel, machine);
        phase->tiles += kernel_has_tiles(kernel) ? kernel->tiles : 0;
    }
}

/* When a phase has more tiles than there are multiprocessors, its short kernels use fewer and longer ones. A second round of
 * tiles, where each multiprocessor has one at a time, costs more than tiles that take half as long again. */
static void balance(Phase *phase, const Machine *machine) {
    phase->tiles = 0;
    double longest = 0;
    for (int i = 0; i < phase->kernels.count; i++) {
        const Kernel *kernel = phase->kernels.at[i];
        double own = kernel_seconds(kernel, machine);
        longest = own > longest ? own : longest;
        phase->tiles += kernel_has_tiles(kernel) ? kernel->tiles : 0;
    }
    if (machine->blocks)
        shrink(phase, longest, machine);
    if (machine->blocks && machine->resident > 1)
        lengthen_columns(phase, machine);
    if (machine->blocks && machine->resident == 1)
        shrink(phase, 1.5 * longest, machine);
}

/* A kernel of one row, such as a report, is soon done: some warp takes it while others are busy with what came before. */
static bool is_one_row(const Kernel *kernel) {
    return kernel->cls == KERNEL_LOOP && kernel->rows == 1;
}

/* A function of the library: of what its tiles take, arithmetic is a small part; but not one that finds too little to do ahead of the gate. */
static bool lasts_long(const Kernel *kernel) {
    return kernel->cls == KERNEL_CALL && (!kernel->call->op->call->ahead || kernel_reads_ahead(kernel));
}

/* Of kernels in one launch, those whose tiles take longest come first, so that none of these begins when the others end, and
 * those of one row last. Long ones are launches of their own. */
static bool comes_before(const Kernel *a, const Kernel *b, const Machine *machine) {
    if (is_one_row(a) || is_one_row(b))
        return !is_one_row(a);
    if (!machine->blocks || kernel_is_long(a, machine) || kernel_is_long(b, machine))
        return false;
    if (lasts_long(a) != lasts_long(b))
        return lasts_long(a);
    return kernel_tile_seconds(a, machine) > kernel_tile_seconds(b, machine);
}

static void put_in_order(Phase *phase, const Machine *machine) {
    for (int i = 1; i < phase->kernels.count; i++) {
        Kernel *kernel = phase->kernels.at[i];
        int at = i;
        for (; at > 0 && comes_before(kernel, phase->kernels.at[at - 1], machine); at--)
            phase->kernels.at[at] = phase->kernels.at[at - 1];
        phase->kernels.at[at] = kernel;
    }
}

/* What lasts is made in a phase of its own, before all else. Returns how many levels there are. */
static int put_first_what_lasts(Program *program, int levels) {
    program->once = 0;
    for (int i = 0; i < program->kernels.count; i++)
        program->once |= program->kernels.at[i]->lasts;
    for (int i = 0; i < program->kernels.count && program->once; i++)
        program->kernels.at[i]->phase += !program->kernels.at[i]->lasts;
    return levels + program->once;
}

/* ---- rows that each block computes for itself ---- */

/* The only kernel of the level; NULL: there are several. */
static Kernel *only_kernel(const Program *program, int level) {
    Kernel *only = NULL;
    for (int i = 0; i < program->kernels.count; i++) {
        Kernel *kernel = program->kernels.at[i];
        if (kernel->phase == level && only)
            return NULL;
        only = kernel->phase == level ? kernel : only;
    }
    return only;
}

/* A row that is no result: a norm's, or numbers that threads compute, each its own. */
static bool is_inner_row(const Kernel *kernel) {
    return kernel->cls == KERNEL_LOOP && (kernel->rows == 1 || kernel->team == TEAM_THREAD) && !kernel->held &&
           kernel->stores.count == 1 && kernel->roots.count == 0;
}

/* Of a launch that it spares, it takes less where all blocks of a multiprocessor read and write it, by way of what that reads of the cache in
 * a cycle. A longer one has no room in shared memory beside weights. */
static bool is_short_row(const Kernel *kernel, int64_t blocks, const Machine *machine) {
    enum { MOST_BYTES = 64 * 1024, BYTES_OF_A_CYCLE = 64 };
    const int64_t rounds = (blocks + machine->multiprocessors - 1) / machine->multiprocessors;
    return kernel->bytes <= MOST_BYTES &&
           (double)rounds * kernel->bytes <= machine->launch * machine->clock * BYTES_OF_A_CYCLE;
}

/* Of the level, all kernels read the value, and maybe some of later ones; those are loops over rows, in one launch. Its tiles, or 0. */
static int64_t tiles_reading(const Program *program, const Node *value, int level) {
    int readers = 0, longs = 0;
    int64_t tiles = 0;
    for (int i = 0; i < program->kernels.count; i++) {
        const Kernel *kernel = program->kernels.at[i];
        if (kernel->phase == level && !kernel_reads(kernel, value))
            return 0;
        if (kernel->phase == level && (kernel->cls != KERNEL_LOOP || kernel->held))
            return 0;
        readers += kernel->phase == level;
        longs += kernel->phase == level && kernel_is_long(kernel, program->machine);
        tiles += kernel->phase == level ? kernel->tiles : 0;
    }
    return readers > 1 && longs ? 0 : tiles;
}

/* By no more blocks than are at work at a time. */
static bool may_be_in_each(const Program *program, const Kernel *kernel) {
    if (!kernel || !is_inner_row(kernel))
        return false;
    const Machine *machine = program->machine;
    const int64_t blocks = tiles_reading(program, kernel->stores.at[0], kernel->phase + 1);
    return blocks > 0 && blocks <= machine->multiprocessors * (int64_t)machine->most_blocks &&
           is_short_row(kernel, blocks, machine);
}

/* Where one token is decoded, a launch takes longer than such a row does. */
static int join_short_rows(Program *program, int levels) {
    for (int level = 0; level + 1 < levels; level++) {
        Kernel *kernel = only_kernel(program, level);
        if (!may_be_in_each(program, kernel))
            continue;
        for (int i = 0; i < program->kernels.count; i++)
            program->kernels.at[i]->phase -= program->kernels.at[i]->phase > level;
        kernel->in_each = true;
        levels--;
    }
    return levels;
}

static void join_rows(Program *program) {
    for (int i = 0; i < program->kernels.count; i++)
        kernel_join_rows(program->kernels.at[i], program->machine);
}

/* Where some follow others, there are fewer. */
static int find_levels(Program *program) {
    int levels = assign_levels(program);
    if (find_followers(program))
        levels = assign_levels(program);
    return put_first_what_lasts(program, levels);
}

static void make_phases(Program *program) {
    int levels = find_levels(program);
    if (program->machine->blocks && program->graph == program->graph->module->decode) {
        join_rows(program);
        levels = join_short_rows(program, levels);
    }
    program->phases.count = 0;
    for (int level = 0; level < levels; level++) {
        Phase phase = {0};
        for (int i = 0; i < program->kernels.count; i++)
            if (program->kernels.at[i]->phase == level)
                VEC_PUSH(program->arena, &phase.kernels, program->kernels.at[i]);
        balance(&phase, program->machine);
        put_in_order(&phase, program->machine);
        VEC_PUSH(program->arena, &program->phases, phase);
    }
}

/* One of so many taps of a window is no zero: tensor cores leave those of a spread image out. */
static int taps_for_each(const Kernel *kernel) {
    const bool leaves_out = kernel->tile.warps_m && kernel->a.kind == OPERAND_WINDOW;
    const Sweep *sweep = leaves_out ? kernel->a.view->attr.sweep : NULL;
    return sweep ? (int)(sweep[0].spread * sweep[1].spread) : 1;
}

/* What a multiprocessor has at a time of a loop's blocks: some wait for memory while others work. What of a product's tile is waiting, its
 * cost says. */
static int done_at_once(const Kernel *kernel, const Machine *machine) {
    return kernel->cls == KERNEL_LOOP ? machine->resident : taps_for_each(kernel);
}

static double seconds_of_blocks(const Kernel *kernel, const Machine *machine) {
    double all = kernel_seconds(kernel, machine) / done_at_once(kernel, machine),
           one = kernel->cls == KERNEL_LOOP ? kernel_tile_seconds(kernel, machine) : 0;
    return all > one ? all : one;
}

/* With those that follow it. */
static double seconds_with_followers(const Phase *phase, const Kernel *kernel, const Machine *machine) {
    double all = seconds_of_blocks(kernel, machine);
    for (int i = 0; i < phase->kernels.count; i++)
        if (phase->kernels.at[i]->leader == kernel)
            all += kernel_tile_seconds(phase->kernels.at[i], machine);
    return all;
}

/* As long as its longest kernel, or as all tiles dealt to the blocks, or as its arithmetic and traffic. */
static double phase_seconds(const Phase *phase, const Machine *machine) {
    double longest = 0, dealt = 0, traffic = 0, arithmetic = 0;
    for (int i = 0; i < phase->kernels.count; i++) {
        const Kernel *kernel = phase->kernels.at[i];
        double own = kernel->leader ? 0 : seconds_with_followers(phase, kernel, machine);
        longest = own > longest ? own : longest;
        dealt += kernel_dealt_seconds(kernel, machine) / done_at_once(kernel, machine);
        traffic += kernel->bytes / machine->bandwidth;
        arithmetic += kernel_arithmetic(kernel, machine) / taps_for_each(kernel);
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

/* Each long kernel is one, and the others together one more. */
static int launches_of(const Phase *phase, const Machine *machine) {
    int launches = 0, others = 0;
    for (int i = 0; i < phase->kernels.count; i++) {
        const bool is_long = kernel_is_long(phase->kernels.at[i], machine);
        launches += !phase->kernels.at[i]->leader && is_long;
        others += !phase->kernels.at[i]->leader && !is_long;
    }
    return launches + (others > 0);
}

/* `whole`: what the launches of a graph run on. A persistent launch has one block on each multiprocessor. */
static void estimate(Program *program, const Machine *whole) {
    Machine persistent = *program->machine;
    persistent.resident = 1;
    program->estimate[SCHEDULE_GRAPH] = 0;
    program->estimate[SCHEDULE_PERSISTENT] = program->phases.count * machine_barrier(program->machine, program->grid);
    for (int i = 0; i < program->phases.count; i++) {
        const Phase *phase = &program->phases.at[i];
        program->estimate[SCHEDULE_GRAPH] += phase_seconds(phase, whole) + launches_of(phase, whole) * whole->launch;
        program->estimate[SCHEDULE_PERSISTENT] += phase_seconds(phase, &persistent);
    }
}

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static void cut_for(Program *program, const Machine *machine, const Machine *whole) {
    program->machine = machine;
    for (int i = 0; i < program->kernels.count; i++) {
        program->kernels.at[i]->leader = NULL;
        kernel_cut(program->kernels.at[i], machine);
        kernel_hold_row(program->arena, program->kernels.at[i], machine);
    }
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
            bytes += (type_bytes(&n->type) + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
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

/* A product's thread has no registers for anything beside its sums: compiled together with other phases, it would not even have these. */
static bool has_large_tiles(const Program *program) {
    for (int k = 0; k < program->kernels.count; k++) {
        const Kernel *kernel = program->kernels.at[k];
        if (kernel->cls == KERNEL_CONTRACT && kernel->tile.tm * kernel->tile.tn >= LARGE_OUTPUTS)
            return true;
    }
    return false;
}

/* The persistent kernel holds the registers and shared memory of its hungriest phase on every multiprocessor; it is for
 * steps whose phases are a few waves of small tiles. */
static bool is_tiny(const Program *program) {
    return !has_calls(program) && !has_large_tiles(program) &&
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
    bool can = form == FORM_SOLO ? solo : form != FORM_CLUSTER || program->machine->cluster;
    return trains && program->machine->blocks && can;
}

/* The tiles are those of the fastest schedule and form, whichever runs, so that all schedules compute the same bits, but for
 * products that have k in parts. Only training runs in a form of its own. */
static void choose_form(Program *program) {
    const Machine *whole = program->machine, *best = whole;
    cut_for(program, whole, whole);
    if (program->graph->module->shards)
        return;
    double least = program->estimate[SCHEDULE_GRAPH];
    for (int form = FORM_GRID; form < FORMS; form++) {
        if (form != FORM_GRID && !fits_form(program, form))
            continue;
        Machine *machine = NEW(program->arena, Machine);
        *machine = machine_in_form(whole, form);
        cut_for(program, machine, whole);
        if (!is_tiny(program))
            break;
        bool faster = program->estimate[SCHEDULE_PERSISTENT] < least;
        best = faster ? machine : best;
        least = faster ? program->estimate[SCHEDULE_PERSISTENT] : least;
    }
    cut_for(program, best, whole);
}

static const char *why_not_faster(const Program *program, Schedule wanted) {
    if (wanted != SCHEDULE_AUTO)
        return "which --schedule decided against";
    if (program->graph->module->shards)
        return "but what the shards of a batch add up comes between its steps";
    if (has_calls(program))
        return "but functions of the library take the shared memory that a persistent kernel keeps for all its phases";
    if (has_large_tiles(program))
        return "but threads of its products hold so many sums that they need all registers, and a persistent kernel "
               "has other phases too";
    return arena_printf(program->arena,
                        "but a phase has %s tiles, and a persistent kernel, which has the registers and shared memory "
                        "of its hungriest phase throughout, is for steps of small ones",
                        text_grouped(program->arena, widest_phase(program)));
}

void schedule(Program *program, Schedule wanted) {
    choose_form(program);
    bool faster = program->estimate[SCHEDULE_PERSISTENT] < program->estimate[SCHEDULE_GRAPH];
    const Schedule best = faster ? SCHEDULE_PERSISTENT : SCHEDULE_GRAPH;
    const bool may_stay = is_tiny(program) && !program->graph->module->shards;
    program->schedule = wanted != SCHEDULE_AUTO ? wanted : may_stay ? best : SCHEDULE_GRAPH;
    program->despite = program->schedule == best ? NULL : why_not_faster(program, wanted);
    fill_buckets(program);
}
