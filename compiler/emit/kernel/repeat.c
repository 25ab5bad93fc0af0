#include "emit/kernel/repeat.h"

#include "emit/kernel/function.h"
#include "emit/kernel/sized.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

/* ---- names that are known ---- */

typedef enum KnownKind {
    KNOWN_TENSOR,    /* row of plan->buffers */
    KNOWN_SHARED,    /* a field of the data, a flag: row of shared_members */
    KNOWN_PARAMETER, /* of functions */
    KNOWN_LOCAL      /* of a function: its number, -1 before it is mentioned */
} KnownKind;

typedef struct Known {
    const char *name;
    KnownKind kind;
    int row;
} Known;

/* By name, once they are sorted. */
typedef VEC(Known) KnownNames;

static int by_name(const void *a, const void *b) {
    return strcmp(((const Known *)a)->name, ((const Known *)b)->name);
}

static void sort_names(KnownNames *names) {
    if (names->count)
        qsort(names->at, (size_t)names->count, sizeof *names->at, by_name);
}

static Known *find_name(const KnownNames *names, const char *name) {
    const Known key = {.name = name};
    return names->count ? bsearch(&key, names->at, (size_t)names->count, sizeof key, by_name) : NULL;
}

typedef struct Repeats {
    Emitter *e;
    KnownNames members; /* of Tensors */
    KnownNames parameters;
    int shared;
} Repeats;

static Repeats repeats_of(Emitter *e) {
    static const char *const parameters[PARAMETERS] = {"t", "batch", "tile", "shared", "gate"};
    const Members shared = shared_members(e, "");
    Repeats r = {.e = e, .shared = shared.count};
    for (int k = 0; k < e->plan->buffers.count; k++)
        VEC_PUSH(e->arena, &r.members, ((Known){e->tensor[k], KNOWN_TENSOR, k}));
    for (int k = 0; k < shared.count; k++)
        VEC_PUSH(e->arena, &r.members, ((Known){shared.at[k].name, KNOWN_SHARED, k}));
    for (int k = 0; k < PARAMETERS; k++)
        VEC_PUSH(e->arena, &r.parameters, ((Known){parameters[k], KNOWN_PARAMETER, k}));
    sort_names(&r.members);
    sort_names(&r.parameters);
    return r;
}

/* Each once, though scopes that have ended took it again. */
static KnownNames locals_of(const Emitter *e, const Function *f) {
    KnownNames all = {0}, once = {0};
    for (int k = 0; k < f->locals.count; k++)
        VEC_PUSH(e->arena, &all, ((Known){f->locals.at[k], KNOWN_LOCAL, -1}));
    sort_names(&all);
    for (int k = 0; k < all.count; k++)
        if (!k || by_name(&all.at[k - 1], &all.at[k]) != 0)
            VEC_PUSH(e->arena, &once, all.at[k]);
    return once;
}

/* ---- words ---- */

typedef struct Word {
    const char *at;
    size_t length; /* 0: the text has ended */
} Word;

