/* Buckets: sums over the shards of a batch that GPUs exchange while the backward pass goes on. */
#ifndef MTC_BUCKET_H
#define MTC_BUCKET_H

#include "pass/kernel.h"

/* Those of a training step that has been scheduled, in the order in which its phases complete them. */
void fill_buckets(Program *train);

#endif
