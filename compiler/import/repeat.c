/* Blocks that repeat: rows of the text that say the same again and again, each with weights of its own, become a function and a `repeat`
 * of it.
 *
 * Rows are compared as they are made: the words of their expressions, the shapes of their weights, and what they refer to. That is, in each
 * block: a row of the same block, a value that the block before it hands on, or one that is the same for all. Names say which of runs that are as good
 * it is, and what weights are called: where those of the blocks count, "layers.0.fc", "layers.1.fc", they stay as they are; else blocks are numbered. */
#include "import/importer.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_HANDED = 4, LEAST_SAVED = 4, PARTS = 3 };

/* ---- what a row says ---- */

/* A part of its text: a reference to a row, by its number; else to a field, or plain text. */
enum { FIELD = -1, PLAIN = -2 };
typedef struct Piece {
    const char *at;
    int length, row;
} Piece;

/* Before, call, after. */
typedef struct Said {
    VEC(Piece) part[PARTS];
} Said;

typedef struct Folding {
    Importer *im;
    int *number; /* each row's: what the table of names leads to */
    struct NameTable *rows;
    Said *said;
} Folding;

/* Blocks: `count` of them, each of `rows` rows, from the row `first` on. */
typedef struct Run {
    int first, rows, count;
    int handed[MOST_HANDED];        /* the rows of a block that it hands on, from 0 */
    const char *start[MOST_HANDED]; /* what the first block is given in their place */
    int hands;
    VEC(const char *) same; /* what all blocks refer to */
    bool counted;           /* the names of their weights count them */
} Run;

