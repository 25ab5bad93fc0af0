/* From generated source to program: keeps the source, runs nvcc or cc without a shell, explains what they refuse.
 *
 * Files appear whole or not at all, also where several compilations with the same names run at once: the last that ends has
 * made both source and program. A program that is there already stays when its successor cannot be made. */
#ifndef MTC_DRIVER_H
#define MTC_DRIVER_H

#include "emit/build/toolchain.h"

/* `emission`: what emit/ wrote; a standalone build compiles it as one file. Returns the exit code. */
int driver_build(Diag *diag, const Toolchain *tools, const Build *build, const Emission *emission);

#endif
