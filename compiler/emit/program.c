/* The sections of a generated program, in their order. */
#include "emit/program.h"

/* ---- kernels ---- */

static const Function *function_of(const Emitter *e, const Kernel *kernel) {
    for (int k = 0; k < e->functions.count; k++)
        if (e->functions.at[k].kernel == kernel)
            return &e->functions.at[k];
    ICE("kernel %s has no function", kernel->name);
}

const char *kernel_call(const Emitter *e, const Kernel *kernel) {
    return function_of(e, kernel)->call;
}

const char *kernel_name(const Emitter *e, const Kernel *kernel) {
    return function_of(e, kernel)->name;
}

const Program *program_of(const Emitter *e, const Kernel *kernel) {
    for (int p = 0; p < e->plan->program_count; p++)
        for (int k = 0; k < e->programs[p]->kernels.count; k++)
            if (e->programs[p]->kernels.at[k] == kernel)
                return e->programs[p];
    ICE("kernel %s is of no program", kernel->name);
}

double program_flops(const Program *program) {
    double flops = 0;
    for (int k = 0; k < program->kernels.count; k++)
        flops += program->kernels.at[k]->flops;
    return flops;
}

double program_bytes(const Program *program) {
    double bytes = 0;
    for (int k = 0; k < program->kernels.count; k++)
        bytes += program->kernels.at[k]->bytes;
    return bytes;
}

static void write_kernel(Emitter *e, const Kernel *kernel, const char *name, Writer *out) {
    Writer lines = WRITER(e->arena);
    Body body = body_new(e, kernel, name, &lines);
    out->at = lines.at = kernel->nodes.at[0]->src;
    if (kernel->cls == KERNEL_CONTRACT)
        e->target->contract(&body);
    else if (e->target->nest && kernel_nests(kernel))
        e->target->nest(&body);
    else
        write_rows(&body);
    const char *text = text_string(&lines.text);
    write_statements_of(e, kernel, out);
    if (kernel->stages.count < 2)
        write_equations(e, kernel, out);
    if (e->target->declare)
        e->target->declare(e, kernel, name, out);
    write_open(out, "%s {", e->target->signature(e, name, text));
    write_all(out, &lines);
    write_close(out, "}");
    VEC_PUSH(e->arena, &e->functions, ((Function){kernel, name, e->target->call(e, name, text)}));
}

static void write_kernels(Emitter *e, const Program *program, Writer *out) {
    for (int p = 0; p < program->phases.count; p++)
        for (int k = 0; k < program->phases.at[p].kernels.count; k++) {
            const Kernel *kernel = program->phases.at[p].kernels.at[k];
            bool first = p == 0 && k == 0, train = program == e->programs[PROGRAM_TRAIN];
            const char *wanted = train ? kernel->name : arena_printf(e->arena, "%s_%s", program->prefix, kernel->name);
            if (!first)
                write_blank(out);
            write_kernel(e, kernel, names_claim(&e->globals, wanted), out);
        }
}

/* ---- sizes ---- */

static void name_reports(Emitter *e) {
    int count = e->module->reports.count;
    e->report = NEW_ARRAY(e->arena, const char *, count);
    for (int k = 0; k < count; k++)
        e->report[k] =
            names_claim_constant(&e->globals, arena_printf(e->arena, "report_%s", e->module->reports.at[k].name));
}

static void write_sizes(Emitter *e, const char *code, Writer *out) {
    sizes_write(e->sizes, code, out);
    const char **names = NEW_ARRAY(e->arena, const char *, e->module->reports.count + 1);
    for (int k = 0; k < e->module->reports.count; k++)
        names[k] = e->report[k];
    names[e->module->reports.count] = "REPORTS";
    write_enumeration(out, names, e->module->reports.count + 1);
}

/* ---- the file ---- */

static void write_main(Emitter *e, Writer *out) {
    write_rule(out, "main");
    write_open(out, "int main(int argc, char **argv) {");
    write_line(out, "return mtc_main(&mtc_model, argc, argv);");
    write_close(out, "}");
    (void)e;
}

/* A program that is launched for some examples of a data set. */
static void write_program(Emitter *e, const Program *program, const char *title, void (*section)(Emitter *, Writer *),
                          Writer *out) {
    write_rule(out, title);
    write_kernels(e, program, out);
    write_blank(out);
    e->target->phases(e, program, out);
    section(e, out);
}

/* Sizes are known when everything that uses them has been written, kernels before what is above them. */
static void write_file(Emitter *e, Writer *out) {
    Writer tensors = WRITER(e->arena), step = WRITER(e->arena), evaluation = WRITER(e->arena),
           measuring = WRITER(e->arena), code = WRITER(e->arena);
    write_rule(&step, "training step");
    write_kernels(e, e->programs[PROGRAM_TRAIN], &step);
    write_rule(&step, "phases: one after the other; the kernels of a phase run at the same time");
    e->target->phases(e, e->programs[PROGRAM_TRAIN], &step);
    write_rule(&step, "the step");
    e->target->step(e, &step);
    write_program(e, e->programs[PROGRAM_EVAL], "evaluation", e->target->evaluation, &evaluation);
    if (e->plan->program_count > PROGRAM_MEASURE)
        write_program(e, e->programs[PROGRAM_MEASURE],
                      "measuring: mean and deviation of the fields that are normalized", e->target->measuring,
                      &measuring);
    write_rule(&tensors, "tensors: where each lies in the arena");
    e->target->tensors(e, &tensors);
    write_all(&code, &tensors);
    write_all(&code, &step);
    write_all(&code, &evaluation);
    write_all(&code, &measuring);

    write_banner(e, out);
    write_blank(out);
    e->target->includes(e, out);
    write_rule(out, "sizes");
    write_sizes(e, text_string(&code.text), out);
    write_all(out, &code);
    write_rule(out, "tables for the runtime");
    write_tables(e, out);
    if (!e->options->shared)
        write_main(e, out);
}

Emission *emit_program(const Module *module, const Plan *plan, const EmitOptions *options, const Target *target) {
    Arena *arena = module->arena;
    Emitter e = {.arena = arena,
                 .module = module,
                 .plan = plan,
                 .programs = plan->programs,
                 .options = options,
                 .target = target,
                 .globals = {.arena = arena}};
    e.sizes = sizes_new(&e.globals, module);
    tensors_name(&e);
    name_reports(&e);
    Writer out = WRITER(arena);
    out.breaks = true;
    write_file(&e, &out);
    Emission *emission = NEW(arena, Emission);
    emission->text = text_string(&out.text);
    emission->length = out.text.length;
    for (int k = 0; k < out.lines.count; k++)
        VEC_PUSH(arena, &emission->lines, out.lines.at[k]);
    return emission;
}
