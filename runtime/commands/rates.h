/* How much arithmetic a multiprocessor of a GPU does in a cycle. */
#ifndef MTC_RATES_H
#define MTC_RATES_H

#include "mtc.h"

/* Operations in a cycle, a multiply-add counted as two, summed in fp32, of matrices without zeros to leave out. `name` is the
 * device's, major.minor its compute capability. 0: it has no such unit, or its rate is not known here. */
double mtc_operations_per_cycle(int major, int minor, const char *name, MtcMath math);

/* "fp32", "tf32", "tf32x3", "bf16", "fp16", "fp8", "int8" */
const char *mtc_math_name(MtcMath math);

#endif
