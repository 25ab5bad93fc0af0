/* How kernels are cut into tiles. On a GPU, a block has 256 threads and a tile is one block's work; on a CPU, it is one
 * thread's. Of the tiles that a product can have, the one that is fastest by cost.c. */
#include "pass/tile.h"

#include "pass/cost.h"
#include "pass/suit.h"

#include <math.h>

enum { COLUMN_ROWS = 32, WARP_FLOATS = 1024, DEEPEST_COLUMN = 32 };

#define COUNT(array) (int)(sizeof(array) / sizeof *(array))

/* {m, n, k, outputs of a thread, slices of k} */
#define TILE(m_, n_, k_, tm_, tn_, slices_)                                                                            \
    { .m = (m_), .n = (n_), .k = (k_), .tm = (tm_), .tn = (tn_), .slices = (slices_) }

static const Tile tiles[] = {
    TILE(256, 128, 16, 16, 8, 1), TILE(128, 128, 32, 8, 8, 1), TILE(128, 128, 16, 8, 8, 1), TILE(96, 128, 32, 6, 8, 1),
    TILE(64, 192, 32, 8, 6, 1),   TILE(64, 192, 16, 8, 6, 1),  TILE(128, 64, 32, 16, 8, 4), TILE(128, 64, 32, 8, 4, 1),
    TILE(128, 64, 16, 8, 4, 1),   TILE(64, 64, 32, 8, 4, 2),   TILE(64, 64, 16, 4, 4, 1),   TILE(32, 64, 32, 4, 4, 2),
    TILE(32, 32, 64, 4, 4, 4),    TILE(16, 64, 64, 4, 4, 4),   TILE(256, 8, 16, 4, 2, 1),   TILE(128, 16, 16, 4, 2, 1),
    TILE(128, 32, 16, 4, 4, 1),   TILE(128, 8, 48, 4, 4, 4),   TILE(64, 16, 64, 4, 4, 4),   TILE(32, 16, 64, 4, 2, 4),
    TILE(16, 32, 64, 4, 4, 8),    TILE(16, 16, 256, 4, 4, 16), TILE(16, 4, 64, 4, 4, 64),   TILE(8, 4, 64, 4, 4, 128),
    TILE(8, 16, 1, 8, 16, 256),
};

/* Of squares of outputs; of each of two products, a thread has 8 squares by 8 columns. */
static const Tile square_tile = {.m = SQUARES * SQUARE_OUTPUTS,
                                 .n = SQUARE_COLUMNS,
                                 .k = SQUARE_DEPTH,
                                 .tm = 8,
                                 .tn = 8,
                                 .slices = 1,
                                 .squares = true};

/* Where blocks are few, or memory is near: a panel that holds all of k; an output for each thread, or for a few lanes. */
static const Tile small_tiles[] = {
    TILE(16, 16, 128, 2, 2, 4), TILE(8, 8, 256, 2, 2, 16), TILE(16, 16, 1, 1, 1, 1), TILE(8, 8, 1, 1, 1, 4),
    TILE(1, 32, 1, 1, 1, 8),    TILE(4, 4, 1, 1, 1, 16),   TILE(1, 16, 1, 1, 1, 16),
};

/* On tensor cores: {m, n, how the 8 warps share the tile, panels under way}; a panel's lines have 128 bytes. With three panels
 * of 128 x 128, or two of 256 x 64, two blocks fit on a multiprocessor. */
#define TENSOR(m_, n_, k_, warps_m_, warps_n_, stages_)                                                                \
    {                                                                                                                  \
        .m = (m_), .n = (n_), .k = (k_), .slices = 1, .warps_m = (warps_m_), .warps_n = (warps_n_),                    \
        .stages = (stages_), .splits = 1                                                                               \
    }
/* In turns: one group multiplies 128 x 128 while the other writes out its own. */
#define TURNS(k_, stages_)                                                                                             \
    { .m = 128, .n = 128, .k = (k_), .slices = 1, .warps_m = 2, .warps_n = 4, .stages = (stages_), .turns = true }
#define TENSOR_TILES(k)                                                                                                \
    TENSOR(128, 256, k, 2, 4, 4), TENSOR(256, 128, k, 4, 2, 4), TENSOR(128, 192, k, 2, 4, 4),                          \
        TENSOR(128, 128, k, 2, 4, 3), TENSOR(256, 64, k, 4, 2, 2), TENSOR(64, 256, k, 2, 4, 4),                        \
        TENSOR(128, 64, k, 4, 2, 4), TENSOR(64, 128, k, 2, 4, 4), TENSOR(64, 64, k, 4, 2, 4)

