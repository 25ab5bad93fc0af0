/* Rows of the model's table about text that goes on from a prompt. */
#include "emit/kernel/table.h"
#include "emit/program/program.h"
#include "plan/liveness.h"

#include <math.h>

static double estimate_of(const Emitter *e, const Graph *g) {
    return plan_program(e->plan, g)->estimate[SCHEDULE_GRAPH];
}

/* What is given to the program: what it keeps, and does not overwrite. */
static const Node *prompt_of(const Program *prefill) {
    const Graph *g = prefill->graph;
    int i = 0;
    while (!is_kept(g->nodes.at[i]) || prefill->next[i])
        i++;
    return g->nodes.at[i];
}

/* Where a prompt lies, and from how many tokens on they take longer one by one. */
static void write_prefill(Emitter *e, Writer *out) {
    const Module *module = e->module;
    const Node *prompt = prompt_of(plan_program(e->plan, module->prefill));
    const double tokens = estimate_of(e, module->prefill) / estimate_of(e, module->decode);
    write_line(out, ".prompt_offset = %lld,", (long long)plan_buffer(e->plan, prompt)->offset);
    write_line(out, ".prompt_tokens = %lld,", (long long)type_elements(&prompt->type));
    write_line(out, ".prefill_from = %lld,", (long long)ceil(tokens));
}

/* Of the token after a position; or why there are none. */
void write_generation(Emitter *e, Writer *out) {
    const Module *module = e->module;
    if (module->no_decode)
        write_line(out, ".no_decode = %s,", quoted(e->arena, module->no_decode));
    if (!module->decode)
        return;
    const Node *scores = output_of(plan_program(e->plan, module->decode));
    write_line(out, ".scores_offset = %lld,", (long long)plan_buffer(e->plan, scores)->offset);
    write_line(out, ".context = %lld,", (long long)module->context);
    write_line(out, ".vocabulary = %d,", module->tokens->classes);
    if (module->prefill)
        write_prefill(e, out);
}
