/* A network that reads what it is to predict: its loss falls to nothing, and tells nothing. */
#include "front/lower.h"
#include "op/compose.h"

/* The nodes that `root` depends on, by id. A piece that is cut out of a value counts as another value: the next character of
 * a text beside those before it. */
static bool *needed_by(Arena *arena, const Graph *g, const Node *root) {
    bool *needed = NEW_ARRAY(arena, bool, g->nodes.count);
    needed[root->id] = true;
    for (int id = root->id; id >= 0; id--) {
        const Node *n = g->nodes.at[id];
        for (int k = 0; needed[id] && k < n->inputs && strcmp(n->op->name, "slice") != 0; k++)
            needed[n->in[k]->id] = true;
    }
    return needed;
}

static const Field *field_of(const Module *module, const Node *n) {
    return n->op->table == TABLE_FIELD ? &module->fields.at[n->attr.index] : NULL;
}

/* Numbers of an example that are given for the prediction, and not to be predicted. */
static int64_t numbers_beside(const Graph *g, const bool *prediction, const bool *target) {
    int64_t numbers = 0;
    for (int id = 0; id < g->nodes.count; id++)
        if (prediction[id] && !target[id] && field_of(g->module, g->nodes.at[id]))
            numbers += type_extent(&g->nodes.at[id]->type, 1, g->nodes.at[id]->type.rank);
    return numbers;
}

/* Who takes the field on the way to the prediction. */
static const Node *reader(const Graph *g, const Node *field, const bool *prediction) {
    for (int id = field->id + 1; id < g->nodes.count; id++)
        for (int k = 0; prediction[id] && k < g->nodes.at[id]->inputs; k++)
            if (g->nodes.at[id]->in[k] == field)
                return g->nodes.at[id];
    return field;
}

/* Where what is to be predicted is most of what is read, it is an autoencoder that is told something beside. */
void warn_leak(const Module *module, const Node *prediction, const Node *target) {
    const Graph *g = module->eval;
    if (!prediction || !target)
        return;
    const bool *read = needed_by(module->arena, g, prediction), *wanted = needed_by(module->arena, g, target);
    const int64_t beside = numbers_beside(g, read, wanted);
    for (int id = 0; id < g->nodes.count && !is_learned(g, target); id++) {
        const Node *n = g->nodes.at[id];
        const Field *field = read[id] && wanted[id] ? field_of(module, n) : NULL;
        if (!field || field->windows || type_extent(&n->type, 1, n->type.rank) > beside)
            continue;
        diag_warning(module->diag, reader(g, n, read)->src,
                     "the prediction is computed from '%s', which the loss compares it with: it learns to repeat it, "
                     "and nothing else",
                     field->name);
        diag_note(
            module->diag, field->src,
            "leave '%s' out of what the network reads; where only the loss is to know it, predict = ... says what "
            "is computed without it",
            field->name);
        return;
    }
}
