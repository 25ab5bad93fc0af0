/* mtc: from the text of a model to a program that trains it. `compile` and `generate` below are the way of the data. */
#include "commands.h"
#include "embed.h"
#include "emit/build/driver.h"
#include "emit/build/standalone.h"
#include "explain.h"
#include "front/front.h"
#include "front/habits.h"
#include "onnx/network.h"
#include "op/reference.h"
#include "options.h"
#include "pass/abreast.h"
#include "pass/copies.h"
#include "pass/decode.h"
#include "pass/float8.h"
#include "pass/layout.h"
#include "pass/precision.h"
#include "pass/predict.h"
#include "pass/quantize.h"
#include "pass/rematerialize.h"
#include "pass/simplify.h"
#include "pass/split.h"
#include "pass/tf32.h"
#include "pass/token.h"
#include "pass/update.h"
#include "plan/plan.h"
#include "runtime/base/common.h"
#include "runtime/base/ending.h"
#include "runtime/base/file.h"
#include "scaling.h"
#include "summary.h"
#include "support/file.h"
#include "support/process.h"
#include "support/sha256.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const Span nowhere = {0};

typedef struct Compilation {
    Arena *arena;
    Diag *diag;
    const Options *options;
    const char *embedded, *embedded_hash; /* the weights that a library carries: path, hash */
    InputFiles inputs;                    /* what is read: not to be overwritten */
    Network network;                      /* that the program exports */
    Text out;                             /* what is printed instead of making a program */
    double stage_start;
} Compilation;

/* ---- stages ---- */

static void stage_ended(Compilation *c, const char *stage) {
    double now = mtc_seconds();
    if (c->options->verbose)
        fprintf(stderr, "mtc: %-9s %7.2f ms\n", stage, 1e3 * (now - c->stage_start));
    c->stage_start = now;
}

/* A stage has ended. Is its result what the user wants to see? */
static bool wanted(Compilation *c, const char *stage, Emit emit) {
    stage_ended(c, stage);
    return (Emit)c->options->emit == emit;
}

static int print_graphs(Compilation *c, const Module *module) {
    Graph *graphs[MAX_GRAPHS];
    for (int i = 0, count = module_graphs(module, graphs); i < count; i++)
        graph_print(graphs[i], &c->out);
    return EXIT_SUCCESS;
}

static int print_programs(Compilation *c, void (*print)(const Program *, Text *), const Programs *programs) {
    for (int i = 0; i < programs->count; i++)
        print(programs->at[i], &c->out);
    return EXIT_SUCCESS;
}

static void simplify_graphs(const Module *module) {
    Graph *graphs[MAX_GRAPHS];
    for (int i = 0, count = module_graphs(module, graphs); i < count; i++) {
        simplify(graphs[i]);
        round_operands(graphs[i], precision_dtype(module->precision));
    }
    if (module->precision == PRECISION_FP8)
        multiply_in_8_bits(module);
}

static void split_graphs(const Module *module, const Machine *machine) {
    Graph *graphs[MAX_GRAPHS];
    for (int i = 0, count = module_graphs(module, graphs); i < count; i++) {
        split_sums(graphs[i], machine);
        round_where_made(graphs[i], machine);
    }
}

static Programs fuse_graphs(const Module *module, const Machine *machine) {
    Graph *graphs[MAX_GRAPHS];
    Programs programs = {.count = module_graphs(module, graphs)};
    for (int i = 0; i < programs.count; i++)
        programs.at[i] = fuse(graphs[i], machine);
    return programs;
}

static bool schedule_programs(const Programs *programs, Schedule wanted) {
    bool fit = true;
    for (int i = 0; i < programs->count; i++) {
        schedule(programs->at[i], wanted);
        program_verify(programs->at[i]);
        fit = fit && program_fits(programs->at[i]);
    }
    return fit;
}

