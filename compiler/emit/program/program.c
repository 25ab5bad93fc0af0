/* The sections of a generated program, in their order. */
#include "emit/program/program.h"

#include "emit/kernel/function.h"
#include "emit/kernel/kernel_text.h"
#include "emit/kernel/library.h"
#include "emit/kernel/repeat.h"
#include "emit/kernel/tensors.h"

/* ---- kernels ---- */

static void make_body(Emitter *e, Function *f) {
    const Kernel *kernel = f->kernel;
    Body body = body_new(e, kernel, f->name, &f->lines);
    body.above = &f->tables;
    if (kernel->cls == KERNEL_CONTRACT)
        e->dialect->contract(&body);
    else if (kernel->cls == KERNEL_CALL)
        e->dialect->library(&body);
    else if (kernel->patch.sum)
        e->dialect->patches(&body);
    else if (e->dialect->nest && kernel_nests(kernel))
        e->dialect->nest(&body);
    else
        write_rows(&body);
}

static void make_function(Emitter *e, const Kernel *kernel, const char *name) {
    Function f = {.kernel = kernel,
                  .name = name,
                  .comments = WRITER(e->arena),
                  .tables = WRITER(e->arena),
                  .declarations = WRITER(e->arena),
                  .lines = WRITER(e->arena)};
    e->locals = &f.locals;
    f.comments.at = f.tables.at = f.declarations.at = f.lines.at = kernel->nodes.at[0]->src;
    const int sums = e->sums.count;
    make_body(e, &f);
    f.sums = e->sums.count > sums;
    write_statements_of(e, kernel, &f.comments);
    if (kernel->cls == KERNEL_CALL)
        write_library_equations(e, kernel, &f.comments);
    else if (kernel->stages.count < 2)
        write_equations(e, kernel, &f.comments);
    if (e->dialect->declare)
        e->dialect->declare(e, kernel, &f.declarations);
    e->locals = NULL;
    VEC_PUSH(e->arena, &e->functions, f);
}

/* "count" is called count_kernel where a function cannot have that name. */
static const char *claim_function(Emitter *e, const char *wanted) {
    const char *name = names_claim(&e->globals, wanted);
    bool defined = e->dialect->defines_kernel(name);
    return defined ? names_claim(&e->globals, arena_printf(e->arena, "%s_kernel", wanted)) : name;
}

static void make_functions(Emitter *e, const Program *program) {
    bool step = program == e->programs[PROGRAM_TRAIN] || program->graph == e->module->update;
    for (int p = 0; p < program->phases.count; p++)
        for (int k = 0; k < program->phases.at[p].kernels.count; k++) {
            const Kernel *kernel = program->phases.at[p].kernels.at[k];
            const char *wanted = step ? kernel->name : arena_printf(e->arena, "%s_%s", program->prefix, kernel->name);
            make_function(e, kernel, claim_function(e, wanted));
        }
}

static void write_function(Emitter *e, const Function *f, Writer *out) {
    write_all(out, &f->comments);
    out->at = f->lines.at;
    e->dialect->function(e, f, out);
}

/* What is written already, for this program or one before, is not written again. */
static void write_kernels(Emitter *e, const Program *program, Writer *out) {
    bool first = true;
    for (int k = 0; k < e->functions.count; k++) {
        const Function *f = &e->functions.at[k];
        if (f->like != k || program_of(e, f->kernel) != program || (f->sized >= 0 && !f->general))
            continue;
        if (!first)
            write_blank(out);
        write_function(e, f, out);
        first = false;
    }
}

/* ---- sizes ---- */

static void name_reports(Emitter *e) {
    int count = module_report_columns(e->module);
    e->report = NEW_ARRAY(e->arena, const char *, count);
    for (int k = 0; k < count; k++)
        e->report[k] =
            names_claim_constant(&e->globals, arena_printf(e->arena, "report_%s", module_report(e->module, k)->name));
}

static void write_sizes(Emitter *e, Writer *out) {
    sizes_write(e->sizes, out);
    int count = module_report_columns(e->module);
    const char **names = NEW_ARRAY(e->arena, const char *, count + 1);
    for (int k = 0; k < count; k++)
        names[k] = e->report[k];
    names[count] = "REPORTS";
    write_enumeration(out, names, count + 1);
    if (e->module->shards)
        write_line(out, "enum { WHOLE_BATCH = %lld }; // of which BATCH are a shard",
                   (long long)e->module->whole_batch);
    write_numbers(e, out);
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
    e->dialect->phases(e, program, out);
    section(e, out);
}

static void write_step(Emitter *e, Writer *out) {
    write_rule(out, "training step");
    write_kernels(e, e->programs[PROGRAM_TRAIN], out);
    write_rule(out, "phases: one after the other; the kernels of a phase run at the same time");
    e->dialect->phases(e, e->programs[PROGRAM_TRAIN], out);
    write_rule(out, "the step");
    e->dialect->step(e, out);
}

static void write_within(const Emitter *e, const Writer *code, Writer *out) {
    if (e->dialect->opens)
        write_line(out, "\n%s", e->dialect->opens);
    write_all(out, code);
    if (e->dialect->closes)
        write_line(out, "\n%s", e->dialect->closes);
}

