/* Which tiles a product can have on a machine. */
#ifndef MTC_SUIT_H
#define MTC_SUIT_H

#include "pass/kernel.h"

bool tile_suits(const Kernel *kernel, const Tile *tile, const Machine *machine);

/* Blocks that work on the CONTRACT kernel in such tiles. */
int64_t tile_count(const Kernel *kernel, const Tile *tile);

/* On tensor cores: its panels, or steps of k, under way that a block of the machine has room for. */
int tile_stages(const Kernel *kernel, const Tile *tile, const Machine *machine);

#endif
