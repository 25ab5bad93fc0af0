#include "explain.h"

#include "emit/program/program.h"
#include "explain_words.h"
#include "summary.h"
#include "support/file.h"

#include <stdlib.h>
#include <string.h>

typedef VEC(const Kernel *) Kernels;

/* A line of the text, and what a training step computes for it. */
typedef struct Line {
    const Source *source;
    int number;
    VEC(const Node *) named;   /* values that it names */
    Kernels forward, backward; /* that compute what it says; its gradients and updates */
} Line;

typedef struct Explanation {
    Arena *arena;
    const Plan *plan;
    const Module *module;
    const Program *step;
    Kernels *at;     /* by node: the kernels that compute it; several where each reader does */
    VEC(Line) lines; /* the model file's own first, from the top */
    int forward;     /* nodes before this one are no gradients or updates */
    bool whole;      /* one value was asked for: nothing is folded */
    Text *out;
} Explanation;

/* ---- which kernels compute a node ---- */

static bool contains(const Kernels *kernels, const Kernel *kernel) {
    for (int i = 0; i < kernels->count; i++)
        if (kernels->at[i] == kernel)
            return true;
    return false;
}

static void add_kernel(Arena *arena, Kernels *kernels, const Kernel *kernel) {
    if (!contains(kernels, kernel))
        VEC_PUSH(arena, kernels, kernel);
}

/* The kernel computes n itself; what n reads that no kernel has computes it, too. */
static void compute_in(Explanation *x, const bool *has_home, const Node *n, const Kernel *kernel) {
    if (x->at[n->id].count && x->at[n->id].at[x->at[n->id].count - 1] == kernel)
        return;
    VEC_PUSH(x->arena, &x->at[n->id], kernel);
    for (int k = 0; k < n->inputs; k++)
        if (!has_home[n->in[k]->id] && n->in[k]->op->cls != OP_LEAF)
            compute_in(x, has_home, n->in[k], kernel);
}

static void find_kernels(Explanation *x) {
    const Program *step = x->step;
    bool *has_home = NEW_ARRAY(x->arena, bool, step->graph->nodes.count);
    x->at = NEW_ARRAY(x->arena, Kernels, step->graph->nodes.count);
    for (int i = 0; i < step->kernels.count; i++)
        for (int k = 0; k < step->kernels.at[i]->nodes.count; k++)
            has_home[step->kernels.at[i]->nodes.at[k]->id] = true;
    for (int p = 0; p < step->phases.count; p++)
        for (int i = 0; i < step->phases.at[p].kernels.count; i++) {
            const Kernel *kernel = step->phases.at[p].kernels.at[i];
            for (int k = 0; k < kernel->nodes.count; k++)
                compute_in(x, has_home, kernel->nodes.at[k], kernel);
        }
}

/* ---- lines ---- */

static int order_of(const Explanation *x, const Source *source, int number, const Line *line) {
    if (source != line->source)
        return source == x->module->source         ? -1
               : line->source == x->module->source ? 1
                                                   : strcmp(source->path, line->source->path);
    return number - line->number;
}

static Line *line_at(Explanation *x, Span src) {
    const int number = line_of(src);
    int row = x->lines.count;
    while (row > 0 && order_of(x, src.source, number, &x->lines.at[row - 1]) < 0)
        row--;
    if (row > 0 && order_of(x, src.source, number, &x->lines.at[row - 1]) == 0)
        return &x->lines.at[row - 1];
    VEC_PUSH(x->arena, &x->lines, (Line){0});
    memmove(&x->lines.at[row + 1], &x->lines.at[row], (size_t)(x->lines.count - 1 - row) * sizeof(Line));
    x->lines.at[row] = (Line){.source = src.source, .number = number};
    return &x->lines.at[row];
}

/* The text names it; other names say what a value is for. */
static bool is_named(const Module *module, const Node *n) {
    for (int i = 0; i < module->named.count; i++)
        if (strcmp(module->named.at[i].name, n->name) == 0)
            return true;
    return false;
}

