/* All steps of a recurrent layer by a cluster of blocks, where U is too large for the registers of one: each block has the gates of
 * some units, OWN, for all steps, in registers and, what these do not hold, in shared memory; the cluster has EACH examples, and takes
 * each step together.
 *
 *     forward      h of all units          x  U[:, gates of own units]        own units of h, which all blocks get
 *     gradient     own units' gates        x  U[:, gates of own units]^T      a part of d_h of all units; the block that
 *                                                                             owns a unit gets the parts of all, and adds them up
 *
 * What is sent goes straight into the shared memory of who needs it, where its bytes are counted: a block goes on when all are there,
 * which is when no other reads the turn before last, so two such places do, for turns that are even and odd. A barrier of the
 * cluster would wait for all that went to memory, too. What the next step reads of that is asked for while the mail is on its way.
 *
 * Each product is cut into SLICES of its depth, a group of threads each; a slice adds up its terms one after the other, and its
 * sums pass through shared memory. Where there are no such clusters (older devices, persistent launches), a block takes the parts
 * one after the other, with examples of its own, and reads U at each step: the same sums, in the same order, hence the same bits. */
#ifndef MTC_CUDA_RECURRENT_TOGETHER_CUH
#define MTC_CUDA_RECURRENT_TOGETHER_CUH

#include "cuda/cluster.cuh"
#include "cuda/recurrent_cell.cuh"

/* Of a product of vectors with a matrix [DEEP, WIDE]: columns of a thread, threads across it, rows of a slice of theirs. */
constexpr int crew_columns(int deep, int wide) {
    return (long long)deep * wide > STATE_HELD * THREADS ? 8 : 4;
}
constexpr int crew_across(int deep, int wide) {
    int across = 1;
    while (across * crew_columns(deep, wide) < wide)
        across *= 2;
    return across;
}
constexpr int whole_packs(int numbers) {
    return (numbers + PACK_FLOATS - 1) / PACK_FLOATS * PACK_FLOATS;
}

/* Examples of a cluster: no more than a thread has registers for; and none more than others, that wait for multiprocessors. Those of an
 * H100 hold 30 clusters of 4 large blocks at a time, 15 of 8, 7 of 16. */
constexpr int crew_examples(int examples, int blocks) {
    int clusters = 120 / blocks, most = 8, waves = (examples + clusters * most - 1) / (clusters * most);
    return (examples + clusters * waves - 1) / (clusters * waves);
}

/* What a block has of a layer: parts of its units, of a cluster's examples. */
template <class Shape, bool TOGETHER_> struct RecurCrew {
    static constexpr bool together = TOGETHER_;
    static constexpr int blocks = Shape::blocks, own = whole_packs((Shape::units + blocks - 1) / blocks);
    static constexpr int all = blocks * own; // units, filled up
    static constexpr int each = crew_examples(Shape::examples, Shape::blocks);
    static constexpr int rows = together ? each : (each + blocks - 1) / blocks;
    static constexpr int parts = together ? 1 : blocks;
    static constexpr int items = (rows * own + THREADS - 1) / THREADS; // units of a thread, in each part

    static __device__ int part(int k) {
        return together ? block_of_cluster() : k;
    }
};

/* Unit `unit` of all, `near` of the part, of an example. */
template <class Shape, class Crew> struct CrewItem : RecurPlace<Shape> {
    int row, near;
    bool inside; // of what is computed; filler is, too

    __device__ CrewItem(int item, int part, int tile) {
        int at = item * THREADS + threadIdx.x;
        row = at / Crew::own;
        near = at % Crew::own;
        inside = row < Crew::rows;
        int place = Crew::together ? row : tile % Crew::blocks * Crew::rows + row;
        this->unit = part * Crew::own + near;
        this->example = (long long)(tile / Crew::blocks) * Crew::each + place;
        this->exists = inside && place < Crew::each && this->unit < Shape::units && this->example < Shape::examples;
    }
};

