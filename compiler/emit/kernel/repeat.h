/* Kernels that say the same of other tensors, as the layers of a network do, are written once.
 *
 * Two functions are equal when their texts are, after what may differ has been replaced: a tensor by the number of its first
 * mention and its type, a name that the function itself declares by a number, a size by its value. The first is written, with
 * a table of where the tensors of each lie: its places. */
#ifndef MTC_REPEAT_H
#define MTC_REPEAT_H

#include "emit/kernel/tensors.h"

/* Sets `like`, `place`, `places` and `buffers` of all functions, and what sized.h says. */
void find_repeats(Emitter *e);

/* The function that is written for the kernel's. */
const Function *written_function(const Emitter *e, const Kernel *kernel);

/* It is given tensors of its own, not all: those of one of its places. */
bool has_own_tensors(const Function *f);
/* The functions that f is written for, in the order of its places. */
typedef VEC(Function *) NumberedFunctions;
NumberedFunctions functions_at(Emitter *e, const Function *f);
/* What the function reaches that is the same at all of its places: fields, flags. */
Members shared_by(Emitter *e, const Function *f, const char *arrow);

/* Kernels of a launch that are the same function, at places one after the other. */
typedef struct Group {
    const Function *function; /* the one that is written */
    int first, count;         /* places */
} Group;
typedef VEC(Group) Groups;
Groups groups_of(Emitter *e, const Phase *launch);
/* The same functions as often, at whatever places. */
bool same_groups(const Groups *a, const Groups *b);

#endif
