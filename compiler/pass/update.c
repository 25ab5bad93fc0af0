#include "pass/update.h"

#include "ir/autodiff.h"
#include "ir/op.h"
#include "pass/flat.h"
#include "pass/loss_scale.h"
#include "pass/shard.h"

enum { PARTS = 256 }; /* of a gradient, whose squares are summed apart */

typedef struct Updates {
    Graph *g;
    Module *module;
    const Training *training;
    Node **gradient; /* by weight; NULL: not trained */
    LossScale scale;
    Node *squares;  /* of all gradients, their sum; NULL: not asked for as yet */
    Node *weights;  /* of the examples that gradients are of, their sum; NULL: all weigh the same */
    int first_flat; /* row of the first weight that others lie in: these come last (flat.h) */
} Updates;

static Node *add(Graph *g, Node *a, Node *b) {
    return op2(g, "add", a, b);
}

static Node *mul(Graph *g, Node *a, Node *b) {
    return op2(g, "mul", a, b);
}

static const char *name_of(const Updates *u, int weight) {
    return u->module->weights.at[weight].name;
}

/* The row that is updated as number k: flat weights first, whose states those in them have. */
static int updated_as(const Updates *u, int k) {
    return (u->first_flat + k) % u->module->weights.count;
}

static int first_trained(const Module *module) {
    int row = 0;
    while (row + 1 < module->weights.count && module->weights.at[row].kind != WEIGHT_TRAINED)
        row++;
    return row;
}

/* ---- gradients ---- */

/* The gradients of an optimizer's own loss, for the weights that it updates. */
static void differentiate_own(const Updates *u, int optimizer) {
    const int count = u->module->weights.count;
    Node **gradient = NEW_ARRAY(u->g->arena, Node *, count);
    autodiff(u->g, scaled_loss(u->g, &u->scale, u->training->losses[optimizer]), gradient);
    for (int i = 0; i < count; i++)
        if (u->training->updated_by[i] == optimizer)
            u->gradient[i] = gradient[i];
}

static void report_apart(const Updates *u, int weight) {
    const Weight *apart = &u->module->weights.at[weight];
    const int optimizer = u->training ? u->training->updated_by[weight] : -1;
    diag_error(u->module->diag, apart->src, "the loss does not depend on '%s', so that it cannot be trained",
               apart->name);
    if (optimizer >= 0 && u->training->losses[optimizer])
        diag_note(u->module->diag, u->training->optimizers[optimizer]->loss.src, "this is the loss of its optimizer");
}

/* Without a training, all of this loss. */
static bool differentiate(const Updates *u, Node *loss) {
    int errors = diag_errors(u->module->diag);
    autodiff(u->g, scaled_loss(u->g, &u->scale, loss), u->gradient);
    for (int i = 0; u->training && i < u->training->optimizer_count; i++)
        if (u->training->losses[i])
            differentiate_own(u, i);
    const bool complete = diag_errors(u->module->diag) == errors;
    for (int i = 0; i < u->module->weights.count && complete; i++)
        if (u->module->weights.at[i].kind == WEIGHT_TRAINED && !u->gradient[i])
            report_apart(u, i);
    return diag_errors(u->module->diag) == errors;
}

static void unscale(const Updates *u) {
    for (int i = 0; i < u->module->weights.count && u->scale.scale; i++)
        if (u->gradient[i])
            u->gradient[i] = unscaled_gradient(u->g, &u->scale, u->gradient[i]);
}

/* Weighted means of parts of a batch, or of several: each counts as its examples weigh. */
static void multiply_by_weights(const Updates *u) {
    for (int i = 0; i < u->module->weights.count; i++)
        if (u->gradient[i])
            u->gradient[i] = mul(u->g, u->weights, u->gradient[i]);
}

/* Where nothing weighs, all gradients are 0 and stay so. */
static void divide_by_weights(const Updates *u) {
    Graph *g = u->g;
    Node *none = op2(g, "eq", u->weights, graph_constant(g, 0)), *one = graph_constant(g, 1);
    Node *inverse = op2(g, "div", one, op3(g, "where", none, one, u->weights));
    for (int i = 0; i < u->module->weights.count; i++)
        if (u->gradient[i])
            u->gradient[i] = mul(g, inverse, u->gradient[i]);
}

/* `part` added to the state, which begins again from 0 where the sum is complete. */
static Node *accumulated(Graph *g, Node *state, Node *part, Node *due) {
    Node *sum = add(g, state, part);
    graph_assign(g, state, op3(g, "where", due, graph_constant(g, 0), sum));
    return sum;
}

