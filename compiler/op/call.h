/* A call of a library function: what its build function sees, and how it asks for its arguments. */
#ifndef MTC_CALL_H
#define MTC_CALL_H

#include "op/signature.h"

/* What a build function sees: arguments bound by the signature, in its order. */
struct Call {
    Graph *g;
    Module *module;
    Span src; /* the whole call */
    int count;
    Value *args;                /* one per signature parameter; defaults filled in; `rest` parameters are one LIST */
    const char *scope;          /* path of the layer: weights are named "<scope>.weight" */
    int *weights;               /* how many weights the calls of this graph have made so far */
    const OpDef *op;            /* NULL: size */
    int made;                   /* the layer is called again, and its weights end at this row; -1: they are made now */
    bool unlike;                /* a weight is not what the first call, or training, made: reported */
    const Signature *signature; /* NULL: size */
};

/* Each reports a user error at the argument's span and returns what is said here when it is of another kind. "Known when
 * compiling" fixes the knobs in the argument. Graph axes are those of `of`; the user's may be negative. */
Call call_items(const Call *call, int arg); /* the items of a list as arguments; 0 of anything else */
Node *call_tensor(Call *call, int arg);     /* a number becomes a scalar; NULL */
int64_t call_size(Call *call, int arg);     /* positive, known when compiling; -1 */
int64_t call_int(Call *call, int arg, int64_t low, int64_t high); /* known when compiling; low - 1 */
double call_number(Call *call, int arg);                          /* known when compiling; NaN */
Node *call_scalar(Call *call, int arg);                           /* a run-time scalar; NULL */
bool call_bool(Call *call, int arg);                              /* false */
int call_axis(Call *call, int arg, const Node *of);               /* a graph axis; -1 */
unsigned call_axes(Call *call, int arg, const Node *of);          /* a number, a list, or none: all user axes; 0 */
/* Whether none of the axes has the examples of a batch (ir/graph.h); else a user error. */
bool call_parts_no_batch(Call *call, int arg, const Node *of, unsigned axes);
/* Of a number, which is called `what` in the message; a param is judged by its default. */
bool call_within(Call *call, int arg, const char *what, Bounds bounds);
/* Whether it is what the signature says of words, of intervals and of numbers within bounds; else a user error. Build functions
 * are called only where all are, so that what follows cannot fail. */
bool call_fits(Call *call, int arg);
int call_word(const Call *call, int arg, int fallback); /* by its number in the signature; `fallback` for none */
typedef struct Interval {
    double low, high;
} Interval;
Interval call_interval(const Call *call, int arg, Interval fallback); /* `fallback` for none */
void call_error(Call *call, int arg, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* A warning at the argument, the cure at `cause`; once for all graphs. */
void call_doubt(Call *call, int arg, Span cause, const char *text, const char *cure);
/* A new weight "<scope>.<name>"; file_order as in Weight. */
Node *call_weight(Call *call, const char *name, const Type *type, Init init, const int *file_order);
/* A new buffer "<scope>.<name>", which the layer itself assigns in training, or which is measured before it. */
Node *call_statistic(Call *call, const char *name, const Type *type, Init init, const int *file_order);
/* The buffer of that name, the same one wherever it is asked for. */
Node *call_buffer(Call *call, const char *name, const Type *type, Init init);

#endif
