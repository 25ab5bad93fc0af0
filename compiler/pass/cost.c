/* What a product's tile costs.
 *
 * On a GPU, a tile of m x n outputs takes per step of k (m + n) loads and m * n multiply-adds; small products are bound by
 * latency and want many tiles, large ones by arithmetic and want large tiles. On a CPU, copying a panel of operand b for
 * each tile makes tall tiles better. The models below are coarse and only rank: cycles of the slowest multiprocessor
 * (core). Those of fp32 on a GPU were fitted to 43 measured pairs of a product and a tile on an H200, from 1.7 to 14 us, of
 * which they are off by a sixth. */
#include "pass/cost.h"

/* Instructions of threads that a multiprocessor begins in a cycle: of four warps, on all that there are. */
enum { ISSUED = 4 * LANES };

static bool is_tensor(const Tile *tile) {
    return tile->warps_m > 0;
}

/* Both operands lie in memory along k. */
static bool runs_along_k(const Kernel *kernel) {
    bool windows = kernel->a.kind == OPERAND_WINDOW || kernel->b.kind == OPERAND_WINDOW;
    return !kernel->a.transposed && kernel->b.transposed && !windows;
}

/* Tensor cores' panels are always copied by the hardware. */
Feed tile_feed(const Kernel *kernel, const Tile *tile) {
    bool floats = !kernel->a.computed && !kernel->b.computed;
    if (is_tensor(tile))
        return FEED_PIPELINED;
    if (tile->squares)
        return FEED_SQUARES;
    return feed_of(tile->tm * tile->tn, tile->slices, kernel->k, tile->k, runs_along_k(kernel), floats);
}

