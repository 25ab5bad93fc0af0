/* Inside of fusion: which node joins which kernel (fuse.c), and what that asks, of reads (reads.c), rows (rows.c), operands and epilogues
 * of products (operand.c, epilogue.c); how a kernel grows (grow.c); what updates would overwrite before it is read (crossing.c); which
 * updates become one (merge.c), how bias gradients ride along with weight gradients (ride.c), how a row's work is cut into stages
 * (stage.c). The result is pass/kernel.h's Program. */
#ifndef MTC_FUSE_H
#define MTC_FUSE_H

#include "pass/access.h"
#include "pass/kernel.h"

/* The buffers that a node reads, or the nodes that read it; each once. */
typedef VEC(Node *) Sources;

/* The work of the pass: a kernel for each node that is not free. Arrays are by node id. */
typedef struct Fusion {
    Arena *arena;
    Program *program;
    Graph *graph;
    Kernel **home;    /* the kernel that computes it; NULL: a leaf, a root, a view, or a map that each of its readers
                      computes */
    Node **field;     /* access_single_fields */
    int placed;       /* nodes, the first so many, that are in kernels or need none */
    bool *root_value; /* a root carries it out */
    Sources *readers; /* of each node */
    bool *lasts;      /* it is made once for many runs */
    bool
        updates_last; /* no sum or product is computed where a leaf is overwritten, and what views move of such a leaf is in memory */
    bool *crosses;  /* a view that is in memory before the updates: crossing.c */
    bool *factor;   /* a product reads it: sums over it may ride along (ride.c) */
    int *visit;     /* the last walk that came to the node, so that each comes to it once */
    int *elsewhere; /* ... at another element than its own */
    int visits;
} Fusion;

/* Begins a walk. */
static inline void fusion_walk(Fusion *f) {
    f->visits++;
}

/* The first time that the current walk comes to the node. */
static inline bool fusion_first_visit(Fusion *f, const Node *n) {
    bool first = f->visit[n->id] != f->visits;
    f->visit[n->id] = f->visits;
    return first;
}

/* ---- reads.c ---- */

bool nodes_contain(Node *const *nodes, int count, const Node *n);

/* The buffers that n reads from outside of `kernel` (NULL: from anywhere), through nodes without a home; each once. */
Sources fusion_sources(Fusion *f, const Kernel *kernel, const Node *n);

/* The nodes with a home, of those placed so far, that read n itself or through nodes without one; with a kernel, also through
 * what only later kernels put in memory. Each once. */
Sources fusion_readers(Fusion *f, const Kernel *kernel, const Node *n);

/* The kernel finds n in memory. A view that a later kernel stores is for this one what it was: something to compute. */
bool fusion_stored_before(const Fusion *f, const Kernel *kernel, const Node *n);

/* The kernel that n comes behind, whatever it reads; or NULL. */
Kernel *fusion_awaited(const Fusion *f, const Node *n);

/* The kernel may overwrite the leaves: no kernel that reads one of them must run after this one. */
bool fusion_may_overwrite(Fusion *f, const Kernel *kernel, Node *const *leaves, int count);

/* What the kernel computes reads the buffer, if at all, at the element that is computed. */
bool fusion_reads_own_element(Fusion *f, const Kernel *kernel, const Node *buffer);
/* In the kernel, n would read the buffer at another element than its own. */
bool fusion_moves(Fusion *f, const Kernel *kernel, Node *n, const Node *buffer);

/* A third kernel must run between the two. */
bool fusion_comes_between(Fusion *f, const Kernel *a, const Kernel *b);
/* Each must run behind the other: they overwrite what the other reads, at once or not at all. */
bool fusion_in_circle(Fusion *f, const Kernel *a, const Kernel *b);

/* ---- crossing.c ---- */

/* By node id: views of what updates overwrite, at other elements than they do; before any node has a home. */
bool *fusion_crossings(Fusion *f);

/* ---- rows.c ---- */

/* A row of the LOOP kernel is what lies along the axes `inner` of an index space. */
void rows_set(Kernel *kernel, const Type *full, unsigned inner);
/* The axes of a node of this shape that a row of a LOOP kernel loops over; false: the shape has no such rows. */
bool inner_axes(const Kernel *kernel, const Type *shape, unsigned *inner);
/* A row is an element: all that the kernel computes has the shape `full`. */
bool rows_are_elements(const Kernel *kernel);
/* What a row loops over are its last axes. */
bool rows_are_trailing(const Kernel *kernel);
/* The index of an element of a row, symbolically; false: the shape has no such rows. And the index of a row alone. */
bool rows_access(const Kernel *kernel, const Type *shape, Access *at);
Access rows_own(void);
bool rows_at_own(const Access *at, int rank);
/* Computing n at `at` reads a row's folds and products from its own row, and computes little again. */
bool fusion_reads_fit_rows(Fusion *f, Kernel *kernel, Node *n, const Access *at);
/* A node that has a home computes little again, besides its kernel's own nodes. */
bool fusion_computes_little(Fusion *f, Node *n);
/* Computing n from what has a home, for each of its readers, would be too much. */
bool fusion_takes_much(Fusion *f, Node *n);
/* A slow map that is shown again and again, as the angles of positions are to all examples and heads: who reads it would compute
 * it over and over. */
bool fusion_serves_many(const Fusion *f, const Node *n);

/* ---- grow.c ---- */

Kernel *fusion_new_kernel(Fusion *f, KernelClass cls);
/* A LOOP kernel of the node, with rows as rows_set makes them. */
Kernel *fusion_loop_kernel(Fusion *f, Node *n, const Type *full, unsigned inner);
/* The node joins the kernel, which loads what it reads. */
void fusion_absorb(Fusion *f, Kernel *kernel, Node *n);
/* The kernel loads the buffer, which its own kernel then stores. */
void fusion_load(Fusion *f, Kernel *kernel, Node *source);
/* The node's kernel stores it. */
void fusion_store(Fusion *f, Node *n);
/* Makes a free node or a view exist in memory; returns it. */
Node *fusion_in_memory(Fusion *f, Node *n);

/* ---- operand.c ---- */

/* Makes the elements of the value, in their order, exist in memory; returns the node that is stored. */
Node *fusion_stored_whole(Fusion *f, Node *value);
/* The contraction, its operands, extents and math. */
void product_describe(Fusion *f, Kernel *kernel, Node *contraction);
/* What the products of a call run in. */
Math call_math(const Node *n);

/* ---- epilogue.c ---- */

/* Why it does not join a CONTRACT kernel: a map; a sum, as one of its folds. */
Apart epilogue_apart(Fusion *f, const Kernel *kernel, const Node *map);
Apart fold_apart(Fusion *f, const Kernel *kernel, const Node *sum);

/* ---- when kernels have grown: inline.c, merge.c, ride.c, stage.c, name.c ---- */

/* Takes the home from stored maps of values that their readers load anyway: each reader computes them. */
void fusion_inline(Fusion *f, bool complete); /* `complete`: no kernel will grow any more */
/* Makes updates of the same elements one kernel, where that loads less. */
void fusion_merge(Fusion *f);
/* Moves reductions over the contracted axis of a product's operand into the product's kernel. */
void fusion_ride(Fusion *f);
/* Fills `stages` of the LOOP kernels, whose nodes and stores are known. */
void fusion_stages(Fusion *f);
/* A C identifier for each kernel, from the user's names of what it stores. */
void kernel_names(Program *program);

#endif
