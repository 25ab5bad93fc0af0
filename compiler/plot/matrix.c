/* The confusion matrix of a log: read, and drawn as squares that are darker the more of a class's examples they have. */
#include "plot/matrix.h"

#include <math.h>

enum { MOST_CLASSES = 1000, LEFT = 20, HEADING = 48, BELOW = 20, NAME = 18, PAGE = 900 };
static const double LETTER = 6.2, LARGEST = 40, SMALLEST_WITH_NUMBER = 22, SMALLEST_WITH_NAME = 11;

/* ---- reading ---- */

static int length_of(const MtcJson *list) {
    int length = 0;
    for (const MtcJson *item = list->kind == MTC_JSON_ARRAY ? list->first : NULL; item; item = item->next)
        length++;
    return length;
}

static const char *wrong_row(Arena *arena, const MtcJson *row, int number, int classes) {
    if (length_of(row) != classes)
        return arena_printf(arena, "row %d of the confusion matrix has %d numbers, and there are %d rows", number,
                            length_of(row), classes);
    for (const MtcJson *item = row->first; item; item = item->next)
        if (item->kind != MTC_JSON_NUMBER || !(item->number >= 0 && item->number < 1e300))
            return arena_printf(arena, "row %d of the confusion matrix has what is no number of examples", number);
    return NULL;
}

const char *matrix_read(Arena *arena, const MtcJson *rows, PlotMatrix *matrix) {
    const int classes = length_of(rows);
    double *count;
    int number = 0;
    if (classes < 2 || classes > MOST_CLASSES)
        return arena_printf(arena, "a confusion matrix is a list of 2 to %d rows", MOST_CLASSES);
    *matrix = (PlotMatrix){.classes = classes, .count = count = NEW_ARRAY(arena, double, classes *classes)};
    for (const MtcJson *row = rows->first; row; row = row->next) {
        const char *wrong = wrong_row(arena, row, ++number, classes);
        if (wrong)
            return wrong;
        for (const MtcJson *item = row->first; item; item = item->next)
            *count++ = item->number;
    }
    return NULL;
}

const char *matrix_read_names(Arena *arena, const MtcJson *names, PlotMatrix *matrix) {
    const char **name = NEW_ARRAY(arena, const char *, matrix->classes);
    if (length_of(names) != matrix->classes)
        return arena_printf(arena, "%d names for the %d classes of the confusion matrix", length_of(names),
                            matrix->classes);
    matrix->name = name;
    for (const MtcJson *item = names->first; item; item = item->next) {
        if (item->kind != MTC_JSON_STRING)
            return "the names of the confusion matrix are no strings";
        *name++ = arena_strdup(arena, item->string);
    }
    return NULL;
}

/* ---- drawing ---- */

typedef struct MatrixDrawing {
    Picture *picture;
    const PlotMatrix *matrix;
    double left, top, cell, names; /* names: room that the names of classes take */
} MatrixDrawing;

static const char *name_of(const MatrixDrawing *d, int class_) {
    Arena *arena = d->picture->arena;
    return d->matrix->name ? plot_shortened(arena, d->matrix->name[class_], NAME) : arena_printf(arena, "%d", class_);
}

static double longest_name(const MatrixDrawing *d) {
    int longest = 0;
    for (int i = 0; i < d->matrix->classes; i++) {
        const int length = plot_characters(name_of(d, i));
        longest = length > longest ? length : longest;
    }
    return LETTER * longest + 10;
}

static void draw_names(const MatrixDrawing *d) {
    const bool fits = d->names < d->cell + 6;
    for (int i = 0; i < d->matrix->classes && d->cell >= SMALLEST_WITH_NAME; i++) {
        const double middle = (i + 0.5) * d->cell, half = plot_characters(name_of(d, i)) * LETTER / 2;
        picture_text(d->picture, ROLE_Y_TICK, d->left - 6, d->top + middle + 4, name_of(d, i));
        if (fits)
            picture_text(d->picture, ROLE_X_TICK, d->left + middle, d->top - 6, name_of(d, i));
        else
            picture_text(d->picture, ROLE_X_TICK, d->left + middle + 4, d->top - 6 - half, name_of(d, i));
        d->picture->marks.at[d->picture->marks.count - 1].upward = !fits;
    }
}

static double row_sum(const PlotMatrix *matrix, int row) {
    double sum = 0;
    for (int j = 0; j < matrix->classes; j++)
        sum += matrix->count[row * matrix->classes + j];
    return sum;
}

static void draw_row(const MatrixDrawing *d, int i) {
    const PlotMatrix *matrix = d->matrix;
    const double all = row_sum(matrix, i);
    for (int j = 0; j < matrix->classes; j++) {
        const double count = matrix->count[i * matrix->classes + j];
        const Place at = {d->left + j * d->cell, d->top + i * d->cell};
        const char *number = arena_printf(d->picture->arena, "%.4g", count);
        picture_cell(d->picture, at, d->cell, all > 0 ? count / all : 0,
                     arena_printf(d->picture->arena, "%s, taken for %s: %.10g", name_of(d, i), name_of(d, j), count));
        if (count > 0 && d->cell >= SMALLEST_WITH_NUMBER && LETTER * plot_characters(number) < d->cell) {
            picture_text(d->picture, ROLE_LABEL, at.x + d->cell / 2, at.y + d->cell / 2 + 4, number);
            d->picture->marks.at[d->picture->marks.count - 1].beside = true;
        }
    }
}

double matrix_draw(Picture *picture, const PlotMatrix *matrix, const char *run, double top) {
    MatrixDrawing d = {.picture = picture, .matrix = matrix};
    d.names = longest_name(&d);
    d.left = LEFT + d.names;
    d.cell = fmin(LARGEST, (PAGE - d.left) / matrix->classes);
    d.top = top + HEADING + (d.names < d.cell + 6 ? LETTER * 2 : d.names);
    picture_text(picture, ROLE_HEADING, LEFT, top + 20,
                 arena_printf(picture->arena, "confusion, %s%s%s", matrix->split, run ? ", " : "", run ? run : ""));
    picture_text(picture, ROLE_NOTE, LEFT, top + 38,
                 "a row for each class, a column for what its examples were taken for");
    draw_names(&d);
    for (int i = 0; i < matrix->classes; i++)
        draw_row(&d, i);
    return d.top + matrix->classes * d.cell + BELOW;
}
