#include "emit/cuda/launches.h"

#include "emit/cuda/ahead.h"
#include "emit/cuda/product.h"
#include "emit/kernel/function.h"
#include "emit/kernel/table.h"
#include "pass/cost.h"
#include "pass/tile.h"

/* ---- which kernels are launched together ---- */

static Launch *add_launch(Emitter *e, const Program *program, int phase, int beside) {
    const char *name = arena_printf(e->arena, "%s_%d", program->prefix, phase + 1);
    name = beside ? arena_printf(e->arena, "%s_beside_%d", name, beside) : name;
    const Launch launch = {
        .program = program, .phase = phase, .beside = beside, .name = name, .like = e->launches.count};
    VEC_PUSH(e->arena, &e->launches, launch);
    return &e->launches.at[launch.like];
}

static void add_kernel(Emitter *e, Launch *launch, Kernel *kernel) {
    VEC_PUSH(e->arena, &launch->kernels.kernels, kernel);
    launch->kernels.tiles += kernel->tiles;
}

/* The launch of the phase, from row `first` on, of the same function; NULL: there is none yet. */
static Launch *launch_with(Emitter *e, int first, const Kernel *kernel) {
    for (int k = first; k < e->launches.count; k++)
        if (written_function(e, e->launches.at[k].kernels.kernels.at[0]) == written_function(e, kernel))
            return &e->launches.at[k];
    return NULL;
}

/* Kernels that are one function go together: what is long is said of the one that is written. */
static bool is_long(const Emitter *e, const Kernel *kernel, const Machine *machine) {
    return kernel_is_long(written_function(e, kernel)->kernel, machine);
}

/* In a graph, the phase's long kernels are launches of their own, those of one function together, and the others one more;
 * in a persistent kernel there is only one. Products in turns have blocks of their own. */
static void add_phase(Emitter *e, const Program *program, int phase) {
    const Phase *all = &program->phases.at[phase];
    Launch rest = {0};
    int count = 0, first = e->launches.count;
    Kernel *row = NULL;
    for (int k = 0; k < all->kernels.count; k++) {
        Kernel *kernel = all->kernels.at[k];
        row = kernel->in_each ? kernel : row;
        if (!kernel_has_tiles(kernel))
            continue;
        bool turns = takes_turns(e, kernel);
        bool alone = turns || in_cluster(e, kernel) ||
                     (!program_is_persistent(e, program) && is_long(e, kernel, program->machine));
        Launch *same = turns ? NULL : alone ? launch_with(e, first, kernel) : &rest;
        add_kernel(e, same ? same : add_launch(e, program, phase, count++), kernel);
    }
    if (rest.kernels.kernels.count)
        add_launch(e, program, phase, count)->kernels = rest.kernels;
    e->launches.at[first].row = row;
}

static bool same_followers(const Launch *a, const Launch *b) {
    bool same = same_groups(&a->behind, &b->behind);
    for (int k = 0; k < a->leads.count && same; k++)
        same = a->leads.at[k] == b->leads.at[k];
    return same;
}

/* A persistent kernel has all its tensors at hand. */
static bool may_be_like(const Emitter *e, const Launch *launch, const Launch *other) {
    return other->like == other - e->launches.at && !launch->beside == !other->beside &&
           !program_is_persistent(e, launch->program) && !program_is_persistent(e, other->program) &&
           same_groups(&launch->groups, &other->groups) && same_groups(&launch->before, &other->before) &&
           same_followers(launch, other);
}

static Groups groups_before(Emitter *e, const Launch *launch) {
    Phase alone = {0};
    if (!launch->row)
        return (Groups){0};
    VEC_PUSH(e->arena, &alone.kernels, launch->row);
    return groups_of(e, &alone);
}

static bool leads(const Phase *phase, const Kernel *kernel) {
    for (int k = 0; k < phase->kernels.count; k++)
        if (phase->kernels.at[k]->leader == kernel)
            return true;
    return false;
}

static Group group_of(const Emitter *e, const Kernel *kernel) {
    return (Group){written_function(e, kernel), function_of(e, kernel)->place, 1};
}

static void add_followers(Emitter *e, const Phase *phase, const Kernel *leader, Launch *launch) {
    for (int k = 0; k < phase->kernels.count; k++)
        if (phase->kernels.at[k]->leader == leader) {
            VEC_PUSH(e->arena, &launch->behind, group_of(e, phase->kernels.at[k]));
            VEC_PUSH(e->arena, &launch->leads, launch->groups.count);
        }
}

