/* The page: title, legend, a panel for each metric. */
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

/* Colours that people with any colour vision tell apart (Okabe and Ito), lighter ones on dark paper. */
static const char STYLE[] =
    "  <style>\n"
    "    text { font-family: system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif; font-size: 12px; "
    "fill: #24292f; }\n"
    "    .title { font-size: 19px; font-weight: 600; } .heading { font-size: 14px; font-weight: 600; }\n"
    "    .label, .note { fill: #57606a; } .tick { font-size: 11px; fill: #57606a; }\n"
    "    .middle { text-anchor: middle; } .end { text-anchor: end; }\n"
    "    .paper { fill: #ffffff; } .grid { stroke: #e6e9ed; } .axis { stroke: #8c959f; fill: none; }\n"
    "    .line { fill: none; stroke-width: 2; } .thin { fill: none; stroke-width: 1; stroke-opacity: 0.5; }\n"
    "    .line, .thin { stroke-linejoin: round; stroke-linecap: round; }\n"
    "    .d1 { stroke-dasharray: 5 5; } .d2 { stroke-dasharray: 1 4; }\n"
    "    .c0 { stroke: #0072b2; } .c1 { stroke: #d55e00; } .c2 { stroke: #009e73; } .c3 { stroke: #cc79a7; }\n"
    "    .c4 { stroke: #e69f00; } .c5 { stroke: #56b4e9; } .c6 { stroke: #6f4fa0; } .c7 { stroke: #5c5c5c; }\n"
    "    .f0 { fill: #0072b2; } .f1 { fill: #d55e00; } .f2 { fill: #009e73; } .f3 { fill: #cc79a7; }\n"
    "    .f4 { fill: #e69f00; } .f5 { fill: #56b4e9; } .f6 { fill: #6f4fa0; } .f7 { fill: #5c5c5c; }\n"
    "    .hollow { fill: #ffffff; stroke-width: 1.5; } .c8 { stroke: #57606a; } .f8 { fill: #57606a; }\n"
    "    @media (prefers-color-scheme: dark) {\n"
    "      text { fill: #e6edf3; } .label, .note, .tick { fill: #9ba5b0; }\n"
    "      .paper, .hollow { fill: #0d1117; } .grid { stroke: #262c34; } .axis { stroke: #6e7681; }\n"
    "      .c0 { stroke: #4aa8e0; } .c1 { stroke: #ff8c42; } .c2 { stroke: #2fc79a; } .c3 { stroke: #e79ac6; }\n"
    "      .c4 { stroke: #f2bb3d; } .c5 { stroke: #8fd3fb; } .c6 { stroke: #b094e0; } .c7 { stroke: #b5b5b5; }\n"
    "      .f0 { fill: #4aa8e0; } .f1 { fill: #ff8c42; } .f2 { fill: #2fc79a; } .f3 { fill: #e79ac6; }\n"
    "      .f4 { fill: #f2bb3d; } .f5 { fill: #8fd3fb; } .f6 { fill: #b094e0; } .f7 { fill: #b5b5b5; }\n"
    "      .c8 { stroke: #9ba5b0; } .f8 { fill: #9ba5b0; }\n"
    "    }\n"
    "  </style>\n";

typedef VEC(const char *) Names;

typedef struct Page {
    Arena *arena;
    const PlotRuns *runs;
    const PlotRequest *request;
    Text *out;
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

/* At most `most` characters of the text, the last of them an ellipsis where it is longer. */
static const char *shortened(Arena *arena, const char *text, int most) {
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

static void draw_text(const Page *page, const char *class, double x, double y, const char *text) {
    text_printf(page->out, "  <text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", class, x, y);
    text_xml(page->out, text);
    text_puts(page->out, "</text>\n");
}

/* ---- legend ---- */

static int characters(const char *text) {
    int count = 0;
    for (; *text; text++)
        count += ((unsigned char)*text & 0xC0) != 0x80;
    return count;
}

static void draw_entry(Page *page, Look look, const char *label) {
    double width = SAMPLE + 8 + 6.7 * characters(label) + 20;
    if (page->x > MARGIN && page->x + width > WIDTH - MARGIN) {
        page->x = MARGIN;
        page->y += LEGEND_LINE;
    }
    text_printf(page->out, "  <path class=\"%s\" d=\"M%.1f %.1fh%d\"/>", line_class(page->arena, look), page->x,
                page->y - 4, SAMPLE);
    if (!look.thin) {
        draw_marker(page->out, look, page->x + SAMPLE / 2.0, page->y - 4);
        text_puts(page->out, "/>");
    }
    text_puts(page->out, "\n");
    draw_text(page, "entry", page->x + SAMPLE + 8, page->y, label);
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
        draw_entry(page, look_of(page->runs, r, &curve), shortened(page->arena, page->runs->at[r].name, LONGEST));
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
        draw_panel(page->arena, &panel, page->out);
    }
    return top + (row + 1) * height;
}

void plot_draw(Arena *arena, const PlotRuns *runs, const PlotRequest *request, Text *out) {
    Text body = TEXT(arena);
    Page page = {.arena = arena, .runs = runs, .request = request, .out = &body, .x = MARGIN, .y = HEADER + 20};
    const char *title = title_of(&page);
    draw_text(&page, "title", MARGIN, 32, shortened(arena, title, LONGEST - 30));
    draw_text(&page, "note", MARGIN, 54, shortened(arena, note_of(&page), LONGEST + 20));
    draw_run_names(&page);
    draw_kinds(&page);
    double end = draw_panels(&page, page.y - 8);
    text_printf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %.0f\" role=\"img\">\n  <title>",
                WIDTH, end + 8);
    text_xml(out, title);
    text_printf(out, "</title>\n%s  <rect class=\"paper\" width=\"100%%\" height=\"100%%\"/>\n%s</svg>\n", STYLE,
                text_string(&body));
}
