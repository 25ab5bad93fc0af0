/* What a program says of its phases, for schedule.cuh to run: types. */
#ifndef MTC_CUDA_PHASE_CUH
#define MTC_CUDA_PHASE_CUH

#include "cuda/batch.cuh"
#include "cuda/gate.cuh"
#include "cuda/tile.cuh"

#include <algorithm>
#include <type_traits>

/* Of the shared memory that tiles get: panels of tensor cores want it so. */
constexpr int SHARED_ALIGNMENT = 1024;

__host__ __device__ constexpr int shared_aligned(int bytes) {
    return divide_up(bytes, SHARED_ALIGNMENT) * SHARED_ALIGNMENT;
}

/* A single block runs so many tiles of a phase without a loop. */
constexpr int UNROLLED_TILES = 8;

/* A kernel is a struct. run(t, batch, tile, shared, gate) computes one of its `tiles`, where it takes some with `shared_bytes` of shared memory;
 * `wanted_bytes`, where it says so, are what it would use in a launch of its own (cuda/hold.cuh). t are the program's tensors, or
 * its own, which are made of these and of a row of its table. */
template <class Own> Own own_of(void (*)(const Own &, const Batch &, int, char *, Gate &));
template <class Kernel> using OwnOf = decltype(own_of(Kernel::run));

template <class Kernel, class = void> constexpr int shared_bytes_of = 0;
template <class Kernel>
constexpr int shared_bytes_of<Kernel, std::void_t<decltype(Kernel::shared_bytes)>> = Kernel::shared_bytes;

template <class Kernel, class = void> constexpr int wanted_bytes_of = shared_bytes_of<Kernel>;
template <class Kernel>
constexpr int wanted_bytes_of<Kernel, std::void_t<decltype(Kernel::wanted_bytes)>> = Kernel::wanted_bytes;

/* A kernel at COUNT of its rows, one after the other: from FIRST on, and STEP further each time that it is launched; or from the
 * first of FIRSTS on, the next time from the second. */
template <class Kernel, int FIRST, int STEP, int COUNT = 1> struct At {};
template <class Kernel, int COUNT, int... FIRSTS> struct AtEach {};

template <int... FIRSTS> static __constant__ unsigned short first_rows[sizeof...(FIRSTS)] = {FIRSTS...};

/* A product at one row, and kernels of the rows that its tiles have whole: its block goes on with those of a tile when it has written them, which is no
 * launch. They use no shared memory. */
template <class First, class... Others> struct Followed {};

/* What of a kernel is launched: `count` times its tiles, from row first(again) on; and each that follows it, by visit(). */
template <class Kernel_, int COUNT> struct OfKernel {
    using Kernel = Kernel_;
    static constexpr int count = COUNT;
    template <class Visit> static __device__ void visit(Visit) {
    }
};
template <class Kernel> struct Launched : OfKernel<Kernel, 1> {
    static __device__ int first(int again) {
        return again;
    }
};
template <class Kernel, int FIRST, int STEP, int COUNT>
struct Launched<At<Kernel, FIRST, STEP, COUNT>> : OfKernel<Kernel, COUNT> {
    static __device__ int first(int again) {
        return FIRST + STEP * again;
    }
};
template <class Kernel, int COUNT, int... FIRSTS>
struct Launched<AtEach<Kernel, COUNT, FIRSTS...>> : OfKernel<Kernel, COUNT> {
    static __device__ int first(int again) {
        return first_rows<FIRSTS...>[again];
    }
};

template <class First, class... Others> struct Launched<Followed<First, Others...>> : Launched<First> {
    template <class Visit> static __device__ void visit(Visit visit) {
        (visit(Launched<Others>()), ...);
    }
};

template <class Kernel> constexpr int tiles_of = Launched<Kernel>::count *Launched<Kernel>::Kernel::tiles;

/* The first tiles, up to the last that uses shared memory. */
template <class... Kernels> constexpr int tiles_that_share() {
    int tiles = 0, sharing = 0;
    ((tiles += tiles_of<Kernels>, sharing = shared_bytes_of<typename Launched<Kernels>::Kernel> > 0 ? tiles : sharing),
     ...);
    return sharing;
}

/* So many kernels of as many tiles each, one after the other. */
struct Alike {
    int count, tiles;
};

/* A launch: the tiles of its kernels one after the other. A block of a persistent kernel goes on to those that use no shared memory while
 * some of its threads are still busy. */
