/* Reading files: UTF-8 text, includes relative to the includer, each file once, no cycles. */
#include "front/parse.h"
#include "support/file.h"
#include "support/text.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

enum { MAX_FILE_BYTES = 16 << 20, MAX_INCLUDES = 32 };

typedef struct Loaded {
    dev_t device;
    ino_t inode;
    const Source *source;
} Loaded;

struct Loader {
    Arena *arena;
    VEC(Loaded) files;
};

Loader *loader_new(Arena *arena) {
    Loader *loader = NEW(arena, Loader);
    loader->arena = arena;
    return loader;
}

/* ---- text ---- */

/* Bytes of the character at `at`; 0: it has no place in a model, where what is read is what is seen. */
static int character_length(const unsigned char *at, const unsigned char *end) {
    bool line_end = *at == '\n' || (*at == '\r' && end - at > 1 && at[1] == '\n');
    return line_end || *at == '\t' ? 1 : visible_length(at, end);
}

/* What cannot be shown becomes question marks, so that the report can quote the line. */
static void make_printable(unsigned char *at, const unsigned char *end) {
    while (at < end) {
        int length = character_length(at, end);
        if (length == 0)
            *at = '?';
        at += length ? length : 1;
    }
}

static void report_character(Diag *diag, Arena *arena, Span span, const unsigned char *at, int length) {
    Text bytes = TEXT(arena);
    for (int i = 0; i < length || i == 0; i++)
        text_printf(&bytes, " 0x%02x", at[i]);
    const char *plural = length > 1 ? "s" : "";
    if (*at == '\r')
        diag_error(diag, span, "a carriage return (byte 0x0d) ends no line by itself; a newline must follow it");
    else
        diag_error(diag, span,
                   length ? "a control character (byte%s%s) does not belong in a model"
                          : "this is not UTF-8 text (byte%s%s)",
                   plural, text_string(&bytes));
}

static bool check_text(Diag *diag, Arena *arena, const Source *source, unsigned char *text) {
    const unsigned char *end = text + source->size;
    unsigned char *at = text;
    for (int length; at < end; at += length)
        if ((length = character_length(at, end)) == 0)
            break;
    if (at == end)
        return true;
    unsigned char bytes[4] = {0};
    int length = utf8_length(at, end);
    memcpy(bytes, at, length ? (size_t)length : 1);
    make_printable(text, end);
    uint32_t place = (uint32_t)(at - text);
    report_character(diag, arena, (Span){source, place, place + 1}, bytes, length);
    return false;
}

/* ---- files ---- */

static char *read_all(FILE *file, Arena *arena, size_t size, size_t *got) {
    char *text = arena_alloc(arena, size + 1);
    *got = fread(text, 1, size, file);
    return ferror(file) ? NULL : text;
}

static Source *read_failed(Diag *diag, Span at, const char *path, const char *why) {
    diag_error(diag, at, "cannot read '%s': %s", path, why);
    return NULL;
}

/* Editors of Windows write one; everywhere else in a model it would be a character that nobody sees. */
static char *behind_byte_order_mark(char *text, size_t *size) {
    static const char mark[] = "\xef\xbb\xbf";
    const size_t length = sizeof mark - 1, skip = *size >= length && memcmp(text, mark, length) == 0 ? length : 0;
    *size -= skip;
    return text + skip;
}

