/* Launches of a program in CUDA C++: the kernels of each, and which of them are the same with other tensors. */
#ifndef MTC_LAUNCHES_H
#define MTC_LAUNCHES_H

#include "emit/kernel/repeat.h"

/* Sets `launched` of all functions, and finds what the others below write; again, nothing. */
void find_launches(Emitter *e);
/* The functions of a program's launches, and its type: "using Train = Step<...>;". */
void write_launches(Emitter *e, const Program *program, Writer *out);
/* How many the program's first ones are that make what lasts from run to run. */
int launches_that_last(const Emitter *e, const Program *program);
/* Which launch each kernel of the training step is in, and where. */
void write_parts(Emitter *e, Writer *out);

/* dialect.c: "h(h_tensors(t, 3), batch, tile, shared, gate)", with these instead of t and tile. */
const char *call_with(Emitter *e, const Function *f, const char *tensors, const char *tile);
/* "h", or of several sizes "h::run". */
const char *function_name(Emitter *e, const Function *f);
/* The type of what it is given as its tensors: "Tensors", "h_tensors", "h::Own". */
const char *places_type(Emitter *e, const Function *f);
bool keeps_vectors(const Kernel *kernel);
/* dialect.c: what the text of the function calls tensor `b` of those that it mentions. */
const char *member_name(Emitter *e, const Function *f, int b);
/* dialect.c: "Warp". */
const char *team_name(Emitter *e, const Kernel *kernel);
/* dialect.c: the tiles of a function of the library are worked on by clusters. */
bool in_cluster(const Emitter *e, const Kernel *kernel);

/* A launch. Those that have the same kernels, with other tensors, are one function: `like` is the first of them. */
struct Launch {
    const Program *program;
    int phase, beside; /* 0: the first of its phase */
    Phase kernels;
    Groups groups;
    Groups before; /* what each block computes for itself first; none, or one of one place */
    Kernel *row;   /* whose that is; NULL: nobody's */
    bool ahead;    /* there is such a row, or weights come ahead of the gate: ahead.c */
    const char *name;
    int like, again, times; /* the first one: how many there are; any: where it stands among them */
};
/* "h_tiles", "12 * h_tiles" */
const char *group_tiles(Emitter *e, const Group *group);
/* Behind the groups that have tiles, what each block computes first. */
const Group *group_at(const Launch *launch, int group);
/* The place of the group's tile: "3", "batch.again + tile / h_tiles". */
const char *place_of(Emitter *e, const Launch *launch, int group);
/* What that one takes that takes most: its name, 0 if there is none, or a constant of the launch, which is written. */
const char *most_bytes(Emitter *e, const Launch *launch, bool wanted, Writer *out);

/* ahead.c: weights come ahead of the launch's gate; the constants that say where they and the row lie, and the launch's bytes; the body
 * of its function. */
bool brings_weights(const Emitter *e, const Launch *launch);
void write_ahead_places(Emitter *e, const Launch *launch, Writer *out);
void write_function_ahead(Emitter *e, const Launch *launch, Writer *out);

#endif
