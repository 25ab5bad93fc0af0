/* Launches of a program in CUDA C++: the kernels of each, and which of them are the same with other tensors. */
#ifndef MTC_LAUNCHES_H
#define MTC_LAUNCHES_H

#include "emit/cuda/called.h"
#include "emit/cuda/launch.h"

/* The types of a program's launches, and its own: "using Train = Step<...>;". */
void write_launches(Emitter *e, const Program *program, Writer *out);
/* Some of them are not at places 0, 1, 2 ... */
bool launches_say_rows(Emitter *e);
/* How many the program's first ones are that make what lasts from run to run. */
int launches_that_last(const Emitter *e, const Program *program);
/* A program's kernels in the order of its launches' tiles, as cuda/repeated.cuh counts them. */
void kernels_in_launches(Emitter *e, const Program *program, KernelsInOrder *kernels);

/* dialect.c: the tiles of a function of the library are worked on by clusters. */
bool in_cluster(const Emitter *e, const Kernel *kernel);

#endif