static void find_lines(Explanation *x) {
    const Graph *g = x->step->graph;
    x->forward = forward_nodes(g);
    for (int i = 0; i < g->nodes.count; i++) {
        const Node *n = g->nodes.at[i];
        if (!n->src.source || n->op->cls == OP_LEAF || n->op->cls == OP_ROOT)
            continue;
        Line *line = line_at(x, n->src);
        for (int k = 0; k < x->at[i].count; k++)
            add_kernel(x->arena, i < x->forward ? &line->forward : &line->backward, x->at[i].at[k]);
        if (n->name && i < x->forward && is_named(x->module, n))
            VEC_PUSH(x->arena, &line->named, n);
    }
}

/* "31", "gpt.mt:31" in a file that is included. */
static const char *place_of(const Explanation *x, const Source *source, int number) {
    const Source *own = x->module->source;
    return source == own ? arena_printf(x->arena, "%d", number)
                         : arena_printf(x->arena, "%s:%d", path_beside(source->path, own->path), number);
}

/* ---- what is alike: the layers of a repeat ---- */

/* Of the same line of the text and the same size. */
static bool alike(const Kernel *a, const Kernel *b) {
    const Span x = source_of_kernel(a), y = source_of_kernel(b);
    return a->cls == b->cls && a->apart == b->apart && a->flops == b->flops && a->bytes == b->bytes && a->m == b->m &&
           a->n == b->n && a->k == b->k && a->rows == b->rows && a->stores.count == b->stores.count &&
           a->nodes.at[0]->op == b->nodes.at[0]->op && x.source == y.source && x.begin == y.begin;
}

static int count_alike(const Kernels *kernels, int first, const Kernel **last) {
    int count = 0;
    *last = kernels->at[first];
    for (int i = 0; i < kernels->count; i++)
        if (alike(kernels->at[i], kernels->at[first])) {
            if (i < first)
                return 0;
            *last = kernels->at[i];
            count++;
        }
    return count;
}

/* "h (phase 1), h_0_fc to h_11_fc (12 alike)". */
static const char *kernel_list(const Explanation *x, const Kernels *kernels) {
    Text out = TEXT(x->arena);
    for (int i = 0; i < kernels->count; i++) {
        const Kernel *last;
        const int count = count_alike(kernels, i, &last);
        if (!count)
            continue;
        text_printf(&out, "%s%s", out.length ? ", " : "", kernels->at[i]->name);
        if (count > 1)
            text_printf(&out, " to %s (%d alike)", last->name, count);
    }
    return text_string(&out);
}

/* ---- values ---- */

static const char *phases_of(Arena *arena, const Buffer *buffer) {
    return buffer->first == buffer->last
               ? arena_printf(arena, "in phase %d", buffer->first + 1)
               : arena_printf(arena, "from phase %d to %d", buffer->first + 1, buffer->last + 1);
}

/* Others that have some of its bytes, before it or after it. */
static void add_sharers(const Explanation *x, const Buffer *buffer, Text *out) {
    enum { NAMED = 3 };
    int sharers = 0;
    for (int i = 0; i < x->plan->buffers.count; i++) {
        const Buffer *other = &x->plan->buffers.at[i];
        if (other == buffer || other->program != buffer->program || !buffers_meet(buffer, other) || sharers++ >= NAMED)
            continue;
        const bool over = buffer->in_place_of && strcmp(buffer->in_place_of, other->name) == 0;
        text_printf(out, "%s %s",
                    sharers > 1 ? ","
                    : over      ? ", written over"
                                : ", in bytes that it shares with",
                    other->name);
    }
    if (sharers > NAMED)
        text_printf(out, " and %d more", sharers - NAMED);
}

