/* Rows of the model's table about text that goes on from a prompt. */
#include "emit/kernel/table.h"
#include "emit/program/program.h"

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
}
