/* What a program is planned for: the numbers of a machine that tiles, schedules and estimates ask for. */
#ifndef MTC_MACHINE_H
#define MTC_MACHINE_H

#include "kernels_lib/shared.h"

/* The blocks of a persistent launch: as many as the device has multiprocessors, meeting at a counter in memory; some
 * neighbours with a barrier in hardware; or one, with the arena in its shared memory. */
typedef enum Form { FORM_GRID, FORM_CLUSTER, FORM_SOLO, FORMS } Form;

typedef struct Machine {
    const char *name;  /* "H200", "cpu" */
    int number;        /* of a GPU's architecture, 90 of sm_90; else 0 */
    const char *cards; /* of the architecture, some that people know */
    Form form;         /* the part of it that is used */
    bool blocks;       /* a tile is the work of a block of 256 threads, not of one thread */

    int multiprocessors;
    int lanes;                 /* fp32 multiply-adds of a multiprocessor in a cycle */
    int tensor;                /* of 16-bit numbers, on tensor cores */
    bool halves_only;          /* these know fp16 and int8, neither bf16 nor tf32 */
    int threads, most_blocks;  /* of a multiprocessor, and blocks of 256 of them, at a time */
    int resident;              /* blocks of a multiprocessor that work while another waits for memory, at most */
    int block_memory;          /* bytes of shared memory that a block can have */
    int multiprocessor_memory; /* that its blocks share */
    int cluster;               /* blocks that have a barrier in hardware, at most; 0: none have */
    bool warp_groups;          /* instructions of sm_90a alone: products in turns */
    bool computed_operands;    /* contractions can compute an operand while loading it */

    double clock;            /* cycles per second */
    double flops, bandwidth; /* per second, as programs reach them: fp32 FMA counted as two; bytes */
    double barrier, launch;  /* seconds: barrier over all blocks; CUDA graph node */
    double latency;          /* cycles of a tile until its first numbers are there and its last are stored */
    double cache;            /* bytes that all multiprocessors share */
} Machine;

extern const Machine machine_cpu;

/* Of "sm_90", "sm_90a"; NULL: none of those that programs are compiled for. */
const Machine *machine_of(const char *architecture);

/* The GPUs in the order of their numbers; NULL behind the last. */
const Machine *machine_gpu(int i);

/* Where nobody says for which GPU. */
const Machine *machine_default(void);

/* The part of it that a persistent launch of the form has. */
Machine machine_in_form(const Machine *machine, Form form);

/* Seconds of the barrier between the phases of a persistent launch of so many blocks. */
double machine_barrier(const Machine *machine, long long blocks);

#endif
