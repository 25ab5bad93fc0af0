/* Kernels that say the same of other sizes, as the layers of a network of images do, are written once for all of them.
 *
 * Two functions are that when their shapes are equal: their texts, after tensors and names have been replaced as for equal functions
 * (repeat.h) and sizes and numbers have been taken out. Numbers that differ become parameters, those that always differ alike one. */
#ifndef MTC_SIZED_H
#define MTC_SIZED_H

#include "emit/kernel/emitter.h"

/* Sets `sized` of all functions, and for these `general`, `parameters`, `arguments`; writes the first of them anew. */
void find_sized(Emitter *e);

#endif
