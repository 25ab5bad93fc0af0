/* The dump of a graph: a node a line, read again by tests/support/evaluator.py.
 *
 *   %7 = matmul(%3, %5) tb : f32[64, 128] h  # mnist.mt:16 */
#include "ir/op.h"

static void print_inputs(const Node *n, Text *out) {
    for (int k = 0; k < n->inputs; k++)
        text_printf(out, "%s%%%d", k ? ", " : "(", n->in[k]->id);
    if (n->inputs)
        text_putc(out, ')');
}

static void print_list(Text *out, const char *name, const int64_t *items, int count) {
    text_printf(out, " %s=[", name);
    for (int k = 0; k < count; k++)
        text_printf(out, "%s%lld", k ? ", " : "", (long long)items[k]);
    text_putc(out, ']');
}

static void print_axes(Text *out, unsigned axes) {
    int64_t list[MAX_RANK];
    int count = 0;
    for (int k = 0; k < MAX_RANK; k++)
        if (axes >> k & 1)
            list[count++] = k;
    print_list(out, "axes", list, count);
}

static void print_sweep(Text *out, const char *name, const Sweep *s) {
    const int64_t items[] = {s->out, s->kernel, s->stride, s->dilation, s->pad, s->spread};
    print_list(out, name, items, 6);
}

static void print_heads(Text *out, const Heads *h) {
    print_list(out, "heads", (const int64_t[]){h->queries, h->keys, h->size}, 3);
    if (h->causal)
        text_puts(out, " causal");
    if (h->window)
        text_printf(out, " window=%lld", (long long)h->window);
}

static void print_attr(const Node *n, Text *out) {
    unsigned attrs = n->op->attrs;
    if (attrs & ATTR_VALUE) {
        text_puts(out, " value=");
        text_number(out, n->attr.value);
    }
    if (attrs & ATTR_INDEX)
        text_printf(out, " index=%d", n->attr.index);
    if (attrs & ATTR_AXES)
        print_axes(out, n->attr.axes);
    if (attrs & ATTR_ORDER)
        print_list(out, "order", n->attr.dims, n->attr.rank);
    if (attrs & ATTR_OFFSET)
        print_list(out, "offset", n->attr.offset, n->attr.rank);
    if (attrs & ATTR_SWEEP) {
        print_sweep(out, "rows", &n->attr.sweep[0]);
        print_sweep(out, "columns", &n->attr.sweep[1]);
    }
    if (attrs & ATTR_HEADS)
        print_heads(out, &n->attr.heads);
    if (n->attr.ta)
        text_puts(out, " ta");
    if (n->attr.tb)
        text_puts(out, " tb");
}

static void print_place(Span src, Text *out) {
    if (!src.source)
        return;
    int line, column;
    span_position(src, &line, &column);
    const char *slash = strrchr(src.source->path, '/');
    text_printf(out, "  # %s:%d", slash ? slash + 1 : src.source->path, line);
}

const char *graph_kind(const Graph *g) {
    const Module *module = g->module;
    return g == module->update    ? "update"
           : g == module->watch   ? "watch"
           : g->training          ? "train"
           : g == module->measure ? "measure"
           : g == module->decode  ? "decode"
           : g == module->texts   ? "texts"
           : g == module->prefill ? "prefill"
                                  : "eval";
}

void graph_print(const Graph *g, Text *out) {
    text_printf(out, "graph %s\n", graph_kind(g));
    for (int i = 0; i < g->nodes.count; i++) {
        const Node *n = g->nodes.at[i];
        text_printf(out, "%%%d = %s", n->id, n->op->name);
        print_inputs(n, out);
        print_attr(n, out);
        text_printf(out, " : %s", type_graph_text(out->arena, &n->type));
        if (n->name)
            text_printf(out, " %s", n->name);
        print_place(n->src, out);
        text_putc(out, '\n');
    }
}