template <class... Kernels> struct Phase {
    using Kernel = Phase; // what is launched
    static constexpr int tiles = (0 + ... + tiles_of<Kernels>), sharing = tiles_that_share<Kernels...>();
    static constexpr int shared = std::max({shared_bytes_of<typename Launched<Kernels>::Kernel>...});
    static constexpr int wanted = std::max({wanted_bytes_of<typename Launched<Kernels>::Kernel>...});
    static constexpr int kinds = sizeof...(Kernels), again = 0;
    static constexpr Alike kernels[kinds] = {{Launched<Kernels>::count, Launched<Kernels>::Kernel::tiles}...};
    static constexpr bool beside = false, in_turns = false, one_tile = false;
    static constexpr bool early = true; // it may begin while the launch before still runs
    static constexpr int resident = 0;  // blocks that a multiprocessor must have registers for; 0: as nvcc decides
    static constexpr int cluster = 1;   // neighbouring blocks that work together, where the device has such clusters

    template <class Tensors>
    static __device__ void run_tile(const Tensors &tensors, const Batch &batch, int tile, char *shared, Gate &gate) {
        run_tile_of<Kernels...>(tensors, batch, tile, shared, gate);
    }

    /* The calling block's share of the tiles. */
    template <Form FORM, class Tensors>
    static __device__ void run(const Tensors &tensors, const Batch &batch, char *shared, Gate &gate) {
        constexpr bool solo = FORM == Form::solo;
        const int first = solo ? 0 : blockIdx.x, stride = solo ? 1 : gridDim.x;
#pragma unroll(solo &&tiles <= UNROLLED_TILES ? tiles : 1)
        for (int tile = first; tile < tiles; tile += stride) {
            if (tile < sharing && tile != first)
                __syncthreads(); // the tile before has left the shared memory
            run_tile(tensors, batch, tile, shared, gate);
        }
        gate();
    }

private:
    template <class First, class... Others, class Tensors>
    static __device__ void run_tile_of(const Tensors &tensors, const Batch &batch, int tile, char *shared, Gate &gate) {
        if constexpr (sizeof...(Others) == 0) {
            run_followed<Launched<First>>(tensors, batch, tile, shared, gate);
        } else {
            if (tile < tiles_of<First>)
                return run_followed<Launched<First>>(tensors, batch, tile, shared, gate);
            run_tile_of<Others...>(tensors, batch, tile - tiles_of<First>, shared, gate);
        }
    }

    template <class Of, class Tensors>
    static __device__ void run_followed(const Tensors &tensors, const Batch &batch, int tile, char *shared,
                                        Gate &gate) {
        run_kernel<Of>(tensors, batch, tile, shared, gate);
        Of::visit([&](auto other) {
            using Other = decltype(other);
            constexpr int parts = Other::Kernel::tiles / Of::Kernel::tiles;
            static_assert(Other::count == 1 && shared_bytes_of<typename Other::Kernel> == 0, "rows of one kernel");
            __syncthreads(); // the tile's rows are written
            for (int part = 0; part < parts; part++)
                run_kernel<Other>(tensors, batch, tile * parts + part, shared, gate);
        });
    }

    template <class Of, class Tensors>
    static __device__ void run_kernel(const Tensors &tensors, const Batch &batch, int tile, char *shared, Gate &gate) {
        using Wanted = typename Of::Kernel;
        using Own = OwnOf<Wanted>;
        if constexpr (std::is_same_v<Own, Tensors>)
            Wanted::run(tensors, batch, tile, shared, gate);
        else if constexpr (Of::count == 1)
            Wanted::run(Own(tensors, Of::first(batch.again)), batch, tile, shared, gate);
        else
            Wanted::run(Own(tensors, Of::first(batch.again) + tile / Wanted::tiles), batch, tile % Wanted::tiles,
                        shared, gate);
    }
};

/* In a graph, long kernels of a phase are launches of their own, each with the registers and the shared memory that it
 * needs; all but the first are this. */
template <class... Kernels> struct Beside : Phase<Kernels...> {
    using Kernel = Beside;
    static constexpr bool beside = true;
};

/* The launch of one product whose tiles are TurnTiles. */
template <class First> struct InTurns : First {
    using Kernel = InTurns;
    static constexpr bool in_turns = true;
};

/* The launch of a product of which a thread has many sums. What nvcc finds out before a loop over tiles takes registers that the sums need. */
template <class First> struct OfSums : First {
    using Kernel = OfSums;
    static constexpr bool one_tile = true;
};