/* Kernels that others follow are a group each. */
static void find_groups(Emitter *e, Launch *launch) {
    const Phase *phase = &launch->program->phases.at[launch->phase];
    Phase others = {0};
    for (int k = 0; k < launch->kernels.kernels.count; k++) {
        Kernel *kernel = launch->kernels.kernels.at[k];
        if (!leads(phase, kernel)) {
            VEC_PUSH(e->arena, &others.kernels, kernel);
            continue;
        }
        add_followers(e, phase, kernel, launch);
        VEC_PUSH(e->arena, &launch->groups, group_of(e, kernel));
    }
    const Groups rest = groups_of(e, &others);
    for (int g = 0; g < rest.count; g++)
        VEC_PUSH(e->arena, &launch->groups, rest.at[g]);
}

static void add_launches(Emitter *e) {
    for (int p = 0; p < e->plan->program_count; p++)
        for (int phase = 0; phase < e->programs[p]->phases.count; phase++)
            add_phase(e, e->programs[p], phase);
    for (int k = 0; k < e->launches.count; k++) {
        Launch *launch = &e->launches.at[k];
        find_groups(e, launch);
        launch->before = groups_before(e, launch);
        launch->ahead = launch->row || brings_weights(e, launch);
        for (int other = 0; other < k && launch->like == k; other++)
            if (may_be_like(e, launch, &e->launches.at[other]))
                launch->like = other;
        launch->again = e->launches.at[launch->like].times++;
    }
}

/* ---- launches with lines of their own ---- */

/* Those that need a table of their first places: those of some group do not lie evenly. */
static bool has_places(const Emitter *e, const Launch *launch) {
    for (int g = 0; g < all_groups(launch); g++)
        if (group_at(launch, g)->function->places > 1 && !walk_of(e, launch, g).even)
            return true;
    return false;
}

/* For each time that the launch is made, the first place of each group. Returns how the rows are called. */
static const char *write_first_places(Emitter *e, const Launch *launch, Writer *out) {
    RowTable table = {.arena = e->arena};
    for (int k = 0; k < e->launches.count; k++) {
        const Launch *at = &e->launches.at[k];
        if (&e->launches.at[at->like] != launch)
            continue;
        table_row(&table, at->name);
        for (int g = 0; g < all_groups(at); g++)
            table_number(&table, NULL, group_at(at, g)->first);
    }
    const RunTable as = {"__constant__", "unsigned short", arena_printf(e->arena, "%s_places", launch->name),
                         all_groups(launch)};
    return write_runs(&table, &as, out);
}

/* ---- which kernels it is of, and at which places ---- */

/* "AtEach<h, 12, 0, 12, 36>": at twelve places from 0 on, the next time from 12 on ... */
static const char *at_each_place(Emitter *e, const Launch *launch, int group) {
    const Group *g = group_at(launch, group);
    Text text = TEXT(e->arena);
    text_printf(&text, "AtEach<%s, %d", g->function->name, g->count);
    for (int k = 0; k < e->launches.count; k++)
        if (&e->launches.at[e->launches.at[k].like] == launch)
            text_printf(&text, ", %d", group_at(&e->launches.at[k], group)->first);
    text_putc(&text, '>');
    return text_string(&text);
}

/* "h"; "At<h, 4, 1, 2>" at two places from 4 on, the next time from 5 on. */
static const char *kernel_of(Emitter *e, const Launch *launch, int group) {
    const Group *g = group_at(launch, group);
    const Walk walk = walk_of(e, launch, group);
    if (g->function->places == 1 || (walk.even && g->count == 1 && walk.first == 0 && walk.step == 1))
        return g->function->name;
    if (!walk.even)
        return at_each_place(e, launch, group);
    const char *count = g->count > 1 ? arena_printf(e->arena, ", %d", g->count) : "";
    return arena_printf(e->arena, "At<%s, %d, %d%s>", g->function->name, walk.first, walk.step, count);
}

/* "Followed<h, ln>": those that follow it behind its tiles. */
static const char *with_followers(Emitter *e, const Launch *launch, int group) {
    const int first = launch->groups.count + launch->before.count;
    Text list = TEXT(e->arena);
    for (int k = 0; k < launch->leads.count; k++)
        if (launch->leads.at[k] == group)
            text_printf(&list, ", %s", kernel_of(e, launch, first + k));
    const char *kernel = kernel_of(e, launch, group);
    return list.length ? arena_printf(e->arena, "Followed<%s%s>", kernel, text_string(&list)) : kernel;
}