static int64_t divide_up(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static double larger(double a, double b) {
    return a > b ? a : b;
}

/* Share of the multiply-add rate that a thread's tm x tn outputs can reach: each needs tm + tn operands from shared
 * memory, which is as fast on all machines. */
static double register_reuse(const Tile *tile, const Machine *machine) {
    double per_load = (double)(tile->tm * tile->tn) / (tile->tm + tile->tn);
    return per_load / (per_load + 0.6 * machine->lanes / ISSUED);
}

/* Cycles for each number of a line of an operand that is copied on its way into registers. Windows of b and lines of a that lie across k
 * come from all of the images: from memory, each time anew. */
static double copied_row(const Operand *a) {
    return a->transposed ? 0.8 : a->kind == OPERAND_WINDOW ? 1.0 / 8 : 0;
}

static double copied_column(const Operand *b) {
    return b->kind == OPERAND_WINDOW ? 1.5 : 1.0 / 3;
}

/* Cycles: 32 multiply-adds a cycle; what is copied; the sums, cleared; the call and the epilogue. */
static double core_tile_cycles(const Kernel *kernel, const Tile *tile) {
    double rows = (double)smaller(tile->m, kernel->m), columns = (double)smaller(tile->n, kernel->n);
    double copied = columns * copied_column(&kernel->b) + rows * copied_row(&kernel->a);
    double cleared = (double)tile->m * tile->n / 16;
    return (double)kernel->k * (rows * columns / 32 + copied) + cleared + rows * columns / 4 + 300;
}

/* Cycles: numbers of an operand that lies along k are turned round on their way into a panel. Where the panel is narrower
 * than the banks of shared memory are many, those of a warp all meet in one bank. */
static double turning_cycles(const Kernel *kernel, const Tile *tile) {
    static const double per_number = 0.71;
    int narrow_a = !kernel->a.transposed && tile->m < LANES ? tile->m : 0;
    int narrow_b = kernel->b.transposed && tile->n < LANES ? tile->n : 0;
    return per_number * (double)kernel->k * (narrow_a + narrow_b);
}

int64_t floats_together(const Operand *operand) {
    const Type *view = operand->view ? &operand->view->type : NULL;
    return view ? view->dim[view->rank - 1] : operand->cols;
}

/* Neighbours of an operand that a thread fetches at a time. */
static int fetched_at_once(const Operand *operand) {
    return floats_together(operand) % 4 == 0 ? 4 : 1;
}

/* Instructions of a thread until a number, or four, are on their way to a panel of `lines` lines. `along_k`: of a window the
 * thread knows where it begins, and finds the tap, of which it copies ahead several fours; it is the same for all threads and no
 * work where the panel has a line for each; else it finds out about another window each time. */
static double fetch_work(const Kernel *kernel, const Operand *operand, bool along_k, const Tile *tile, int lines) {
    if (operand->kind != OPERAND_WINDOW)
        return 6;
    bool fours = fetched_at_once(operand) == 4, ahead = tile_feed(kernel, tile) == FEED_PIPELINED;
    double of_one_tap = ahead && fours ? larger((double)lines * tile->k / (4 * THREADS), 1) : 1;
    return !along_k ? 88 : lines % THREADS == 0 && !fours ? 15 : 13 + 30 / of_one_tap;
}

static double work_of_a(const Kernel *kernel, const Tile *tile) {
    return fetch_work(kernel, &kernel->a, !kernel->a.transposed, tile, tile->m);
}

static double work_of_b(const Kernel *kernel, const Tile *tile) {
    return fetch_work(kernel, &kernel->b, kernel->b.transposed, tile, tile->n);
}

/* Numbers that the epilogue moves for each output: what it stores, and what it reads that lies like its outputs. */
static double epilogue_numbers(const Kernel *kernel) {
    int64_t outputs = kernel->batches * kernel->m * kernel->n;
    int numbers = kernel->stores.count ? 0 : 1; /* not known yet: the product itself */
    for (int i = 0; i < kernel->stores.count; i++)
        numbers += type_elements(&kernel->stores.at[i]->type) == outputs;
    for (int i = 0; i < kernel->loads.count; i++)
        numbers += type_elements(&kernel->loads.at[i]->type) == outputs && kernel->loads.at[i] != kernel->a.buffer &&
                   kernel->loads.at[i] != kernel->b.buffer;
    return numbers;
}

/* Cycles: 24 instructions of a thread for an output, and for each number that belongs to it. */
static double epilogue_cycles(const Kernel *kernel, const Tile *tile) {
    return 24.0 / ISSUED * (1 + epilogue_numbers(kernel)) * tile->m * tile->n;
}

/* Cycles: the loads of eight steps of k are under way at a time; an exchange between lanes takes 30. */
static Cost thin_cost(const Kernel *kernel, const Tile *tile, const Machine *machine) {
    double step = machine->latency / 40, exchanges = 0;
    for (int lanes = tile->slices; lanes > 1; lanes /= 2)
        exchanges++;
    return (Cost){.working = machine->latency + step * (double)divide_up(kernel->k, tile->slices) + 30 * exchanges};
}

/* Cycles: the blocks of a cluster wait for each other twice, and read each other's sums, eight bytes in one. */
static double exchange_cycles(const Tile *tile, const Machine *machine) {
    return tile->splits > 1 ? machine->latency + (double)tile->m * tile->n / 2 / 4 : 0;
}

/* Cycles: zeros behind each row, and below each image, are multiplied too. */
static Cost taps_cost(const Kernel *kernel, const Tile *tile, const Machine *machine) {
    const double multiplied = kernel->math == MATH_TF32 ? 1000 : 1250;
    const Sweep *down = &kernel->b.view->attr.sweep[0], *across = &kernel->b.view->attr.sweep[1];
    double images = (double)kernel->k / (double)(down->out * across->out);
    double positions = images * (double)((down->out + 1) * (across->out + 1)), outputs = (double)tile->m * tile->n;
    return (Cost){.working = machine->latency + positions * outputs * math_info[kernel->math].passes / multiplied +
                             outputs / 32};
}

/* Cycles: as measured with warp-group instructions on an H200, a multiprocessor's multiply-adds of bf16 in a cycle grow with
 * the use that a tile makes of what it copies, 1060 of 128 x 256 and 540 of 128 x 64; of tf32 half as many, of two terms
 * a sixth, of integers twice as many. Filling the pipeline and the epilogue are not overlapped, but where tiles are worked
 * on in turns; there two blocks share what they copy, as if their tiles were one, and slices, whose sums are stored as they
 * are, come to 1300: the gradients of GPT-2's and Llama's weights, 615 to 663 TFLOP/s. What feeds them is as fast on other
 * machines, whose tensor cores may be slower. */
static Cost tensor_cost(const Kernel *kernel, const Tile *tile, const Machine *machine) {
    if (tile->taps)
        return taps_cost(kernel, tile, machine);
    const int splits = tile->splits > 1 ? tile->splits : 1;
    double depth = (double)(divide_up(divide_up(kernel->k, tile->k), splits) * tile->k);
    double outputs = (double)tile->m * tile->n;
    if (tile->turns)
        return (Cost){.working =
                          depth * outputs * math_info[kernel->math].passes / (kernel->batches > 1 ? 1300 : 1060)};
    double fed = 12.5 * outputs / (tile->m + tile->n), most = 0.9 * machine->tensor;
    double rate = (fed < most ? fed : most) / math_info[kernel->math].passes;
    return (Cost){.working = machine->latency + depth * outputs / rate + outputs / 32 + exchange_cycles(tile, machine)};
}

/* Cycles: 48 bytes of both operands from L2 in one, and the sums of slices. */
static Cost few_cost(const Kernel *kernel, const Tile *tile, const Machine *machine) {
    double traffic = 2.0 * (double)kernel->k * (tile->m + tile->n) / 48;
    return (Cost){.waiting = machine->latency, .working = traffic + (double)tile->slices * tile->m * tile->n / 32};
}

/* Steps of k that a slice without panels fetches at a time. */
static int64_t steps_at_once(const Tile *tile, int width, int64_t steps) {
    int64_t bytes = width * (int64_t)sizeof(float) * (tile->tm + tile->tn);
    int64_t room = width == 4 ? DIRECT_BYTES / bytes : DEEP_STEPS;
    return smaller(room < 1 ? 1 : room, steps);
}

/* Loads that follow others wait for so much of the memory's latency. */
static const double FURTHER_ROUND = 0.64;

/* Instructions until a thread knows where its next step of k lies. */
static double step_work(const Operand *operand, bool along_k) {
    return operand->kind == OPERAND_WINDOW && !along_k ? 88 : 15;
}

/* Instructions' worth of a thread's loads of `lines` lines at a step of k of its own: 4, and 4 for each line of the cache that
 * a load of a warp touches beyond the first. Its 32 steps of k lie side by side, or as far apart as the lines are many. */
static double loads_work(const Operand *operand, bool along_k, double lines) {
    int width = fetched_at_once(operand);
    int64_t apart = operand->kind == OPERAND_FILTER ? LANES : smaller(LANES, floats_together(operand));
    return along_k ? 4 * lines : 4 * lines / width * (double)apart;
}

/* Without panels: 40 bytes from L2 a cycle and multiprocessor. A thread finds out where a step of k lies once, for all of
 * its lines. Every further round of loads waits for most of the memory's latency again; then the sums of all threads are
 * folded. */
static Cost direct_cost(const Kernel *kernel, const Tile *tile, const Machine *machine) {
    int width = runs_along_k(kernel) ? 4 : 1;
    int64_t steps = divide_up(kernel->k, (int64_t)width * tile->slices), at_once = steps_at_once(tile, width, steps);
    double lines_a = (double)smaller(tile->tm, kernel->m), lines_b = (double)smaller(tile->tn, kernel->n);
    double loads =
        loads_work(&kernel->a, !kernel->a.transposed, lines_a) + loads_work(&kernel->b, kernel->b.transposed, lines_b);
    double place = larger(step_work(&kernel->a, !kernel->a.transposed), step_work(&kernel->b, kernel->b.transposed));
    double outputs = lines_a * lines_b;
    double multiply = (double)ISSUED / machine->lanes; /* an instruction's worth */
    double thread = (double)steps * (place + loads + multiply * width * outputs) + 6 * outputs;
    double traffic = (double)kernel->k * (tile->m + tile->n) * sizeof(float) / 40;
    return (Cost){.waiting = machine->latency * (1 + FURTHER_ROUND * (double)(divide_up(steps, at_once) - 1)),
                  .working = larger(thread * THREADS / ISSUED, traffic) + epilogue_cycles(kernel, tile)};
}

/* Of threads with 32 outputs, a block alone has so much longer, by what its threads wait for a step's numbers and for each other; a
 * second one fills in. As measured on an H200; with more outputs a block is alone in any case. */
static double alone_work(const Tile *tile) {
    int outputs = tile->tm * tile->tn;
    return outputs >= 32 && outputs < 48 ? 0.29 : 0;
}

/* 64 bytes from L2 a cycle and multiprocessor; the panels' numbers on their way, filled up; an ordered sum over slices.
 * Copies ahead hide the time of further panels, a third less well where slices leave each thread few steps of one; panels that
 * pass through registers are waited for. */
static Cost panel_cost(const Kernel *kernel, const Tile *tile, const Machine *machine) {
    bool ahead = tile_feed(kernel, tile) == FEED_PIPELINED;
    int64_t deep = ahead ? tile->k : panel_depth(kernel->k, tile->slices, tile->k), panels = divide_up(kernel->k, deep);
    double steps = (double)(panels * deep), outputs = (double)tile->m * tile->n;
    double fetches = tile->m * work_of_a(kernel, tile) / fetched_at_once(&kernel->a) +
                     tile->n * work_of_b(kernel, tile) / fetched_at_once(&kernel->b);
    double multiply = steps * outputs / register_reuse(tile, machine) / machine->lanes;
    double alone = ahead ? alone_work(tile) * multiply : 0, few_steps = ahead && tile->slices > 1 ? 1.3 : 1;
    double arithmetic = few_steps * multiply - alone + steps * fetches / ISSUED;
    double traffic = steps * (tile->m + tile->n) * sizeof(float) / 64;
    double combine = tile->slices > 1 ? 40 + 4.0 * tile->slices * outputs / THREADS : 0;
    double turning = ahead ? 0 : turning_cycles(kernel, tile), barriers = 145.0 * (double)panels;
    double further = ahead ? 2 * alone : machine->latency * FURTHER_ROUND * (double)(panels - 1);
    return (Cost){.waiting = machine->latency + further,
                  .working =
                      larger(arithmetic, traffic) + combine + turning + barriers + epilogue_cycles(kernel, tile)};
}

/* Cycles: a thread's instructions for a panel of eight channels are 1325, of which 1024 multiply. Joining products takes 6 for an output. */
static Cost squares_cost(const Kernel *kernel, const Tile *tile, const Machine *machine) {
    double panels = (double)kernel->k / (9 * tile->k), outputs = (double)tile->m * tile->n;
    double multiply = 1024.0 * THREADS / machine->lanes, others = 300.0 * THREADS / ISSUED;
    return (Cost){.waiting = machine->latency,
                  .working = panels * (multiply + others + 145) + 6 * outputs / ISSUED + epilogue_cycles(kernel, tile)};
}

Cost tile_cost(const Kernel *kernel, const Tile *tile, const Machine *machine) {
    if (!machine->blocks)
        return (Cost){.working = core_tile_cycles(kernel, tile)};
    if (tile->few)
        return few_cost(kernel, tile, machine);
    if (is_tensor(tile))
        return tensor_cost(kernel, tile, machine);
    switch (tile_feed(kernel, tile)) {
    case FEED_THIN: return thin_cost(kernel, tile, machine);
    case FEED_DIRECT:
    case FEED_DEEP: return direct_cost(kernel, tile, machine);
    case FEED_SQUARES: return squares_cost(kernel, tile, machine);
    default: return panel_cost(kernel, tile, machine);
    }
}

int tile_bytes(const Kernel *kernel, const Tile *tile) {
    if (tile->squares)
        return square_shared(SQUARE_DEPTH, SQUARE_PARTS);
    return tile_shared(tile->m, tile->n, tile->k, tile->tm, tile->tn, tile->slices, kernel->k, STAGES);
}

int tile_least_bytes(const Kernel *kernel, const Tile *tile) {
    if (tile->squares)
        return square_shared(LEAST_SQUARE_DEPTH, MOST_SQUARE_PARTS);
    return tile_shared(tile->m, tile->n, tile->k, tile->tm, tile->tn, tile->slices, kernel->k, 2);
}

/* Two steps of k of both operands. */
int tile_least_few(const Tile *tile) {
    return few_tile_shared(tile->m, tile->n, tile->slices, 2, 2);
}

int tile_resident(const Kernel *kernel, const Tile *tile, const Machine *machine) {
    if (!machine->blocks || is_tensor(tile))
        return machine->resident;
    int outputs = tile->tm * tile->tn, room = outputs >= 48 ? 1 : outputs >= 32 ? 2 : machine->resident;
    int bytes = tile_bytes(kernel, tile), memory = bytes ? machine->multiprocessor_memory / bytes : room;
    room = memory < 1 ? 1 : memory < room ? memory : room;
    return room < machine->resident ? room : machine->resident;
}