static void say_stored(const Explanation *x, const Node *n, Text *out) {
    const Buffer *buffer = plan_buffer(x->plan, n);
    if (!buffer) {
        text_puts(out, "a number of each step's report.");
        return;
    }
    text_printf(out, "%s of memory", text_bytes(x->arena, buffer->bytes));
    if (buffer->kind == BUFFER_VALUE) {
        text_printf(out, " %s", phases_of(x->arena, buffer));
        add_sharers(x, buffer, out);
    }
    text_putc(out, '.');
}

static const char *why_homeless(const Explanation *x, const Node *n) {
    return n->op->cls == OP_VIEW   ? "it is the same numbers at other places, arithmetic of indices"
           : x->step->again[n->id] ? "to compute it again moves no more bytes than to store it and to load it"
                                   : "it is made of data, weights and constants alone";
}

static void say_value(const Explanation *x, const Node *n, Text *out) {
    const Kernels *at = &x->at[n->id];
    const Type type = type_in_text(x->module, n);
    text_printf(out, "%s, %s: ", n->name, type_user_text(x->arena, &type));
    if (program_producer(x->step, n))
        say_stored(x, n, out);
    else if (!at->count)
        text_puts(out, "no kernel computes it: the training does not need it, or not under this name.");
    else if (at->count == 1 && nodes_have(at->at[0], n))
        text_printf(out, "never in memory: it stays within %s.", at->at[0]->name);
    else
        text_printf(out, "never in memory: computed where it is read, by %s, because %s.", kernel_list(x, at),
                    why_homeless(x, n));
}

/* Values of one name, or of the layers of a repeat, that are alike in all but the phases: said once. */
static void print_values(const Explanation *x, const Line *line) {
    enum { SHOWN = 6 };
    int shown = 0;
    for (int i = 0; i < line->named.count; i++) {
        const Node *n = line->named.at[i];
        int before = 0, after = 0;
        for (int k = 0; k < line->named.count; k++) {
            const Node *other = line->named.at[k];
            const bool same = other->src.begin == n->src.begin && other->op == n->op &&
                              type_same_shape(&other->type, &n->type) &&
                              !program_producer(x->step, other) == !program_producer(x->step, n);
            before += same && k < i;
            after += same && k > i;
        }
        if (!x->whole && (before || shown++ >= SHOWN))
            continue;
        Text words = TEXT(x->arena);
        say_value(x, n, &words);
        if (!x->whole && after)
            text_printf(&words, " And %d like it.", after);
        fill(x->out, 4, text_string(&words));
    }
}

static void print_text(const Explanation *x, const Source *source, int number) {
    fill(x->out, 0, arena_printf(x->arena, "%s: %s", place_of(x, source, number), line_text(x->arena, source, number)));
}

static void print_line(const Explanation *x, const Line *line) {
    print_text(x, line->source, line->number);
    print_values(x, line);
    if (line->forward.count)
        fill(x->out, 4, arena_printf(x->arena, "Computed by %s.", kernel_list(x, &line->forward)));
    if (line->backward.count)
        fill(x->out, 4,
             arena_printf(x->arena, "%s by %s.", line->forward.count ? "Its gradient" : "Carried out",
                          kernel_list(x, &line->backward)));
}

/* ---- kernels ---- */

static void add_names(const Explanation *x, const char *before, Node *const *nodes, int count, Text *out) {
    enum { NAMED = 8 };
    for (int i = 0; i < count && (x->whole || i < NAMED); i++) {
        const Buffer *buffer = plan_buffer(x->plan, nodes[i]);
        const char *name = buffer ? buffer->label : nodes[i]->name ? nodes[i]->name : "numbers of the report";
        text_printf(out, "%s %s", i ? "," : before, name);
    }
    if (!x->whole && count > NAMED)
        text_printf(out, " and %d more", count - NAMED);
}

