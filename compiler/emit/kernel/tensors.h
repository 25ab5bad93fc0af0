/* The struct of everything that a kernel reaches. */
#ifndef MTC_TENSORS_H
#define MTC_TENSORS_H

#include "emit/kernel/emitter.h"

typedef struct Member {
    const char *type, *name, *value, *note; /* float *, h_weight, (float *)(run.arena + 0), [H, IMAGE] */
} Member;
typedef VEC(Member) Members;

/* Claims the members' names. */
void tensors_name(Emitter *e);
/* `arrow`: how `run`'s members are reached; `of`: "run->", or "" where the arena is a parameter of its own. */
Members tensors_members(Emitter *e, const char *arrow, const char *of);
/* Those of them that are no tensors of the arena: fields, flags. */
Members shared_members(Emitter *e, const char *arrow);
/* "type name; // note" for each, notes aligned; `valued`: each with where it lies. */
void write_members(Emitter *e, const Members *members, bool valued, Writer *out);

/* The flat weight of which a kernel of the update computes elements, those of the process: pass/flat.h. NULL: it computes all of its
 * rows. */
const Buffer *flat_of_kernel(const Emitter *e, const Kernel *kernel);

#endif
