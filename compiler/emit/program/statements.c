/* The lines of the model and of what it includes that tensors and kernels come from: a table, whose rows other tables name. */
#include "emit/kernel/row.h"
#include "emit/program/program.h"
#include "support/file.h"

Span source_of_kernel(const Kernel *kernel) {
    for (int k = 0; k < kernel->nodes.count; k++)
        if (kernel->nodes.at[k]->src.source)
            return kernel->nodes.at[k]->src;
    return (Span){0};
}

/* The model file first, the others by name; in each, line by line. */
static int compare(const Statement *a, const Statement *b) {
    const char *x = a->file ? a->file : "", *y = b->file ? b->file : "";
    int order = strcmp(x, y);
    return order ? order : a->line - b->line;
}

/* Where it stands, or belongs. */
static int find(const Emitter *e, const Statement *statement, bool *found) {
    int from = 0, to = e->statements.count;
    *found = false;
    while (from < to && !*found) {
        int middle = (from + to) / 2, order = compare(statement, &e->statements.at[middle]);
        if (order == 0)
            *found = true;
        if (order > 0)
            from = middle + 1;
        else
            to = middle;
    }
    return to;
}

static Statement statement_at(const Emitter *e, Span src) {
    const Source *own = e->module->source;
    const char *file = src.source == own ? NULL : path_beside(src.source->path, own->path);
    return (Statement){src.source, file, line_of(src), NULL};
}

static void add(Emitter *e, Span src, const char *made) {
    if (!src.source)
        return;
    Statement statement = statement_at(e, src);
    bool found;
    int row = find(e, &statement, &found);
    if (found)
        return;
    statement.made = made;
    VEC_PUSH(e->arena, &e->statements, statement);
    for (int k = e->statements.count - 1; k > row; k--)
        e->statements.at[k] = e->statements.at[k - 1];
    e->statements.at[row] = statement;
}

/* Messages name the line of a tensor, profiles that of a kernel. */
void gather_statements(Emitter *e) {
    const Program *train = e->programs[PROGRAM_TRAIN];
    for (int k = 0; k < e->plan->buffers.count; k++)
        add(e, e->plan->buffers.at[k].src, e->plan->buffers.at[k].label);
    for (int k = 0; k < train->kernels.count; k++)
        add(e, source_of_kernel(train->kernels.at[k]), train->kernels.at[k]->name);
}

int row_of_statement(const Emitter *e, Span src) {
    if (!src.source)
        return -1;
    Statement statement = statement_at(e, src);
    bool found;
    int row = find(e, &statement, &found);
    ENSURE(found);
    return row;
}

static const char *statement_row(Emitter *e, const Statement *statement) {
    Arena *arena = e->arena;
    return arena_printf(arena, "{%s, %d, %s},", quoted(arena, statement->file), statement->line,
                        quoted(arena, line_text(arena, statement->source, statement->line)));
}

void write_statements(Emitter *e, Writer *out) {
    Notes notes = {0};
    for (int k = 0; k < e->statements.count; k++) {
        const Statement *statement = &e->statements.at[k];
        const char *about = arena_printf(e->arena, "%d: %s", k, statement->made);
        VEC_PUSH(e->arena, &notes, ((Note){statement_row(e, statement), about}));
    }
    write_line(out, "// file, NULL: this model's own; line; text");
    write_notes(out, "static const MtcStatement statement_table[]", &notes);
}