/* A launch that does little else than read, of so few tiles that a multiprocessor gets BLOCKS of them. Left alone, nvcc leaves
 * registers for more blocks, and has a thread wait for a few loads before it makes the next; but it is loads under way that
 * keep the memory busy. */
template <int BLOCKS, class First> struct Reading : First {
    using Kernel = Reading;
    static constexpr int resident = BLOCKS;
};

/* A launch of tiles of which a multiprocessor's shared memory has room for BLOCKS, and its registers are to have too: one multiplies while
 * another waits. */
template <int BLOCKS, class First> struct Sharing : First {
    using Kernel = Sharing;
    static constexpr int resident = BLOCKS;
};

/* A launch of few long tiles, of which a multiprocessor has room for more than its share. Early, it would find most multiprocessors still
 * busy with the launch before, and crowd on the others. */
template <class First> struct Late : First { static constexpr bool early = false; };

/* A launch of tiles that are worked on together, BLOCKS of them by a cluster. */
template <int BLOCKS, class First> struct InCluster : First {
    using Kernel = InCluster;
    static constexpr int cluster = BLOCKS;
};

/* The same launch once more; behind those of other programs, AGAIN of them. */
template <class First, int AGAIN> struct Again : First {
    using Kernel = typename First::Kernel;
    static constexpr int again = AGAIN;
};

/* Launches one after the other, COUNT times: Times<2, A, B> is A, B, A, B. */
template <int COUNT, class... Phases> struct Times {};

template <class... Phases> struct Launches {
    static constexpr int count = sizeof...(Phases), shared = std::max({Phases::shared...});
    static constexpr int in_turns = (0 + ... + Phases::in_turns);

    /* All phases, each behind the gate that the one before closes; `last` is called before the last gate closes. */
    template <Form FORM, class Tensors, class Last>
    static __device__ void run(const Tensors &tensors, const Batch &batch, char *shared, Gate &gate, Last last) {
        int phase = 0;
        ((Phases::template run<FORM>(tensors, batch, shared, gate), ++phase == count ? last() : (void)0, gate.close()),
         ...);
    }
};

/* One list of several. Eight at a time: compilers nest templates a few hundred deep, and steps have more launches. */
template <class... Lists> struct Joined;
template <class... Phases> struct Joined<Launches<Phases...>> { using All = Launches<Phases...>; };
template <class... A, class... B, class... Lists>
struct Joined<Launches<A...>, Launches<B...>, Lists...> : Joined<Launches<A..., B...>, Lists...> {};
template <class... A, class... B, class... C, class... D, class... E, class... F, class... G, class... H,
          class... Lists>
struct Joined<Launches<A...>, Launches<B...>, Launches<C...>, Launches<D...>, Launches<E...>, Launches<F...>,
              Launches<G...>, Launches<H...>, Lists...>
    : Joined<Launches<A..., B..., C..., D..., E..., F..., G..., H...>, Lists...> {};

/* What stands in a step's list, each launch by itself. */
template <class Phase> struct Listed : Joined<Launches<Phase>> {};
template <class... Phases> struct Listed<Times<1, Phases...>> : Joined<typename Listed<Phases>::All...> {};
template <int COUNT, class... Phases>
struct Listed<Times<COUNT, Phases...>> : Joined<typename Listed<Times<COUNT / 2, Phases...>>::All,
                                                typename Listed<Times<COUNT - COUNT / 2, Phases...>>::All> {};

/* What the launches of all phases have in common. WHOLE: examples of the batch in which a step of training is a shard of BATCH;
 * 0: it is all of it. */
template <class Tensors_, int BATCH, int REPORTS, int WHOLE = 0> struct Common {
    using Tensors = Tensors_;
    static constexpr int batch = BATCH, reports = REPORTS, whole = WHOLE;
};

template <class Tensors, int BATCH, int REPORTS, class... Phases> struct Step : Common<Tensors, BATCH, REPORTS> {
    using List = typename Joined<typename Listed<Phases>::All...>::All;
    static constexpr int launches = List::count, shared = List::shared, in_turns = List::in_turns;

    template <Form FORM, class Last>
    static __device__ void run(const Tensors &tensors, const Batch &batch, char *shared, Gate &gate, Last last) {
        List::template run<FORM>(tensors, batch, shared, gate, last);
    }
};

template <class Tensors, int BATCH, int WHOLE, int REPORTS, class... Phases>
struct ShardStep : Step<Tensors, BATCH, REPORTS, Phases...> {
    static constexpr int whole = WHOLE;
};

#endif