/* It is called what its kernel is: that is all that there is to say. */
static bool is_kernel(Emitter *e, const Launch *launch) {
    return launch->groups.count == 1 && !launch->behind.count &&
           text_same(kernel_of(e, launch, 0), launch->groups.at[0].function->name);
}

static const char *kernels_of(Emitter *e, const Launch *launch) {
    Text list = TEXT(e->arena);
    for (int g = 0; g < launch->groups.count; g++)
        text_printf(&list, "%s%s", g ? ", " : "", with_followers(e, launch, g));
    return launch->ahead ? launch->name : text_string(&list);
}

/* ---- the step ---- */

static bool in_turns(Emitter *e, const Launch *launch) {
    return takes_turns(e, launch->kernels.kernels.at[0]);
}

/* What a thread of columns holds: its sums, as many numbers of all that it reads, and where that lies. */
static int column_registers(const Kernel *kernel) {
    int sums = 0;
    for (int i = 0; i < kernel->stages.count; i++)
        sums += kernel->stages.at[i].reduces.count;
    return kernel->lanes * (sums + kernel->loads.count) + 24;
}

/* Blocks that a multiprocessor gets of a launch of columns and nothing else, whose threads mostly wait for memory: they take more lanes than
 * others, or none has another block beside it. 0: it is none, or of more blocks than there are registers for. */
static int reading_blocks(const Emitter *e, const Launch *launch) {
    enum { REGISTERS = 65536 };
    const Machine *machine = launch->program->machine;
    int64_t blocks = (launch->kernels.tiles + machine->multiprocessors - 1) / machine->multiprocessors;
    int64_t most = machine->most_blocks;
    for (int g = 0; g < launch->groups.count; g++) {
        const Kernel *kernel = launch->groups.at[g].function->kernel;
        if (kernel->cls != KERNEL_LOOP || kernel->team != TEAM_COLUMN || (kernel->lanes <= PACK_FLOATS && blocks > 1))
            return 0;
        int64_t room = REGISTERS / (THREADS * column_registers(kernel));
        most = room < most ? room : most;
    }
    return blocks <= most && !program_is_persistent(e, launch->program) ? (int)blocks : 0;
}

/* Products of two terms, of which a multiprocessor has memory for two blocks: left alone, nvcc gives threads that have so much to hold the
 * registers of both. */
static bool are_shared_by_two(const Emitter *e, const Launch *launch) {
    const Machine *machine = launch->program->machine;
    for (int k = 0; k < launch->kernels.kernels.count; k++) {
        const Kernel *kernel = launch->kernels.kernels.at[k];
        const Tile *tile = &kernel->tile;
        int terms = kernel->cls == KERNEL_CONTRACT ? math_info[kernel->math].terms : 1;
        if (terms == 1 ||
            2 * tensor_tile_shared(tile->m, tile->n, tile->stages, terms) >= machine->multiprocessor_memory)
            return false;
    }
    return !program_is_persistent(e, launch->program);
}

/* Of long slices of products of floats the blocks that a multiprocessor has memory for, or its share of the tiles: left alone, nvcc may give
 * threads the registers of more blocks, and spill what they lack. 0: they are others, or more, and have few registers in any case. */
static int slicing_blocks(const Emitter *e, const Launch *launch) {
    enum { MOST_SLICING = 2 };
    const Machine *machine = launch->program->machine;
    int64_t blocks = (launch->kernels.tiles + machine->multiprocessors - 1) / machine->multiprocessors;
    for (int k = 0; k < launch->kernels.kernels.count; k++) {
        const Kernel *kernel = launch->kernels.kernels.at[k];
        if (kernel->cls != KERNEL_CONTRACT || kernel->math != MATH_FP32 || kernel->batches == 1 ||
            !kernel_is_long(kernel, machine))
            return 0;
        int64_t room = machine->multiprocessor_memory / tile_bytes(kernel, &kernel->tile);
        blocks = room < blocks ? room : blocks;
    }
    return blocks <= MOST_SLICING && !program_is_persistent(e, launch->program) ? (int)blocks : 0;
}

/* A long product of floats whose tiles all fit on the machine at a time, more of them on a multiprocessor than are its share. */
static bool may_crowd(const Emitter *e, const Launch *launch) {
    static const double long_tiles = 1e-4;
    const Machine *machine = launch->program->machine;
    const Kernel *kernel = launch->kernels.kernels.at[0];
    if (launch->kernels.kernels.count > 1 || kernel->cls != KERNEL_CONTRACT || kernel->math != MATH_FP32 ||
        kernel_seconds(kernel, machine) < long_tiles || program_is_persistent(e, launch->program))
        return false;
    int64_t share = (kernel->tiles + machine->multiprocessors - 1) / machine->multiprocessors;
    return (share + 1) * tile_bytes(kernel, &kernel->tile) <= machine->multiprocessor_memory &&
           share <= machine->resident;
}

