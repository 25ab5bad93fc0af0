/* Identifiers of the generated program. */
#ifndef MTC_NAMES_H
#define MTC_NAMES_H

#include "ir/graph.h"

#include <stdbool.h>

typedef VEC(const char *) NameList;

/* The names taken in one scope of the generated program; those of the scopes around it are taken as well, and what is defined
 * outside of all of them. */
typedef struct Names {
    Arena *arena;
    bool (*defined)(const char *name); /* by headers; NULL: nothing is that would be in the way */
    const struct Names *outer;
    NameList taken;
    NameList *ever; /* gets all that are taken, also in scopes that end; NULL: nobody asks */
} Names;

/* `wanted` as an identifier that nothing else in the scope has: "h.weight" gives "h_weight", then "h_weight_2". It
 * has a small letter: "H" gives "h". */
const char *names_claim(Names *names, const char *wanted);
/* That of a type which emission names, whatever types there are elsewhere. */
const char *names_claim_type(Names *names, const char *wanted);
/* The same in capitals, for an enumeration constant. */
const char *names_claim_constant(Names *names, const char *wanted);
/* A name that was claimed in a scope inside of this one stands for something of this one. */
void names_take(Names *names, const char *name);
const char *names_upper(Arena *arena, const char *name); /* in capitals */

/* What to call a value: as the model does, or after what it is computed from. */
const char *local_name(Arena *arena, const Node *n);

/* A word that no name of the program can be. */
bool names_reserved(const char *name);

/* A C program's headers define it for the whole file, or a function that calls kernels has a parameter of this name. */
bool defined_in_c(const char *name);
/* CUDA's headers define it for the whole file, or what kernels call has the name. */
bool defined_in_cuda(const char *name);
/* The same of what only some call. */
bool called_in_cuda(const char *name);

/* A header of either target has a macro or a constant of this name in capitals. */
bool defined_constant(const char *name);

/* True when `word` occurs in `text` as a whole identifier. */
bool has_word(const char *text, const char *word);

#endif
