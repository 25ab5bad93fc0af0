/* Schedules of the learning rate: run-time numbers made of `step`, which counts from 1, and `total_steps`.
 *
 * With t = step, T = total_steps and w = max(warmup, 1), most are built from
 *
 *     min(t / w, 1)              the warm-up: 1 / w in step 1, 1 from step w on
 *     (t - w) / (T - w)          the progress, kept between 0 and 1: 0 until step w, 1 from step T on
 *
 * A quotient of floats may lie below the whole number that it should be: what is floored is kept half a step away. */
#include "op/compose.h"

#include <string.h>

static const double pi = 3.14159265358979323846;

static Node *this_step(Graph *g) {
    return op0(g, "step", (Attr){0});
}

static Node *last_step(Graph *g) {
    return op0(g, "total_steps", (Attr){0});
}

static Node *at_least(Graph *g, Node *x, double low) {
    return op2(g, "maximum", x, graph_constant(g, low));
}

/* What generated code calls it; n is NULL after a user error. */
static Node *called(Node *n, const char *name) {
    if (n)
        n->hint = name;
    return n;
}

/* (t - begin) / (end - begin), 0 before and 1 after; a span shorter than a step is over in one. */
static Node *part_of(Graph *g, Node *begin, Node *end) {
    Node *part = divide(g, sub(g, this_step(g), begin), at_least(g, sub(g, end, begin), 1));
    return called(op2(g, "minimum", at_least(g, graph_name(part, "progress"), 0), graph_constant(g, 1)), "part_done");
}

/* from + (to - from) part */
static Node *straight(Graph *g, Node *from, Node *to, Node *part) {
    return add(g, from, mul(g, sub(g, to, from), part));
}

/* to + (from - to) (1 + cos(pi part)) / 2 */
static Node *along_cosine(Graph *g, Node *from, Node *to, Node *part) {
    Node *wave = plus(g, op1(g, "cos", scale(g, part, pi)), 1);
    return add(g, to, called(mul(g, scale(g, sub(g, from, to), 0.5), wave), "still_to_go"));
}

/* ---- arguments ---- */

/* A number of steps, not a part of the training or of an epoch. */
static Node *read_steps(Call *call, int arg, const char *what, const char *whole) {
    const Value *v = &call->args[arg];
    Node *node = call_scalar(call, arg);
    if (!node || v->varies || v->number == 0 || v->number >= 1)
        return node;
    call_error(call, arg, "%s is a number of steps, not %g; a part is written %g * %s", what, v->number, v->number,
               whole);
    return NULL;
}

static Node *read_warmup(Call *call, int arg) {
    return read_steps(call, arg, "the warm-up", "total_steps");
}

static bool is_count_of_steps(const Value *v) {
    return v->varies &&
           (strcmp(v->node->op->name, "total_steps") == 0 || strcmp(v->node->op->name, "steps_per_epoch") == 0);
}

/* The rate that a decay ends with, beside the highest, the first argument. */
static Node *read_final(Call *call, int arg) {
    const Value *lr = &call->args[0], *final = &call->args[arg];
    Node *node = call_scalar(call, arg);
    const bool both = node && lr->kind == VALUE_NUMBER && !lr->varies && !final->varies;
    if (node && is_count_of_steps(final))
        call_doubt(call, arg, call->src,
                   "this is the learning rate that training ends with, and it is a number of steps",
                   "leave it out: a schedule knows how many steps there are");
    else if (both && final->number > lr->number)
        call_doubt(call, arg, call->src,
                   arena_printf(call->g->arena, "the learning rate ends at %g, above the %g that it falls from",
                                final->number, lr->number),
                   "a final rate is lower; what rises at the beginning is the warm-up");
    double number;
    return node && graph_constant_value(node, &number) ? node : called(node, "final_rate");
}

/* The step that ends the warm-up: max(warmup, 1). */
static Node *warmup_end(Graph *g, Node *warmup) {
    double steps;
    bool none = warmup && graph_constant_value(warmup, &steps) && steps <= 1;
    return none ? graph_constant(g, 1) : graph_name(at_least(g, warmup, 1), "warmup_steps");
}

/* What the warm-up makes of the rate: rate min(t / w, 1). */
static Value warmed_up(Call *call, Node *rate, Node *warmup) {
    Graph *g = call->g;
    double steps;
    if (!rate || !warmup)
        return value_varying(NULL);
    if (!graph_constant_value(warmup, &steps) || steps > 1) {
        Node *part = divide(g, this_step(g), warmup_end(g, warmup));
        rate = mul(g, graph_name(rate, "annealed_rate"), op2(g, "minimum", part, graph_constant(g, 1)));
    }
    return value_varying(graph_name(rate, "learning_rate"));
}

