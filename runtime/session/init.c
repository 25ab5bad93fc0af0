#include "session/init.h"

#include "random.h"

/* Streams of weights, apart from those of dropout, which count from 0. */
enum { INIT_STREAM = 1 << 30 };

static double initial_value(const MtcTensor *tensor, int row, uint64_t seed, uint64_t i) {
    uint32_t stream = INIT_STREAM + (uint32_t)row;
    switch (tensor->init) {
    case MTC_CONSTANT: return tensor->a;
    case MTC_UNIFORM: return fma(tensor->b - tensor->a, (double)mtc_uniform(seed, stream, 0, i), tensor->a);
    case MTC_NORMAL: return fma(tensor->b, (double)mtc_normal(seed, stream, 0, i), tensor->a);
    default: return 0;
    }
}

void mtc_init_tensor(const MtcTensor *tensor, int row, uint64_t seed, void *values) {
    int64_t count = mtc_elements(tensor->rank, tensor->dim);
    for (int64_t i = 0; i < count; i++) {
        double value = initial_value(tensor, row, seed, (uint64_t)i);
        switch (tensor->type) {
        case MTC_F32: ((float *)values)[i] = (float)value; break;
        case MTC_F64: ((double *)values)[i] = value; break;
        case MTC_I32: ((int32_t *)values)[i] = (int32_t)value; break;
        default: ((uint8_t *)values)[i] = (uint8_t)value;
        }
    }
}
