/* Windows of three taps along a line, which move by one pixel: two neighbouring outputs of four products instead of six.
 *
 *     y0 = x0 w0 + x1 w1 + x2 w2,    y1 = x1 w0 + x2 w1 + x3 w2         of pixels x and taps w
 *
 *     p0 = (x0 - x2) w0              p1 = (x1 + x2) (w0 + w1 + w2) / 2
 *     p3 = (x1 - x3) w2              p2 = (x2 - x1) (w0 - w1 + w2) / 2        (Winograd's F(2, 3))
 *
 *     y0 = p0 + p1 + p2,             y1 = p1 - p2 - p3
 *
 * Sums over channels and lines are taken of p0 .. p3: four products of matrices, each with a third of the depth. A sum is
 * as exact as that of all taps one after the other, since it has fewer steps. Pairs begin at the even outputs of a line,
 * whatever tile they are in, so the bits depend neither on the tile nor on the number of threads. */
#ifndef MTC_CPU_MATMUL_PAIRS_H
#define MTC_CPU_MATMUL_PAIRS_H

#include "matmul_panel.h"

enum {
    MATMUL_PAIR_DEPTH = 128,                                    /* of k that is transformed at a time */
    MATMUL_PAIR_ROOM = MATMUL_TALLEST * 2 / 3 + 2 + MATMUL_ROWS /* pairs of a tile, most in lines of 3 outputs */
};

typedef real MatmulPixels[MATMUL_PAIR_ROOM * MATMUL_PAIR_DEPTH], MatmulTaps[MATMUL_PAIR_DEPTH * MATMUL_PANEL];

/* Of few channels, the transformation takes longer than what it saves, beside windows that are no copies (matmul_windows.h). */
static inline bool matmul_in_pairs(const Matrix *a, int depth) {
    enum { FEWEST_CHANNELS = 32 };
    const Axis *along = &a->along_columns;
    bool neighbours = along->stride == 1 && along->spread == 1 && (along->dilation == 1 || along->dilation == -1);
    return a->kind == MATRIX_WINDOW && a->element != ELEMENT_I8 && !a->transposed && a->first_column == 0 &&
           depth == a->columns && neighbours && along->taps == 3 && along->outputs > 1 &&
           a->channels >= FEWEST_CHANNELS;
}

/* The pairs of a tile. They are numbered through all lines. */
typedef struct MatmulPairs {
    const Matrix *a;
    int first, count, of_line;
} MatmulPairs;

static inline int matmul_pair_around(const MatmulPairs *pairs, int output) {
    int outputs = pairs->a->along_columns.outputs;
    return output / outputs * pairs->of_line + output % outputs / 2;
}

static inline MatmulPairs matmul_pairs_of(const Matrix *a, int begin, int rows) {
    MatmulPairs pairs = {.a = a, .of_line = (a->along_columns.outputs + 1) / 2};
    pairs.first = matmul_pair_around(&pairs, begin);
    pairs.count = matmul_pair_around(&pairs, begin + rows - 1) - pairs.first + 1;
    return pairs;
}

/* A piece of the depth, which counts the channels of each line of taps: `count` channels of one line. */
typedef struct MatmulPiece {
    int line, channel, count;
} MatmulPiece;

static inline MatmulPiece matmul_piece_at(const Matrix *a, int k, int depth) {
    int channel = k % a->channels;
    return (MatmulPiece){k / a->channels, channel, least(depth, a->channels - channel)};
}

/* x0 .. x3 of a pair. Beyond the image they are zeros. */
static inline void matmul_find_pixels(const real *x[4], const MatmulPairs *pairs, int pair, MatmulPiece piece,
                                      real room[4][MATMUL_PAIR_DEPTH]) {
    const Matrix *a = pairs->a;
    const Axis *along = &a->along_columns;
    int line = pair / pairs->of_line, lines = a->along_rows.outputs;
    int h = seen_at(&a->along_rows, a->height, line % lines, piece.line);
    int w = pair % pairs->of_line * 2 - along->pad + least(0, 2 * along->dilation);
    ptrdiff_t at = (((ptrdiff_t)(line / lines) * a->height + h) * a->width + w) * a->channels + piece.channel;
    for (int t = 0; t < 4; t++, w++, at += a->channels) {
        x[t] = room[t];
        if (h < 0 || w < 0 || w >= a->width)
            zero_numbers(room[t], piece.count);
        else if (a->element == ELEMENT_REAL)
            x[t] = (const real *)a->at + at;
        else
            copy_numbers(room[t], a, at, piece.count);
    }
}

