/* Expressions of generated code as trees: indices, conditions, values. Views and operators build them, passes and emission ask
 * and rewrite them, and they are printed once, where a line of code is written.
 *
 *     tree_form(arena, "$0 * 2 + $1", (const Tree *[]){i, j}, 2)      the sum of a product and j; printed "i * 2 + j"
 *
 * A tree is never changed once it is made, so that trees share their parts; parentheses are not in it, printing puts them
 * where C needs them. All live in the arena that they were made with. */
#ifndef MTC_TREE_H
#define MTC_TREE_H

#include "support/text.h"

#include <stdbool.h>

/* Binding strengths of C, weakest first; an operand is parenthesised when its own is weaker than its place asks. */
enum {
    PREC_COMMA,
    PREC_COND,
    PREC_OR,
    PREC_AND,
    PREC_EQUAL,
    PREC_RELATION,
    PREC_SUM,
    PREC_PRODUCT,
    PREC_UNARY,
    PREC_PRIMARY
};

typedef enum TreeKind {
    TREE_NUMBER,  /* 3, 0.5f, -1.0f */
    TREE_NAME,    /* i, IMAGE, INFINITY */
    TREE_MEMBER,  /* t.image: of what a kernel is given */
    TREE_OPERAND, /* $0, $v: a place in a form, for something else */
    TREE_PREFIX,  /* -a */
    TREE_CAST,    /* (a)b, a being a type */
    TREE_INFIX,   /* a + b */
    TREE_CHOICE,  /* a ? b : c */
    TREE_CALL,    /* f(a, b) */
    TREE_ELEMENT, /* a[b], in equations a[b, c] */
    TREE_FOLD     /* in equations: (sum over k of a) */
} TreeKind;

typedef struct Tree Tree;
struct Tree {
    TreeKind kind;
    /* As it is written: a number or a name; an operator ("+"); the function of a call ("fmax", "load_pack<8>"); of an operand
     * what stands behind the $ ("0", "v", "i1"); of a fold what is said before its term ("sum over k"). Else NULL. */
    const char *text;
    int prec;      /* how strongly its weakest operator binds */
    int64_t value; /* of a whole number, and of a name that is a size; else 0 */
    bool *printed; /* set when the name is; NULL: nobody asks */
    bool wide;     /* a whole number of 64 bits */
    int count;
    const Tree *const *part; /* a, b, c above; of a call the arguments */
};

/* ---- making ---- */

const Tree *tree_number(Arena *arena, int64_t value);
/* A number as C writes it: "0.5f", "-INFINITY". */
const Tree *tree_literal(Arena *arena, const char *text);
const Tree *tree_name(Arena *arena, const char *name);
/* The name of something that has that value, of as many bits. */
const Tree *tree_name_for(Arena *arena, const char *name, const Tree *value);
/* A name that stands for a whole number. */
const Tree *tree_constant(Arena *arena, const char *name, int64_t value, bool *printed);
/* "t." and "image" */
const Tree *tree_member(Arena *arena, const char *of, const char *name);
/* "-" or "!" */
const Tree *tree_prefix(Arena *arena, const char *op, const Tree *a);
const Tree *tree_cast(Arena *arena, const char *type, const Tree *a);
/* (int64_t)a; of a product the first factor, which decides in how many bits it is computed */
const Tree *tree_widened(Arena *arena, const Tree *a);
/* Any operator of C with two operands, but assignments. */
const Tree *tree_infix(Arena *arena, const char *op, const Tree *a, const Tree *b);
const Tree *tree_choice(Arena *arena, const Tree *condition, const Tree *yes, const Tree *no);
const Tree *tree_call(Arena *arena, const char *function, const Tree *const *arguments, int count);
const Tree *tree_element(Arena *arena, const Tree *of, const Tree *at);
const Tree *tree_element_at(Arena *arena, const Tree *of, const Tree *const *at, int count);
/* The same, a number of 64 bits, as is what is computed of it. */
const Tree *tree_as_wide(Arena *arena, const Tree *e);
const Tree *tree_fold(Arena *arena, const char *what, const Tree *term);

/* a + b and a * b without parentheses on the right: the terms of b behind those of a, its factors behind those of a. Of whole
 * numbers, which group as one likes. a NULL: b. */
const Tree *tree_plus(Arena *arena, const Tree *a, const Tree *b);
const Tree *tree_times(Arena *arena, const Tree *a, const Tree *b);
/* a + by, a - (-by); a where by is 0, the sum where a is a number. */
const Tree *tree_shifted(Arena *arena, const Tree *a, int64_t by);
/* The tree with 15 for 0 + 15, wherever two whole numbers are added or subtracted. */
const Tree *tree_summed(Arena *arena, const Tree *e);

/* A name in a table: "r0". */
#define TREE_NAMED(literal)                                                                                            \
    &(const Tree) {                                                                                                    \
        .kind = TREE_NAME, .text = literal, .prec = PREC_PRIMARY                                                       \
    }

/* The tree with as many other parts. */
const Tree *tree_with_parts(Arena *arena, const Tree *e, const Tree *const *parts);

/* The places $0, $1 ... of forms, for who asks what becomes of its operands. */
enum { TREE_OPERANDS = 10 };
extern const Tree *const tree_operand[TREE_OPERANDS];

/* What stands in the form, an expression of C with places: "$0 * $1", "clamped($0, $n)". Operators have a space on both
 * sides, prefixes none. */
const Tree *tree_read(Arena *arena, const char *form);
/* The tree with what `of` says in its places; NULL from `of`: the place stays. */
typedef const Tree *TreeFill(void *context, const Tree *place);
const Tree *tree_filled(Arena *arena, const Tree *form, TreeFill *of, void *context);
/* The tree with operands[k] for $k. */
const Tree *tree_with(Arena *arena, const Tree *form, const Tree *const *operands, int count);
/* Both at once. */
const Tree *tree_form(Arena *arena, const char *form, const Tree *const *operands, int count);

/* ---- asking ---- */

/* The same tree. */
bool tree_same(const Tree *a, const Tree *b);
bool tree_is_number(const Tree *e, int64_t value);
bool tree_is_name(const Tree *e, const char *name);
bool tree_is_infix(const Tree *e, const char *op);
/* The name occurs, as that of a value. */
bool tree_mentions(const Tree *e, const char *name);
bool tree_has_kind(const Tree *e, TreeKind kind);
/* The operator occurs between two operands. */
bool tree_has_infix(const Tree *e, const char *op);
/* Of the tree, what it shares counted wherever it stands. */
int tree_nodes(const Tree *e);

/* ---- printing ---- */

const char *tree_text(Arena *arena, const Tree *e);
/* The same, but for what `print` prints in its own way: it is asked for each part, and whether that stands in parentheses; false: it is
 * to be printed as ever. */
typedef bool TreePrint(void *context, Text *out, const Tree *e, bool parentheses);
const char *tree_text_by(Arena *arena, const Tree *e, TreePrint *print, void *context);
/* In parentheses, if it binds less strongly than `least`. */
const char *tree_text_at(Arena *arena, const Tree *e, int least);

#endif
