/* How a tile of attention_plain.cuh and of attention_row.cuh is dealt to threads and to shared memory. */
#ifndef MTC_CUDA_ATTENTION_FORM_CUH
#define MTC_CUDA_ATTENTION_FORM_CUH

#include "cuda/attention_shape.cuh"
#include <algorithm>

/* Blocks that fill a device: below, tiles are smaller than they could be. */
constexpr int PLAIN_FILL = 128;

/* The rows of a tile, 128, 64 or 32: no more than there is shared memory for, and than leave tiles for every multiprocessor. */
template <class Shape> __host__ __device__ constexpr int plain_rows() {
    int rows = Shape::size <= 64 ? 128 : Shape::size <= 128 ? 64 : 32;
    while (rows > 32 &&
           (rows / 2 >= Shape::length || Shape::batch * Shape::queries * divide_up(Shape::length, rows) < PLAIN_FILL))
        rows /= 2;
    return rows;
}

/* Of the rows that pass by at a time. */
template <class Shape> __host__ __device__ constexpr int plain_columns(int owned) {
    return (Shape::size <= 64 ? 32 : Shape::size <= 128 ? 16 : 8) * (owned == 1 ? 2 : 1);
}

/* How ROWS rows of a tile are worked on, by blocks of COLUMNS that pass by, in ROOM bytes. There are OWNED blocks of own rows:
 * `attend` has one, a gradient two. */
template <class Shape, int OWNED, int ROWS, int COLUMNS, int ROOM> struct PlainFormOf {
    static constexpr int down = 4, across = 8; // the lanes of a warp
    static constexpr int size = Shape::size, rows = ROWS, columns = COLUMNS;
    static constexpr int tm = rows / WARPS / down, tn = columns / across, warp_rows = tm * down;
    static_assert(size <= LARGEST_HEAD, "a block of rows fits in shared memory");

    /* Rows as they lie in shared memory: `depth` numbers, the last ones zeros, of which mixing makes `width` sums. */
    static constexpr int depth = divide_up(size, 4) * 4, width = size <= across ? across : divide_up(size, 16) * 16;
    static constexpr int pitch = (width / 4 | 1) * 4; // of an odd number of vectors
    static constexpr int own_floats = rows * pitch, passing_floats = columns * pitch;

    /* Sums of few columns: each thread mixes what it has weights of, and what all have found is added at the end. Else
     * weights pass through shared memory, `turn` columns of a warp at a time. */
    static constexpr bool held = width <= 16;
    static constexpr int share = width / across; // of the columns, in the end
    static constexpr int run = vector_width(share), runs = share / run;
    static constexpr int turn = columns < 16 ? columns : 16, turn_pitch = turn + 8;
    static constexpr int turn_floats = held ? 0 : WARPS * warp_rows * turn_pitch;

    /* Blocks that pass by, two at a time, and the sums and dots of their queries. */
    static constexpr int buffer = 2 * passing_floats + (OWNED == 1 ? 0 : 2 * columns);
    static constexpr int fixed = OWNED * own_floats + turn_floats;
    static constexpr int buffers = (fixed + 2 * buffer) * (int)sizeof(float) <= ROOM ? 2 : 1;
    static constexpr int shared = (fixed + buffers * buffer) * (int)sizeof(float);
};

/* Of a whole tile, where there is room; else of a half or a quarter of its rows at a time; else by half as many columns. */
template <class Shape, int OWNED, int ROWS, int COLUMNS, int ROOM> __host__ __device__ constexpr auto roomy_form() {
    using Form = PlainFormOf<Shape, OWNED, ROWS, COLUMNS, ROOM>;
    if constexpr (Form::shared <= ROOM)
        return Form();
    else if constexpr (ROWS > WARPS * Form::down)
        return roomy_form<Shape, OWNED, ROWS / 2, COLUMNS, ROOM>();
    else {
        static_assert(COLUMNS > Form::across, "heads as large as this need more shared memory than a block has");
        return roomy_form<Shape, OWNED, ROWS, COLUMNS / 2, ROOM>();
    }
}

/* Who attends by whole rows, as attention_row.cuh does: heads so small that a thread holds a row, of positions that see those before them, all in
 * one tile. Half of the pairs are not seen there, and a block of attention_plain.cuh waits for its last rows. Where all see all, lanes that share
 * rows read less of shared memory. */
template <class Shape>
constexpr bool attends_by_rows = Shape::size <= 16 && Shape::length <= plain_rows<Shape>() && Shape::causal;

/* How a tile of attention_row.cuh is dealt: 32 of its rows to a warp, each warp of a group of `parts` the same ones. */
template <class Shape, int OWNED> struct RowForm {
    static constexpr int rows = plain_rows<Shape>(), warp_rows = LANES, groups = rows / LANES, parts = WARPS / groups;

    /* Rows as they pass by, in runs that a warp meets at a time. */
    static constexpr int size = Shape::size, vector = size % 4 == 0 ? 4 : 1;
    static constexpr int depth = divide_up(size, 4) * 4, pitch = depth, columns = 64, run = 8;
    static constexpr int passing_floats = columns * pitch;
    static constexpr int buffer = 2 * passing_floats + (OWNED == 1 ? 0 : 2 * columns), buffers = 2;

    /* In the end, what the parts have found of a row: its sums, with the largest score and the sum of weights. */
    static constexpr int joined_floats = (parts - 1) * rows * (depth + (OWNED == 1 ? 2 : 0));
    static constexpr int shared = std::max(buffers * buffer, joined_floats) * (int)sizeof(float);
};

/* Of the one or the other; OWNED as above. */
template <class Shape, int OWNED, int ROOM = smaller(PLAIN_SHARED, MOST_SHARED)>
__host__ __device__ constexpr auto plain_form() {
    if constexpr (attends_by_rows<Shape>)
        return RowForm<Shape, OWNED>();
    else
        return roomy_form<Shape, OWNED, plain_rows<Shape>(), plain_columns<Shape>(OWNED), ROOM>();
}
template <class Shape, int OWNED, int ROOM = smaller(PLAIN_SHARED, MOST_SHARED)>
using PlainForm = decltype(plain_form<Shape, OWNED, ROOM>());

#endif
