/* Attention: what every position of a sequence reads from the others, without scores of all pairs in memory.
 *
 *     attend<Shape>(qkv, out, sums, scale, tile, shared)
 *
 *         out[q, h] = sum over the keys k that q sees of p[q, k] v[k],   p[q, k] = exp(scale q . k) / sum of these over k
 *         sums[q, h] = log of the sum of exp(scale q . k)
 *
 *     attend_grad<Shape>(qkv, sums, dots, dout, dqkv, scale, tile, shared)         dots[q, h] = dout[q, h] . out[q, h]
 *
 *         p[q, k] = exp(scale q . k - sums[q])
 *         dv[k] = sum over q of p[q, k] dout[q]
 *         ds[q, k] = scale p[q, k] (dout[q] . v[k] - dots[q])
 *         dq[q] = sum over k of ds[q, k] k[k]            dk[k] = sum over q of ds[q, k] q[q]
 *
 * qkv and dqkv [batch, length, row] are packed as attention_shape.cuh says; out and dout [batch, length, query heads, size];
 * sums and dots f32 [batch, length, query heads]. scale > 0.
 *
 * Tiles 0 .. attend_tiles<Shape>() - 1 may run in any order and at the same time, a block of 256 threads each, with
 * attend_shared<Shape>() bytes of shared memory; for the gradient, attend_grad_tiles and attend_grad_shared. Every number is
 * computed by one tile in a fixed order: the same operands give the same bits.
 *
 * Numbers of 16 bits, of heads of 8, 16 .. 128 of them, go to the tensor cores (attention_tensor.cuh), by groups of four warps where
 * the device has instructions for them (attention_group.cuh); all else to attention_plain.cuh. */
#ifndef MTC_CUDA_ATTENTION_CUH
#define MTC_CUDA_ATTENTION_CUH

#include "cuda/attention_group.cuh"
#include "cuda/attention_plain.cuh"
#include "cuda/attention_tensor_grad.cuh"

template <class Shape>
constexpr bool attends_on_tensor_cores = std::is_same_v<typename Shape::Number, Narrow> &&
    head_fits_tensor_cores(Shape::size);

/* Who multiplies where the device has all instructions, which tiles are planned for; and who does here. */
template <int SIZE>
using PlannedProducts = std::conditional_t<SIZE == 32 || SIZE == 64 || SIZE == 128, GroupProducts, WarpProducts>;
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
template <int SIZE> using AttentionProducts = PlannedProducts<SIZE>;
#else
template <int SIZE> using AttentionProducts = WarpProducts;
#endif

template <class Shape> __host__ __device__ constexpr int attend_tiles() {
    if constexpr (attends_on_tensor_cores<Shape>)
        return ForwardTile<Shape, PlannedProducts<Shape::size>, PLANNED_SHARED>::tiles;
    else
        return attend_plain_tiles<Shape>();
}
template <class Shape> __host__ __device__ constexpr int attend_shared() {
    if constexpr (attends_on_tensor_cores<Shape>)
        return ForwardTile<Shape, PlannedProducts<Shape::size>, PLANNED_SHARED>::shared;
    else
        return attend_plain_shared<Shape>();
}
template <class Shape, class Number = typename Shape::Number>
__device__ void attend(const Number *qkv, Number *out, float *sums, float scale, int tile, char *shared) {
    if constexpr (!attends_on_tensor_cores<Shape>)
        attend_plain<Shape>(qkv, out, sums, scale, tile, shared);
    else {
        static_assert(HAS_TENSOR_CORES<Shape>, "sm_75 has no tensor cores for bf16: compile it with --precision fp32");
        attend_tensor_tile<Shape, AttentionProducts<Shape::size>>(qkv, out, sums, scale, tile, shared);
    }
}

template <class Shape> __host__ __device__ constexpr int attend_grad_tiles() {
    if constexpr (attends_on_tensor_cores<Shape>)
        return GradTile<Shape, PlannedProducts<Shape::size>, PLANNED_SHARED>::tiles;
    else
        return attend_plain_grad_tiles<Shape>();
}
template <class Shape> __host__ __device__ constexpr int attend_grad_shared() {
    if constexpr (attends_on_tensor_cores<Shape>)
        return GradTile<Shape, PlannedProducts<Shape::size>, PLANNED_SHARED>::shared;
    else
        return attend_plain_grad_shared<Shape>();
}
template <class Shape, class Number = typename Shape::Number>
__device__ void attend_grad(const Number *qkv, const float *sums, const float *dots, const Number *dout, Number *dqkv,
                            float scale, int tile, char *shared) {
    if constexpr (!attends_on_tensor_cores<Shape>)
        attend_plain_grad<Shape>(qkv, sums, dots, dout, dqkv, scale, tile, shared);
    else {
        static_assert(HAS_TENSOR_CORES<Shape>, "sm_75 has no tensor cores for bf16: compile it with --precision fp32");
        const GradOperands<Shape> operands = {qkv, dout, sums, dots, dqkv, scale};
        attend_grad_tensor_tile<Shape, AttentionProducts<Shape::size>>(operands, tile, shared);
    }
}

#endif