/* The sum of `accumulate` gradients, each divided by their number or multiplied by what its examples weigh, is complete in the step
 * that makes the update. */
static void accumulate(Updates *u, Node *due) {
    Graph *g = u->g;
    const Type number = type_scalar(DT_F32);
    Node *part = graph_constant(g, 1.0 / (double)u->training->accumulate);
    for (int k = 0; k < u->module->weights.count; k++) {
        const int i = updated_as(u, k);
        if (u->gradient[i] && lies_within(u->module, i))
            states_within(u->module, i);
        if (!u->gradient[i] || lies_within(u->module, i))
            continue;
        Node *state = graph_state(g, module_state(u->module, i, "gradient"));
        if (is_flat(u->module, i))
            part_states(u->module, i);
        Node *sum = accumulated(g, state, u->weights ? u->gradient[i] : mul(g, part, u->gradient[i]), due);
        u->gradient[i] = graph_name(sum, arena_printf(g->arena, "mean_d_%s", name_of(u, i)));
    }
    if (u->weights)
        u->weights = accumulated(
            g,
            graph_state(g, module_state_named(u->module, first_trained(u->module), "update.example_weight", &number)),
            u->weights, due);
}

/* ---- clipping ---- */

static void clip_by_value(Updates *u) {
    Graph *g = u->g;
    Node *limit = u->training->clip_value.value;
    graph_at(g, u->training->clip_value.src);
    u->squares = NULL;
    for (int i = 0; i < u->module->weights.count; i++)
        if (u->gradient[i])
            u->gradient[i] = op2(g, "maximum", op2(g, "minimum", u->gradient[i], limit), op1(g, "neg", limit));
}

/* How many equal parts of other rows than its own a tensor has: PARTS or the next smaller number. If there is none, as
 * for a single row of a prime number of elements, each element is a part. */
static int64_t parts_of(const Type *type) {
    int64_t elements = type_elements(type);
    for (int64_t parts = elements < PARTS ? elements : PARTS; parts > 0; parts--)
        if (elements % parts == 0 && (parts == elements || parts != type->dim[0]))
            return parts;
    return elements;
}

/* The squares of a gradient, summed in parts: each is work of its own for some threads. The gradient is read from memory in
 * rows of another length than its own, so that its kernel is not the one that squares it. */
static Node *squares(Graph *g, Node *gradient) {
    int64_t elements = type_elements(&gradient->type), parts = parts_of(&gradient->type);
    bool whole = parts == elements;
    Type shape = {.dtype = DT_F32, .rank = whole ? 1 : 2, .dim = {parts, elements / parts}};
    Node *x = graph_reshape(g, gradient, &shape), *square = mul(g, x, x);
    return whole ? square : graph_reduce(g, "sum", square, 1u << 1);
}

/* The vector as one row of this size, 0 where it ends before. */
static Node *as_row(Graph *g, Node *vector, int64_t size) {
    Type row = {.dtype = DT_F32, .rank = 2, .dim = {1, vector->type.dim[0]}};
    Attr attr = {.rank = 2, .dims = {1, size}};
    vector = graph_reshape(g, vector, &row);
    return row.dim[1] == size ? vector : graph_node(g, "pad", attr, 1, &vector);
}

/* The gradient's part in the norm: none where its optimizer takes turns with others, and makes no update. */
static Node *squares_of_turn(Graph *g, Node *gradient, const Optimizer *optimizer) {
    Node *parts = squares(g, gradient);
    return optimizer->every > 1 ? op3(g, "where", optimizer->due, parts, graph_constant(g, 0)) : parts;
}

/* [1]: the sum of the squares of all gradients. First of parts of each gradient, then part by part over the gradients,
 * then over the parts; always in this order. */
static Node *added_squares(const Updates *u, const Optimizer *optimizers) {
    Graph *g = u->g;
    int count = u->module->weights.count;
    Node **parts = NEW_ARRAY(g->arena, Node *, count), *sum = NULL;
    int64_t longest = 0;
    for (int i = 0; i < count; i++) {
        if (!u->gradient[i] || is_flat(u->module, i))
            continue;
        parts[i] = squares_of_turn(g, u->gradient[i], &optimizers[u->training->updated_by[i]]);
        graph_name(parts[i], arena_printf(g->arena, "squares_d_%s", name_of(u, i)));
        longest = parts[i]->type.dim[0] > longest ? parts[i]->type.dim[0] : longest;
    }
    for (int i = 0; i < count; i++)
        if (parts[i])
            sum = sum ? add(g, sum, as_row(g, parts[i], longest)) : as_row(g, parts[i], longest);
    return graph_name(graph_reduce(g, "sum", sum, 1u << 1), "squares");
}

