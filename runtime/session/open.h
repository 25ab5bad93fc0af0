#ifndef MTC_OPEN_H
#define MTC_OPEN_H

#include "session/session.h"

/* mtc_create with the name that advice calls the executable. `draws`: false where a file gives every weight that would be drawn; they
 * are 0 until it does. */
int mtc_session_new(const MtcModel *model, const char *program, uint64_t seed, int device, bool draws,
                    MtcSession **session);

#endif
