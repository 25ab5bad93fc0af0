/* Curves of trainings: from the logs that programs write to one picture. */
#ifndef MTC_PLOT_H
#define MTC_PLOT_H

#include "plot/picture.h"
#include "support/diag.h"
#include "support/text.h"

/* In the order of the choices of --x in flags.c. */
typedef enum PlotAxis { AXIS_STEP, AXIS_EPOCH, AXIS_SECONDS, PLOT_AXES } PlotAxis;

/* x: NaN where the log does not say; y: NaN where the number was none, which leaves a gap. */
typedef struct PlotPoint {
    double x[PLOT_AXES], y;
} PlotPoint;

/* One number over a training: the means of the steps since the last line of the log, or what an epoch's line says. */
typedef struct PlotCurve {
    const char *metric, *split; /* "accuracy", "test" */
    bool interval;              /* of the steps since the last line */
    VEC(PlotPoint) points;      /* in ascending order of their steps */
} PlotCurve;

typedef struct PlotParam {
    const char *name, *value;
} PlotParam;

/* How many examples of each class, or what weight of them, were taken for each: the rows of the classes one after the other. */
typedef struct PlotMatrix {
    const char *split; /* "test" */
    int classes;       /* 0: there is none */
    const double *count;
    const char *const *name; /* of the classes; NULL: they are numbers */
} PlotMatrix;

typedef struct PlotRun {
    const char *path, *model;
    const char *name; /* in the legend */
    VEC(PlotParam) params;
    VEC(PlotCurve) curves;
    PlotMatrix matrix; /* the last one of the log */
} PlotRun;
typedef VEC(PlotRun) PlotRuns;

typedef enum PlotFormat { PLOT_SVG, PLOT_PNG } PlotFormat;

typedef struct PlotRequest {
    int logs; /* paths of JSON lines, at least one */
    const char *const *log;
    PlotAxis axis;
    PlotFormat format;
    const char *title; /* NULL: the name of the model */
} PlotRequest;

/* Adds the file of the drawing to `out`. 0, or the code to exit with after a report: a log that cannot be read, is none or
 * holds nothing to draw, or a picture too tall for its format. */
int plot(Diag *diag, const PlotRequest *request, Text *out);

/* ---- inside ---- */

int plot_read(Diag *diag, const char *path, PlotRun *run);
/* Each run's name: of its file, and the params in which the runs differ. */
void plot_name_runs(Arena *arena, PlotRuns *runs);
/* How many characters; at most `most` of them, the last an ellipsis where there are more. */
int plot_characters(const char *text);
const char *plot_shortened(Arena *arena, const char *text, int most);
void plot_draw(Picture *picture, const PlotRuns *runs, const PlotRequest *request);

#endif
