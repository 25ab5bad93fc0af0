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

#endif