static Node *sum_of_squares(Updates *u, const Optimizer *optimizers) {
    u->squares = u->squares ? u->squares : added_squares(u, optimizers);
    return u->squares;
}

/* Gradients become g min(1, clip_norm / (norm + 1e-6)). */
static void clip_by_norm(Updates *u, const Optimizer *optimizers) {
    Graph *g = u->g;
    graph_at(g, u->training->clip_norm.src);
    Node *norm = graph_name(op1(g, "sqrt", sum_of_squares(u, optimizers)), "gradient_norm");
    Node *ratio = op2(g, "div", u->training->clip_norm.value, add(g, norm, graph_constant(g, 1e-6)));
    Node *factor = graph_name(op2(g, "minimum", ratio, graph_constant(g, 1)), "clip_factor");
    for (int i = 0; i < u->module->weights.count; i++)
        if (u->gradient[i]) {
            Node *clipped = mul(g, factor, u->gradient[i]);
            clipped->hint = "clipped";
            u->gradient[i] = graph_reshape(g, clipped, &u->gradient[i]->type); /* of a scalar, [1] until here */
        }
}

/* ---- updates ---- */

/* An optimizer as it is for all of its weights: which steps make an update, and the how manieth it is. */
static Optimizer scheduled_optimizer(const Updates *u, Optimizer optimizer) {
    Graph *g = u->g;
    const int64_t steps = u->training->accumulate, turn = steps * optimizer.every, ahead = turn - steps * optimizer.at;
    graph_at(g, optimizer.src);
    optimizer.number = op0(g, "step", (Attr){0});
    if (turn == 1)
        return optimizer;
    if (ahead) {
        Node *place = op0(g, "turn", (Attr){.index = (int)turn});
        optimizer.due = op2(g, "eq", place, graph_whole(g, (int32_t)(turn - ahead)));
        optimizer.number = add(g, optimizer.number, graph_constant(g, (double)ahead));
    } else {
        optimizer.due = op0(g, "every", (Attr){.index = (int)turn});
    }
    optimizer.number = mul(g, optimizer.number, graph_constant(g, 1.0 / (double)turn));
    return optimizer;
}

static void average(const Updates *u, const Optimizer *optimizer, int weight, Node *value) {
    Graph *g = u->g;
    Node *decay = u->training->ema.value;
    int row = module_state(u->module, weight, "ema");
    u->module->states.at[row].init = (Init){.kind = INIT_COPY};
    graph_at(g, u->training->ema.src);
    Node *state = graph_state(g, row), *rest = op2(g, "sub", graph_constant(g, 1), decay);
    update_assign(g, optimizer, state, add(g, mul(g, decay, state), mul(g, rest, value)));
    u->module->states.at[row].flat = is_flat(u->module, weight);
}

/* What the program tells of a training that is too short, or whose loss is one of several. */
static void count_optimizers(Module *module, const Training *training) {
    module->own_losses = 0;
    module->first_update = 1;
    for (int i = 0; i < training->optimizer_count; i++) {
        const int64_t first = (int64_t)training->accumulate * training->optimizers[i]->at;
        module->own_losses += training->losses[i] != NULL;
        module->first_update = first > module->first_update ? first : module->first_update;
    }
}

static Optimizer *scheduled_optimizers(const Updates *u) {
    Optimizer *optimizers = NEW_ARRAY(u->g->arena, Optimizer, u->training->optimizer_count);
    for (int i = 0; i < u->training->optimizer_count; i++)
        optimizers[i] = scheduled_optimizer(u, *u->training->optimizers[i]);
    return optimizers;
}

static void update_weight(const Updates *u, const Optimizer *optimizers, int weight) {
    Graph *g = u->g;
    Optimizer own = optimizers[u->training->updated_by[weight]];
    if (own.decay && !u->training->decayed[weight])
        own.arg[own.decay] = graph_constant(g, 0);
    graph_at(g, own.src);
    Node *value = own.update(g, &own, weight, u->gradient[weight]);
    update_assign(g, &own, graph_weight(g, weight), value);
    if (is_flat(u->module, weight))
        part_states(u->module, weight);
    if (u->training->ema.value)
        average(u, &own, weight, value);
}

