/* A picture as a list of marks, in the order in which they cover each other: what figure and panels lay out, and what
 * svg.c writes as text and raster.c paints.
 *
 * Lengths are in pixels of the page, x to the right and y downward; a PNG has two pixels for each. */
#ifndef MTC_PICTURE_H
#define MTC_PICTURE_H

#include "support/text.h"

#include <stdbool.h>

enum { PLOT_COLOURS = 8, PLOT_NEUTRAL = PLOT_COLOURS, PLOT_SHAPES = 4 };

/* How a curve is drawn: colour and shape tell runs apart, or the splits of the only run; the dashes tell splits. */
typedef struct Look {
    int colour, shape, dashes;
    bool thin, hollow;
} Look;

typedef struct Place {
    double x, y;
} Place;

/* ---- what marks look like, for both writers ---- */

/* 0xRRGGBB */
typedef struct Palette {
    unsigned paper, text, faint, grid, axis, colour[PLOT_COLOURS + 1];
} Palette;

extern const Palette light_palette, dark_palette;

typedef enum TextRole {
    ROLE_TITLE,
    ROLE_NOTE,
    ROLE_ENTRY,
    ROLE_HEADING,
    ROLE_LABEL,
    ROLE_X_TICK,
    ROLE_Y_TICK,
    TEXT_ROLES
} TextRole;

typedef struct TextStyle {
    const char *class;
    int size;
    double anchor; /* the part of the text that lies before its place */
    bool bold, faint;
} TextStyle;

extern const TextStyle text_styles[TEXT_ROLES];

/* A marker's outline: where it begins, seen from its centre, and the ways from corner to corner. Without corners it is a
 * circle. */
enum { MARKER_RADIUS_TENTHS = 35, MOST_CORNERS = 4, MOST_DASHES = 3 };
typedef struct Shape {
    int corners;
    Place way[MOST_CORNERS];
} Shape;

extern const Shape marker_shapes[PLOT_SHAPES];

/* Lengths of dash and gap; 0: none. */
typedef struct Dashes {
    int on, off;
} Dashes;

extern const Dashes line_dashes[MOST_DASHES];

/* How much of the paper a cell covers that is filled by this part: what is written on it stays legible. */
double cell_opacity(double part);

/* ---- marks ---- */

typedef enum MarkKind {
    MARK_TEXT,
    MARK_GRID, /* lines along the axes */
    MARK_AXIS,
    MARK_SAMPLE, /* a piece of a line, in the legend */
    MARK_CURVE,  /* a place that is NaN is a gap; one between gaps is a dot */
    MARK_MARKER,
    MARK_CELL /* a square between two corners, filled as far as `part` says */
} MarkKind;

typedef struct Mark {
    MarkKind kind;
    TextRole role;    /* of a text */
    bool upward;      /* a text that is read from below */
    bool beside;      /* belongs to the mark before: on one line of the SVG */
    const char *text; /* of a marker: what is told of it where a reader points, or NULL */
    Look look;        /* of samples, curves and markers */
    double part;      /* of a cell: from 0 to 1 */
    const Place *places;
    int count;
} Mark;

typedef struct Picture {
    Arena *arena;
    const char *title;
    double width, height;
    VEC(Mark) marks;
} Picture;

void picture_add(Picture *picture, Mark mark);
void picture_text(Picture *picture, TextRole role, double x, double y, const char *text);
/* A line of `count` places, which are copied. */
void picture_line(Picture *picture, MarkKind kind, Look look, const Place *places, int count);
/* A square of that size, seen from its upper left corner. */
void picture_cell(Picture *picture, Place at, double size, double part, const char *told);
void picture_marker(Picture *picture, Look look, double x, double y, const char *told);

/* The picture as SVG, in light or dark colours as its reader likes. */
void picture_svg(const Picture *picture, Text *out);

/* The picture as PNG, in light colours. False, and nothing is added, where it is too tall: of very many panels. */
bool picture_png(const Picture *picture, Text *out);

#endif
