/* One training at a time writes a file. */
#ifndef MTC_LOCK_H
#define MTC_LOCK_H

#include "base/common.h"

/* An MtcLock is a file ".NAME.mtc-lock" beside NAME, which the system unlocks when its process ends, however that ends; so one that
 * is left over locks nothing, and goes with the next training. A checkpoint has no lock of its own: it is replaced by another file. */

/* A fault: another training has it; `flag` and `path` are what was asked for. Where no lock can be had (a folder that may not be
 * written, a file system without locks) *lock is NULL, and all goes on as without. */
int mtc_lock_open(MtcFault *fault, const char *flag, const char *path, MtcLock **lock);
void mtc_lock_close(MtcLock *lock); /* also of NULL */

#endif
