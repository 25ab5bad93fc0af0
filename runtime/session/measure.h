#ifndef MTC_MEASURE_H
#define MTC_MEASURE_H

#include "session/session.h"

/* Computes the buffers from the training data; warns of fields that are the same in all of them. A fault where the result
 * is not finite. */
int mtc_measure(MtcSession *session);

#endif
