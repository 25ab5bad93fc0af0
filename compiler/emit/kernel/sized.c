#include "emit/kernel/sized.h"

#include <ctype.h>

typedef VEC(Function *) Functions;

/* A function of several sizes while it is made: those that it is for, and which parameter each mark of a number is; -1: none. */
typedef struct Sized {
    Emitter *e;
    Functions functions; /* of other sizes each */
    VEC(int) parameter;
    VEC(int) mark; /* of each parameter, the first */
} Sized;

/* ---- what differs ---- */

/* A size by its name, not as a number. */
static bool has_name(const Mark *mark) {
    return mark->kind == MARK_SIZE && !isdigit((unsigned char)*mark->text);
}

/* The same number, and if both have names the same size: rows are not columns, though images be squares. */
static bool same_number(const Mark *a, const Mark *b) {
    return a->value == b->value && (!has_name(a) || !has_name(b) || text_same(a->text, b->text));
}

static bool same_numbers(const Functions *functions, int a, int b) {
    for (int k = 0; k < functions->count; k++)
        if (!same_number(&functions->at[k]->marks.at[a], &functions->at[k]->marks.at[b]))
            return false;
    return true;
}

static bool differs(const Functions *functions, int mark) {
    for (int k = 1; k < functions->count; k++)
        if (functions->at[k]->marks.at[mark].value != functions->at[0]->marks.at[mark].value)
            return true;
    return false;
}

/* The parameter that the mark is: one that there is already, or a new one. */
static int parameter_of(Sized *s, int mark) {
    for (int k = 0; k < s->mark.count; k++)
        if (same_numbers(&s->functions, s->mark.at[k], mark))
            return k;
    VEC_PUSH(s->e->arena, &s->mark, mark);
    return s->mark.count - 1;
}

static void find_parameters(Sized *s) {
    const Function *first = s->functions.at[0];
    for (int k = 0; k < first->marks.count; k++) {
        VEC_PUSH(s->e->arena, &s->parameter, differs(&s->functions, k) ? parameter_of(s, k) : -1);
    }
}

/* ---- what a parameter is called ---- */

/* The text of the parameter in function `row`: a size by its name, where the text has it. */
static const char *argument(const Sized *s, int parameter, int row) {
    const Function *f = s->functions.at[row];
    const char *number = arena_printf(s->e->arena, "%lld", (long long)f->marks.at[s->mark.at[parameter]].value);
    for (int k = 0; k < s->parameter.count; k++)
        if (s->parameter.at[k] == parameter && has_name(&f->marks.at[k]))
            return f->marks.at[k].text;
    return number;
}

/* A word of a name in capitals, up to the next _, is one of the name `of`. */
static bool has_part(const char *of, const char *word, size_t length) {
    for (size_t part; *of; of += part, of += *of == '_') {
        part = strcspn(of, "_");
        if (part == length && strncmp(of, word, length) == 0)
            return true;
    }
    return false;
}

static bool in_all(const Sized *s, int parameter, const char *word, size_t length) {
    for (int row = 0; row < s->functions.count; row++)
        if (!has_part(argument(s, parameter, row), word, length))
            return false;
    return true;
}

/* What the names of the sizes have in common: CONV1_ROWS of LAYER2_0_CONV1_ROWS and LAYER3_0_CONV1_ROWS; else how the first ends. N:
 * that is all of it, or it has no name. */
static const char *common_name(const Sized *s, int parameter) {
    Text common = TEXT(s->e->arena);
    const char *last = "N", *word = argument(s, parameter, 0);
    for (size_t length; *word; word += length, word += *word == '_') {
        length = strcspn(word, "_");
        if (isdigit((unsigned char)*word))
            continue;
        last = arena_strndup(s->e->arena, word, length);
        if (in_all(s, parameter, word, length))
            text_printf(&common, "%s%s", common.length ? "_" : "", last);
    }
    return common.length ? text_string(&common) : strlen(last) < strlen(argument(s, parameter, 0)) ? last : "N";
}

static void name_parameters(Sized *s) {
    Function *first = s->functions.at[0];
    Names names = {.arena = s->e->arena, .outer = &s->e->globals};
    names_take(&names, "FIRST");
    names_take(&names, "PLACES");
    for (int k = 0; k < s->mark.count; k++) {
        VEC_PUSH(s->e->arena, &first->parameters, names_claim_constant(&names, common_name(s, k)));
        for (int row = 0; row < s->functions.count; row++)
            VEC_PUSH(s->e->arena, &s->functions.at[row]->arguments, argument(s, k, row));
    }
}

/* ---- the text ---- */