/* The backward pass computes again what it would have kept. Returns the plan as it was to be. */
static Plan *recompute(const Compilation *c, Module *module, Programs kept) {
    schedule_programs(&kept, c->options->schedule);
    Plan *plan = plan_memory(module, &kept, c->options->real == REAL_F64 ? 8 : 4);
    rematerialize(module->train, kept.at[PROGRAM_TRAIN]);
    module_verify(module, "rematerialize");
    return plan;
}

/* ---- the model ---- */

static bool lower(Compilation *c, Ast *ast, Lowered *model) {
    const Options *o = c->options;
    bool exact = o->real == REAL_F64 || o->gradcheck; /* gradients are checked in the precision of their differences */
    Precision asked = exact ? PRECISION_FP32 : (Precision)(o->precision - 1);
    FrontOptions front = {.settings = o->settings.at,
                          .setting_count = o->settings.count,
                          .precision = exact || o->precision ? &asked : NULL,
                          .recompute = o->recompute || o->no_recompute ? &o->recompute : NULL,
                          .batch = o->batch,
                          .shards = o->emit == EMIT_SCALING && !o->shards ? 1 : o->shards,
                          .parts_states = o->shard_optimizer};
    return front_check(c->diag, ast) && front_lower(c->diag, ast, &front, model);
}

/* Names what is trained: what the text says, with everything it includes, and what flags of mtc decided instead: params
 * that shapes depend on, and the batch. */
static const char *model_hash(Compilation *c, const Ast *ast, const Module *module) {
    Sha256 hash;
    Text tree = TEXT(c->arena);
    sha256_begin(&hash);
    front_print_plain(ast, &tree);
    sha256_add(&hash, tree.at, tree.length);
    for (int i = 0; i < module->knobs.count; i++)
        if (module->knobs.at[i].fixed)
            sha256_add_string(&hash,
                              arena_printf(c->arena, "%s=%.17g", module->knobs.at[i].name, module->knobs.at[i].value));
    if (module->batch_replaced)
        sha256_add_string(&hash, arena_printf(c->arena, "batch=%lld", (long long)module_examples(module)));
    return sha256_hex(&hash, c->arena);
}

/* ---- the target ---- */

/* Flags that only programs for GPUs have ask for one, GPU or not. */
static bool asks_for_gpu(const Options *o) {
    return o->arch || o->schedule != SCHEDULE_AUTO;
}

/* Something of the compilation is shown, and no program made. */
static bool prints(const Options *o) {
    return o->emit != EMIT_PROGRAM || o->summary || o->explain;
}

static const Target *first_of(bool gpu) {
    int i = 0;
    while (targets[i].gpu != gpu)
        i++;
    return &targets[i];
}

/* The first whose programs can run here: one is made to be run. */
static const Target *first_at_hand(Compilation *c) {
    const char *lacks;
    int i = 0;
    for (; (lacks = targets[i].compiler->lacks(c->arena)) && i + 1 < TARGETS; i++)
        diag_note(c->diag, nowhere, "%s", lacks);
    return &targets[i];
}

/* Dumps and summaries are of the first target wherever they are made, so that they are the same everywhere. */
static const Target *choose_target(Compilation *c) {
    const Options *o = c->options;
    const Target *asked = options_target(o);
    if (asked)
        return asked;
    if (o->predict_only)
        return first_of(false);
    if (asks_for_gpu(o))
        return first_of(true);
    return prints(o) ? &targets[0] : first_at_hand(c);
}

static Emission *emit_source(Compilation *c, const Ast *ast, const Plan *plan, const Target *target,
                             const char *architectures) {
    const Module *module = plan->programs[PROGRAM_TRAIN]->graph->module;
    EmitOptions options = {.f64 = c->options->real == REAL_F64,
                           .stores_gradients = c->options->gradcheck,
                           .shared = c->options->shared,
                           .predicts = c->options->predict_only,
                           .weights = c->embedded,
                           .weights_hash = c->embedded_hash,
                           .architectures = architectures,
                           .model_hash = model_hash(c, ast, module),
                           .command = options_command(c->options, c->arena)};
    options.settings = options_settings(c->options, c->arena, &options.setting);
    return emit(module, plan, &options, target->dialect);
}

