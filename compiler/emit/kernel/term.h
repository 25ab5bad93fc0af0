/* What an expression is made of, before it is text: inside of expr.h. Terms are found (term.c), have values
 * (value.c), which become statements (statement.c). */
#ifndef MTC_TERM_H
#define MTC_TERM_H

#include "emit/kernel/element.h"

/* The value of a node at an index. */
struct Term {
    const Node *node;
    Index at;
    const Tree *form; /* with $0 .. for the operands */
    Term *operand[MAX_INPUTS];
    int operands, uses;
    const Buffer *buffer; /* loaded from there; NULL: from a data field */
    bool loaded;
    bool pack;             /* the form loads it for all lanes */
    bool plain;            /* a name or a constant: as short as a local would be */
    bool uniform;          /* the same number for each element of the kernel */
    bool fixed;            /* the same number for all that the body counts, and read under no condition */
    bool costly;           /* worth computing once */
    const Tree *guard;     /* the condition under which its loads are in bounds; NULL: they always are */
    const Tree *own_guard; /* a view that reads under a condition: that */
    bool stays;            /* another value, or loaded from nowhere, where that does not hold which the body assumes */
    bool nothing;          /* a padding with 0, where it is known not to read; or a sum of such */
    bool overwritten;      /* an earlier statement of the body writes over what this one loads */
    const Tree *local;
};

/* The term of the node at the index, read under `guard`; it is used once more. */
Term *term_of(Body *body, const Node *n, const Index *at, const Tree *guard);
/* The term is also read under another condition, or without one. */
void term_widen(Arena *arena, Term *term, const Tree *guard);
/* It is used more than once, or read before an earlier statement writes over it. */
bool term_is_shared(const Term *term);
/* A statement of the outermost body may run before what it would read is complete: see `schedules`. */
bool may_load_around(const Body *body);
/* The kernel computes the value at the index; it has it from nowhere. */
bool is_computed(const Body *body, const Node *n, const Index *at);
/* The lanes' elements lie side by side. */
bool is_pack(const Body *body, const Tree *element);

/* What the term is written as; its locals are written before. */
const Tree *value_of(Body *body, Term *term);

#endif
