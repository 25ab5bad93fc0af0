/* What a call takes: the text of OpDef.signature, read. Parameters are separated by commas:
 *
 *   x                           a tensor
 *   bias: bool = true           of a kind, with a default: true, false, none, a number or a string
 *   eps: number > 0 = 1e-5      a number within bounds: > a, >= a, in [a, b], in [a, b)
 *   parts...                    all further positional arguments, as a list
 */
#ifndef MTC_SIGNATURE_H
#define MTC_SIGNATURE_H

#include "op/value.h"

typedef struct Parameter {
    const char *name;
    const char *kind; /* "number", "size", "bool" ...; NULL: none is said */
    bool bounded;
    Bounds bounds;
    bool required;
    bool rest;
    Value fallback; /* of an optional parameter of a library function */
} Parameter;

typedef struct Signature {
    const char *text; /* as shown to the user: "linear(x, out: size, bias: bool = true)" */
    Parameter *at;
    int count;
} Signature;

/* Of a function called `name` with these parameters. */
const Signature *signature_parse(Arena *arena, const char *name, const char *parameters);
/* From `OpDef.signature`. */
const Signature *signature_of_op(Arena *arena, const OpDef *op);

#endif
