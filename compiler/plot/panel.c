#include "plot/panel.h"

#include <math.h>

/* Room around a panel's lines for what is written there, in pixels; and more markers than that would be a band. */
enum { LEFT = 66, RIGHT = 10, TOP = 34, BOTTOM = 46, X_TICKS = 7, Y_TICKS = 6, MOST_MARKERS = 60 };

typedef VEC(PlotPoint) Points;

typedef struct Drawing {
    Arena *arena;
    const Panel *panel;
    Text *out;
    Scale x, y;
} Drawing;

/* ---- looks ---- */

Look look_of(const PlotRuns *runs, int run, const PlotCurve *curve) {
    int split = strcmp(curve->split, "train") == 0 ? 0 : strcmp(curve->split, "test") == 0 ? 1 : 2;
    bool alone = runs->count == 1;
    return (Look){.colour = alone ? split : run % PLOT_COLOURS,
                  .shape = alone ? split : run / PLOT_COLOURS,
                  .dashes = split,
                  .thin = curve->interval,
                  .hollow = split != 0};
}

void draw_marker(Text *out, Look look, double x, double y) {
    static const char *const path[PLOT_SHAPES] = {"m-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0z",
                                                  "m-3.2 -3.2h6.4v6.4h-6.4z", "m0 -4.2l4 7h-8z",
                                                  "m0 -4.6l4.6 4.6l-4.6 4.6l-4.6 -4.6z"};
    text_printf(out, look.hollow ? "<path class=\"hollow c%d\"" : "<path class=\"f%d\"", look.colour);
    text_printf(out, " d=\"M%.1f %.1f%s\"", x, y, path[look.shape]);
}

const char *line_class(Arena *arena, Look look) {
    return arena_printf(arena, "c%d %s d%d", look.colour, look.thin ? "thin" : "line", look.dashes);
}

/* ---- scales ---- */

/* Numbers near the largest that there are would have no width between them. */
static bool shown(const Drawing *d, const PlotPoint *point) {
    double x = point->x[d->panel->axis];
    return x >= 0 && x < 1e300 && fabs(point->y) < 1e300;
}

static bool of_panel(const Panel *panel, const PlotCurve *curve) {
    return strcmp(curve->metric, panel->metric) == 0;
}

static void include_curve(Drawing *d, const PlotCurve *curve) {
    for (int i = 0; i < curve->points.count; i++) {
        const PlotPoint *point = &curve->points.at[i];
        if (!shown(d, point))
            continue;
        d->x.high = fmax(d->x.high, point->x[d->panel->axis]);
        d->y.low = fmin(d->y.low, point->y);
        d->y.high = fmax(d->y.high, point->y);
    }
}

/* From 0 to the last x; from the least to the largest number, in powers of ten for a loss of more than two decades. */
static void fit_scales(Drawing *d) {
    const Panel *p = d->panel;
    d->x = (Scale){.low = 0, .high = 0, .from = p->left + LEFT, .to = p->left + p->width - RIGHT};
    d->y = (Scale){.low = INFINITY, .high = -INFINITY, .from = p->top + p->height - BOTTOM, .to = p->top + TOP};
    for (int r = 0; r < p->runs->count; r++)
        for (int c = 0; c < p->runs->at[r].curves.count; c++)
            if (of_panel(p, &p->runs->at[r].curves.at[c]))
                include_curve(d, &p->runs->at[r].curves.at[c]);
    if (d->x.high <= 0)
        d->x.high = 1;
    if (d->y.low > d->y.high)
        d->y.low = d->y.high = 0;
    d->y.logarithmic = strcmp(p->metric, "loss") == 0 && d->y.low > 0 && d->y.high > 100 * d->y.low;
    scale_round(&d->y, Y_TICKS);
}

/* ---- axes ---- */

static void draw_x_ticks(const Drawing *d) {
    Ticks ticks = scale_ticks(d->arena, &d->x, X_TICKS);
    for (int i = 0; i < ticks.count; i++) {
        double x = scale_at(&d->x, ticks.at[i].value);
        text_printf(d->out, "  <path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/>", x, d->y.from, d->y.to);
        text_printf(d->out, "<text class=\"tick middle\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", x, d->y.from + 17,
                    ticks.at[i].label);
    }
}

static void draw_y_ticks(const Drawing *d) {
    Ticks ticks = scale_ticks(d->arena, &d->y, Y_TICKS);
    for (int i = 0; i < ticks.count; i++) {
        double y = scale_at(&d->y, ticks.at[i].value);
        text_printf(d->out, "  <path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>", d->x.from, y, d->x.to);
        text_printf(d->out, "<text class=\"tick end\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", d->x.from - 7, y + 4,
                    ticks.at[i].label);
    }
}

