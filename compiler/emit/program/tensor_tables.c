/* The table of tensors: weights, what the optimizer keeps of them, and the values of a training step. */
#include "emit/kernel/function.h"
#include "emit/kernel/table.h"
#include "emit/program/program.h"

/* NULL: a weight, which is what a row is that does not say it. */
static const char *role_of(const Emitter *e, const Buffer *buffer) {
    if (buffer->kind == BUFFER_STATE)
        return "MTC_STATE";
    return e->module->weights.at[buffer->index].kind == WEIGHT_BUFFER ? "MTC_BUFFER" : NULL;
}

int row_of_weight(const Emitter *e, int weight) {
    int row = 0;
    for (int i = 0; i < weight; i++)
        row += e->plan->of_weight[i] >= 0;
    return row;
}

/* As the runtime reads it. */
static Init init_of(const Emitter *e, const Buffer *buffer) {
    if (buffer->kind == BUFFER_WEIGHT)
        return e->module->weights.at[buffer->index].init;
    const Weight *state = &e->module->states.at[buffer->index];
    Init init = state->init;
    if (init.kind == INIT_COPY)
        init.a = row_of_weight(e, state->of);
    return init;
}

static const int *file_order(const Emitter *e, const Buffer *buffer) {
    const Module *module = e->module;
    const Weight *tensors = buffer->kind == BUFFER_WEIGHT ? module->weights.at : module->states.at;
    return tensors[buffer->index].file_order;
}

/* "{0, 3, 1, 2}". */
static const char *file_axes(const Emitter *e, const int *order, int rank) {
    Text text = TEXT(e->arena);
    for (int k = 0; k < rank; k++)
        text_printf(&text, "%s%d", k ? ", " : "{", order[k]);
    text_putc(&text, '}');
    return text_string(&text);
}

static void add_init(Emitter *e, const Init *init, RowTable *table) {
    static const char *const inits[] = {
        [INIT_CONSTANT] = "MTC_CONSTANT", [INIT_UNIFORM] = "MTC_UNIFORM", [INIT_NORMAL] = "MTC_NORMAL",
        [INIT_COPY] = "MTC_COPY",         [INIT_WHITE] = "MTC_WHITE",     [INIT_DIRAC] = "MTC_DIRAC"};
    if (init->kind == INIT_ZEROS)
        return;
    table_text(table, "init", inits[init->kind]);
    if (init->kind == INIT_COPY)
        table_number(table, "a", (int64_t)init->a);
    else if (init->a != 0)
        table_text(table, "a", number(e->arena, init->a));
    if (init->b != 0)
        table_text(table, "b", number(e->arena, init->b));
}

/* A line of what write_value_macro says. */
static void add_value(Emitter *e, const Buffer *buffer, RowTable *table) {
    table_row(table, NULL);
    table->rows.at[table->rows.count - 1].macro = "VALUE";
    table_name(table, NULL, buffer->label);
    table_text(table, NULL, runtime_type(e, buffer->type.dtype, true));
    table_number(table, NULL, buffer->offset);
    table_number(table, NULL, row_of_statement(e, buffer->src));
    table_number(table, NULL, buffer->first);
    table_number(table, NULL, buffer->type.rank);
    table_text(table, NULL, buffer->type.rank ? dims(e->arena, &buffer->type, 0) : "{0}");
}

/* A macro that stands for a row, as clang-format has it. */
static void write_row_macro(const char *const *lines, int count, Writer *out) {
    for (int k = 0; k < count; k++)
        write_line(out, "%-*s\\", LONGEST_LINE - 1, lines[k]);
    write_line(out, "    }");
}

/* Values are many and alike: one fits into a line. */
static void write_value_macro(Writer *out) {
    static const char *const lines[] = {"#define VALUE(name_, type_, offset_, statement_, phase_, rank_, ...)", "    {",
                                        ("        .name = name_, .role = MTC_VALUE, .type = type_, .rank = rank_, .dim "
                                         "= __VA_ARGS__, .offset = offset_,"),
                                        "        .statement = statement_, .phase = phase_"};
    write_line(
        out,
        "// a value of the training step: its name, type, place, statement, the phase that writes it, rank, extents");
    write_row_macro(lines, sizeof lines / sizeof *lines, out);
}

/* A state that STATE has all members for, file_axis behind them. */
static bool is_plain_state(const Emitter *e, int row) {
    const Buffer *buffer = row < 0 ? NULL : &e->plan->buffers.at[row];
    return buffer && buffer->kind == BUFFER_STATE && !buffer->flat && !buffer->slot && buffer->type.rank &&
           buffer->type.dtype == DT_F32 && !e->options->f64 && init_of(e, buffer).kind == INIT_ZEROS;
}

