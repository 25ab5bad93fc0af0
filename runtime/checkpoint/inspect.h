/* What is in a checkpoint: for `info FILE`. */
#ifndef MTC_INSPECT_H
#define MTC_INSPECT_H

#include "base/common.h"

/* Prints metadata and tensors of any safetensors file, and how its tensors differ from the model's weights. A fault: the
 * file cannot be read. */
int mtc_inspect(MtcFault *fault, const MtcModel *model, const char *path);

#endif
