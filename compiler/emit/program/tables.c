/* Tables for the runtime. */
#include "emit/kernel/function.h"
#include "emit/kernel/table.h"
#include "emit/program/program.h"
#include "support/file.h"

/* A row of two members. */
static void add_note(Emitter *e, Notes *notes, const char *a, const char *b, const char *about) {
    VEC_PUSH(e->arena, notes, ((Note){arena_printf(e->arena, "{%s, %s},", a, b), about}));
}

/* ---- tables ---- */

const Node *output_of(const Program *program) {
    const Graph *g = program->graph;
    for (int k = 0; k < g->roots.count; k++)
        if (g->roots.at[k]->inputs == 1 && g->roots.at[k]->op->table == TABLE_NONE)
            return g->roots.at[k]->in[0];
    return NULL;
}

const Node *prediction(const Emitter *e) {
    return output_of(e->programs[PROGRAM_EVAL]);
}

/* What the range of a param leaves to be refused for where it is given. */
static bool bound_further(const Knob *knob) {
    return knob->bound && !(knob->has_range && knob->low >= knob->least && knob->high <= knob->most);
}

static bool is_evaluated(const Module *module, int knob) {
    const Graph *eval = module->eval;
    bool found = false;
    for (int i = 0; i < eval->nodes.count && !found; i++)
        found = eval->nodes.at[i]->op->table == TABLE_KNOB && eval->nodes.at[i]->attr.index == knob;
    return found;
}

static int write_knobs(Emitter *e, Writer *out) {
    int count = 0;
    for (int k = 0; k < e->module->knobs.count; k++) {
        const Knob *knob = &e->module->knobs.at[k];
        if (knob->fixed)
            continue;
        if (count++ == 0)
            write_open(out, "static const MtcKnob knob_table[] = {");
        Arena *arena = e->arena;
        const char *items[] = {is(arena, "name", quoted(arena, knob->name)),
                               is(arena, "help", quoted(arena, knob->help)),
                               is(arena, "value", number(arena, knob->value)),
                               is(arena, "integer", knob->integer ? "true" : "false"),
                               is(arena, "has_range", knob->has_range ? "true" : "false"),
                               is(arena, "low", number(arena, knob->low)),
                               is(arena, "high", number(arena, knob->high)),
                               is(arena, "bound", quoted(arena, knob->bound)),
                               is(arena, "least", number(arena, knob->least)),
                               is(arena, "most", number(arena, knob->most)),
                               NULL};
        enum { ITEMS = sizeof items / sizeof *items - 1, OF_BOUND = 3 };
        int said = bound_further(knob) ? ITEMS : ITEMS - OF_BOUND;
        if (is_evaluated(e->module, k))
            items[said++] = is(arena, "evaluated", "true");
        write_row(out, items, said);
    }
    if (count)
        write_close(out, "};");
    return count;
}

static int write_fixed(Emitter *e, Writer *out) {
    Notes notes = {0};
    for (int k = 0; k < e->module->knobs.count; k++) {
        const Knob *knob = &e->module->knobs.at[k];
        const char *name = quoted(e->arena, knob->name), *value = number(e->arena, knob->value);
        if (knob->fixed)
            add_note(e, &notes, is(e->arena, "name", name), is(e->arena, "value", value),
                     knob->help ? knob->help : "fixed when compiling");
    }
    if (notes.count)
        write_notes(out, "static const MtcFixed fixed_table[]", &notes);
    return notes.count;
}

/* What mtc was told beside the model. */
static int write_settings(Emitter *e, Writer *out) {
    int count = e->options->settings;
    const char **settings = NEW_ARRAY(e->arena, const char *, count);
    for (int k = 0; k < count; k++)
        settings[k] = quoted(e->arena, e->options->setting[k]);
    if (count)
        write_list(out, "static const char *const setting_table[] = {", settings, count, "};");
    return count;
}

static void write_reports(Emitter *e, Writer *out) {
    const char **names = NEW_ARRAY(e->arena, const char *, e->module->reports.count);
    for (int k = 0; k < e->module->reports.count; k++)
        names[k] = quoted(e->arena, e->module->reports.at[k].name);
    write_list(out, "static const char *const report_table[] = {", names, e->module->reports.count, "};");
    for (int k = 0; k < e->module->reports.count; k++)
        names[k] = e->module->reports.at[k].rises ? "true" : "false";
    write_list(out, "static const bool rises_table[] = {", names, e->module->reports.count, "};");
}

