/* Confusion matrices: the last one of each log, below the curves. */
#ifndef MTC_MATRIX_H
#define MTC_MATRIX_H

#include "plot/plot.h"
#include "runtime/base/json.h"

/* Rows as the log has them; the names of their classes. NULL, or what is wrong. */
const char *matrix_read(Arena *arena, const MtcJson *rows, PlotMatrix *matrix);
const char *matrix_read_names(Arena *arena, const MtcJson *names, PlotMatrix *matrix);

/* From `top` on; returns where it ends. run: its name, or NULL where there is one alone. */
double matrix_draw(Picture *picture, const PlotMatrix *matrix, const char *run, double top);

#endif
