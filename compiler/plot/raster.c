/* The picture as pixels: lines, shapes and letters, all of them sets of points within some distance of pieces of lines. How
 * much of a pixel a mark covers follows from the pixel's distance, so that edges are smooth. */
#include "plot/font.h"
#include "plot/picture.h"
#include "plot/png.h"

#include <math.h>

enum { SCALE = 2, TALLEST = 32768 / SCALE, OPAQUE = 255 };

/* Pixels of the raster; the ends are not part of it. */
typedef struct Box {
    int left, top, right, bottom;
} Box;

/* What a mark covers is gathered in a mask and painted at once: where its pieces overlap it is no darker. */
typedef struct Raster {
    const Palette *palette;
    Image image;
    uint8_t *mask; /* 0 outside `dirty` */
    Box dirty;
} Raster;

/* ---- the mask ---- */

static int within(double value, int most) {
    return value < 0 ? 0 : value > most ? most : (int)value;
}

/* The pixels of the image up to `reach` from the box between two corners, in any order. */
static Box box_of(const Raster *r, Place a, Place b, double reach) {
    return (Box){
        within(floor(fmin(a.x, b.x) - reach), r->image.width), within(floor(fmin(a.y, b.y) - reach), r->image.height),
        within(ceil(fmax(a.x, b.x) + reach), r->image.width), within(ceil(fmax(a.y, b.y) + reach), r->image.height)};
}

static void mark_dirty(Raster *r, Box box) {
    Box *d = &r->dirty;
    bool first = d->left >= d->right || d->top >= d->bottom;
    d->left = first || box.left < d->left ? box.left : d->left;
    d->top = first || box.top < d->top ? box.top : d->top;
    d->right = first || box.right > d->right ? box.right : d->right;
    d->bottom = first || box.bottom > d->bottom ? box.bottom : d->bottom;
}

/* `depth`: how far the pixel's centre is inside of the edge. */
static void cover(Raster *r, int x, int y, double depth) {
    uint8_t *at = &r->mask[(size_t)y * r->image.width + x], covered = (uint8_t)within(OPAQUE * (depth + 0.5), OPAQUE);
    *at = covered > *at ? covered : *at;
}

static double distance(Place from, Place a, Place b) {
    double x = b.x - a.x, y = b.y - a.y, square = x * x + y * y;
    double part = square > 0 ? ((from.x - a.x) * x + (from.y - a.y) * y) / square : 0;
    part = fmin(fmax(part, 0), 1);
    x = a.x + part * x - from.x;
    y = a.y + part * y - from.y;
    return sqrt(x * x + y * y);
}

/* A piece of a line with round ends. */
static void cover_piece(Raster *r, Place a, Place b, double width) {
    Box box = box_of(r, a, b, width / 2 + 1);
    mark_dirty(r, box);
    for (int y = box.top; y < box.bottom; y++)
        for (int x = box.left; x < box.right; x++)
            cover(r, x, y, width / 2 - distance((Place){x + 0.5, y + 0.5}, a, b));
}

/* The inside of a convex polygon, whose corners go clockwise. */
static void cover_polygon(Raster *r, const Place *corner, int corners) {
    Box box = {r->image.width, r->image.height, 0, 0};
    for (int i = 0; i < corners; i++) {
        Box at = box_of(r, corner[i], corner[i], 1);
        box = (Box){at.left < box.left ? at.left : box.left, at.top < box.top ? at.top : box.top,
                    at.right > box.right ? at.right : box.right, at.bottom > box.bottom ? at.bottom : box.bottom};
    }
    mark_dirty(r, box);
    for (int y = box.top; y < box.bottom; y++)
        for (int x = box.left; x < box.right; x++) {
            double depth = INFINITY;
            for (int i = 0; i < corners; i++) {
                Place a = corner[i], b = corner[(i + 1) % corners];
                double across = (b.x - a.x) * (y + 0.5 - a.y) - (b.y - a.y) * (x + 0.5 - a.x);
                depth = fmin(depth, across / sqrt((b.x - a.x) * (b.x - a.x) + (b.y - a.y) * (b.y - a.y)));
            }
            cover(r, x, y, depth);
        }
}

