/* Matrix product of 8-bit integers, one tile at a time.
 *
 *     sum[i, j] = sum over k of a[i, k] * b[k, j]        for rows i0 .. i0 + rows, columns j0 .. j0 + columns
 *
 * Sums are exact, in 32 bits: operands are from -127 to 127, and k runs over I8_DEEPEST terms at most. So their order is free, and a
 * product of vectors adds up along k, as both operands lie: the rows of a and the columns of b are neighbours in memory.
 *
 *     a, a row        o o o o  o o o o ...     For each I8_DEPTH of k: hold the rows of a as registers take them; then for each
 *     b, a column     o o o o  o o o o ...     I8_COLUMNS columns of b, held likewise, let each I8_ROWS rows run along them, with
 *                     -------  -------         a vector of partial sums for each pair in registers, which are added up at the end.
 *     lanes           + + + +  + + + +
 *
 * With AVX-512 VNNI one instruction takes 64 products, with AVX-VNNI 32; what lies as a matrix is held where it is. With AVX2 two take
 * 16, of numbers that are held as 16 bits. (Of bytes it takes 32, but the sums of 16 bits that come out are widened by as many
 * instructions: 0.7 of the speed, on a Zen.) */
#ifndef MTC_CPU_MATMUL_I8_H
#define MTC_CPU_MATMUL_I8_H

#include "operand.h"
#include "shared.h"

#include <math.h>

#if defined __AVX2__
#include <immintrin.h>
#endif

typedef signed char Integer;

/* The nearest integer; the largest ones for what is beyond them, the lowest for what is no number. */
static inline Integer to_i8(real x) {
    real low = x >= -I8_LARGEST ? x : -I8_LARGEST, inside = low <= I8_LARGEST ? low : I8_LARGEST;
    return (Integer)(int)rintf((float)inside);
}

/* ---- vectors ---- */

/* I8_STEP integers, as many as a step takes, of those that are held or of bytes as they lie; lanes of sums of 32 bits.
 *
 * VNNI multiplies bytes without sign by bytes with one. a + 128 has none; what this adds to a sum, 128 times the sum of b, is taken
 * away again. Lanes may pass 32 bits on the way, and come back. */
#if defined __AVX512VNNI__ && defined __AVX512BW__
#define I8_BIAS 128
enum { I8_STEP = 64, I8_ROWS = 4 };
typedef Integer Held;
typedef __m512i I8Vector;
typedef __m512i I8Lanes;

static inline I8Vector i8_bias(void) {
    return _mm512_set1_epi8((char)I8_BIAS);
}

static inline I8Vector i8_bytes(const Integer *at) {
    return _mm512_loadu_si512(at);
}

static inline I8Vector i8_left(const Held *at) {
    return _mm512_xor_si512(i8_bytes(at), i8_bias());
}

static inline I8Lanes i8_none(void) {
    return _mm512_setzero_si512();
}

static inline I8Lanes i8_add(I8Lanes sum, I8Vector a, I8Vector b) {
    return _mm512_dpbusd_epi32(sum, a, b);
}

static inline __m256i i8_halves(I8Lanes sum) {
    return _mm256_add_epi32(_mm512_castsi512_si256(sum), _mm512_extracti64x4_epi64(sum, 1));
}
#elif defined __AVXVNNI__ && defined __AVX2__
#define I8_BIAS 128
enum { I8_STEP = 32, I8_ROWS = 2 };
typedef Integer Held;
typedef __m256i I8Vector;
typedef __m256i I8Lanes;

static inline I8Vector i8_bias(void) {
    return _mm256_set1_epi8((char)I8_BIAS);
}

static inline I8Vector i8_bytes(const Integer *at) {
    return _mm256_loadu_si256((const __m256i *)(const void *)at);
}

static inline I8Vector i8_left(const Held *at) {
    return _mm256_xor_si256(i8_bytes(at), i8_bias());
}

static inline I8Lanes i8_none(void) {
    return _mm256_setzero_si256();
}

static inline I8Lanes i8_add(I8Lanes sum, I8Vector a, I8Vector b) {
    return _mm256_dpbusd_avx_epi32(sum, a, b);
}