/* States of many weights are many and alike, too. */
static bool has_state_macro(const Emitter *e) {
    enum { MANY = 24 };
    int count = 0;
    for (int i = 0; i < e->module->states.count; i++)
        count += !e->module->states.at[i].summed && is_plain_state(e, e->plan->of_state[i]);
    return count >= MANY;
}

static void write_state_macro(Writer *out) {
    static const char macro[] = "%-*s\\\n    { %s }";
    write_line(
        out, "// what the optimizer keeps of a weight: its name, place, rank, extents, statement; what else there is");
    write_line(out, macro, LONGEST_LINE - 1, "#define OF(...)", "__VA_ARGS__");
    write_line(
        out, macro, LONGEST_LINE - 1, "#define STATE(name_, offset_, rank_, dim_, ...)",
        ".name = name_, .role = MTC_STATE, .rank = rank_, .dim = dim_, .offset = offset_, .statement = __VA_ARGS__");
}

static void add_state(Emitter *e, const Buffer *buffer, RowTable *table) {
    const int *order = file_order(e, buffer), rank = buffer->type.rank;
    const char *dim = dims(e->arena, &buffer->type, 0);
    table_row(table, NULL);
    table->rows.at[table->rows.count - 1].macro = "STATE";
    table_name(table, NULL, buffer->label);
    table_number(table, NULL, buffer->offset);
    table_number(table, NULL, rank);
    table_text(table, NULL, arena_printf(e->arena, "OF(%.*s)", (int)strlen(dim) - 2, dim + 1));
    table_number(table, NULL, row_of_statement(e, buffer->src));
    if (order)
        table_text(table, "file_axis", file_axes(e, order, rank));
}

static void add_weight(Emitter *e, const Buffer *buffer, RowTable *table) {
    const Init init = init_of(e, buffer);
    const int *order = file_order(e, buffer), rank = buffer->type.rank;
    const char *role = role_of(e, buffer);
    table_row(table, NULL);
    table_name(table, "name", buffer->label);
    if (role)
        table_text(table, "role", role);
    if (buffer->type.dtype != DT_F32 || e->options->f64)
        table_text(table, "type", runtime_type(e, buffer->type.dtype, true));
    table_number(table, "rank", rank);
    if (rank)
        table_text(table, "dim", dims(e->arena, &buffer->type, 0));
    table_number(table, "offset", buffer->offset);
    add_init(e, &init, table);
    table_number(table, "statement", row_of_statement(e, buffer->src));
    if (order && rank)
        table_text(table, "file_axis", file_axes(e, order, rank));
    if (buffer->slot)
        table_text(table, "parted", "true");
}

static void add_tensor(Emitter *e, const Buffer *buffer, RowTable *table) {
    if (buffer->kind == BUFFER_VALUE)
        add_value(e, buffer, table);
    else if (is_plain_state(e, (int)(buffer - e->plan->buffers.at)) && has_state_macro(e))
        add_state(e, buffer, table);
    else
        add_weight(e, buffer, table);
}

/* Those of `rows` that are in the plan. */
static void add_tensors_of(Emitter *e, const int *rows, int count, RowTable *table) {
    for (int i = 0; i < count; i++)
        if (rows[i] >= 0 && !e->plan->buffers.at[rows[i]].flat)
            add_tensor(e, &e->plan->buffers.at[rows[i]], table);
}

/* Of all steps, not of the sums of one. */
static void add_states(Emitter *e, RowTable *table) {
    for (int i = 0; i < e->module->states.count; i++)
        if (!e->module->states.at[i].summed)
            add_tensors_of(e, &e->plan->of_state[i], 1, table);
}

/* Weights and states in the order of the model, then the values of a training step in the order of their computation. */
int write_tensor_table(Emitter *e, Writer *out) {
    const Plan *plan = e->plan;
    RowTable table = {.arena = e->arena};
    add_tensors_of(e, plan->of_weight, e->module->weights.count, &table);
    add_states(e, &table);
    add_tensors_of(e, plan->of_node[0], plan->programs[PROGRAM_TRAIN]->graph->nodes.count, &table);
    const bool values = !e->options->predicts;
    write_line(out, "// what is not said is zero; phases count from 0 on");
    if (values)
        write_value_macro(out);
    if (has_state_macro(e))
        write_state_macro(out);
    write_table(&table, "static const MtcTensor tensor_table[]", out);
    if (values)
        write_line(out, "#undef VALUE");
    if (has_state_macro(e))
        write_line(out, "#undef STATE\n#undef OF");
    return table.rows.count;
}
