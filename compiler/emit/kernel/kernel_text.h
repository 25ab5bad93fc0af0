/* What kernels of both classes and both targets have in common. */
#ifndef MTC_KERNEL_TEXT_H
#define MTC_KERNEL_TEXT_H

#include "emit/kernel/expr.h"

/* Adds what becomes of a stored value, at its own index: assigned, reported, kept in a buffer. */
void output_store(Body *body, const Node *stored, const Index *at, Outputs *outputs);

/* ---- contract.c: products ---- */

/* The index of operand 0 or 1 of a product at which it contributes to output `at`, `k` counting the folded axis. */
Index operand_index(Emitter *e, const Node *product, int operand, const Index *at, const Index *k);
/* a * b: one term of the sum. */
const Tree *product_term(Body *body, const Node *product, const Index *at);
/* Symbol of the extent of the folded axis. */
const char *product_depth(Emitter *e, const Node *product);
/* Several products whose outputs are counted as those of one, below each other: cuda/tile.cuh. */
bool product_is_stacked(const Kernel *kernel);
/* The index of an output, counted by b (when there are several products), i and j. */
Index product_index(Emitter *e, const Kernel *kernel);
/* Outputs of a product's kernel: the epilogue at every (i, j); the side reduction's at every i or j. */
Outputs product_outputs(Body *body, const Kernel *kernel);
/* Which of the kernel's sums over the rows of a tile the node is; -1: none. */
int fold_of(const Kernel *kernel, const Node *n);
Outputs side_outputs(Body *body, const Kernel *kernel);

/* ---- loop.c: kernels of rows ---- */

void write_rows(Body *kernel);
/* What a stage computes at element j of the row, with its products known. */
Outputs stage_outputs(Body *body, const Stage *stage, const Index *at);
/* Symbols of the number of a row's elements in the stage, and of the number of rows. */
const char *stage_extent(Emitter *e, const Stage *stage);
const char *row_count(Emitter *e, const Kernel *kernel);
/* The rows: the index space of a kernel without what its rows loop over; and what a stage loops over. */
Shape row_shape(Emitter *e, const Kernel *kernel);
Shape stage_inner(Emitter *e, const Stage *stage);
/* i, which counts the rows. */
const Tree *row_counter(Arena *arena, const Kernel *kernel);
/* The index of the stage's element, of the row's and that of what it loops over. */
Index index_in_stage(Emitter *e, const Stage *stage, const Index *row, const Index *element);
/* What the reduction is folded into: claimed by who asks first, its equation or its declaration. */
const char *fold_name(Body *row, const Node *reduction);
/* Symbol of the number of elements of a row of what the kernel holds. */
const char *held_extent(Emitter *e, const Kernel *kernel);
bool every_row_exists(const Kernel *kernel);
/* i counts the rows, j the elements of a row. */
Index stage_index(Body *body, const Stage *stage, const Tree *j);

/* ---- nest.c: kernels of rows that are neighbours in memory, on a processor ---- */

/* Element-wise, or folded along slow axes alone. */
bool kernel_nests(const Kernel *kernel);
void write_nest(Body *kernel);

#endif
