/* What products are computed in. */
#ifndef MTC_MATH_H
#define MTC_MATH_H

#include "ir/type.h"

typedef enum Math { MATH_FP32, MATH_TF32, MATH_TF32X3, MATH_BF16, MATH_FP16, MATH_FP8, MATH_INT8, MATHS } Math;

typedef struct MathInfo {
    const char *name, *symbol; /* "bf16", "BF16" of the runtime's MTC_MATH_BF16 */
    DType dtype;               /* of the numbers */
    const char *element;       /* of tiles on tensor cores, in CUDA C++ */
    int terms;                 /* that a number is multiplied as */
    double passes;             /* of tensor cores, as long as one over numbers of 16 bits; 0: CUDA cores have it */
} MathInfo;

extern const MathInfo math_info[MATHS];
Math math_of_dtype(DType dtype); /* MATH_FP32 but for numbers of 16 bits and of 8 */

#endif