static bool in_word(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

/* The first identifier from `at` on. */
static Word next_word(const char *at) {
    while (*at && !isalpha((unsigned char)*at) && *at != '_') {
        if (isdigit((unsigned char)*at))
            while (in_word(*at) || *at == '.')
                at++;
        else
            at++;
    }
    Word word = {at, 0};
    while (in_word(at[word.length]))
        word.length++;
    return word;
}

static bool is_constant(Word word) {
    for (size_t k = 0; k < word.length; k++)
        if (islower((unsigned char)word.at[k]))
            return false;
    return true;
}

/* Of the line's code: without a comment, and without the spaces before that. */
static size_t code_length(const char *line) {
    size_t length = 0;
    while (line[length] && line[length] != '\n' && !(line[length] == '/' && line[length + 1] == '/'))
        length++;
    while (length && line[length - 1] == ' ')
        length--;
    return length;
}

/* ---- reading a function: what it says, and its text without what may differ ---- */

typedef struct Reading {
    const Repeats *r;
    Function *f;
    KnownNames locals;
    int mentioned; /* locals */
    Text pattern, shape;
    const char *code; /* the line that is read, without its comment */
    size_t at;        /* where that begins */
    bool declares;    /* it is of the declarations */
} Reading;

/* To both texts. */
static void put_read(Reading *reading, const char *text, size_t length) {
    text_append(&reading->pattern, text, length);
    text_append(&reading->shape, text, length);
}

static void put_number(Reading *reading, const char *sign, int64_t number) {
    const char *text = arena_printf(reading->r->e->arena, "%s%lld", sign, (long long)number);
    put_read(reading, text, strlen(text));
}

static void put_mark(Reading *reading, MarkKind kind, Word word, int64_t value, const char *text) {
    const size_t at = reading->at + (size_t)(word.at - reading->code);
    VEC_PUSH(reading->r->e->arena, &reading->f->marks, ((Mark){kind, value, text, reading->declares, at, word.length}));
}

static void read_tensor(Reading *reading, int row) {
    Function *f = reading->f;
    const Emitter *e = reading->r->e;
    int mention = 0;
    while (mention < f->buffers.count && f->buffers.at[mention] != row)
        mention++;
    if (mention == f->buffers.count)
        VEC_PUSH(e->arena, &f->buffers, row);
    const char *type = c_type(e, e->plan->buffers.at[row].type.dtype);
    put_number(reading, "%", mention);
    put_read(reading, " ", 1);
    put_read(reading, type, strlen(type));
}

static void read_local(Reading *reading, Known *local) {
    if (local->row < 0)
        local->row = reading->mentioned++;
    put_number(reading, "$", local->row);
}

/* ---- numbers that may differ ---- */

/* "3", "0.5f", "1e-05f" */
static size_t number_length(const char *at) {
    size_t length = 0;
    while (in_word(at[length]) || at[length] == '.' ||
           ((at[length] == '-' || at[length] == '+') && at[length - 1] == 'e'))
        length++;
    return length;
}

/* Where the language wants a constant, though a function is given the number: in directives, enumerations, extents of arrays. */
static bool wants_constant(const Reading *reading, const char *at) {
    const char *code = reading->code + strspn(reading->code, " ");
    if (*code == '#')
        return true;
    if (reading->r->e->dialect->templates)
        return false;
    const char *open = at, *close = at;
    for (int depth = 0; open > code && (depth || *open != '['); open--)
        depth += *open == ']' ? 1 : *open == '[' ? -1 : 0;
    while (*close && *close != ']')
        close++;
    bool extent = *open == '[' && *close == ']';
    for (; extent && open < close; open++)
        extent = !islower((unsigned char)*open);
    return extent || strncmp(code, "enum ", strlen("enum ")) == 0;
}

/* What a whole number `value` could make of the real one. */
static bool is_reciprocal(const Emitter *e, double real, int64_t value) {
    const double of = 1 / (double)value;
    return value > 1 && (e->options->f64 ? of == real : 1 / (float)value == (float)real);
}

/* Adds the mark of a number, if it may differ, and says how that reads in the shape; NULL: it may not. */
static const char *mark_number(Reading *reading, Word word) {
    const Emitter *e = reading->r->e;
    const double most = 1 << 24; /* a float holds all up to here */
    const char *text = arena_strndup(e->arena, word.at, word.length);
    char *end;
    const double real = strtod(text, &end);
    if (wants_constant(reading, word.at) || *end == 'x' || real > INT32_MAX)
        return NULL;
    if (strspn(text, "0123456789") == word.length) {
        put_mark(reading, MARK_SIZE, word, (int64_t)real, text);
        return "#";
    }
    const int64_t inverse = real > 1 / most ? llround(1 / real) : 0;
    const bool whole = real > 1 && real < most && real == floor(real);
    if (!text_same(end, e->options->f64 ? "" : "f") || (!whole && !is_reciprocal(e, real, inverse)))
        return NULL;
    put_mark(reading, whole ? MARK_COUNT : MARK_RECIPROCAL, word, whole ? (int64_t)real : inverse, text);
    return whole ? "#n" : "#r";
}

/* Between words: numbers and signs. */
static void read_signs(Reading *reading, const char *from, const char *to) {
    while (from < to) {
        const Word word = {from, isdigit((unsigned char)*from) ? number_length(from) : 1};
        const char *shape = isdigit((unsigned char)*from) ? mark_number(reading, word) : NULL;
        text_append(&reading->pattern, from, word.length);
        if (shape)
            text_puts(&reading->shape, shape);
        else
            text_append(&reading->shape, from, word.length);
        from += word.length;
    }
}

/* ---- words ---- */

/* ".batch = BATCH", in a list */
static bool is_designator(const char *text, Word word) {
    return word.at - text >= 2 && word.at[-1] == '.' && (word.at[-2] == '{' || word.at[-2] == ' ');
}

/* "t.h", "t->h" */
static bool is_member(const Reading *reading, const char *text, Word word) {
    const char *prefix = reading->r->e->dialect->member, *at = word.at - strlen(prefix);
    return at >= text && strncmp(at, prefix, strlen(prefix)) == 0 && (at == text || !in_word(at[-1]));
}

static void read_member(Reading *reading, const char *name) {
    const Known *member = find_name(&reading->r->members, name);
    if (member && member->kind == KNOWN_TENSOR) {
        read_tensor(reading, member->row);
        return;
    }
    if (member)
        reading->f->shared[member->row] = true;
    put_read(reading, name, strlen(name));
}

/* What is called after the function, as h_terms after h; how the rest begins. NULL: it is not. */
static const char *after_function(const Function *f, const char *name) {
    const size_t length = strlen(f->name);
    return strncmp(name, f->name, length) == 0 && name[length] == '_' ? name + length : NULL;
}

static void read_size(Reading *reading, Word word, const char *name, int64_t size) {
    const char *text = arena_printf(reading->r->e->arena, "#%lld", (long long)size);
    text_puts(&reading->pattern, text);
    if (size > INT32_MAX || wants_constant(reading, word.at)) {
        text_puts(&reading->shape, text);
        return;
    }
    put_mark(reading, MARK_SIZE, word, size, name);
    text_puts(&reading->shape, "#");
}

static void read_own(Reading *reading, const char *own) {
    put_read(reading, "@", 1);
    put_read(reading, own, strlen(own));
}

/* A parameter that the lines name becomes one of the function. */
static void read_word(Reading *reading, Word word, const char *name) {
    Known *local = find_name(&reading->locals, name), *parameter = find_name(&reading->r->parameters, name);
    const int64_t size = is_constant(word) ? sizes_value(reading->r->e->sizes, word.at, word.length) : 0;
    const char *own = after_function(reading->f, name);
    if (parameter && !reading->declares)
        reading->f->has[parameter->row] = true;
    if (local && !is_constant(word)) {
        read_local(reading, local);
    } else if (size) {
        read_size(reading, word, name, size);
    } else if (own) {
        read_own(reading, own);
    } else {
        put_read(reading, name, strlen(name));
    }
}

static void read_code(Reading *reading) {
    const char *from = reading->code;
    for (Word word = next_word(from); word.length; word = next_word(from)) {
        const char *name = arena_strndup(reading->r->e->arena, word.at, word.length);
        read_signs(reading, from, word.at);
        if (is_member(reading, reading->code, word))
            read_member(reading, name);
        else if (is_designator(reading->code, word))
            put_read(reading, name, strlen(name));
        else
            read_word(reading, word, name);
        from = word.at + word.length;
    }
    read_signs(reading, from, from + strlen(from));
    put_read(reading, "\n", 1);
}

/* Comments say nothing to the compiler, nor do the lines that they take. */
static void read_lines(Reading *reading, const Writer *lines) {
    const char *text = text_string(&lines->text);
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        reading->at = (size_t)(line - text);
        reading->code = arena_strndup(reading->r->e->arena, line, code_length(line));
        if (*reading->code)
            read_code(reading);
    }
}