static void draw_axes(const Drawing *d) {
    static const char *const axis[] = {"step", "epoch", "seconds"};
    double middle = (d->y.from + d->y.to) / 2, left = d->panel->left + 18;
    text_printf(d->out, "  <text class=\"heading\" x=\"%.1f\" y=\"%.1f\">", d->x.from, d->panel->top + 20);
    text_xml(d->out, d->panel->metric);
    text_puts(d->out, "</text>\n");
    draw_x_ticks(d);
    draw_y_ticks(d);
    text_printf(d->out, "  <path class=\"axis\" d=\"M%.1f %.1fV%.1fH%.1f\"/>\n", d->x.from, d->y.to, d->y.from,
                d->x.to);
    text_printf(d->out, "  <text class=\"label middle\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", (d->x.from + d->x.to) / 2,
                d->y.from + 37, axis[d->panel->axis]);
    text_printf(d->out, "  <text class=\"label middle\" x=\"%.1f\" y=\"%.1f\" transform=\"rotate(-90 %.1f %.1f)\">",
                left, middle, left, middle);
    text_xml(d->out, d->panel->metric);
    text_puts(d->out, d->y.logarithmic ? ", log scale</text>\n" : "</text>\n");
}

/* ---- lines ---- */

/* Of a column of pixels only the least and the largest number, in their order: no more can be seen. */
static void add_column(Drawing *d, Points *points, const PlotPoint *first, const PlotPoint *end) {
    const PlotPoint *least = first, *largest = first;
    for (const PlotPoint *point = first; point < end; point++) {
        least = point->y < least->y ? point : least;
        largest = point->y > largest->y ? point : largest;
    }
    VEC_PUSH(d->arena, points, *(least < largest ? least : largest));
    if (least != largest)
        VEC_PUSH(d->arena, points, *(least < largest ? largest : least));
}

static Points visible_points(Drawing *d, const PlotCurve *curve) {
    Points points = {0};
    const PlotPoint *at = curve->points.at, *end = at + curve->points.count;
    while (at < end) {
        const PlotPoint *first = at++;
        int column = shown(d, first) ? (int)scale_at(&d->x, first->x[d->panel->axis]) : -1;
        while (column >= 0 && at < end && shown(d, at) && (int)scale_at(&d->x, at->x[d->panel->axis]) == column)
            at++;
        add_column(d, &points, first, at);
    }
    return points;
}

static void draw_line(Drawing *d, const PlotCurve *curve, Look look) {
    Points points = visible_points(d, curve);
    bool down = false; /* the pen is on the paper */
    text_printf(d->out, "  <path class=\"%s\" d=\"", line_class(d->arena, look));
    for (int i = 0; i < points.count; i++) {
        const PlotPoint *point = &points.at[i];
        bool next = i + 1 < points.count && shown(d, &points.at[i + 1]);
        if (shown(d, point)) {
            text_printf(d->out, "%c%.1f %.1f", down ? 'L' : 'M', scale_at(&d->x, point->x[d->panel->axis]),
                        scale_at(&d->y, point->y));
            text_puts(d->out, down || next ? "" : "h0"); /* a point by itself: the line's round cap */
        }
        down = shown(d, point);
    }
    text_puts(d->out, "\"/>\n");
}

static void draw_markers(Drawing *d, const PlotRun *run, const PlotCurve *curve, Look look) {
    for (int i = 0; i < curve->points.count; i++) {
        const PlotPoint *point = &curve->points.at[i];
        if (!shown(d, point))
            continue;
        text_puts(d->out, "  ");
        draw_marker(d->out, look, scale_at(&d->x, point->x[d->panel->axis]), scale_at(&d->y, point->y));
        text_puts(d->out, "><title>");
        text_xml(d->out, run->name);
        text_printf(d->out, ", %s ", curve->split);
        text_xml(d->out, curve->metric);
        text_printf(d->out, " %.6g, step %.0f</title></path>\n", point->y, point->x[AXIS_STEP]);
    }
}

/* The thin lines lie below the others. */
static void draw_curves(Drawing *d, bool thin) {
    const PlotRuns *runs = d->panel->runs;
    for (int r = 0; r < runs->count; r++)
        for (int c = 0; c < runs->at[r].curves.count; c++) {
            const PlotCurve *curve = &runs->at[r].curves.at[c];
            Look look = look_of(runs, r, curve);
            if (!of_panel(d->panel, curve) || look.thin != thin)
                continue;
            draw_line(d, curve, look);
            if (!thin && curve->points.count <= MOST_MARKERS)
                draw_markers(d, &runs->at[r], curve, look);
        }
}

void draw_panel(Arena *arena, const Panel *panel, Text *out) {
    Drawing d = {.arena = arena, .panel = panel, .out = out};
    fit_scales(&d);
    draw_axes(&d);
    draw_curves(&d, true);
    draw_curves(&d, false);
}
