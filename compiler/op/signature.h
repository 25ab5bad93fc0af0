/* What a call takes: the text of OpDef.signature, read. */
#ifndef MTC_SIGNATURE_H
#define MTC_SIGNATURE_H

#include "op/value.h"

typedef struct Parameter {
    const char *name;
    bool required;
    bool rest;      /* takes all further positional arguments, as a list */
    Value fallback; /* of an optional parameter of a library function */
} Parameter;

typedef struct Signature {
    const char *text; /* as shown to the user: "linear(x, out: size, bias: bool = true)" */
    Parameter *at;
    int count;
} Signature;

/* Of a function called `name` with the parameters "x, out: size, bias: bool = true, parts..." */
const Signature *signature_parse(Arena *arena, const char *name, const char *parameters);
/* From `OpDef.signature`. */
const Signature *signature_of_op(Arena *arena, const OpDef *op);

#endif
