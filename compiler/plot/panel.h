/* One metric of all runs: axes, lines and markers; and the looks that lines have in panels and legend alike. */
#ifndef MTC_PANEL_H
#define MTC_PANEL_H

#include "plot/picture.h"
#include "plot/plot.h"
#include "plot/scale.h"

enum { PLOT_MOST_RUNS = PLOT_COLOURS * PLOT_SHAPES };

Look look_of(const PlotRuns *runs, int run, const PlotCurve *curve);

typedef struct Panel {
    const PlotRuns *runs;
    const char *metric;
    PlotAxis axis;
    double left, top, width, height; /* with its labels */
} Panel;

void draw_panel(Picture *picture, const Panel *panel);

#endif
