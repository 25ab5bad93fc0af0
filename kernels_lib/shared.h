/* What the compiler and the kernels must agree on: C for the one, CUDA C++ for the others. The compiler plans with it (tiles, what
 * they cost, what a device must have), the kernels do as planned. */
#ifndef MTC_SHARED_H
#define MTC_SHARED_H

#include <stdbool.h>

#ifdef __CUDACC__
#define MTC_AGREED __host__ __device__ constexpr
#define MTC_CONSTANTS(...) constexpr int __VA_ARGS__
#else
#define MTC_AGREED static inline
#define MTC_CONSTANTS(...) enum { __VA_ARGS__ }
#endif

/* ---- blocks ---- */

MTC_CONSTANTS(THREADS = 256, LANES = 32, WARPS = THREADS / LANES); /* of a block, of a warp */

/* Bytes that one instruction moves, at most, and numbers of four and of two bytes. */
MTC_CONSTANTS(PACK_BYTES = 16, PACK_FLOATS = PACK_BYTES / 4, PACK_HALVES = PACK_BYTES / 2);

/* Bytes of shared memory of the block that programs are planned for. */
MTC_CONSTANTS(PLANNED_SHARED = 227 << 10);

/* ---- products of 8-bit integers ---- */

/* Operands are from -I8_LARGEST to I8_LARGEST, and a sum of I8_DEEPEST products fits 32 bits. */
MTC_CONSTANTS(I8_LARGEST = 127, I8_DEEPEST = 0x7fffffff / (I8_LARGEST * I8_LARGEST));

/* ---- products on CUDA cores: how the operands reach the threads (cuda/matmul.cuh says what each is) ---- */

typedef enum Feed { FEED_STAGED, FEED_PIPELINED, FEED_DIRECT, FEED_DEEP, FEED_THIN, FEED_SQUARES } Feed;

/* A thread with so many outputs has no registers for numbers of a panel on their way. */
MTC_CONSTANTS(LARGE_OUTPUTS = 64);

/* Panels are copied ahead where the block is one slice, and where its threads have many outputs; one panel needs no copies ahead. */
MTC_AGREED bool is_copied_ahead(int outputs, int slices, long long k, int depth) {
    return (slices == 1 || (slices < LANES && outputs >= LARGE_OUTPUTS)) && k > (long long)depth;
}

/* `outputs` of a thread, of which `slices` share a sum over `k`; panels are `depth` deep. `along_k`: both operands lie so; `floats`:
 * both are floats in memory. */
MTC_AGREED Feed feed_of(int outputs, int slices, long long k, int depth, bool along_k, bool floats) {
    return outputs == 1                                           ? FEED_THIN
           : slices >= LANES                                      ? (along_k ? FEED_DIRECT : FEED_DEEP)
           : floats && is_copied_ahead(outputs, slices, k, depth) ? FEED_PIPELINED
                                                                  : FEED_STAGED;
}

/* The depth of a panel, no deeper than the product: whole steps of k, which the slices share and which keep vectors whole. */
MTC_AGREED int panel_depth(long long k, int slices, int depth) {
    long long step = k % 4 == 0 && slices % 4 != 0 ? 4 * slices : slices, whole = (k + step - 1) / step * step;
    return whole < depth ? (int)whole : depth;
}

/* Panels of a pipelined product: so many are on their way or in use, at most, and their lines, or steps of k, lie PAD apart. */
MTC_CONSTANTS(STAGES = 4, PAD = 4);

/* Floats of a panel of `width` lines by `depth` steps of k, whichever way it lies. */
MTC_AGREED int padded_panel(int width, int depth) {
    return width * depth + PAD * (width > depth ? width : depth);
}

/* The largest vector, 4, 2 or 1, that divides n. */
MTC_AGREED int vector_width(int n) {
    return n % 4 == 0 ? 4 : n % 2 == 0 ? 2 : 1;
}

/* Bytes of shared memory for a tile of m x n outputs, tm x tn of a thread, with panels `depth` deep, of which `stages` are under way
 * where they are copied ahead. The sums of slices, and of a side, pass through it too. */
MTC_AGREED int tile_shared(int m, int n, int depth, int tm, int tn, int slices, long long k, int stages) {
    bool pipelined = is_copied_ahead(tm * tn, slices, k, depth);
    int padded = stages * (padded_panel(m, depth) + padded_panel(n, depth));
    int panels = pipelined ? padded : (k <= depth ? 1 : 2) * (m + n) * depth;
    int sums = slices * (m / (tm / vector_width(tm))) * n + THREADS;
    if (slices >= LANES) /* no panels: each warp leaves a part of its outputs */
        return WARPS * ((tm * tn + LANES - 1) / LANES * LANES) * (int)sizeof(float);
    return (panels > sums ? panels : sums) * (int)sizeof(float);
}

