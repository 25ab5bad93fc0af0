#ifndef MTC_RUN_H
#define MTC_RUN_H

#include "session/session.h"

/* What a step reads; reports are written to `reports`. */
MtcRun mtc_run(const MtcSession *session, const MtcData *data, double *reports);

#endif