static int print_source(Compilation *c, Emission *source, const Target *target) {
    if (c->options->standalone) {
        const char *home = toolchain_home(c->diag);
        source = home ? standalone(c->diag, home, target, source) : NULL;
    }
    if (!source)
        return EXIT_NO_INPUT;
    text_append(&c->out, source->text, source->length);
    return EXIT_SUCCESS;
}

static int build(Compilation *c, const Toolchain *tools, const Module *module, const Emission *source) {
    const Options *o = c->options;
    const char *output = o->output   ? o->output
                         : o->shared ? arena_printf(c->arena, "%s.so", module->name)
                                     : module->name;
    if (!output_allowed(c->diag, output, OUTPUT_PROGRAM, &c->inputs))
        return EXIT_CANT_CREATE;
    if (promises_else(c->diag, output, o->shared ? ".so" : "",
                      o->shared ? "a shared library (.so)" : "a program, whose name needs no ending",
                      "--emit prints sources"))
        return EXIT_USAGE;
    Build job = {.name = module->name,
                 .output = output,
                 .keep = o->keep,
                 .place = o->input[0] == '/' ? path_folder(c->arena, o->input) : NULL,
                 .network = c->network.bytes,
                 .network_size = c->network.size,
                 .no_network = network_refusal(c->arena, &c->network),
                 .jobs = o->jobs,
                 .shared = o->shared,
                 .predicts = o->predict_only,
                 .standalone = o->standalone,
                 .cached = !o->no_cache,
                 .verbose = o->verbose};
    return driver_build(c->diag, tools, &job, source);
}

/* ---- the way of the data ---- */

static int compile(Compilation *c);

/* The model once more, since what is computed again would not have waited in memory at the worst moment. */
static int without_recompute(Compilation *c) {
    const Options *asked = c->options;
    Options options = *asked;
    options.recompute = false;
    options.no_recompute = true;
    c->options = &options;
    diag_note(c->diag, nowhere, "recompute would not make the arena smaller: it is left out");
    int status = compile(c);
    c->options = asked;
    return status;
}

/* Asked before tiles are cut, for what multiplies, and after it, for the memory of tiles. */
static bool suffices(Compilation *c, const Target *target, const Aim *aim, const Programs *programs) {
    return !target->compiler->suffices || target->compiler->suffices(c->diag, aim, programs);
}

static int print_scaling(Compilation *c, const Plan *plan) {
    Links links;
    if (!links_parse(c->diag, c->options->link, &links))
        return EXIT_USAGE;
    scaling_print(plan, &links, &c->out);
    return EXIT_SUCCESS;
}

