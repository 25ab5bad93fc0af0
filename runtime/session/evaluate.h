/* Evaluation and prediction. */
#ifndef MTC_EVALUATE_H
#define MTC_EVALUATE_H

#include "session/session.h"

/* Enqueues the evaluation of every example, of several ranks of this one's share; batch b's reports go to row b of session->evaluation.
 * *whole: it was not ended before. Little of a long one is in flight at a time. All ranks call this, and what needs it, together. */
int mtc_enqueue_evaluation(MtcSession *session, const MtcData *data, bool *whole);
/* mtc_evaluate, which may be ended: the reports are those of all examples where it is `whole`. */
int mtc_evaluate_whole(MtcSession *session, int which, double *reports, bool *whole);
/* The reports over every example, from the means over batches and what was kept for metrics over the set: in host memory, where those of
 * other ranks are put beside them. */
int mtc_reports_of(MtcSession *session, const MtcData *data, double *rows, void *kept, double *reports);
/* The predictions for every example of a data set that is on the device. */
int mtc_predict_data(MtcSession *session, const MtcData *data, float *out);
int64_t mtc_prediction_elements(const MtcModel *model); /* of one example */

#endif
