/* The operands of a product: matrices, and images and filters seen as such.
 *
 *     matrix(at, columns)                               at[i, j], row-major
 *     window(at, height, width, channels, along_rows, along_columns)
 *                                                       rows (n, oh, ow), columns (kh, kw, c) of images at[n, h, w, c]
 *     filter(at, outputs, taps, channels)               rows (tap, o), columns c of filters at[o, tap, c]
 *     rows_from(m, first), columns_from(m, first)       the rows, columns of m from there on
 *     transposed(m)                                     any of these with its rows for columns
 *
 * `at` points to numbers of type real, Narrow or e4m3, or to integers of 8 bits (matmul_i8.h). A matrix of reals is multiplied where it
 * lies; of all others, the block that is needed next is copied, integers as they are, the others as plain numbers. */
#ifndef MTC_CPU_OPERAND_H
#define MTC_CPU_OPERAND_H

#include <stdbool.h>
#include <stddef.h>

#include "float8.h"
#include "narrow.h"

/* How a window moves along an axis of an image: output o sees at tap k the position p = o * stride + k * dilation - pad
 * of the image spread out by `spread`: element p / spread where that is whole and inside, else 0. */
typedef struct Axis {
    int outputs, taps, stride, dilation, pad, spread;
} Axis;

typedef enum MatrixKind { MATRIX_PLAIN, MATRIX_WINDOW, MATRIX_FILTER } MatrixKind;

/* What a matrix is made of. A copy has reals, or integers as they are. */
typedef enum Element { ELEMENT_REAL, ELEMENT_NARROW, ELEMENT_I8, ELEMENT_E4M3 } Element;

typedef struct Matrix Matrix;
typedef struct WindowWays WindowWays;
typedef struct MatmulLeft MatmulLeft;

struct Matrix {
    const void *at;
    MatrixKind kind;
    Element element;
    bool transposed;
    int first_row, first_column; /* before it is transposed */
    int columns;
    int height, width, channels; /* window: of the image */
    Axis along_rows, along_columns;
    const WindowWays *ways; /* window: matmul_windows.h; code that a program without windows is not compiled with */
    int outputs, taps;      /* filter */
};

#define is_narrow(at) _Generic(*(at), Narrow : true, default : false)
#define element_at(at)                                                                                                 \
    _Generic(*(at), Narrow : ELEMENT_NARROW, signed char : ELEMENT_I8, e4m3 : ELEMENT_E4M3, default : ELEMENT_REAL)

#define matrix(from, count) ((Matrix){.at = (from), .element = element_at(from), .columns = (count)})
#define window(from, ...) window_of(from, element_at(from), &window_ways, __VA_ARGS__)
#define filter(from, ...) filter_of(from, element_at(from), __VA_ARGS__)

static inline Matrix window_of(const void *at, Element element, const WindowWays *ways, int height, int width,
                               int channels, Axis along_rows, Axis along_columns) {
    return (Matrix){.at = at,
                    .kind = MATRIX_WINDOW,
                    .element = element,
                    .columns = along_rows.taps * along_columns.taps * channels,
                    .height = height,
                    .width = width,
                    .channels = channels,
                    .along_rows = along_rows,
                    .along_columns = along_columns,
                    .ways = ways};
}

static inline Matrix filter_of(const void *at, Element element, int outputs, int taps, int channels) {
    return (Matrix){.at = at,
                    .kind = MATRIX_FILTER,
                    .element = element,
                    .columns = channels,
                    .channels = channels,
                    .outputs = outputs,
                    .taps = taps};
}

static inline Matrix rows_from(Matrix m, int first) {
    m.first_row += first;
    return m;
}

static inline Matrix columns_from(Matrix m, int first) {
    m.first_column += first;
    return m;
}

static inline Matrix transposed(Matrix m) {
    m.transposed = !m.transposed;
    return m;
}

/* ---- blocks of plain numbers ---- */

enum { WIDEST_BLOCK = 256 };

static inline int least(int a, int b) {
    return a < b ? a : b;
}

/* Of a copy. */
static inline size_t copied_bytes(const Matrix *m) {
    return m->element == ELEMENT_I8 ? sizeof(signed char) : sizeof(real);
}

static inline void *copied_at(const Matrix *m, void *copy, ptrdiff_t index) {
    return (char *)copy + index * (ptrdiff_t)copied_bytes(m);
}

static inline void copy_bytes(void *to, const void *from, size_t count) {
    enum { VECTOR = 64 }; /* copies of constant size are no calls */
    if (count % VECTOR == 0)
        for (size_t k = 0; k < count; k += VECTOR)
            memcpy((char *)to + k, (const char *)from + k, VECTOR);
    else
        memcpy(to, from, count);
}

