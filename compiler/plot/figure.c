/* The page: title, legend, a panel for each metric. */
#include "plot/matrix.h"
#include "plot/panel.h"

enum {
    WIDTH = 960,
    MARGIN = 20,
    HEADER = 62,
    LEGEND_LINE = 22,
    PANEL = 300,
    LONE_PANEL = 400,
    SAMPLE = 30,
    LONGEST = 110
};

typedef VEC(const char *) Names;

typedef struct Page {
    Arena *arena;
    const PlotRuns *runs;
    const PlotRequest *request;
    Picture *picture;
    double x, y; /* where the legend goes on */
} Page;

/* ---- title ---- */

static bool has_name(const Names *names, const char *name) {
    for (int i = 0; i < names->count; i++)
        if (strcmp(names->at[i], name) == 0)
            return true;
    return false;
}

static const char *title_of(const Page *page) {
    Names models = {0};
    Text title = TEXT(page->arena);
    if (page->request->title)
        return page->request->title;
    for (int r = 0; r < page->runs->count; r++) {
        const char *model = page->runs->at[r].model;
        if (!model || has_name(&models, model))
            continue;
        text_printf(&title, "%s%s", models.count ? ", " : "Training of ", model);
        VEC_PUSH(page->arena, &models, model);
    }
    return models.count ? text_string(&title) : "Training";
}

/* What the only run was; of several, the legend says how they differ. */
static const char *note_of(const Page *page) {
    const PlotRun *run = &page->runs->at[0];
    Text note = TEXT(page->arena);
    if (page->runs->count > 1)
        return arena_printf(page->arena, "%d runs", page->runs->count);
    text_puts(&note, run->name);
    for (int i = 0; i < run->params.count; i++)
        text_printf(&note, "%s%s %s", i ? ", " : ": ", run->params.at[i].name, run->params.at[i].value);
    return text_string(&note);
}

const char *plot_shortened(Arena *arena, const char *text, int most) {
    const unsigned char *at = (const unsigned char *)text, *end = at + strlen(text), *cut = at;
    for (int count = 0; at < end; count++) {
        if (count == most)
            return arena_printf(arena, "%.*s\u2026", (int)(cut - (const unsigned char *)text), text);
        cut = count == most - 1 ? at : cut;
        int length = utf8_length(at, end);
        at += length ? length : 1;
    }
    return text;
}

/* ---- legend ---- */

int plot_characters(const char *text) {
    int count = 0;
    for (; *text; text++)
        count += ((unsigned char)*text & 0xC0) != 0x80;
    return count;
}

static void draw_entry(Page *page, Look look, const char *label) {
    double width = SAMPLE + 8 + 6.7 * plot_characters(label) + 20;
    if (page->x > MARGIN && page->x + width > WIDTH - MARGIN) {
        page->x = MARGIN;
        page->y += LEGEND_LINE;
    }
    Place ends[] = {{page->x, page->y - 4}, {page->x + SAMPLE, page->y - 4}};
    picture_line(page->picture, MARK_SAMPLE, look, ends, 2);
    if (!look.thin) {
        picture_marker(page->picture, look, page->x + SAMPLE / 2.0, page->y - 4, NULL);
        page->picture->marks.at[page->picture->marks.count - 1].beside = true;
    }
    picture_text(page->picture, ROLE_ENTRY, page->x + SAMPLE + 8, page->y, label);
    page->x += width;
}

static void next_line(Page *page) {
    page->x = MARGIN;
    page->y += LEGEND_LINE;
}

static void draw_run_names(Page *page) {
    if (page->runs->count == 1)
        return;
    for (int r = 0; r < page->runs->count; r++) {
        PlotCurve curve = {.split = "train"};
        draw_entry(page, look_of(page->runs, r, &curve), plot_shortened(page->arena, page->runs->at[r].name, LONGEST));
    }
    next_line(page);
}

/* The kinds of lines that there are: of each split, within epochs and by epoch. */
static void draw_kinds(Page *page) {
    Names seen = {0};
    for (int r = 0; r < page->runs->count; r++)
        for (int c = 0; c < page->runs->at[r].curves.count; c++) {
            const PlotCurve *curve = &page->runs->at[r].curves.at[c];
            const char *label = arena_printf(page->arena, "%s%s", curve->split,
                                             curve->interval                      ? ", within epochs"
                                             : strcmp(curve->split, "train") == 0 ? ", by epoch"
                                                                                  : "");
            if (has_name(&seen, label))
                continue;
            VEC_PUSH(page->arena, &seen, label);
            Look look = look_of(page->runs, 0, curve);
            look.colour = page->runs->count == 1 ? look.colour : PLOT_NEUTRAL;
            draw_entry(page, look, label);
        }
    next_line(page);
}

/* ---- the page ---- */

static Names metrics_of(const Page *page) {
    Names metrics = {0};
    for (int r = 0; r < page->runs->count; r++)
        for (int c = 0; c < page->runs->at[r].curves.count; c++)
            if (!has_name(&metrics, page->runs->at[r].curves.at[c].metric))
                VEC_PUSH(page->arena, &metrics, page->runs->at[r].curves.at[c].metric);
    return metrics;
}

/* One panel across the page, or two in a row. Returns where they end. */
static double draw_panels(const Page *page, double top) {
    Names metrics = metrics_of(page);
    int columns = metrics.count > 1 ? 2 : 1, height = columns > 1 ? PANEL : LONE_PANEL, row = 0;
    double width = (double)(WIDTH - MARGIN) / columns;
    for (int i = 0; i < metrics.count; i++) {
        row = i / columns;
        Panel panel = {.runs = page->runs,
                       .metric = metrics.at[i],
                       .axis = page->request->axis,
                       .left = i % columns * width,
                       .top = top + row * height,
                       .width = width,
                       .height = height};
        draw_panel(page->picture, &panel);
    }
    return top + (row + 1) * height;
}

static double draw_matrices(const Page *page, double top) {
    for (int r = 0; r < page->runs->count; r++) {
        const PlotRun *run = &page->runs->at[r];
        if (run->matrix.classes)
            top = matrix_draw(page->picture, &run->matrix,
                              page->runs->count > 1 ? plot_shortened(page->arena, run->name, LONGEST) : NULL, top);
    }
    return top;
}

void plot_draw(Picture *picture, const PlotRuns *runs, const PlotRequest *request) {
    Arena *arena = picture->arena;
    Page page = {.arena = arena, .runs = runs, .request = request, .picture = picture, .x = MARGIN, .y = HEADER + 20};
    picture->title = title_of(&page);
    picture->width = WIDTH;
    picture_text(picture, ROLE_TITLE, MARGIN, 32, plot_shortened(arena, picture->title, LONGEST - 30));
    picture_text(picture, ROLE_NOTE, MARGIN, 54, plot_shortened(arena, note_of(&page), LONGEST + 20));
    draw_run_names(&page);
    draw_kinds(&page);
    picture->height = draw_matrices(&page, draw_panels(&page, page.y - 8)) + 8;
}