/* Of a product by squares of outputs, whose threads have half of their registers for sums. */
static bool has_squares(const Launch *launch) {
    const Kernel *kernel = launch->kernels.kernels.at[0];
    return launch->kernels.kernels.count == 1 && kernel->cls == KERNEL_CONTRACT && kernel->tile.squares;
}

/* What its type is within: "InTurns<" and ">"; "": nothing. */
typedef struct Wrapper {
    const char *before, *after;
} Wrapper;

static Wrapper wrapper_of_sharers(Emitter *e, int blocks, bool late) {
    return (Wrapper){arena_printf(e->arena, "%sSharing<%d, ", late ? "Late<" : "", blocks), late ? ">>" : ">"};
}

static Wrapper wrapper(Emitter *e, const Launch *launch) {
    const int reading = reading_blocks(e, launch), slicing = slicing_blocks(e, launch);
    const Kernel *first = launch->kernels.kernels.at[0];
    if (in_cluster(e, first))
        return (Wrapper){arena_printf(e->arena, "InCluster<%d, ", first->cluster), ">"};
    if (has_squares(launch))
        return (Wrapper){"OfSums<", ">"};
    if (in_turns(e, launch))
        return (Wrapper){"InTurns<", ">"};
    if (are_shared_by_two(e, launch))
        return wrapper_of_sharers(e, 2, false);
    if (slicing)
        return wrapper_of_sharers(e, slicing, may_crowd(e, launch));
    if (may_crowd(e, launch))
        return (Wrapper){"Late<", ">"};
    return reading ? (Wrapper){arena_printf(e->arena, "Reading<%d, ", reading), ">"} : (Wrapper){"", ""};
}

/* None before it in its program is like it. */
static bool first_of_program(const Emitter *e, const Launch *launch) {
    for (const Launch *other = launch - 1; other >= e->launches.at && other->program == launch->program; other--)
        if (other->like == launch->like)
            return false;
    return true;
}

/* "InTurns<Phase<h>>", "Beside<h_2, At<logits, 1, 0>>" */
static const char *written_type(Emitter *e, const Launch *launch) {
    const Wrapper around = wrapper(e, launch);
    return arena_printf(e->arena, "%s%s<%s>%s", around.before, launch->beside ? "Beside" : "Phase",
                        kernels_of(e, launch), around.after);
}

/* It has a name for its type. */
static bool has_name(Emitter *e, const Launch *launch) {
    return !launch->ahead && !is_kernel(e, launch);
}

/* "train_9"; "Again<train_9, 12>" where other programs made it before this one does. */
static const char *launch_type(Emitter *e, const Launch *launch) {
    const Launch *like = &e->launches.at[launch->like];
    const char *type = has_name(e, like) ? like->name : written_type(e, like);
    return launch->again && first_of_program(e, launch) ? arena_printf(e->arena, "Again<%s, %d>", type, launch->again)
                                                        : type;
}

/* The first `period` of `count` launches come `times` times, one after the other. */
typedef struct Cycle {
    int period, times;
} Cycle;

static bool same_type(const Emitter *e, int a, int b) {
    const Launch *first = &e->launches.at[a], *second = &e->launches.at[b];
    return first->like == second->like && !(first->again && first_of_program(e, first));
}

/* Of the launches from row `first` on, before row `end`: the cycle that takes most of them out of the list. */
static Cycle cycle_at(const Emitter *e, int first, int end) {
    Cycle best = {1, 1};
    for (int period = 1; first + 2 * period <= end; period++) {
        int again = 0;
        while (first + period + again < end && same_type(e, first + again, first + period + again))
            again++;
        const Cycle cycle = {period, again / period + 1};
        if ((cycle.times - 1) * period > (best.times - 1) * best.period)
            best = cycle;
    }
    return best;
}

/* "Times<11, train_2, Phase<h>>" */
static const char *cycle_type(Emitter *e, int first, Cycle cycle) {
    Text list = TEXT(e->arena);
    for (int k = 0; k < cycle.period; k++)
        text_printf(&list, "%s%s", k ? ", " : "", launch_type(e, &e->launches.at[first + k]));
    const char *all = text_string(&list);
    return cycle.times > 1 ? arena_printf(e->arena, "Times<%d, %s>", cycle.times, all) : all;
}

