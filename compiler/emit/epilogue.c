/* What becomes of the sums of a product, in CUDA: what an epilogue reads from memory is read ahead of it, for many
 * outputs at once. */
#include "emit/program.h"

typedef struct Epilogue {
    const char *name, *read, *ahead; /* "out", "read", "Ahead" */
    const char *index;               /* "int i, int j" */
    const char *about;               /* or NULL */
} Epilogue;

static const Epilogue of_product = {"out", "read", "Ahead", "int i, int j", NULL};
static const Epilogue of_rows = {"row_out", "read_row", "RowAhead", "int i",
                                 "the same for the sums over k of left(i, k)"};
static const Epilogue of_columns = {"column_out", "read_column", "ColumnAhead", "int j",
                                    "the same for the sums over k of right(k, j)"};

static void write_struct(Emitter *e, const char *name, const Reads *reads, Writer *out) {
    write_open(out, "struct %s {", name);
    for (int k = 0; k < reads->count; k++)
        write_line(out, "%s %s;", c_type(e, reads->at[k].node->type.dtype), reads->at[k].name);
    write_close(out, "};");
}

/* "auto read = [&](int i, int j) { return Ahead{t.h_weight[i * H + j], ...}; };" */
static void write_reads(Emitter *e, const Epilogue *epilogue, const Reads *reads, Writer *out) {
    Text values = TEXT(e->arena);
    for (int k = 0; k < reads->count; k++)
        text_printf(&values, "%s%s", k ? ", " : "", reads->at[k].text);
    write_struct(e, epilogue->ahead, reads, out);
    write_line(out, "auto %s = [&](%s) { return %s{%s}; };", epilogue->read, epilogue->index, epilogue->ahead,
               text_string(&values));
}

/* What the phase before the kernel's writes of it; if nothing, NULL, all may be read while that one is still running. */
static const Read *incomplete(const Emitter *e, const Kernel *kernel, const Reads *reads) {
    const Program *program = program_of(e, kernel);
    int count = program->phases.count, before = (kernel->phase + count - 1) % count;
    for (int k = 0; k < reads->count; k++)
        if (written_in(program, reads->at[k].node) == before)
            return &reads->at[k];
    return NULL;
}

static const char *write_epilogue(Body *kernel, const char *variable, const char *variable_2, const Epilogue *epilogue,
                                  Outputs (*outputs_of)(Body *, const Kernel *)) {
    Emitter *e = kernel->e;
    Writer lines = writer_like(kernel->out);
    Body body = body_inside(kernel, &lines, variable, variable_2);
    Reads reads = {0};
    body.reads = &reads;
    body.read_from = "ahead.";
    Outputs outputs = outputs_of(&body, kernel->kernel);
    body_write(&body, &outputs);
    const char *head = arena_printf(e->arena, "auto %s = [&](%s, float sum", epilogue->name, epilogue->index);
    if (epilogue->about)
        write_line(kernel->out, "// %s", epilogue->about);
    if (reads.count == 0) {
        write_lambda(kernel->out, arena_printf(e->arena, "%s)", head), &lines);
        return epilogue->name;
    }
    const Read *late = incomplete(e, kernel->kernel, &reads);
    if (late)
        write_line(kernel->out, "// read behind the gate, not early: the phase before writes %s", late->name);
    write_reads(e, epilogue, &reads, kernel->out);
    write_lambda(kernel->out, arena_printf(e->arena, "%s, const %s &ahead)", head, epilogue->ahead), &lines);
    return arena_printf(e->arena, "preloaded%s(%s, %s)", late ? "" : "_early", epilogue->read, epilogue->name);
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