/* "It computes lines 14 and 15 and gradients of 12." */
static void add_lines_of(const Explanation *x, const Kernel *kernel, Text *out) {
    const char *last[2] = {"", ""};
    Text texts[2] = {TEXT(x->arena), TEXT(x->arena)};
    for (int l = 0; l < x->lines.count; l++)
        for (int back = 0; back < 2; back++) {
            const Line *line = &x->lines.at[l];
            if (!contains(back ? &line->backward : &line->forward, kernel))
                continue;
            last[back] = place_of(x, line->source, line->number);
            text_printf(&texts[back], "%s%s", texts[back].length ? ", " : "", last[back]);
        }
    if (texts[0].length)
        text_printf(out, " From %s %s", strchr(texts[0].at, ',') ? "lines" : "line", texts[0].at);
    if (texts[1].length)
        text_printf(out, "%s %s", texts[0].length ? "; gradients and updates of" : " Gradients and updates of",
                    texts[1].at);
    text_puts(out, texts[0].length || texts[1].length ? "." : "");
}

static void print_kernel(const Explanation *x, const Kernel *kernel, int count, const Kernel *last) {
    Text words = TEXT(x->arena);
    text_printf(&words, "%s", kernel->name);
    if (count > 1)
        text_printf(&words, " to %s, %d alike", last->name, count);
    text_puts(&words, ": ");
    say_work(kernel, &words);
    text_printf(&words, " %s FLOP, %s%s.", text_grouped(x->arena, (int64_t)kernel->flops),
                text_bytes(x->arena, (int64_t)kernel->bytes), count > 1 ? " each" : "");
    add_lines_of(x, kernel, &words);
    add_names(x, " Reads", kernel->loads.at, kernel->loads.count, &words);
    add_names(x, kernel->loads.count ? "; writes" : " Writes", kernel->stores.at, kernel->stores.count, &words);
    text_puts(&words, ". ");
    say_why_apart(kernel, &words);
    fill(x->out, 4, text_string(&words));
}

static void print_kernels(const Explanation *x, const Kernels *kernels) {
    int phase = -1;
    for (int i = 0; i < kernels->count; i++) {
        const Kernel *kernel = kernels->at[i], *last = kernel;
        const int count = x->whole ? 1 : count_alike(kernels, i, &last);
        if (!count)
            continue;
        if (kernel->phase != phase)
            text_printf(x->out, "  phase %d\n", kernel->phase + 1);
        phase = kernel->phase;
        print_kernel(x, kernel, count, last);
    }
}

static Kernels all_kernels(const Explanation *x) {
    Kernels all = {0};
    for (int p = 0; p < x->step->phases.count; p++)
        for (int i = 0; i < x->step->phases.at[p].kernels.count; i++)
            VEC_PUSH(x->arena, &all, x->step->phases.at[p].kernels.at[i]);
    return all;
}

/* ---- the step ---- */

static void print_head(const Explanation *x, const char *target) {
    const Module *module = x->module;
    double flops = 0, bytes = 0;
    for (int i = 0; i < x->step->kernels.count; i++) {
        flops += x->step->kernels.at[i]->flops;
        bytes += x->step->kernels.at[i]->bytes;
    }
    text_printf(x->out, "%s for target %s, products in %s, %lld examples a step\n\n", module->name, target,
                precision_names[module->precision], (long long)module->batch);
    fill(
        x->out, 0,
        arena_printf(x->arena,
                     "A step of the training is %d %s in %d %s, one after the other: %s FLOP, and %s of memory traffic "
                     "if each kernel touches each of its buffers once.",
                     x->step->kernels.count, x->step->kernels.count == 1 ? "kernel" : "kernels", x->step->phases.count,
                     x->step->phases.count == 1 ? "phase" : "phases", text_grouped(x->arena, (int64_t)flops),
                     text_bytes(x->arena, (int64_t)bytes)));
}

/* Values of a step that the plan gives memory, the largest first; those of a repeat's layers once. */
static int compare_bytes(const void *a, const void *b) {
    const Buffer *x = *(const Buffer *const *)a, *y = *(const Buffer *const *)b;
    return x->bytes != y->bytes ? (x->bytes < y->bytes) - (x->bytes > y->bytes)
                                : (x->first > y->first) - (x->first < y->first);
}

