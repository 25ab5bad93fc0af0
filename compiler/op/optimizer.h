/* How a gradient becomes an update: the optimizers, and what the train block says beside. */
#ifndef MTC_OPTIMIZER_H
#define MTC_OPTIMIZER_H

#include "op/value.h"

/* An optimizer as the train block names it: `adam(lr)`. `update` builds the nodes of one weight's new value, which it
 * returns, and of its new states (module_state makes a state), for which it calls update_assign. */
typedef struct Optimizer Optimizer;
struct Optimizer {
    Node *arg[8]; /* run-time scalars, in the order of the signature */
    bool flag;    /* nesterov, centered */
    int64_t iterations;
    bool keeps_length; /* of weights, before each step */
    bool matrices;     /* it updates no vectors */
    bool whole;        /* what becomes of an element takes others of its weight, too */
    const char *name;
    int decay;         /* row of arg: the weight decay; 0, the rate's: there is none */
    int64_t every, at; /* of so many updates of the training it makes one: that one, counted from 1 */
    Node *number;      /* of this update, from 1 */
    Node *due;         /* condition: this step makes an update; NULL: each does */
    Node *(*update)(Graph *g, const Optimizer *optimizer, int weight, Node *gradient);
    Value weights; /* patterns of the names of those that it updates; VALUE_NONE: all that no other one does */
    Value loss;    /* that it minimises, a number for each example; VALUE_NONE: the training's */
    Span src;
};
/* A step that makes an update leaves `value` in the leaf; any other leaves it as it is. */
void update_assign(Graph *g, const Optimizer *optimizer, Node *leaf, Node *value);

/* How gradients become updates, as the train block says. Numbers are run-time scalars of the training graph. */
typedef struct TrainNumber {
    Node *value; /* NULL: not set */
    Span src;
} TrainNumber;
typedef struct Training {
    const Optimizer **optimizers;
    int optimizer_count;
    Node **losses;         /* of each optimizer: the mean of its own loss over the batch; NULL: the training's */
    Node *weights;         /* of the batch's examples, or of those of its shard: their sum; NULL: all weigh the same */
    const int *updated_by; /* by weight: row of optimizers; -1: it is not trained */
    TrainNumber clip_norm, clip_value;
    TrainNumber ema;     /* decay of the moving average of the weights */
    int64_t accumulate;  /* steps that make one update */
    const bool *decayed; /* by weight: the weight decay of the optimizer applies to it */
} Training;

#endif
