#include "emit/kernel/repeat.h"

#include "emit/kernel/function.h"

#include <ctype.h>
#include <stdlib.h>

/* ---- tensors by name ---- */

typedef struct NamedBuffer {
    const char *name;
    int row; /* of plan->buffers */
} NamedBuffer;

typedef struct Repeats {
    Emitter *e;
    NamedBuffer *buffers; /* by name */
    int buffer_count;
} Repeats;

static int by_name(const void *a, const void *b) {
    return strcmp(((const NamedBuffer *)a)->name, ((const NamedBuffer *)b)->name);
}

static Repeats repeats_of(Emitter *e) {
    int count = e->plan->buffers.count;
    Repeats r = {e, NEW_ARRAY(e->arena, NamedBuffer, count), count};
    for (int k = 0; k < count; k++)
        r.buffers[k] = (NamedBuffer){e->tensor[k], k};
    qsort(r.buffers, (size_t)count, sizeof *r.buffers, by_name);
    return r;
}

/* -1: a field of the data, a flag. */
static int buffer_named(const Repeats *r, const char *name) {
    const NamedBuffer key = {name, 0};
    const NamedBuffer *found = bsearch(&key, r->buffers, (size_t)r->buffer_count, sizeof key, by_name);
    return found ? found->row : -1;
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

/* "float x =", "auto &x;", "Pack<float, 4> x," and so on: behind a type, and no call. */
static bool is_declared(const char *text, Word word) {
    const char *before = word.at, *after = word.at + word.length;
    while (before > text && before[-1] == ' ')
        before--;
    while (*after == ' ')
        after++;
    bool typed = before > text && ((before < word.at && in_word(before[-1])) || strchr("*&>", before[-1]));
    return typed && *after && strchr("=;,)[{:", *after) && strncmp(after, "==", 2) != 0;
}

/* ---- the text of a function, without what may differ ---- */

typedef VEC(const char *) Words;

static int word_row(const Words *words, const char *word) {
    for (int k = 0; k < words->count; k++)
        if (strcmp(words->at[k], word) == 0)
            return k;
    return -1;
}

static Words declared_words(const Repeats *r, const char *text) {
    Words words = {0};
    for (Word word = next_word(text); word.length; word = next_word(word.at + word.length)) {
        const char *name = arena_strndup(r->e->arena, word.at, word.length);
        if (!is_constant(word) && is_declared(text, word) && word_row(&words, name) < 0 && !names_reserved(name))
            VEC_PUSH(r->e->arena, &words, name);
    }
    return words;
}

static void replace_tensor(const Repeats *r, Function *f, int row, Text *out) {
    int mention = 0;
    while (mention < f->buffers.count && f->buffers.at[mention] != row)
        mention++;
    if (mention == f->buffers.count)
        VEC_PUSH(r->e->arena, &f->buffers, row);
    text_printf(out, "%%%d %s", mention, c_type(r->e, r->e->plan->buffers.at[row].type.dtype));
}

/* "t.h", "t->h" */
static bool is_tensor(const Repeats *r, const char *text, Word word) {
    const char *prefix = r->e->dialect->member, *at = word.at - strlen(prefix);
    return at >= text && strncmp(at, prefix, strlen(prefix)) == 0 && (at == text || !in_word(at[-1]));
}

static void replace_word(const Repeats *r, Function *f, const Words *declared, const char *text, Word word, Text *out) {
    const char *name = arena_strndup(r->e->arena, word.at, word.length);
    bool member = is_tensor(r, text, word);
    int buffer = member ? buffer_named(r, name) : -1, row = member ? -1 : word_row(declared, name);
    int64_t size = !member && is_constant(word) ? sizes_value(r->e->sizes, word.at, word.length) : 0;
    if (buffer >= 0)
        replace_tensor(r, f, buffer, out);
    else if (row >= 0)
        text_printf(out, "$%d", row);
    else if (size)
        text_printf(out, "#%lld", (long long)size);
    else
        text_puts(out, name);
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

static const char *pattern_of(const Repeats *r, Function *f) {
    Arena *arena = r->e->arena;
    const char *text = without_comments(
        arena, arena_printf(arena, "%s%s", text_string(&f->declarations.text), text_string(&f->lines.text)));
    const Words declared = declared_words(r, text);
    Text out = TEXT(arena);
    const char *from = text;
    for (Word word = next_word(text); word.length; word = next_word(from)) {
        text_append(&out, from, (size_t)(word.at - from));
        replace_word(r, f, &declared, text, word, &out);
        from = word.at + word.length;
    }
    text_puts(&out, from);
    return text_string(&out);
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
        const char *pattern = pattern_of(&r, f);
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
    const char *text = text_string(&f->lines.text);
    Members used = {0};
    for (int k = 0; k < all.count; k++)
        if (has_word(text, arena_printf(e->arena, "%s%s", e->dialect->member, all.at[k].name)))
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
