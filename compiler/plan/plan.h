/* The memory plan: one arena for everything that training touches.
 *
 *   | weights | optimizer state | activations and gradients, shared by lifetime |
 *
 * With --shard-optimizer the states of which each process has a part are the last, behind all that each has whole (PlanFlat).
 *
 * A buffer lives from the phase that writes it to the last phase that reads it. Kernels of one phase run at the same
 * time, so two buffers may share bytes only when their phase intervals do not touch; except in place: an element-wise
 * kernel, or the epilogue of a product, may write over the operand that dies with it, when it alone reads it in that
 * phase, each element only where it writes it. What only reports read has no buffer: it goes to the run's reports. */
#ifndef MTC_PLAN_H
#define MTC_PLAN_H

#include "pass/kernel.h"

typedef enum BufferKind { BUFFER_WEIGHT, BUFFER_STATE, BUFFER_VALUE } BufferKind;

typedef struct Buffer {
    BufferKind kind;
    const char *name;  /* C identifier, unique: "h_weight", "h_weight_m", "d_h" */
    const char *label; /* "h.weight": in tables and files */
    int index;         /* row of module->weights / states; VALUE: -1 */
    const Node *node;  /* VALUE: the stored node of the program `program` */
    int program;       /* index into Plan.programs; weights and states: -1 (live always) */
    Type type;
    int64_t bytes, offset;
    bool flat, within;       /* others lie in it; it lies in another one: flat.h */
    int slot;                /* state of which each process has a part: the how manieth of its weight, from 1; else 0 */
    int first, last;         /* phases, inclusive */
    const char *in_place_of; /* name of the buffer whose bytes it takes over in place, or NULL */
    Span src;
} Buffer;

/* Flat weights, their sums, averages and states each lie one behind the other in the same order, `bytes` of them: the same range of
 * each belongs to a process. */
typedef struct PlanFlat {
    int64_t bytes;                   /* 0: there are none */
    int64_t weights, sums, averages; /* offsets; averages: -1 without */
    int64_t states;                  /* the first of `slots` pieces: at the arena's end */
    int slots;
} PlanFlat;

typedef struct Plan {
    VEC(Buffer) buffers;                 /* by offset, then name */
    const Program *programs[MAX_GRAPHS]; /* in the order of the module's graphs */
    int program_count;
    int64_t arena_bytes;    /* with sharing */
    int64_t unshared_bytes; /* every buffer on its own */
    int64_t weight_bytes, state_bytes, value_bytes;
    PlanFlat flat;           /* its states are none of state_bytes */
    int64_t floor_bytes;     /* the largest sum of live bytes over all phases: no plan can do with less */
    int real_bytes;          /* of an f32 of the graph */
    const struct Plan *kept; /* of the same model, did the backward pass not compute values again; NULL: it does not */
    /* Rows of `buffers`, or -1: by node of each program, by weight, by state. */
    int *of_node[MAX_GRAPHS], *of_weight, *of_state;
} Plan;

/* They have bytes in common. */
bool buffers_meet(const Buffer *a, const Buffer *b);

/* Values of the programs share the same bytes: no two of them run at once. `real_bytes` is 4, or 8 in a
 * program for gradient checks. */
Plan *plan_memory(Module *module, const Programs *programs, int real_bytes);
void plan_verify(const Plan *plan); /* no two live buffers overlap, all aligned, all inside; else an internal error */
void plan_print(const Plan *plan, Text *out);
void plan_svg(const Plan *plan, Text *out);

/* The buffer of a weight, a state or a stored node of a program (of an assigned value: the leaf's). NULL for a data
 * field, which lies outside the arena, and for a value that only reports read. */
const Buffer *plan_buffer(const Plan *plan, const Node *n);

/* Where the sums over a batch in shards lie, one behind the other, up to where another tensor may begin: copies of them lie
 * one behind the other, too. */
typedef struct PlanSums {
    int64_t begin, end;
} PlanSums;
PlanSums plan_sums(const Plan *plan, const Module *module);
/* Of the bucket number b of the training step, which has bytes. */
PlanSums plan_bucket(const Plan *plan, int b);

/* Before the kernel, shards wait for a sum over all of them; and how many such kernels a training step has. */
bool kernel_waits_for_shards(const Kernel *kernel);
int plan_exchanges(const Plan *plan);

/* Of all states, those of which each process has a part too. */
int64_t plan_state_bytes(const Plan *plan);
/* Some kernel of the update reads the sums of a weight that lies in a flat one: each process needs all of them. */
bool plan_needs_all_sums(const Plan *plan, const Module *module);

/* That of the graph; NULL: the module has no such graph. */
const Program *plan_program(const Plan *plan, const Graph *graph);

#endif