static const char *read_function(const Repeats *r, Function *f) {
    Arena *arena = r->e->arena;
    Reading reading = {
        .r = r, .f = f, .locals = locals_of(r->e, f), .pattern = TEXT(arena), .shape = TEXT(arena), .declares = true};
    f->shared = NEW_ARRAY(arena, bool, r->shared);
    read_lines(&reading, &f->tables);
    read_lines(&reading, &f->declarations);
    reading.declares = false;
    read_lines(&reading, &f->lines);
    f->shape = text_string(&reading.shape);
    return text_string(&reading.pattern);
}

/* ---- equal functions ---- */

/* The first function with the pattern of function `row`, or that one itself. NULL is the pattern of those that may not repeat. */
static int first_like(const Emitter *e, const char *const *patterns, int row) {
    for (int k = 0; k < row && patterns[row]; k++)
        if (e->functions.at[k].like == k && patterns[k] && strcmp(patterns[k], patterns[row]) == 0)
            return k;
    return row;
}

/* Those of several sizes have one type. */
static void name_places(Emitter *e) {
    for (int k = 0; k < e->functions.count; k++) {
        Function *f = &e->functions.at[k];
        if (f->like != k || !has_own_tensors(f))
            continue;
        const Function *written = f->sized < 0 ? f : &e->functions.at[f->sized];
        f->type = written->type;
        f->at = written->at;
        if (written != f)
            continue;
        f->type = names_claim(&e->globals, arena_printf(e->arena, "%s_tensors", f->name));
        f->at = names_claim(&e->members, arena_printf(e->arena, "%s_at", f->name));
    }
}

