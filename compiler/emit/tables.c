/* Tables for the runtime. */
#include "emit/program.h"

#include <math.h>

/* ---- literals ---- */

static const char *quoted(Arena *arena, const char *text) {
    if (!text)
        return "NULL";
    Text out = TEXT(arena);
    text_putc(&out, '"');
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c == '"' || *c == '\\' || *c == '?')
            text_printf(&out, "\\%c", *c);
        else if (*c < ' ')
            text_printf(&out, "\\%03o", *c);
        else
            text_putc(&out, (char)*c);
    }
    text_putc(&out, '"');
    return text_string(&out);
}

static const char *number(Arena *arena, double value) {
    Text out = TEXT(arena);
    if (isinf(value))
        return value > 0 ? "INFINITY" : "-INFINITY";
    text_number(&out, value);
    return text_string(&out);
}

static const char *integer(Arena *arena, int64_t value) {
    return arena_printf(arena, "%lld", (long long)value);
}

static const char *dims(Arena *arena, const Type *type, int first) {
    Text out = TEXT(arena);
    text_putc(&out, '{');
    for (int axis = first; axis < type->rank; axis++)
        text_printf(&out, "%s%lld", axis > first ? ", " : "", (long long)type->dim[axis]);
    if (type->rank <= first)
        text_putc(&out, '0');
    text_putc(&out, '}');
    return text_string(&out);
}

static const char *runtime_type(const Emitter *e, DType dtype, bool computed) {
    static const char *const names[] = {
        [DT_F32] = "MTC_F32", [DT_I32] = "MTC_I32", [DT_U8] = "MTC_U8", [DT_BOOL] = "MTC_BOOL"};
    return computed && dtype == DT_F32 && e->options->f64 ? "MTC_F64" : names[dtype];
}

/* ---- lists ---- */

static size_t column_after(const Writer *out, size_t bytes) {
    return 4 * (size_t)out->indent + bytes;
}

void write_list(Writer *out, const char *head, const char *const *items, int count, const char *tail) {
    Text line = TEXT(out->text.arena);
    int indent = (int)strlen(head);
    text_puts(&line, head);
    for (int k = 0; k < count; k++) {
        const char *end = k + 1 < count ? "," : tail;
        size_t needed = line.length + strlen(items[k]) + strlen(end) + 1;
        bool first = line.length == (size_t)indent;
        if (!first && column_after(out, needed) > LONGEST_LINE) {
            write_line(out, "%s", text_string(&line));
            line = TEXT(out->text.arena);
            text_printf(&line, "%*s", indent, "");
            first = true;
        }
        text_printf(&line, "%s%s%s", first ? "" : " ", items[k], end);
    }
    write_line(out, "%s", text_string(&line));
}

/* A row of a table, on one line or with an item a line. */
static void write_row(Writer *out, const char *const *items, int count) {
    Text line = TEXT(out->text.arena);
    for (int k = 0; k < count; k++)
        text_printf(&line, "%s%s", k ? ", " : "{", items[k]);
    text_puts(&line, "},");
    if (column_after(out, line.length) <= LONGEST_LINE) {
        write_line(out, "%s", text_string(&line));
        return;
    }
    for (int k = 0; k < count; k++)
        write_line(out, "%s%s%s", k ? " " : "{", items[k], k + 1 < count ? "," : "},");
}
#define WRITE_ROW(out, ...)                                                                                            \
    write_row(out, (const char *[]){__VA_ARGS__}, sizeof((const char *[]){__VA_ARGS__}) / sizeof(const char *))

static const char *is(Arena *arena, const char *member, const char *value) {
    return arena_printf(arena, ".%s = %s", member, value);
}

/* A row of two members, and something about it. */
typedef struct Note {
    const char *row, *about;
} Note;
typedef VEC(Note) Notes;

static void add_note(Emitter *e, Notes *notes, const char *a, const char *b, const char *about) {
    VEC_PUSH(e->arena, notes, ((Note){arena_printf(e->arena, "{%s, %s},", a, b), about}));
}

/* clang-format would put several short rows into a line, if it were not for comments behind them. */
static void write_notes(Writer *out, const char *head, const Notes *notes) {
    int width = 0;
    for (int k = 0; k < notes->count; k++)
        if ((int)strlen(notes->at[k].row) > width)
            width = (int)strlen(notes->at[k].row);
    write_open(out, "%s = {", head);
    for (int k = 0; k < notes->count; k++)
        if (width < LONGEST_LINE / 2)
            write_line(out, "%-*s // %s", width, notes->at[k].row, notes->at[k].about);
        else
            write_line(out, "%s", notes->at[k].row);
    write_close(out, "};");
}

/* ---- tables ---- */