static bool buffers_alike(const Buffer *a, const Buffer *b) {
    return a->bytes == b->bytes && a->src.source == b->src.source && a->src.begin == b->src.begin &&
           a->node->op == b->node->op && type_same_shape(&a->type, &b->type);
}

static void print_buffers(const Explanation *x) {
    enum { SHOWN = 12 };
    VEC(const Buffer *) values = {0};
    for (int i = 0; i < x->plan->buffers.count; i++)
        if (x->plan->buffers.at[i].kind == BUFFER_VALUE && x->plan->buffers.at[i].program == PROGRAM_TRAIN)
            VEC_PUSH(x->arena, &values, &x->plan->buffers.at[i]);
    qsort(values.at, (size_t)values.count, sizeof *values.at, compare_bytes);
    int shown = 0, told = 0;
    for (int i = 0; i < values.count && shown < SHOWN; i++) {
        int before = 0, count = 0;
        for (int k = 0; k < values.count; k++) {
            before += k < i && buffers_alike(values.at[k], values.at[i]);
            count += buffers_alike(values.at[k], values.at[i]);
        }
        if (before)
            continue;
        Text words = TEXT(x->arena);
        text_printf(&words, "%s: %s %s", values.at[i]->label, text_bytes(x->arena, values.at[i]->bytes),
                    phases_of(x->arena, values.at[i]));
        add_sharers(x, values.at[i], &words);
        if (count > 1)
            text_printf(&words, "; and %d alike", count - 1);
        fill(x->out, 4, text_string(&words));
        shown++;
        told += count;
    }
    if (told < values.count)
        fill(x->out, 4, arena_printf(x->arena, "... and %d smaller ones; --emit=plan has all.", values.count - told));
}

static void print_memory(const Explanation *x) {
    const Plan *plan = x->plan;
    Text words = TEXT(x->arena);
    text_printf(&words, "One allocation of %s: weights %s, the optimizer's state %s, values %s.",
                text_bytes(x->arena, plan->arena_bytes), text_bytes(x->arena, plan->weight_bytes),
                text_bytes(x->arena, plan_state_bytes(plan)), text_bytes(x->arena, plan->value_bytes));
    text_printf(&words,
                " A value has its bytes from the phase that writes it to the last one that reads it, then others have "
                "them: without that it would be %s. No plan can do with less than %s, what the fullest phase needs. "
                "The largest values:",
                text_bytes(x->arena, plan->unshared_bytes), text_bytes(x->arena, plan->floor_bytes));
    text_puts(x->out, "\nMemory\n");
    fill(x->out, 2, text_string(&words));
    print_buffers(x);
}

static void print_step(const Explanation *x, const char *target) {
    const Kernels all = all_kernels(x);
    print_head(x, target);
    text_puts(x->out, "\nLines\n");
    for (int i = 0; i < x->lines.count; i++)
        print_line(x, &x->lines.at[i]);
    text_puts(x->out, "\nKernels\n");
    print_kernels(x, &all);
    print_memory(x);
}

/* ---- one value ---- */

static void add_all(const Explanation *x, Kernels *to, const Kernels *from) {
    for (int i = 0; i < from->count; i++)
        add_kernel(x->arena, to, from->at[i]);
}

static Kernels kernels_of_line(const Explanation *x, const Line *line) {
    Kernels kernels = {0};
    add_all(x, &kernels, &line->forward);
    add_all(x, &kernels, &line->backward);
    return kernels;
}