/* Sizes are known when everything that uses them has been written, kernels before what is above them. */
static void write_file(Emitter *e, Writer *out) {
    Writer tensors = WRITER(e->arena), step = WRITER(e->arena), evaluation = WRITER(e->arena),
           measuring = WRITER(e->arena), decoding = WRITER(e->arena), texts = WRITER(e->arena),
           prefilling = WRITER(e->arena), updating = WRITER(e->arena), watching = WRITER(e->arena),
           code = WRITER(e->arena);
    for (int p = 0; p < e->plan->program_count; p++)
        make_functions(e, e->programs[p]);
    find_repeats(e);
    if (!e->options->predicts)
        write_step(e, &step);
    write_program(e, e->programs[PROGRAM_EVAL], "evaluation", e->dialect->evaluation, &evaluation);
    if (e->module->measure)
        write_program(e, plan_program(e->plan, e->module->measure),
                      "measuring: mean and deviation of the fields that are normalized", e->dialect->measuring,
                      &measuring);
    if (e->module->decode)
        write_program(e, plan_program(e->plan, e->module->decode), "decoding: the scores of the token after a position",
                      e->dialect->decoding, &decoding);
    if (e->module->texts)
        write_program(e, plan_program(e->plan, e->module->texts), "decoding several texts at a position",
                      e->dialect->texts, &texts);
    if (e->module->prefill)
        write_program(e, plan_program(e->plan, e->module->prefill),
                      "prefill: what a prompt leaves for the tokens behind it", e->dialect->prefilling, &prefilling);
    if (e->module->update)
        write_program(e, plan_program(e->plan, e->module->update),
                      "the update: sums over the shards of a batch become weights", e->dialect->updating, &updating);
    if (e->module->watch)
        write_program(e, plan_program(e->plan, e->module->watch),
                      e->module->quantized.count ? "watching: what weights are multiplied with, in floats"
                                                 : "watching: what print(x) shows of the next step",
                      e->dialect->watching, &watching);
    write_rule(&tensors, "tensors: where each lies in the arena; values share bytes by turns");
    e->dialect->tensors(e, &tensors);
    write_all(&code, &tensors);
    write_all(&code, &step);
    write_all(&code, &updating);
    write_all(&code, &evaluation);
    write_all(&code, &measuring);
    write_all(&code, &decoding);
    write_all(&code, &texts);
    write_all(&code, &prefilling);
    write_all(&code, &watching);

    write_banner(e, out);
    write_blank(out);
    e->dialect->includes(e, out);
    if (e->options->predicts)
        write_line(out, "#include \"embed/net_model.h\"");
    write_rule(out, "sizes");
    write_sizes(e, out);
    write_within(e, &code, out);
    write_rule(out, "tables for the runtime");
    (e->options->predicts ? write_net_tables : write_tables)(e, out);
    if (!e->options->shared)
        write_main(e, out);
}

/* Others' programs are free to have kernels of these names. */
static void claim_words_of_shards(Emitter *e) {
    static const char *const words[] = {"update_kernel",      "update_ends",     "update",
                                        "update_phases",      "UPDATE_PHASES",   "Update",
                                        "train_shard",        "train_between",   "exchange_table",
                                        "bucket_table",       "launch_between",  "WHOLE_BATCH",
                                        "add_sums",           "shard_schedule",  "update_schedule",
                                        "add_reals",          "shard_share",     "examples_of_shards_before",
                                        "shard_launches",     "update_launches", "replay_shard",
                                        "replay_update",      "among",           "train_among",
                                        "whole_batches",      "train_whole",     "follows_a_shard",
                                        "add_sums_over_peers"};
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        names_claim(&e->globals, words[k]);
}

static void claim_words_of_parts(Emitter *e) {
    static const char *const words[] = {"own_first", "own_end", "own_states"}, *const members[] = {"part_begin",
                                                                                                   "part_end"};
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        names_claim(&e->globals, words[k]);
    for (size_t k = 0; k < sizeof members / sizeof *members; k++)
        names_claim(&e->members, members[k]);
}

static void claim_words_of_watch(Emitter *e) {
    static const char *const words[] = {"watch", "watch_phases", "watch_kernel", "watch_ends", "Watch",
                                        "WATCH", "WATCH_PHASES", "WATCH_SHARED", "print_table"};
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        names_claim(&e->globals, words[k]);
}

static void claim_words_of_prefill(Emitter *e) {
    static const char *const words[] = {"prefill", "prefill_phases", "prefill_kernel", "prefill_ends",
                                        "Prefill", "PREFILL",        "PREFILL_PHASES", "PREFILL_SHARED"};
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        names_claim(&e->globals, words[k]);
}

static void claim_words_of_texts(Emitter *e) {
    static const char *const words[] = {"texts",        "texts_phases", "texts_kernel", "texts_ends",
                                        "Texts",        "TEXTS",        "TEXTS_PHASES", "TEXTS_SHARED",
                                        "decode_texts", "draw_texts",   "texts_graphs", "cache_table"};
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        names_claim(&e->globals, words[k]);
}

/* In C++ a member of a type's name would hide it from the members behind. */
static void take_types(Emitter *e) {
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++)
        names_take(&e->members, dtype_info[dtype].c_name);
}

Emission *emit(const Module *module, const Plan *plan, const EmitOptions *options, const Dialect *dialect) {
    Arena *arena = module->arena;
    Emitter e = {.arena = arena,
                 .module = module,
                 .plan = plan,
                 .programs = plan->programs,
                 .options = options,
                 .dialect = dialect,
                 .globals = {.arena = arena},
                 .members = {.arena = arena}};
    take_types(&e);
    if (module->shards)
        claim_words_of_shards(&e);
    if (plan->flat.bytes)
        claim_words_of_parts(&e);
    if (module->watch)
        claim_words_of_watch(&e);
    if (module->texts)
        claim_words_of_texts(&e);
    if (module->prefill)
        claim_words_of_prefill(&e);
    if (module->quantized.count)
        names_claim(&e.globals, "quantized_table");
    e.said = NEW(arena, NodesSaid);
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
