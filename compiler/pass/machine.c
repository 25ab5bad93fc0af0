/* The numbers that differ from card to card are in gpus.def. Measured on an H200, and taken for all GPUs: which share of the data
 * sheet's numbers programs reach; the barrier, by bench/limits; a launch, as what a step of mnist.mt or autoencoder.mt takes longer
 * as a graph than as a persistent kernel of the same tiles, and a barrier. Before sm_90 a launch does not begin while the one before
 * still runs, which costs 0.6 us. */
#include "pass/machine.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { KB = 1024, DEFAULT_GPU = 90 };

#define REACHED_FLOPS (60 / (132 * 2 * 128 * 1.98e-3))
#define REACHED_BANDWIDTH (4.3 / 4.8)
#define HAS_LAUNCHES_AHEAD(number) ((number) >= 90)

static const Machine gpus[] = {
#define GPU(number_, cards_, block_, multiprocessor_, threads_, blocks_, lanes_, tensor_, cluster_, card_, count_,     \
            mhz_, gbs_, mb_)                                                                                           \
    {.name = (card_),                                                                                                  \
     .number = (number_),                                                                                              \
     .cards = (cards_),                                                                                                \
     .blocks = true,                                                                                                   \
     .multiprocessors = (count_),                                                                                      \
     .lanes = (lanes_),                                                                                                \
     .tensor = (tensor_),                                                                                              \
     .halves_only = (number_) < 80,                                                                                    \
     .threads = (threads_),                                                                                            \
     .most_blocks = (threads_) / THREADS,                                                                              \
     .resident = 3,                                                                                                    \
     .block_memory = (block_)*KB,                                                                                      \
     .multiprocessor_memory = (multiprocessor_)*KB,                                                                    \
     .cluster = (cluster_),                                                                                            \
     .warp_groups = (number_) == 90,                                                                                   \
     .computed_operands = true,                                                                                        \
     .clock = (mhz_)*1e6,                                                                                              \
     .flops = REACHED_FLOPS * (count_)*2 * (lanes_) * (mhz_)*1e6,                                                      \
     .bandwidth = REACHED_BANDWIDTH * (gbs_)*1e9,                                                                      \
     .barrier = 0.92e-6,                                                                                               \
     .launch = HAS_LAUNCHES_AHEAD(number_) ? 1.7e-6 : 2.3e-6,                                                          \
     .latency = 1200,                                                                                                  \
     .cache = (mb_)*1e6},
#include "pass/gpus.def"
#undef GPU
};
enum { GPUS = sizeof gpus / sizeof *gpus };

const Machine machine_cpu = {.name = "cpu",
                             .multiprocessors = 4,
                             .threads = 2048,
                             .most_blocks = 8,
                             .resident = 1,
                             .clock = 3e9,
                             .flops = 1e11,
                             .bandwidth = 2e10,
                             .barrier = 1e-6,
                             .launch = 1e-6,
                             .latency = 1200};

static const Machine *numbered(long number) {
    for (int i = 0; i < GPUS; i++)
        if (gpus[i].number == number)
            return &gpus[i];
    return NULL;
}

const Machine *machine_of(const char *architecture) {
    return numbered(strtol(architecture + strlen("sm_"), NULL, 10));
}

const Machine *machine_gpu(int i) {
    return i < GPUS ? &gpus[i] : NULL;
}

const Machine *machine_default(void) {
    return numbered(DEFAULT_GPU);
}

/* Measured there too: the barriers of a cluster and of a block; a load of shared memory. */
static const double cluster_barrier = 0.19e-6, block_barrier = 0.02e-6, near_latency = 300;

Machine machine_in_form(const Machine *machine, Form form) {
    Machine part = *machine;
    part.form = form;
    part.resident = 1; /* a persistent launch has one block on each multiprocessor */
    if (form == FORM_GRID)
        return part;
    part.multiprocessors = form == FORM_SOLO ? 1 : machine->cluster;
    part.barrier = form == FORM_SOLO ? block_barrier : cluster_barrier;
    part.latency = form == FORM_SOLO ? near_latency : machine->latency;
    return part;
}

double machine_barrier(const Machine *machine, long long blocks) {
    return blocks == 1 ? block_barrier : machine->barrier;
}
