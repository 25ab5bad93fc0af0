/* kernels_lib/cuda/recurrent_together.cuh on the host: a fiber for each of a cluster's threads, memory in place of shared memory.
 * Prints, of each case, how far the blocks together are from a block that has all units, and whether those apart have the same bits. */
#define MTC_CUDA_TEAM_CUH
#define MTC_CUDA_CLUSTER_CUH
#include "block_on_host.h"

#include <utility>

struct float4 {
    float x, y, z, w;
};
static int blocks;
static char *memory[16];
static Barrier of_cluster = {0};

static int block() {
    return self / THREADS;
}
static void arrive_at_cluster() {
    of_cluster.wait();
}
static void await_cluster() {
}
static int block_of_cluster() {
    return block();
}
static int blocks_of_cluster() {
    return blocks;
}
template <class T> T *in_block(T *shared, int other) {
    return (T *)(memory[other] + ((char *)shared - memory[block()]));
}

/* A phase ends when it was expected and as many bytes came. */
struct Mailbox {
    int missing;
    short expected, phase;
};
static void open_mailbox(Mailbox *box) {
    *box = {};
}
static void count_mail(Mailbox *box, int bytes, int expected) {
    box->missing += bytes;
    box->expected += expected;
    if (box->expected && !box->missing) {
        box->expected = 0;
        box->phase ^= 1;
    }
}
static void expect_mail(Mailbox *box, int bytes) {
    count_mail(box, bytes, 1);
}
static void await_mail(Mailbox *box, int phase) {
    while (box->phase == phase)
        leave();
}
template <class T> void mail(float *to, T value, Mailbox *box, int other) {
    memcpy(in_block(to, other), &value, sizeof value);
    count_mail(in_block(box, other), -(int)sizeof value, 0);
}
static float sigmoid(float x) {
    return 1 / (1 + expf(-x));
}
static float relu(float x) {
    return x > 0 ? x : 0;
}
constexpr int floor_power(int n) {
    return n < 2 ? 1 : 2 * floor_power(n / 2);
}

#include "cuda/recurrent.cuh"

using Numbers = std::vector<float>;

static Numbers drawn(size_t count, float scale) {
    Numbers all(count);
    for (float &x : all)
        x = scale * ((float)rand() / (float)RAND_MAX - 0.5f);
    return all;
}

template <class Shape> struct Data {
    static constexpr int B = Shape::examples, T = Shape::steps, U = Shape::units, G = Shape::gates;
    Numbers x = drawn(B * T * G * U, 2), u = drawn(U * G * U, 0.5), ut = u, bias = drawn(G * U, 1);
    Numbers start = drawn(B * Shape::states * U, 1), length = drawn(B, 0), dy = drawn(B * T * U, 1);
    Numbers out = Numbers(B * T * U, NAN), kept = Numbers(B * T * Shape::kept * U, NAN);
    Numbers gates = Numbers(B * T * G * U, NAN), d_start = Numbers(B * Shape::states * U, NAN);

    Data() {
        for (int i = 0; i < U; i++)
            for (int j = 0; j < G * U; j++)
                ut[j * U + i] = u[i * G * U + j];
        for (int b = 0; b < B; b++)
            length[b] = (float)((b * 7 + T) % (T + 2));
    }
    const Numbers *results(int k) const {
        const Numbers *all[] = {&out, &kept, &gates, &d_start};
        return all[k];
    }
};

template <class Shape> void work(Data<Shape> &d, int tile) {
    recur<Shape>(d.x.data(), d.u.data(), d.bias.data(), d.start.data(), d.length.data(), d.out.data(), d.kept.data(),
                 tile, memory[block()]);
    arrive_at_cluster(); // the end of a launch
    recur_grad<Shape>(d.kept.data(), d.ut.data(), d.out.data(), d.start.data(), d.length.data(), d.dy.data(),
                      d.gates.data(), d.d_start.data(), tile, memory[block()]);
    arrive_at_cluster();
}

/* One cluster takes all tiles. Beyond its shared memory nothing is written. */
template <class Shape> void launch(Data<Shape> &data, int together) {
    constexpr size_t all = PLANNED_SHARED + 1024;
    const size_t bytes = (size_t)std::max(recur_shared<Shape>(), recur_grad_shared<Shape>());
    blocks = together;
    of_cluster = {blocks * THREADS};
    for (int b = 0; b < blocks; b++) {
        memory[b] = (char *)aligned_alloc(1024, all);
        memset(memory[b], 0xff, all);
    }
    run_fibers(blocks * THREADS, [&] {
        for (int tile = 0; tile < recur_tiles<Shape>(); tile += blocks)
            work(data, tile + block());
    });
    for (int b = 0; b < blocks; b++) {
        for (size_t k = bytes; k < all; k++)
            if (memory[b][k] != (char)0xff)
                exit(3);
        free(memory[b]);
    }
}

template <int EXAMPLES, int STEPS, int UNITS, RecurrentCell CELL, bool REVERSED, int BLOCKS> void compare() {
    using Alone = Recurrence<float, EXAMPLES, STEPS, UNITS, CELL, REVERSED>;
    using Together = Recurrence<float, EXAMPLES, STEPS, UNITS, CELL, REVERSED, BLOCKS>;
    using Apart = typename Together::Apart;
    srand(1);
    Data<Alone> alone;
    srand(1);
    Data<Together> together;
    srand(1);
    Data<Apart> apart;
    launch(alone, 1);
    launch(together, BLOCKS);
    launch(apart, 1);
    double worst = 0;
    bool same = true;
    for (int k = 0; k < 4; k++) {
        const Numbers &a = *alone.results(k), &b = *together.results(k), &c = *apart.results(k);
        for (size_t i = 0; i < a.size(); i++)
            worst = std::fabs(a[i] - b[i]) <= worst ? worst : std::fabs(a[i] - b[i]);
        same &= memcmp(b.data(), c.data(), b.size() * sizeof(float)) == 0;
    }
    printf("%g %s\n", worst, same ? "same" : "other");
}

/* The most shared memory that a layer of any size takes, together and apart. */
template <RecurrentCell CELL, int UNITS, bool TOGETHER> constexpr int layer_bytes() {
    constexpr int shared_by = recurrent_blocks(CELL, UNITS);
    using Shape = Recurrence<float, 1 << 20, 1, UNITS, CELL, false, shared_by>;
    using Crew = RecurCrew<Shape, TOGETHER>;
    if constexpr (shared_by == 1)
        return 0;
    else
        return std::max(CrewStep<Shape, Crew>::bytes, CrewBackStep<Shape, Crew>::bytes);
}
template <bool TOGETHER, int... K> constexpr int most_bytes(std::integer_sequence<int, K...>) {
    return std::max({layer_bytes<RNN_TANH, K + 1, TOGETHER>()..., layer_bytes<GRU, K + 1, TOGETHER>()...,
                     layer_bytes<LSTM, K + 1, TOGETHER>()...});
}

int main() {
    using Units = std::make_integer_sequence<int, 514>;
    printf("%d %d\n", most_bytes<true>(Units()), most_bytes<false>(Units()));
    compare<3, 6, 20, LSTM, false, 4>();
    compare<35, 2, 18, GRU, true, 4>();
}
