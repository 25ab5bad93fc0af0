/* Which tiles a product can have on a machine. */
#include "pass/suit.h"

#include "pass/cost.h"

/* Four steps of k of a thread's lines need registers beside its sums. */
static bool has_registers(const Tile *tile) {
    enum { MOST_OUTPUTS = 32 };
    return tile->tm * tile->tn <= MOST_OUTPUTS;
}

static int64_t divide_up(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

/* Squares of 2 x 2 outputs of all images; at edges some have fewer. */
static int64_t count_squares(const Kernel *kernel) {
    const Sweep *down = &kernel->a.view->attr.sweep[0], *across = &kernel->a.view->attr.sweep[1];
    return kernel->m / (down->out * across->out) * divide_up(down->out, 2) * divide_up(across->out, 2);
}

/* Tiles below each other. */
static int64_t tiles_down(const Kernel *kernel, const Tile *tile) {
    return tile->squares ? divide_up(count_squares(kernel), SQUARES) : divide_up(kernel->m, tile->m);
}

int64_t tile_count(const Kernel *kernel, const Tile *tile) {
    const int blocks = tile->splits > 1 ? tile->splits : 1;
    return kernel->batches * tiles_down(kernel, tile) * divide_up(kernel->n, tile->n) * blocks;
}

/* Copies by the hardware take whole matrices of numbers of one or two bytes whose rows begin at multiples of 16 bytes. */
static bool is_copied_by_hardware(const Operand *operand) {
    const int64_t bytes = dtype_info[operand->buffer->type.dtype].bytes;
    return bytes <= 2 && operand->kind == OPERAND_MATRIX && operand->cols * bytes % PACK_BYTES == 0;
}

/* Both operands of a stack of products lie with k first, so that it goes on from one to the next; in whole panels. */
static bool is_in_slices(const Kernel *kernel, const Tile *tile) {
    return kernel->a.batched && kernel->b.batched && kernel->a.transposed && !kernel->b.transposed &&
           kernel->k % tile->k == 0;
}

/* Pairs of tiles, so many that a block has several: only then one is written out while another is multiplied. A persistent
 * kernel has blocks of another size. */
static bool may_take_turns(const Kernel *kernel, const Tile *tile, const Machine *machine) {
    enum { TILES_OF_A_BLOCK = 4 };
    bool many = tile_count(kernel, tile) >= TILES_OF_A_BLOCK * (int64_t)machine->multiprocessors;
    bool pairs = kernel->m % (TURN_BLOCKS * tile->m) == 0 && kernel->n % 8 == 0 && !kernel->side;
    bool bytes = dtype_is_byte(math_info[kernel->math].dtype);
    bool lies = !bytes || (!kernel->a.transposed && kernel->b.transposed); /* nothing turns bytes round */
    return machine->warp_groups && machine->resident > 1 && many && pairs && lies &&
           (kernel->batches == 1 || is_in_slices(kernel, tile)) && is_copied_by_hardware(&kernel->a) &&
           is_copied_by_hardware(&kernel->b);
}

/* All rows, times a weight that is there from run to run: of matrices of 16-bit numbers whose lines lie along k and begin at multiples of
 * 16 bytes. */
static bool may_have_few_rows(const Kernel *kernel, const Tile *tile) {
    return kernel->m <= tile->m && kernel->b.lasts && kernel->batches == 1 && !kernel->side && !kernel->fold_rows &&
           !kernel->a.transposed && kernel->b.transposed && is_copied_by_hardware(&kernel->a) &&
           is_copied_by_hardware(&kernel->b);
}

int tile_stages(const Kernel *kernel, const Tile *tile, const Machine *machine) {
    if (tile->few)
        return few_stages(tile->m, machine->block_memory);
    int second_terms = tensor_second_terms(tile->n, math_info[kernel->math].terms);
    int room = (machine->block_memory - second_terms) / tensor_panel(tile->m, tile->n);
    return room < tile->stages ? room : tile->stages;
}

/* The machine's blocks have the shared memory for it; of panels that are copied ahead, two are enough. */
static bool has_memory(const Kernel *kernel, const Tile *tile, const Machine *machine) {
    if (tile->few)
        return tile_least_few(tile) <= machine->block_memory;
    if (tile->warps_m) {
        int stages = tile_stages(kernel, tile, machine);
        return stages > 1 &&
               tensor_tile_shared(tile->m, tile->n, stages, math_info[kernel->math].terms) <= machine->block_memory;
    }
    return !machine->blocks || tile_least_bytes(kernel, tile) <= machine->block_memory;
}

/* Sums of an operand's lines over k are taken by whole threads for each. */
static bool can_sum_lines(const Kernel *kernel, const Tile *tile) {
    return !kernel->side || THREADS % (kernel->side_of_b ? tile->n : tile->m) == 0;
}

static bool reads_windows_along_k(const Kernel *kernel) {
    return (kernel->a.kind == OPERAND_WINDOW && !kernel->a.transposed) ||
           (kernel->b.kind == OPERAND_WINDOW && kernel->b.transposed);
}

/* Beside many outputs, a thread has no registers for numbers of a panel on their way, nor for the places of windows. */
static bool has_registers_for_panels(const Kernel *kernel, const Tile *tile, Feed feed) {
    int outputs = tile->tm * tile->tn;
    bool passing = feed == FEED_STAGED && tile->slices > 1 && outputs >= LARGE_OUTPUTS;
    return !passing && !(feed == FEED_PIPELINED && outputs > LARGE_OUTPUTS && reads_windows_along_k(kernel));
}

static bool moves_by_a_pixel(const Sweep *sweep) {
    return sweep->kernel == 3 && sweep->stride == 1 && sweep->spread == 1 && sweep->dilation * sweep->dilation == 1;
}

/* What a tile of squares adds up are as many groups of rows as there should be, though others: a sum for each example would mind. */
static bool folds_squares(const Kernel *kernel, const Tile *tile) {
    bool of_examples = false;
    for (int i = 0; i < kernel->folds.count; i++)
        of_examples |= kernel->folds.at[i]->type.batched;
    return !kernel->fold_rows || (!of_examples && tiles_down(kernel, tile) * tile->m == kernel->m);
}

/* Windows of images of floats, which filters meet as they lie, or turned round. Not in a persistent kernel, all of which would have
 * the registers that squares need. */
static bool has_squares(const Kernel *kernel, const Tile *tile, const Machine *machine) {
    const Operand *a = &kernel->a, *b = &kernel->b;
    if (machine->resident == 1 || a->kind != OPERAND_WINDOW || a->transposed || a->computed || b->computed ||
        kernel->batches > 1 || kernel->side)
        return false;
    const Sweep *sweep = a->view->attr.sweep;
    bool filters = b->kind == OPERAND_FILTER ? !b->transposed : b->kind == OPERAND_MATRIX && b->transposed;
    return filters && moves_by_a_pixel(&sweep[0]) && moves_by_a_pixel(&sweep[1]) && kernel->k % (9 * tile->k) == 0 &&
           folds_squares(kernel, tile);
}

static bool keeps_its_size(const Sweep *sweep) {
    return moves_by_a_pixel(sweep) && sweep->dilation == 1 && sweep->pad == 1;
}

/* Bytes of a panel of pixels that serves all taps, which is two of the tile's deep. */
static int panel_of_taps(const Kernel *kernel, const Tile *tile, int64_t width) {
    bool narrow = dtype_is_narrow(math_info[kernel->math].dtype);
    return narrow ? taps_panel(2 * tile->k, (int)width) : taps_float_panel(2 * tile->k, (int)width);
}

/* The gradient of filters of 3 x 3 taps, of whole images that keep their size, and that have few enough columns. */
static bool may_take_taps(const Kernel *kernel, const Tile *tile, const Machine *machine) {
    const Operand *a = &kernel->a, *b = &kernel->b;
    if (!machine->warp_groups || machine->resident == 1 || kernel->side || a->kind != OPERAND_MATRIX ||
        !a->transposed || b->kind != OPERAND_WINDOW || b->transposed || a->computed || b->computed)
        return false;
    const Sweep *down = &b->view->attr.sweep[0], *across = &b->view->attr.sweep[1];
    return keeps_its_size(down) && keeps_its_size(across) && floats_together(b) % TAP_CHANNELS == 0 &&
           kernel->m % TAP_CHANNELS == 0 && kernel->k % (down->out * across->out) == 0 &&
           TAP_STAGES * panel_of_taps(kernel, tile, across->out) + taps_table(2 * tile->k, (int)across->out) <=
               tensor_tile_shared(tile->m, tile->n, tile->stages, 1);
}

bool tile_suits(const Kernel *kernel, const Tile *tile, const Machine *machine) {
    bool whole_columns = (tile->n & (tile->n - 1)) == 0; /* each thread adds up its own */
    Feed feed = tile_feed(kernel, tile);
    if (kernel->fold_rows && (kernel->fold_rows != tile->m || !whole_columns || feed == FEED_THIN))
        return false;
    if (machine->form == FORM_SOLO && feed == FEED_PIPELINED)
        return false;
    if (tile->turns)
        return may_take_turns(kernel, tile, machine);
    if (tile->few && !may_have_few_rows(kernel, tile))
        return false;
    if ((tile->squares && !has_squares(kernel, tile, machine)) || (tile->taps && !may_take_taps(kernel, tile, machine)))
        return false;
    if (!has_memory(kernel, tile, machine) || !has_registers_for_panels(kernel, tile, feed))
        return false;
    if ((feed == FEED_PIPELINED || feed == FEED_STAGED) && !tile->warps_m && !can_sum_lines(kernel, tile))
        return false;
    if (feed == FEED_DIRECT)
        return !kernel->side && has_registers(tile);
    return feed != FEED_DEEP || !kernel->side;
}
