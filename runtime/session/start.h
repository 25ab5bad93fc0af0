/* Where the time goes until a session's first step is done. */
#ifndef MTC_START_H
#define MTC_START_H

#include <stdbool.h>

typedef enum MtcStartPart {
#define PART(name, NAME, what) MTC_START_##NAME,
#include "session/start.def"
    MTC_START_PARTS
} MtcStartPart;

/* Seconds of the host in each part: what the device does meanwhile is waited for in a later one. */
typedef struct MtcStart {
    double seconds[MTC_START_PARTS];
    double at; /* when the part that is being done began; 0: the first step is done */
} MtcStart;

const char *mtc_start_name(MtcStartPart part);
const char *mtc_start_what(MtcStartPart part);

void mtc_start_begin(MtcStart *start, double at);
/* What was done since the end of the part before is of this one. */
void mtc_start_end_part(MtcStart *start, MtcStartPart part);
double mtc_start_seconds(const MtcStart *start);

#endif
