/* The pixels of images in a line of positions: see tensor_taps.cuh. */
#ifndef MTC_CUDA_TENSOR_TAPS_POSITIONS_CUH
#define MTC_CUDA_TENSOR_TAPS_POSITIONS_CUH

#include "cuda/tensor_resident.cuh"

template <class Windows> struct TapPositions { static constexpr bool is_possible = false; };

template <class T, int H, int W, int C, class Rows, class Columns>
struct TapPositions<Window<T, H, W, C, Rows, Columns>> {
    using One = T;
    static constexpr bool is_possible = Rows::kernel == TAP_SIDE && Columns::kernel == TAP_SIDE &&
                                        Rows::dilation == 1 && Columns::dilation == 1 && keeps_size<Rows, H>() &&
                                        keeps_size<Columns, W>();
    static constexpr int channels = C, width = W, pixels_of_image = H * W;
    static constexpr int across = W + 1, down = H + 1, halo = taps_halo(W);

    static __host__ __device__ constexpr int count(int pixels) {
        return pixels / (H * W) * down * across;
    }
    /* The pixel at a position, of `pixels` in all; -1: none. */
    static __device__ int pixel(int position, int pixels) {
        int row = position / across, w = position % across, image = row / down, h = row % down;
        return position >= 0 && w < W && h < H && image * (H * W) < pixels ? (image * H + h) * W + w : -1;
    }
    /* How far a tap's first position is from that of the first. */
    static __device__ constexpr int shift(int tap) {
        return tap / TAP_SIDE * across + tap % TAP_SIDE;
    }
};

/* Which pixels panels have, LINES positions each from `halo` before their first on: found once for all threads, three panels ahead. */
template <class Positions, int DEPTH, int LINES> struct TapTable {
    static constexpr int slots = 4, ahead = slots - 1, bytes = slots * LINES * (int)sizeof(int);
    int *table;
    int pixels; // in all

    __device__ int *of(int panel) const {
        return table + panel % slots * LINES;
    }
    /* There, and for all threads, after the next barrier. */
    __device__ void find(int panel) const {
#pragma unroll
        for (int r = 0; r < LINES; r += THREADS)
            if (int line = threadIdx.x + r; line < LINES)
                of(panel)[line] = Positions::pixel(panel * DEPTH - Positions::halo + line, pixels);
    }
    /* The pixel at a position that a panel of a has. */
    __device__ int at(int position) const {
        return of(position / DEPTH)[position % DEPTH + Positions::halo];
    }
};

/* 64 channels of pixels. */
template <class T> struct TapChannels {
    const T *numbers;
    int pitch;
};

/* Begins to bring LINES positions to rows in shared memory; `pixels`: which they are, place(line, chunk): where. */
template <int LINES, class T, class Place>
__device__ void fetch_positions(const TapChannels<T> &channels, const int *pixels, Place place) {
    constexpr int chunks = TAP_CHANNELS * (int)sizeof(T) / CHUNK, step = THREADS / chunks;
    const int line = threadIdx.x / chunks, chunk = threadIdx.x % chunks;
    const T *numbers = channels.numbers + chunk * (CHUNK / (int)sizeof(T));
    int pixel[divide_up(LINES, step)];
#pragma unroll
    for (int r = 0; r < LINES; r += step)
        pixel[r / step] = LINES % step == 0 || line + r < LINES ? pixels[line + r] : -1;
#pragma unroll
    for (int r = 0; r < LINES; r += step)
        if (LINES % step == 0 || line + r < LINES)
            copy_piece<CHUNK>(place(line + r, chunk), numbers + (int64_t)pixel[r / step] * channels.pitch,
                              pixel[r / step] >= 0);
}

#endif
