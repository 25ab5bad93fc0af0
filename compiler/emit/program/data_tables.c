/* Tables of the data: fields with the columns they are made of, origins of examples, splits. */
#include "emit/kernel/row.h"
#include "emit/program/program.h"

/* Writes an array of strings, called `name` or the like; returns what it is called, NULL (in C) when it is empty. Lists of
 * several lines, which clang-format would put into columns, have an item a line and its number behind it. */
static const char *write_strings(Emitter *e, const char *name, const char *const *strings, int count, Writer *out) {
    if (!count)
        return "NULL";
    const char **items = NEW_ARRAY(e->arena, const char *, count);
    Notes notes = {0};
    name = names_claim(&e->globals, name);
    const char *head = arena_printf(e->arena, "static const char *const %s[]", name);
    size_t length = strlen(head) + strlen(" = {};");
    for (int k = 0; k < count; k++) {
        items[k] = quoted(e->arena, strings[k]);
        length += strlen(items[k]) + (k ? strlen(", ") : 0);
        VEC_PUSH(e->arena, &notes,
                 ((Note){arena_printf(e->arena, "%s,", items[k]), arena_printf(e->arena, "%d", k + 1)}));
    }
    if (length <= LONGEST_LINE)
        write_list(out, arena_printf(e->arena, "%s = {", head), items, count, "};");
    else
        write_notes(out, head, &notes);
    return name;
}

typedef VEC(const char *) Items;

static void add_item(Emitter *e, Items *items, const char *member, const char *value) {
    VEC_PUSH(e->arena, items, is(e->arena, member, value));
}

/* "a, b, c", or each below the other, `indent` columns in. */
static const char *joined(Emitter *e, const Items *items, int indent) {
    Text text = TEXT(e->arena);
    for (int k = 0; k < items->count; k++) {
        if (k && indent)
            text_printf(&text, ",\n%*s", indent, "");
        else if (k)
            text_puts(&text, ", ");
        text_puts(&text, items->at[k]);
    }
    return text_string(&text);
}

/* `.member = {items}` as the last item of a row, broken as clang-format does. */
static const char *nested_row(Emitter *e, const char *member, const Items *items) {
    const int row = 4, item = 1, continued = 4;
    const char *head = arena_printf(e->arena, ".%s =", member), *line = joined(e, items, 0);
    int braced = (int)strlen("{") + (int)strlen(line) + (int)strlen("}},"), begin = item + (int)strlen(head) + 1;
    if (row + begin + braced <= LONGEST_LINE)
        return arena_printf(e->arena, "%s {%s}", head, line);
    if (row + item + continued + braced <= LONGEST_LINE)
        return arena_printf(e->arena, "%s\n%*s{%s}", head, item + continued, "", line);
    return arena_printf(e->arena, "%s {%s}", head, joined(e, items, begin + 1));
}

/* ---- fields ---- */

/* By node id of evaluation: the prediction is computed from it. */
static bool *prediction_needs(const Emitter *e) {
    const Graph *g = e->programs[PROGRAM_EVAL]->graph;
    bool *needed = NEW_ARRAY(e->arena, bool, g->nodes.count);
    if (prediction(e))
        needed[prediction(e)->id] = true;
    for (int k = g->nodes.count - 1; k >= 0; k--)
        for (int i = 0; i < g->nodes.at[k]->inputs && needed[k]; i++)
            needed[g->nodes.at[k]->in[i]->id] = true;
    return needed;
}

static bool field_predicts(const Emitter *e, const bool *needed, int field) {
    const Graph *g = e->programs[PROGRAM_EVAL]->graph;
    for (int k = 0; k < g->nodes.count; k++)
        if (needed[k] && g->nodes.at[k]->op->table == TABLE_FIELD && g->nodes.at[k]->attr.index == field)
            return true;
    return false;
}

/* A function of one value alone: x / 366, log(x). */
static bool is_scaling(const Node *n) {
    double constant;
    int values = 0;
    for (int i = 0; i < n->inputs; i++)
        values += !graph_constant_value(n->in[i], &constant);
    return n->op->cls == OP_MAP && values == 1;
}

