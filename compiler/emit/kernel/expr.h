/* Expressions of generated code.
 *
 * A body is a piece of straight code: one iteration of a loop, or the epilogue of a product. Its outputs are described
 * as terms, a graph of templates in which equal values at equal indices are one term; then each output becomes one
 * statement. A value that is used once is written where it is used; one that is used twice, or that would make a line
 * too long, becomes a local that bears the name of the value in the model.
 *
 * Vector code is a loop over the lanes, v counting them, between loads and stores of packs:
 *
 *     Pack<bfloat16, 8> y = load_pack<8>(t.y + i);
 *     Pack<float, 8> z;
 *     for (int v = 0; v < 8; v++)
 *         z[v] = relu(to_float(y[v]));
 *     store_pack(t.z + i, to_bf16(z));
 *
 * What is the same in all lanes is read before, what lies elsewhere for each lane is read in the loop, at i + v. */
#ifndef MTC_EXPR_H
#define MTC_EXPR_H

#include "emit/kernel/emitter.h"
#include "emit/text/lanes.h"

/* A value that a kernel already has: a row's scalar, a row's vector, the sum of a product, a local. */
typedef struct Known {
    const Node *node;
    const Index *at;   /* where it is known; NULL: wherever the kernel reads it */
    const Tree *value; /* of a vector its name */
    unsigned inner;    /* vector: its element is value[index along these axes of the node] */
} Known;

typedef struct Term Term;
typedef VEC(Term *) Terms;
typedef struct Chains Chains; /* chains.h */

/* What a body reads from memory, when that is to happen ahead of it. */
typedef struct Read {
    const Node *node;
    const char *name;  /* "h_bias" */
    const Tree *value; /* t.h_bias[j] */
    int lanes;         /* a pack of so many: load_pack<8>(t.h_bias + j); 0: one number */
    bool used;         /* a line of the body says the name */
} Read;
typedef VEC(Read) Reads;

/* The condition of a view that is the same for all elements of a body: it holds, or does not, and is asked no more. */
typedef struct Assumption {
    const Tree *condition; /* NULL: then `wanted` becomes the first one that there is */
    bool holds;
    const Tree *wanted;
} Assumption;

/* A comparison that holds for all elements of a body, or for none, and what else is known so: cases.h. */
typedef struct Case Case;
struct Case {
    const Case *outer;
    const Tree *comparison;
    bool holds;
};

/* A kernel, its rows, their loops: inner bodies know what outer ones do. What depends on none of a body's own variables
 * and is read from memory is read in the body around it; what is the same for all elements, at the start of the kernel. So
 * every loop that an expression may depend on has a body. */
enum { MAX_VARIABLES = 12 };
struct Body {
    Emitter *e;
    const Kernel *kernel;
    const char *name; /* of the function */
    Body *outer;
    const char *variables[MAX_VARIABLES]; /* then NULL */
    int lanes;                  /* vector code: computed for so many neighbours along `along` at once; 0, 1: for one */
    const char *along;          /* "i"; a multiple of `lanes` */
    Reads named;                /* vector code: conditions and places that have names here */
    VEC(const char *) declared; /* what the body's lines declare so far: no line that says it can stand before them */
    Lanes lane;                 /* of the loop over the lanes, v counting them; count 0: this is no such loop */
    bool once;                  /* runs once in a body around it: reading ahead gains nothing */
    Writer *out;
    Writer *above;           /* what stands before the function; NULL: nothing can */
    Writer *before_gate;     /* what reads the data set, which is always complete, goes here; NULL: it goes to `out` */
    Writer *ahead;           /* of a row: what is read at its start; NULL: nothing is */
    Reads *per_row;          /* calls that are the same in all of a row, and what they are called; NULL: none */
    Assumption *assumption;  /* what is known of a condition, and in bodies inside; NULL: nothing */
    const Tree *assuming;    /* what holds by that where the terms are read that are being found; NULL: nothing */
    bool relied;             /* of the last term that was found: views on the way to it read because of that */
    const Case *cases;       /* what branches around it have asked; NULL: nothing */
    Reads *reads;            /* collects what is read; NULL: it is read where it is used */
    const char *read_from;   /* "ahead.": how what was read is reached */
    Reads *steady_reads;     /* of these, what is the same whatever `varying` counts; NULL: they are not apart */
    const char *steady_from; /* "column.": how that is reached */
    const char *varying[2];
    Names names;
    VEC(Known) known;
    VEC(RowVector) vectors;
    bool *written; /* by node: an equation above says what it is */
    bool apart;    /* of a row: its threads have read something since they last met */
    bool divides;  /* a line says a remainder */
    Chains *
        chains; /* of `out`, which gets names for them at the end; NULL, outside of rows: they are written as they are */
    Terms terms;
};

