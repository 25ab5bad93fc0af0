/* Which evaluation was the best so far, by one of its reports. */
#ifndef MTC_BEST_H
#define MTC_BEST_H

#include "session/session.h"

/* The report of that name; NULL: the model's. */
int mtc_find_monitor(MtcFault *fault, const MtcModel *model, const char *name, int *monitor);
/* Is the record's best one of this report? */
bool mtc_knows_best(const MtcSession *session, int monitor);
/* The report's value in an evaluation, for the record. Is it the best one? If not, learning rates may fall. */
bool mtc_judge(MtcSession *session, int monitor, const MtcPosition *at, double value);
/* How often learning rates fell, all of them together. */
int64_t mtc_falls(const MtcSession *session);

#endif