static void write_tensor(Emitter *e, const Buffer *buffer, Writer *out) {
    static const char *const roles[] = {
        [BUFFER_WEIGHT] = "MTC_WEIGHT", [BUFFER_STATE] = "MTC_STATE", [BUFFER_VALUE] = "MTC_VALUE"};
    static const char *const inits[] = {[INIT_ZEROS] = "MTC_ZEROS",
                                        [INIT_CONSTANT] = "MTC_CONSTANT",
                                        [INIT_UNIFORM] = "MTC_UNIFORM",
                                        [INIT_NORMAL] = "MTC_NORMAL"};
    Init init = {0};
    if (buffer->kind == BUFFER_WEIGHT)
        init = e->module->weights.at[buffer->index].init;
    if (buffer->kind == BUFFER_STATE)
        init = e->module->states.at[buffer->index].init;
    Arena *arena = e->arena;
    int phase = buffer->kind == BUFFER_VALUE ? buffer->first : -1;
    WRITE_ROW(out, quoted(arena, buffer->label), roles[buffer->kind], runtime_type(e, buffer->type.dtype, true),
              integer(arena, buffer->type.rank), dims(arena, &buffer->type, 0), integer(arena, buffer->offset),
              inits[init.kind], number(arena, init.a), number(arena, init.b), integer(arena, line_of(buffer->src)),
              integer(arena, phase));
}

/* Those of `rows` that are in the plan: how many. */
static int write_tensors_of(Emitter *e, const int *rows, int count, Writer *out) {
    int written = 0;
    for (int i = 0; i < count; i++)
        if (rows[i] >= 0) {
            write_tensor(e, &e->plan->buffers.at[rows[i]], out);
            written++;
        }
    return written;
}

/* Weights and states in the order of the model, then the values of a training step in the order of their computation. */
static int write_tensors(Emitter *e, Writer *out) {
    const Plan *plan = e->plan;
    write_line(out, "// name, role, type, rank, dimensions, offset, initialiser, its numbers, line, phase from 0 on");
    write_open(out, "static const MtcTensor tensor_table[] = {");
    int count = write_tensors_of(e, plan->of_weight, e->module->weights.count, out);
    count += write_tensors_of(e, plan->of_state, e->module->states.count, out);
    count += write_tensors_of(e, plan->of_node[0], plan->programs[0]->graph->nodes.count, out);
    write_close(out, "};");
    return count;
}

static void write_fields(Emitter *e, Writer *out) {
    write_open(out, "static const MtcField field_table[] = {");
    for (int k = 0; k < e->module->fields.count; k++) {
        const Field *field = &e->module->fields.at[k];
        int64_t elements = type_elements(&field->type) / field->type.dim[0];
        Arena *arena = e->arena;
        WRITE_ROW(out, is(arena, "name", quoted(arena, field->name)),
                  is(arena, "type", runtime_type(e, field->stored, false)),
                  is(arena, "rank", integer(arena, field->type.rank - 1)),
                  is(arena, "dim", dims(arena, &field->type, 1)), is(arena, "elements", integer(arena, elements)),
                  is(arena, "classes", integer(arena, field->classes)));
    }
    write_close(out, "};");
}

static void write_splits(Emitter *e, Writer *out) {
    write_open(out, "static const MtcSplit split_table[] = {");
    for (int k = 0; k < e->module->splits.count; k++) {
        const Split *split = &e->module->splits.at[k];
        Text paths = TEXT(e->arena);
        for (int p = 0; p < split->paths.count; p++)
            text_printf(&paths, "%s%s", p ? ", " : "", quoted(e->arena, split->paths.at[p]));
        const char *list = arena_printf(e->arena, "{%s}", split->paths.count ? text_string(&paths) : "NULL");
        WRITE_ROW(out, is(e->arena, "name", quoted(e->arena, split->name)),
                  is(e->arena, "format", quoted(e->arena, split->format)),
                  is(e->arena, "paths", integer(e->arena, split->paths.count)), is(e->arena, "path", list));
    }
    write_close(out, "};");
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
        WRITE_ROW(out, is(arena, "name", quoted(arena, knob->name)), is(arena, "help", quoted(arena, knob->help)),
                  is(arena, "value", number(arena, knob->value)),
                  is(arena, "integer", knob->integer ? "true" : "false"),
                  is(arena, "has_range", knob->has_range ? "true" : "false"),
                  is(arena, "low", number(arena, knob->low)), is(arena, "high", number(arena, knob->high)));
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
                     knob->help ? knob->help : "decides a shape");
    }
    if (notes.count)
        write_notes(out, "static const MtcFixed fixed_table[]", &notes);
    return notes.count;
}

static void write_reports(Emitter *e, Writer *out) {
    const char **names = NEW_ARRAY(e->arena, const char *, e->module->reports.count);
    for (int k = 0; k < e->module->reports.count; k++)
        names[k] = quoted(e->arena, e->module->reports.at[k].name);
    write_list(out, "static const char *const report_table[] = {", names, e->module->reports.count, "};");
}

/* Messages name the line of a tensor. Returns the first such line after `line`, or 0. */
static int next_line(const Emitter *e, int line) {
    int next = 0;
    for (int k = 0; k < e->plan->buffers.count; k++) {
        const Span *src = &e->plan->buffers.at[k].src;
        int at = src->source == e->module->source ? line_of(*src) : 0;
        if (at > line && (!next || at < next))
            next = at;
    }
    return next;
}