/* ROWS vectors times a matrix [DEEP, WIDE], which stays in the block where it HOLDS it. */
template <int ROWS, int DEEP, int WIDE, bool HOLDS> struct CrewProduct {
    static constexpr int columns = crew_columns(DEEP, WIDE), across = crew_across(DEEP, WIDE);
    static constexpr int width = across * columns, slices = THREADS / across;
    static constexpr int depth = whole_packs((DEEP + slices - 1) / slices), length = slices * depth;
    static constexpr int most = STATE_HELD / columns, held = !HOLDS ? 0 : depth < most ? depth : most;
    static constexpr int stored_floats = HOLDS ? (depth - held) * columns * THREADS : 0;
    static constexpr int sum_floats = slices * ROWS * width;

    int lane = threadIdx.x % across, slice = threadIdx.x / across;
    float rows[held > 0 ? held : 1][columns];

    /* Neighbouring threads have neighbouring packs of columns. */
    __device__ int column(int c) const {
        return c / PACK_FLOATS * across * PACK_FLOATS + lane * PACK_FLOATS + c % PACK_FLOATS;
    }
    /* element(k, j) is 0 outside of the matrix. */
    template <class Element> __device__ void hold(float *stored, Element element) {
#pragma unroll
        for (int k = 0; k < held; k++)
#pragma unroll
            for (int c = 0; c < columns; c++)
                rows[k][c] = element(slice * depth + k, column(c));
        for (int k = held; HOLDS && k < depth; k++)
#pragma unroll
            for (int c = 0; c < columns; c++)
                *place_of(stored, k, c) = element(slice * depth + k, column(c));
    }
    static __device__ float *place_of(float *stored, int k, int c) {
        int pack = (k - held) * (columns / PACK_FLOATS) + c / PACK_FLOATS;
        return stored + (pack * THREADS + threadIdx.x) * PACK_FLOATS + c % PACK_FLOATS;
    }

    /* Adds what four rows from k on give; states(e, k) is where four numbers of vector e lie. */
    template <class States>
    __device__ void add(float (&sum)[ROWS][columns], States states, int k, const float (*weight)[columns]) const {
#pragma unroll
        for (int e = 0; e < ROWS; e++) {
            float4 s = *(const float4 *)states(e, slice * depth + k);
#pragma unroll
            for (int c = 0; c < columns; c++)
                sum[e][c] = fmaf(s.w, weight[3][c],
                                 fmaf(s.z, weight[2][c], fmaf(s.y, weight[1][c], fmaf(s.x, weight[0][c], sum[e][c]))));
        }
    }
    /* The four rows from k on, which are not in registers. */
    template <class Element>
    __device__ void fetch(float (&weight)[4][columns], float *stored, int k, Element element) const {
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int c = 0; c < columns; c += PACK_FLOATS) {
                if constexpr (HOLDS) {
                    float4 pack = *(const float4 *)place_of(stored, k + i, c);
                    weight[i][c] = pack.x, weight[i][c + 1] = pack.y;
                    weight[i][c + 2] = pack.z, weight[i][c + 3] = pack.w;
                } else {
#pragma unroll
                    for (int v = 0; v < PACK_FLOATS; v++)
                        weight[i][c + v] = element(slice * depth + k + i, column(c + v));
                }
            }
    }
    /* sums[slice, e, j], for whole(sums, e, j) behind a barrier. */
    template <class States, class Element>
    __device__ void multiply(States states, float *stored, Element element, float *sums) const {
        float sum[ROWS][columns] = {};
#pragma unroll
        for (int k = 0; k < held; k += 4)
            add(sum, states, k, rows + k);
#pragma unroll 1
        for (int k = held; k < depth; k += 4) {
            float weight[4][columns];
            fetch(weight, stored, k, element);
            add(sum, states, k, weight);
        }
#pragma unroll
        for (int e = 0; e < ROWS; e++)
#pragma unroll
            for (int c = 0; c < columns; c += PACK_FLOATS)
                *(float4 *)(sums + (slice * ROWS + e) * width + column(c)) = {sum[e][c], sum[e][c + 1], sum[e][c + 2],
                                                                              sum[e][c + 3]};
    }
    static __device__ float whole(const float *sums, int e, int j) {
        float sum = 0;
#pragma unroll
        for (int slice = 0; slice < slices; slice++)
            sum += sums[(slice * ROWS + e) * width + j];
        return sum;
    }
    static __device__ float4 whole_pack(const float *sums, int e, int j) {
        float4 sum = {};
#pragma unroll
        for (int slice = 0; slice < slices; slice++) {
            float4 more = *(const float4 *)(sums + (slice * ROWS + e) * width + j);
            sum = {sum.x + more.x, sum.y + more.y, sum.z + more.z, sum.w + more.w};
        }
        return sum;
    }
};

