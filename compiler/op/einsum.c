/* Sums of products by letters, "bij,bjk->bik": one product of matrices for each operand but the first.
 *
 *     letters in both and still wanted    a stack of products
 *     letters in both and no longer       the inner axis
 *     letters in one                      rows or columns, or summed before, where nothing wants them */
#include "op/compose.h"

#include <ctype.h>

enum { MOST_TERMS = 16 };

typedef struct Term {
    Node *x;
    char letter[MAX_RANK + 1]; /* of its axes, without the batch */
} Term;

static bool has(const char *letters, char letter) {
    return strchr(letters, letter) != NULL;
}

static int axis_of(const Term *t, char letter) {
    return (int)(strchr(t->letter, letter) - t->letter) + t->x->type.batched;
}

/* The letters of `from` that are in `in`, or are not, behind those that are there. */
static void select_letters(char *letters, const char *from, const char *in, bool wanted) {
    size_t count = strlen(letters);
    for (; *from; from++)
        if (has(in, *from) == wanted)
            letters[count++] = *from;
    letters[count] = 0;
}

/* Without the letters that neither `one` nor `other` has. */
static void sum_unwanted(Graph *g, Term *t, const char *one, const char *other) {
    unsigned axes = 0;
    char *kept = t->letter;
    for (const char *c = t->letter; *c; c++)
        axes |= has(one, *c) || has(other, *c) ? 0 : 1u << axis_of(t, *c);
    for (const char *c = t->letter; *c; c++)
        if (has(one, *c) || has(other, *c))
            *kept++ = *c;
    *kept = 0;
    t->x = graph_reduce(g, "sum", t->x, axes);
}

/* With the axes in the order of `letters`, which are all of its own. */
static Node *arranged(Graph *g, const Term *t, const char *letters) {
    int order[MAX_RANK] = {0}, rank = t->x->type.batched;
    for (; *letters; letters++)
        order[rank++] = axis_of(t, *letters);
    return graph_transpose(g, t->x, order);
}

static int64_t extent(const Term *t, const char *letters) {
    int64_t product = 1;
    for (; *letters; letters++)
        product *= t->x->type.dim[axis_of(t, *letters)];
    return product;
}

/* [stack, rows, columns], without the stack where no letters are its. */
static Node *as_matrices(Graph *g, const Term *t, const char *stack, const char *rows, const char *columns) {
    char letters[3 * MAX_RANK + 1] = "";
    strcat(strcat(strcat(letters, stack), rows), columns);
    Node *x = arranged(g, t, letters);
    Type type = {.dtype = DT_F32, .batched = x->type.batched, .rank = x->type.batched, .dim = {x->type.dim[0]}};
    if (*stack)
        type.dim[type.rank++] = extent(t, stack);
    type.dim[type.rank++] = extent(t, rows);
    type.dim[type.rank++] = extent(t, columns);
    return graph_reshape(g, x, &type);
}

/* a becomes the product of a and b, with the letters that `wanted` has. */
static bool multiply(Graph *g, Term *a, Term *b, const char *wanted) {
    char stack[MAX_RANK + 1] = "", inner[MAX_RANK + 1] = "", rows[MAX_RANK + 1] = "", columns[MAX_RANK + 1] = "";
    char common[MAX_RANK + 1] = "";
    sum_unwanted(g, a, b->letter, wanted);
    sum_unwanted(g, b, a->letter, wanted);
    select_letters(common, a->letter, b->letter, true);
    select_letters(stack, common, wanted, true);
    select_letters(inner, common, wanted, false);
    select_letters(rows, a->letter, b->letter, false);
    select_letters(columns, b->letter, a->letter, false);
    Node *y =
        build_product(g, as_matrices(g, a, stack, rows, inner), as_matrices(g, b, stack, inner, columns), false, false);
    size_t count = strlen(stack) + strlen(rows) + strlen(columns);
    if (!y || count + y->type.batched > MAX_RANK)
        return false;
    Type type = {.dtype = DT_F32, .batched = y->type.batched, .rank = y->type.batched, .dim = {y->type.dim[0]}};
    char letters[3 * MAX_RANK + 1] = "";
    strcat(strcat(strcat(letters, stack), rows), columns);
    for (const char *c = letters; *c; c++) {
        const Term *from = has(a->letter, *c) ? a : b;
        type.dim[type.rank++] = from->x->type.dim[axis_of(from, *c)];
    }
    a->x = graph_reshape(g, y, &type);
    strcpy(a->letter, letters);
    return true;
}

