#ifndef MTC_OPEN_H
#define MTC_OPEN_H

#include "session/session.h"

/* mtc_create with the name that advice calls the executable. */
int mtc_session_new(const MtcModel *model, const char *program, uint64_t seed, int device, MtcSession **session);

#endif