/* to[p][i * MATMUL_PAIR_DEPTH + k]: what the taps of product p multiply, for pair i. */
static inline void matmul_transform_pixels(MatmulPixels to[4], const MatmulPairs *pairs, int k, int depth) {
    real room[4][MATMUL_PAIR_DEPTH];
    const real *x[4];
    for (int i = 0; i < pairs->count; i++)
        for (int done = 0; done < depth;) {
            MatmulPiece piece = matmul_piece_at(pairs->a, k + done, depth - done);
            matmul_find_pixels(x, pairs, pairs->first + i, piece, room);
            int at = i * MATMUL_PAIR_DEPTH + done;
#pragma omp simd
            for (int c = 0; c < piece.count; c++) {
                to[0][at + c] = x[0][c] - x[2][c];
                to[1][at + c] = x[1][c] + x[2][c];
                to[2][at + c] = x[2][c] - x[1][c];
                to[3][at + c] = x[1][c] - x[3][c];
            }
            done += piece.count;
        }
}

/* Panels of b, one for each product. Where taps go backwards, the last one is the first that pixels meet. */
static inline void matmul_pack_taps(MatmulTaps to[4], const Matrix *a, const Matrix *b, int k, int j, int columns,
                                    int depth) {
    static const int forwards[] = {0, 1, 3}, backwards[] = {3, 1, 0};
    real room[MATMUL_PAIR_DEPTH * MATMUL_PANEL];
    const int *place = a->along_columns.dilation > 0 ? forwards : backwards;
    int width = matmul_vectors(columns) * MATMUL_LANES;
    for (int done = 0; done < depth;) {
        MatmulPiece piece = matmul_piece_at(a, k + done, depth - done);
        for (int tap = 0; tap < 3; tap++) {
            int row = (piece.line * 3 + tap) * a->channels + piece.channel;
            matmul_pack_panel(to[place[tap]] + done * width, columns, piece.count,
                              block_of(b, row, j, piece.count, columns, true, room));
        }
        done += piece.count;
    }
#pragma omp simd
    for (int i = 0; i < depth * width; i++) {
        real outer = to[0][i] + to[3][i], inner = to[1][i];
        to[1][i] = (outer + inner) * (real)0.5;
        to[2][i] = (outer - inner) * (real)0.5;
    }
}

/* y0 and y1 of each pair, as far as they are in the tile, whose rows begin at output `begin`. Product p of pair i is
 * product[p * size + i * wide + j]. */
static inline void matmul_finish_pairs(real *sum, int stride, const real *product, int wide, int size,
                                       const MatmulPairs *pairs, int begin, int rows, int columns) {
    int outputs = pairs->a->along_columns.outputs;
    for (int i = 0; i < pairs->count; i++, product += wide) {
        int pair = pairs->first + i, w = pair % pairs->of_line * 2, row = pair / pairs->of_line * outputs + w - begin;
        const real *p0 = product, *p1 = p0 + size, *p2 = p1 + size, *p3 = p2 + size;
        real *y0 = sum + row * stride, *y1 = y0 + stride;
        if (row >= 0)
#pragma omp simd
            for (int j = 0; j < columns; j++)
                y0[j] += p0[j] + p1[j] + p2[j];
        if (row + 1 < rows && w + 1 < outputs)
#pragma omp simd
            for (int j = 0; j < columns; j++)
                y1[j] += p1[j] - p2[j] - p3[j];
    }
}

/* Adds all of the depth to at most MATMUL_WIDEST columns of a tile. */
MATMUL_ONCE void matmul_add_pairs(real *sum, int stride, const Matrix *a, const Matrix *b, int i0, int j0, int rows,
                                  int columns) {
    MatmulPixels pixels[4] __attribute__((aligned(64)));
    MatmulTaps taps[4] __attribute__((aligned(64)));
    real product[4 * MATMUL_PAIR_ROOM * MATMUL_WIDEST] __attribute__((aligned(64)));
    int begin = a->first_row + i0, deep = a->along_rows.taps * a->channels;
    MatmulPairs pairs = matmul_pairs_of(a, begin, rows);
    int wide = (columns + 15) / 16 * 16, size = (pairs.count + MATMUL_ROWS) * wide;
    MatmulLeft left[4];
    for (int p = 0; p < 4; p++)
        matmul_left_of(&left[p], pairs.count, MATMUL_PAIR_DEPTH, pixels[p], MATMUL_ROWS * MATMUL_PAIR_DEPTH,
                       MATMUL_PAIR_DEPTH, 1);
    zero_numbers(product, 4 * size);
    for (int k = 0; k < deep; k += MATMUL_PAIR_DEPTH) {
        int depth = least(deep - k, MATMUL_PAIR_DEPTH);
        matmul_transform_pixels(pixels, &pairs, k, depth);
        for (int j = 0; j < columns; j += MATMUL_PANEL) {
            int width = least(columns - j, MATMUL_PANEL);
            matmul_pack_taps(taps, a, b, k, j0 + j, width, depth);
            for (int p = 0; p < 4; p++)
                matmul_panel(product + p * size + j, wide, pairs.count, matmul_vectors(width), depth, &left[p],
                             taps[p]);
        }
    }
    matmul_finish_pairs(sum, stride, product, wide, size, &pairs, begin, rows, columns);
}

#endif
