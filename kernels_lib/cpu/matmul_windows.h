/* Windows as operands of a product, without a copy of each: neighbours share most of what they see.
 *
 *     left operand:  a pointer to the pixel under the first tap of each row, and for each column how far its number is from
 *                    there, which is the same for all rows. Where windows look beyond the image, the part of it that they see
 *                    is copied once, with the zeros around it.
 *     right operand: panels are packed from the image, tap by tap. */
#ifndef MTC_CPU_MATMUL_WINDOWS_H
#define MTC_CPU_MATMUL_WINDOWS_H

#include "matmul_panel.h"

static inline bool is_of_whole_pixels(const Matrix *m) {
    return m->along_rows.spread == 1 && m->along_columns.spread == 1;
}

/* ---- left ---- */

/* From the pixel under the first tap to the first one that is seen; from that to behind the last one. */
static inline int axis_before(const Axis *axis) {
    return least(0, (axis->taps - 1) * axis->dilation);
}

static inline int axis_span(const Axis *axis) {
    int last = (axis->taps - 1) * axis->dilation;
    return (last < 0 ? -last : last) + 1;
}

static inline bool all_see_inside(const Axis *axis, int size) {
    return sees_inside(axis, size, 0) && sees_inside(axis, size, axis->outputs - 1);
}

/* Outputs of neighbouring lines, which are numbered through all images: of each of `count` lines those from `from` to `to`. */
typedef struct Outputs {
    int first, count, from, to;
} Outputs;

static inline Outputs outputs_of(const Matrix *m, int row, int rows) {
    int wide = m->along_columns.outputs, first = row / wide, last = (row + rows - 1) / wide;
    Outputs outputs = {first, last - first + 1, 0, wide - 1};
    if (first == last) {
        outputs.from = row % wide;
        outputs.to = outputs.from + rows - 1;
    }
    return outputs;
}

/* Numbers of a line of what they see. */
static inline int seen_line(const Matrix *m, Outputs outputs) {
    const Axis *across = &m->along_columns;
    return ((outputs.to - outputs.from) * across->stride + axis_span(across)) * m->channels;
}

/* Lines that `count` outputs below each other see. */
static inline int seen_lines(const Matrix *m, int count) {
    return (count - 1) * m->along_rows.stride + axis_span(&m->along_rows);
}

/* Copies what `count` lines of outputs see of an image, from its output line `oh` on. */
static inline void copy_seen(real *to, const Matrix *m, int image, int oh, int count, Outputs outputs) {
    const Axis *down = &m->along_rows, *across = &m->along_columns;
    int length = seen_line(m, outputs), lines = seen_lines(m, count), whole = m->width * m->channels;
    int h = oh * down->stride - down->pad + axis_before(down);
    int w = outputs.from * across->stride - across->pad + axis_before(across);
    for (int i = 0; i < lines; i++, h++, to += length)
        if (h < 0 || h >= m->height)
            zero_numbers(to, length);
        else
            copy_clipped(to, m, ((ptrdiff_t)image * m->height + h) * whole, w * m->channels, whole, length);
}

/* The pixels under the first taps of a line's outputs, `apart` numbers apart; returns how many. */
static inline int point_at(const real **row, const real *at, int outputs, ptrdiff_t apart) {
    for (int i = 0; i < outputs; i++)
        row[i] = at + i * apart;
    return outputs;
}

static inline void see_image(MatmulLeft *left, const Matrix *m, int row, int rows) {
    const Axis *down = &m->along_rows, *across = &m->along_columns;
    left->line = m->width * m->channels;
    for (int done = 0; done < rows;) {
        int line = (row + done) / across->outputs, ow = (row + done) % across->outputs;
        int h = line % down->outputs * down->stride - down->pad, w = ow * across->stride - across->pad;
        ptrdiff_t pixel = ((ptrdiff_t)(line / down->outputs) * m->height + h) * m->width + w;
        done += point_at(left->row + done, (const real *)m->at + pixel * m->channels,
                         least(rows - done, across->outputs - ow), (ptrdiff_t)across->stride * m->channels);
    }
}

/* In the copies of what is seen of each image, which are one behind the other. */
static inline void see_copies(MatmulLeft *left, const Matrix *m, int row, int rows, Outputs outputs, real *room) {
    const Axis *down = &m->along_rows, *across = &m->along_columns;
    left->line = seen_line(m, outputs);
    for (int line = 0, done = 0; line < outputs.count;) {
        int first = outputs.first + line, image = first / down->outputs, oh = first % down->outputs;
        int count = least(outputs.count - line, down->outputs - oh);
        copy_seen(room, m, image, oh, count, outputs);
        for (int i = 0; i < count; i++) {
            int ow = (row + done) % across->outputs, h = i * down->stride - axis_before(down);
            int w = (ow - outputs.from) * across->stride - axis_before(across);
            done += point_at(left->row + done, room + (ptrdiff_t)h * left->line + w * m->channels,
                             least(rows - done, outputs.to + 1 - ow), (ptrdiff_t)across->stride * m->channels);
        }
        room += (ptrdiff_t)seen_lines(m, count) * left->line;
        line += count;
    }
}

