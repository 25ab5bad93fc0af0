/* Kernels: what fusion makes of the graph, what scheduling orders, what the memory plan places, what emission prints.
 *
 * A kernel is a body over (tile, tiles). A phase is a set of independent kernels, run as one launch: the tiles of all
 * its kernels share one grid. The step is a list of phases: captured as one CUDA graph with a node per phase, or called
 * from one persistent kernel with a grid barrier between phases.
 *
 * There are two classes that fusion composes:
 *
 *   CONTRACT   out[i, j] = epilogue(sum over k of a[i, k] * b[k, j])
 *              The epilogue is any chain of maps at the output's own index, other buffers read at the same index or
 *              broadcast: bias, ReLU, a ReLU mask, an optimizer's whole update. A reduction over k of one operand alone
 *              may ride along (the bias gradient beside the weight gradient): `side`, with an epilogue of its own.
 *              An operand that is a map of one data field is computed as it is loaded, not stored first.
 *
 *   LOOP       rows x stages. A row is one index over the kept axes; a team (thread, warp, block) computes it. Each
 *              stage loops over the row's own extent: maps are computed where they are used, reductions fold into row
 *              scalars, thin products (a small weight matrix times the row) fill row vectors. Softmax, cross-entropy,
 *              its gradient, the product with a 10-column weight before it and its backward after it: one kernel.
 *              No reduction and no product: an element-wise kernel, one row per element.
 *
 * Beside them stands
 *
 *   CALL       A function of kernels_lib, written by hand, computes whole buffers from whole buffers (attention): its
 *              operands are in memory, nothing joins it, and its results, of the call and of its parts, are stored. */
#ifndef MTC_KERNEL_H
#define MTC_KERNEL_H

#include "ir/math.h"
#include "ir/op.h"
#include "kernels_lib/shared.h"
#include "pass/machine.h"

typedef enum KernelClass { KERNEL_CONTRACT, KERNEL_LOOP, KERNEL_CALL } KernelClass;

/* Who computes a row of a LOOP kernel, and how many rows a tile of 256 threads holds. */
typedef enum Team {
    TEAM_THREAD, /* element-wise: 256 rows a tile, consecutive threads on consecutive rows */
    TEAM_WARP,   /* 8 rows a tile */
    TEAM_LANES,  /* `depth` threads of a warp a row: short rows on few blocks, or behind a product's tile */
    TEAM_BLOCK,  /* 1 row a tile */
    TEAM_COLUMN /* reduction over a slow axis: neighbours in memory, so that a warp reads whole lines; `depth` threads a row */
} Team;

/* One pass over a row's extent. Values of earlier stages are row scalars (reductions) or row vectors (`vectors`);
 * maps and views of earlier stages are computed again where they are needed. */
typedef struct Stage {
    Type domain;    /* the stage's index space: the kernel's kept axes and this stage's inner axes */
    unsigned inner; /* axes of `domain` that the stage loops over; 0: once per row */
    VEC(Node *)
    contractions; /* thin products: element j = sum over k; their value is in `vectors` too unless it is only stored or mapped */
    VEC(Node *) reduces; /* folded over the inner axes; afterwards row scalars */
    VEC(Node *) vectors; /* kept for later stages in row-local memory, one float per inner index */
    VEC(Node *) stores;  /* written to their buffer (or, for an assign's value, to the assigned leaf) */
    int lanes; /* elements, neighbours in memory, that a thread of the row's team takes at once, as vector code; 1: it is none */
} Stage;

/* How a product reads an operand. */
typedef enum OperandKind {
    OPERAND_MATRIX,   /* the buffer, seen through reshapes only */
    OPERAND_COMPUTED, /* a map of a data field, applied as it is loaded */
    OPERAND_WINDOW,   /* windows of images: rows (n, oh, ow), columns (kh, kw, c); `view` is the window of the buffer */
    OPERAND_FILTER    /* filters [o, kh, kw, c]: rows (kh, kw, o), columns c; `view` is the transpose of the buffer */
} OperandKind;

