/* What becomes of the sums of a product, in CUDA: what an epilogue reads from memory is read ahead of it, for many
 * outputs at once. */
#include "emit/program.h"

typedef struct Epilogue {
    const char *name, *read, *old; /* "out", "read", "Old" */
    const char *index;             /* "int i, int j" */
} Epilogue;

static const Epilogue of_product = {"out", "read", "Old", "int i, int j"};
static const Epilogue of_rows = {"side", "read_side", "OldSide", "int i"};
static const Epilogue of_columns = {"side", "read_side", "OldSide", "int j"};

static void write_struct(Emitter *e, const char *name, const Reads *reads, Writer *out) {
    write_open(out, "struct %s {", name);
    for (int k = 0; k < reads->count; k++)
        write_line(out, "%s %s;", c_type(e, reads->at[k].node->type.dtype), reads->at[k].name);
    write_close(out, "};");
}

/* "auto read = [&](int i, int j) { return Old{t.h_weight[i * H + j], ...}; };" */
static void write_reads(Emitter *e, const Epilogue *epilogue, const Reads *reads, Writer *out) {
    Text values = TEXT(e->arena);
    for (int k = 0; k < reads->count; k++)
        text_printf(&values, "%s%s", k ? ", " : "", reads->at[k].text);
    write_struct(e, epilogue->old, reads, out);
    write_line(out, "auto %s = [&](%s) { return %s{%s}; };", epilogue->read, epilogue->index, epilogue->old,
               text_string(&values));
}

static const Program *home_of(const Emitter *e, const Kernel *kernel) {
    const Program *train = e->programs[0];
    for (int k = 0; k < train->kernels.count; k++)
        if (train->kernels.at[k] == kernel)
            return train;
    return e->programs[1];
}

/* The phase before the kernel's writes none of it, so that it may be read while that one is still running. */
static bool complete_early(const Emitter *e, const Kernel *kernel, const Reads *reads) {
    const Program *program = home_of(e, kernel);
    int count = program->phases.count, before = (kernel->phase + count - 1) % count;
    for (int k = 0; k < reads->count; k++)
        if (written_in(program, reads->at[k].node) == before)
            return false;
    return true;
}

static const char *write_epilogue(Body *kernel, const char *variable, const char *variable_2, const Epilogue *epilogue,
                                  Outputs (*outputs_of)(Body *, const Kernel *)) {
    Emitter *e = kernel->e;
    Writer lines = writer_like(kernel->out);
    Body body = body_inside(kernel, &lines, variable, variable_2);
    Reads reads = {0};
    body.reads = &reads;
    body.read_from = "old.";
    Outputs outputs = outputs_of(&body, kernel->kernel);
    body_write(&body, &outputs);
    const char *head = arena_printf(e->arena, "auto %s = [&](%s, float sum", epilogue->name, epilogue->index);
    if (reads.count == 0) {
        write_lambda(kernel->out, arena_printf(e->arena, "%s)", head), &lines);
        return epilogue->name;
    }
    write_reads(e, epilogue, &reads, kernel->out);
    write_lambda(kernel->out, arena_printf(e->arena, "%s, const %s &old)", head, epilogue->old), &lines);
    const char *early = complete_early(e, kernel->kernel, &reads) ? "_early" : "";
    return arena_printf(e->arena, "preloaded%s(%s, %s)", early, epilogue->read, epilogue->name);
}

const char *write_epilogues(Body *kernel) {
    const Kernel *k = kernel->kernel;
    const char *out = write_epilogue(kernel, "i", "j", &of_product, product_outputs);
    if (!k->side)
        return out;
    const char *side = k->side_of_b ? write_epilogue(kernel, "j", NULL, &of_columns, side_outputs)
                                    : write_epilogue(kernel, "i", NULL, &of_rows, side_outputs);
    return arena_printf(kernel->e->arena, "%s, sum_of_%s(%s)", out, k->side_of_b ? "b" : "a", side);
}