static void update_weights(const Updates *u, const Optimizer *optimizers) {
    for (int k = 0; k < u->module->weights.count; k++) {
        const int i = updated_as(u, k);
        if (u->gradient[i] && lies_within(u->module, i))
            states_within(u->module, i);
        else if (u->gradient[i])
            update_weight(u, optimizers, i);
    }
}

/* Before gradients are clipped, which would hide what is not finite. */
static void judge(Updates *u, Optimizer *optimizers) {
    if (!u->scale.scale)
        return;
    judge_gradients(u->g, &u->scale, sum_of_squares(u, optimizers));
    for (int i = 0; i < u->training->optimizer_count; i++)
        skip_updates(u->g, &u->scale, &optimizers[i], i);
}

/* In place of a trained weight: its moving average. */
static Node *averaged(Graph *g, Node *n, const void *context) {
    (void)context;
    bool trained = n->op->table == TABLE_WEIGHT && g->module->weights.at[n->attr.index].kind == WEIGHT_TRAINED;
    return trained ? graph_state(g, module_state(g->module, n->attr.index, "ema")) : NULL;
}

static void use_averages(Graph *g) {
    graph_rewrite(g, averaged, NULL);
    graph_compact(g);
}

/* The norm is of gradients that are complete, and each process has accumulated a part of those. */
static bool may_part(const Updates *u) {
    const Span at = u->training->clip_norm.value ? u->training->clip_norm.src : u->training->optimizers[0]->src;
    const bool apart = u->training->accumulate > 1 && (u->training->clip_norm.value || u->scale.scale);
    if (apart)
        diag_error(
            u->module->diag, at,
            "%s takes the norm of all gradients, and with --shard-optimizer each process accumulates a part of them: "
            "leave out accumulate, for which more --shards take as little memory, or --shard-optimizer",
            u->training->clip_norm.value ? "clip_norm" : "the scale of the loss in fp16");
    return !apart;
}

static bool join_updates(Updates *u, Training *training) {
    if (!may_part(u))
        return false;
    u->first_flat = join_weights(u->module, training, &u->gradient);
    return true;
}

bool add_updates(Module *module, Node *loss, const Training *training) {
    Updates u = {.g = module->train,
                 .module = module,
                 .training = training,
                 .gradient = NEW_ARRAY(module->arena, Node *, module->weights.count),
                 .scale = loss_scale(module, first_trained(module)),
                 .weights = module->shards || training->accumulate > 1 ? training->weights : NULL,
                 .first_flat = module->weights.count};
    Training of_shards;
    Node *due = NULL;
    if (!differentiate(&u, loss))
        return false;
    unscale(&u);
    if (u.weights)
        multiply_by_weights(&u);
    if (module->shards) {
        sum_over_shards(module, u.gradient);
        u.weights = u.weights ? weights_over_shards(module, first_trained(module), u.weights) : NULL;
        of_shards = training_of_shards(module, training);
        u.training = training = &of_shards;
        u.g = module->update;
    }
    if (module->parts_states && !join_updates(&u, &of_shards))
        return false;
    count_optimizers(module, training);
    Optimizer *optimizers = scheduled_optimizers(&u);
    if (training->accumulate > 1)
        accumulate(&u, due = op0(u.g, "every", (Attr){.index = (int)training->accumulate}));
    if (u.weights)
        divide_by_weights(&u);
    judge(&u, optimizers);
    if (training->clip_value.value)
        clip_by_value(&u);
    if (training->clip_norm.value)
        clip_by_norm(&u, optimizers);
    update_weights(&u, optimizers);
    if (u.scale.scale)
        adapt_loss_scale(u.g, &u.scale, due);
    graph_compact(module->train);
    if (module->update)
        graph_compact(module->update);
    if (training->ema.value) {
        use_averages(module->eval);
        if (module->decode)
            use_averages(module->decode);
        if (module->texts)
            use_averages(module->texts);
        if (module->prefill)
            use_averages(module->prefill);
    }
    return true;
}

/* A sum rather than the gradient itself, which may be any node: a leaf, or the gradient of another weight too. */
bool add_gradients(Module *module, Node *loss) {
    Graph *g = module->train;
    Updates u = {.g = g, .module = module, .gradient = NEW_ARRAY(module->arena, Node *, module->weights.count)};
    if (!differentiate(&u, loss))
        return false;
    for (int i = 0; i < module->weights.count; i++)
        if (u.gradient[i]) {
            Node *state = graph_state(g, module_state(module, i, "gradient"));
            graph_assign(g, state, add(g, state, u.gradient[i]));
        }
    graph_compact(g);
    return true;
}