/* Sums that 64 bits hold as whole numbers go on evenly from layer to layer. */
static void add_sum(Emitter *e, double sum, RowTable *table) {
    const double most = 9007199254740992.0; /* 2^53: above, not all of them are doubles */
    if (sum >= 0 && sum < most && sum == (double)(int64_t)sum)
        table_number(table, NULL, (int64_t)sum);
    else
        table_text(table, NULL, number(e->arena, sum));
}

/* Kernels are many and alike: one fits into a line, its members in the order of MtcKernel. Those that follow it are part of it. */
static void add_kernel_row(Emitter *e, const Program *program, const Kernel *kernel, RowTable *table) {
    const Phase *phase = &program->phases.at[kernel->phase];
    double flops = kernel->flops, bytes = kernel->bytes;
    for (int k = 0; k < phase->kernels.count; k++) {
        flops += phase->kernels.at[k]->leader == kernel ? phase->kernels.at[k]->flops : 0;
        bytes += phase->kernels.at[k]->leader == kernel ? phase->kernels.at[k]->bytes : 0;
    }
    table_row(table, NULL);
    table_name(table, NULL, kernel->name);
    table_number(table, NULL, row_of_statement(e, source_of_kernel(kernel)));
    table_number(table, NULL, kernel->phase);
    table_text(table, NULL, arena_printf(e->arena, "MTC_MATH_%s", math_info[kernel->math].symbol));
    add_sum(e, flops, table);
    add_sum(e, bytes, table);
}

static KernelsInOrder kernels_in_order(Emitter *e, const Program *program) {
    KernelsInOrder all = {0};
    if (e->dialect->kernels)
        e->dialect->kernels(e, program, &all);
    for (int p = 0; p < program->phases.count && !e->dialect->kernels; p++)
        for (int k = 0; k < program->phases.at[p].kernels.count; k++)
            VEC_PUSH(e->arena, &all, program->phases.at[p].kernels.at[k]);
    return all;
}

static void write_kernel_table(Emitter *e, Writer *out) {
    const Program *train = e->programs[PROGRAM_TRAIN];
    const KernelsInOrder kernels = kernels_in_order(e, train);
    RowTable table = {.arena = e->arena};
    for (int k = 0; k < kernels.count; k++)
        add_kernel_row(e, train, kernels.at[k], &table);
    write_line(out, "// name; statement; phase, from 0 on; what its arithmetic is in, how much of it; bytes, if every "
                    "buffer is touched once");
    write_table(&table, "static const MtcKernel kernel_table[]", out);
}

/* ---- the model ---- */

static void write_prediction(Emitter *e, Writer *out) {
    const Node *n = prediction(e);
    if (!n)
        return;
    write_line(out, ".prediction_offset = %lld,", (long long)plan_buffer(e->plan, n)->offset);
    write_line(out, ".prediction_rank = %d,", n->type.rank - 1);
    write_line(out, ".prediction_dim = %s,", dims(e->arena, &n->type, 1));
    write_line(out, ".prediction_is_classes = %s,", e->module->prediction_is_classes ? "true" : "false");
    if (e->module->prediction_is_yes)
        write_line(out, ".prediction_is_yes = true,");
}

typedef struct Counts {
    int tensors, knobs, fixed, settings;
} Counts;

static const char *table_of(int count, const char *name) {
    return count ? name : "NULL";
}

/* "text" as literals that fit into lines, cut behind spaces. */
static void write_literal(Emitter *e, const char *text, const char *member, const char *tail, Writer *out) {
    int indent = (int)strlen(member);
    size_t room = (size_t)(LONGEST_LINE - 4 * out->indent - indent);
    const char *literal = quoted(e->arena, text);
    while (strlen(literal) + strlen(tail) > room) {
        size_t end = room - 1;
        while (end > 1 && literal[end - 1] != ' ')
            end--;
        if (end <= 1)
            break;
        write_line(out, "%*s%.*s\"", indent, member, (int)end, literal);
        literal = arena_printf(e->arena, "\"%s", literal + end);
        member = "";
    }
    write_line(out, "%*s%s%s", indent, member, literal, tail);
}

/* What the train block says, a setting on each line. */
static void write_training(Emitter *e, Writer *out) {
    static const char member[] = ".training = ";
    const char *text = e->module->training, *end, *before = member;
    for (const char *line = text; *line; line = end, before = "            ") {
        end = line + strcspn(line, "\n");
        end += *end == '\n';
        write_literal(e, arena_strndup(e->arena, line, (size_t)(end - line)), before, *end ? "" : ",", out);
    }
}

