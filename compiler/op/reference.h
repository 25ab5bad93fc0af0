/* The operator reference, docs/operators.md, as the table of operators has it. */
#ifndef MTC_REFERENCE_H
#define MTC_REFERENCE_H

#include "ir/op.h"

void reference_print(Text *out);

/* What a function is called elsewhere, and the call that is written here: "dense", "linear(x, out)". */
typedef struct Synonym {
    const char *word, *instead;
} Synonym;
/* What can be called, for programs. `synonyms` end with one without a word. */
void reference_json(Text *out, const Synonym *synonyms);
const char *op_title(Arena *arena, const OpDef *op); /* "LeakyReLU" */

#endif