static bool is_letter(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

/* The end of the word, the number or the string that begins here. */
static const char *end_of(const char *at) {
    if (*at == '"')
        return strchr(at + 1, '"') + 1;
    if (!is_letter(*at))
        return at + 1;
    const bool number = isdigit((unsigned char)*at);
    while (is_letter(*at) || (number && *at == '.' && at[1] != '.'))
        at++;
    return at;
}

/* What a word refers to: functions, and arguments by their names, are plain text. */
static int reference(const Folding *f, const char *at, const char *end) {
    const bool word = isalpha((unsigned char)*at) || *at == '_';
    if (!word || *end == '(' || (strncmp(end, " = ", 3) == 0))
        return PLAIN;
    const char *name = arena_strndup(f->im->arena, at, (size_t)(end - at));
    const int *number = names_find(f->rows, name);
    return number ? *number : PLAIN;
}

static void read_part(const Folding *f, Said *said, int part, const char *text) {
    const char *plain = text;
    for (const char *at = text, *end; text && *at; at = end) {
        end = end_of(at);
        const int row = reference(f, at, end);
        if (row == PLAIN)
            continue;
        const Piece before = {plain, (int)(at - plain), PLAIN}, piece = {at, (int)(end - at), row};
        VEC_PUSH(f->im->arena, &said->part[part], before);
        VEC_PUSH(f->im->arena, &said->part[part], piece);
        plain = end;
    }
    const Piece rest = {plain ? plain : "", plain ? (int)strlen(plain) : 0, PLAIN};
    VEC_PUSH(f->im->arena, &said->part[part], rest);
}

/* A name that is given again, as by a repeat, is that of its last row from there on. */
static void read_rows(Folding *f, Importer *im) {
    static int field = FIELD;
    *f = (Folding){.im = im, .rows = names_new(im)};
    f->number = NEW_ARRAY(im->arena, int, im->statements.count + 1);
    f->said = NEW_ARRAY(im->arena, Said, im->statements.count + 1);
    for (int i = 0; i < im->inputs.count; i++)
        names_add(im, f->rows, im->inputs.at[i]->field, &field);
    for (int i = 0; i < im->statements.count; i++) {
        const Statement *s = &im->statements.at[i];
        read_part(f, &f->said[i], 0, s->repeats ? "" : s->before);
        read_part(f, &f->said[i], 1, s->call);
        read_part(f, &f->said[i], 2, s->call && !s->repeats ? s->after : "");
        f->number[i] = i;
        const char *rest = s->names;
        for (size_t length; *rest; rest += length + strspn(rest + length, ", ")) {
            length = strcspn(rest, ",");
            names_add(im, f->rows, arena_strndup(im->arena, rest, length), &f->number[i]);
        }
    }
}

/* ---- rows that say the same ---- */

static bool pieces_alike(const Piece *a, const Piece *b) {
    if ((a->row == PLAIN) != (b->row == PLAIN))
        return false;
    return a->row != PLAIN || (a->length == b->length && memcmp(a->at, b->at, (size_t)a->length) == 0);
}

/* But for what they refer to. */
static bool rows_alike(const Folding *f, int i, int j) {
    const Importer *im = f->im;
    const Statement *a = &im->statements.at[i], *b = &im->statements.at[j];
    if (a->repeats || b->repeats || a->weights != b->weights || !a->call != !b->call || strchr(a->names, ','))
        return false;
    for (int part = 0; part < PARTS; part++) {
        const Said *one = &f->said[i], *other = &f->said[j];
        bool alike = one->part[part].count == other->part[part].count;
        for (int p = 0; alike && p < one->part[part].count; p++)
            alike = pieces_alike(&one->part[part].at[p], &other->part[part].at[p]);
        if (!alike)
            return false;
    }
    for (int w = 0; w < a->weights; w++) {
        const Weight *one = &im->weights.at[a->first_weight + w], *other = &im->weights.at[b->first_weight + w];
        if (one->frozen != other->frozen || !extents_same(&one->tensor->extents, &other->tensor->extents))
            return false;
    }
    return true;
}

/* How many rows from `first` on are like those so many rows behind them. */
static int alike_from(const Folding *f, int first, int rows) {
    int count = 0;
    while (first + count + rows < f->im->statements.count && rows_alike(f, first + count, first + count + rows))
        count++;
    return count;
}

/* ---- what blocks refer to ---- */

static const Piece *piece_of(const Folding *f, const Run *run, int block, int row, int part, int p) {
    return &f->said[run->first + block * run->rows + row].part[part].at[p];
}

static const char *piece_text(const Folding *f, const Piece *piece) {
    return arena_strndup(f->im->arena, piece->at, (size_t)piece->length);
}

/* The row of the block `back` before it that each block from `from` on refers to; -1: they differ. */
static int common_row(const Folding *f, const Run *run, int row, int part, int p, int back) {
    int found = -1;
    for (int k = back; k < run->count; k++) {
        const int at = piece_of(f, run, k, row, part, p)->row - (run->first + (k - back) * run->rows);
        if (at < 0 || at >= run->rows || (found >= 0 && found != at))
            return -1;
        found = at;
    }
    return found;
}

static bool is_same(const Folding *f, const Run *run, int row, int part, int p) {
    const Piece *first = piece_of(f, run, 0, row, part, p);
    for (int k = 1; k < run->count; k++) {
        const Piece *piece = piece_of(f, run, k, row, part, p);
        if (piece->length != first->length || memcmp(piece->at, first->at, (size_t)first->length) != 0)
            return false;
    }
    return first->row < run->first;
}

static bool add_same(const Folding *f, Run *run, const char *name) {
    for (int i = 0; i < run->same.count; i++)
        if (strcmp(run->same.at[i], name) == 0)
            return true;
    VEC_PUSH(f->im->arena, &run->same, name);
    return true;
}

/* In place of a row that the block before hands on, the first one has a value from outside, one for each such row. */
static bool add_handed(const Folding *f, Run *run, int handed, const Piece *start) {
    const char *name = piece_text(f, start);
    if (start->row >= run->first)
        return false;
    for (int i = 0; i < run->hands; i++)
        if (run->handed[i] == handed)
            return strcmp(run->start[i], name) == 0;
    if (run->hands == MOST_HANDED)
        return false;
    run->handed[run->hands] = handed;
    run->start[run->hands++] = name;
    return true;
}

static bool take_reference(const Folding *f, Run *run, int row, int part, int p) {
    const Piece *first = piece_of(f, run, 0, row, part, p);
    if (first->row == PLAIN || common_row(f, run, row, part, p, 0) >= 0)
        return true;
    if (is_same(f, run, row, part, p))
        return add_same(f, run, piece_text(f, first));
    const int handed = common_row(f, run, row, part, p, 1);
    return handed >= 0 && add_handed(f, run, handed, first);
}

/* ---- what of the blocks is needed elsewhere ---- */

static bool is_handed(const Run *run, int row) {
    const int last = run->first + (run->count - 1) * run->rows;
    for (int i = 0; i < run->hands; i++)
        if (row == last + run->handed[i])
            return true;
    return row < run->first || row >= run->first + run->count * run->rows;
}

static bool name_is_left(const Folding *f, const Run *run, const Value *value) {
    const int *row = value && value->stated ? names_find(f->rows, value->expression.before) : NULL;
    return !row || is_handed(run, *row);
}

/* Outputs, and what the loss is of. */
static bool outputs_are_left(const Folding *f, const Run *run) {
    for (int i = 0; i < f->im->outputs.count; i++)
        if (!name_is_left(f, run, f->im->outputs.at[i]) || !name_is_left(f, run, scores_of(f->im->outputs.at[i])))
            return false;
    return true;
}

static bool rest_is_left(const Folding *f, const Run *run) {
    for (int i = run->first + run->count * run->rows; i < f->im->statements.count; i++)
        for (int part = 0; part < PARTS; part++)
            for (int p = 0; p < f->said[i].part[part].count; p++) {
                const int row = f->said[i].part[part].at[p].row;
                if (row >= 0 && !is_handed(run, row))
                    return false;
            }
    return outputs_are_left(f, run);
}

static bool is_run(const Folding *f, Run *run) {
    for (int row = 0; row < run->rows; row++)
        for (int part = 0; part < PARTS; part++)
            for (int p = 0; p < f->said[run->first + row].part[part].count; p++)
                if (!take_reference(f, run, row, part, p))
                    return false;
    return run->hands > 0 && rest_is_left(f, run);
}

/* ---- names of weights ---- */

/* "layer1." of "layer1.0.conv1" and "layer1.1.conv1". */
typedef struct Counting {
    const char *before;
    long long from;
} Counting;

/* The path is that of a block's layer: before, number, and a point with what is its own, which is the result; NULL: it is not. */
static const char *own_path(const Counting *counting, const char *path, int block) {
    const size_t length = strlen(counting->before);
    char number[32];
    snprintf(number, sizeof number, "%lld.", counting->from + block);
    if (strncmp(path, counting->before, length) != 0 || strncmp(path + length, number, strlen(number)) != 0)
        return NULL;
    return path[length + strlen(number)] ? path + length + strlen(number) : NULL;
}

static bool all_count(const Importer *im, const Run *run, const Counting *counting) {
    for (int row = 0; row < run->rows; row++) {
        const char *first = NULL;
        for (int k = 0; k < run->count; k++) {
            const Statement *s = &im->statements.at[run->first + k * run->rows + row];
            const char *own = s->path ? own_path(counting, s->path, k) : NULL;
            first = k ? first : own;
            if (s->path && (!own || strcmp(own, first) != 0))
                return false;
        }
    }
    return true;
}

/* Any number in the path of the first block's first weights may be the one that counts. before NULL: none is. */
static Counting counting_of(Importer *im, const Run *run) {
    const char *path = NULL;
    for (int row = 0; row < run->rows && !path; row++)
        path = im->statements.at[run->first + row].path;
    for (const char *at = path; at && *at; at++) {
        const bool begins = isdigit((unsigned char)*at) && (at == path || at[-1] == '.');
        if (!begins || strspn(at, "0123456789") > 9)
            continue;
        const Counting counting = {arena_strndup(im->arena, path, (size_t)(at - path)), strtoll(at, NULL, 10)};
        if (all_count(im, run, &counting))
            return counting;
    }
    return (Counting){NULL, 0};
}

/* ---- the best of them ---- */

static int saved_by(const Run *run) {
    return (run->count - 1) * run->rows;
}

static void try_run(const Folding *f, int first, int rows, int count, Run *best) {
    Run run = {.first = first, .rows = rows, .count = count};
    const int saved = saved_by(&run), least = best->count ? saved_by(best) : LEAST_SAVED;
    if (saved < least || !is_run(f, &run))
        return;
    run.counted = counting_of(f->im, &run).before;
    const bool less = run.hands < best->hands, counted = run.hands == best->hands && run.counted && !best->counted;
    if (!best->count || saved > least || less || counted)
        *best = run;
}

/* As many rows less as can be; of such runs one that hands on the least, and then one whose names count. */
static Run best_run(const Folding *f) {
    Run best = {0};
    for (int rows = 1; 2 * rows <= f->im->statements.count; rows++)
        for (int from = 0, alike; from + rows < f->im->statements.count; from += alike + 1) {
            alike = alike_from(f, from, rows);
            for (int first = from; first < from + rows && first + rows <= from + alike; first++)
                for (int count = (from + alike + rows - first) / rows; count > 1; count--)
                    try_run(f, first, rows, count, &best);
        }
    return best;
}

int missing_row(Importer *im) {
    Folding f;
    int most = LEAST_SAVED - 1, found = -1;
    read_rows(&f, im);
    for (int rows = 2; 2 * rows - 1 <= im->statements.count; rows++)
        for (int from = 0, alike; from + rows < im->statements.count; from += alike + 1) {
            alike = alike_from(&f, from, rows);
            const Statement *one = &im->statements.at[from], *other = &im->statements.at[from + rows];
            const int last = im->statements.at[from + alike].node, apart = other->node - one->node;
            const bool known = alike >= rows - 1 && one->node >= 0 && other->node >= 0 && last >= 0;
            if (alike + 1 <= most || !known || apart <= 0 || last + apart >= im->nodes.count)
                continue;
            const Node *node = im->nodes.at[last + apart];
            if (strcmp(node->proto->op_type, im->nodes.at[last]->proto->op_type) != 0 || node->output[0]->stated)
                continue;
            most = alike + 1;
            found = last + apart;
        }
    return found;
}

/* Weights of a row get another path. */
static void rename_weights(Importer *im, const Statement *s, const char *path) {
    for (int w = 0; w < s->weights; w++) {
        Weight *weight = &im->weights.at[s->first_weight + w];
        weight->name = arena_printf(im->arena, "%s%s", path, weight->name + strlen(s->path));
    }
}

/* ---- the function ---- */

typedef struct Making {
    Folding *f;
    const Run *run;
    Counting counting;
    const char *function;
    bool weights;
    const char **row_name, **argument; /* in the function */
} Making;

static const char *translated(const Making *m, int row, int part) {
    const Folding *f = m->f;
    const Said *said = &f->said[m->run->first + row];
    Text text = TEXT(f->im->arena);
    text_puts(&text, "");
    for (int p = 0; p < said->part[part].count; p++) {
        const Piece *piece = &said->part[part].at[p];
        const int own = piece->row == PLAIN ? -1 : common_row(f, m->run, row, part, p, 0);
        const bool outside = piece->row != PLAIN && own < 0 && !is_same(f, m->run, row, part, p);
        const int handed = outside ? common_row(f, m->run, row, part, p, 1) : -1;
        for (int i = 0; handed >= 0 && i < m->run->hands; i++)
            if (m->run->handed[i] == handed)
                text_puts(&text, m->argument[i]);
        if (handed < 0 && own >= 0)
            text_puts(&text, m->row_name[own]);
        else if (handed < 0)
            text_append(&text, piece->at, (size_t)piece->length);
    }
    return text.length ? text_string(&text) : "";
}

/* In the function a row is called as its weights are there; else as in the first block, without what counts the blocks. */
static const char *local_name(Importer *im, const Making *m, const Statement *s, const char *own) {
    const char *name = own ? own : s->names;
    if (!own && m->counting.before) {
        char *prefix = arena_printf(im->arena, "%s%lld_", m->counting.before, m->counting.from);
        for (char *c = prefix; *c; c++)
            *c = *c == '.' ? '_' : *c;
        const size_t length = strlen(prefix);
        name += strncmp(name, prefix, length) == 0 && isalpha((unsigned char)name[length]) ? length : 0;
    }
    return identifier(im, name, "y");
}

static void name_rows(Importer *im, Making *m) {
    const Run *run = m->run;
    names_add(im, im->taken, m->function, (void *)(uintptr_t)m->function);
    for (int i = 0; i < run->same.count; i++)
        names_add(im, im->taken, run->same.at[i], (void *)(uintptr_t)run->same.at[i]);
    for (int i = 0; i < run->hands; i++)
        m->argument[i] = identifier(im, "x", "x");
    for (int row = 0; row < run->rows; row++) {
        const Statement *s = &im->statements.at[run->first + row];
        const char *own = s->path && m->counting.before ? own_path(&m->counting, s->path, 0) : NULL;
        m->row_name[row] = local_name(im, m, s, own);
    }
}

static Statement local_row(Importer *im, Making *m, int row) {
    const Run *run = m->run;
    const Statement *s = &im->statements.at[run->first + row];
    Statement local = *s;
    local.names = m->row_name[row];
    local.before = translated(m, row, 0);
    local.call = s->call ? translated(m, row, 1) : NULL;
    local.after = translated(m, row, 2);
    if (!s->path)
        return local;
    local.path = m->counting.before ? own_path(&m->counting, s->path, 0) : local.names;
    for (int k = 0; k < run->count && !m->counting.before; k++)
        rename_weights(im, &im->statements.at[run->first + k * run->rows + row],
                       arena_printf(im->arena, "%s.%d.%s", m->function, k, local.path));
    return local;
}

/* "x, mask" */
static const char *arguments(Importer *im, const Making *m, const char *const *handed) {
    Text text = TEXT(im->arena);
    for (int i = 0; i < m->run->hands; i++)
        text_printf(&text, i ? ", %s" : "%s", handed[i]);
    for (int i = 0; i < m->run->same.count; i++)
        text_printf(&text, ", %s", m->run->same.at[i]);
    return text_string(&text);
}

static const char *joined(Importer *im, const char *const *words, int count) {
    Text text = TEXT(im->arena);
    for (int i = 0; i < count; i++)
        text_printf(&text, i ? ", %s" : "%s", words[i]);
    return text_string(&text);
}

static void add_function(Importer *im, Making *m) {
    struct NameTable *outside = im->taken;
    const char *results[MOST_HANDED];
    Function function = {0};
    im->taken = names_new(im); /* a function knows its own names alone */
    name_rows(im, m);
    for (int row = 0; row < m->run->rows; row++) {
        const Statement local = local_row(im, m, row);
        VEC_PUSH(im->arena, &function.statements, local);
    }
    for (int i = 0; i < m->run->hands; i++)
        results[i] = m->row_name[m->run->handed[i]];
    function.head = arena_printf(im->arena, "%s(%s)", m->function, arguments(im, m, m->argument));
    function.result = joined(im, results, m->run->hands);
    VEC_PUSH(im->arena, &im->functions, function);
    im->taken = outside;
}

/* ---- the repeat ---- */

/* What is handed on has, all the way, the name that the last block's has. */
static Statement repeat_row(Importer *im, const Making *m, const char *const *names) {
    const Run *run = m->run;
    const char *index = im->index = im->index ? im->index : identifier(im, "i", "i"),
               *list = joined(im, names, run->hands), *path = "";
    if (m->weights)
        path = m->counting.before ? arena_printf(im->arena, ", name = \"%s{%s}\"", m->counting.before, index)
                                  : arena_printf(im->arena, ", name = \"%s.{%s}\"", m->function, index);
    const long long from = m->counting.before ? m->counting.from : 0;
    return (Statement){.names = list,
                       .before = arena_printf(im->arena, "repeat %s in %lld..%lld {", index, from, from + run->count),
                       .call =
                           arena_printf(im->arena, "%s = %s(%s%s)", list, m->function, arguments(im, m, names), path),
                       .node = -1,
                       .repeats = true};
}

static bool has_weights(const Importer *im, const Run *run) {
    for (int row = 0; row < run->rows; row++)
        if (im->statements.at[run->first + row].path)
            return true;
    return false;
}

/* A run of rows becomes the values that the first block is given, and the repeat. */
static void replace_run(Folding *f, const Run *run) {
    Importer *im = f->im;
    const char *names[MOST_HANDED];
    const int last = run->first + (run->count - 1) * run->rows, count = im->statements.count;
    const Statement *all = im->statements.at;
    Making m = {.f = f, .run = run, .counting = counting_of(im, run), .weights = has_weights(im, run)};
    m.function = identifier(im, "block", "block");
    m.row_name = NEW_ARRAY(im->arena, const char *, run->rows);
    m.argument = NEW_ARRAY(im->arena, const char *, run->hands);
    add_function(im, &m);
    memset(&im->statements, 0, sizeof im->statements);
    for (int i = 0; i < run->first; i++)
        VEC_PUSH(im->arena, &im->statements, all[i]);
    for (int i = 0; i < run->hands; i++) {
        names[i] = all[last + run->handed[i]].names;
        state(im, names[i], run->start[i]);
    }
    const Statement row = repeat_row(im, &m, names);
    VEC_PUSH(im->arena, &im->statements, row);
    for (int i = last + run->rows; i < count; i++)
        VEC_PUSH(im->arena, &im->statements, all[i]);
}

int fold_repeats(Importer *im) {
    int saved = 0;
    for (;;) {
        Folding f;
        read_rows(&f, im);
        const Run run = best_run(&f);
        if (!run.count)
            return saved;
        saved += saved_by(&run);
        replace_run(&f, &run);
    }
}
