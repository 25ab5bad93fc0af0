/* Products in CUDA, and what becomes of their sums. */
#ifndef MTC_PRODUCT_H
#define MTC_PRODUCT_H

#include "emit/kernel/kernel_text.h"

void declare_product(Emitter *e, const Kernel *kernel, Writer *out);
void write_product(Body *kernel);
/* A product in turns, in a launch of its own. */
bool takes_turns(Emitter *e, const Kernel *kernel);

/* What is written in others is complete ahead of the kernel's gate. */
int phase_before(const Program *program, const Kernel *kernel);

/* Writes the callbacks that matmul takes; returns them: "preloaded(read, out), sum_of_a(side)". */
const char *write_epilogues(Body *kernel);
/* Neighbours in j that a call of the epilogue takes; 1: no vectors. */
int epilogue_lanes(Emitter *e, const Kernel *kernel);
/* "using Rows = Axis<CONV1_ROWS, 3, 1, 1, 1, 1>;", of windows [N, OH, OW, KH, KW, C] along axis 1 or 2; returns the name. */
const char *write_axis(Body *kernel, const char *wanted, const Shape *windows, const Sweep *sweep, int axis);
/* A struct of what is read, and the callback that reads it: "auto read = [&](int i, int j) { return Ahead{...}; };" */
void write_reads(Emitter *e, const char *type, const char *name, const char *index, const Reads *reads, Writer *out);
/* "auto out = [&](int i, int j, float sum) { ... };", on one line if it has one statement. */
void write_lambda(Writer *out, const char *head, const Writer *lines);

#endif
