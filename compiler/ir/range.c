/* Ranges of whole numbers: what arithmetic on them can result in. */
#include "ir/type.h"

#include <math.h>

#define LARGEST ((int64_t)1 << 53)

const Range range_unknown = {0, -1};

bool dtype_is_whole(DType dtype) {
    return range_is_known(range_of_dtype(dtype));
}

Range range_of_dtype(DType dtype) {
    switch (dtype) {
    case DT_I32: return (Range){INT32_MIN, INT32_MAX};
    case DT_U16: return (Range){0, UINT16_MAX};
    case DT_U8: return (Range){0, UINT8_MAX};
    case DT_I8: return (Range){INT8_MIN, INT8_MAX};
    case DT_BOOL: return (Range){0, 1};
    default: return range_unknown;
    }
}

static Range checked(int64_t low, int64_t high) {
    return low >= -LARGEST && high <= LARGEST ? (Range){low, high} : range_unknown;
}

Range range_of_number(double number) {
    bool whole = number == floor(number) && fabs(number) <= (double)LARGEST;
    return whole ? (Range){(int64_t)number, (int64_t)number} : range_unknown;
}

bool range_is_known(Range a) {
    return a.low <= a.high;
}

bool range_within(Range a, Range b) {
    return range_is_known(a) && a.low >= b.low && a.high <= b.high;
}

static bool both_known(Range a, Range b) {
    return range_is_known(a) && range_is_known(b);
}

Range range_sum(Range a, Range b) {
    return both_known(a, b) ? checked(a.low + b.low, a.high + b.high) : range_unknown;
}

Range range_difference(Range a, Range b) {
    return both_known(a, b) ? checked(a.low - b.high, a.high - b.low) : range_unknown;
}

Range range_product(Range a, Range b) {
    if (!both_known(a, b))
        return range_unknown;
    int64_t low = INT64_MAX, high = INT64_MIN;
    for (int k = 0; k < 4; k++) {
        int64_t product;
        if (__builtin_mul_overflow(k & 1 ? a.low : a.high, k & 2 ? b.low : b.high, &product))
            return range_unknown;
        low = product < low ? product : low;
        high = product > high ? product : high;
    }
    return checked(low, high);
}

Range range_union(Range a, Range b) {
    return both_known(a, b) ? (Range){a.low < b.low ? a.low : b.low, a.high > b.high ? a.high : b.high} : range_unknown;
}
