/* A program that starts itself several times, on one machine. */
#ifndef MTC_LAUNCH_H
#define MTC_LAUNCH_H

#include "base/common.h"

/* Becomes `count` processes, which return 0 and are ranks for mtc_ranks_join; nothing may have used a device or a thread before.
 * *waited: this is the one that started them, and they have ended; it returns the code of the first that failed, or 0. Where
 * one failed, others have `timeout` seconds to find out. */
int mtc_ranks_launch(MtcFault *fault, int count, double timeout, bool *waited);

#endif
