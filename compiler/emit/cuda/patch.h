/* Kernels of patches, in CUDA: cuda/patch.cuh. */
#ifndef MTC_EMIT_PATCH_H
#define MTC_EMIT_PATCH_H

#include "emit/kernel/kernel_text.h"

void declare_patches(Emitter *e, const Kernel *kernel, Writer *out);
void write_patches(Body *kernel);

#endif