/* An operand of a CONTRACT kernel as it lies in memory: [batch,] rows x cols, row-major, of `buffer`. */
typedef struct Operand {
    OperandKind kind;
    Node *value;        /* the contraction's input */
    Node *buffer;       /* what is read: a leaf or a stored node; batch stride 0 if unbatched */
    Node *view;         /* WINDOW, FILTER: between the reshapes; or NULL */
    bool computed;      /* a map of the data field `buffer`, or windows of one, applied as it is loaded */
    bool batched;       /* has a matrix for each of the contraction's batches, of which there are several */
    bool rounded;       /* to what tensor cores read, where it was made */
    bool lasts;         /* the buffer is made once for many runs */
    int64_t rows, cols; /* as stored */
    bool transposed;    /* stored as [k, m] (operand a) or [n, k] (operand b) */
} Operand;

/* How a product is cut: a block computes m x n outputs in steps of k; a thread tm x tn of them. When fewer than 256
 * threads cover the tile, the others take slices of k, and the slices are added in order. */
typedef struct Tile {
    int m, n, k, tm, tn;
    int slices;                   /* 256 * tm * tn / (m * n) */
    int warps_m, warps_n, stages; /* on tensor cores: how its 8 warps share the tile, panels under way; else 0 */
    int splits;                   /* there: parts of k, each the work of a block of a cluster; else 0 */
    bool turns;                   /* cuda/tensor_turns.cuh: blocks stay for many tiles */
    bool few;     /* cuda/tensor_few.cuh: all rows, as many slices of k as its columns leave warps for */
    bool squares; /* cuda/winograd.cuh: of windows of 3 x 3 taps, squares of 2 x 2 outputs */
    bool taps;    /* cuda/tensor_taps.cuh: of a filter's gradient, all taps of some channels */
} Tile;

/* How threads share the sum of what windows of images see, each channel by itself (cuda/patch.cuh): each has patches of
 * neighbouring outputs. */
enum { MOST_SEEN = 2 };
typedef struct Patch {
    const Node *sum;              /* the reduction; NULL: the kernel is of another sort */
    const Node *windows, *factor; /* of which products it is; factor NULL: of other terms, .. */
    const Node *seen[MOST_SEEN];  /* .. of these windows of equal images, the first being `windows`; then NULL */
    int down, across;             /* outputs of a patch, .. */
    int lanes;                    /* .. each of so many channels */
    int packs; /* the sum is over outputs: threads side by side, with channels of their own; 0: it is over taps */
} Patch;

/* Why the first value of a kernel did not join one before: what fusion found where it decided. */
typedef enum Apart {
    JOINS,            /* it does */
    APART_FIRST,      /* what it reads is data, weights and constants: nothing is computed before it */
    APART_WHOLE_ROWS, /* it multiplies whole rows of the product before, which tiles have in pieces */
    APART_PRODUCT,    /* a product is cut into tiles of its own */
    APART_CALL,       /* a function of the kernels library reads whole buffers */
    APART_FROM_CALL,  /* ... and writes one: nothing joins it */
    APART_FROM_COPY,  /* the kernel before puts data in memory for others, which wait for it */
    APART_OVERWRITES, /* it writes over what kernels that come later still read */
    APART_ROWS,       /* its rows are not those of the kernel before */
    APART_LARGE_ROWS, /* few rows, each too large for those who would share it */
    APART_OTHERS, /* it reads sums or products of other rows, which are complete when the kernel before has ended; or would compute too much again */
    APART_FOLDS,  /* the kernel before has as many sums as one has at most */
    APART_ROOM,   /* a row of the kernel before has no room for another product */
    APART_SHAPE,  /* it has not one element for each output of the product before */
    APART_PLACE,  /* it reads the product before at other elements than its own */
    APART_TILES,  /* its sums are not over the rows of the product's tiles, or the target's products take none */
    APART_MEMORY, /* somebody reads it from memory, whole: a product, a call, what outlives the step */
    APARTS
} Apart;

