/* The order of a tensor's axes in files, where it is another one than in memory; and going through elements that lie so. */
#ifndef MTC_AXES_H
#define MTC_AXES_H

#include "base/common.h"

/* Is the order of the axes in files another one than in memory? */
bool mtc_is_permuted(const MtcTensor *tensor);
void mtc_file_dim(const MtcTensor *tensor, int64_t dim[8]);
void mtc_file_strides(const MtcTensor *tensor, int64_t stride[8]); /* elements in memory between neighbours there */
/* The place in the file of the element that lies there in memory. */
int64_t mtc_file_element(const MtcTensor *tensor, int64_t element);

/* From an element's index to the next one's, the last of so many axes first; `at`, its place, goes along by the strides. Behind the last
 * element comes the first. */
void mtc_next_element(int axes, const int64_t *dim, const int64_t *stride, int64_t *index, int64_t *at);

#endif
