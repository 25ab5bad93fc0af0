/* The order of examples in an epoch, computed by the host; train.c asks for it. It is a permutation of seed and epoch alone
 * (mtc_permute in kernels_lib/random.h): a GPU computes the same one by a kernel (kernels_lib/cuda/fill.cuh), feed.c for data that
 * stay in host memory. */
#include "session/order.h"

#include "random.h"

/* mtc_permute of all indices, for so few that each walks far along its cycle: every step of the cycles is made once. */
static void permute_few(uint64_t key, uint32_t count, int *order) {
    uint32_t next[1 << MTC_FEWEST_BITS], at;
    for (uint32_t i = 0; i < 1 << MTC_FEWEST_BITS; i++)
        next[i] = mtc_permute_bits(key, MTC_FEWEST_BITS, i);
    for (uint32_t i = 0; i < count; i++) {
        for (at = next[i]; at >= count;)
            at = next[at];
        order[i] = (int)at;
    }
}

void mtc_fill_order(const MtcSession *session, int64_t epoch, int *order) {
    uint64_t key = mtc_shuffle_key(session->seed, (uint64_t)epoch);
    uint32_t count = (uint32_t)session->data[MTC_TRAIN].examples;
    if (count < 1 << (MTC_FEWEST_BITS - 1))
        permute_few(key, count, order);
    else
        for (uint32_t i = 0; i < count; i++)
            order[i] = (int)mtc_permute(key, count, i);
}

int64_t mtc_most_orders(int64_t examples) {
    const int64_t many = 1 << 16;
    return examples < many ? many / examples : 1;
}