/* Before the first turn, and between the parts of a block that takes all of them. */
template <class Crew> __device__ void meet_crew() {
    if (Crew::together) {
        arrive_at_cluster();
        await_cluster();
    } else {
        __syncthreads();
    }
}

/* Two mailboxes, for turns that are even and odd, of BYTES each. Turns are counted from 0 on; to the first comes nothing. What is sent
 * to a turn comes when all have the mail of the turn before, hence have read that of two turns before: nobody else is waited for. */
template <class Crew, int BYTES> struct CrewMail {
    Mailbox *boxes;

    __device__ void open() const {
        if (Crew::together && threadIdx.x == 0)
            for (int k = 0; k < 2; k++) {
                open_mailbox(boxes + k);
                expect_mail(boxes + k, BYTES);
            }
    }
    __device__ void await(int turn) const {
        if (!Crew::together || !turn)
            return;
        await_mail(boxes + turn % 2, (turn - 1) / 2 % 2);
        if (threadIdx.x == 0)
            expect_mail(boxes + turn % 2, BYTES);
    }
};

/* ---- forward ---- */

/* The state of all units lies there twice, behind what is stored of U and the sums. */
template <class Shape, class Crew>
struct CrewStep : CrewProduct<Crew::rows, Shape::units, Shape::gates * Crew::own, Crew::together> {
    using Product = CrewProduct<Crew::rows, Shape::units, Shape::gates * Crew::own, Crew::together>;
    static constexpr int state_floats = Crew::rows * Product::length;
    static constexpr int mail_bytes = Crew::rows * Shape::units * (int)sizeof(float);
    static constexpr int bytes =
        (Product::stored_floats + Product::sum_floats + 2 * state_floats) * (int)sizeof(float) +
        2 * (int)sizeof(Mailbox);
};

/* What of U a part has: row k, its column j. */
template <class Shape, class Crew> struct CrewWeights {
    const float *u;
    int part;

    __device__ float operator()(int k, int j) const {
        int gate = j / Crew::own, unit = part * Crew::own + j % Crew::own;
        bool exists = k < Shape::units && gate < Shape::gates && unit < Shape::units;
        return exists ? u[(k * Shape::gates + gate) * Shape::units + unit] : 0;
    }
};

template <class Crew> __device__ void send_to_crew(float *to, float value, Mailbox *box) {
    if constexpr (Crew::together)
#pragma unroll
        for (int k = 0; k < Crew::blocks; k++)
            mail(to, value, box, (block_of_cluster() + k) % Crew::blocks);
    else
        *to = value;
}

