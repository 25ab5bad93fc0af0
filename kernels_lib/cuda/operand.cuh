/* Operands of a product: matrices as they lie in memory, or as they are seen there.
 *
 *     matrix<LD>(p)                 p: f32, rounded(f32), Narrow, Integer or e4m3 [rows, LD], row-major
 *     gathered<LD>(p, batch, f)     p: u8, i32 or f32 [examples, LD]; row i is f(p[row(batch, i), ...]), f as it is loaded
 *     window<...>(p), filter<...>(p)  the operands of convolutions, read straight from image and filters: window.cuh
 *     rows_from(m, first)           the rows from `first` on of any of these
 *     columns_from<MULTIPLE>(m, first)  the columns from `first` on, a multiple of MULTIPLE
 *     transposed(m)                 the transpose of any of these
 *
 * Where an element lies is put together of what its row says about it and what its column says, so that a thread that
 * reads many elements of a row finds out about the row once. An element that is not `inside` lies nowhere and is 0.
 *
 * A product sees operand a as lines i and operand b as lines j, each line a sequence of steps of k. Numbers are fetched raw,
 * one or four neighbours at a time, and become floats when they are used: a fetch never waits for its own memory. It does
 * wait for where a row lies: places are found for all fetches first. */
#ifndef MTC_CUDA_OPERAND_CUH
#define MTC_CUDA_OPERAND_CUH

#include "cuda/batch.cuh"
#include "cuda/pack.cuh"
#include <type_traits>

static inline __device__ float to_float(float v) {
    return v;
}
static inline __device__ float4 to_float(float4 v) {
    return v;
}
static inline __device__ float4 to_float(int4 v) {
    return make_float4(v.x, v.y, v.z, v.w);
}
/* Exact: a byte below the exponent of 2^23, less 2^23. Cheaper than a conversion. */
template <int BYTE> __device__ float byte_to_float(unsigned four) {
    return __uint_as_float(__byte_perm(four, 0x4b000000, 0x7440 | BYTE)) - 8388608.0f;
}
static inline __device__ float4 to_float(unsigned four) { // four bytes
    return make_float4(byte_to_float<0>(four), byte_to_float<1>(four), byte_to_float<2>(four), byte_to_float<3>(four));
}

static inline __device__ float4 to_float(const Pack<Narrow, 4> &v) {
    return make_float4(to_float(v[0]), to_float(v[1]), to_float(v[2]), to_float(v[3]));
}

template <class T> struct FourOf;
template <> struct FourOf<float> { using Type = float4; };
template <> struct FourOf<tf32> { using Type = float4; };
template <> struct FourOf<int> { using Type = int4; };
template <> struct FourOf<unsigned char> { using Type = unsigned; };
template <> struct FourOf<Integer> { using Type = Pack<Integer, 4>; };
template <> struct FourOf<e4m3> { using Type = Pack<e4m3, 4>; };
template <> struct FourOf<Narrow> { using Type = Pack<Narrow, 4>; };

/* So many neighbours of a row, from a multiple of it on, lie together and aligned when rows, or taps, are SIZE long. */
__host__ __device__ constexpr int neighbours_of(int size) {
    return size % 16 == 0 ? 16 : size % 8 == 0 ? 8 : size % 4 == 0 ? 4 : size % 2 == 0 ? 2 : 1;
}

template <int LD, class T> struct Matrix {
    using One = T;
    using Four = typename FourOf<T>::Type;
    using Row = const T *;
    using Column = int;
    static constexpr bool data_set = false, row_runs = true, linear = true;
    static constexpr int neighbours = neighbours_of(LD), pitch = LD;
    const T *numbers; // [rows, LD]

    __device__ Row row(int i) const {
        return numbers + (int64_t)i * LD;
    }
    __device__ Column column(int j) const {
        return j;
    }
    __device__ bool inside(Row, Column) const {
        return true;
    }
    __device__ const T *at(Row row, Column column) const {
        return row + column;
    }
    template <class Raw> __device__ auto value(Raw raw) const {
        return to_float(raw);
    }
};

template <int LD, class T, class F> struct Gathered {
    using One = T;
    using Four = typename FourOf<T>::Type;
    using Row = const T *;
    using Column = int;
    static constexpr bool data_set = true, row_runs = true, linear = false;
    static constexpr int neighbours = neighbours_of(LD);
    const T *numbers; // [examples, LD]
    const Batch &batch;
    F f;

    __device__ Row row(int i) const {
        return numbers + ::row(batch, i) * LD;
    }
    __device__ Column column(int j) const {
        return j;
    }
    __device__ bool inside(Row, Column) const {
        return true;
    }
    __device__ const T *at(Row row, Column column) const {
        return row + column;
    }
    __device__ float value(T raw) const {
        return f((float)raw);
    }
    __device__ float4 value(Four raw) const {
        float4 v = to_float(raw);
        return make_float4(f(v.x), f(v.y), f(v.z), f(v.w));
    }
};

