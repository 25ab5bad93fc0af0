/* Training data that stay in host memory, where the device has no room for them.
 *
 *     host     | gather 0 | gather 1 | gather 2 | ...
 *     copies              | copy 0   | copy 1   | copy 2  | ...
 *     device                         | steps 0  | steps 1 | ...
 *
 * The order of an epoch is cut into windows of whole steps, of which two are on the device: steps run on one while the other
 * is copied. Each position of every epoch has its row in its window, and that is the order that steps see:
 * they compute what they compute with all data on the device. Of several ranks each has in its windows the examples of its own shards; a
 * pass in the order of the data has all. */
#ifndef MTC_FEED_H
#define MTC_FEED_H

#include "session/session.h"

/* The training examples become the feed's, and the session's data; `examples` has none then. */
int mtc_feed_new(MtcSession *session, MtcExamples *examples);
void mtc_feed_free(MtcSession *session);

/* The errors of those below are the device's, or the text of the session's fault: of examples that stay in a file, see
 * mtc_read_example. mtc_device_fault knows which.
 *
 * The window of that step is on the device for the steps enqueued next; so many of them are in it. */
const char *mtc_feed_ready(MtcSession *session, int64_t epoch, int64_t epoch_step, int64_t *steps);
/* Steps of that window were enqueued: the next window is copied meanwhile. */
const char *mtc_feed_ahead(MtcSession *session);
/* What steps read of the window that is ready. */
MtcData mtc_feed_data(const MtcSession *session);
/* The examples that begin with step `epoch_step` of a pass in the order of the data, as if all lay on the device: those of
 * the steps that are ready may be read. */
const char *mtc_feed_pass(MtcSession *session, int64_t epoch_step, int64_t *steps, MtcData *data);
int mtc_feed_example(MtcSession *session, int field, int64_t example, void *values);

#endif