/* The first tensor that comes from the line. */
static const char *tensor_of(const Emitter *e, int line) {
    for (int k = 0; k < e->plan->buffers.count; k++)
        if (line_of(e->plan->buffers.at[k].src) == line)
            return e->plan->buffers.at[k].label;
    ICE("no tensor comes from line %d", line);
}

static int write_statements(Emitter *e, Writer *out) {
    Notes notes = {0};
    for (int line = next_line(e, 0); line; line = next_line(e, line)) {
        const char *text = quoted(e->arena, line_text(e->arena, e->module->source, line));
        add_note(e, &notes, is(e->arena, "line", integer(e->arena, line)), is(e->arena, "text", text),
                 tensor_of(e, line));
    }
    write_notes(out, "static const MtcStatement statement_table[]", &notes);
    return notes.count;
}

/* ---- the model ---- */

static const Node *prediction(const Emitter *e) {
    const Graph *g = e->programs[1]->graph;
    for (int k = 0; k < g->roots.count; k++)
        if (g->roots.at[k]->inputs == 1 && g->roots.at[k]->op->table == TABLE_NONE)
            return g->roots.at[k]->in[0];
    return NULL;
}

static void write_prediction(Emitter *e, Writer *out) {
    const Node *n = prediction(e);
    if (!n)
        return;
    write_line(out, ".prediction_offset = %lld,", (long long)plan_buffer(e->plan, n)->offset);
    write_line(out, ".prediction_rank = %d,", n->type.rank - 1);
    write_line(out, ".prediction_dim = %s,", dims(e->arena, &n->type, 1));
    write_line(out, ".prediction_is_classes = %s,", e->module->prediction_is_classes ? "true" : "false");
}

static int64_t parameters(const Module *module) {
    int64_t count = 0;
    for (int k = 0; k < module->weights.count; k++)
        count += type_elements(&module->weights.at[k].type);
    return count;
}

typedef struct Counts {
    int tensors, knobs, fixed, statements;
} Counts;

static const char *table_of(int count, const char *name) {
    return count ? name : "NULL";
}

static void write_what(Emitter *e, Writer *out) {
    const Module *module = e->module;
    const Program *train = e->programs[0];
    bool persistent = train->schedule == SCHEDULE_PERSISTENT;
    write_line(out, ".abi = MTC_ABI,");
    write_line(out, ".name = %s,", quoted(e->arena, module->name));
    write_line(out, ".source = %s,", quoted(e->arena, source_path(module)));
    write_line(out, ".target = \"%s\",", e->target->name);
    write_line(out, ".architectures = \"%s\",", e->options->architectures);
    write_line(out, ".schedule = \"%s\",", !e->target->schedules ? "openmp" : persistent ? "persistent" : "graph");
    write_line(out, ".model_hash = \"%s\",", e->options->model_hash);
    write_line(out, ".batch = BATCH,");
    write_line(out, ".epochs = %d,", module->epochs);
    write_line(out, ".seed = %lluu,", (unsigned long long)module->seed);
    write_line(out, ".parameters = %lld,", (long long)parameters(module));
    write_line(out, ".flops_per_step = %s,", number(e->arena, program_flops(train)));
    write_line(out, ".arena_bytes = %lld,", (long long)e->plan->arena_bytes);
    write_line(out, ".unshared_bytes = %lld,", (long long)e->plan->unshared_bytes);
    write_line(out, ".train_phases = %d,", train->phases.count);
    write_line(out, ".eval_phases = %d,", e->programs[1]->phases.count);
}

static void write_sizes_of_tables(Emitter *e, const Counts *counts, Writer *out) {
    const Module *module = e->module;
    write_line(out, ".tensors = %d,", counts->tensors);
    write_line(out, ".fields = %d,", module->fields.count);
    write_line(out, ".splits = %d,", module->splits.count);
    write_line(out, ".knobs = %d,", counts->knobs);
    write_line(out, ".fixed = %d,", counts->fixed);
    write_line(out, ".reports = REPORTS,");
    write_line(out, ".tensor = tensor_table,");
    write_line(out, ".field = field_table,");
    write_line(out, ".split = %s,", table_of(module->splits.count, "split_table"));
    write_line(out, ".knob = %s,", table_of(counts->knobs, "knob_table"));
    write_line(out, ".fixed_param = %s,", table_of(counts->fixed, "fixed_table"));
    write_line(out, ".report = report_table,");
}

void write_tables(Emitter *e, Writer *out) {
    Counts counts = {.tensors = write_tensors(e, out)};
    write_fields(e, out);
    if (e->module->splits.count)
        write_splits(e, out);
    counts.knobs = write_knobs(e, out);
    counts.fixed = write_fixed(e, out);
    write_reports(e, out);
    counts.statements = write_statements(e, out);
    write_blank(out);
    write_open(out, "const MtcModel mtc_model = {");
    write_what(e, out);
    write_sizes_of_tables(e, &counts, out);
    write_prediction(e, out);
    write_line(out, ".statements = %d,\n.statement = statement_table,", counts.statements);
    write_line(out, ".train = train,\n.train_until = train_until,\n.eval = evaluate,");
    write_line(out, ".prepare = prepare,\n.release = release,");
    write_close(out, "};");
}
