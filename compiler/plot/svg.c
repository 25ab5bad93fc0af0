/* The picture as SVG. */
#include "plot/picture.h"

#include <math.h>

/* ---- styles ---- */

/* Rules of four colours on a line: ".c0 { stroke: #0072b2; } .c1 ...", or ".f0 { fill: ...". */
static void put_colours(Text *out, const char *indent, char class, const char *property, const Palette *palette) {
    for (int i = 0; i < PLOT_COLOURS; i++)
        text_printf(out, "%s.%c%d { %s: #%06x; }%s", i % 4 ? " " : indent, class, i, property, palette->colour[i],
                    i % 4 == 3 ? "\n" : "");
}

static void put_neutral(Text *out, const Palette *palette) {
    unsigned neutral = palette->colour[PLOT_NEUTRAL];
    text_printf(out, ".c%d { stroke: #%06x; } .f%d { fill: #%06x; }\n", PLOT_NEUTRAL, neutral, PLOT_NEUTRAL, neutral);
}

static void put_text_styles(Text *out, const Palette *p) {
    text_printf(out,
                "    text { font-family: system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif; "
                "font-size: %dpx; fill: #%06x; }\n",
                text_styles[ROLE_ENTRY].size, p->text);
    text_printf(out,
                "    .title { font-size: %dpx; font-weight: 600; } .heading { font-size: %dpx; font-weight: 600; }\n",
                text_styles[ROLE_TITLE].size, text_styles[ROLE_HEADING].size);
    text_printf(out, "    .label, .note { fill: #%06x; } .tick { font-size: %dpx; fill: #%06x; }\n", p->faint,
                text_styles[ROLE_X_TICK].size, p->faint);
    text_puts(out, "    .middle { text-anchor: middle; } .end { text-anchor: end; }\n");
}

static void put_line_styles(Text *out, const Palette *p) {
    text_printf(out, "    .paper { fill: #%06x; } .grid { stroke: #%06x; } .axis { stroke: #%06x; fill: none; }\n",
                p->paper, p->grid, p->axis);
    text_puts(out, "    .line { fill: none; stroke-width: 2; } "
                   ".thin { fill: none; stroke-width: 1; stroke-opacity: 0.5; }\n"
                   "    .line, .thin { stroke-linejoin: round; stroke-linecap: round; }\n   ");
    for (int i = 1; i < MOST_DASHES; i++)
        text_printf(out, " .d%d { stroke-dasharray: %d %d; }", i, line_dashes[i].on, line_dashes[i].off);
    text_puts(out, "\n");
    put_colours(out, "    ", 'c', "stroke", p);
    put_colours(out, "    ", 'f', "fill", p);
    text_printf(out, "    .hollow { fill: #%06x; stroke-width: 1.5; } ", p->paper);
    put_neutral(out, p);
}

static void put_dark_styles(Text *out, const Palette *p) {
    text_printf(out,
                "    @media (prefers-color-scheme: dark) {\n"
                "      text { fill: #%06x; } .label, .note, .tick { fill: #%06x; }\n"
                "      .paper, .hollow { fill: #%06x; } .grid { stroke: #%06x; } .axis { stroke: #%06x; }\n",
                p->text, p->faint, p->paper, p->grid, p->axis);
    put_colours(out, "      ", 'c', "stroke", p);
    put_colours(out, "      ", 'f', "fill", p);
    text_puts(out, "      ");
    put_neutral(out, p);
    text_puts(out, "    }\n");
}

/* ---- marks ---- */

static void put_text(Text *out, const Mark *mark) {
    const Place *at = mark->places;
    text_printf(out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\"", text_styles[mark->role].class, at->x, at->y);
    if (mark->upward)
        text_printf(out, " transform=\"rotate(-90 %.1f %.1f)\"", at->x, at->y);
    text_puts(out, ">");
    text_xml(out, mark->text);
    text_puts(out, "</text>");
}

/* Along the axes: each place differs from the one before in x or in y. */
static void put_rule(Text *out, const Mark *mark) {
    const Place *at = mark->places;
    text_printf(out, "<path class=\"%s\" d=\"M%.1f %.1f", mark->kind == MARK_GRID ? "grid" : "axis", at->x, at->y);
    for (int i = 1; i < mark->count; i++)
        if (at[i].x == at[i - 1].x)
            text_printf(out, "V%.1f", at[i].y);
        else
            text_printf(out, "H%.1f", at[i].x);
    text_puts(out, "\"/>");
}