static inline __m256i i8_halves(I8Lanes sum) {
    return sum;
}
#elif defined __AVX2__
enum { I8_STEP = 16, I8_ROWS = 2 };
typedef short Held;
typedef __m256i I8Vector;
typedef __m256i I8Lanes;

static inline I8Vector i8_bytes(const Integer *at) {
    return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)at));
}

static inline I8Vector i8_left(const Held *at) {
    return _mm256_loadu_si256((const __m256i *)(const void *)at);
}

static inline I8Lanes i8_none(void) {
    return _mm256_setzero_si256();
}

static inline I8Lanes i8_add(I8Lanes sum, I8Vector a, I8Vector b) {
    return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
}

static inline __m256i i8_halves(I8Lanes sum) {
    return sum;
}
#else
enum { I8_STEP = 16, I8_ROWS = 2 };
typedef Integer Held;
#endif

enum {
    I8_COLUMNS = 4,
    I8_DEPTH = 2 * WIDEST_BLOCK, /* of what is held at a time */
    I8_TALLEST = 128,            /* rows of a tile */
    I8_FEW = 4                   /* so few rows run along columns that need not be held for them */
};

/* ---- sums ---- */

/* Column j, from k on: as it is held, or of bytes. */
typedef struct I8Column {
    const Held *held; /* NULL: */
    const Integer *bytes;
} I8Column;

#ifdef __AVX2__
static inline __attribute__((always_inline)) I8Vector i8_right(bool held, const I8Column *column, int k) {
#ifdef I8_BIAS
    return i8_bytes((held ? column->held : column->bytes) + k);
#else
    return held ? i8_left(column->held + k) : i8_bytes(column->bytes + k);
#endif
}

/* Adds the four sums of lanes to four neighbours. */
static inline void i8_fold(int *sum, const I8Lanes lanes[I8_COLUMNS]) {
    __m256i pairs = _mm256_hadd_epi32(i8_halves(lanes[0]), i8_halves(lanes[1])),
            others = _mm256_hadd_epi32(i8_halves(lanes[2]), i8_halves(lanes[3])),
            fours = _mm256_hadd_epi32(pairs, others);
    __m128i folded = _mm_add_epi32(_mm256_castsi256_si128(fours), _mm256_extracti128_si256(fours, 1)), before;
    memcpy(&before, sum, sizeof before);
    folded = _mm_add_epi32(before, folded);
    memcpy(sum, &folded, sizeof folded);
}

/* `rows` rows, `pitch` apart, by I8_COLUMNS columns. */
static inline __attribute__((always_inline)) void i8_registers(int rows, bool held, int *sum, int stride, int depth,
                                                               const Held *a, ptrdiff_t pitch, const I8Column *b) {
    I8Lanes lanes[I8_ROWS][I8_COLUMNS];
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < I8_COLUMNS; j++)
            lanes[i][j] = i8_none();
    for (int k = 0; k < depth; k += I8_STEP) {
        I8Vector left[I8_ROWS];
        for (int i = 0; i < rows; i++)
            left[i] = i8_left(a + i * pitch + k);
        for (int j = 0; j < I8_COLUMNS; j++) {
            I8Vector right = i8_right(held, &b[j], k);
            for (int i = 0; i < rows; i++)
                lanes[i][j] = i8_add(lanes[i][j], left[i], right);
        }
    }
    for (int i = 0; i < rows; i++)
        i8_fold(sum + i * stride, lanes[i]);
}
#else
static inline __attribute__((always_inline)) void i8_registers(int rows, bool held, int *sum, int stride, int depth,
                                                               const Held *a, ptrdiff_t pitch, const I8Column *b) {
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < I8_COLUMNS; j++) {
            const Integer *column = held ? b[j].held : b[j].bytes;
            int total = 0;
            for (int k = 0; k < depth; k++)
                total += a[i * pitch + k] * column[k];
            sum[i * stride + j] += total;
        }
}
#endif

/* Takes away from the rows what the bias has added to each column. */
static inline void i8_unbias(int *sum, int stride, int rows, int depth, bool held, const I8Column *b) {
#ifdef I8_BIAS
    I8Lanes lanes[I8_COLUMNS];
    int bias[I8_COLUMNS] = {0};
    for (int j = 0; j < I8_COLUMNS; j++) {
        lanes[j] = i8_none();
        for (int k = 0; k < depth; k += I8_STEP)
            lanes[j] = i8_add(lanes[j], i8_bias(), i8_right(held, &b[j], k));
    }
    i8_fold(bias, lanes);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < I8_COLUMNS; j++)
            sum[i * stride + j] -= bias[j];
