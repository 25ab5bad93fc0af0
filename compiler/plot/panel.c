#include "plot/panel.h"

#include <math.h>

/* Room around a panel's lines for what is written there, in pixels; and more markers than that would be a band. */
enum { LEFT = 66, RIGHT = 10, TOP = 34, BOTTOM = 46, X_TICKS = 7, Y_TICKS = 6, MOST_MARKERS = 60 };

typedef VEC(PlotPoint) Points;

typedef struct Drawing {
    Arena *arena;
    const Panel *panel;
    Picture *picture;
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

static void draw_rule(const Drawing *d, MarkKind kind, const Place *places, int count) {
    picture_line(d->picture, kind, (Look){0}, places, count);
}

/* A line of the grid and, beside it, its number. */
static void draw_tick(const Drawing *d, const Place ends[2], TextRole role, Place at, const char *label) {
    draw_rule(d, MARK_GRID, ends, 2);
    picture_text(d->picture, role, at.x, at.y, label);
    d->picture->marks.at[d->picture->marks.count - 1].beside = true;
}

static void draw_x_ticks(const Drawing *d) {
    Ticks ticks = scale_ticks(d->arena, &d->x, X_TICKS);
    for (int i = 0; i < ticks.count; i++) {
        double x = scale_at(&d->x, ticks.at[i].value);
        Place ends[] = {{x, d->y.from}, {x, d->y.to}};
        draw_tick(d, ends, ROLE_X_TICK, (Place){x, d->y.from + 17}, ticks.at[i].label);
    }
}

static void draw_y_ticks(const Drawing *d) {
    Ticks ticks = scale_ticks(d->arena, &d->y, Y_TICKS);
    for (int i = 0; i < ticks.count; i++) {
        double y = scale_at(&d->y, ticks.at[i].value);
        Place ends[] = {{d->x.from, y}, {d->x.to, y}};
        draw_tick(d, ends, ROLE_Y_TICK, (Place){d->x.from - 7, y + 4}, ticks.at[i].label);
    }
}

static void draw_axes(const Drawing *d) {
    static const char *const axis[] = {"step", "epoch", "seconds"};
    const char *metric = d->panel->metric;
    double middle = (d->y.from + d->y.to) / 2, left = d->panel->left + 18;
    picture_text(d->picture, ROLE_HEADING, d->x.from, d->panel->top + 20, metric);
    draw_x_ticks(d);
    draw_y_ticks(d);
    Place corner[] = {{d->x.from, d->y.to}, {d->x.from, d->y.from}, {d->x.to, d->y.from}};
    draw_rule(d, MARK_AXIS, corner, 3);
    picture_text(d->picture, ROLE_LABEL, (d->x.from + d->x.to) / 2, d->y.from + 37, axis[d->panel->axis]);
    picture_text(d->picture, ROLE_LABEL, left, middle,
                 d->y.logarithmic ? arena_printf(d->arena, "%s, log scale", metric) : metric);
    d->picture->marks.at[d->picture->marks.count - 1].upward = true;
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

static Place place_of(const Drawing *d, const PlotPoint *point) {
    if (!shown(d, point))
        return (Place){NAN, NAN};
    return (Place){scale_at(&d->x, point->x[d->panel->axis]), scale_at(&d->y, point->y)};
}

static void draw_line(Drawing *d, const PlotCurve *curve, Look look) {
    Points points = visible_points(d, curve);
    VEC(Place) places = {0};
    for (int i = 0; i < points.count; i++)
        VEC_PUSH(d->arena, &places, place_of(d, &points.at[i]));
    picture_line(d->picture, MARK_CURVE, look, places.at, places.count);
}

static const char *told_of(const Drawing *d, const PlotRun *run, const PlotCurve *curve, const PlotPoint *point) {
    const char *what = arena_printf(d->arena, "%s, %s %s %.6g", run->name, curve->split, curve->metric, point->y);
    double step = point->x[AXIS_STEP];
    return isfinite(step) ? arena_printf(d->arena, "%s, step %.0f", what, step) : what;
}

static void draw_markers(Drawing *d, const PlotRun *run, const PlotCurve *curve, Look look) {
    for (int i = 0; i < curve->points.count; i++) {
        const PlotPoint *point = &curve->points.at[i];
        Place at = place_of(d, point);
        if (!isnan(at.x))
            picture_marker(d->picture, look, at.x, at.y, told_of(d, run, curve, point));
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

void draw_panel(Picture *picture, const Panel *panel) {
    Drawing d = {.arena = picture->arena, .panel = panel, .picture = picture};
    fit_scales(&d);
    draw_axes(&d);
    draw_curves(&d, true);
    draw_curves(&d, false);
}
