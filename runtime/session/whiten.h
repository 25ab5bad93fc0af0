/* Filters that whiten patches of the training images: made of what the device sums up (op/whiten.c). */
#ifndef MTC_WHITEN_H
#define MTC_WHITEN_H

#include "session/session.h"

/* Of a model's whitening layers, in the order of their tensors. */
typedef struct MtcPatchSums MtcPatchSums;
typedef struct MtcWhitening {
    int layers;
    MtcPatchSums *layer;
    int64_t most;     /* examples at a time; 0: any number, for there are no layers */
    int64_t examples; /* so far */
} MtcWhitening;

/* To be ended also where it fails. */
int mtc_begin_whitening(MtcSession *session, MtcWhitening *whitening);
/* What the device has summed up of so many examples more; NULL, or an error text. Waits for it, if there are layers. */
const char *mtc_add_sums(MtcWhitening *whitening, MtcSession *session, int64_t examples);
/* Of all that was summed up: writes each layer's two tensors. */
int mtc_make_filters(MtcSession *session, const MtcWhitening *whitening);
void mtc_end_whitening(MtcWhitening *whitening);

#endif
