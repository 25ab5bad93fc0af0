#ifndef MTC_SESSION_DATA_H
#define MTC_SESSION_DATA_H

#include "session/session.h"

/* mtc_set_data with examples that were read; may take the arrays: they are NULL then. */
int mtc_session_set_data(MtcSession *session, int which, MtcExamples *examples);
int mtc_hash_data(MtcSession *session, int which, uint64_t *hash); /* of examples on the device */
/* The checksum of training data of which each rank has looked at a part; of as many examples in all. */
int mtc_share_train_hash(MtcSession *session);
void mtc_release_data(MtcSession *session, int which); /* with everything that belongs to it */

#endif