/* Whoever computes with the value scales it first. */
static bool is_scaled(const Graph *g, const bool *needed, const Node *value) {
    for (int k = value->id + 1; k < g->nodes.count; k++)
        for (int i = 0; needed[k] && i < g->nodes.at[k]->inputs; i++) {
            const Node *reader = g->nodes.at[k];
            if (reader->in[i] == value && !is_scaling(reader) &&
                !(reader->op->cls == OP_VIEW && is_scaled(g, needed, reader)))
                return false;
        }
    return true;
}

static bool field_scaled(const Emitter *e, const bool *needed, int field) {
    const Graph *g = e->programs[PROGRAM_EVAL]->graph;
    for (int k = 0; k < g->nodes.count; k++) {
        const Node *n = g->nodes.at[k];
        if (needed[k] && n->op->table == TABLE_FIELD && n->attr.index == field && n->type.dtype == DT_F32)
            return is_scaled(g, needed, n);
    }
    return false;
}

/* `.columns = {.count = 1, .name = columns_0, .part = MTC_PART_MONTH}`: what is not said is zero. */
static const char *columns_row(Emitter *e, const Columns *columns, const char *names) {
    static const char *const parts[] = {[PART_DAY_OF_YEAR] = "MTC_PART_DAY_OF_YEAR",
                                        [PART_MONTH] = "MTC_PART_MONTH",
                                        [PART_WEEKDAY] = "MTC_PART_WEEKDAY"};
    static const char *const missing[] = {[MISSING_SKIP] = "MTC_MISSING_SKIP",
                                          [MISSING_MEAN] = "MTC_MISSING_MEAN",
                                          [MISSING_VALUE] = "MTC_MISSING_VALUE"};
    Items items = {0};
    add_item(e, &items, "count", integer(e->arena, columns->names.count));
    add_item(e, &items, "name", names);
    if (columns->part != PART_VALUE)
        add_item(e, &items, "part", parts[columns->part]);
    if (columns->date_format)
        add_item(e, &items, "date_format", quoted(e->arena, columns->date_format));
    if (columns->missing != MISSING_ERROR)
        add_item(e, &items, "missing", missing[columns->missing]);
    if (columns->missing == MISSING_VALUE && !columns->missing_text)
        add_item(e, &items, "missing_value", number(e->arena, columns->missing_value));
    if (columns->missing_text)
        add_item(e, &items, "missing_text", quoted(e->arena, columns->missing_text));
    if (columns->unseen_other)
        add_item(e, &items, "unseen_other", "true");
    return nested_row(e, "columns", &items);
}

static void write_field(Emitter *e, const Field *field, const char *columns, const bool *needed, Writer *out) {
    Arena *arena = e->arena;
    Items items = {0};
    const int row = (int)(field - e->module->fields.at);
    add_item(e, &items, "name", quoted(arena, field->name));
    add_item(e, &items, "type", runtime_type(e, field->stored, false));
    add_item(e, &items, "rank", integer(arena, field->type.rank - 1));
    add_item(e, &items, "dim", dims(arena, &field->type, 1));
    add_item(e, &items, "elements", integer(arena, type_elements(&field->type) / field->type.dim[0]));
    add_item(e, &items, "classes", integer(arena, field->classes));
    add_item(e, &items, "predicts", field_predicts(e, needed, row) ? "true" : "false");
    if (field_scaled(e, needed, row))
        add_item(e, &items, "scaled", "true");
    if (field->distribution)
        add_item(e, &items, "distribution", "true");
    if (field->weighs)
        add_item(e, &items, "weighs", "true");
    if (field->windows)
        add_item(e, &items, "windows", "true");
    if (field->steps)
        add_item(e, &items, "steps", integer(arena, field->steps));
    if (field->from)
        add_item(e, &items, "from", integer(arena, field->from));
    if (field->columns.names.count)
        VEC_PUSH(arena, &items, columns_row(e, &field->columns, columns));
    write_row(out, items.at, items.count);
}

void write_fields(Emitter *e, Writer *out) {
    const bool *needed = prediction_needs(e);
    const char **columns = NEW_ARRAY(e->arena, const char *, e->module->fields.count);
    for (int k = 0; k < e->module->fields.count; k++) {
        const Field *field = &e->module->fields.at[k];
        const char *name = arena_printf(e->arena, "%s_columns", field->name);
        columns[k] = write_strings(e, name, field->columns.names.at, field->columns.names.count, out);
    }
    write_open(out, "static const MtcField field_table[] = {");
    for (int k = 0; k < e->module->fields.count; k++)
        write_field(e, &e->module->fields.at[k], columns[k], needed, out);
    write_close(out, "};");
}

