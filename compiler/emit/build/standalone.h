/* One file with everything: each of our headers where it is first included, the runtime's sources behind the model. */
#ifndef MTC_STANDALONE_H
#define MTC_STANDALONE_H

#include "emit/build/target.h"

/* `home`: the folder with runtime/ and kernels_lib/. Lines that come from there have no place in the model. NULL after
 * an error. */
Emission *standalone(Diag *diag, const char *home, const Target *target, const Emission *emission);

#endif
