/* A line of fields for a terminal: where it is too narrow, those that matter least are left out, and none is cut. */
#ifndef MTC_LINE_H
#define MTC_LINE_H

#include "base/common.h"

enum { MTC_MAX_LINE = 2 * MTC_MAX_REPORTS + 4 };

/* All zeros: without fields. */
typedef struct MtcLine {
    int count;
    int rank[MTC_MAX_LINE];    /* the lower, the longer a field stays */
    char *field[MTC_MAX_LINE]; /* with the space before it */
} MtcLine;

void mtc_line_add(MtcLine *line, int rank, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Adds those fields that fit into `width` columns together (0: all), in the order in which they were added, and frees the line. */
void mtc_line_put(MtcText *text, MtcLine *line, int width);

/* Columns of the terminal that `file` is; 0: it is none. */
int mtc_columns(int file);

/* A table: all rows have the columns that the titles have a place for. A field is as wide in each row as its title. */
typedef struct MtcGrid {
    int width; /* of the terminal that standard output is; 0: any */
    int name;  /* of the first column */
    int last;  /* the highest rank that has a place */
} MtcGrid;

/* `longest`: of the names; `beside`: what the second column takes, which is always there. */
void mtc_grid_open(MtcGrid *grid, size_t longest, int beside);
void mtc_grid_name(const MtcGrid *grid, MtcLine *line, const char *name);
/* The title of text behind the columns. */
void mtc_grid_rest(const MtcGrid *grid, MtcLine *titles, int rank, const char *title);
/* Both print a line, and free its fields. `rest`: text behind the columns, which is cut where it is too long; or NULL. */
void mtc_grid_titles(MtcGrid *grid, MtcLine *titles);
void mtc_grid_row(const MtcGrid *grid, MtcLine *line, const char *rest);

#endif
