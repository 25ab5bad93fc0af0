#include "ir/math.h"

const MathInfo math_info[MATHS] = {[MATH_FP32] = {"fp32", "FP32", DT_F32, "float", 1, 0},
                                   [MATH_TF32] = {"tf32", "TF32", DT_F32, "float", 1, 2},
                                   [MATH_TF32X3] = {"tf32x3", "TF32X3", DT_F32, "tf32x3", 2, 6},
                                   [MATH_BF16] = {"bf16", "BF16", DT_BF16, "bfloat16", 1, 1},
                                   [MATH_FP16] = {"fp16", "FP16", DT_F16, "float16", 1, 1},
                                   [MATH_FP8] = {"fp8", "FP8", DT_E4M3, "e4m3", 1, 0.65},
                                   [MATH_INT8] = {"int8", "INT8", DT_I8, "Integer", 1, 0.5}};

Math math_of_dtype(DType dtype) {
    for (int math = MATH_BF16; math < MATHS; math++)
        if (math_info[math].dtype == dtype)
            return (Math)math;
    return MATH_FP32;
}