/* Windows of 3 x 3 taps in squares of 2 x 2 outputs (cuda/winograd.cuh): a tile has SQUARES of them by SQUARE_COLUMNS, and as many products of
 * matrices for each as a square sees pixels. */
MTC_CONSTANTS(SQUARES = 32, SQUARE_OUTPUTS = 4, SQUARE_COLUMNS = 64, SQUARE_PRODUCTS = 16);

/* Floats of a channel of a panel of `lines` squares, or columns. */
MTC_AGREED int square_lines(int lines) {
    return SQUARE_PRODUCTS * lines + PAD;
}

/* Bytes of shared memory for two panels of `depth` channels; in the end, for the products of a part of the squares, for its outputs and
 * for where these lie. */
MTC_AGREED int square_shared(int depth, int parts) {
    int panels = 2 * depth * (square_lines(SQUARES) + square_lines(SQUARE_COLUMNS));
    int sums = SQUARES / parts * (SQUARE_COLUMNS * (SQUARE_PRODUCTS + SQUARE_OUTPUTS) + SQUARE_OUTPUTS);
    return (panels > sums ? panels : sums) * (int)sizeof(float);
}

/* As planned, and at least. */
MTC_CONSTANTS(SQUARE_DEPTH = 8, SQUARE_PARTS = 2, LEAST_SQUARE_DEPTH = 4, MOST_SQUARE_PARTS = 4);

/* On tensor cores: of a panel, whose lines have 128 bytes; of what b's numbers have beside their panels where they are multiplied as two
 * terms, the second ones of three panels; and of a tile, whose sums pass through the same memory. */
MTC_AGREED int tensor_panel(int m, int n) {
    return (m + n) * 128;
}
MTC_AGREED int tensor_second_terms(int n, int terms) {
    return (terms - 1) * 3 * n * 128;
}
MTC_AGREED int tensor_pitch(int n) {
    return n + 8;
}
MTC_AGREED int tensor_tile_shared(int m, int n, int stages, int terms) {
    int panels = stages * tensor_panel(m, n) + tensor_second_terms(n, terms);
    int sums = (m * tensor_pitch(n) + THREADS) * (int)sizeof(float);
    return panels > sums ? panels : sums;
}

/* Of few rows (cuda/tensor_few.cuh): what threads have of a line for each step of k; steps of m rows, and of columns, that are under way where
 * blocks have so much memory; and how far apart rows of a tile's sums lie, so that lanes meet different banks. */
MTC_CONSTANTS(FEW_STEP = 32, FEW_LINE = THREADS * PACK_BYTES, FEW_STAGES = 12);
MTC_AGREED int few_ahead(int m, int memory) {
    return memory < 128 << 10 ? 2 : m > 32 ? 3 : 4;
}
MTC_AGREED int few_stages(int m, int memory) {
    int room = (memory - few_ahead(m, memory) * m / 8 * FEW_LINE) / (2 * FEW_LINE);
    return room < FEW_STAGES ? room : FEW_STAGES;
}
MTC_AGREED int few_pitch(int n) {
    return n + 4;
}
MTC_AGREED int few_tile_shared(int m, int n, int slices, int ahead, int stages) {
    int copies = (ahead * m / 8 + stages * 2) * FEW_LINE, sums = slices * m * few_pitch(n) * (int)sizeof(float);
    return copies > sums ? copies : sums;
}

/* Filters' gradients by taps (cuda/tensor_taps.cuh): a tile has TAP_CHANNELS channels of the outputs by all taps of as many of the image. Of a
 * panel of `depth` positions of images so wide: those beside them; rows of 16-bit numbers, in whole rounds; bytes, of these and of floats,
 * whose rows lie so that neighbouring channels of four positions meet different banks. */
MTC_CONSTANTS(TAP_SIDE = 3, TAPS = TAP_SIDE * TAP_SIDE, TAP_CHANNELS = 64, TAP_STAGES = 2);
MTC_CONSTANTS(TAP_FLOAT_PITCH = (TAP_CHANNELS + 8) * 4);
MTC_AGREED int taps_halo(int width) {
    return width + 2;
}
MTC_AGREED int taps_lines(int depth, int width) {
    return (depth + 2 * taps_halo(width) + LANES - 1) / LANES * LANES;
}
MTC_AGREED int taps_panel(int depth, int width) {
    return (depth + taps_lines(depth, width)) * 128;
}
/* For the pixels of some panels, which are found ahead. */
MTC_AGREED int taps_table(int depth, int width) {
    return 4 * taps_lines(depth, width) * (int)sizeof(int);
}
MTC_AGREED int taps_float_panel(int depth, int width) {
    return depth * TAP_CHANNELS * (int)sizeof(float) + (depth + 2 * taps_halo(width)) * TAP_FLOAT_PITCH;
}