/* Graphs to program. */
static int generate(Compilation *c, const Ast *ast, Module *module) {
    const Options *o = c->options;
    const Target *target = choose_target(c);
    const Aim aim = target->compiler->aim(c->diag, o->arch, !prints(o));
    if (!aim.machine)
        return EXIT_TOOL;
    round_beside_integers(module, aim.machine);
    multiply_rows(module->decode, aim.machine);
    copy_weights(module->decode, aim.machine);
    copy_weights(module->texts, aim.machine);
    split_graphs(module, aim.machine);
    module_verify(module, "split");
    if (wanted(c, "split", EMIT_SPLIT))
        return print_graphs(c, module);

    Programs programs = fuse_graphs(module, aim.machine);
    if (!suffices(c, target, &aim, &programs))
        return EXIT_TOOL;
    Plan *kept = module->recompute ? recompute(c, module, programs) : NULL;
    programs = kept ? fuse_graphs(module, aim.machine) : programs;
    if (wanted(c, "fuse", EMIT_FUSED))
        return print_programs(c, fused_print, &programs);

    if (!schedule_programs(&programs, o->schedule))
        return EXIT_MODEL;
    if (!suffices(c, target, &aim, &programs))
        return EXIT_TOOL;
    if (wanted(c, "schedule", EMIT_SCHEDULE))
        return print_programs(c, schedule_print, &programs);

    Plan *plan = plan_memory(module, &programs, o->real == REAL_F64 ? 8 : 4);
    plan_verify(plan);
    plan->kept = kept;
    if (kept && plan->arena_bytes >= kept->arena_bytes)
        return without_recompute(c);
    if (wanted(c, "plan", EMIT_PLAN))
        return plan_print(plan, &c->out), EXIT_SUCCESS;
    if (o->emit == EMIT_PLAN_SVG)
        return plan_svg(plan, &c->out), EXIT_SUCCESS;
    if (o->emit == EMIT_SCALING)
        return print_scaling(c, plan);
    if (o->summary)
        return summary_print(plan, &c->out), EXIT_SUCCESS;
    if (o->explain)
        return explain_print(plan, target->name, o->explained, &c->out) ? EXIT_SUCCESS : EXIT_USAGE;
    if (o->emit != EMIT_PROGRAM)
        return print_source(c, emit_source(c, ast, plan, target, ""), target);

    Toolchain tools;
    if (!toolchain_find(&tools, c->diag, target, aim.architectures, &programs))
        return EXIT_TOOL;
    stage_ended(c, "toolchain");
    Emission *source = emit_source(c, ast, plan, target, o->standalone ? "" : tools.architectures);
    stage_ended(c, "emit");
    return build(c, &tools, module, source);
}

static void layout_graphs(Lowered *model) {
    Training *training = &model->training;
    layout(model->module->train);
    products_abreast(model->module->train);
    model->train_loss = after_layout(model->train_loss);
    for (int i = 0; i < training->optimizer_count; i++)
        training->losses[i] = after_layout(training->losses[i]);
    training->weights = after_layout(training->weights);
    layout(model->module->eval);
    products_abreast(model->module->eval);
    if (model->module->watch)
        layout(model->module->watch);
}

/* A file of another language would be one mistake after the other. */
static bool may_be_model(Compilation *c) {
    const char *input = c->options->input, *promised = mtc_promised(input, ".mt, .txt, .md");
    if (promised && file_exists(input))
        diag_error(c->diag, nowhere, "'%s' is no model: the name promises %s, and a model is a text, NAME.mt", input,
                   promised);
    return !promised || !file_exists(input);
}

static int print_network(Compilation *c) {
    const Network *network = &c->network;
    if (!network->bytes)
        return diag_error(c->diag, network->at, "this is no network of ONNX: %s", network->refusal), EXIT_MODEL;
    text_append(&c->out, (const char *)network->bytes, network->size);
    return EXIT_SUCCESS;
}

/* The prediction alone is left, and its weights are at hand where they are asked for. */
static bool predict_only(Compilation *c, Module *module) {
    const Options *o = c->options;
    if (!keep_prediction(module)) {
        diag_error(c->diag, nowhere, "'%s' predicts nothing: --predict-only has nothing to keep", o->input);
        return false;
    }
    if (o->embed)
        c->embedded = embed_weights(c->diag, module, o->embed, o->keep, &c->embedded_hash);
    return !o->embed || c->embedded;
}

