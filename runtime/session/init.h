/* Initial values of weights and optimizer states: the same bits for every target, since the host makes them. */
#ifndef MTC_INIT_H
#define MTC_INIT_H

#include "base/common.h"

/* `row` is the tensor's place in model->tensor: it selects the stream of random numbers. */
void mtc_init_tensor(const MtcTensor *tensor, int row, uint64_t seed, void *values);

#endif
