#include "session/start.h"

#include "base/common.h"

const char *mtc_start_name(MtcStartPart part) {
    static const char *const names[] = {
#define PART(name, NAME, what) #name,
#include "session/start.def"
    };
    return names[part];
}

const char *mtc_start_what(MtcStartPart part) {
    static const char *const texts[] = {
#define PART(name, NAME, what) what,
#include "session/start.def"
    };
    return texts[part];
}

void mtc_start_begin(MtcStart *start, double at) {
    start->at = at;
}

void mtc_start_end_part(MtcStart *start, MtcStartPart part) {
    const double now = mtc_seconds();
    if (start->at <= 0)
        return;
    start->seconds[part] += now - start->at;
    start->at = part == MTC_START_FIRST_STEP ? 0 : now;
}

double mtc_start_seconds(const MtcStart *start) {
    double sum = 0;
    for (int part = 0; part < MTC_START_PARTS; part++)
        sum += start->seconds[part];
    return sum;
}
