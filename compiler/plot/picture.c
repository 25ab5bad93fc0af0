#include "plot/picture.h"

/* Colours that people with any colour vision tell apart (Okabe and Ito), lighter ones on dark paper. */
const Palette light_palette = {
    .paper = 0xffffff,
    .text = 0x24292f,
    .faint = 0x57606a,
    .grid = 0xe6e9ed,
    .axis = 0x8c959f,
    .colour = {0x0072b2, 0xd55e00, 0x009e73, 0xcc79a7, 0xe69f00, 0x56b4e9, 0x6f4fa0, 0x5c5c5c, 0x57606a}};
const Palette dark_palette = {
    .paper = 0x0d1117,
    .text = 0xe6edf3,
    .faint = 0x9ba5b0,
    .grid = 0x262c34,
    .axis = 0x6e7681,
    .colour = {0x4aa8e0, 0xff8c42, 0x2fc79a, 0xe79ac6, 0xf2bb3d, 0x8fd3fb, 0xb094e0, 0xb5b5b5, 0x9ba5b0}};

const TextStyle text_styles[TEXT_ROLES] = {
    [ROLE_TITLE] = {"title", 19, .bold = true},
    [ROLE_NOTE] = {"note", 12, .faint = true},
    [ROLE_ENTRY] = {"entry", 12, .anchor = 0},
    [ROLE_HEADING] = {"heading", 14, .bold = true},
    [ROLE_LABEL] = {"label middle", 12, .anchor = 0.5, .faint = true},
    [ROLE_X_TICK] = {"tick middle", 11, .anchor = 0.5, .faint = true},
    [ROLE_Y_TICK] = {"tick end", 11, .anchor = 1, .faint = true},
};

const Shape marker_shapes[PLOT_SHAPES] = {
    {0},
    {4, {{-3.2, -3.2}, {6.4, 0}, {0, 6.4}, {-6.4, 0}}},
    {3, {{0, -4.2}, {4, 7}, {-8, 0}}},
    {4, {{0, -4.6}, {4.6, 4.6}, {-4.6, 4.6}, {-4.6, -4.6}}},
};

const Dashes line_dashes[MOST_DASHES] = {{0}, {5, 5}, {1, 4}};

void picture_add(Picture *picture, Mark mark) {
    VEC_PUSH(picture->arena, &picture->marks, mark);
}

static const Place *copied(Picture *picture, const Place *places, int count) {
    return memcpy(NEW_ARRAY(picture->arena, Place, count), places, (size_t)count * sizeof *places);
}

void picture_text(Picture *picture, TextRole role, double x, double y, const char *text) {
    Mark mark = {.kind = MARK_TEXT, .role = role, .text = text, .count = 1};
    mark.places = copied(picture, &(Place){x, y}, 1);
    picture_add(picture, mark);
}

void picture_line(Picture *picture, MarkKind kind, Look look, const Place *places, int count) {
    Mark mark = {.kind = kind, .look = look, .count = count};
    mark.places = count ? copied(picture, places, count) : NULL;
    picture_add(picture, mark);
}

void picture_marker(Picture *picture, Look look, double x, double y, const char *told) {
    Mark mark = {.kind = MARK_MARKER, .look = look, .text = told, .count = 1};
    mark.places = copied(picture, &(Place){x, y}, 1);
    picture_add(picture, mark);
}

double cell_opacity(double part) {
    const double least = 0.04, most = 0.5;
    return part > 0 ? least + (most - least) * part : 0;
}

void picture_cell(Picture *picture, Place at, double size, double part, const char *told) {
    Mark mark = {.kind = MARK_CELL, .part = part, .text = told, .count = 2};
    mark.places = copied(picture, (Place[]){at, {at.x + size, at.y + size}}, 2);
    picture_add(picture, mark);
}
