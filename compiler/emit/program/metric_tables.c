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

/* How many of each class are taken for each is counted by the runtime itself. */
static void write_confusion(const Report *confusion, Writer *out) {
    write_line(out, "static const MtcSetMetric confusion_matrix = {.inputs = 2, .input = {%d, %d}, .classes = %d};",
               confusion->kept[0], confusion->kept[1], confusion->over_set->classes);
}

void write_metric_tables(Emitter *e, Writer *out) {
    const Module *module = e->module;
    if (module->kept.count)
        write_kept(e, out);
    if (module->reports.count > module->means) {
        write_open(out, "static const MtcSetMetric set_metric_table[] = {");
        for (int k = module->means; k < module->reports.count; k++)
            write_metric(e, &module->reports.at[k], out);
        write_close(out, "};");
    }
    if (module->confusion.name)
        write_confusion(&module->confusion, out);
}

void write_metrics(Emitter *e, Writer *out) {
    const Module *module = e->module;
    bool numbers = module->reports.count > module->means;
    if (module->kept.count)
        write_line(out, ".set_inputs = %d,", module->kept.count);
    if (numbers)
        write_line(out, ".set_metrics = %d,", module->reports.count - module->means);
    if (module->kept.count)
        write_line(out, ".set_input = set_input_table,");
    if (numbers)
        write_line(out, ".set_metric = set_metric_table,");
    if (module->confusion.name)
        write_line(out, ".confusion = &confusion_matrix,");
    if (module->weight.name && module->kept.count)
        write_line(out, ".set_weight = %d,", module->weight.kept[0]);
}
