/* The backward pass ends with the first layers, whose sums are the first in memory. So buckets are cut off the sums from their end on: each
 * is one piece of memory, complete with the phase that writes the last of it. What would be complete only with the last phase is in none. */
#include "pass/bucket.h"

/* What a bucket takes beside its bytes, a kernel that adds and a meeting of all GPUs, is a tenth of what moving so many takes. */
enum { LEAST_BYTES = 8 << 20 };
/* More of them hide no more. */
enum { MOST_BUCKETS = 16 };

static int64_t bytes_of(const Weight *state) {
    return state->summed && !state->replaced ? type_elements(&state->type) * dtype_info[state->type.dtype].bytes : 0;
}

static void note_phase(const Program *train, const Kernel *kernel, const Node *value, int *phase) {
    const Node *leaf = program_assigned(train, value);
    if (leaf && leaf->op->table == TABLE_STATE && phase[leaf->attr.index] < kernel->phase)
        phase[leaf->attr.index] = kernel->phase;
}

/* By state: the last phase that writes it, or reads what was written; -1: none does. */
static int *phases_of_states(const Program *train) {
    const int count = train->graph->module->states.count;
    int *phase = NEW_ARRAY(train->arena, int, count);
    for (int i = 0; i < count; i++)
        phase[i] = -1;
    for (int k = 0; k < train->kernels.count; k++) {
        const Kernel *kernel = train->kernels.at[k];
        for (int i = 0; i < kernel->stores.count; i++)
            note_phase(train, kernel, kernel->stores.at[i], phase);
        for (int i = 0; i < kernel->loads.count; i++)
            note_phase(train, kernel, kernel->loads.at[i], phase);
    }
    return phase;
}

static int64_t least_bytes(const Module *module) {
    int64_t all = 0;
    for (int i = 0; i < module->states.count; i++)
        all += bytes_of(&module->states.at[i]);
    return all / MOST_BUCKETS > LEAST_BYTES ? all / MOST_BUCKETS : LEAST_BYTES;
}

/* GPUs alone copy while they compute. Sums of flat weights go piece by piece to whose they are. */
static bool has_buckets(const Program *train) {
    const Module *module = train->graph->module;
    bool any = train->graph == module->train && module->shards && train->machine->blocks;
    for (int i = 0; i < module->states.count; i++)
        any = any && !(module->states.at[i].summed && module->states.at[i].flat);
    return any;
}

/* One that is complete with the same phase as the one before is a part of it. */
static void keep_bucket(Program *train, Bucket bucket) {
    Bucket *before = train->buckets.count ? &train->buckets.at[train->buckets.count - 1] : NULL;
    if (before && before->phase == bucket.phase) {
        before->first = bucket.first;
        before->bytes += bucket.bytes;
    } else {
        VEC_PUSH(train->arena, &train->buckets, bucket);
    }
}

/* What the last one's sums come back beside is half of what is left. */
static void end_buckets(Program *train) {
    const int count = train->buckets.count;
    if (count)
        VEC_PUSH(train->arena, &train->buckets,
                 ((Bucket){.phase = (train->buckets.at[count - 1].phase + train->phases.count) / 2}));
}

static void cut_buckets(Program *train) {
    const Module *module = train->graph->module;
    const int *phase = phases_of_states(train);
    const int64_t least = least_bytes(module);
    Bucket bucket = {.phase = -1};
    for (int i = module->states.count - 1; i >= 0; i--) {
        if (!bytes_of(&module->states.at[i]))
            continue;
        bucket.last = bucket.bytes ? bucket.last : i;
        bucket.first = i;
        bucket.bytes += bytes_of(&module->states.at[i]);
        bucket.phase = phase[i] > bucket.phase ? phase[i] : bucket.phase;
        if (bucket.phase + 1 >= train->phases.count)
            return;
        if (bucket.bytes >= least) {
            keep_bucket(train, bucket);
            bucket.bytes = 0;
        }
    }
}

void fill_buckets(Program *train) {
    if (!has_buckets(train))
        return;
    cut_buckets(train);
    end_buckets(train);
}
