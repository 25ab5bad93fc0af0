/* The device's memory that a session has: each allocation is refused, with need and free, before the device is asked for more
 * than it has. */
#ifndef MTC_MEMORY_H
#define MTC_MEMORY_H

#include "needs.h"
#include "session/session.h"

int mtc_session_alloc(MtcSession *session, void **memory, size_t bytes, const char *what);
void mtc_session_free(MtcSession *session, void *memory, size_t bytes); /* of that allocation */

/* What opening a session and training with it ask for, but for the data; in a training of several ranks, of this one. */
int mtc_model_needs(MtcFault *fault, const MtcModel *model, MtcNeeds *needs);

/* As the examples lie: `stride` as in MtcExamples. */
void mtc_data_strides(const MtcModel *model, int64_t stride, MtcData *data);
size_t mtc_data_bytes(const MtcSession *session, const MtcData *data, int field); /* of a data set's field */
/* One array for each field, but for those that are lent (NULL: none is). */
int mtc_alloc_data(MtcSession *session, MtcData *data, int64_t examples, int64_t stride, const bool *lent);
void mtc_free_data(MtcSession *session, MtcData *data, const bool *lent);
/* Room for the reports of so many batches at least. */
int mtc_reserve_evaluation(MtcSession *session, int64_t rows);

#endif