static bool is_left_out(const Call *call, int arg) {
    return call->args[arg].kind == VALUE_NONE;
}

/* The part of the way from the end of the warm-up that lies behind: to the step that the argument says, or to the last one. */
static Node *progress(Call *call, Node *warmup, int arg) {
    Graph *g = call->g;
    Node *end = is_left_out(call, arg) ? last_step(g) : read_steps(call, arg, "the end", "total_steps");
    return warmup && end ? part_of(g, warmup_end(g, warmup), end) : NULL;
}

/* ---- schedules ---- */

static Value build_constant_lr(Call *call) {
    return warmed_up(call, call_scalar(call, 0), read_warmup(call, 1));
}

/* A whole number of `every` steps is over when t - 1/2 has passed it. */
static Value build_step_lr(Call *call) {
    Graph *g = call->g;
    Node *lr = call_scalar(call, 0), *every = read_steps(call, 1, "every", "steps_per_epoch");
    Node *factor = call_scalar(call, 2), *warmup = read_warmup(call, 3);
    Node *drops = graph_name(op1(g, "floor", divide(g, plus(g, this_step(g), -0.5), every)), "drops");
    return warmed_up(call, mul(g, lr, op2(g, "pow", factor, drops)), warmup);
}

static Value build_cosine_lr(Call *call) {
    Node *lr = call_scalar(call, 0), *final = read_final(call, 1);
    Node *warmup = read_warmup(call, 2);
    return warmed_up(call, along_cosine(call->g, lr, final, progress(call, warmup, 3)), warmup);
}

static Value build_linear_lr(Call *call) {
    Node *lr = call_scalar(call, 0), *final = read_final(call, 1);
    Node *warmup = read_warmup(call, 2);
    return warmed_up(call, straight(call->g, lr, final, progress(call, warmup, 3)), warmup);
}

static Value build_one_cycle_lr(Call *call) {
    Graph *g = call->g;
    Node *lr = call_scalar(call, 0), *rise = call_scalar(call, 1);
    Node *start = is_left_out(call, 2) ? called(scale(g, lr, 1.0 / 25), "first_rate") : call_scalar(call, 2);
    Node *final = is_left_out(call, 3) ? called(scale(g, lr, 1.0 / 250000), "final_rate") : read_final(call, 3);
    if (!rise)
        return value_varying(NULL);
    Node *peak = graph_name(at_least(g, mul(g, rise, last_step(g)), 1), "peak");
    Node *up = along_cosine(g, start, lr, part_of(g, graph_constant(g, 1), peak));
    Node *down = called(along_cosine(g, lr, final, part_of(g, peak, last_step(g))), "falling_rate");
    Node *rises = op2(g, "lt", this_step(g), peak);
    return value_varying(graph_name(select(g, rises, up, down), "learning_rate"));
}

static Value build_wsd_lr(Call *call) {
    Graph *g = call->g;
    Node *lr = call_scalar(call, 0), *decay = call_scalar(call, 1);
    Node *final = read_final(call, 2), *warmup = read_warmup(call, 3);
    if (!decay)
        return value_varying(NULL);
    Node *begin = sub(g, last_step(g), mul(g, decay, last_step(g)));
    return warmed_up(call, straight(g, lr, final, part_of(g, begin, last_step(g))), warmup);
}

enum { MAX_PLATEAUS = 8 }; /* MTC_MAX_PLATEAUS of the runtime */

/* The row of the module's plateaus; -1 after a user error. */
static int plateau_of(Call *call, int arg) {
    Module *module = call->module;
    int patience = (int)call_int(call, arg, 1, 1 << 24);
    for (int i = 0; i < module->plateaus.count; i++)
        if (module->plateaus.at[i] == patience)
            return i;
    if (patience < 1)
        return -1;
    if (module->plateaus.count == MAX_PLATEAUS) {
        call_error(call, arg, "a model has at most %d different patiences", MAX_PLATEAUS);
        return -1;
    }
    VEC_PUSH(module->arena, &module->plateaus, patience);
    return module->plateaus.count - 1;
}

static Value build_plateau_lr(Call *call) {
    Graph *g = call->g;
    Node *lr = call_scalar(call, 0), *factor = call_scalar(call, 1), *least = read_final(call, 3);
    int plateau = plateau_of(call, 2);
    if (plateau < 0)
        return value_varying(NULL);
    Node *falls = op0(g, "falls", (Attr){.index = plateau});
    Node *rate = op2(g, "maximum", mul(g, lr, op2(g, "pow", factor, falls)), least);
    return warmed_up(call, rate, read_warmup(call, 4));
}