/* Some program calls function `like`, or those that are equal to it, more than once. */
static bool comes_again(const Emitter *e, int like) {
    for (int p = 0; p < e->plan->program_count; p++) {
        int count = 0;
        for (int k = like; k < e->functions.count; k++)
            count += e->functions.at[k].like == like && program_of(e, e->functions.at[k].kernel) == e->programs[p];
        if (count > 1)
            return true;
    }
    return false;
}

/* What only comes once in each program is a function of each. */
static void keep_programs_apart(Emitter *e) {
    for (int like = 0; like < e->functions.count; like++)
        if (e->functions.at[like].like == like && !comes_again(e, like))
            for (int k = like; k < e->functions.count; k++)
                if (e->functions.at[k].like == like)
                    e->functions.at[k].like = k;
}

static void number_places(Emitter *e) {
    for (int k = 0; k < e->functions.count; k++) {
        Function *f = &e->functions.at[k];
        f->place = e->functions.at[f->like].places++;
    }
    for (int k = 0; k < e->functions.count; k++) {
        const NumberedFunctions all = functions_at(e, &e->functions.at[k]);
        for (int row = 0; row < all.count && e->functions.at[k].general; row++)
            if (all.at[row]->place == 0)
                all.at[row]->first = row;
    }
}

void find_repeats(Emitter *e) {
    const Repeats r = repeats_of(e);
    const char **patterns = NEW_ARRAY(e->arena, const char *, e->functions.count);
    for (int k = 0; k < e->functions.count; k++) {
        Function *f = &e->functions.at[k];
        const char *pattern = read_function(&r, f);
        const bool stands = program_is_persistent(e, program_of(e, f->kernel)) || flat_of_kernel(e, f->kernel) != NULL;
        patterns[k] = stands ? NULL : pattern;
        f->shape = stands || f->sums ? NULL : f->shape;
        f->like = first_like(e, patterns, k);
    }
    if (!e->dialect->across)
        keep_programs_apart(e);
    find_sized(e);
    number_places(e);
    name_places(e);
}

const Function *written_function(const Emitter *e, const Kernel *kernel) {
    const Function *f = function_of(e, kernel);
    return &e->functions.at[f->like];
}

/* ---- places ---- */

bool has_own_tensors(const Function *f) {
    return f->places > 1 || f->sized >= 0;
}

static bool stands_with(const Emitter *e, const Function *each, const Function *f) {
    const int row = (int)(f - e->functions.at);
    return each->like == each - e->functions.at && (each == f || (each->sized >= 0 && each->sized == row));
}

NumberedFunctions functions_at(Emitter *e, const Function *f) {
    NumberedFunctions all = {0};
    for (int k = 0; k < e->functions.count; k++)
        for (int at = k; at < e->functions.count && stands_with(e, &e->functions.at[k], f); at++)
            if (e->functions.at[at].like == k)
                VEC_PUSH(e->arena, &all, &e->functions.at[at]);
    return all;
}

Members shared_by(Emitter *e, const Function *f, const char *arrow) {
    const Members all = shared_members(e, arrow);
    Members used = {0};
    for (int k = 0; k < all.count; k++)
        if (f->shared[k])
            VEC_PUSH(e->arena, &used, all.at[k]);
    return used;
}

/* ---- groups ---- */

static bool is_next_of(const Group *group, const Function *written, int place) {
    return group->function == written && place == group->first + group->count;
}

Groups groups_of(Emitter *e, const Phase *launch) {
    Groups groups = {0};
    for (int k = 0; k < launch->kernels.count; k++) {
        const Function *own = function_of(e, launch->kernels.at[k]), *written = &e->functions.at[own->like];
        int row = 0;
        while (row < groups.count && !is_next_of(&groups.at[row], written, own->place))
            row++;
        if (row == groups.count)
            VEC_PUSH(e->arena, &groups, ((Group){written, own->place, 0}));
        groups.at[row].count++;
    }
    return groups;
}

bool same_groups(const Groups *a, const Groups *b) {
    bool same = a->count == b->count;
    for (int k = 0; k < a->count && same; k++)
        same = a->at[k].function == b->at[k].function && a->at[k].count == b->at[k].count;
    return same;
}