template <class Shape, class Crew> struct CrewForward {
    using Product = CrewStep<Shape, Crew>;
    using Item = CrewItem<Shape, Crew>;

    const float *x, *u, *bias, *start, *length;
    float *out, *kept;
    int tile;
    float *stored, *sums = stored + Product::stored_floats, *states = sums + Product::sum_floats;
    Product product = {};
    RecurUnit<Shape> units[Crew::parts][Crew::items] = {};
    float inputs[Crew::items][Shape::gates] = {}, biases[Crew::items][Shape::gates] = {};
    CrewMail<Crew, Product::mail_bytes> post = {(Mailbox *)(states + 2 * Product::state_floats)};

    __device__ float *state(int turn) const {
        return states + turn % 2 * Product::state_floats;
    }

    /* All units of the state that the first step begins with, and of each part what it goes on with. */
    __device__ void begin() {
        recur_zero(states, 2 * Product::state_floats);
        __syncthreads();
        for (int part = 0; part < Crew::blocks; part++)
            for (int item = 0; item < Crew::items; item++) {
                Item at(item, part, tile);
                if (at.exists)
                    states[at.row * Product::length + at.unit] = start[at.start(0)];
            }
        for (int k = 0; k < Crew::parts; k++)
#pragma unroll
            for (int item = 0; item < Crew::items; item++) {
                Item at(item, Crew::part(k), tile);
                units[k][item].h = at.exists ? start[at.start(0)] : 0;
                units[k][item].c = at.exists && Shape::cell == LSTM ? start[at.start(Shape::states - 1)] : 0;
            }
        product.hold(stored, CrewWeights<Shape, Crew>{u, Crew::part(0)});
    }
    __device__ void read(int k, int turn) {
#pragma unroll
        for (int item = 0; item < Crew::items; item++) {
            Item at(item, Crew::part(k), tile);
#pragma unroll
            for (int gate = 0; gate < Shape::gates; gate++) {
                inputs[item][gate] = at.exists ? x[at.place(Shape::step(turn), Shape::gates, gate)] : 0;
                biases[item][gate] = at.exists ? bias[gate * Shape::units + at.unit] : 0;
            }
        }
    }
    /* Of the sums, the part's units behind the step, which all blocks get. */
    __device__ void step(int k, int turn) {
#pragma unroll
        for (int item = 0; item < Crew::items; item++) {
            Item at(item, Crew::part(k), tile);
            RecurUnit<Shape> &unit = units[k][item];
            float sum[Shape::gates];
#pragma unroll
            for (int gate = 0; at.exists && gate < Shape::gates; gate++)
                sum[gate] = Product::whole(sums, at.row, gate * Crew::own + at.near) + biases[item][gate];
            if (at.exists && Shape::step(turn) < length[at.example])
                unit.run(inputs[item], sum);
            else
                unit.hold();
            if (at.inside && at.unit < Shape::units && turn + 1 < Shape::steps)
                send_to_crew<Crew>(state(turn + 1) + at.row * Product::length + at.unit, unit.h,
                                   post.boxes + (turn + 1) % 2);
        }
    }
    __device__ void write(int k, int turn) const {
#pragma unroll
        for (int item = 0; item < Crew::items; item++) {
            Item at(item, Crew::part(k), tile);
            if (!at.exists)
                continue;
            out[at.place(Shape::step(turn), 1, 0)] = units[k][item].h;
            if (kept)
#pragma unroll
                for (int n = 0; n < Shape::kept; n++)
                    kept[at.place(Shape::step(turn), Shape::kept, n)] = units[k][item].kept[n];
        }
    }

    __device__ void turn(int turn) {
        const float *before = state(turn);
        post.await(turn);
#pragma unroll 1
        for (int k = 0; k < Crew::parts; k++) {
            if (!Crew::together)
                read(k, turn);
            product.multiply([&](int e, int row) { return before + e * Product::length + row; }, stored,
                             CrewWeights<Shape, Crew>{u, Crew::part(k)}, sums);
            __syncthreads();
            step(k, turn);
            if (!Crew::together)
                __syncthreads();
            write(k, turn);
        }
        if (Crew::together && turn + 1 < Shape::steps)
            read(0, turn + 1);
    }
    __device__ void run() {
        __syncthreads();
        begin();
        post.open();
        read(0, 0);
        meet_crew<Crew>();
#pragma unroll 1
        for (int k = 0; k < Shape::steps; k++)
            turn(k);
    }
};

/* ---- gradient ---- */

/* What the gates of a part send back, [gates, rows, own], lies where a block got the parts of d_h, [blocks, rows, own]: each thread
 * writes where it alone has read. A block that takes all parts has the sums of these, [rows, all], and behind them the gates of each. */