/* ---- documentation ---- */

#define SCHEDULE(name_, title_, example_, signature_, doc_)                                                            \
    const OpDef op_##name_ = {                                                                                         \
        .name = #name_,                                                                                                \
        .cls = OP_LIBRARY,                                                                                             \
        .kind = KIND_SCHEDULE,                                                                                         \
        .title = title_,                                                                                               \
        .doc = doc_,                                                                                                   \
        .example = example_,                                                                                           \
        .signature = signature_,                                                                                       \
        .build = build_##name_,                                                                                        \
    }

SCHEDULE(
    constant_lr, "Constant", "optimizer = adam(constant_lr(0.001, warmup = 100))",
    "lr: number >= 0, warmup: steps >= 0 = 0",
    "Learning rate in step t, from 1: lr min(t / w, 1), where w = max(warmup, 1). That is lr / w in step 1, and lr "
    "from step w on.");

SCHEDULE(
    step_lr, "Step", "optimizer = sgd(step_lr(0.1, every = 30 * steps_per_epoch))",
    "lr: number >= 0, every: steps > 0, factor: number >= 0 = 0.1, warmup: steps >= 0 = 0",
    "Learning rate in step t, from 1: lr factor^floor((t - 1/2) / every) min(t / w, 1), where w = max(warmup, 1). It "
    "drops after each `every` steps, those of the warm-up counted.");

SCHEDULE(cosine_lr, "Cosine", "optimizer = adam(cosine_lr(0.001, warmup = 0.05 * total_steps))",
         "lr: number >= 0, final: number >= 0 = 0, warmup: steps >= 0 = 0, end: steps > 0 = none",
         "Learning rate in step t, from 1: (final + (lr - final) (1 + cos(pi p)) / 2) min(t / w, 1), where "
         "w = max(warmup, 1) and p = (t - w) / max(end - w, 1) between 0 and 1; `end` is total_steps, unless it is "
         "said. That is "
         "lr / w in step 1, lr in step w, final in step `end` and beyond it. A warm-up longer than the training is cut "
         "off where "
         "that ends.");

SCHEDULE(linear_lr, "LinearDecay", "optimizer = adam(linear_lr(0.001, warmup = 100))",
         "lr: number >= 0, final: number >= 0 = 0, warmup: steps >= 0 = 0, end: steps > 0 = none",
         "Learning rate in step t, from 1: (lr + (final - lr) p) min(t / w, 1), with w and p as in cosine_lr.");

SCHEDULE(one_cycle_lr, "OneCycle", "optimizer = sgd(one_cycle_lr(0.1), momentum = 0.9)",
         "lr: number >= 0, rise: number in [0, 1] = 0.3, start: number >= 0 = none, final: number >= 0 = none",
         "Learning rate in step t, from 1: half a cosine from `start` (lr / 25) in step 1 up to lr in step "
         "m = max(rise total_steps, 1), half a cosine from there down to `final` (lr / 250000) in the last step and "
         "beyond it. Up to m it is lr + (start - lr) (1 + cos(pi (t - 1) / max(m - 1, 1))) / 2, from m on "
         "final + (lr - final) (1 + cos(pi (t - m) / max(total_steps - m, 1))) / 2.");

SCHEDULE(
    wsd_lr, "WSD", "optimizer = adamw(wsd_lr(0.001, decay = 0.2, warmup = 100))",
    "lr: number >= 0, decay: number in [0, 1] = 0.2, final: number >= 0 = 0, warmup: steps >= 0 = 0",
    "Warm-up, stable, decay. Learning rate in step t, from 1: (lr + (final - lr) p) min(t / w, 1), where "
    "w = max(warmup, 1) and p = (t - b) / max(total_steps - b, 1) between 0 and 1, with "
    "b = (1 - decay) total_steps. That is lr / w in step 1, lr from step w to b, then a straight line to final in the "
    "last step and beyond it.");

SCHEDULE(
    plateau_lr, "Plateau", "optimizer = adam(plateau_lr(0.001, patience = 5))",
    "lr: number >= 0, factor: number in [0, 1) = 0.1, patience: size = 10, min_lr: number >= 0 = 0, warmup: steps >= "
    "0 = 0",
    "Learning rate in step t, from 1: max(lr factor^n, min_lr) min(t / w, 1), where w = max(warmup, 1) and n is how "
    "often `patience` evaluations in a row, one after each epoch, had no better value of the `monitor` than the best "
    "so far. It needs data to evaluate; checkpoints keep n and how long the wait has lasted.");
