/* Panels of a product on tensor cores: WIDTH lines of an operand by 128 bytes of k each (128 integers, 64 numbers of 16 bits, 32 of tf32),
 * in shared memory as WIDTH rows of 128 bytes.
 *
 *     along k     row = line; a row holds its numbers along k
 *     otherwise   row = line / depth * depth + k; a row holds `depth` neighbouring lines at one k
 *
 * The eight 16-byte chunks of row r change places: chunk c lies at c ^ (r % 8), so that eight rows' chunk c meet eight
 * different groups of banks. This is the layout that the hardware calls a swizzle of 128 bytes. */
#ifndef MTC_CUDA_TENSOR_PANEL_CUH
#define MTC_CUDA_TENSOR_PANEL_CUH

#include "cuda/operand.cuh"
#include "cuda/tile.cuh"
#include <type_traits>

constexpr int PANEL_ROW = 128, CHUNK = 16, CHUNKS = PANEL_ROW / CHUNK; // bytes, bytes, chunks of a row

static inline __device__ unsigned shared_address(const void *p) {
    return (unsigned)__cvta_generic_to_shared(p);
}

static inline __device__ unsigned chunk_offset(int row, int chunk) {
    return row * PANEL_ROW + ((chunk ^ row) % CHUNKS) * CHUNK;
}
/* Of tf32 that does not lie along k, warps read four rows of two neighbouring chunks at a time, a number a lane: these meet
 * different banks when the chunks of the next row are two places further. */
template <class T, bool ALONG_K> __device__ unsigned chunk_offset_of(int row, int chunk) {
    if constexpr (ALONG_K || sizeof(T) == 2)
        return chunk_offset(row, chunk);
    else
        return row * PANEL_ROW + ((chunk ^ row * 2) % CHUNKS) * CHUNK;
}

/* BYTES (4, 8 or 16) from memory to shared memory, or zeros, and then nothing is read; done when await_copies() has counted
 * their group. Before sm_80 they pass through registers, and are done at once. */
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ < 800
template <int BYTES> __device__ void copy_piece(unsigned to, const void *from, bool inside) {
    unsigned word[BYTES / 4];
#pragma unroll
    for (int w = 0; w < BYTES / 4; w++)
        word[w] = 0;
    if (inside)
        *(typename Word<BYTES>::type *)word = *(const typename Word<BYTES>::type *)from;
#pragma unroll
    for (int w = 0; w < BYTES / 4; w++)
        asm volatile("st.shared.b32 [%0], %1;" ::"r"(to + w * 4), "r"(word[w]) : "memory");
}
static inline __device__ void end_copies() {
}
template <int PENDING> __device__ void await_copies() {
}
#else
template <int BYTES> __device__ void copy_piece(unsigned to, const void *from, bool inside) {
    if constexpr (BYTES == CHUNK) // past L1
        asm volatile("cp.async.cg.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(BYTES),
                     "r"(inside ? BYTES : 0)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(BYTES),
                     "r"(inside ? BYTES : 0)
                     : "memory");
}
static inline __device__ void end_copies() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int PENDING> __device__ void await_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}
#endif

/* A chunk of four floats becomes their first terms, the second go to another. */
static inline __device__ void split_chunk(char *chunk, char *second) {
    Pack<unsigned, 4> high = load_pack<4>((const unsigned *)chunk), low;
#pragma unroll
    for (int e = 0; e < 4; e++)
        split_terms(high[e], low[e]);
    store_pack((unsigned *)chunk, high);
    store_pack((unsigned *)second, low);
}

template <class T> __device__ T rounded_to(float x) {
    if constexpr (std::is_same_v<T, Narrow>)
        return to_narrow(x);
    else if constexpr (is_float8<T>)
        return to_e4m3(x);
    else
        return x;
}