Body body_new(Emitter *e, const Kernel *kernel, const char *name, Writer *out);
Body body_inside(Body *outer, Writer *out, const char *variable, const char *variable_2);
/* The outermost body that assumes what this one does: what is read by that stands in no other. */
bool body_begins_assumption(const Body *body);
/* The body's lines declare the name, or the array that it is an element of. */
void body_declare(Body *body, const Tree *value);
void body_know(Body *body, const Node *n, const Tree *value);
void body_know_vector(Body *body, const Node *n, const char *name, unsigned inner);
/* The text of what is written to the body: all expressions of a kernel pass here, once. `out`: where that is not the body's own. */
const char *body_text(Body *body, const Tree *tree);
const char *body_text_for(Body *body, const Writer *out, const Tree *tree);

/* It is another for each of what the body counts, or says what its lines declare. */
bool body_depends_on(const Body *body, const Tree *tree);
/* A local as far outside of what the body writes as the expression is the same. A name is as much a matter of the body's
 * variables as what it stands for. */
const Tree *body_name_outside(Body *body, const Tree *tree, const char *type, const char *wanted, bool reads_data);
/* Vector code says conditions and places often: those of more than `most` parts get names. */
const Tree *body_named(Body *lane, const Tree *tree, int most, const char *type, const char *wanted);
/* "Pack<bfloat16, 8>" */
const char *body_pack_type(const Body *body, DType dtype, int lanes);
/* pack[v]: what lane v has of it. */
const Tree *lane_of_pack(Arena *arena, const Tree *pack);
/* "sum" for sum[v]; NULL: the value is something else, as -sum[v] is. */
const char *whole_pack(const Tree *value);

/* Vector code: a pack, and where it goes. */
typedef struct PackStore {
    DType dtype;
    const char *name;
    const Tree *to;      /* the address; NULL: it is returned */
    bool filled;         /* by the lanes; else it is there already */
    const Node *rounded; /* to_bf16(name) is stored: the node of that; NULL: the pack is stored as it is */
} PackStore;

/* What becomes of the value of `node` at `at`. */
typedef struct Output {
    const Node *node;
    Index at;
    const Tree *
        to; /* it is assigned to this, t.h[i * H + j], or folded into it: sum; vector code, NULL: its pack is returned */
    const Node *fold;      /* the reduction; NULL: it is assigned */
    const Node *condition; /* of a fold: under which it is folded at all; NULL: always */
    const Buffer *written; /* or NULL */
    PackStore *pack;       /* that `to` is the lane's element of; NULL: of none */
} Output;
typedef VEC(Output) Outputs;

/* The kernel finds the value in memory. */
bool is_loaded(const Kernel *kernel, const Node *n);
/* Phase of the program that writes the weight, state or value; -1: none. */
int written_in(const Program *program, const Node *n);
/* Finds what the outputs are made of, and with that what the body's assumption is wanted of; of statements, names of places alone. */
void body_find(Body *body, const Outputs *outputs);
/* Writes the locals that the outputs need, then the outputs' statements. Returns false where there are none, since all that would be
 * added is 0: then the loop around them is needless too. */
bool body_write(Body *body, const Outputs *outputs);
/* Products of two integers of 8 bits; of several rows at a time, packs of them are added up as such. */
bool adds_integers(const Node *reduction);

/* Where an element of a weight, a state or a stored value lies: t.h[i * H + j]. */
const Tree *stored_element(Emitter *e, const Node *n, const Index *at);
/* The expression alone; for places where no statement can come before. */
const Tree *body_expression(Body *body, const Node *n, const Index *at);

/* What a view's result at `at` is an element of, and which; of a lookup, given the value of operand 1 there. Returns the
 * condition of that, or NULL. */
const Tree *through_view(Emitter *e, const Node *view, Index *at, const Tree *looked_up);
/* The element of a lookup's operand 1 that its result at `at` depends on. */
Index lookup_index(Emitter *e, const Node *lookup, const Index *at);
/* The operator's form with everything but its operands filled in, in each lane its own (NULL: there is one). */
const Tree *form_at(Emitter *e, const Node *n, const Index *at, const Lanes *lanes);

/* equation.c: "h[i, j] = relu(...)" as comments: what a kernel computes; or one of several stages, as far as none above
 * did. */
void write_equations(Emitter *e, const Kernel *kernel, Writer *out);
void write_stage_equations(Body *row, const Stage *stage, Writer *out);

#endif
