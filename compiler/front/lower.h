/* Shared by the files that turn the checked tree into graphs: lower.c (blocks, module), run.c (statements), eval.c
 * (expressions and calls), index.c (parts of tensors), share.c (layers that are called again), value.c (arithmetic), layers.c (weights' names), reports.c
 * (loss and metrics), weigh.c (weights of examples), patterns.c (weights by their names), training.c (how gradients become updates). */
#ifndef MTC_LOWER_H
#define MTC_LOWER_H

#include "front/arguments.h"
#include "op/call.h"

/* A name with its value, and the statement that gave it (NULL: a parameter, a field, an index). */
typedef struct Binding {
    const char *name;
    Value value;
    Stmt *by;
} Binding;

/* Rows [begin, end) of module->weights, made by one call. */
typedef struct LayerRange {
    int begin, end;
} LayerRange;

/* One graph being lowered. */
typedef struct Lowering {
    Diag *diag;
    Arena *arena;
    const Ast *ast;
    const Precision *precision; /* instead of the text's; or NULL */
    const bool *recompute;      /* likewise */
    int batch;                  /* likewise; or 0 */
    int shards;                 /* as FrontOptions has it */
    bool parts_states;          /* likewise */
    Module *module;
    Graph *g;
    uint64_t fixed;   /* params that earlier rounds found to decide a shape: constants in this round */
    int weights;      /* made so far in this graph */
    int made;         /* as Call.made */
    bool naming;      /* the first graph: names of weights are being made */
    bool scheduling;  /* a setting of the update is being evaluated: its numbers may vary from step to step */
    VEC(Span) places; /* of each weight: the statement of the model block that made it */
    Span place;
    int steps, depth; /* expressions evaluated; how deep this one is nested */
    Node *weight;     /* of each example, f32[batch]; NULL: all count the same */
    Node *
        weight_part; /* of each row of the batch, what it counts in a mean over it, but for the sum of all; 0 of filler */
    Node *weight_sum; /* of these */
    bool stopped;     /* too large: everything further is VALUE_ERROR */
} Lowering;

/* The execution of the model block or of one call. */
typedef struct Frame Frame;
struct Frame {
    Lowering *l;
    const Fn *fn;
    VEC(Binding) bindings;
    const char *path;       /* of values and layers: "" in the model block, "a" in the call of `a = block(x)` */
    const char *indices;    /* of the repeats around: ".0.2" */
    const char *statement;  /* path of the value that the current statement names */
    VEC(LayerRange) layers; /* made by the calls of the current statement */
    bool returned;
    Value result;
    Span result_at; /* what `return` says */
};

/* A `layer` as it was declared. Its first call makes its weights. */
typedef struct Layer {
    const Stmt *by;
    const Frame *frame; /* where it was declared: the bindings, path and indices of that place */
    bool called;
    LayerRange weights;
    const char **names; /* of them, where the layer is declared */
    Span first;         /* the call that made them */
} Layer;

/* ---- value.c ---- */

/* The map operator `op`, as infix or call: numbers are computed, anything else becomes nodes. */
Value value_apply(Lowering *l, Span at, Name op, const Value *args, int count);

/* ---- eval.c ---- */

Value eval(Frame *frame, Expr *e);
/* Where several values may stand, VALUE_SEVERAL; elsewhere they are an error. */
Value eval_values(Frame *frame, Expr *e);
/* Counts one step. False when the model is larger or deeper than any real one; functions and repeats multiply. */
bool within_limits(Lowering *l, Span at);
Binding *frame_find(Frame *frame, const char *name);
void frame_bind(Frame *frame, const char *name, Value value, Stmt *by);
/* A library function with one argument, the others at their defaults. */
Value call_library(Frame *frame, Span at, const char *name, Value argument);
/* The string with {name} replaced by the name's value. */
const char *fill_holes(Frame *frame, const Expr *string);

/* Gives parameters their values; false after reporting. */
bool bind_arguments(Frame *caller, Frame *callee, Expr *call);

/* ---- share.c ---- */

void run_layer(Frame *frame, Stmt *s);
Value call_layer(Frame *frame, Expr *e);

/* ---- index.c ---- */

/* x[0, 1:3] */
Value eval_index(Frame *frame, Expr *e);

/* ---- run.c ---- */

void run_body(Frame *frame, const StmtList *body);
/* A size, an index or a truth that must be known when compiling; false after reporting. */
bool eval_whole(Frame *frame, Expr *e, int64_t low, int64_t high, int64_t *result);

/* ---- layers.c ---- */

