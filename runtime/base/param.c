#include "base/param.h"

#include <math.h>

int mtc_check_param(MtcFault *fault, const MtcKnob *param, double value, bool in_double) {
    const char *name = param->name;
    if (param->integer && value != floor(value))
        return mtc_fail(fault, MTC_USAGE, "'%s' is an integer, not %.15g", name, value);
    if (param->has_range && !(value >= param->low && value <= param->high))
        return mtc_fail(fault, MTC_USAGE, "'%s' is from %g to %g, not %.15g", name, param->low, param->high, value);
    if (param->bound && !(value >= param->least && value <= param->most))
        return mtc_fail(fault, MTC_USAGE, "'%s' %s, not %.15g", name, param->bound, value);
    if (!isfinite(in_double ? value : (double)(float)value))
        return mtc_fail(fault, MTC_USAGE, "'%s' is a finite float, not %g", name, value);
    return 0;
}