/* What stands there for all sizes. */
static const char *general_text(const Sized *s, int mark) {
    Arena *arena = s->e->arena;
    const Function *first = s->functions.at[0];
    const Mark *at = &first->marks.at[mark];
    const char *parameter = s->parameter.at[mark] < 0 ? NULL : first->parameters.at[s->parameter.at[mark]];
    if (!parameter)
        return at->text;
    const char *real = s->e->dialect->real;
    return at->kind == MARK_COUNT        ? arena_printf(arena, "(%s)%s", real, parameter)
           : at->kind == MARK_RECIPROCAL ? arena_printf(arena, "(1 / (%s)%s)", real, parameter)
                                         : parameter;
}

static void write_anew(const Sized *s, Writer *lines, bool declares) {
    const Function *first = s->functions.at[0];
    const char *text = text_string(&lines->text);
    Text anew = TEXT(s->e->arena);
    size_t from = 0;
    for (int k = 0; k < first->marks.count; k++) {
        const Mark *mark = &first->marks.at[k];
        if (mark->declares != declares)
            continue;
        text_append(&anew, text + from, mark->at - from);
        text_puts(&anew, general_text(s, k));
        from = mark->at + mark->length;
    }
    text_puts(&anew, text + from);
    lines->text = anew;
}

/* ---- which functions ---- */

static bool same_sizes(const Function *a, const Function *b) {
    for (int k = 0; k < a->marks.count; k++)
        if (a->marks.at[k].value != b->marks.at[k].value)
            return false;
    return true;
}

/* That one of `functions` that has the same sizes; NULL: none has. */
static Function *of_same_sizes(const Functions *functions, const Function *f) {
    for (int k = 0; k < functions->count; k++)
        if (same_sizes(functions->at[k], f))
            return functions->at[k];
    return NULL;
}

static bool may_join(const Emitter *e, const Function *first, const Function *f) {
    return f->like == f - e->functions.at && f->sized < 0 && first->shape && f->shape &&
           text_same(f->shape, first->shape);
}

/* Each size once. */
static Functions functions_like(const Emitter *e, Function *first) {
    Functions all = {0};
    for (Function *f = first; f < e->functions.at + e->functions.count; f++)
        if (may_join(e, first, f) && !of_same_sizes(&all, f))
            VEC_PUSH(e->arena, &all, f);
    return all;
}

/* In CUDA C++ a struct of tensors is one for all sizes. In C a program whose layers do not repeat has one of all tensors alone, and
 * nothing else to know. */
static bool has_structs(const Emitter *e) {
    for (int k = 0; k < e->functions.count; k++)
        if (e->functions.at[k].like != k)
            return true;
    return e->dialect->templates;
}

/* It is shorter so, and has so few parameters that one can follow it. */
static bool reads_better(const Sized *s) {
    enum { MOST_PARAMETERS = 12, LINES_OF_EACH = 4, LINES_OF_STRUCT = 7 };
    const Function *first = s->functions.at[0];
    const int count = s->functions.count, text = first->declarations.lines.count + first->lines.lines.count;
    const int lines = text + first->comments.lines.count + (s->e->dialect->templates ? LINES_OF_STRUCT : 0);
    return count > 1 && s->mark.count <= MOST_PARAMETERS && (count - 1) * lines > count * LINES_OF_EACH;
}

/* All functions that are equal to `f` are the one of the same sizes. */
static void join(Emitter *e, const Sized *s, const Function *f) {
    const Function *same = of_same_sizes(&s->functions, f);
    for (int k = 0; k < e->functions.count; k++)
        if (e->functions.at[k].like == f - e->functions.at && f != same)
            e->functions.at[k].like = (int)(same - e->functions.at);
}

static void make_sized(Emitter *e, Sized *s) {
    Function *first = s->functions.at[0];
    name_parameters(s);
    first->general = names_claim(&e->globals, arena_printf(e->arena, "%s_sized", first->name));
    write_anew(s, &first->declarations, true);
    write_anew(s, &first->lines, false);
    for (Function *f = first; f < e->functions.at + e->functions.count; f++)
        if (may_join(e, first, f))
            join(e, s, f);
    for (int k = 0; k < s->functions.count; k++)
        s->functions.at[k]->sized = (int)(first - e->functions.at);
}

void find_sized(Emitter *e) {
    for (int k = 0; k < e->functions.count; k++)
        e->functions.at[k].sized = -1;
    for (int k = 0; k < e->functions.count && has_structs(e); k++) {
        Function *first = &e->functions.at[k];
        if (!may_join(e, first, first))
            continue;
        Sized s = {.e = e, .functions = functions_like(e, first)};
        find_parameters(&s);
        if (reads_better(&s))
            make_sized(e, &s);
    }
}
