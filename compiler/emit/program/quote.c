/* The statements of the model above the kernel that carries them out. */
#include "emit/program/program.h"

#include "emit/kernel/function.h"
#include "support/file.h"

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

/* A line of a model file. */
typedef struct Place {
    const Source *source;
    uint32_t begin, end; /* in the text */
    int line;
    bool forward; /* the kernel computes what the line says, not only a gradient of it */
} Place;
typedef VEC(Place) Places;

static bool is_at(Span src, const Place *place) {
    return src.source == place->source && src.begin >= place->begin && src.begin <= place->end;
}

static Place place_of(Span src) {
    const char *text = src.source->text;
    Place place = {src.source, src.begin, src.begin, line_of(src), false};
    while (place.begin > 0 && text[place.begin - 1] != '\n')
        place.begin--;
    while (text[place.end] && text[place.end] != '\n')
        place.end++;
    return place;
}

static void add_place(Arena *arena, Places *places, Span src, bool forward) {
    for (int k = 0; k < places->count; k++)
        if (is_at(src, &places->at[k])) {
            places->at[k].forward |= forward;
            return;
        }
    if (!src.source)
        return;
    Place place = place_of(src);
    place.forward = forward;
    VEC_PUSH(arena, places, place);
    for (int k = places->count - 1; k > 0 && places->at[k - 1].line > place.line; k--) {
        places->at[k] = places->at[k - 1];
        places->at[k - 1] = place;
    }
}

int forward_nodes(const Graph *g) {
    int last = g->training ? 0 : g->nodes.count;
    for (int k = 0; k < g->roots.count; k++)
        if (g->roots.at[k]->op->table == TABLE_REPORT && g->roots.at[k]->id > last)
            last = g->roots.at[k]->id;
    return last;
}

static bool has_forward_part(const Graph *g, const Place *place) {
    for (int k = 0, count = forward_nodes(g); k < count; k++)
        if (is_at(g->nodes.at[k]->src, place))
            return true;
    return false;
}

static void quote(const Emitter *e, const Graph *g, const Place *place, Writer *out) {
    const char *path = source_path(e->module);
    if (place->source != e->module->source)
        path =
            path_in(e->arena, path_folder(e->arena, path), path_beside(place->source->path, e->module->source->path));
    const char *at = arena_printf(e->arena, "%s:%d", path, place->line);
    const char *what = !place->forward && has_forward_part(g, place) ? "gradient of " : "";
    const char *text = arena_printf(e->arena, "%s%s", what, line_text(e->arena, place->source, place->line));
    int room = CODE_COLUMNS - 3 - (int)strlen(text);
    write_remark(out, "%s%*s", text, room > (int)strlen(at) ? room : (int)strlen(at) + 2, at);
}

void write_statements_of(Emitter *e, const Kernel *kernel, Writer *out) {
    Places places = {0};
    const Graph *g = program_of(e, kernel)->graph;
    int forward = forward_nodes(g);
    for (int k = 0; k < kernel->nodes.count; k++)
        add_place(e->arena, &places, kernel->nodes.at[k]->src, kernel->nodes.at[k]->id < forward);
    int quoted = 0;
    for (int backward = 0; backward < 2; backward++)
        for (int k = 0; k < places.count; k++)
            if (places.at[k].forward != backward && quoted++ < MOST_QUOTED)
                quote(e, g, &places.at[k], out);
    if (places.count > MOST_QUOTED)
        write_remark(out, "... and %d more lines", places.count - MOST_QUOTED);
}
