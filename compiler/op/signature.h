/* What a call takes: the text of OpDef.signature, read. Parameters are separated by commas:
 *
 *   x                           a tensor
 *   bias: bool = true           of a kind, with a default: true, false, none, a number or a string
 *   eps: number > 0 = 1e-5      a number within bounds: > a, >= a, in [a, b], in (a, b], and so on
 *   parts...                    all further positional arguments, as a list
 *   mode: "a" or "b" = "a"      one of these words, by its number: an enumeration has them in this order (call_word)
 *   scale: interval in (0, 1]   two numbers within the bounds, the least and the most (call_interval)
 *   size: pixels = none         rows and columns of the image that the function gives, one number for both or a list; none: as
 *                               many as the image has that it takes (call_pixels)
 */
#ifndef MTC_SIGNATURE_H
#define MTC_SIGNATURE_H

#include "op/value.h"

typedef struct Parameter {
    const char *name;
    const char *kind;         /* "number", "size", "bool", "word" ...; NULL: none is said */
    const char *const *words; /* of the kind "word" */
    int word_count;
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
bool is_of_kind(const Parameter *parameter, const char *kind);

#endif
