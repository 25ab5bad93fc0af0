#include "pass/predict.h"

#include "ir/op.h"

/* The root that is an output, neither a report nor what metrics keep. */
static bool keep_output(Graph *g) {
    int kept = 0;
    for (int i = 0; i < g->roots.count && !kept; i++)
        if (g->roots.at[i]->inputs == 1 && g->roots.at[i]->op->table == TABLE_NONE)
            g->roots.at[kept++] = g->roots.at[i];
    g->roots.count = kept;
    graph_compact(g);
    return kept == 1;
}

/* Rows that no leaf of the graph names leave the table, and the others move up: where each is now; -1: nowhere. */
static const int *keep_rows(Graph *g, Table table, Weight *rows, int *count) {
    int *row = NEW_ARRAY(g->arena, int, *count + 1), kept = 0;
    for (int i = 0; i < g->nodes.count; i++)
        if (g->nodes.at[i]->op->table == table)
            row[g->nodes.at[i]->attr.index] = 1;
    for (int i = 0; i < *count; i++) {
        const bool named = row[i] != 0;
        row[i] = named ? kept : -1;
        if (named)
            rows[kept++] = rows[i];
    }
    for (int i = 0; i < g->nodes.count; i++)
        if (g->nodes.at[i]->op->table == table)
            g->nodes.at[i]->attr.index = row[g->nodes.at[i]->attr.index];
    *count = kept;
    return row;
}

/* A product has all three or none, and the scale that it takes is the one of its input. Nothing is left of the graph that showed what weights are multiplied with. */
static void keep_quantized(Module *module, const int *row) {
    int kept = 0;
    for (int i = 0; i < module->quantized.count; i++) {
        const Quantized *q = &module->quantized.at[i];
        if (row[q->weight] >= 0)
            module->quantized.at[kept++] =
                (Quantized){.weight = row[q->weight], .scale = row[q->scale], .input_scale = row[q->taken_scale]};
    }
    module->quantized.count = kept;
}

bool keep_prediction(Module *module) {
    module->train = graph_new(module, true);
    module->measure = module->decode = module->texts = module->prefill = module->update = module->watch = NULL;
    module->shards = 0;
    module->reports.count = module->means = 0;
    if (!keep_output(module->eval))
        return false;
    keep_quantized(module, keep_rows(module->eval, TABLE_WEIGHT, module->weights.at, &module->weights.count));
    keep_rows(module->eval, TABLE_STATE, module->states.at, &module->states.count);
    for (int i = 0; i < module->states.count; i++)
        module->states.at[i].init =
            (Init){.kind = INIT_ZEROS}; /* it comes from a file, and the weight that it was a copy of is gone */
    return true;
}
