/* Rows of the model's table about text that goes on from a prompt. */
#include "emit/kernel/table.h"
#include "emit/program/program.h"
#include "plan/place.h"

#include <math.h>

static double estimate_of(const Emitter *e, const Graph *g) {
    return plan_program(e->plan, g)->estimate[SCHEDULE_GRAPH];
}

/* Tokens that are given to the program: of what it keeps, what has examples. */
static const Node *tokens_of(const Program *program) {
    const Graph *g = program->graph;
    int i = 0;
    while (!is_kept(g->nodes.at[i]) || !g->nodes.at[i]->type.batched)
        i++;
    return g->nodes.at[i];
}

static long long offset_of(const Emitter *e, const Node *n) {
    return (long long)plan_buffer(e->plan, n)->offset;
}

/* Where a prompt lies, and from how many tokens on they take longer one by one. */
static void write_prefill(Emitter *e, Writer *out) {
    const Module *module = e->module;
    const Node *prompt = tokens_of(plan_program(e->plan, module->prefill));
    const double tokens = estimate_of(e, module->prefill) / estimate_of(e, module->decode);
    write_line(out, ".prompt_offset = %lld,", offset_of(e, prompt));
    write_line(out, ".prompt_tokens = %lld,", (long long)type_elements(&prompt->type));
    write_line(out, ".prefill_from = %lld,", (long long)ceil(tokens));
}

/* The leaf of g that is the k-th that it keeps, of those without examples; NULL: there are not so many. */
static const Node *cache_of(const Graph *g, int k) {
    for (int i = 0; i < g->nodes.count; i++) {
        const Node *n = g->nodes.at[i];
        if (is_kept(n) && !n->type.batched && n->attr.index == k)
            return n;
    }
    return NULL;
}

void write_caches(Emitter *e, Writer *out) {
    const Module *module = e->module;
    if (!module->texts || !cache_of(module->texts, 0))
        return;
    write_line(out, "\n// keys and values of positions, a row each: where those of one text lie, and those of several");
    write_open(out, "static const MtcCache cache_table[] = {");
    for (int k = 0; cache_of(module->texts, k); k++) {
        const Node *one = cache_of(module->decode, k), *all = cache_of(module->texts, k);
        const int64_t bytes = stored_bytes(&one->type, e->plan->real_bytes);
        write_line(out, "{%lld, %lld, %lld},", offset_of(e, one), offset_of(e, all),
                   (long long)(bytes / one->type.dim[0]));
    }
    write_close(out, "};");
}

static void write_texts(Emitter *e, Writer *out) {
    const Program *program = plan_program(e->plan, e->module->texts);
    int caches = 0;
    while (cache_of(program->graph, caches))
        caches++;
    write_line(out, ".texts = %lld,", (long long)graph_examples(program->graph));
    write_line(out, ".tokens_offset = %lld,", offset_of(e, tokens_of(program)));
    write_line(out, ".texts_scores_offset = %lld,", offset_of(e, output_of(program)));
    if (caches)
        write_line(out, ".caches = %d,\n.cache = cache_table,", caches);
}

/* Of the token after a position; or why there are none. */
void write_generation(Emitter *e, Writer *out) {
    const Module *module = e->module;
    if (module->no_decode)
        write_line(out, ".no_decode = %s,", quoted(e->arena, module->no_decode));
    if (!module->decode)
        return;
    const Node *scores = output_of(plan_program(e->plan, module->decode));
    write_line(out, ".scores_offset = %lld,", offset_of(e, scores));
    write_line(out, ".context = %lld,", (long long)module->context);
    write_line(out, ".vocabulary = %d,", module->tokens->classes);
    if (module->prefill)
        write_prefill(e, out);
    if (module->texts)
        write_texts(e, out);
}