/* Paints what the mask covers, and clears it. `opacity`: of 255. */
static void paint(Raster *r, unsigned colour, int opacity) {
    for (int y = r->dirty.top; y < r->dirty.bottom; y++)
        for (int x = r->dirty.left; x < r->dirty.right; x++) {
            uint8_t *mask = &r->mask[(size_t)y * r->image.width + x], *pixel = image_pixel(&r->image, x, y);
            int over = *mask * opacity / OPAQUE;
            for (int c = 0; over && c < 3; c++) {
                int ink = (int)(colour >> (16 - 8 * c) & 0xff);
                pixel[c] = (uint8_t)((pixel[c] * (OPAQUE - over) + ink * over + OPAQUE / 2) / OPAQUE);
            }
            *mask = 0;
        }
    r->dirty = (Box){0};
}

/* ---- lines ---- */

static Place scaled(Place at) {
    return (Place){SCALE * at.x, SCALE * at.y};
}

static Place between(Place a, Place b, double part) {
    return (Place){a.x + part * (b.x - a.x), a.y + part * (b.y - a.y)};
}

/* From a to b in dashes; `done`: what there was of the line before, which is added to. */
static void cover_dashed(Raster *r, Place a, Place b, double width, Dashes dashes, double *done) {
    double on = SCALE * dashes.on, period = on + SCALE * dashes.off;
    double length = sqrt((b.x - a.x) * (b.x - a.x) + (b.y - a.y) * (b.y - a.y));
    if (!dashes.on || length == 0) {
        cover_piece(r, a, b, width);
        return;
    }
    double first = -fmod(*done, period);
    int dashes_begun = (int)ceil((length - first) / period);
    for (int k = 0; k < dashes_begun; k++) {
        double from = first + k * period, to = fmin(from + on, length);
        if (to > 0)
            cover_piece(r, between(a, b, fmax(from, 0) / length), between(a, b, to / length), width);
    }
    *done += length;
}

static void paint_curve(Raster *r, const Mark *mark) {
    double done = 0;
    const Place *at = mark->places;
    const double width = SCALE * (mark->look.thin ? 1 : 2);
    for (int i = 0; i < mark->count; i++) {
        bool here = !isnan(at[i].x), goes_on = here && i + 1 < mark->count && !isnan(at[i + 1].x);
        bool alone = here && !goes_on && (i == 0 || isnan(at[i - 1].x));
        if (goes_on)
            cover_dashed(r, scaled(at[i]), scaled(at[i + 1]), width, line_dashes[mark->look.dashes], &done);
        else if (alone)
            cover_piece(r, scaled(at[i]), scaled(at[i]), width);
        done = goes_on ? done : 0;
    }
    paint(r, r->palette->colour[mark->look.colour], mark->look.thin ? OPAQUE / 2 : OPAQUE);
}

/* Lines along the axes lie on whole pixels, where they are sharp. */
static void paint_rule(Raster *r, const Mark *mark) {
    for (int i = 0; i + 1 < mark->count; i++) {
        Place a = scaled(mark->places[i]), b = scaled(mark->places[i + 1]);
        cover_piece(r, (Place){round(a.x), round(a.y)}, (Place){round(b.x), round(b.y)}, SCALE);
    }
    paint(r, mark->kind == MARK_GRID ? r->palette->grid : r->palette->axis, OPAQUE);
}

/* ---- markers ---- */