template <class Shape, class Crew>
struct CrewBackStep : CrewProduct<Crew::rows, Shape::gates * Crew::own, Crew::all, Crew::together> {
    using Product = CrewProduct<Crew::rows, Shape::gates * Crew::own, Crew::all, Crew::together>;
    static_assert(Shape::gates <= Crew::blocks, "gates lie in the parts' place");
    static constexpr int part_floats = Crew::rows * Crew::all, gate_floats = Shape::gates * Crew::rows * Crew::own;
    static constexpr int received_floats = part_floats + (Crew::together ? part_floats : Crew::parts * gate_floats);
    static constexpr int mail_bytes = part_floats * (int)sizeof(float);
    static constexpr int bytes = (Product::stored_floats + Product::sum_floats + received_floats) * (int)sizeof(float) +
                                 2 * (int)sizeof(Mailbox);
};

/* What of U's transpose a part has: row k is a gate of a unit of its own, column j any unit. */
template <class Shape, class Crew> struct CrewBackWeights {
    const float *ut;
    int part;

    __device__ float operator()(int k, int j) const {
        int gate = k / Crew::own, unit = part * Crew::own + k % Crew::own;
        bool exists = gate < Shape::gates && unit < Shape::units && j < Shape::units;
        return exists ? ut[(gate * Shape::units + unit) * Shape::units + j] : 0;
    }
};

/* Four units of d_h, from j on, to the block that owns them; or added up. */
template <class Crew> __device__ void send_part(float *parts, int row, int j, float4 sum, Mailbox *box) {
    int owner = j / Crew::own, near = j % Crew::own;
    if constexpr (Crew::together) {
        float *to = parts + (block_of_cluster() * Crew::rows + row) * Crew::own + near;
        mail(to, sum, box, owner);
    } else {
        float4 *to = (float4 *)(parts + row * Crew::all + j), before = *to;
        *to = {before.x + sum.x, before.y + sum.y, before.z + sum.z, before.w + sum.w};
    }
}

/* d_h of a unit, of what all parts send back. */
template <class Crew> __device__ float received(const float *parts, int row, int part, int near) {
    if constexpr (Crew::together) {
        float sum = 0;
#pragma unroll
        for (int from = 0; from < Crew::blocks; from++)
            sum += parts[(from * Crew::rows + row) * Crew::own + near];
        return sum;
    } else {
        return parts[row * Crew::all + part * Crew::own + near];
    }
}

