/* Panels of floats whose lines lie across k in memory, for groups of warps: these read floats along k alone. So a thread fetches a few
 * neighbouring lines at four steps of k, and lays them down turned, four steps of a line in a chunk, and rounded to tf32:
 *
 *     memory      a b c d     k          shared memory    a e i m     line
 *                 e f g h     k + 1                       b f j n     line + 1
 *                 i j k l     k + 2                       c g k o     line + 2
 *                 m n o p     k + 3                       d h l p     line + 3
 *
 * They lie as those of tensor_panel.cuh along k, and have the same functions. */
#ifndef MTC_CUDA_TENSOR_TURNED_CUH
#define MTC_CUDA_TENSOR_TURNED_CUH

#include "cuda/tensor_panel.cuh"

template <class Lines, int COUNT, int K, int WIDTH, int TERMS> class TurnedPanel {
    static constexpr int run = WIDTH % (4 * LANES) == 0 && Lines::neighbours % 4 == 0 ? 4 : 2; // lines of a thread
    static constexpr int steps = CHUNK / (int)sizeof(float),
                         wide = 8 / run; // eight threads' chunks meet different banks
    static constexpr int warps_along = CHUNKS / run, rounds = WIDTH / (LANES * run);

public:
    static constexpr int depth = PANEL_ROW / sizeof(float), bytes = WIDTH * PANEL_ROW;
    static constexpr bool along_k = true, passes = true; // through registers
    static constexpr bool is_possible = !Lines::along_k && Lines::is_float && Lines::neighbours % run == 0 &&
                                        COUNT % run == 0 && WIDTH % (LANES * run) == 0;

private:
    const Lines &lines;
    int line0;
    typename Lines::Line place[rounds];
    Pack<float, run> numbers[rounds][steps]; // on their way through registers

    static __device__ int chunk() {
        return threadIdx.x / LANES % warps_along * run + threadIdx.x % 8 / wide;
    }
    static __device__ int line_of(int round) {
        int of_warp = threadIdx.x % LANES / 8 * wide + threadIdx.x % wide;
        return (threadIdx.x / LANES / warps_along + round * (WARPS / warps_along)) * LANES + of_warp * run;
    }
    __device__ bool exists(int line, int k) const {
        return (COUNT % WIDTH == 0 || line0 + line < COUNT) && (K % depth == 0 || k < K);
    }

public:
    template <class LineAt>
    __device__ TurnedPanel(const Lines &lines, int line0, unsigned, LineAt line_at) : lines(lines), line0(line0) {
#pragma unroll
        for (int r = 0; r < rounds; r++) {
            int line = line0 + line_of(r);
            place[r] = lines.line(line_at(COUNT % WIDTH == 0 || line < COUNT ? line : 0));
        }
    }
    __device__ void fetch(int k0, unsigned) {
#pragma unroll
        for (int s = 0; s < steps; s++) {
            int k = k0 + chunk() * steps + s;
            auto step = lines.step(k);
#pragma unroll
            for (int r = 0; r < rounds; r++) {
                bool inside = exists(line_of(r), k) && lines.inside(place[r], step);
                numbers[r][s] = inside ? load_pack<run>((const float *)lines.at(place[r], step)) : fill_pack<run>(0.0f);
            }
        }
    }
    __device__ void lay(char *panel) const {
#pragma unroll
        for (int r = 0; r < rounds; r++)
#pragma unroll
            for (int e = 0; e < run; e++) {
                Pack<float, steps> along;
#pragma unroll
                for (int s = 0; s < steps; s++)
                    along[s] = TERMS == 2 || Lines::is_rounded ? numbers[r][s][e] : to_tf32(numbers[r][s][e]);
                store_pack((float *)(panel + chunk_offset(line_of(r) + e, chunk())), along);
            }
    }
    static __device__ void round(char *) {
    }
    static __device__ void split(char *panel, char *second) {
#pragma unroll
        for (int r = 0; r < rounds; r++)
#pragma unroll
            for (int e = 0; e < run; e++) {
                unsigned place = chunk_offset(line_of(r) + e, chunk());
                split_chunk(panel + place, second + place);
            }
    }
    static __device__ float at(const char *panel, int line, int k) {
        return *(const float *)(panel + chunk_offset(line, k / steps) + k % steps * (int)sizeof(float));
    }
};

#endif
