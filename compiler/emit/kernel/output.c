/* What becomes of a stored value: assigned to a weight or state, reported, or kept in its buffer. */
#include "emit/kernel/kernel_text.h"

int written_in(const Program *program, const Node *n) {
    const Kernel *producer = program_producer(program, n);
    for (int k = 0; k < program->kernels.count && !producer; k++) {
        const Kernel *kernel = program->kernels.at[k];
        for (int r = 0; r < kernel->roots.count; r++)
            if (kernel->roots.at[r]->inputs == 2 && kernel->roots.at[r]->in[0] == n)
                producer = kernel;
    }
    return producer ? producer->phase : -1;
}

/* In the order of the roots, so that the reports come last. */
void output_store(Body *body, const Node *stored, const Index *at, Outputs *outputs) {
    Emitter *e = body->e;
    const Buffer *buffer = plan_buffer(e->plan, stored);
    if (buffer)
        VEC_PUSH(e->arena, outputs,
                 ((Output){.node = stored, .at = *at, .to = stored_element(e, stored, at), .written = buffer}));
    for (int k = 0; k < body->kernel->roots.count; k++) {
        const Node *root = body->kernel->roots.at[k];
        if (root->op->table != TABLE_REPORT || root->in[0] != stored)
            continue;
        const Tree *report = tree_name(e->arena, e->report[root->attr.index]);
        const Tree *to = tree_element(e->arena, tree_member(e->arena, e->dialect->report, ""), report);
        VEC_PUSH(e->arena, outputs, ((Output){.node = stored, .at = *at, .to = to}));
    }
}
