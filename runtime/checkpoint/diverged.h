/* Whether a training has diverged: by its loss, and by the largest of its weights, now and when it began. The keeper asks before a
 * checkpoint takes the place of a good one. */
#ifndef MTC_DIVERGED_H
#define MTC_DIVERGED_H

#include "session/session.h"
#include "session/snapshot.h"

/* The largest magnitude among the weights. */
int mtc_largest_weight(const MtcState *state, double *largest);
/* That of the session's weights becomes record.first_weight: when a training begins that is saved. */
int mtc_measure_weights(MtcSession *session);
bool mtc_has_diverged(const MtcRecord *record, double largest);

#endif