/* All shards of the batch, and their update. */
static double flops_of_step(const Emitter *e) {
    const Module *module = e->module;
    const double train = program_flops(e->programs[PROGRAM_TRAIN]);
    return module->shards ? train * module->shards + program_flops(plan_program(e->plan, module->update)) : train;
}

static void write_what(Emitter *e, Writer *out) {
    const Module *module = e->module;
    const Program *train = e->programs[PROGRAM_TRAIN];
    bool persistent = train->schedule == SCHEDULE_PERSISTENT;
    write_line(out, ".abi = MTC_ABI,");
    write_line(out, ".name = %s,", quoted(e->arena, module->name));
    write_line(out, ".source = %s,", quoted(e->arena, source_path(module)));
    write_line(out, ".target = \"%s\",", e->dialect->name);
    write_line(out, ".architectures = \"%s\",", e->options->architectures);
    write_line(out, ".schedule = \"%s\",", !e->dialect->schedules ? "openmp" : persistent ? "persistent" : "graph");
    write_line(out, ".model_hash = \"%s\",", e->options->model_hash);
    write_training(e, out);
    write_line(out, ".batch = BATCH,");
    write_line(out, ".epochs = %d,", module->epochs);
    write_line(out, ".seed = %lluu,", (unsigned long long)module->seed);
    write_line(out, ".parameters = %lld,", (long long)module_parameters(module));
    write_line(out, ".flops_per_step = %s,", number(e->arena, flops_of_step(e)));
    write_line(out, ".arena_bytes = %lld,", (long long)e->plan->arena_bytes);
    write_line(out, ".unshared_bytes = %lld,", (long long)e->plan->unshared_bytes);
    write_line(out, ".train_phases = %d,", train->phases.count);
    if (e->options->stores_gradients)
        write_line(out, ".stores_gradients = true,");
    write_line(out, ".eval_phases = %d,", e->programs[PROGRAM_EVAL]->phases.count);
}

static void write_plateaus(const Module *module, Writer *out) {
    Text all = TEXT(module->arena);
    if (!module->plateaus.count)
        return;
    for (int i = 0; i < module->plateaus.count; i++)
        text_printf(&all, "%s%d", i ? ", " : "", module->plateaus.at[i]);
    write_line(out, ".plateaus = %d,\n.plateau = {%s},", module->plateaus.count, text_string(&all));
}

/* What is said of trainings alone that are not the plain one. */
static void write_optimizers(const Module *module, Writer *out) {
    if (module->weight.name)
        write_line(out, ".weighted = true,");
    if (module->own_losses)
        write_line(out, ".own_losses = %d,", module->own_losses);
    if (module->first_update > 1)
        write_line(out, ".first_update = %lld,", (long long)module->first_update);
}

static void write_sizes_of_tables(Emitter *e, const Counts *counts, Writer *out) {
    const Module *module = e->module;
    write_line(out, ".tensors = %d,", counts->tensors);
    write_line(out, ".fields = %d,", module->fields.count);
    write_line(out, ".origins = %d,", module->origins.count);
    write_line(out, ".splits = %d,", module->splits.count);
    write_line(out, ".knobs = %d,", counts->knobs);
    write_line(out, ".fixed = %d,", counts->fixed);
    if (counts->settings)
        write_line(out, ".settings = %d,", counts->settings);
    write_line(out, module->weight.name ? ".reports = REPORTS - 1," : ".reports = REPORTS,");
    write_line(out, ".kernels = %d,", kernels_in_order(e, e->programs[PROGRAM_TRAIN]).count);
    write_line(out, ".tensor = tensor_table,");
    write_line(out, ".field = field_table,");
    write_line(out, ".origin = %s,", table_of(module->origins.count, "origin_table"));
    write_line(out, ".split = %s,", table_of(module->splits.count, "split_table"));
    write_line(out, ".knob = %s,", table_of(counts->knobs, "knob_table"));
    write_line(out, ".fixed_param = %s,", table_of(counts->fixed, "fixed_table"));
    if (counts->settings)
        write_line(out, ".setting = setting_table,");
    write_line(out, ".report = report_table,");
    write_line(out, ".report_rises = rises_table,");
    write_line(out, ".monitor = %d,", module->monitor);
    write_line(out, ".patience = %d,", module->patience);
    write_plateaus(module, out);
    write_line(out, ".kernel = kernel_table,");
}

