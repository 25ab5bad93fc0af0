/* Numbers of fp16 end at 65504, and below 2^-14 they lose digits: gradients of small losses would vanish. So the loss that is
 * differentiated is `scale` times as large, a power of two, and the gradients of weights, which are f32, are divided by it:
 *
 *     loss --* scale--> backward pass in fp16 --/ scale--> gradients --> clipping, optimizer
 *                                                             |
 *                                              a number that is not finite: no update, scale / 2
 *                                              GROWTH_STEPS updates without one:       scale * 2
 *
 * As of Micikevicius et al., Mixed Precision Training (2018), 3.2, with the numbers that are usual. A step whose gradients overflow
 * changes nothing but the scale: weights, states, the statistics that layers keep and the number of updates stay. */
#include "pass/loss_scale.h"

#include "ir/op.h"
#include "pass/shard.h"

#include <float.h>

enum { GROWTH_STEPS = 2000, FIRST_SCALE = 65536, GREATEST_SCALE = 1 << 24 };

static Node *scalar_state(Graph *g, int weight, const char *name, double first) {
    Module *module = g->module;
    const Type number = type_scalar(DT_F32);
    const int row = module_state_named(module, weight, name, &number);
    if (first != 0)
        module->states.at[row].init = (Init){.kind = INIT_CONSTANT, .a = first};
    return graph_state(g, row);
}

static Node *select(Graph *g, Node *condition, Node *yes, Node *no) {
    return op3(g, "where", condition, yes, no);
}

static Node *mul(Graph *g, Node *a, double factor) {
    return op2(g, "mul", a, graph_constant(g, factor));
}

LossScale loss_scale(Module *module, int weight) {
    LossScale scale = {0};
    if (precision_dtype(module->precision) == DT_F16)
        scale.scale = scalar_state(module->train, weight, "update.loss_scale", FIRST_SCALE);
    return scale;
}

Node *scaled_loss(Graph *g, const LossScale *scale, Node *loss) {
    return scale->scale ? op2(g, "mul", loss, scale->scale) : loss;
}

Node *unscaled_gradient(Graph *g, const LossScale *scale, Node *gradient) {
    return scale->scale ? op2(g, "mul", gradient, op2(g, "div", graph_constant(g, 1), scale->scale)) : gradient;
}

/* The row of module->weights that the states belong to. */
static int owner(const Graph *g, const LossScale *s) {
    return g->module->states.at[s->scale->attr.index].of;
}

/* What a batch leaves behind goes by its gradients: numbers that overflowed would spoil all later ones. */
static void hold_statistics(Graph *g, Node *finite) {
    const Assigns assigns = take_statistics(g);
    for (int i = 0; i < assigns.count; i++) {
        Node *leaf = assigns.at[i]->in[0];
        graph_assign(g, leaf, select(g, finite, assigns.at[i]->in[1], leaf));
    }
}

void judge_gradients(Graph *g, LossScale *s, Node *squares) {
    const Type number = type_scalar(DT_F32);
    s->skipped = scalar_state(g, owner(g, s), "update.skipped", 0);
    s->finite = op2(g, "le", graph_reshape(g, squares, &number), graph_constant(g, FLT_MAX));
    hold_statistics(g, s->finite);
}

/* The state counts updates whose gradients were not finite. */
static void count_skipped(Graph *g, const LossScale *s, Node *skipped, Node *due) {
    const Optimizer each = {.due = due};
    Node *more = op2(g, "add", skipped, graph_constant(g, 1));
    update_assign(g, &each, skipped, select(g, s->finite, skipped, more));
}

/* Each value is made behind those that read what it overwrites. */
void adapt_loss_scale(Graph *g, const LossScale *s, Node *due) {
    const int weight = owner(g, s);
    const Optimizer each = {.due = due};
    Node *scale = scalar_state(g, weight, "update.loss_scale", FIRST_SCALE);
    Node *good = scalar_state(g, weight, "update.steps_since_scaled", 0);
    Node *count = op2(g, "add", good, graph_constant(g, 1));
    Node *grows = op2(g, "ge", count, graph_constant(g, GROWTH_STEPS));
    Node *grown = op2(g, "minimum", mul(g, scale, 2), graph_constant(g, GREATEST_SCALE));
    Node *shrunk = op2(g, "maximum", mul(g, scale, 0.5), graph_constant(g, 1.0 / GREATEST_SCALE));
    update_assign(g, &each, scale, select(g, s->finite, select(g, grows, grown, scale), shrunk));
    Node *goes_on = op2(g, "and", s->finite, op1(g, "not", grows));
    update_assign(g, &each, good, select(g, goes_on, count, graph_constant(g, 0)));
    count_skipped(g, s, s->skipped, due);
    for (int i = 0; i < s->turns.count; i++)
        count_skipped(g, s, s->turns.at[i].skipped, s->turns.at[i].due);
}

/* Its own count, for updates of the others are not its. */
static Node *skipped_in_turn(Graph *g, LossScale *scale, const Optimizer *optimizer, int row) {
    const char *name = arena_printf(g->arena, "update.skipped_by_%d", row + 1);
    const TurnSkipped turn = {scalar_state(g, owner(g, scale), name, 0), optimizer->due};
    VEC_PUSH(g->arena, &scale->turns, turn);
    return turn.skipped;
}

void skip_updates(Graph *g, LossScale *scale, Optimizer *optimizer, int row) {
    Node *skipped = optimizer->every == 1 ? scale->skipped : skipped_in_turn(g, scale, optimizer, row);
    optimizer->due = optimizer->due ? op2(g, "and", optimizer->due, scale->finite) : scale->finite;
    optimizer->number = op2(g, "sub", optimizer->number, skipped);
}