typedef struct Kernel Kernel;
struct Kernel {
    int id;           /* topological */
    const char *name; /* a C identifier, unique in the program: "h", "d_h_weight", "logits_to_d_h" */
    KernelClass cls;
    VEC(Node *) nodes;    /* what it computes, topological; not leaves, not index nodes (those are free everywhere) */
    VEC(Node *) loads;    /* buffers it reads: OP_BUFFER leaves and stores of earlier kernels; each once */
    VEC(Node *) stores;   /* nodes it writes to memory; kernel_stores_side tells those of the side reduction */
    VEC(Kernel *) behind; /* kernels that come before it, whether it reads what they write or not: Node.after */
    Apart apart;          /* why it begins ... */
    const Kernel *apart_from; /* ... beside this one; NULL: there is none, or it is gone */
    VEC(Node *) roots;        /* assign, report and output roots that it carries out; their value is in `stores` */

    Node *contraction; /* CONTRACT */
    Operand a, b;
    int64_t batches, m, n, k;
    Tile tile;
    Node *side;     /* reduction over k of one operand, or NULL */
    bool side_of_b; /* [n] from operand b; else [m] from operand a */
    Math math;
    /* Sums over each tile.m rows of what the epilogue computes, stored as [m / tile.m, n]: the first half of a sum over
     * all rows, such as a batch norm's statistics, or one over the pixels of each example. In `nodes` and `stores` too. */
    VEC(Node *) folds;
    int64_t fold_rows; /* that one such sum is over: tile.m; 0: there are none */

    Node *call;                 /* CALL */
    Node *operands[MAX_INPUTS]; /* where its inputs lie in memory */
    int cluster;                /* blocks that work on its tiles together; 1: each by itself */

    int64_t rows;   /* LOOP */
    Type full;      /* the index space it grew from: that of its element-wise nodes, or of what is reduced */
    unsigned inner; /* axes of `full` that a row loops over */
    Type kept;      /* index space of the rows: `full` without them */
    Team team;
    int lanes; /* rows, neighbours in memory, that a thread computes at once, as vector code; 1: it is none */
    int depth; /* TEAM_COLUMN, TEAM_LANES: threads that share a row */
    int at_once; /* TEAM_WARP, TEAM_BLOCK: rows, neighbours that all exist, of which a team has the sums at a time; 1: it has one */
    VEC(Stage) stages;
    Patch patch;
    const Node *held; /* TEAM_BLOCK: the operand whose row the block copies to shared memory, for its stages; or NULL */

    int64_t tiles;
    double flops, bytes; /* per step: arithmetic, and memory traffic if every buffer is touched once */
    int phase;
    bool lasts; /* what it makes is made once for many runs, in the program's first phase */
    Kernel *
        leader; /* the product whose blocks compute its rows, each behind the tile that it reads: follow.c; NULL: none */
    bool in_each; /* its row is computed by each block of the kernels of its phase for itself */
};

typedef struct Phase {
    VEC(Kernel *) kernels;
    int64_t tiles;
} Phase;

/* Sums over shards that are complete with a phase: those of the rows first .. last of the module's states. Other GPUs get them beside the
 * phases that follow; with the next bucket's phase they are added up. The last bucket has no bytes: it says when those before it are. */
typedef struct Bucket {
    int phase, first, last;
    int64_t bytes;
} Bucket;

typedef enum Schedule { SCHEDULE_AUTO, SCHEDULE_GRAPH, SCHEDULE_PERSISTENT } Schedule;

/* One graph of a module, compiled: its kernels, phases and buffers. */
typedef struct Program {
    Graph *graph;
    Arena *arena;
    const Machine *machine; /* once scheduled, the form of it that is the fastest */
    const char *prefix;     /* as graph_kind has it */
    VEC(Kernel *) kernels;
    VEC(Phase) phases;
    int once;            /* so many first phases make what lasts from run to run */
    Schedule schedule;   /* resolved */
    int64_t grid;        /* PERSISTENT: blocks */
    double estimate[3];  /* seconds per step under each schedule (index: Schedule) */
    const char *despite; /* why another schedule was taken than the one that is estimated faster; NULL: none was */
    VEC(Bucket) buckets; /* of a shard on GPUs, by phase: bucket.h */

    /* By node id, NULL where there is none. */
    const Kernel **producer; /* of a node that is stored */
    Node **assigned;         /* of a new value: the leaf that it overwrites */
    Node **next;             /* of a leaf: its new value */
    bool *again; /* a map whose readers compute it: that takes no more traffic than to store and to load it */
} Program;

