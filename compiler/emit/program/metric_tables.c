/* Tables of the metrics over a set of examples: what evaluation keeps of each example, and what is computed of it. */
#include "emit/kernel/row.h"
#include "emit/program/program.h"

static void write_kept(Emitter *e, Writer *out) {
    const Graph *g = e->programs[PROGRAM_EVAL]->graph;
    write_line(out, "// what metrics over a set need of each example: where a batch of them lies");
    write_open(out, "static const MtcSetInput set_input_table[] = {");
    for (int row = 0; row < e->module->kept.count; row++)
        for (int k = 0; k < g->roots.count; k++) {
            const Node *root = g->roots.at[k];
            if (root->op->table == TABLE_KEPT && root->attr.index == row)
                write_line(out, "{.offset = %lld, .elements = %lld},",
                           (long long)plan_buffer(e->plan, root->in[0])->offset,
                           (long long)e->module->kept.at[row].elements);
        }
    write_close(out, "};");
}

static void write_metric(Emitter *e, const Report *report, Writer *out) {
    static const char *const averages[] = {[AVERAGE_BINARY] = "MTC_AVERAGE_BINARY",
                                           [AVERAGE_MACRO] = "MTC_AVERAGE_MACRO",
                                           [AVERAGE_MICRO] = "MTC_AVERAGE_MICRO",
                                           [AVERAGE_WEIGHTED] = "MTC_AVERAGE_WEIGHTED"};
    const SetMetric *metric = report->over_set;
    const char *inputs = metric->values == 1
                             ? arena_printf(e->arena, ".input = {%d}", report->kept[0])
                             : arena_printf(e->arena, ".input = {%d, %d}", report->kept[0], report->kept[1]);
    const char *items[] = {arena_printf(e->arena, ".compute = mtc_metric_%s", metric->function),
                           arena_printf(e->arena, ".inputs = %d", metric->values), inputs,
                           arena_printf(e->arena, ".classes = %d", metric->classes),
                           arena_printf(e->arena, ".average = %s", averages[metric->average])};
    enum { ITEMS = sizeof items / sizeof *items, OF_CLASSES = 2 };
    write_row(out, items, metric->classes || metric->average ? ITEMS : ITEMS - OF_CLASSES);
}

static bool has_metrics(const Module *module) {
    return module->reports.count > module->means;
}

void write_metric_tables(Emitter *e, Writer *out) {
    if (!has_metrics(e->module))
        return;
    write_kept(e, out);
    write_open(out, "static const MtcSetMetric set_metric_table[] = {");
    for (int k = e->module->means; k < e->module->reports.count; k++)
        write_metric(e, &e->module->reports.at[k], out);
    write_close(out, "};");
}

void write_metrics(Emitter *e, Writer *out) {
    if (!has_metrics(e->module))
        return;
    write_line(out, ".set_inputs = %d,", e->module->kept.count);
    write_line(out, ".set_metrics = %d,", e->module->reports.count - e->module->means);
    write_line(out, ".set_input = set_input_table,");
    write_line(out, ".set_metric = set_metric_table,");
}
