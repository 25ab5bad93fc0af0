/* How kernels are cut into tiles, and the cost model that chooses. */
#ifndef MTC_TILE_H
#define MTC_TILE_H

#include "pass/kernel.h"

/* Sets tile or team, tiles, flops and bytes. */
void kernel_cut(Kernel *kernel, const Machine *machine);

/* Sets that of rows that follow a product of the same rows, `rows` of them behind each of its tiles. */
void kernel_cut_behind(Kernel *kernel, const Kernel *leader, int64_t rows, const Machine *machine);

/* Sets `held`: of a kernel of long rows, the operand that is most of what it reads, if several stages read its rows, which would
 * come from memory each time and fit into a block's shared memory. */
void kernel_hold_row(Arena *arena, Kernel *kernel, const Machine *machine);

/* Sets `at_once`, and the tiles that are left: of a kernel of a token. */
void kernel_join_rows(Kernel *kernel, const Machine *machine);

/* Gives a product the fewest tiles of which none takes longer than `seconds`: beside a longer kernel of its phase it then
 * leaves multiprocessors free at no cost. Small ones share a multiprocessor where several blocks fit, and stay as they are, as do long ones,
 * which are launches of their own. */
void kernel_shrink(Kernel *kernel, double seconds, const Machine *machine);

/* Gives long columns fewer tiles, of threads that add up a few numbers each: there are few blocks at a time, beside which they would come one after
 * the other. Not those that are launches of their own. */
void kernel_lengthen(Kernel *kernel, const Machine *machine);

/* Seconds that its arithmetic alone takes the machine. */
double kernel_arithmetic(const Kernel *kernel, const Machine *machine);

/* Estimated time of one of its tiles, and of the kernel alone on the machine, without launch. */
double kernel_tile_seconds(const Kernel *kernel, const Machine *machine);
double kernel_seconds(const Kernel *kernel, const Machine *machine);

/* In a graph it is a launch of its own. */
bool kernel_is_long(const Kernel *kernel, const Machine *machine);

/* Of its share, where its tiles are dealt to multiprocessors that have others too and never idle. */
double kernel_dealt_seconds(const Kernel *kernel, const Machine *machine);

/* LOOP: how threads share it as patches; without a sum, in another way. */
Patch patch_of(const Kernel *kernel, const Machine *machine);

#endif