/* The kernels that have to do with a name: compute it or its gradient, read or write what lies under it. */
static Kernels kernels_of_name(const Explanation *x, const char *name) {
    Kernels kernels = {0};
    const Kernels all = all_kernels(x);
    const char *gradient = arena_printf(x->arena, "d_%s", name);
    for (int i = 0; i < all.count; i++) {
        const Kernel *kernel = all.at[i];
        bool meant = strcmp(kernel->name, name) == 0;
        for (int k = 0; k < kernel->nodes.count && !meant; k++)
            meant = kernel->nodes.at[k]->name &&
                    (!strcmp(kernel->nodes.at[k]->name, name) || !strcmp(kernel->nodes.at[k]->name, gradient));
        for (int k = 0; k < kernel->loads.count && !meant; k++)
            meant = kernel->loads.at[k]->name && strcmp(kernel->loads.at[k]->name, name) == 0;
        if (meant)
            VEC_PUSH(x->arena, &kernels, kernel);
    }
    for (int i = 0; i < x->step->graph->nodes.count; i++)
        if (x->step->graph->nodes.at[i]->name && strcmp(x->step->graph->nodes.at[i]->name, name) == 0)
            add_all(x, &kernels, &x->at[i]);
    return kernels;
}

/* Of the value itself: a line for each node that has the name. */
static bool print_named(const Explanation *x, const char *name) {
    const Graph *g = x->step->graph;
    bool any = false;
    for (int i = 0; i < g->nodes.count; i++) {
        const Node *n = g->nodes.at[i];
        if (!n->name || strcmp(n->name, name) != 0)
            continue;
        Text words = TEXT(x->arena);
        if (n->src.source && !any)
            print_text(x, n->src.source, line_of(n->src));
        if (n->op->cls == OP_LEAF) {
            text_printf(&words, "%s, %s: ", name, type_user_text(x->arena, &n->type));
            if (n->op->table == TABLE_FIELD)
                text_puts(&words, "a field of the data, read where the data lie.");
            else
                say_stored(x, n, &words);
        } else {
            say_value(x, n, &words);
        }
        any = true;
        fill(x->out, 4, text_string(&words));
    }
    return any;
}

/* "17" is a line of the model file, "gpt.mt:17" one of a file that it includes. */
static const Line *line_named(const Explanation *x, const char *name) {
    for (int i = 0; i < x->lines.count; i++)
        if (strcmp(place_of(x, x->lines.at[i].source, x->lines.at[i].number), name) == 0)
            return &x->lines.at[i];
    return NULL;
}

static bool report_unknown(const Explanation *x, const char *name) {
    const Graph *g = x->step->graph;
    VEC(const char *) names = {0};
    for (int i = 0; i < g->nodes.count; i++)
        if (g->nodes.at[i]->name)
            VEC_PUSH(x->arena, &names, g->nodes.at[i]->name);
    for (int i = 0; i < x->step->kernels.count; i++)
        VEC_PUSH(x->arena, &names, x->step->kernels.at[i]->name);
    const char *nearest = nearest_name(name, names.at, names.count);
    if (strspn(name, "0123456789") == strlen(name))
        diag_error(x->module->diag, (Span){0}, "nothing is computed for line %s of the model", name);
    else
        diag_error(x->module->diag, (Span){0}, "the training step has no value or kernel '%s'%s", name,
                   nearest ? arena_printf(x->arena, "; did you mean '%s'?", nearest) : "");
    diag_note(x->module->diag, (Span){0}, "mtc explain %s, without a name, tells of all", x->module->source->path);
    return false;
}

static bool print_one(Explanation *x, const char *name) {
    const Line *line = line_named(x, name);
    x->whole = !line;
    if (line)
        print_line(x, line);
    const Kernels kernels = line ? kernels_of_line(x, line) : kernels_of_name(x, name);
    const bool any = line || print_named(x, name);
    if (!any && !kernels.count)
        return report_unknown(x, name);
    text_puts(x->out, any ? "\nKernels\n" : "Kernels\n");
    print_kernels(x, &kernels);
    return true;
}

bool explain_print(const Plan *plan, const char *target, const char *name, Text *out) {
    Explanation x = {.arena = out->arena,
                     .plan = plan,
                     .step = plan->programs[PROGRAM_TRAIN],
                     .module = plan->programs[PROGRAM_TRAIN]->graph->module,
                     .out = out};
    find_kernels(&x);
    find_lines(&x);
    if (name)
        return print_one(&x, name);
    print_step(&x, target);
    return true;
}
