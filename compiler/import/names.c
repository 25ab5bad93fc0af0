/* Names of the file, which may be any bytes, and names of the text, which are identifiers. */
#include "import/importer.h"

#include <ctype.h>
#include <stdlib.h>

enum { LONGEST_NAME = 60, LONGEST_WEIGHT = 90 };

/* ---- tables ---- */

typedef struct Entry {
    const char *name;
    void *item;
} Entry;

struct NameTable {
    Entry *rows; /* a power of two, at most half full */
    size_t count, size;
};

static size_t hash_of(const char *name) {
    size_t hash = 14695981039346656037u;
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 1099511628211u;
    return hash;
}

static Entry *row_of(const struct NameTable *table, const char *name) {
    size_t row = hash_of(name) & (table->size - 1);
    while (table->rows[row].name && strcmp(table->rows[row].name, name) != 0)
        row = (row + 1) & (table->size - 1);
    return &table->rows[row];
}

struct NameTable *names_new(Importer *im) {
    struct NameTable *table = NEW(im->arena, struct NameTable);
    table->size = 256;
    table->rows = NEW_ARRAY(im->arena, Entry, table->size);
    return table;
}

void *names_find(const struct NameTable *table, const char *name) {
    return row_of(table, name)->item;
}

static void grow(Importer *im, struct NameTable *table) {
    struct NameTable larger = {.size = 2 * table->size, .count = table->count};
    larger.rows = NEW_ARRAY(im->arena, Entry, larger.size);
    for (size_t i = 0; i < table->size; i++)
        if (table->rows[i].name)
            *row_of(&larger, table->rows[i].name) = table->rows[i];
    *table = larger;
}

void names_add(Importer *im, struct NameTable *table, const char *name, void *item) {
    Entry *row = row_of(table, name);
    table->count += !row->name;
    *row = (Entry){name, item};
    if (2 * table->count > table->size)
        grow(im, table);
}

/* ---- identifiers ---- */

const char *shown(Importer *im, const char *name) {
    Text text = TEXT(im->arena);
    if (name && strlen(name) > 200)
        name = arena_printf(im->arena, "%.200s...", name);
    text_visible(&text, name ? name : "", "");
    return text_string(&text);
}

/* Words of the language, which name no value, and those that a training knows. */
static bool is_word(const char *name) {
    static const char *const words[] = {
#define WORD(word, token) word,
#define RUNNING(word) word,
#include "support/words.def"
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i], name) == 0)
            return true;
    return false;
}

const char *unique(Importer *im, struct NameTable *table, const char *name, int longest) {
    const char *result = arena_printf(im->arena, "%.*s", longest, name);
    for (int i = 1; names_find(table, result); i++)
        result = arena_printf(im->arena, "%.*s_%d", longest, name, i);
    names_add(im, table, result, (void *)(uintptr_t)result);
    return result;
}

/* Of "layer1/layer1.0", what is said again is left out. */
static void add_part(Text *path, const char *part, size_t length) {
    const char *last = path->length ? strrchr(path->at, '/') : NULL;
    const char *before = last ? last + 1 : path->length ? path->at : "";
    const size_t own = strlen(before);
    if (own && length > own && strncmp(before, part, own) == 0 && part[own] == '.')
        path->length -= own;
    else if (path->length)
        text_putc(path, '/');
    text_append(path, part, length);
}

const char *module_path(Importer *im, const char *name) {
    Text path = TEXT(im->arena);
    const char *end = strrchr(name, '/');
    if (*name != '/' || end == name)
        return NULL;
    for (const char *at = name + 1; at < end; at += strcspn(at, "/") + 1)
        if (strcspn(at, "/"))
            add_part(&path, at, strcspn(at, "/"));
    const char *found = weight_path(im, text_string(&path));
    return *found ? found : NULL;
}

/* What of a name tells most: the module, else all but the numbers that exporters put behind. */
static const char *telling_part(Importer *im, const char *name) {
    const char *module = module_path(im, name);
    if (module)
        return module;
    char *rest = arena_strdup(im->arena, strncmp(name, "onnx::", 6) == 0 ? name + 6 : name + strspn(name, "/"));
    char *output = strstr(rest, "_output_");
    if (output && output != rest)
        *output = '\0';
    return rest;
}

static const char *letters_of(Importer *im, const char *name) {
    Text text = TEXT(im->arena);
    for (const char *c = name; *c; c++) {
        const bool good = isalnum((unsigned char)*c) && (unsigned char)*c < 128;
        if (good)
            text_putc(&text, *c);
        else if (text.length && text.at[text.length - 1] != '_')
            text_putc(&text, '_');
    }
    while (text.length && text.at[text.length - 1] == '_')
        text.at[--text.length] = '\0';
    return text_string(&text);
}

const char *identifier(Importer *im, const char *name, const char *otherwise) {
    const char *letters = letters_of(im, telling_part(im, name));
    if (!*letters)
        letters = otherwise;
    if (isdigit((unsigned char)*letters))
        letters = arena_printf(im->arena, "%s_%s", otherwise, letters);
    if (is_word(letters))
        letters = arena_printf(im->arena, "%s_", letters);
    return unique(im, im->taken, letters, LONGEST_NAME);
}

/* ---- names of weights ---- */

const char *without_ending(Importer *im, const char *name, const char *ending) {
    const size_t length = strlen(name), behind = strlen(ending);
    return length > behind && strcmp(name + length - behind, ending) == 0
               ? arena_strndup(im->arena, name, length - behind)
               : NULL;
}

const char *weight_path(Importer *im, const char *name) {
    Text text = TEXT(im->arena);
    for (const char *c = name; *c && text.length < LONGEST_WEIGHT; c++) {
        const char before = text.length ? text.at[text.length - 1] : '.';
        if (isalnum((unsigned char)*c) && (unsigned char)*c < 128)
            text_putc(&text, *c);
        else if ((*c == '.' || *c == '/' || *c == ':') && before != '.')
            text_putc(&text, '.');
        else if (before != '.' && before != '_' && *c != '.')
            text_putc(&text, '_');
    }
    while (text.length && strchr("._", text.at[text.length - 1]))
        text.at[--text.length] = '\0';
    return text_string(&text);
}
