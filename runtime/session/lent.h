/* Arrays of the caller's: on the host, or lent on the device. */
#ifndef MTC_LENT_H
#define MTC_LENT_H

#include "session/pieces.h"

/* NULL fields are not looked at. Do the kernels reach those that are lent? Are all classes those of their fields? */
int mtc_check_lent(MtcSession *session, const void *const *fields, const bool *lent);
int mtc_check_classes(MtcSession *session, int64_t examples, const void *const *fields, const bool *lent);
/* Are all weights of examples numbers from 0 on? */
int mtc_check_weights(MtcSession *session, int64_t examples, const void *const *fields, const bool *lent);

/* A field's bytes, in pieces: of the host's memory a single one, of the device's as many as are read one after the other. */
int mtc_visit_field(MtcSession *session, const void *field, size_t bytes, bool lent, MtcVisitBytes *visit, void *user);

#endif