/* Neighbouring blocks that take turns at tiles below each other: cuda/tensor_turns.cuh. */
MTC_CONSTANTS(TURN_BLOCKS = 2);

/* What a thread fetches at a time without panels: bytes where it takes four steps of k at once, steps where it takes one. */
MTC_CONSTANTS(DIRECT_BYTES = 384, DEEP_STEPS = 2);

/* ---- over_shards ---- */

enum { SHARD_SUM_TILE = 256 }; /* numbers of a tile */

/* ---- cumsum ---- */

/* Lines of a tile: a warp each, where neighbours in memory are of one line, else a thread each. */
MTC_AGREED int cumsum_lines(long long inner) {
    return inner == 1 ? WARPS : THREADS;
}

/* ---- recurrent layers ---- */

typedef enum RecurrentCell { RNN_TANH, RNN_RELU, GRU, LSTM } RecurrentCell;

MTC_CONSTANTS(LARGEST_STATE = 1024); /* units of a layer */

/* Each gate has a row of the weights for each unit. */
MTC_AGREED int recurrent_gates(RecurrentCell cell) {
    return cell == LSTM ? 4 : cell == GRU ? 3 : 1;
}

/* h, and c of an LSTM. */
MTC_AGREED int recurrent_states(RecurrentCell cell) {
    return cell == LSTM ? 2 : 1;
}

/* What the gradient reads of a unit at a step: its gates; beside them c of an LSTM, of a GRU what r is multiplied by. */
MTC_AGREED int recurrent_kept(RecurrentCell cell) {
    return recurrent_gates(cell) + (cell >= GRU);
}

/* Examples of a tile: more than one where there are more examples than multiprocessors. */
MTC_AGREED int recurrent_examples(long long examples, long long units) {
    return examples <= 128 || units > 256 ? 1 : examples <= 256 ? 2 : 4;
}

/* Blocks that share the units out among them, as a cluster (cuda/recurrent_together.cuh), where one has no registers for U: a thread
 * holds STATE_HELD numbers of it; of 16 blocks, as many again lie in shared memory. 1: a block is enough, or 16 are not. */
MTC_CONSTANTS(STATE_HELD = 128);
MTC_AGREED int recurrent_blocks(RecurrentCell cell, long long units) {
    long long numbers = recurrent_gates(cell) * units * units, held = STATE_HELD * THREADS;
    return numbers <= held * 3 / 4 ? 1 : numbers <= 4 * held ? 4 : numbers <= 8 * held ? 8 : units <= 512 ? 16 : 1;
}

/* ---- attention ---- */

MTC_CONSTANTS(LARGEST_HEAD = 256); /* numbers of a head that a block of rows holds */

MTC_AGREED bool head_fits_tensor_cores(long long size) {
    return size % 8 == 0 && size <= 128;
}

/* At one position, which sees so many: blocks for each of so many heads of keys, of all texts. Where they are few, of a hundred positions
 * or two when the cache is full; where they are many, they keep the memory busy by themselves. A power of two. */
MTC_AGREED int attention_step_parts(long long seen, long long heads) {
    enum { MANY_BLOCKS = 384 };
    int parts = 1;
    while (parts < 8 && parts * 128 < seen && parts * heads < MANY_BLOCKS)
        parts *= 2;
    return parts;
}

/* On CUDA cores a tile is planned for PLAIN_SHARED bytes; gradients of heads up to LARGEST_PLAIN_SMALL make do with PLAIN_SMALL. */
MTC_CONSTANTS(PLAIN_SHARED = 99 << 10, PLAIN_SMALL = 64 << 10, LARGEST_PLAIN_SMALL = 176);

/* ---- the gradient of a table that was looked up ---- */

/* Indices that a block lists at a time: so many for each of its threads. */
MTC_CONSTANTS(GATHER_STEPS = 8, GATHER_BATCH = GATHER_STEPS * THREADS);

/* Neighbouring threads that take a row of `packs` packs: no more than packs; fewer where that would leave most of the device
 * without a tile. */
MTC_AGREED int gather_lanes(long long rows, long long packs) {
    long long least = 4, fewest_tiles = 128, lanes = LANES;
    while (lanes > 1 && (lanes / 2 >= packs || (lanes > least && rows * ((packs + lanes - 1) / lanes) < fewest_tiles)))
        lanes /= 2;
    return (int)lanes;
}

/* Of the rows: as many as give four blocks to each multiprocessor of a large device, more where one would have too many. */
MTC_AGREED int gather_slices(long long rows, long long across) {
    long long tiles = 512, most_rows = 1024;
    long long least = (rows + most_rows - 1) / most_rows, slices = tiles / across < least ? least : tiles / across;
    return (int)(slices < rows ? slices : rows);
}

#endif
