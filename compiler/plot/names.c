#include "plot/plot.h"
#include "support/file.h"

static const char *stem_of(Arena *arena, const char *path, const char *name) {
    static const char *const endings[] = {".jsonl", ".json", ".log"};
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t ending = strlen(endings[i]);
        if (length > ending && strcmp(name + length - ending, endings[i]) == 0)
            return arena_strndup(arena, name, length - ending);
    }
    return length ? name : path;
}

/* The file's name without its ending; with its folders where another file is called the same. */
static const char *file_name(Arena *arena, const PlotRuns *runs, int which) {
    const char *path = runs->at[which].path, *stem = stem_of(arena, path, path_base(path));
    for (int i = 0; i < runs->count; i++)
        if (i != which && strcmp(stem_of(arena, path, path_base(runs->at[i].path)), stem) == 0)
            return stem_of(arena, path, path);
    return stem;
}

static const char *value_of(const PlotRun *run, const char *name) {
    for (int i = 0; i < run->params.count; i++)
        if (strcmp(run->params.at[i].name, name) == 0)
            return run->params.at[i].value;
    return NULL;
}

static bool differs(const PlotRuns *runs, const char *name) {
    const char *first = value_of(&runs->at[0], name);
    for (int i = 1; i < runs->count; i++) {
        const char *other = value_of(&runs->at[i], name);
        if (!first != !other || (first && strcmp(first, other) != 0))
            return true;
    }
    return false;
}

void plot_name_runs(Arena *arena, PlotRuns *runs) {
    for (int r = 0; r < runs->count; r++) {
        PlotRun *run = &runs->at[r];
        Text name = TEXT(arena);
        int told = 0;
        text_puts(&name, file_name(arena, runs, r));
        for (int i = 0; i < run->params.count; i++)
            if (differs(runs, run->params.at[i].name))
                text_printf(&name, "%s%s %s", told++ ? ", " : " (", run->params.at[i].name, run->params.at[i].value);
        text_puts(&name, told ? ")" : "");
        run->name = text_string(&name);
    }
}
