/* What the ending of a file's name promises to whoever reads it later. */
#ifndef MTC_ENDING_H
#define MTC_ENDING_H

#include "base/common.h"

/* Does the name end so? In letters of either case. */
bool mtc_ends_with(const char *path, const char *ending);
/* The format that the name promises, "a pickle of Python"; NULL: none that is known. `written`: the endings that are not
 * asked about, since what is written is that; as ".npy, .csv and .tsv". */
const char *mtc_promised(const char *path, const char *written);
/* A fault where the name promises another format than those that are written. `flag`: "--output". */
int mtc_check_ending(MtcFault *fault, const char *flag, const char *path, const char *written);

#endif