/* ---- origins ---- */

/* What an origin's row of the table refers to. */
typedef struct OriginArrays {
    const char *paths, *columns, *rows;
} OriginArrays;

/* Rows as the text has them, a line each; clang-format would put them into columns. */
static const char *write_rows_of(Emitter *e, const Origin *origin, Writer *out) {
    if (!origin->row_count)
        return "NULL";
    const char *name = names_claim(&e->globals, "example_rows");
    int elements = (int)(origin->rows.count / origin->row_count);
    const char **items = NEW_ARRAY(e->arena, const char *, elements);
    write_line(out, "// clang-format off");
    write_open(out, "static const double %s[] = {", name);
    for (int64_t row = 0; row < origin->row_count; row++) {
        for (int i = 0; i < elements; i++)
            items[i] = number(e->arena, origin->rows.at[row * elements + i]);
        write_list(out, "", items, elements, ",");
    }
    write_close(out, "};");
    write_line(out, "// clang-format on");
    return name;
}

static OriginArrays write_arrays(Emitter *e, const Origin *origin, Writer *out) {
    OriginArrays arrays;
    arrays.paths = write_strings(e, "paths", origin->paths.at, origin->paths.count, out);
    arrays.columns = write_strings(e, "file_columns", origin->columns.at, origin->columns.count, out);
    arrays.rows = write_rows_of(e, origin, out);
    return arrays;
}

static void write_origin(Emitter *e, const Origin *origin, const OriginArrays *arrays, Writer *out) {
    Items items = {0};
    add_item(e, &items, "format", quoted(e->arena, origin->format));
    add_item(e, &items, "paths", integer(e->arena, origin->paths.count));
    add_item(e, &items, "path", arrays->paths);
    if (origin->separator) {
        add_item(e, &items, "header", origin->header ? "true" : "false");
        add_item(e, &items, "columns", integer(e->arena, origin->columns.count));
        add_item(e, &items, "column", arrays->columns);
        add_item(e, &items, "separator", quoted_character(e->arena, origin->separator));
        add_item(e, &items, "quote", origin->quote ? quoted_character(e->arena, origin->quote) : "0");
    }
    if (origin->resize)
        add_item(e, &items, "resize", "true");
    if (origin->stride)
        add_item(e, &items, "stride", integer(e->arena, origin->stride));
    if (origin->row_count) {
        add_item(e, &items, "rows", integer(e->arena, origin->row_count));
        add_item(e, &items, "row", arrays->rows);
    }
    write_row(out, items.at, items.count);
}

static void write_origins(Emitter *e, Writer *out) {
    OriginArrays *arrays = NEW_ARRAY(e->arena, OriginArrays, e->module->origins.count);
    for (int k = 0; k < e->module->origins.count; k++)
        arrays[k] = write_arrays(e, &e->module->origins.at[k], out);
    write_open(out, "static const MtcOrigin origin_table[] = {");
    for (int k = 0; k < e->module->origins.count; k++)
        write_origin(e, &e->module->origins.at[k], &arrays[k], out);
    write_close(out, "};");
}

/* ---- splits ---- */

static void write_splits(Emitter *e, Writer *out) {
    write_open(out, "static const MtcSplit split_table[] = {");
    for (int k = 0; k < e->module->splits.count; k++) {
        const Split *split = &e->module->splits.at[k];
        enum { MEMBERS = 4 };
        const char *items[] = {is(e->arena, "name", quoted(e->arena, split->name)),
                               is(e->arena, "origin", integer(e->arena, split->origin)),
                               is(e->arena, "from", number(e->arena, split->from)),
                               is(e->arena, "to", number(e->arena, split->to)), ".in_order = true"};
        write_row(out, items, MEMBERS + split->in_order);
    }
    write_close(out, "};");
}

void write_data_tables(Emitter *e, Writer *out) {
    write_fields(e, out);
    write_origins(e, out);
    write_splits(e, out);
}