/* From graphs on. */
static int go_through_passes(Compilation *c, const Ast *ast, Lowered *model) {
    Module *module = model->module;
    const bool trains = module->precision != PRECISION_INT8;
    if (!trains && !quantize_products(module))
        return EXIT_MODEL;
    add_decoding(module, c->options->decode_batch);
    if (c->options->decode_batch && !module->texts) {
        diag_error(c->diag, nowhere, "--decode-batch is of models that generate text, which '%s' does not",
                   c->options->input);
        return EXIT_USAGE;
    }
    module_verify(module, "lower");
    if (wanted(c, "lower", EMIT_GRAPH))
        return print_graphs(c, module);

    if (c->options->emit == EMIT_ONNX || c->options->emit == EMIT_PROGRAM)
        c->network = network_of(module);
    if (wanted(c, "network", EMIT_ONNX))
        return print_network(c);

    layout_graphs(model);
    graph_compact(module->eval);
    if (module->watch)
        graph_compact(module->watch);
    stage_ended(c, "layout");

    bool gradients = c->options->gradcheck;
    if (trains && !(gradients ? add_gradients(module, model->train_loss)
                              : add_updates(module, model->train_loss, &model->training)))
        return EXIT_MODEL;
    module_verify(module, "autodiff");
    if (c->options->predict_only && !predict_only(c, module))
        return EXIT_MODEL;
    if (wanted(c, "autodiff", EMIT_GRAD))
        return print_graphs(c, module);

    simplify_graphs(module);
    module_verify(module, "simplify");
    if (wanted(c, "simplify", EMIT_SIMPLE))
        return print_graphs(c, module);
    return generate(c, ast, module);
}

/* Text to graphs, and on. */
static int compile(Compilation *c) {
    if (!may_be_model(c))
        return EXIT_MODEL;
    Ast *ast = front_parse(c->diag, c->arena, c->options->input);
    if (!ast)
        return file_exists(c->options->input) ? EXIT_MODEL : EXIT_NO_INPUT;
    front_inputs(ast, &c->inputs);
    if (wanted(c, "parse", EMIT_AST))
        return front_print(ast, &c->out), EXIT_SUCCESS;

    Lowered model;
    jmp_buf given_up;
    if (!lower(c, ast, &model))
        return EXIT_MODEL;
    model.module->given_up = &given_up;
    return setjmp(given_up) ? EXIT_MODEL : go_through_passes(c, ast, &model);
}

/* ---- printing ---- */

static int cannot_write(Compilation *c, const char *path) {
    diag_error(c->diag, nowhere, "cannot write '%s': %s", path, file_why(path));
    return EXIT_CANT_CREATE;
}

/* Of the files that a stage may be written to. */
static const char *stage_endings(const Compilation *c) {
    const int emit = c->options->emit;
    return emit == EMIT_PLAN_SVG ? ".svg"
           : emit == EMIT_ONNX   ? ".onnx"
           : emit >= EMIT_SOURCE ? arena_printf(c->arena, ".%s and .txt", targets[emit - EMIT_SOURCE].ending)
                                 : ".txt";
}

static int put(Compilation *c) {
    const Options *o = c->options;
    const char *text = text_string(&c->out);
    if (!c->out.length)
        return EXIT_SUCCESS;
    if (o->output) {
        bool may = output_allowed(c->diag, o->output, o->emit == EMIT_ONNX ? OUTPUT_NETWORK : OUTPUT_TEXT, &c->inputs);
        const char *endings = stage_endings(c);
        if (may && promises_else(c->diag, o->output, endings, endings, NULL))
            return EXIT_USAGE;
        return !may                                         ? EXIT_CANT_CREATE
               : file_write(o->output, text, c->out.length) ? EXIT_SUCCESS
                                                            : cannot_write(c, o->output);
    }
    bool written = fwrite(text, 1, c->out.length, stdout) == c->out.length && fflush(stdout) == 0;
    return written ? EXIT_SUCCESS : cannot_write(c, "standard output");
}

