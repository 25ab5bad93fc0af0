/* What nvcc or cc said about generated code, told in terms of the model. */
#ifndef MTC_EXPLAIN_H
#define MTC_EXPLAIN_H

#include "emit/emit.h"

/* `tool` refused `path`, which holds `source`; `log` is what it wrote and `log_path` where that is kept, or NULL. */
void explain_failure(Diag *diag, const char *tool, const char *path, const Emission *source, const char *log,
                     const char *log_path);

#endif