/* What a file is that is no text, by its first bytes; NULL: nothing that is known. */
static const char *kind_of_bytes(const char *text, size_t size) {
    static const struct {
        size_t at, length;
        const char *bytes, *kind;
    } kinds[] = {{0, 4, "\177ELF", "it is a program or a library, no model text: ./PROGRAM runs it"},
                 {5, 4, "\0\0\0{", "it is a checkpoint, no model text: ./PROGRAM info FILE shows what it holds"},
                 {0, 4, "PK\3\4", "it is a zip archive, no model text"},
                 {0, 2, "\x1f\x8b", "it is a file of gzip, no model text"}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (size >= kinds[i].at + kinds[i].length && memcmp(text + kinds[i].at, kinds[i].bytes, kinds[i].length) == 0)
            return kinds[i].kind;
    return NULL;
}

static Source *read_open(Diag *diag, Arena *arena, FILE *file, const char *path, Span at) {
    struct stat info;
    if (fstat(fileno(file), &info) != 0)
        return read_failed(diag, at, path, strerror(errno));
    if (info.st_size > MAX_FILE_BYTES)
        return read_failed(diag, at, path, "it is larger than 16 MB, no model text");
    Source *source = NEW(arena, Source);
    source->path = path;
    source->included_at = at;
    char *text = read_all(file, arena, S_ISREG(info.st_mode) ? (size_t)info.st_size : MAX_FILE_BYTES, &source->size);
    if (!text)
        return read_failed(diag, at, path, strerror(errno));
    const char *kind = kind_of_bytes(text, source->size);
    if (kind)
        return read_failed(diag, at, path, kind);
    text = behind_byte_order_mark(text, &source->size);
    source->text = text;
    source_index(arena, source);
    return check_text(diag, arena, source, (unsigned char *)text) ? source : NULL;
}

Source *source_read(Diag *diag, Arena *arena, const char *path, Span included_at) {
    const char *why;
    int descriptor = file_open(path, &why);
    if (descriptor < 0)
        return read_failed(diag, included_at, path, why);
    FILE *file = fdopen(descriptor, "rb");
    Source *source = read_open(diag, arena, file, arena_strdup(arena, path), included_at);
    fclose(file);
    return source;
}

/* ---- includes ---- */

static const Source *find_loaded(const Loader *loader, const struct stat *info) {
    for (int i = 0; i < loader->files.count; i++)
        if (loader->files.at[i].device == info->st_dev && loader->files.at[i].inode == info->st_ino)
            return loader->files.at[i].source;
    return NULL;
}

static void remember(Loader *loader, const Source *source) {
    struct stat info;
    if (stat(source->path, &info) == 0)
        VEC_PUSH(loader->arena, &loader->files, ((Loaded){info.st_dev, info.st_ino, source}));
}

static const char *beside(Arena *arena, const char *includer, const char *path) {
    const char *slash = strrchr(includer, '/');
    if (path[0] == '/' || !slash)
        return path;
    return arena_printf(arena, "%.*s%s", (int)(slash - includer + 1), includer, path);
}

static bool includes_itself(const Source *loaded, const Source *includer) {
    for (const Source *s = includer; s; s = s->included_at.source)
        if (s == loaded)
            return true;
    return false;
}

/* A parser runs on the stack of the one that met the include. */
static bool nests_too_deeply(Parser *parser, Span at) {
    int depth = 1;
    for (const Source *s = parser->source; s->included_at.source; s = s->included_at.source)
        depth++;
    if (depth > MAX_INCLUDES)
        diag_error(parser->diag, at, "includes are nested more than %d deep", MAX_INCLUDES);
    return depth > MAX_INCLUDES;
}

void parser_include(Parser *parser, Name path, Span statement) {
    if (!parser->loader)
        return;
    const char *file = beside(parser->arena, parser->source->path, path.text);
    struct stat info;
    const Source *loaded = stat(file, &info) == 0 ? find_loaded(parser->loader, &info) : NULL;
    if (loaded && includes_itself(loaded, parser->source))
        diag_error(parser->diag, path.span, "'%s' includes itself", loaded->path);
    if (loaded || nests_too_deeply(parser, path.span))
        return;
    statement.begin = path.span.begin;
    Source *source = source_read(parser->diag, parser->arena, file, statement);
    if (!source)
        return;
    remember(parser->loader, source);
    parse_source(parser->diag, parser->ast, parser->loader, source);
}

/* ---- the whole ---- */

static void check_body(Diag *diag, const StmtList *body) {
    for (int i = 0; i < body->count; i++)
        if (body->at[i]->depth > MAX_DEPTH)
            diag_error(diag, body->at[i]->span, "this is nested too deeply, more than %d levels", MAX_DEPTH);
}

static void check_fn(Diag *diag, const Fn *fn) {
    for (int i = 0; i < fn->params.count; i++)
        if (fn->params.at[i].value && fn->params.at[i].value->depth > MAX_DEPTH)
            diag_error(diag, fn->params.at[i].name.span, "this is nested too deeply, more than %d levels", MAX_DEPTH);
    check_body(diag, &fn->body);
}

/* Later walks over the tree are recursive. */
static void check_depth(Diag *diag, const Ast *ast) {
    for (int i = 0; i < ast->blocks.count; i++)
        check_body(diag, &ast->blocks.at[i]->body);
    for (int i = 0; i < ast->fns.count; i++)
        check_fn(diag, ast->fns.at[i]);
}

Ast *front_parse(Diag *diag, Arena *arena, const char *path) {
    int errors = diag_errors(diag);
    Source *source = source_read(diag, arena, path, (Span){0});
    if (!source)
        return NULL;
    Ast *ast = NEW(arena, Ast);
    ast->arena = arena;
    Loader *loader = loader_new(arena);
    remember(loader, source);
    parse_source(diag, ast, loader, source);
    check_depth(diag, ast);
    return diag_errors(diag) == errors ? ast : NULL;
}
