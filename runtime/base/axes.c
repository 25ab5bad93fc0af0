#include "base/axes.h"

bool mtc_is_permuted(const MtcTensor *tensor) {
    bool any = false;
    for (int k = 0; k < tensor->rank; k++)
        any |= tensor->file_axis[k] != 0;
    return any;
}

static int axis_in_memory(const MtcTensor *tensor, int file_axis) {
    return mtc_is_permuted(tensor) ? tensor->file_axis[file_axis] : file_axis;
}

void mtc_file_dim(const MtcTensor *tensor, int64_t dim[8]) {
    for (int k = 0; k < tensor->rank; k++)
        dim[k] = tensor->dim[axis_in_memory(tensor, k)];
}

void mtc_file_strides(const MtcTensor *tensor, int64_t stride[8]) {
    for (int k = 0; k < tensor->rank; k++) {
        stride[k] = 1;
        for (int axis = axis_in_memory(tensor, k) + 1; axis < tensor->rank; axis++)
            stride[k] *= tensor->dim[axis];
    }
}

int64_t mtc_file_element(const MtcTensor *tensor, int64_t element) {
    int64_t stride[8], at = 0;
    mtc_file_strides(tensor, stride);
    for (int k = 0; k < tensor->rank; k++) {
        int64_t size = tensor->dim[axis_in_memory(tensor, k)];
        at = at * size + element / stride[k] % size;
    }
    return at;
}

void mtc_next_element(int axes, const int64_t *dim, const int64_t *stride, int64_t *index, int64_t *at) {
    for (int k = axes - 1; k >= 0; k--) {
        *at += stride[k];
        if (++index[k] < dim[k])
            return;
        *at -= stride[k] * dim[k];
        index[k] = 0;
    }
}
