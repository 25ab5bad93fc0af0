/* The order of an epoch's examples: a permutation that seed and epoch decide. */
#ifndef MTC_ORDER_H
#define MTC_ORDER_H

#include "session/session.h"

void mtc_fill_order(const MtcSession *session, int64_t epoch, int *order);
/* Epochs whose orders are on the device at a time: some 2^16 numbers, at least one. */
int64_t mtc_most_orders(int64_t examples);

#endif