/* ---- in the language ---- */

typedef struct Equation {
    Term term[MOST_TERMS];
    int terms;
    char result[MAX_RANK + 1];
} Equation;

/* The letters of a term, "ij", each once; false: it is none. */
static bool read_letters(const char **at, char *letters) {
    int count = 0;
    for (; isalpha((unsigned char)**at) || **at == ' '; ++*at) {
        if (**at == ' ')
            continue;
        if (count == MAX_RANK || has(letters, **at))
            return false;
        letters[count++] = **at;
        letters[count] = 0;
    }
    return true;
}

static bool read_equation(const char *at, Equation *e) {
    do
        if (e->terms == MOST_TERMS || !read_letters(&at, e->term[e->terms++].letter))
            return false;
    while (*at == ',' && at++);
    if (at[0] != '-' || at[1] != '>')
        return false;
    at += 2;
    return read_letters(&at, e->result) && !*at;
}

/* Each letter stands for one size. */
static bool sizes_agree(Call *items, const Equation *e, int k) {
    const Term *t = &e->term[k];
    for (const char *c = t->letter; *c; c++)
        for (int before = 0; before < k; before++) {
            const Term *other = &e->term[before];
            if (!has(other->letter, *c) || extent(other, (char[]){*c, 0}) == extent(t, (char[]){*c, 0}))
                continue;
            call_error(items, k, "'%c' is %lld here, and %lld before", *c, (long long)extent(t, (char[]){*c, 0}),
                       (long long)extent(other, (char[]){*c, 0}));
            return false;
        }
    return true;
}

static bool read_operands(Call *call, Equation *e) {
    Call items = call_items(call, 1);
    if (items.count != e->terms) {
        call_error(call, 0, "%d terms, and %d tensors", e->terms, items.count);
        return false;
    }
    for (int k = 0; k < e->terms; k++) {
        Term *t = &e->term[k];
        if (!(t->x = graph_cast(call->g, call_tensor(&items, k), DT_F32)))
            return false;
        if ((int)strlen(t->letter) != t->x->type.rank - t->x->type.batched) {
            call_error(&items, k, "'%s' has %d axes, and %s has %d", t->letter, (int)strlen(t->letter),
                       type_user_text(call->g->arena, &t->x->type), t->x->type.rank - t->x->type.batched);
            return false;
        }
        if (!sizes_agree(&items, e, k))
            return false;
    }
    return true;
}

/* The result's letters are all of some term. */
static bool result_is_there(Call *call, const Equation *e) {
    for (const char *c = e->result; *c; c++) {
        bool found = false;
        for (int k = 0; k < e->terms; k++)
            found = found || has(e->term[k].letter, *c);
        if (!found) {
            call_error(call, 0, "'%c' of the result is in no term", *c);
            return false;
        }
    }
    return true;
}

static Value build_einsum(Call *call) {
    Graph *g = call->g;
    Equation e = {0};
    const Value *text = &call->args[0];
    if (text->kind != VALUE_STRING || !read_equation(text->string, &e)) {
        if (text->kind != VALUE_ERROR)
            call_error(call, 0,
                       "expected terms of letters, each once in a term, like \"ij,jk->ik\"; the examples of a "
                       "batch have none");
        return value_tensor(NULL);
    }
    if (!result_is_there(call, &e) || !read_operands(call, &e))
        return value_tensor(NULL);
    for (int k = 1; k < e.terms; k++) {
        char wanted[(MOST_TERMS + 1) * MAX_RANK + 1] = "";
        strcat(wanted, e.result);
        for (int later = k + 1; later < e.terms; later++)
            strcat(wanted, e.term[later].letter);
        if (!multiply(g, &e.term[0], &e.term[k], wanted)) {
            call_error(call, 0, "a product on the way has more than %d axes", MAX_RANK - 1);
            return value_tensor(NULL);
        }
    }
    sum_unwanted(g, &e.term[0], e.result, "");
    return value_tensor(arranged(g, &e.term[0], e.result));
}

const OpDef op_einsum = {
    .name = "einsum",
    .cls = OP_LIBRARY,
    .doc = "Sums of products, as NumPy writes them: each axis has a letter, letters that the result lacks are summed. "
           "The operands are multiplied one after the other, as products of matrices. A letter stands once in a term; "
           "the batch has none.",
    .example = "y = einsum(\"ij,kj->ik\", [reshape(x, [2, 3]), reshape(x, [2, 3])])",
    .signature = "equation: string, parts: list",
    .build = build_einsum,
};
