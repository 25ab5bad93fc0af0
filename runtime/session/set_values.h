/* What metrics over a set of examples are computed of: values that an evaluation keeps of each example, batch after batch, first in
 * the device's memory, then in the host's. Of a set they lie one after the other, each with all its examples. */
#ifndef MTC_SET_VALUES_H
#define MTC_SET_VALUES_H

#include "session/session.h"

/* 0 of a model without such metrics. */
size_t mtc_set_values_bytes(const MtcSession *session, const MtcData *data);
/* Room on the device for those of the set. */
int mtc_reserve_set_values(MtcSession *session, const MtcData *data);
/* Enqueues the keeping of a batch that was evaluated. */
const char *mtc_keep_set_values(MtcSession *session, const MtcData *data, int64_t first, int64_t rows);
/* Of ranks, `kept` in host memory has examples begin[r] .. begin[r + 1] - 1 of rank r: then it has all. */
int mtc_gather_set_values(MtcSession *session, const MtcData *data, void *kept, const int64_t *begin);
/* The metrics, of what lay on the device; the confusion matrix becomes the session's. */
/* metrics.c: row i, column j: how many of class i were taken for class j. */
void mtc_count_confusion(const MtcSetMetric *metric, const MtcSetValues *values, double *counts);
int mtc_set_metrics(MtcSession *session, const MtcData *data, const void *kept, double *metrics);

#endif
