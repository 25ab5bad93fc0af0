/* Initial values of weights and optimizer states: the same bits for every target, whether the device draws them or the host. */
#ifndef MTC_INIT_H
#define MTC_INIT_H

#include "session/session.h"

/* Fills the whole arena; the session's seed decides. */
int mtc_draw_weights(MtcSession *session);
/* Instead, where a file gives all that would be drawn: zeros. */
int mtc_clear_weights(MtcSession *session);
/* Its values are neither zeros nor another tensor's. */
bool mtc_is_drawn(const MtcTensor *tensor);

#endif
