#include "pass/shard.h"

#include "ir/op.h"

/* Shards that stop for sums of all (op/shard.c) run one beside the other: none finds what another has left. */
static bool shards_stop(const Graph *train) {
    bool any = false;
    for (int i = 0; i < train->nodes.count; i++)
        any = any || strcmp(train->nodes.at[i]->op->name, "over_shards") == 0;
    return any;
}

/* A state that each shard adds its part to; in the graph of updates, their sum. */
static Node *summed_in(Module *module, int row, Node *part) {
    Graph *train = module->train;
    Node *sum = graph_state(train, row);
    module->states.at[row].summed = true;
    /* a node of its own: the gradient of two weights may be one */
    Node *own = graph_node(train, "shard_part", (Attr){.index = row}, 1, &part);
    own->hint = "part";
    graph_assign(train, sum, shards_stop(train) ? own : op2(train, "add", own, op1(train, "shards_before", sum)));
    return graph_state(module->update, row);
}

/* Of the weight's type. */
static Node *summed(Module *module, int weight, Node *part) {
    return summed_in(module, module_state(module, weight, "shard_sum"), part);
}

/* The part of the batch that this shard is: 1 where it is all of it. */
static Node *part_of_batch(Graph *g) {
    Attr rows = {.rank = 1, .batched = true, .dims = {g->module->batch}};
    return graph_name(graph_reduce(g, "sum", op0(g, "share", rows), 1), "part_of_batch");
}

/* A buffer moves by the mean of what its shards would move it by. */
static void sum_change(Module *module, const Node *assign) {
    Graph *train = module->train, *update = module->update;
    const int weight = assign->in[0]->attr.index;
    Node *change = op2(train, "sub", assign->in[1], assign->in[0]);
    Node *sum = summed(module, weight, op2(train, "mul", change, part_of_batch(train)));
    Node *before = graph_weight(update, weight);
    graph_assign(update, before, op2(update, "add", before, sum));
}

static bool assigns_weight(const Node *root) {
    return root->inputs == 2 && root->in[0]->op->table == TABLE_WEIGHT;
}

Assigns take_statistics(Graph *g) {
    int kept = 0;
    Assigns assigns = {0};
    for (int i = 0; i < g->roots.count; i++)
        if (assigns_weight(g->roots.at[i]))
            VEC_PUSH(g->arena, &assigns, g->roots.at[i]);
        else
            g->roots.at[kept++] = g->roots.at[i];
    g->roots.count = kept;
    return assigns;
}

static void sum_changes(Module *module) {
    const Assigns assigns = take_statistics(module->train);
    for (int i = 0; i < assigns.count; i++)
        sum_change(module, assigns.at[i]);
}

void sum_over_shards(Module *module, Node **gradient) {
    module->update = graph_new(module, true);
    sum_changes(module);
    for (int i = 0; i < module->weights.count; i++)
        if (gradient[i])
            gradient[i] = summed(module, i, gradient[i]);
}

Node *weights_over_shards(Module *module, int owner, Node *weights) {
    const Type number = type_scalar(DT_F32);
    return summed_in(module, module_state_named(module, owner, "update.example_weight.shard_sum", &number), weights);
}

static TrainNumber imported(Graph *g, TrainNumber number) {
    return (TrainNumber){number.value ? graph_import(g, number.value) : NULL, number.src};
}

static const Optimizer *imported_optimizer(Graph *g, const Optimizer *optimizer) {
    Optimizer *own = NEW(g->arena, Optimizer);
    *own = *optimizer;
    for (size_t k = 0; k < sizeof own->arg / sizeof *own->arg; k++)
        own->arg[k] = own->arg[k] ? graph_import(g, own->arg[k]) : NULL;
    return own;
}

Training training_of_shards(Module *module, const Training *training) {
    Graph *g = module->update;
    Training own = *training;
    own.optimizers = NEW_ARRAY(module->arena, const Optimizer *, training->optimizer_count);
    for (int i = 0; i < training->optimizer_count; i++)
        own.optimizers[i] = imported_optimizer(g, training->optimizers[i]);
    own.clip_norm = imported(g, training->clip_norm);
    own.clip_value = imported(g, training->clip_value);
    own.ema = imported(g, training->ema);
    return own;
}
