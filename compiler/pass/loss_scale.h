/* Dynamic scaling of the loss, for fp16: see loss_scale.c. */
#ifndef MTC_LOSS_SCALE_H
#define MTC_LOSS_SCALE_H

#include "op/optimizer.h"

/* An optimizer that takes turns: state: of its own updates, those left out; condition: this step makes one of them. */
typedef struct TurnSkipped {
    Node *skipped, *due;
} TurnSkipped;

/* The scale of a step's loss, and what follows from it; all NULL where gradients are not scaled. */
typedef struct LossScale {
    Node *scale, *skipped; /* states: what losses are multiplied by; updates left out so far */
    Node *finite;          /* condition: all gradients of this step are finite */
    VEC(TurnSkipped) turns;
} LossScale;

/* Scaling where the module's precision needs it; its states belong to `weight`. */
LossScale loss_scale(Module *module, int weight);
/* The loss as it is differentiated. */
Node *scaled_loss(Graph *g, const LossScale *scale, Node *loss);
/* Of a scaled loss's gradient, that of the loss. */
Node *unscaled_gradient(Graph *g, const LossScale *scale, Node *gradient);
/* Sets `finite`, when the gradients are complete, by the sum of their squares. Without it statistics that layers keep stay too. */
void judge_gradients(Graph *g, LossScale *scale, Node *squares);
/* Behind the updates, which read what this overwrites. `due`: this step makes an update; NULL: each does. */
void adapt_loss_scale(Graph *g, const LossScale *scale, Node *due);
/* The optimizer in that row leaves out updates whose gradients are not finite, and does not count them. */
void skip_updates(Graph *g, LossScale *scale, Optimizer *optimizer, int row);

#endif
