/* One metric of all runs: axes, lines and markers; and the looks that lines have in panels and legend alike. */
#ifndef MTC_PANEL_H
#define MTC_PANEL_H

#include "plot/plot.h"
#include "plot/scale.h"

enum { PLOT_COLOURS = 8, PLOT_NEUTRAL = PLOT_COLOURS, PLOT_SHAPES = 4, PLOT_MOST_RUNS = PLOT_COLOURS * PLOT_SHAPES };

/* How a curve is drawn: colour and shape tell runs apart, or the splits of the only run; the dashes tell splits. */
typedef struct Look {
    int colour, shape, dashes;
    bool thin, hollow;
} Look;

Look look_of(const PlotRuns *runs, int run, const PlotCurve *curve);
/* A marker of that look, centred there: an element that the caller ends. */
void draw_marker(Text *out, Look look, double x, double y);
/* The classes of a line of that look. */
const char *line_class(Arena *arena, Look look);

typedef struct Panel {
    const PlotRuns *runs;
    const char *metric;
    PlotAxis axis;
    double left, top, width, height; /* with its labels */
} Panel;

void draw_panel(Arena *arena, const Panel *panel, Text *out);

#endif
