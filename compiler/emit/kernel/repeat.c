#include "emit/kernel/repeat.h"

#include "emit/kernel/function.h"

#include <ctype.h>
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

/* Comments say nothing to the compiler, nor do the lines that they take. */
static const char *without_comments(Arena *arena, const char *text) {
    Text code = TEXT(arena);
    while (*text) {
        const size_t length = code_length(text);
        text_append(&code, text, length);
        if (length)
            text_putc(&code, '\n');
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
    return text_string(&code);
}

/* ---- reading a function: what it says, and its text without what may differ ---- */

typedef struct Reading {
    const Repeats *r;
    Function *f;
    KnownNames locals;
    int mentioned; /* locals */
    Text pattern;
} Reading;

static void read_tensor(Reading *reading, int row) {
    Function *f = reading->f;
    const Emitter *e = reading->r->e;
    int mention = 0;
    while (mention < f->buffers.count && f->buffers.at[mention] != row)
        mention++;
    if (mention == f->buffers.count)
        VEC_PUSH(e->arena, &f->buffers, row);
    text_printf(&reading->pattern, "%%%d %s", mention, c_type(e, e->plan->buffers.at[row].type.dtype));
}

static void read_local(Reading *reading, Known *local) {
    if (local->row < 0)
        local->row = reading->mentioned++;
    text_printf(&reading->pattern, "$%d", local->row);
}

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
    text_puts(&reading->pattern, name);
}

/* What is called after the function, as h_tiles after h; how the rest begins. NULL: it is not. */
static const char *after_function(const Function *f, const char *name) {
    const size_t length = strlen(f->name);
    return strncmp(name, f->name, length) == 0 && name[length] == '_' ? name + length : NULL;
}

/* `says`: a parameter that is named becomes one of the function. */
static void read_word(Reading *reading, Word word, const char *name, bool says) {
    Known *local = find_name(&reading->locals, name), *parameter = find_name(&reading->r->parameters, name);
    const int64_t size = is_constant(word) ? sizes_value(reading->r->e->sizes, word.at, word.length) : 0;
    const char *own = after_function(reading->f, name);
    if (parameter && says)
        reading->f->has[parameter->row] = true;
    if (local && !is_constant(word))
        read_local(reading, local);
    else if (size)
        text_printf(&reading->pattern, "#%lld", (long long)size);
    else if (own)
        text_printf(&reading->pattern, "@%s", own);
    else
        text_puts(&reading->pattern, name);
}

static void read_lines(Reading *reading, const Writer *lines, bool says) {
    Arena *arena = reading->r->e->arena;
    const char *text = without_comments(arena, text_string(&lines->text)), *from = text;
    for (Word word = next_word(text); word.length; word = next_word(from)) {
        const char *name = arena_strndup(arena, word.at, word.length);
        text_append(&reading->pattern, from, (size_t)(word.at - from));
        if (is_member(reading, text, word))
            read_member(reading, name);
        else if (is_designator(text, word))
            text_puts(&reading->pattern, name);
        else
            read_word(reading, word, name, says);
        from = word.at + word.length;
    }
    text_puts(&reading->pattern, from);
}

static const char *read_function(const Repeats *r, Function *f) {
    Reading reading = {.r = r, .f = f, .locals = locals_of(r->e, f), .pattern = TEXT(r->e->arena)};
    f->shared = NEW_ARRAY(r->e->arena, bool, r->shared);
    read_lines(&reading, &f->declarations, false);
    read_lines(&reading, &f->lines, true);
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

static void name_places(Emitter *e) {
    for (int k = 0; k < e->functions.count; k++) {
        Function *f = &e->functions.at[k];
        if (f->places < 2)
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
}

void find_repeats(Emitter *e) {
    const Repeats r = repeats_of(e);
    const char **patterns = NEW_ARRAY(e->arena, const char *, e->functions.count);
    for (int k = 0; k < e->functions.count; k++) {
        Function *f = &e->functions.at[k];
        const char *pattern = read_function(&r, f);
        patterns[k] = program_is_persistent(e, program_of(e, f->kernel)) ? NULL : pattern;
        f->like = first_like(e, patterns, k);
    }
    if (!e->dialect->across)
        keep_programs_apart(e);
    number_places(e);
    name_places(e);
}

const Function *written_function(const Emitter *e, const Kernel *kernel) {
    const Function *f = function_of(e, kernel);
    return &e->functions.at[f->like];
}

/* ---- places ---- */

const char *places_type(const Function *f) {
    return f->type ? f->type : "Tensors";
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

Groups groups_of(Emitter *e, const Phase *launch) {
    Groups groups = {0};
    for (int k = 0; k < launch->kernels.count; k++) {
        const Function *own = function_of(e, launch->kernels.at[k]), *written = &e->functions.at[own->like];
        int row = 0;
        while (row < groups.count && groups.at[row].function != written)
            row++;
        if (row == groups.count)
            VEC_PUSH(e->arena, &groups, ((Group){written, own->place, 0}));
        ENSURE(own->place == groups.at[row].first + groups.at[row].count);
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