static void put_line_class(Text *out, Look look) {
    text_printf(out, "<path class=\"c%d %s d%d\" d=\"", look.colour, look.thin ? "thin" : "line", look.dashes);
}

static void put_sample(Text *out, const Mark *mark) {
    const Place *at = mark->places;
    put_line_class(out, mark->look);
    text_printf(out, "M%.1f %.1fh%.0f\"/>", at[0].x, at[0].y, at[1].x - at[0].x);
}

static void put_curve(Text *out, const Mark *mark) {
    bool down = false; /* the pen is on the paper */
    put_line_class(out, mark->look);
    for (int i = 0; i < mark->count; i++) {
        const Place *at = &mark->places[i];
        bool here = !isnan(at->x), next = i + 1 < mark->count && !isnan(at[1].x);
        if (here)
            text_printf(out, "%c%.1f %.1f%s", down ? 'L' : 'M', at->x, at->y,
                        down || next ? "" : "h0"); /* a point by itself: the line's round cap */
        down = here;
    }
    text_puts(out, "\"/>");
}

static void put_shape(Text *out, const Shape *shape) {
    for (int i = 0; i < shape->corners; i++) {
        Place way = shape->way[i];
        if (i && way.y == 0)
            text_printf(out, "h%g", way.x);
        else if (i && way.x == 0)
            text_printf(out, "v%g", way.y);
        else
            text_printf(out, "%c%g %g", i ? 'l' : 'm', way.x, way.y);
    }
    double r = MARKER_RADIUS_TENTHS / 10.0;
    if (!shape->corners)
        text_printf(out, "m-%g 0a%g %g 0 1 0 %g 0a%g %g 0 1 0 -%g 0", r, r, r, 2 * r, r, r, 2 * r);
    text_puts(out, "z\"");
}

static void put_marker(Text *out, const Mark *mark) {
    text_printf(out, mark->look.hollow ? "<path class=\"hollow c%d\"" : "<path class=\"f%d\"", mark->look.colour);
    text_printf(out, " d=\"M%.1f %.1f", mark->places->x, mark->places->y);
    put_shape(out, &marker_shapes[mark->look.shape]);
    if (!mark->text) {
        text_puts(out, "/>");
        return;
    }
    text_puts(out, "><title>");
    text_xml(out, mark->text);
    text_puts(out, "</title></path>");
}

static void put_cell(Text *out, const Mark *mark) {
    const Place *at = mark->places;
    const double opacity = cell_opacity(mark->part);
    text_printf(
        out,
        "<rect class=\"f0 grid\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill-opacity=\"%.3f\"><title>",
        at->x, at->y, at[1].x - at->x, at[1].y - at->y, opacity);
    text_xml(out, mark->text);
    text_puts(out, "</title></rect>");
}

static void put_mark(Text *out, const Mark *mark) {
    static void (*const put[])(Text * out, const Mark *mark) = {
        [MARK_TEXT] = put_text,   [MARK_GRID] = put_rule,     [MARK_AXIS] = put_rule, [MARK_SAMPLE] = put_sample,
        [MARK_CURVE] = put_curve, [MARK_MARKER] = put_marker, [MARK_CELL] = put_cell,
    };
    text_puts(out, mark->beside ? "" : "\n  ");
    put[mark->kind](out, mark);
}

void picture_svg(const Picture *picture, Text *out) {
    text_printf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" role=\"img\">\n  <title>",
                picture->width, picture->height);
    text_xml(out, picture->title);
    text_puts(out, "</title>\n  <style>\n");
    put_text_styles(out, &light_palette);
    put_line_styles(out, &light_palette);
    put_dark_styles(out, &dark_palette);
    text_puts(out, "  </style>\n  <rect class=\"paper\" width=\"100%\" height=\"100%\"/>");
    for (int i = 0; i < picture->marks.count; i++)
        put_mark(out, &picture->marks.at[i]);
    text_puts(out, "\n</svg>\n");
}