/* A part of an operand: its rows and columns from some on, in columns a multiple of MULTIPLE. */
template <class Stored, int MULTIPLE> struct Section : Stored {
    static constexpr int neighbours =
        Stored::neighbours < neighbours_of(MULTIPLE) ? Stored::neighbours : neighbours_of(MULTIPLE);
    int first_row, first_column;

    __device__ auto row(int i) const {
        return Stored::row(first_row + i);
    }
    __device__ auto column(int j) const {
        return Stored::column(first_column + j);
    }
};

template <class Stored> struct Transposed { Stored stored; };

template <int LD, class T> __device__ Matrix<LD, T> matrix(const T *numbers) {
    return {numbers};
}
template <int LD, class T, class F> __device__ Gathered<LD, T, F> gathered(const T *numbers, const Batch &batch, F f) {
    return {numbers, batch, f};
}
template <class Stored> __device__ Section<Stored, 0> rows_from(const Stored &stored, int first) {
    return {stored, first, 0};
}
template <int MULTIPLE, class Stored>
__device__ Section<Stored, MULTIPLE> columns_from(const Stored &stored, int first) {
    return {stored, 0, first};
}
/* Where rows and columns begin elsewhere: before the first, too. */
template <class Stored> __device__ Section<Stored, 0> part_of(const Stored &stored, int first_row, int first_column) {
    return {stored, first_row, first_column};
}
template <class Stored> __device__ Transposed<Stored> transposed(const Stored &stored) {
    return {stored};
}

/* Lines over k. ALONG_K: neighbours in memory are neighbours in k; otherwise they are neighbouring lines. */
template <class Stored, bool ALONG_K> struct Lines {
    using One = typename Stored::One;
    using Four = typename Stored::Four;
    using Line = std::conditional_t<ALONG_K, typename Stored::Row, typename Stored::Column>;
    using Step = std::conditional_t<ALONG_K, typename Stored::Column, typename Stored::Row>;
    static constexpr bool along_k = ALONG_K, aligned = Stored::neighbours % 4 == 0, data_set = Stored::data_set;
    static constexpr bool runs_along_k = ALONG_K && Stored::row_runs; // a line lies in memory as it is
    static constexpr bool linear = Stored::linear;                    // and the next one at a fixed distance
    static constexpr bool floats = std::is_same_v<One, float> && !data_set;
    static constexpr bool is_rounded = std::is_same_v<One, tf32>; // to what tensor cores read
    static constexpr bool is_float = floats || is_rounded;        // in memory
    static constexpr int neighbours = Stored::neighbours;
    const Stored &stored;

    __device__ Line line(int i) const {
        if constexpr (ALONG_K)
            return stored.row(i);
        else
            return stored.column(i);
    }
    __device__ Step step(int k) const {
        if constexpr (ALONG_K)
            return stored.column(k);
        else
            return stored.row(k);
    }
    __device__ bool inside(const Line &line, const Step &step) const {
        if constexpr (ALONG_K)
            return stored.inside(line, step);
        else
            return stored.inside(step, line);
    }
    __device__ const One *at(const Line &line, const Step &step) const {
        if constexpr (ALONG_K)
            return stored.at(line, step);
        else
            return stored.at(step, line);
    }
    /* An address that can be read, for those that are outside. */
    __device__ const One *any() const {
        return stored.numbers;
    }
    /* Elements from one row of the matrix in memory to the next. */
    static __device__ constexpr int pitch() {
        return Stored::pitch;
    }
    /* Elements from one line, or step of k, to the next. */
    static __device__ constexpr int64_t to_next_line() {
        return ALONG_K ? Stored::pitch : 1;
    }
    static __device__ constexpr int64_t to_next_step() {
        return ALONG_K ? 1 : Stored::pitch;
    }
    template <class Raw> __device__ auto value(Raw raw) const {
        return stored.value(raw);
    }
};

template <class Stored> __device__ Lines<Stored, true> lines_of_a(const Stored &a) {
    return {a};
}
template <class Stored> __device__ Lines<Stored, false> lines_of_a(const Transposed<Stored> &a) {
    return {a.stored};
}
template <class Stored> __device__ Lines<Stored, false> lines_of_b(const Stored &b) {
    return {b};
}
template <class Stored> __device__ Lines<Stored, true> lines_of_b(const Transposed<Stored> &b) {
    return {b.stored};
}

#endif