static void paint_marker(Raster *r, const Mark *mark) {
    const Shape *shape = &marker_shapes[mark->look.shape];
    Place corner[MOST_CORNERS], centre = scaled(*mark->places), at = *mark->places;
    unsigned colour = r->palette->colour[mark->look.colour];
    const double radius = SCALE * MARKER_RADIUS_TENTHS / 10.0, edge = SCALE * 1.5;
    for (int i = 0; i < shape->corners; i++) {
        at = (Place){at.x + shape->way[i].x, at.y + shape->way[i].y};
        corner[i] = scaled(at);
    }
    if (!shape->corners) {
        cover_piece(r, centre, centre, 2 * radius + (mark->look.hollow ? edge : 0));
        paint(r, colour, OPAQUE);
        if (mark->look.hollow)
            cover_piece(r, centre, centre, 2 * radius - edge);
    } else
        cover_polygon(r, corner, shape->corners);
    paint(r, mark->look.hollow ? r->palette->paper : colour, OPAQUE);
    if (!mark->look.hollow)
        return;
    for (int i = 0; i < shape->corners; i++)
        cover_piece(r, corner[i], corner[(i + 1) % shape->corners], edge);
    paint(r, colour, OPAQUE);
}

/* ---- cells ---- */

static void paint_cell(Raster *r, const Mark *mark) {
    const Place a = scaled(mark->places[0]), b = scaled(mark->places[1]);
    const Place corner[] = {a, {b.x, a.y}, b, {a.x, b.y}, a};
    cover_polygon(r, corner, 4);
    paint(r, r->palette->colour[0], (int)(OPAQUE * cell_opacity(mark->part)));
    for (int i = 0; i < 4; i++)
        cover_piece(r, corner[i], corner[i + 1], SCALE / 2.0);
    paint(r, r->palette->grid, OPAQUE);
}

/* ---- text ---- */

/* Where letters come to stand: `at` is the place of the grid's origin, `unit` the size of its squares. */
typedef struct Line {
    Raster *raster;
    Place at;
    double unit, squeeze, pen; /* in pixels; of widths; in pixels */
    bool upward;
} Line;

static Place on_line(const Line *line, Place at) {
    double x = line->unit * line->squeeze * at.x, y = line->unit * (at.y - FONT_BASELINE);
    return line->upward ? (Place){line->at.x + y, line->at.y - x} : (Place){line->at.x + x, line->at.y + y};
}

static void put_piece(void *to, Place a, Place b) {
    const Line *line = to;
    cover_piece(line->raster, on_line(line, a), on_line(line, b), line->pen);
}

/* A text that would leave the page is squeezed. */
static void paint_text(Raster *r, const Mark *mark) {
    const TextStyle *style = &text_styles[mark->role];
    Line line = {.raster = r, .at = scaled(*mark->places), .upward = mark->upward};
    double size = SCALE * style->size, width, room = mark->upward ? INFINITY : r->image.width - line.at.x - size;
    line.unit = size * FONT_UNIT;
    line.pen = size * (style->bold ? 0.125 : 0.09);
    width = line.unit * font_width(mark->text);
    line.squeeze = style->anchor == 0 && width > room ? room / width : 1;
    double before = style->anchor * font_width(mark->text);
    font_draw(mark->text, -before, put_piece, &line);
    paint(r, style->faint ? r->palette->faint : r->palette->text, OPAQUE);
}

/* ---- the picture ---- */

bool picture_png(const Picture *picture, Text *out) {
    static void (*const paint_mark[])(Raster * r, const Mark *mark) = {
        [MARK_TEXT] = paint_text,   [MARK_GRID] = paint_rule,     [MARK_AXIS] = paint_rule, [MARK_SAMPLE] = paint_curve,
        [MARK_CURVE] = paint_curve, [MARK_MARKER] = paint_marker, [MARK_CELL] = paint_cell,
    };
    if (picture->height > TALLEST)
        return false;
    Raster r = {.palette = &light_palette};
    r.image = image_new(picture->arena, (int)(SCALE * picture->width), (int)(SCALE * picture->height));
    r.mask = arena_alloc(picture->arena, (size_t)r.image.width * (size_t)r.image.height);
    memset(r.mask, OPAQUE, (size_t)r.image.width * (size_t)r.image.height);
    r.dirty = (Box){0, 0, r.image.width, r.image.height};
    paint(&r, r.palette->paper, OPAQUE);
    for (int i = 0; i < picture->marks.count; i++)
        paint_mark[picture->marks.at[i].kind](&r, &picture->marks.at[i]);
    image_png(&r.image, out);
    return true;
}
