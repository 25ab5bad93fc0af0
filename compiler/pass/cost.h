/* What a product's tile costs: a model that ranks tiles, and how a tile's operands reach the threads. */
#ifndef MTC_COST_H
#define MTC_COST_H

#include "pass/kernel.h"

/* Cycles of a tile: those in which it waits for memory, while other blocks of its multiprocessor may work, and the others. */
typedef struct Cost {
    double waiting, working;
} Cost;

/* The CONTRACT kernel's product in such tiles; its operands' buffers may not be known yet. */
Cost tile_cost(const Kernel *kernel, const Tile *tile, const Machine *machine);
Feed tile_feed(const Kernel *kernel, const Tile *tile);

/* Numbers of an operand that lie together: of a row, or of a pixel. */
int64_t floats_together(const Operand *operand);

/* Bytes of shared memory of a block that works on the tile on CUDA cores: as planned, and at least. */
int tile_bytes(const Kernel *kernel, const Tile *tile);
int tile_least_bytes(const Kernel *kernel, const Tile *tile);

/* The same of few rows on tensor cores, at least. */
int tile_least_few(const Tile *tile);

/* Blocks of a multiprocessor that wait at the same time: as many as find registers and shared memory. */
int tile_resident(const Kernel *kernel, const Tile *tile, const Machine *machine);

#endif
