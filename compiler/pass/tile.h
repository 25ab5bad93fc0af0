/* How kernels are cut into tiles, and the cost model that chooses. */
#ifndef MTC_TILE_H
#define MTC_TILE_H

#include "pass/kernel.h"

/* Sets tile or team, tiles, flops and bytes. */
void kernel_cut(Kernel *kernel, const Machine *machine);

/* Gives a product the fewest tiles of which none takes longer than `seconds`: beside a longer kernel of its phase it then
 * leaves multiprocessors free at no cost. */
void kernel_shrink(Kernel *kernel, double seconds, const Machine *machine);

/* Seconds that its arithmetic alone takes the machine. */
double kernel_arithmetic(const Kernel *kernel, const Machine *machine);

/* Estimated time of one of its tiles, and of the kernel alone on the machine, without launch. */
double kernel_tile_seconds(const Kernel *kernel, const Machine *machine);
double kernel_seconds(const Kernel *kernel, const Machine *machine);

#endif
