/* What a generated library of the prediction alone says to embed/. */
#ifndef MTC_NET_MODEL_H
#define MTC_NET_MODEL_H

#include "mtc.h"

typedef struct MtcNetModel {
    MtcModel model; /* name, batch, arena, tensors, quantized, fields, params, prediction, eval; the rest is zero */
    const unsigned char *weights, *weights_end; /* a file of safetensors that the library carries; NULL: none */
} MtcNetModel;

#pragma GCC visibility push(hidden)
extern const MtcNetModel mtc_net_model;
#pragma GCC visibility pop

#endif
