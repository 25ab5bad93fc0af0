/* What a param of a program can be. */
#ifndef MTC_PARAM_H
#define MTC_PARAM_H

#include "base/common.h"

/* 0, or a fault: no whole number, outside of the range of the text or of what it goes to, not finite in f32, or in double. */
int mtc_check_param(MtcFault *fault, const MtcKnob *param, double value, bool in_double);

#endif
