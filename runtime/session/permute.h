/* A tensor's values in the order of axes that files have, and in that of memory. */
#ifndef MTC_PERMUTE_H
#define MTC_PERMUTE_H

#include "base/axes.h"

void mtc_to_file(const MtcTensor *tensor, const void *values, void *file);
void mtc_from_file(const MtcTensor *tensor, const void *file, void *values);

#endif