template <class Shape, class Crew> struct CrewBackward {
    using Product = CrewBackStep<Shape, Crew>;
    using Item = CrewItem<Shape, Crew>;

    const float *kept, *ut, *out, *start, *length, *dy;
    float *gates, *d_start;
    int tile;
    float *stored, *sums = stored + Product::stored_floats, *all_parts = sums + Product::sum_floats;
    Product product = {};
    RecurBack<Shape> units[Crew::parts][Crew::items] = {};
    RecurRead<Shape> reads[Crew::items] = {};
    CrewMail<Crew, Product::mail_bytes> post = {(Mailbox *)(all_parts + Product::received_floats)};

    /* What the turn before has sent of d_h, and what the gates of part k send. */
    __device__ float *parts(int turn) const {
        return all_parts + (Crew::together ? turn % 2 * Product::part_floats : 0);
    }
    __device__ float *through(int k, int turn) const {
        return Crew::together ? parts(turn) : all_parts + Product::part_floats + k * Product::gate_floats;
    }

    __device__ void read(int k, int turn) {
#pragma unroll
        for (int item = 0; item < Crew::items; item++) {
            Item at(item, Crew::part(k), tile);
            if (at.exists)
                reads[item] = RecurRead<Shape>(at, turn, kept, out, start, dy);
        }
    }
    __device__ void step(int k, int turn) {
#pragma unroll
        for (int item = 0; item < Crew::items; item++) {
            Item at(item, Crew::part(k), tile);
            RecurBack<Shape> &unit = units[k][item];
            if (at.exists) {
                unit.h += received<Crew>(parts(turn), at.row, Crew::part(k), at.near);
                if (Shape::step(turn) < length[at.example])
                    unit.run(reads[item]);
                else
                    unit.hold(reads[item]);
            }
#pragma unroll
            for (int gate = 0; gate < Shape::gates; gate++)
                if (at.inside)
                    through(k, turn)[(gate * Crew::rows + at.row) * Crew::own + at.near] =
                        at.exists ? unit.through(gate) : 0;
        }
    }
    /* What part k's gates send back to all units. */
    __device__ void send(int k, int turn) const {
        const float *from = through(k, turn);
        auto states = [&](int e, int row) {
            constexpr int rows = Shape::gates * Crew::own;
            row = Product::length == rows || row < rows ? row : 0;
            return from + (row / Crew::own * Crew::rows + e) * Crew::own + row % Crew::own;
        };
        product.multiply(states, stored, CrewBackWeights<Shape, Crew>{ut, Crew::part(k)}, sums);
        __syncthreads();
        for (int at = threadIdx.x * PACK_FLOATS; at < Crew::rows * Crew::all; at += THREADS * PACK_FLOATS) {
            int row = at / Crew::all, j = at % Crew::all;
            send_part<Crew>(parts(turn + 1), row, j, Product::whole_pack(sums, row, j),
                            post.boxes + taken(turn - 1) % 2);
        }
        if (!Crew::together)
            __syncthreads();
    }
    __device__ void write(int turn) const {
        for (int k = 0; k < Crew::parts; k++)
#pragma unroll
            for (int item = 0; item < Crew::items; item++) {
                Item at(item, Crew::part(k), tile);
#pragma unroll
                for (int gate = 0; gate < Shape::gates; gate++)
                    if (at.exists)
                        gates[at.place(Shape::step(turn), Shape::gates, gate)] = units[k][item].gates[gate];
            }
    }

    /* How many turns were taken before this one. */
    static __device__ int taken(int turn) {
        return Shape::steps - 1 - turn;
    }

    __device__ void turn(int turn) {
        post.await(taken(turn));
#pragma unroll 1
        for (int k = 0; k < Crew::parts; k++) {
            if (!Crew::together)
                read(k, turn);
            step(k, turn);
        }
        __syncthreads();
        if (!Crew::together)
            recur_zero(parts(turn), Product::part_floats);
#pragma unroll 1
        for (int k = 0; k < Crew::parts; k++)
            send(k, turn);
        write(turn);
        if (Crew::together && turn)
            read(0, turn - 1);
    }
    __device__ void end() const {
        for (int k = 0; k < Crew::parts; k++)
#pragma unroll
            for (int item = 0; item < Crew::items; item++) {
                Item at(item, Crew::part(k), tile);
                if (!at.exists)
                    continue;
                d_start[at.start(0)] = units[k][item].h + received<Crew>(parts(1), at.row, Crew::part(k), at.near);
                if (Shape::cell == LSTM)
                    d_start[at.start(Shape::states - 1)] = units[k][item].c;
            }
    }
    __device__ void run() {
        __syncthreads();
        recur_zero(all_parts, Product::received_floats);
        product.hold(stored, CrewBackWeights<Shape, Crew>{ut, Crew::part(0)});
        post.open();
        read(0, Shape::steps - 1);
        meet_crew<Crew>();
#pragma unroll 1
        for (int k = Shape::steps - 1; k >= 0; k--)
            turn(k);
        post.await(Shape::steps);
        if (d_start)
            end();
    }
};

/* ---- launches ---- */

/* The block is of such a cluster: a launch of its own asks for it, where the device has them. */
template <class Shape> __device__ bool in_crew() {
    return !Shape::apart && blocks_of_cluster() == Shape::blocks;
}

template <class Shape> constexpr int crew_tiles() {
    constexpr int each = crew_examples(Shape::examples, Shape::blocks);
    return (Shape::examples + each - 1) / each * Shape::blocks;
}

#endif
