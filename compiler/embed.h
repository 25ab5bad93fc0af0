/* The weights that a library of the prediction alone carries (--embed). */
#ifndef MTC_EMBED_H
#define MTC_EMBED_H

#include "ir/graph.h"
#include "support/diag.h"

/* Of the file, the tensors that the module has, its params and its words, in a file of their own in `folder`: its absolute path; *hash of
 * its content, hex. NULL after a report: no such file, or one without some tensor. */
const char *embed_weights(Diag *diag, const Module *module, const char *path, const char *folder, const char **hash);

#endif