/* Of few rows: each warp has 16 columns. */
#define FEW(m_, n_)                                                                                                    \
    {                                                                                                                  \
        .m = (m_), .n = (n_), .k = FEW_STEP, .slices = WARPS / ((n_) / 16), .warps_m = 1, .warps_n = (n_) / 16,        \
        .stages = FEW_STAGES, .few = true                                                                              \
    }
#define FEW_TILES(m) FEW(m, 16), FEW(m, 32), FEW(m, 64), FEW(m, 128)

/* Of a filter's gradient: where there are no groups of warps, or no room, they share it as any other. */
#define TAPS_TILE(k_)                                                                                                  \
    {                                                                                                                  \
        .m = TAP_CHANNELS, .n = TAPS * TAP_CHANNELS, .k = (k_), .slices = 1, .warps_m = 2, .warps_n = 4,               \
        .stages = TAP_STAGES, .taps = true                                                                             \
    }

static const Tile narrow_tiles[] = {TURNS(64, 6),  TENSOR_TILES(64), FEW_TILES(16),
                                    FEW_TILES(32), FEW_TILES(64),    TAPS_TILE(64)},
                  tf32_tiles[] = {TENSOR_TILES(32), TAPS_TILE(32)},
                  integer_tiles[] = {TURNS(128, 6), TENSOR_TILES(128)};

/* Threads have the sums of a panel beside those of all. */
static const Tile float8_tiles[] = {TURNS(128, 6), TENSOR(128, 128, 128, 2, 4, 3), TENSOR(128, 64, 128, 4, 2, 4),
                                    TENSOR(64, 128, 128, 2, 4, 4), TENSOR(64, 64, 128, 4, 2, 4)};

/* Of two terms: threads have the terms of their lines and the sums of a panel beside those of all. */
static const Tile tf32x3_tiles[] = {TENSOR(128, 128, 32, 2, 4, 4), TENSOR(64, 256, 32, 2, 4, 3),
                                    TENSOR(128, 64, 32, 4, 2, 3), TENSOR(64, 128, 32, 2, 4, 3)};

/* Multiples of the rows and columns that sums have room for in kernels_lib/cpu/matmul.h. */
enum { CORE_ROWS = 8, CORE_COLUMNS = 16 };

static const Tile core_tiles[] = {
    {.m = 256, .n = 64, .slices = 1}, {.m = 128, .n = 96, .slices = 1}, {.m = 128, .n = 64, .slices = 1},
    {.m = 128, .n = 32, .slices = 1}, {.m = 128, .n = 16, .slices = 1}, {.m = 64, .n = 192, .slices = 1},
    {.m = 64, .n = 64, .slices = 1},  {.m = 64, .n = 32, .slices = 1},  {.m = 32, .n = 32, .slices = 1},
    {.m = 16, .n = 32, .slices = 1},  {.m = 8, .n = 16, .slices = 1}};