/* What each process updates a part of. */
static void write_flat(const Emitter *e, Writer *out) {
    const PlanFlat *flat = &e->plan->flat;
    write_line(out, ".flat_bytes = %lld,\n.flat_weights = %lld,\n.flat_sums = %lld,", (long long)flat->bytes,
               (long long)flat->weights, (long long)flat->sums);
    if (flat->averages >= 0)
        write_line(out, ".flat_averages = %lld,", (long long)flat->averages);
    write_line(out, ".parted_offset = %lld,\n.parted_states = %d,", (long long)flat->states, flat->slots);
    if (flat->averages >= 0)
        write_line(out, ".averages = true,");
    if (plan_needs_all_sums(e->plan, e->module))
        write_line(out, ".needs_all_sums = true,");
}

/* Of shards that stop for sums of all. */
static void write_stops(const Plan *plan, Writer *out) {
    write_line(out, ".exchanges = %d,\n.exchange = exchange_table,", plan_exchanges(plan));
    write_line(out, ".values_offset = %lld,\n.values_bytes = %lld,",
               (long long)(plan->weight_bytes + plan->state_bytes), (long long)plan->value_bytes);
    write_line(out, ".train_between = train_between,");
}

static void write_shards(Emitter *e, Writer *out) {
    const Module *module = e->module;
    const PlanSums sums = plan_sums(e->plan, module);
    write_line(out, ".shards = %d,\n.whole_batch = WHOLE_BATCH,", module->shards);
    write_line(out, ".sums_offset = %lld,\n.sums_bytes = %lld,", (long long)sums.begin,
               (long long)(sums.end - sums.begin));
    if (plan_exchanges(e->plan))
        write_stops(e->plan, out);
    else
        write_line(out, ".train_shard = train_shard,");
    if (e->dialect->peers && !plan_exchanges(e->plan))
        write_line(out, ".train_whole = train_whole,");
    write_line(out, ".update = update,");
    if (e->plan->flat.bytes)
        write_flat(e, out);
    write_line(out, ".add_sums = add_sums,");
    if (e->dialect->peers)
        write_line(out, ".add_over_peers = add_sums_over_peers,\n.train_among = train_among,");
    if (e->programs[PROGRAM_TRAIN]->buckets.count)
        write_line(out, ".buckets = %d,\n.bucket = bucket_table,", e->programs[PROGRAM_TRAIN]->buckets.count);
}

/* What print(x) shows, where it lies once `watch` has run. */
static void write_print(Emitter *e, const Printed *printed, const Node *value, Writer *out) {
    const Source *source = printed->src.source, *own = e->module->source;
    const char *path = source == own ? source_path(e->module) : path_beside(source->path, own->path);
    const char *at = quoted(e->arena, arena_printf(e->arena, "%s:%d", path, line_of(printed->src)));
    const char *items[] = {arena_printf(e->arena, ".at = %s", at),
                           arena_printf(e->arena, ".text = %s", quoted(e->arena, printed->text)),
                           arena_printf(e->arena, ".type = %s", quoted(e->arena, printed->type)),
                           arena_printf(e->arena, ".offset = %lld", (long long)plan_buffer(e->plan, value)->offset),
                           arena_printf(e->arena, ".elements = %lld",
                                        (long long)type_extent(&value->type, value->type.batched, value->type.rank)),
                           arena_printf(e->arena, ".batched = %s", value->type.batched ? "true" : "false")};
    write_row(out, items, sizeof items / sizeof *items);
}

static void write_prints(Emitter *e, Writer *out) {
    const Graph *g = e->module->watch;
    write_open(out, "static const MtcPrint print_table[] = {");
    for (int row = 0; row < e->module->printed.count; row++)
        for (int k = 0; k < g->roots.count; k++)
            if (g->roots.at[k]->attr.index == row)
                write_print(e, &e->module->printed.at[row], g->roots.at[k]->in[0], out);
    write_close(out, "};");
}

/* Rows of the table of tensors. */
static void write_quantized(Emitter *e, Writer *out) {
    RowTable table = {.arena = e->arena};
    for (int i = 0; i < e->module->quantized.count; i++) {
        const Quantized *quantized = &e->module->quantized.at[i];
        table_row(&table, NULL);
        table_number(&table, "weight", row_of_weight(e, quantized->weight));
        table_number(&table, "scale", row_of_weight(e, quantized->scale));
        table_number(&table, "input_scale", row_of_weight(e, quantized->input_scale));
        table_number(&table, "first_input", quantized->first_input);
        table_number(&table, "inputs", quantized->inputs);
    }
    write_table(&table, "static const MtcQuantized quantized_table[]", out);
}

