/* The numbers of 16 bits that a program stores: bfloat16, or float16 where it was generated for fp16. */
#ifndef MTC_CPU_NARROW_H
#define MTC_CPU_NARROW_H

#ifdef MTC_FLOAT16
#include "float16.h"
typedef float16 Narrow;
#else
#include "bfloat16.h"
typedef bfloat16 Narrow;
#endif

static inline Narrow to_narrow(float x) {
#ifdef MTC_FLOAT16
    return to_f16(x);
#else
    return to_bf16(x);
#endif
}

#endif
