/* The statements of the model above the kernel that carries them out. */
#include "emit/program.h"

enum { MOST_QUOTED = 4 };

const char *source_path(const Module *module) {
    const char *path = module->source->path, *slash = strrchr(path, '/');
    return path[0] == '/' && slash ? slash + 1 : path;
}

int line_of(Span src) {
    int line = 0, column;
    if (src.source)
        span_position(src, &line, &column);
    return line;
}

const char *line_text(Arena *arena, const Source *source, int number) {
    const char *line = source->text;
    for (int k = 1; k < number; k++)
        line = strchr(line, '\n') + 1;
    line += strspn(line, " \t");
    size_t length = strcspn(line, "\n#");
    while (length > 0 && strchr(" \t\r", line[length - 1]))
        length--;
    Text text = TEXT(arena);
    for (size_t k = 0; k < length; k++)
        if (line[k] != ' ' || line[k + 1] != ' ')
            text_putc(&text, line[k]);
    return text_string(&text);
}

typedef struct Place {
    const Source *source;
    int line;
} Place;
typedef VEC(Place) Places;

static void add_place(Arena *arena, Places *places, Span src) {
    Place place = {src.source, line_of(src)};
    for (int k = 0; k < places->count; k++)
        if (places->at[k].source == place.source && places->at[k].line == place.line)
            return;
    if (!src.source)
        return;
    VEC_PUSH(arena, places, place);
    for (int k = places->count - 1; k > 0 && places->at[k - 1].line > place.line; k--) {
        places->at[k] = places->at[k - 1];
        places->at[k - 1] = place;
    }
}

static void quote(const Emitter *e, const Place *place, Writer *out) {
    const char *path = place->source == e->module->source ? source_path(e->module) : place->source->path;
    const char *at = arena_printf(e->arena, "%s:%d", path, place->line);
    const char *text = line_text(e->arena, place->source, place->line);
    int room = CODE_COLUMNS - 3 - (int)strlen(text);
    write_line(out, "// %s%*s", text, room > (int)strlen(at) ? room : (int)strlen(at) + 2, at);
}

void write_statements_of(Emitter *e, const Kernel *kernel, Writer *out) {
    Places places = {0};
    for (int k = 0; k < kernel->nodes.count; k++)
        add_place(e->arena, &places, kernel->nodes.at[k]->src);
    for (int k = 0; k < places.count && k < MOST_QUOTED; k++)
        quote(e, &places.at[k], out);
    if (places.count > MOST_QUOTED)
        write_line(out, "// ... and %d more lines", places.count - MOST_QUOTED);
    write_line(out, "//");
}
