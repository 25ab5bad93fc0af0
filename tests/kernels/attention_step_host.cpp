/* kernels_lib/cuda/attention_step.cuh on the host. Decodes some positions of each shape and prints how far a result is from that of
 * float64 at most. */
#define MTC_CUDA_PACK_CUH
#include "block_on_host.h"

static void __threadfence() {
}
static unsigned atomicAdd(unsigned *count, unsigned more) {
    return __atomic_fetch_add(count, more, __ATOMIC_SEQ_CST);
}
static float __ldcg(const float *from) {
    return *from;
}

/* bfloat16, to the nearest. */
struct Narrow {
    unsigned short bits;
};
static float to_float(Narrow x) {
    const unsigned bits = (unsigned)x.bits << 16;
    float wide;
    memcpy(&wide, &bits, sizeof wide);
    return wide;
}
static Narrow to_narrow(float x) {
    unsigned bits;
    memcpy(&bits, &x, sizeof bits);
    return {(unsigned short)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16)};
}

template <class T, int N> struct Pack {
    T value[N];
    T &operator[](int v) {
        return value[v];
    }
};
template <int N, class T> Pack<T, N> fill_pack(T value) {
    Pack<T, N> pack;
    std::fill_n(pack.value, N, value);
    return pack;
}
/* Only where instructions of 16 bytes could. */
template <int N, class T> Pack<T, N> load_pack(const T *from) {
    Pack<T, N> pack;
    if ((size_t)from % min<size_t>(N * sizeof(T), PACK_BYTES))
        abort();
    memcpy(pack.value, from, sizeof pack.value);
    return pack;
}

#include "cuda/attention_step.cuh"

template <class Shape, int LENGTH> struct Decoder {
    using Number = typename Shape::Number;
    static constexpr int width = (Shape::queries + 2 * Shape::keys) * Shape::size;
    static constexpr int out_width = Shape::queries * Shape::size;
    alignas(16) Number caches[Shape::texts * LENGTH * Shape::row];
    Number *const cache = caches + (Shape::texts - 1) * LENGTH * Shape::row; // of the last text, which is looked at
    alignas(16) float qkv[LENGTH * width], out[LENGTH * out_width];
    alignas(16) float rows[Shape::texts * width], outs[Shape::texts * out_width];
    alignas(16) char shared[attend_step_shared<Shape>()];

    /* Rows from `end` on are no numbers yet. */
    Decoder() {
        for (float &x : qkv)
            x = to_float(to_narrow(4 * ((float)rand() / (float)RAND_MAX - 0.5f)));
    }
    void fill_cache(int end) {
        memset((void *)caches, 0xFF, sizeof caches);
        for (int j = 0; j < end; j++)
            for (int c = 0; c < Shape::row; c++)
                cache[j * Shape::row + c] = to_cached<Number>(qkv[j * width + Shape::queries * Shape::size + c]);
    }
    static float scale() {
        return 1 / sqrtf(Shape::size);
    }
    float *out_of(int position) {
        return out + position * Shape::queries * Shape::size;
    }
    /* Of other texts, there are no numbers in the caches. */
    void decode(int position) {
        fill_cache(position);
        for (int text = 0; text < Shape::texts; text++)
            memcpy(rows + text * width, qkv + position * width, width * sizeof *rows);
        const auto gate = [] {};
        run_block([&] {
            for (int tile = 0; tile < attend_step_tiles<Shape>(); tile++)
                attend_step<Shape>(rows, caches, position, outs, scale(), tile, shared, gate);
        });
        memcpy(out_of(position), outs + (Shape::texts - 1) * out_width, out_width * sizeof *out);
    }
    bool wrote(int position) const {
        bool same = true;
        for (int c = 0; c < Shape::row; c++)
            same &= cached_to_float(cache[position * Shape::row + c]) ==
                    qkv[position * width + Shape::queries * Shape::size + c];
        return same;
    }
    double query(int position, int q, int c) const {
        return qkv[position * width + q * Shape::size + c];
    }
    double key(int j, int head, int c) const {
        return query(j, Shape::queries + head, c);
    }
    double value(int j, int head, int c) const {
        return query(j, Shape::queries + Shape::keys + head, c);
    }
    double error(int position, int q) const {
        const int head = q / Shape::group, first = Shape::window ? std::max(0, position - Shape::window + 1) : 0;
        std::vector<double> sums(Shape::size);
        double weights = 0, worst = 0;
        for (int j = first; j <= position; j++) {
            double score = 0;
            for (int c = 0; c < Shape::size; c++)
                score += query(position, q, c) * key(j, head, c);
            const double weight = exp(scale() * score);
            weights += weight;
            for (int c = 0; c < Shape::size; c++)
                sums[c] += weight * value(j, head, c);
        }
        for (int c = 0; c < Shape::size; c++) {
            const double apart = fabs(sums[c] / weights - out[(position * Shape::queries + q) * Shape::size + c]);
            worst = apart <= worst ? worst : apart; // what is no number is the worst
        }
        return worst;
    }
};

template <class Number, int LENGTH, int QUERIES, int KEYS, int SIZE, int WINDOW, int TEXTS = 1> void check() {
    using Shape = AttentionStep<Number, LENGTH, QUERIES, KEYS, SIZE, WINDOW, TEXTS>;
    static Decoder<Shape, LENGTH> decoder;
    const int slots = Shape::slots;
    double worst = 0;
    for (int position :
         {0, 1, slots - 1, slots, slots + 1, 2 * slots, 3 * slots + 1, WINDOW - 1, WINDOW, WINDOW + 1, LENGTH - 1}) {
        if (position < 0 || position >= LENGTH)
            continue;
        decoder.decode(position);
        for (int q = 0; q < QUERIES; q++) {
            const double error = decoder.wrote(position) ? decoder.error(position, q) : NAN;
            worst = error <= worst ? worst : error;
        }
    }
    printf("%d %d %d %d %d parts %d error %g\n", LENGTH, QUERIES, KEYS, SIZE, WINDOW, Shape::parts, worst);
}

int main() {
    check<float, 20, 2, 2, 16, 0>();     // one part
    check<float, 150, 2, 1, 64, 0>();    // two, of which the second has nothing at first
    check<float, 140, 6, 1, 20, 0>();    // a head that lanes do not divide, more queries than a pass
    check<float, 300, 1, 1, 32, 130>();  // a window in two parts
    check<Narrow, 270, 4, 2, 128, 0>();  // four parts
    check<Narrow, 140, 2, 2, 8, 50>();   // a lane a position
    check<Narrow, 40, 5, 1, 40, 0>();    // five lanes would be wanted
    check<Narrow, 270, 4, 2, 8, 0, 3>(); // three texts
}