static inline void copy_numbers(void *to, const Matrix *m, ptrdiff_t from, int count) {
    if (m->element == ELEMENT_NARROW)
        for (int k = 0; k < count; k++)
            ((real *)to)[k] = to_float(((const Narrow *)m->at)[from + k]);
    else if (m->element == ELEMENT_E4M3)
        for (int k = 0; k < count; k++)
            ((real *)to)[k] = e4m3_to_float(((const e4m3 *)m->at)[from + k]);
    else if (m->element == ELEMENT_I8)
        copy_bytes(to, (const signed char *)m->at + from, (size_t)count);
    else
        copy_bytes(to, (const real *)m->at + from, sizeof(real) * (size_t)count);
}

static inline void zero_numbers(real *to, int count) {
    memset(to, 0, sizeof(real) * (size_t)count);
}

static inline void copy_zeros(void *to, const Matrix *m, int count) {
    memset(to, 0, copied_bytes(m) * (size_t)count);
}

/* The numbers from `first` on of a line of `length`; 0 beyond its ends. */
static inline void copy_clipped(void *to, const Matrix *m, ptrdiff_t line, int first, int length, int count) {
    if (first >= 0 && first + count <= length) {
        copy_numbers(to, m, line + first, count);
        return;
    }
    int before = first < 0 ? least(-first, count) : 0;
    int end = least(count, length - first), inside = end > before ? end - before : 0;
    copy_zeros(to, m, before);
    copy_numbers(copied_at(m, to, before), m, line + first + before, inside);
    copy_zeros(copied_at(m, to, before + inside), m, count - before - inside);
}

/* The element of the image that output `o` sees at tap `k`; -1: none. */
static inline int seen_at(const Axis *axis, int size, int o, int k) {
    int p = o * axis->stride + k * axis->dilation - axis->pad;
    if (axis->spread > 1) {
        if (p % axis->spread)
            return -1;
        p /= axis->spread;
    }
    return p >= 0 && p < size ? p : -1;
}

/* Of a row (n, oh, ow), `count` columns from (kh, kw, c) on. Neighbouring taps that see neighbouring pixels are one run. */
static inline void copy_window(void *to, const Matrix *m, const int output[3], int kh, int kw, int c, int count) {
    const Axis *across = &m->along_columns;
    bool whole_line = across->dilation == 1 && across->spread == 1;
    int pixels = m->width * m->channels;
    while (count > 0) {
        int run = least(count, (whole_line ? across->taps - kw : 1) * m->channels - c);
        int h = seen_at(&m->along_rows, m->height, output[1], kh);
        ptrdiff_t line = ((ptrdiff_t)output[0] * m->height + h) * pixels;
        int w = whole_line ? output[2] * across->stride + kw - across->pad : seen_at(across, m->width, output[2], kw);
        if (h < 0 || (w < 0 && !whole_line))
            copy_zeros(to, m, run);
        else
            copy_clipped(to, m, line, w * m->channels + c, pixels, run);
        to = copied_at(m, to, run);
        count -= run;
        c = 0;
        kw = whole_line || kw + 1 == across->taps ? 0 : kw + 1;
        kh += kw == 0;
    }
}

/* All taps of the output see the image. */
static inline bool sees_inside(const Axis *axis, int size, int o) {
    int first = o * axis->stride - axis->pad, last = first + (axis->taps - 1) * axis->dilation;
    return axis->spread == 1 && least(first, last) >= 0 && first < size && last < size;
}

/* Columns of windows that lie side by side, seen from the pixel under the first tap. */
typedef struct Run {
    int from, count;
} Run;

/* The runs of `columns` columns from (kh, kw, c) on; returns how many. */
static inline int find_runs(Run *runs, const Matrix *m, int kh, int kw, int c, int columns) {
    int count = 0;
    while (columns > 0) {
        int pixel = kh * m->along_rows.dilation * m->width + kw * m->along_columns.dilation;
        int from = pixel * m->channels + c, length = least(columns, m->channels - c);
        if (count > 0 && runs[count - 1].from + runs[count - 1].count == from)
            runs[count - 1].count += length;
        else
            runs[count++] = (Run){from, length};
        columns -= length;
        c = 0;
        kw = kw + 1 == m->along_columns.taps ? 0 : kw + 1;
        kh += kw == 0;
    }
    return count;
}

/* A part of the columns of all windows. */
typedef struct Part {
    int kh, kw, c, columns; /* the first one, how many */
    Run runs[WIDEST_BLOCK];
    int count;
    int offset[WIDEST_BLOCK]; /* where runs are short: of each column */
    bool scattered;
} Part;

static inline void part_of(Part *part, const Matrix *m, int column, int columns) {
    enum { SHORT = 8 };
    int tap = column / m->channels;
    part->kh = tap / m->along_columns.taps;
    part->kw = tap % m->along_columns.taps;
    part->c = column % m->channels;
    part->columns = columns;
    part->count = find_runs(part->runs, m, part->kh, part->kw, part->c, columns);
    part->scattered = m->element == ELEMENT_REAL && part->count * SHORT > columns;
    for (int r = 0, j = 0; r < part->count && part->scattered; r++)
        for (int k = 0; k < part->runs[r].count; k++)
            part->offset[j++] = part->runs[r].from + k;
}