static int64_t divide_up(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

Feed product_feed(const Kernel *kernel) {
    return tile_feed(kernel, &kernel->tile);
}

static double tile_cycles(const Kernel *kernel, const Tile *tile, const Machine *machine) {
    Cost cost = tile_cost(kernel, tile, machine);
    return cost.waiting + cost.working;
}

static double waves(const Machine *machine, int64_t count) {
    return (double)divide_up(count, machine->multiprocessors);
}

static double product_cycles(const Kernel *kernel, const Tile *tile, const Machine *machine) {
    Cost cost = tile_cost(kernel, tile, machine);
    double count = waves(machine, tile_count(kernel, tile));
    return ceil(count / tile_resident(kernel, tile, machine)) * cost.waiting + count * cost.working;
}

/* Faster, or as fast with less hanging over the product's edges. */
static bool is_better(const Kernel *kernel, const Tile *a, const Tile *b, const Machine *machine) {
    double cycles_a = product_cycles(kernel, a, machine), cycles_b = product_cycles(kernel, b, machine);
    int64_t covered_a = tile_count(kernel, a) * a->m * a->n, covered_b = tile_count(kernel, b) * b->m * b->n;
    return cycles_a < cycles_b || (cycles_a == cycles_b && covered_a < covered_b);
}

/* Tile `i` of those that the kernel can have on the machine; NULL: there are no more. */
static const Tile *tile_choice(const Kernel *kernel, const Machine *machine, int i) {
    enum { LARGE = COUNT(tiles), SMALL = COUNT(small_tiles) };
    if (!machine->blocks)
        return i < COUNT(core_tiles) ? &core_tiles[i] : NULL;
    if (dtype_is_narrow(math_info[kernel->math].dtype))
        return i < COUNT(narrow_tiles) ? &narrow_tiles[i] : NULL;
    if (kernel->math == MATH_TF32)
        return i < COUNT(tf32_tiles) ? &tf32_tiles[i] : NULL;
    if (kernel->math == MATH_TF32X3)
        return i < COUNT(tf32x3_tiles) ? &tf32x3_tiles[i] : NULL;
    if (kernel->math == MATH_FP8)
        return i < COUNT(float8_tiles) ? &float8_tiles[i] : NULL;
    if (kernel->math == MATH_INT8)
        return i < COUNT(integer_tiles) ? &integer_tiles[i] : NULL;
    if (i <= LARGE)
        return i < LARGE ? &tiles[i] : &square_tile;
    return machine->form != FORM_GRID && i <= LARGE + SMALL ? &small_tiles[i - LARGE - 1] : NULL;
}

/* Lines of a tile where as many tiles have as many lines each: with a short last one, the threads that have others come later. */
static int even_size(int64_t extent, int tile, int multiple) {
    int64_t even = divide_up(extent, divide_up(extent, tile));
    return extent < tile ? tile : (int)(divide_up(even, multiple) * multiple);
}

static Tile even_tile(const Kernel *kernel, const Tile *tile, const Machine *machine) {
    Tile even = *tile;
    if (!machine->blocks) {
        even.m = even_size(kernel->m, tile->m, CORE_ROWS);
        even.n = even_size(kernel->n, tile->n, CORE_COLUMNS);
    }
    return even;
}

static void set_tile(Kernel *kernel, const Tile *tile, const Machine *machine) {
    kernel->tile = *tile;
    kernel->tiles = tile_count(kernel, tile);
    kernel->cluster = tile->splits > 1 ? tile->splits : 1;
    if (tile->warps_m && !tile->turns)
        kernel->tile.stages = tile_stages(kernel, tile, machine);
}

static bool is_spread(const Operand *operand) {
    return operand->kind == OPERAND_WINDOW &&
           (operand->view->attr.sweep[0].spread > 1 || operand->view->attr.sweep[1].spread > 1);
}

/* Blocks of a cluster may share k, in whole panels, where multiprocessors have no tile otherwise, and the kernel is a launch of its own.
 * Not k that runs over the batch, which has slices in memory (split.c); nor where sums of integers would become floats too early. */
static bool may_be_split(const Kernel *kernel, const Tile *tile, const Machine *machine) {
    bool floats = kernel->math == MATH_TF32 || dtype_is_narrow(math_info[kernel->math].dtype);
    bool alone = kernel->batches == 1 && !kernel->side && !kernel->fold_rows;
    return floats && alone && !kernel->a.transposed && !is_spread(&kernel->a) && machine->resident > 1 &&
           tile->splits <= machine->cluster && divide_up(kernel->k, tile->k) >= 2 * tile->splits &&
           tile_count(kernel, tile) <= machine->multiprocessors && kernel_is_long(kernel, machine);
}

/* The kernel's tile with k in parts, where that is faster. */
static void split_in_cluster(Kernel *kernel, const Machine *machine) {
    enum { MOST_SPLITS = 8 };
    const Kernel whole = *kernel;
    const Tile *tile;
    for (int i = 0; (tile = tile_choice(kernel, machine, i)); i++)
        for (int splits = 2; tile->splits && splits <= MOST_SPLITS; splits *= 2) {
            Tile parted = *tile;
            parted.splits = splits;
            if (tile_suits(&whole, &parted, machine) && may_be_split(&whole, &parted, machine) &&
                is_better(&whole, &parted, &kernel->tile, machine))
                set_tile(kernel, &parted, machine);
        }
}

static void cut_product(Kernel *kernel, const Machine *machine) {
    const Tile *tile;
    Tile best = {0};
    for (int i = 0; (tile = tile_choice(kernel, machine, i)); i++) {
        Tile even = even_tile(kernel, tile, machine);
        if (tile_suits(kernel, tile, machine) && (!best.m || is_better(kernel, &even, &best, machine)))
            best = even;
    }
    ENSURE(best.m);
    set_tile(kernel, &best, machine);
    split_in_cluster(kernel, machine);
    kernel->flops = 2.0 * (double)kernel->batches * (double)kernel->m * (double)kernel->n * (double)kernel->k;
}

/* Operations of one row: an element of a map or a reduction counts as one per node, of a product as 2k. */
static double row_work(const Kernel *kernel) {
    double work = 0;
    for (int i = 0; i < kernel->nodes.count; i++) {
        const Node *n = kernel->nodes.at[i];
        const Type *in = n->inputs ? &n->in[0]->type : &n->type;
        double elements = (double)type_elements(n->op->cls == OP_REDUCE ? in : &n->type);
        work += elements * (n->op->cls == OP_CONTRACT ? 2.0 * (double)in->dim[in->rank - 1] : 1);
    }
    return work / (double)kernel->rows;
}

static int64_t longest_stage(const Kernel *kernel) {
    int64_t longest = 1;
    for (int i = 0; i < kernel->stages.count; i++) {
        int64_t extent = type_elements(&kernel->stages.at[i].domain) / kernel->rows;
        longest = extent > longest ? extent : longest;
    }
    return longest;
}

/* Floats of a row's vectors. */
static int64_t row_memory(const Kernel *kernel) {
    int64_t floats = 0;
    for (int i = 0; i < kernel->stages.count; i++) {
        const Stage *stage = &kernel->stages.at[i];
        floats += stage->vectors.count * type_elements(&stage->domain) / kernel->rows;
    }
    return floats;
}

/* Threads that hide the time of their loads: half of what the multiprocessors hold. */
static int64_t threads_wanted(const Machine *machine) {
    return machine->threads / 2 * (int64_t)machine->multiprocessors;
}

/* In a grid, which has blocks for all rows: long enough to be read in packs, and several rows for each of its halves; or so short
 * that half of a warp would have nothing to do, and more than there are warps at a time. */
static bool are_for_halves_of_grid(const Kernel *kernel, const Machine *machine) {
    enum { HALF = LANES / 2 };
    int64_t extent = longest_stage(kernel), warps = machine->threads / LANES * (int64_t)machine->multiprocessors;
    bool packs = extent == PACK_FLOATS * HALF && kernel->rows > 4 * threads_wanted(machine) / HALF;
    return machine->blocks && !kernel_has_vectors(kernel) && (packs || (extent <= HALF && kernel->rows > warps));
}

/* More than the machine's blocks have warps, and no longer than half a warp is good for. Every half has a row. */
static bool are_short_and_many(const Kernel *kernel, const Machine *machine) {
    if (kernel->rows % (2 * WARPS))
        return false;
    if (machine->form == FORM_GRID)
        return are_for_halves_of_grid(kernel, machine);
    return kernel->rows > WARPS * (int64_t)machine->multiprocessors && longest_stage(kernel) <= 2 * LANES;
}

/* Few rows, long ones and those with much to keep get a block each, others a warp. Rows that are neighbours in memory,
 * because only slow axes are folded, go 32 to a block, so that a warp reads 32 neighbours. */
static Team choose_team(const Kernel *kernel, const Machine *machine) {
    int64_t extent = longest_stage(kernel);
    bool along_fast = kernel->full.rank > 0 && kernel->inner >> (kernel->full.rank - 1) & 1;
    if (extent == 1 && !kernel_has_vectors(kernel))
        return TEAM_THREAD;
    if (kernel->inner && !along_fast && !kernel_has_vectors(kernel) && kernel->rows >= COLUMN_ROWS)
        return TEAM_COLUMN;
    bool long_row = extent > 1024 || row_memory(kernel) > WARP_FLOATS;
    bool few_heavy =
        row_work(kernel) > 2048 && kernel->rows <= machine->most_blocks * (int64_t)machine->multiprocessors;
    if (long_row || few_heavy)
        return TEAM_BLOCK;
    return are_short_and_many(kernel, machine) ? TEAM_LANES : TEAM_WARP;
}

/* ---- vector code ---- */

/* Elements in many threads hide the time of their loads. Columns are read by many threads each: half of the
 * multiprocessors with one tile are enough. */
static bool keeps_busy(const Kernel *kernel, int lanes, const Machine *machine) {
    int64_t threads = kernel->rows / lanes;
    if (kernel->team == TEAM_COLUMN)
        return threads * DEEPEST_COLUMN >= THREADS * (int64_t)machine->multiprocessors / 2;
    return threads >= threads_wanted(machine);
}

/* All that it does is to fold numbers of two bytes: it reads no others that are more than one for each row, and writes none so. */
static bool folds_narrow(const Kernel *kernel) {
    bool narrow = true;
    for (int i = 0; i < kernel->loads.count; i++) {
        const Type *type = &kernel->loads.at[i]->type;
        narrow &= type_elements(type) <= kernel->rows || type_bytes(type) <= 2 * type_elements(type);
    }
    for (int i = 0; i < kernel->stores.count; i++)
        narrow &= type_elements(&kernel->stores.at[i]->type) <= kernel->rows;
    return narrow;
}

/* Long columns whose threads do little else than wait for what they read: with more lanes each waits for more at a time, where
 * enough threads still have some loads each. */
static bool waits_for_columns(const Kernel *kernel, int lanes, const Machine *machine) {
    enum { LOADS = 4 };
    int64_t extent = longest_stage(kernel), loads = kernel->rows / lanes * extent;
    return kernel->team == TEAM_COLUMN && extent >= DEEPEST_COLUMN && folds_narrow(kernel) &&
           loads >= LOADS * threads_wanted(machine);
}

/* Neighbours within the last axis for one thread, if none of the axis is left over: 16 bytes of floats. More of smaller numbers
 * gain nothing, but in some columns. */
static int choose_lanes(const Kernel *kernel, const Machine *machine) {
    bool alone = kernel->team == TEAM_THREAD || kernel->team == TEAM_COLUMN;
    if (!alone || !machine->blocks || machine->form != FORM_GRID)
        return 1;
    int64_t last = kernel->kept.rank ? kernel->kept.dim[kernel->kept.rank - 1] : 1;
    for (int lanes = waits_for_columns(kernel, 2 * PACK_FLOATS, machine) ? 2 * PACK_FLOATS : PACK_FLOATS; lanes > 1;
         lanes /= 2)
        if (last % lanes == 0 && keeps_busy(kernel, lanes, machine))
            return lanes;
    return 1;
}

static int64_t threads_of_row(const Kernel *kernel) {
    switch (kernel->team) {
    case TEAM_WARP: return LANES;
    case TEAM_LANES:
    case TEAM_COLUMN: return kernel->depth;
    case TEAM_BLOCK: return THREADS;
    default: return 1;
    }
}

/* What lies along the axis is numbers of 16 bits, all that is loaded and all that is stored. */
static bool are_halves(Node *const *nodes, int count, int64_t axis) {
    for (int k = 0; k < count; k++) {
        const Type *type = &nodes[k]->type;
        if (type->rank > 0 && type->dim[type->rank - 1] == axis && !dtype_is_narrow(type->dtype))
            return false;
    }
    return true;
}

/* Each thread of the team has some, and there are many threads; or it waits for nobody else's, behind a tile. */
static bool has_work(const Kernel *kernel, const Stage *stage, int lanes, const Machine *machine) {
    const Type *domain = &stage->domain;
    int64_t elements = type_elements(domain), threads = threads_of_row(kernel);
    return (kernel->leader || elements / lanes >= threads_wanted(machine)) &&
           elements / kernel->rows >= lanes * threads && domain->dim[domain->rank - 1] % lanes == 0;
}

/* Neighbours in a row for one thread of its team: 16 bytes, where there is work for many threads. */
static int stage_lanes(const Kernel *kernel, const Stage *stage, const Machine *machine) {
    const Type *domain = &stage->domain;
    bool shared = kernel->team == TEAM_WARP || kernel->team == TEAM_LANES || kernel->team == TEAM_BLOCK;
    bool along_fast = domain->rank > 0 && stage->inner >> (domain->rank - 1) & 1;
    if (!machine->blocks || machine->form != FORM_GRID || !shared || !along_fast || stage->contractions.count ||
        stage->vectors.count)
        return 1;
    int64_t axis = domain->dim[domain->rank - 1];
    bool halves = are_halves(kernel->loads.at, kernel->loads.count, axis) &&
                  are_halves(kernel->stores.at, kernel->stores.count, axis);
    if (halves && has_work(kernel, stage, PACK_HALVES, machine))
        return PACK_HALVES;
    return has_work(kernel, stage, PACK_FLOATS, machine) ? PACK_FLOATS : 1;
}

/* Threads for a row that is a column: until there are enough, or no numbers for them. */
static int choose_depth(const Kernel *kernel, const Machine *machine) {
    int64_t rows = kernel->rows / kernel->lanes, extent = longest_stage(kernel);
    int depth = 1;
    if (kernel->team == TEAM_LANES)
        return LANES / 2;
    while (depth < DEEPEST_COLUMN && depth < extent && rows * depth < threads_wanted(machine))
        depth *= 2;
    return depth;
}

static int64_t rows_per_tile(const Kernel *kernel) {
    switch (kernel->team) {
    case TEAM_WARP: return WARPS;
    case TEAM_LANES: return THREADS / kernel->depth;
    case TEAM_BLOCK: return 1;
    case TEAM_COLUMN: return THREADS / kernel->depth * kernel->lanes;
    default: return THREADS * kernel->lanes;
    }
}

/* Its rows are dealt to threads as patches. */
static void cut_patches(Kernel *kernel) {
    const Patch *patch = &kernel->patch;
    const int64_t packs = kernel->kept.dim[kernel->kept.rank - 1] / patch->lanes;
    kernel->team = patch->packs ? TEAM_BLOCK : TEAM_THREAD;
    kernel->lanes = patch->lanes;
    kernel->depth = 1;
    kernel->tiles = patch->packs ? kernel->kept.dim[0] * (packs / patch->packs)
                                 : divide_up(kernel->rows / (patch->down * patch->across * kernel->lanes), THREADS);
}

static void cut_stages(Kernel *kernel, const Machine *machine) {
    for (int s = 0; s < kernel->stages.count; s++)
        kernel->stages.at[s].lanes = stage_lanes(kernel, &kernel->stages.at[s], machine);
}

static void cut_loop(Kernel *kernel, const Machine *machine) {
    kernel->team = choose_team(kernel, machine);
    kernel->lanes = choose_lanes(kernel, machine);
    kernel->depth = choose_depth(kernel, machine);
    kernel->at_once = 1;
    cut_stages(kernel, machine);
    if (kernel->team == TEAM_COLUMN && kernel->depth == 1)
        kernel->team = TEAM_THREAD;
    kernel->tiles = divide_up(kernel->rows, rows_per_tile(kernel));
    kernel->patch = patch_of(kernel, machine);
    if (kernel->patch.sum)
        cut_patches(kernel);
    kernel->flops = row_work(kernel) * (double)kernel->rows;
}

void kernel_cut_behind(Kernel *kernel, const Kernel *leader, int64_t rows, const Machine *machine) {
    kernel->team = TEAM_LANES;
    kernel->depth = LANES;
    while (kernel->depth > 1 && kernel->depth * rows > THREADS)
        kernel->depth /= 2;
    cut_stages(kernel, machine);
    kernel->tiles = leader->tiles * divide_up(rows, rows_per_tile(kernel));
}

void kernel_lengthen(Kernel *kernel, const Machine *machine) {
    enum { NUMBERS = 8 }; /* of a thread, which are under way at a time */
    if (kernel->cls != KERNEL_LOOP || kernel->team != TEAM_COLUMN || kernel->lanes != PACK_FLOATS ||
        longest_stage(kernel) < DEEPEST_COLUMN || kernel_is_long(kernel, machine))
        return;
    while (kernel->depth * NUMBERS > longest_stage(kernel))
        kernel->depth /= 2;
    kernel->tiles = divide_up(kernel->rows, rows_per_tile(kernel));
}

static void count_bytes(Kernel *kernel) {
    kernel->bytes = 0;
    for (int i = 0; i < kernel->loads.count; i++)
        kernel->bytes += (double)type_bytes(&kernel->loads.at[i]->type);
    for (int i = 0; i < kernel->stores.count; i++)
        kernel->bytes += (double)type_bytes(&kernel->stores.at[i]->type);
}

static void cut_call(Kernel *kernel, const Machine *machine) {
    const CallDef *call = kernel->call->op->call;
    int blocks = call->blocks ? call->blocks(kernel->call) : 1;
    kernel->cluster = blocks <= machine->cluster ? blocks : 1;
    kernel->tiles = call->tiles(kernel->call);
    kernel->flops = call->flops(kernel->call);
}

void kernel_cut(Kernel *kernel, const Machine *machine) {
    if (kernel->cls == KERNEL_CONTRACT)
        cut_product(kernel, machine);
    else if (kernel->cls == KERNEL_CALL)
        cut_call(kernel, machine);
    else
        cut_loop(kernel, machine);
    count_bytes(kernel);
}

/* A stage's chain: a load, the loop, a reduction across the team and a barrier. */
static double loop_cycles(const Kernel *kernel, const Machine *machine) {
    double serial = row_work(kernel) * kernel->lanes / (double)threads_of_row(kernel);
    double stage = 100 + machine->latency / 8;
    return machine->latency + stage * kernel->stages.count + 4 * serial;
}

/* A tile's share of the arithmetic, at half of the rate that a multiprocessor could have. */
static double call_cycles(const Kernel *kernel, const Machine *machine) {
    double alone = kernel_arithmetic(kernel, machine) * machine->multiprocessors * machine->clock;
    return machine->latency + 2 * alone / (double)kernel->tiles;
}

void kernel_shrink(Kernel *kernel, double seconds, const Machine *machine) {
    bool shared = machine->resident > 1; /* multiprocessors, by small blocks */
    if (kernel->cls != KERNEL_CONTRACT || shared || kernel->tile.turns || kernel_is_long(kernel, machine))
        return;
    const Tile *tile;
    for (int i = 0; (tile = tile_choice(kernel, machine, i)); i++) {
        const Tile even = even_tile(kernel, tile, machine);
        if (tile_suits(kernel, tile, machine) && tile_cycles(kernel, &even, machine) / machine->clock <= seconds &&
            tile_count(kernel, &even) < kernel->tiles)
            set_tile(kernel, &even, machine);
    }
}

double kernel_tile_seconds(const Kernel *kernel, const Machine *machine) {
    double cycles = kernel->cls == KERNEL_CONTRACT ? tile_cycles(kernel, &kernel->tile, machine)
                    : kernel->cls == KERNEL_CALL   ? call_cycles(kernel, machine)
                                                   : loop_cycles(kernel, machine);
    return cycles / machine->clock;
}

/* Of the multiply-adds of tensor cores, as many as whole products reach: on an H200 1408 in a cycle. */
static double tensor_speedup(const Machine *machine) {
    enum { MOST_FED = 1408 };
    double reached = 0.9 * machine->tensor;
    return (reached < MOST_FED ? reached : MOST_FED) / machine->lanes;
}

double kernel_arithmetic(const Kernel *kernel, const Machine *machine) {
    double plain = kernel->flops / machine->flops;
    if (!machine->tensor || kernel->math == MATH_FP32)
        return plain;
    return plain / tensor_speedup(machine) * math_info[kernel->math].passes;
}

double kernel_dealt_seconds(const Kernel *kernel, const Machine *machine) {
    double tile = kernel_tile_seconds(kernel, machine);
    if (kernel->cls == KERNEL_CONTRACT) {
        Cost cost = tile_cost(kernel, &kernel->tile, machine);
        tile = (cost.waiting / tile_resident(kernel, &kernel->tile, machine) + cost.working) / machine->clock;
    }
    return (double)kernel->tiles * tile / machine->multiprocessors;
}

double kernel_seconds(const Kernel *kernel, const Machine *machine) {
    double latency = kernel->cls == KERNEL_CONTRACT
                         ? product_cycles(kernel, &kernel->tile, machine) / machine->clock
                         : waves(machine, kernel->tiles) * kernel_tile_seconds(kernel, machine);
    double traffic = kernel->bytes / machine->bandwidth, arithmetic = kernel_arithmetic(kernel, machine);
    double floor = traffic > arithmetic ? traffic : arithmetic;
    return latency > floor ? latency : floor;
}

bool kernel_is_long(const Kernel *kernel, const Machine *machine) {
    /* A launch of its own costs 2 us where nothing hides it; in one with others, a kernel has the registers and the shared
     * memory of the one that needs most. */
    static const double long_kernel = 5e-6;
    return kernel_seconds(kernel, machine) >= long_kernel;
}