/* Where the batch has shards, all but its update see one of them. */
static const char *step_of(const Emitter *e, int launch) {
    const Module *module = e->module;
    const bool updates = e->launches.at[launch].program->graph == module->update;
    return !module->shards ? "Step<Tensors, BATCH"
           : updates       ? "Step<Tensors, WHOLE_BATCH"
                           : "ShardStep<Tensors, BATCH, WHOLE_BATCH";
}

/* "using Train = Step<...>;" of launches first .. end - 1. */
static void write_step_type(Emitter *e, const char *prefix, int first, int end, Writer *out) {
    Text list = TEXT(e->arena);
    for (int k = first; k < end;) {
        const Cycle cycle = cycle_at(e, k, end);
        text_printf(&list, ", %s", cycle_type(e, k, cycle));
        k += cycle.period * cycle.times;
    }
    write_line(out, "using %c%s = %s, REPORTS%s>;", *names_upper(e->arena, prefix), prefix + 1, step_of(e, first),
               text_string(&list));
}

/* ": 128 tiles"; of functions of the library only they know how many. */
static const char *tiles_note(Emitter *e, const Launch *launch) {
    for (int k = 0; k < launch->kernels.kernels.count; k++)
        if (launch->kernels.kernels.at[k]->cls == KERNEL_CALL)
            return "";
    return arena_printf(e->arena, ": %s", tile_text(e->arena, launch->kernels.tiles));
}

static void write_launch_remark(Emitter *e, const Launch *launch, Writer *out) {
    const char *times = launch->times > 1 ? arena_printf(e->arena, ", launched %d times", launch->times) : "";
    write_remark(out, "phase %d of %d%s%s%s", launch->phase + 1, launch->program->phases.count,
                 launch->beside ? ", beside" : "", tiles_note(e, launch), times);
}

/* Types that have names stand together, each a line or a few. */
static void write_launch(Emitter *e, const Launch *launch, Writer *types, Writer *out) {
    if (launch->ahead) {
        write_launch_remark(e, launch, out);
        write_launch_ahead(e, launch, has_places(e, launch) ? write_first_places(e, launch, out) : NULL, out);
        write_blank(out);
    } else if (has_name(e, launch)) {
        write_line(types, "using %s = %s;", launch->name, written_type(e, launch));
    }
}

void write_launches(Emitter *e, const Program *program, Writer *out) {
    Writer types = writer_like(out);
    int first = 0, end;
    if (!e->launches.count)
        add_launches(e);
    while (e->launches.at[first].program != program)
        first++;
    for (end = first; end < e->launches.count && e->launches.at[end].program == program; end++)
        if (e->launches.at[end].like == end)
            write_launch(e, &e->launches.at[end], &types, out);
    write_all(out, &types);
    if (types.lines.count)
        write_blank(out);
    write_step_type(e, program->prefix, first, end, out);
}

bool launches_say_rows(Emitter *e) {
    for (int k = 0; k < e->launches.count; k++)
        for (int g = 0; g < all_groups(&e->launches.at[k]); g++)
            if (!text_same(kernel_of(e, &e->launches.at[k], g), group_at(&e->launches.at[k], g)->function->name))
                return true;
    return false;
}

int launches_that_last(const Emitter *e, const Program *program) {
    int count = 0;
    for (int k = 0; k < e->launches.count; k++)
        count += e->launches.at[k].program == program && e->launches.at[k].phase < program->once;
    return count;
}

/* ---- kernels, one by one ---- */

/* The kernel at a place of a group of the launch. */
static const Kernel *kernel_at(const Emitter *e, const Launch *launch, const Function *written, int place) {
    for (int k = 0; k < launch->kernels.kernels.count; k++) {
        const Function *own = function_of(e, launch->kernels.kernels.at[k]);
        if (&e->functions.at[own->like] == written && own->place == place)
            return own->kernel;
    }
    ICE("%s has no place %d of %s", launch->name, place, written->name);
}

void kernels_in_launches(Emitter *e, const Program *program, KernelsInOrder *kernels) {
    for (int k = 0; k < e->launches.count; k++) {
        const Launch *launch = &e->launches.at[k];
        for (int g = 0; launch->program == program && g < launch->groups.count; g++)
            for (int n = 0; n < launch->groups.at[g].count; n++) {
                const Group *group = &launch->groups.at[g];
                VEC_PUSH(e->arena, kernels, kernel_at(e, launch, group->function, group->first + n));
            }
    }
}
