/* Rules by which tensors get other names. A file has one in a line, `pattern -> replacement`; `#` begins a comment. In a pattern
 * `*` stands for any characters, also none, as few as will do; the stars of the replacement stand for the same, in their
 * order. The first rule that matches a name decides; without a replacement, the tensor is left out. */
#ifndef MTC_RENAME_H
#define MTC_RENAME_H

#include "support/diag.h"

typedef struct Rule {
    const char *pattern, *replacement;
    Span src;
    int used; /* how many names it has decided */
} Rule;
typedef VEC(Rule) Rules;

/* False after a report: no such file, a line that is no rule, a replacement with more stars than its pattern. */
bool rules_read(Diag *diag, const char *path, Rules *rules);
/* The name that a tensor gets, which may be its own; NULL: it is left out. */
const char *rules_apply(Arena *arena, Rules *rules, const char *name);
/* Warns of rules that have decided nothing. */
void rules_report(Diag *diag, const Rules *rules);

#endif