/* Of an output that sees nothing but the image. */
static inline void copy_inside(void *to, const Matrix *m, const int output[3], const Part *part) {
    int h = output[1] * m->along_rows.stride - m->along_rows.pad;
    int w = output[2] * m->along_columns.stride - m->along_columns.pad;
    ptrdiff_t first = (((ptrdiff_t)output[0] * m->height + h) * m->width + w) * m->channels;
    if (part->scattered) {
        for (int j = 0; j < part->columns; j++)
            ((real *)to)[j] = ((const real *)m->at)[first + part->offset[j]];
        return;
    }
    for (int r = 0; r < part->count; r++) {
        copy_numbers(to, m, first + part->runs[r].from, part->runs[r].count);
        to = copied_at(m, to, part->runs[r].count);
    }
}

static inline void copy_windows(void *to, int stride, const Matrix *m, int row, int column, int rows, int columns) {
    int ows = m->along_columns.outputs, ohs = m->along_rows.outputs;
    int output[3] = {row / ows / ohs, row / ows % ohs, row % ows};
    Part part;
    part_of(&part, m, column, columns);
    for (int i = 0; i < rows; i++, to = copied_at(m, to, stride)) {
        if (sees_inside(&m->along_rows, m->height, output[1]) && sees_inside(&m->along_columns, m->width, output[2]))
            copy_inside(to, m, output, &part);
        else
            copy_window(to, m, output, part.kh, part.kw, part.c, columns);
        if (++output[2] == ows) {
            output[2] = 0;
            output[0] += ++output[1] == ohs;
            output[1] %= ohs;
        }
    }
}

/* Where row `row` of a matrix or of filters begins. */
static inline ptrdiff_t row_at(const Matrix *m, int row) {
    if (m->kind == MATRIX_PLAIN)
        return (ptrdiff_t)row * m->columns;
    return ((ptrdiff_t)(row % m->outputs) * m->taps + row / m->outputs) * m->channels;
}

/* What is done with windows. */
struct WindowWays {
    /* As copy_block. */
    void (*copy)(void *to, int stride, const Matrix *m, int row, int column, int rows, int columns);
    /* A left operand's rows, where its images lie, or in `room` with the zeros around them; false: there is no room. Then those
     * of its columns that are multiplied next. */
    bool (*see_rows)(MatmulLeft *left, const Matrix *m, int row, int rows, real *room);
    void (*see_columns)(MatmulLeft *left, const Matrix *m, int column, int columns);
    /* A panel of a right operand. */
    void (*pack)(real *panel, const Matrix *m, int row, int column, int rows, int columns);
    /* All of a product's depth, two outputs at a time. */
    void (*add_pairs)(real *sum, int stride, const Matrix *a, const Matrix *b, int i0, int j0, int rows, int columns);
};

/* to[i * stride + j] = m(row + i, column + j), as m is stored. */
static inline void copy_block(void *to, int stride, const Matrix *m, int row, int column, int rows, int columns) {
    if (m->kind == MATRIX_WINDOW)
        m->ways->copy(to, stride, m, row, column, rows, columns);
    else
        for (int i = 0; i < rows; i++)
            copy_numbers(copied_at(m, to, (ptrdiff_t)i * stride), m, row_at(m, row + i) + column, columns);
}

/* Element (i, j) is at[i * row + j * column]; one of the two strides is 1. */
typedef struct Block {
    const real *at;
    ptrdiff_t row, column;
} Block;

/* As those of a matrix do, and those of filters that belong to one tap. */
static inline bool rows_lie_evenly(const Matrix *m, int row, int rows) {
    return m->kind == MATRIX_PLAIN || (m->kind == MATRIX_FILTER && row % m->outputs + rows <= m->outputs);
}

/* Elements (i, j) .. (i + rows, j + columns): a copy in `room`, or where they lie if they `may_stay` there. */
static inline Block block_of(const Matrix *m, int i, int j, int rows, int columns, bool may_stay, real *room) {
    int row = m->first_row + (m->transposed ? j : i), column = m->first_column + (m->transposed ? i : j);
    int height = m->transposed ? columns : rows, width = m->transposed ? rows : columns;
    bool stays = may_stay && m->element == ELEMENT_REAL && rows_lie_evenly(m, row, height);
    ptrdiff_t stride = !stays ? width : m->kind == MATRIX_FILTER ? (ptrdiff_t)m->taps * m->channels : m->columns;
    const real *at = room;
    if (stays)
        at = (const real *)m->at + row_at(m, row) + column;
    else
        copy_block(room, width, m, row, column, height, width);
    return m->transposed ? (Block){at, 1, stride} : (Block){at, stride, 1};
}

#endif