static int format(Compilation *c) {
    const Options *o = c->options;
    size_t size;
    if (!may_be_model(c))
        return EXIT_MODEL;
    if (!front_format(c->diag, c->arena, o->input, &c->out))
        return file_exists(o->input) ? EXIT_MODEL : EXIT_NO_INPUT;
    if (!o->check && !o->in_place)
        return put(c);
    const char *before = file_read(c->arena, o->input, &size, NULL);
    bool same = before && size == c->out.length && memcmp(before, c->out.at, size) == 0;
    if (o->check && !same)
        diag_error(c->diag, nowhere, "'%s' is not formatted; 'mtc --format -i %s' does it", o->input, o->input);
    if (o->check || same)
        return same ? EXIT_SUCCESS : EXIT_FAILURE;
    const InputFiles none = {0}; /* what is read is to be written */
    return !output_allowed(c->diag, o->input, OUTPUT_TEXT, &none) ? EXIT_CANT_CREATE
           : file_write(o->input, c->out.at, c->out.length)       ? EXIT_SUCCESS
                                                                  : cannot_write(c, o->input);
}

static int run_gradcheck(Compilation *c, const char *program) {
    VEC(const char *) command = {0};
    VEC_PUSH(c->arena, &command, "mtc gradcheck"); /* in its messages */
    VEC_PUSH(c->arena, &command, "gradcheck");
    for (int i = 0; i < c->options->program_flags.count; i++)
        VEC_PUSH(c->arena, &command, c->options->program_flags.at[i]);
    VEC_PUSH(c->arena, &command, NULL);
    return process_pass(program, command.at);
}

/* Makes the program that stores gradients in a folder of its own, and runs it. */
static int gradcheck(Compilation *c) {
    const char *folder = folder_temporary(c->arena);
    if (!folder)
        return cannot_write(c, "a temporary folder");
    const Options *asked = c->options;
    Options options = *asked;
    options.output = path_in(c->arena, folder, "gradcheck");
    options.keep = folder;
    c->options = &options;
    int status = compile(c);
    bool names_file = status == EXIT_TOOL; /* the message of a compiler that failed names a file there */
    if (status == EXIT_SUCCESS)
        status = run_gradcheck(c, options.output);
    c->options = asked;
    if (!names_file)
        folder_remove(c->arena, folder);
    return status;
}

static void add_input(Compilation *c, const char *path) {
    VEC_PUSH(c->arena, &c->inputs, ((InputFile){path, "it is the input"}));
}

static int run(Compilation *c) {
    const Options *o = c->options;
    if (o->input)
        add_input(c, o->input);
    if (o->tokenizer)
        add_input(c, o->tokenizer);
    if (o->embed)
        add_input(c, o->embed);
    if (o->rename)
        add_input(c, o->rename);
    for (int i = 0; i < o->files.count; i++)
        add_input(c, o->files.at[i]);
    if (o->help)
        options_help(o, &c->out);
    else if (o->plot)
        return draw_curves(c->diag, o, &c->inputs);
    else if (o->tokens)
        return make_tokens(c->diag, o, &c->inputs);
    else if (o->weights)
        return convert_weights(c->diag, o, &c->inputs);
    else if (o->import)
        return import_model(c->diag, o);
    else if (o->gradcheck)
        return gradcheck(c);
    else if (o->version)
        text_puts(&c->out, "mtc " MTC_VERSION "\n");
    else if (o->list_options)
        options_list(&c->out);
    else if (o->operators && o->json)
        reference_json(&c->out, habit_calls());
    else if (o->operators)
        reference_print(&c->out);
    else if (o->format)
        return format(c);
    else {
        int status = compile(c);
        return status ? status : put(c);
    }
    return put(c);
}

int main(int argc, char **argv) {
    mtc_hold_standard_files();
    signal(SIGXFSZ,
           SIG_IGN); /* a file that may not grow is a fault of writing it, here and in the compilers that are called */
    Arena *arena = arena_new();
    Diag *diag = diag_new(arena);
    Options options;
    int status = options_parse(&options, diag, argc, argv);
    Compilation c = {
        .arena = arena, .diag = diag, .options = &options, .out = TEXT(arena), .stage_start = mtc_seconds()};
    if (status == EXIT_SUCCESS)
        status = run(&c);
    diag_finish(diag);
    arena_free(arena);
    return status;
}
