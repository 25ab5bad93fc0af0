/* What an attention is asked for: its operands, who sees whom, and in which order its tiles run.
 *
 * One packed operand qkv [batch, length, row]: a position's row holds its query heads, then its key heads, then its value
 * heads, `size` numbers each. Query head h meets key and value head h / group. A query sees a key when
 *
 *     key <= query               if causal
 *     query - key < window       if window > 0 */
#ifndef MTC_CUDA_ATTENTION_SHAPE_CUH
#define MTC_CUDA_ATTENTION_SHAPE_CUH

#include "cuda/tile.cuh"

template <class Number_, int BATCH, int LENGTH, int QUERIES, int KEYS, int SIZE, bool CAUSAL, int WINDOW>
struct Attention {
    using Number = Number_;
    static constexpr int batch = BATCH, length = LENGTH, queries = QUERIES, keys = KEYS, size = SIZE, window = WINDOW;
    static constexpr int group = QUERIES / KEYS; // query heads of a key head
    static constexpr int row = (QUERIES + 2 * KEYS) * SIZE, out_row = QUERIES * SIZE;
    static constexpr bool causal = CAUSAL;
    static_assert(QUERIES % KEYS == 0, "query heads share key heads evenly");

    static __device__ bool sees(int query, int key) {
        return (!CAUSAL || key <= query) && (WINDOW == 0 || query - key < WINDOW);
    }
    /* The heads of an example's row. */
    static __device__ constexpr int query_head(int head) {
        return head * SIZE;
    }
    static __device__ constexpr int key_head(int head) {
        return (QUERIES + head) * SIZE;
    }
    static __device__ constexpr int value_head(int head) {
        return (QUERIES + KEYS + head) * SIZE;
    }
};

#endif