template <class Lines, int COUNT, int K, int WIDTH, class T> class TensorPanel {
    static constexpr int vector = CHUNK / sizeof(T), row_step = THREADS / CHUNKS, copies = WIDTH / row_step;
    /* Numbers that lie together can be copied; otherwise they pass through registers, one by one. */
    static constexpr int piece = Lines::neighbours < vector ? Lines::neighbours : vector, pieces = vector / piece;
    static constexpr int piece_bytes = piece * sizeof(T);
    static constexpr bool is_stored =
        std::is_same_v<T, float> ? Lines::is_float : std::is_same_v<typename Lines::One, T>;
    static constexpr bool copied =
        is_stored && !Lines::data_set && piece_bytes >= 4 && (!Lines::along_k || K % piece == 0);

public:
    static constexpr int depth = PANEL_ROW / sizeof(T), bytes = WIDTH * PANEL_ROW;
    static constexpr bool along_k = Lines::along_k, passes = !copied; // through registers

private:
    static constexpr int copies_a_line = along_k ? 1 : depth / row_step, starts = along_k ? 1 : pieces;
    static constexpr int places = copies / copies_a_line * starts;
    static_assert(WIDTH % row_step == 0 && (along_k || WIDTH % depth == 0), "all threads copy the same way");

    const Lines &lines;
    int line0;
    typename Lines::Line place[copied ? places : 1]; // of the lines that this thread copies
    Pack<T, vector> numbers[copied ? 1 : copies];    // on their way through registers
    unsigned to;

    static __device__ int chunk() {
        return threadIdx.x % CHUNKS;
    }
    /* The first number of copy q: its line, counted in the tile, and its step of k, counted in the panel. */
    static __device__ int line_of(int q) {
        return along_k ? threadIdx.x / CHUNKS + q * row_step : q / copies_a_line * depth + chunk() * vector;
    }
    static __device__ int step_of(int q) {
        return along_k ? chunk() * vector : threadIdx.x / CHUNKS + q % copies_a_line * row_step;
    }
    __device__ bool exists(int line, int k) const {
        return (COUNT % WIDTH == 0 || line0 + line < COUNT) && (K % depth == 0 || k < K);
    }
    __device__ void copy(int q, int k0, unsigned panel) const {
#pragma unroll
        for (int p = 0; p < pieces; p++) {
            int line = line_of(q) + (along_k ? 0 : p * piece), k = k0 + step_of(q) + (along_k ? p * piece : 0);
            const auto &at = place[q / copies_a_line * starts + (along_k ? 0 : p)];
            auto step = lines.step(k);
            bool inside = exists(line, k) && lines.inside(at, step);
            copy_piece<piece_bytes>(to + panel + q * row_step * PANEL_ROW + p * piece_bytes, lines.at(at, step),
                                    inside);
        }
    }
    __device__ T number(int line, int k) const {
        if (!exists(line, k))
            return rounded_to<T>(0);
        auto at = lines.line(line0 + line);
        auto step = lines.step(k);
        return rounded_to<T>(lines.inside(at, step) ? (float)lines.value(*lines.at(at, step)) : 0.0f);
    }

public:
    /* line_at(i): the line of the operand that is line i of the product. */
    template <class LineAt>
    __device__ TensorPanel(const Lines &lines, int line0, unsigned shared, LineAt line_at)
        : lines(lines), line0(line0) {
        to = shared + chunk_offset_of<T, along_k>(threadIdx.x / CHUNKS, chunk());
        if constexpr (copied)
#pragma unroll
            for (int p = 0; p < places; p++) {
                int line = line0 + line_of(p / starts * copies_a_line) + (along_k ? 0 : p % starts * piece);
                place[p] = lines.line(line_at(COUNT % WIDTH == 0 || line < COUNT ? line : 0));
            }
    }
    /* Begins to bring the panel at step k0 of k to `panel`, an offset in shared memory; `lay` ends what is not copied. */
    __device__ void fetch(int k0, unsigned panel) {
#pragma unroll
        for (int q = 0; q < copies; q++)
            if constexpr (copied)
                copy(q, k0, panel);
            else
#pragma unroll
                for (int e = 0; e < vector; e++)
                    numbers[q][e] = number(line_of(q) + (along_k ? 0 : e), k0 + step_of(q) + (along_k ? e : 0));
    }
    __device__ void lay(char *panel) const {
        if constexpr (!copied)
#pragma unroll
            for (int q = 0; q < copies; q++) {
                int row = threadIdx.x / CHUNKS + q * row_step;
                store_pack((T *)(panel + chunk_offset_of<T, along_k>(row, chunk())), numbers[q]);
            }
    }
    /* What this thread has brought to a panel becomes its first terms, the second go to another. */
    static __device__ void split(char *panel, char *second) {
#pragma unroll
        for (int q = 0; q < copies; q++) {
            unsigned place = chunk_offset_of<T, along_k>(threadIdx.x / CHUNKS + q * row_step, chunk());
            split_chunk(panel + place, second + place);
        }
    }
    /* What this thread has brought to a panel, rounded to tf32, to nearest: the tensor cores would cut it off. */
    static __device__ void round(char *panel) {
        if constexpr (sizeof(T) == 4 && !Lines::is_rounded)
#pragma unroll
            for (int q = 0; q < copies; q++) {
                T *place = (T *)(panel + chunk_offset_of<T, along_k>(threadIdx.x / CHUNKS + q * row_step, chunk()));
                Pack<T, vector> four = load_pack<vector>(place);
#pragma unroll
                for (int e = 0; e < vector; e++)
                    four[e] = to_tf32(four[e]);
                store_pack(place, four);
            }
    }
    /* One number of a panel as it lies in shared memory. */
    static __device__ float at(const char *panel, int line, int k) {
        int row = along_k ? line : line / depth * depth + k, place = along_k ? k : line % depth;
        return to_float(
            *(const T *)(panel + chunk_offset_of<T, along_k>(row, place / vector) + place % vector * sizeof(T)));
    }
};

#endif