/* Those of a module's graphs, in their order; behind these two come those that not every module has. */
enum { PROGRAM_TRAIN, PROGRAM_EVAL };
typedef struct Programs {
    Program *at[MAX_GRAPHS];
    int count;
} Programs;

/* A product with a weight so small that each row may read all of it: a stage of a LOOP kernel. */
bool product_is_thin(const Node *n);

/* patch.c: the factor that is windows of images, zeros around these; NULL: n is no product with any. `other` is the other factor. */
const Node *window_factor(const Node *n, const Node **other);
/* n is the same along all these axes. */
bool is_repeated_along(const Node *n, unsigned axes);
/* The only reduction of the kernel, a sum, if all that comes behind it is maps of the rows; NULL: there is none. */
const Node *kernel_only_sum(const Kernel *kernel);

Program *fuse(Graph *graph, const Machine *machine);
void schedule(Program *program, Schedule wanted);
void program_verify(const Program *program);
/* What kernels count by an int is no more than that counts; false after reporting what is. */
bool program_fits(const Program *program);
void fused_print(const Program *program, Text *out);
void schedule_print(const Program *program, Text *out);

/* follow.c: the kernels that follow others, by the levels that all have so far. Says whether there are any. */
bool find_followers(Program *program);

/* The buffer is among the kernel's loads. */
bool kernel_reads(const Kernel *kernel, const Node *buffer);

/* Which operands a function of the library reads ahead of the gate, by bits. */
static inline unsigned kernel_reads_ahead(const Kernel *kernel) {
    const CallDef *call = kernel->cls == KERNEL_CALL ? kernel->call->op->call : NULL;
    return call && call->ahead ? call->ahead(kernel->call) : 0;
}

/* Its tiles are of a launch: it is in no other kernel's. */
static inline bool kernel_has_tiles(const Kernel *kernel) {
    return !kernel->leader && !kernel->in_each;
}

/* LOOP: a row is a piece of memory, of what has the kernel's full shape. */
bool kernel_folds_trailing_axes(const Kernel *kernel);

/* LOOP: its rows have products, or vectors of their own. */
bool kernel_has_vectors(const Kernel *kernel);

/* LOOP: so many of the first axes of a value of this type count the kernel's rows; -1: none do. */
int kernel_row_axes(const Kernel *kernel, const Type *type);

/* CONTRACT: the stored node belongs to the side reduction's epilogue (shape [m] or [n]), not to the product's. */
bool kernel_stores_side(const Kernel *kernel, const Node *stored);

Feed product_feed(const Kernel *kernel);
/* What it multiplies in, once its operands and extents are known. */
Math product_math(const Kernel *kernel, Precision precision);
/* Bytes of weights that come to a block's shared memory ahead of its gate, at most: so that a multiprocessor holds several blocks. */
int64_t room_for_weights(const Machine *machine);
/* Bytes at whose multiples what a program keeps in memory begins. */
enum { ARENA_ALIGN = 256 };
/* Extents of a product below a tensor core's own tile of 16 x 8 x 16 would mostly multiply filler. */
enum { LEAST_TENSOR_EXTENT = 16 };

/* "bn1.mean" of a value that the text does not name, by what it is and what it serves; NULL: nobody said what it is. */
const char *value_title(const Program *program, const Node *n);
/* The kernel that stores `n`, or NULL (leaf, or computed where it is used). */
const Kernel *program_producer(const Program *program, const Node *n);
/* The leaf that the stored node is assigned to, or NULL: then it has a buffer of its own. */
Node *program_assigned(const Program *program, const Node *stored);
/* The kernel that overwrites the leaf with its new value, or NULL. */
const Kernel *program_overwriter(const Program *program, const Node *leaf);
/* The kernels can run one after the other: none must come both before another and behind it. */
bool program_has_order(const Program *program);

#endif