#else
    (void)sum, (void)stride, (void)rows, (void)depth, (void)held, (void)b;
#endif
}

/* I8_COLUMNS columns: all rows of the tile run along them. */
static inline __attribute__((always_inline)) void i8_columns(bool held, int *sum, int stride, int rows, int depth,
                                                             const Held *a, ptrdiff_t pitch, const I8Column *b) {
    int i = 0;
    for (; i + I8_ROWS <= rows; i += I8_ROWS)
        i8_registers(I8_ROWS, held, sum + i * stride, stride, depth, a + i * pitch, pitch, b);
    for (; i < rows; i++)
        i8_registers(1, held, sum + i * stride, stride, depth, a + i * pitch, pitch, b);
    i8_unbias(sum, stride, rows, depth, held, b);
}

/* ---- tiles ---- */

/* So many integers take whole steps. */
static inline int i8_whole(int depth) {
    return (depth + I8_STEP - 1) / I8_STEP * I8_STEP;
}

/* Where element (row, k) of a matrix lies. */
static inline const Integer *i8_at(const Matrix *m, int row, int k) {
    return (const Integer *)m->at + (ptrdiff_t)(m->first_row + row) * m->columns + m->first_column + k;
}

/* Rows as they are held: zeros end them where a step does. */
static inline void i8_hold(const Matrix *m, int row, int k, int rows, int depth, Held *held) {
    enum { SOME = 8 };
    Integer bytes[SOME * I8_DEPTH];
    int whole = i8_whole(depth);
    for (int i = 0; i < rows; i += SOME) {
        int some = least(rows - i, SOME);
        for (int part = 0; part < depth; part += WIDEST_BLOCK)
            copy_block(bytes + part, whole, m, m->first_row + row + i, m->first_column + k + part, some,
                       least(depth - part, WIDEST_BLOCK));
        for (int r = 0; r < some; r++) {
            memset(bytes + r * whole + depth, 0, (size_t)(whole - depth));
            for (int c = 0; c < whole; c++)
                held[(i + r) * whole + c] = bytes[r * whole + c];
        }
    }
}

/* The tile; `sum` and stride as those of matmul. a lies with a row for each of the result's, b with one for each of its columns. */
static inline void matmul_i8(int *sum, int stride, Matrix a, Matrix b, int i0, int j0, int rows, int columns,
                             int depth) {
    Held left_room[I8_TALLEST * I8_DEPTH] __attribute__((aligned(64)));
    Held right_room[I8_COLUMNS * I8_DEPTH] __attribute__((aligned(64)));
    memset(sum, 0, sizeof *sum * (size_t)(stride * rows));
    for (int k = 0; k < depth; k += I8_DEPTH) {
        int deep = least(depth - k, I8_DEPTH), whole = i8_whole(deep);
        bool lies = a.kind == MATRIX_PLAIN && deep == whole && sizeof(Held) == sizeof(Integer);
        const Held *left = lies ? (const Held *)(const void *)i8_at(&a, i0, k) : left_room;
        ptrdiff_t pitch = lies ? a.columns : whole;
        if (!lies)
            i8_hold(&a, i0, k, rows, deep, left_room);
        bool held = deep != whole || (rows > I8_FEW && sizeof(Held) != sizeof(Integer));
        for (int j = 0; j < columns; j += I8_COLUMNS) {
            I8Column column[I8_COLUMNS];
            int some = least(columns - j, I8_COLUMNS);
            if (held)
                i8_hold(&b, j0 + j, k, some, deep, right_room);
            for (int c = 0; c < I8_COLUMNS; c++) {
                column[c].held = right_room + least(c, some - 1) * whole;
                column[c].bytes = i8_at(&b, j0 + j + least(c, some - 1), k);
            }
            if (held)
                i8_columns(true, sum + j, stride, rows, whole, left, pitch, column);
            else
                i8_columns(false, sum + j, stride, rows, whole, left, pitch, column);
        }
    }
}

#endif