static inline bool has_room(const Matrix *m, Outputs outputs) {
    int down = m->along_rows.outputs, last = outputs.first + outputs.count - 1;
    int images = last / down - outputs.first / down + 1;
    ptrdiff_t between = (ptrdiff_t)(outputs.count - images) * m->along_rows.stride;
    return (between + (ptrdiff_t)images * axis_span(&m->along_rows)) * seen_line(m, outputs) <= MATMUL_ROOM;
}

static inline bool see_rows(MatmulLeft *left, const Matrix *m, int row, int rows, real *room) {
    bool inside = all_see_inside(&m->along_rows, m->height) && all_see_inside(&m->along_columns, m->width);
    row += m->first_row;
    Outputs outputs = outputs_of(m, row, rows);
    if (!is_of_whole_pixels(m) || m->element == ELEMENT_I8)
        return false;
    if (inside && m->element == ELEMENT_REAL)
        see_image(left, m, row, rows);
    else if (has_room(m, outputs))
        see_copies(left, m, row, rows, outputs, room);
    else
        return false;
    matmul_repeat_last(left, rows);
    return true;
}

static inline void see_columns(MatmulLeft *left, const Matrix *m, int column, int columns) {
    column += m->first_column;
    int tap = column / m->channels, c = column % m->channels;
    for (int k = 0; k < columns; tap++, c = 0) {
        int kh = tap / m->along_columns.taps, kw = tap % m->along_columns.taps;
        int at = kh * m->along_rows.dilation * left->line + kw * m->along_columns.dilation * m->channels;
        for (; c < m->channels && k < columns; c++)
            left->offset[k++] = at + c;
    }
}

/* ---- right ---- */

static inline bool may_pack_windows(const Matrix *m) {
    return m->kind == MATRIX_WINDOW && m->element == ELEMENT_REAL && !m->transposed && is_of_whole_pixels(m);
}

/* to[i * width + j] = from[i * apart + j] for `count` numbers of so many pixels. */
static inline void pack_pixels(real *to, int width, const real *from, ptrdiff_t apart, int pixels, int count) {
    enum { FEW = 4 };
    if (count % MATMUL_LANES == 0)
        for (int i = 0; i < pixels; i++)
            for (int j = 0; j < count; j += MATMUL_LANES)
                matmul_store(to + i * width + j, matmul_load(from + i * apart + j));
    else if (count % FEW == 0)
        for (int i = 0; i < pixels; i++)
            for (int j = 0; j < count; j += FEW)
                memcpy(to + i * width + j, from + i * apart + j, FEW * sizeof(real));
    else
        for (int j = 0; j < count; j++)
            for (int i = 0; i < pixels; i++)
                to[i * width + j] = from[i * apart + j];
}

static inline void pack_zeros(real *to, int width, int pixels, int count) {
    for (int j = 0; j < count; j++)
        for (int i = 0; i < pixels; i++)
            to[i * width + j] = 0;
}

/* The first output from which on a tap that lies `at` pixels behind the output's first one sees pixel `pixel` or a later one. */
static inline int first_seeing(const Axis *axis, int tap, int pixel) {
    int p = pixel + axis->pad - tap * axis->dilation;
    return p <= 0 ? 0 : (p + axis->stride - 1) / axis->stride;
}

/* `count` channels of a tap, of windows from `row` on. */
static inline void pack_tap(real *panel, int width, const Matrix *m, int row, int rows, int tap, int c, int count) {
    const Axis *down = &m->along_rows, *across = &m->along_columns;
    int kh = tap / across->taps, kw = tap % across->taps;
    int begin = first_seeing(across, kw, 0), end = first_seeing(across, kw, m->width);
    for (int done = 0; done < rows;) {
        int line = (row + done) / across->outputs, ow = (row + done) % across->outputs;
        int some = least(rows - done, across->outputs - ow), h = seen_at(down, m->height, line % down->outputs, kh);
        int before = h < 0 ? some : least(some, begin > ow ? begin - ow : 0);
        int seen = least(some, end > ow ? end - ow : 0) - before;
        seen = seen > 0 ? seen : 0;
        int w = (ow + before) * across->stride + kw * across->dilation - across->pad;
        ptrdiff_t pixel = ((ptrdiff_t)(line / down->outputs) * m->height + h) * m->width + w;
        real *to = panel + (ptrdiff_t)done * width;
        pack_zeros(to, width, before, count);
        pack_pixels(to + (ptrdiff_t)before * width, width, (const real *)m->at + pixel * m->channels + c,
                    (ptrdiff_t)across->stride * m->channels, seen, count);
        pack_zeros(to + (ptrdiff_t)(before + seen) * width, width, some - before - seen, count);
        done += some;
    }
}

static inline void pack_windows(real *panel, const Matrix *m, int row, int column, int rows, int columns) {
    int width = matmul_vectors(columns) * MATMUL_LANES, first = m->first_column + column;
    if (columns < width)
        zero_numbers(panel, rows * width);
    for (int j = 0; j < columns;) {
        int c = (first + j) % m->channels, count = least(columns - j, m->channels - c);
        pack_tap(panel + j, width, m, m->first_row + row, rows, (first + j) / m->channels, c, count);
        j += count;
    }
}

#endif