/* The file of weights lies in the library as it is; the assembler reads it. */
static void write_weights(Emitter *e, Writer *out) {
    const char *path = quoted(e->arena, quoted(e->arena, e->options->weights));
    write_rule(out, arena_printf(e->arena, "weights: a file of the hash %.16s", e->options->weights_hash));
    write_line(out,
               "__asm__(\".pushsection .rodata\\n.balign 64\\nmtc_weights_begin:\\n\"\n"
               "        \".incbin \" %s \"\\nmtc_weights_end:\\n.byte 0\\n.popsection\\n\");\n"
               "extern const unsigned char mtc_weights_begin[], mtc_weights_end[];",
               path);
}

/* The members of an MtcModel that mtc_net.h needs. */
void write_net_tables(Emitter *e, Writer *out) {
    gather_statements(e);
    Counts counts = {.tensors = write_tensor_table(e, out)};
    write_fields(e, out);
    counts.knobs = write_knobs(e, out);
    if (e->module->quantized.count)
        write_quantized(e, out);
    if (e->options->weights)
        write_weights(e, out);
    const char *begin = e->options->weights ? "mtc_weights_begin" : "NULL";
    write_blank(out);
    write_open(out, "const MtcNetModel mtc_net_model = {");
    write_open(out, ".model = {");
    write_line(out, ".abi = MTC_ABI,\n.name = %s,\n.source = %s,\n.model_hash = \"%s\",",
               quoted(e->arena, e->module->name), quoted(e->arena, source_path(e->module)), e->options->model_hash);
    write_line(out, ".batch = BATCH,\n.arena_bytes = %lld,", (long long)e->plan->arena_bytes);
    write_line(out, ".tensors = %d,\n.tensor = %s,", counts.tensors, table_of(counts.tensors, "tensor_table"));
    write_line(out, ".fields = %d,\n.field = field_table,", e->module->fields.count);
    write_line(out, ".knobs = %d,\n.knob = %s,", counts.knobs, table_of(counts.knobs, "knob_table"));
    write_prediction(e, out);
    write_line(out, ".eval = evaluate,");
    if (e->module->quantized.count)
        write_line(out, ".quantized = %d,\n.quantized_weight = quantized_table,", e->module->quantized.count);
    write_close(out, "},");
    write_line(out, ".weights = %s,\n.weights_end = %s,", begin, e->options->weights ? "mtc_weights_end" : "NULL");
    write_close(out, "};");
}

void write_tables(Emitter *e, Writer *out) {
    gather_statements(e);
    write_statements(e, out);
    Counts counts = {.tensors = write_tensor_table(e, out)};
    write_data_tables(e, out);
    counts.knobs = write_knobs(e, out);
    counts.fixed = write_fixed(e, out);
    counts.settings = write_settings(e, out);
    write_reports(e, out);
    write_metric_tables(e, out);
    write_kernel_table(e, out);
    if (e->module->watch)
        write_prints(e, out);
    if (e->module->quantized.count)
        write_quantized(e, out);
    write_caches(e, out);
    write_blank(out);
    write_open(out, "const MtcModel mtc_model = {");
    write_what(e, out);
    write_sizes_of_tables(e, &counts, out);
    write_prediction(e, out);
    write_metrics(e, out);
    write_generation(e, out);
    write_line(out, ".statements = %d,\n.statement = statement_table,", e->statements.count);
    if (!e->module->shards)
        write_line(out, ".train = train,");
    write_line(out, ".train_until = train_until,\n.eval = evaluate,");
    if (e->dialect->schedules)
        write_line(out, ".shuffle = shuffle,\n.draw = launch_draw,");
    if (e->module->measure)
        write_line(out, ".measure = measure,");
    if (e->module->decode)
        write_line(out, ".decode = decode,%s", e->dialect->schedules ? "\n.draw_tokens = draw_tokens," : "");
    if (e->module->prefill)
        write_line(out, ".prefill = prefill,");
    if (e->module->texts)
        write_line(out, ".decode_texts = decode_texts,%s", e->dialect->schedules ? "\n.draw_texts = draw_texts," : "");
    write_line(out, ".run_kernel = run_kernel,");
    write_line(out, ".prepare = prepare,\n.release = release,");
    if (e->module->shards)
        write_shards(e, out);
    if (e->module->watch)
        write_line(out, ".prints = %d,\n.print = print_table,\n.watch = watch,", e->module->printed.count);
    write_optimizers(e->module, out);
    if (e->module->quantized.count)
        write_line(out, ".quantized = %d,\n.quantized_weight = quantized_table,", e->module->quantized.count);
    write_close(out, "};");
}