const char *scope_join(Arena *arena, const char *path, const char *name);
/* Before the names of the weights in the range. */
void layers_prefix(Lowering *l, LayerRange range, const char *path);
/* At the end of a statement: its only layer is called `path`, several "path.0", "path.1"... */
void layers_name(Frame *frame, const char *path);
void layers_check(Lowering *l); /* all different */
/* Training makes the weights, in the first graph, and every other graph takes them in the same order: those of a call; all of
 * them. Else a user error. */
void layers_match(Lowering *l, LayerRange made);
void layers_complete(Lowering *l);

/* ---- lower.c ---- */

/* The value of a setting of the train block, which makes no weights. */
Value eval_setting(Frame *frame, Expr *e);
/* A setting that is a whole number known when compiling; `fallback` where it is not given. */
int64_t whole_setting(Frame *frame, const char *key, int64_t fallback, int64_t low, int64_t high);

/* ---- reports.c ---- */

/* The mean over the batch of a value that is one number per example, which is called `what` in messages; NULL after reporting. */
Node *per_batch(Lowering *l, const char *what, const Value *v, Span at);
/* The loss and the metrics of the train block; returns the loss, the mean over a batch. NULL after a user error. */
Node *lower_reports(Frame *frame, const Block *train);

/* ---- weigh.c ---- */

/* The weights of examples that the train block names, for the graph that is being lowered. */
void lower_example_weight(Frame *frame, const Block *train);
/* Where examples have weights, of a number for each example: the sum of its products with them, as it is reported; and that
 * divided by their own sum. */
Node *weighted_sum(Lowering *l, Node *per_example);
Node *weighted_mean(Lowering *l, Node *per_example);
/* Of each field of f32, the same with 0 for what is not finite in examples of weight 0; NULL: of other fields. Nodes from `from` on
 * read these instead. */
Node **lower_known(Lowering *l);
void use_known(Lowering *l, Node *const *known, int from);

/* ---- scores.c ---- */

/* What the numbers of a prediction are, other than just numbers: probabilities of classes, or each the probability of yes. */
typedef enum Predicts { PREDICTS_CLASSES, PREDICTS_YES } Predicts;

/* A loss by which it is known: function(first argument), or, where that is NULL, the argument itself, if the argument
 * `condition` is true. */
typedef struct PredictionRule {
    const char *loss, *condition, *function;
    Predicts predicts;
} PredictionRule;

/* Of a call of a loss; NULL: it compares numbers. */
const PredictionRule *prediction_rule(Frame *frame, const Expr *call);
/* The call that compares the prediction with its target: the loss itself, or as it stands in each term of a sum, times what else
 * there is, as losses of mixed examples have it: s loss(y, target) + (1 - s) loss(y, other). NULL: there is none, or several that differ. */
const Expr *loss_comparison(Frame *frame, const Expr *loss);
/* Of a prediction that the text says: is it made of scores that the loss takes for probabilities of yes? */
bool predicts_yes(const Expr *loss, const Value *prediction);
/* Of a call of a loss that takes scores: are they what its own function made already? */
void doubt_scores(Lowering *l, const Expr *call, const Value *args);

/* ---- input_size.c ---- */

/* Of a call of the library: do its numbers mean what they would where the size of the input is the first? */
void doubt_input_size(Lowering *l, const Expr *call, const Value *args);

/* ---- leak.c ---- */

/* Warns where the prediction depends on a field that it is compared with. Nodes of the graph of evaluation; NULL: not known. */
void warn_leak(const Module *module, const Node *prediction, const Node *target);

/* ---- patterns.c ---- */

/* By weight: one of the patterns matches its name, and none that begins with `!` does. */
void match_patterns(Lowering *l, const Value *patterns, bool *chosen);
/* By weight: a pattern of the setting matches its name. NULL when the setting is not given. */
const bool *chosen_weights(Frame *frame, const Block *train, const char *key);

/* ---- training.c ---- */

/* What products are computed in; the training and the evaluation alike. */
Precision training_precision(Diag *diag, const Block *train);
/* The backward pass is to compute values again: the truth of `recompute`, false without it. */
bool training_recompute(Frame *frame, const Block *train);
/* What the block says, for logs: "loss = ...\noptimizer = ..."; without comments, in single spaces. */
const char *training_text(const Lowering *l, const Block *train);
/* The optimizer and what comes before and after it, in the training graph. */
void training_numbers(Frame *frame, const Block *train, Training *out);
/* What the settings choose by name: weights that are frozen or not decayed, the report that is watched. Requires the names
 * of weights and reports. */
void training_names(Frame *frame, const Block *train, Training *out);
/* Settings that change nothing. */
void training_warn(Diag *diag, const Block *train, const Training *training);

#endif
