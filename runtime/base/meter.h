/* Where long work stands, on stderr: on a terminal a line that is drawn over; elsewhere a line now and then, where nothing else
 * was heard for a while. */
#ifndef MTC_METER_H
#define MTC_METER_H

#include "base/common.h"

/* All zeros: it shows nothing. */
typedef struct MtcMeter {
    bool on, terminal;
    bool drawn;     /* a line stands on the terminal */
    double heard;   /* when a line was last drawn or printed */
    double silence; /* seconds without one after which the next is printed; each is longer than the one before */
} MtcMeter;

void mtc_meter_open(MtcMeter *meter);
/* Is it time for a line? What is not shown need not be made. */
bool mtc_meter_due(const MtcMeter *meter);
void mtc_meter_draw(MtcMeter *meter, const char *line);
/* "evaluation [====>     ] 120/157", when it is time. */
void mtc_meter_part(MtcMeter *meter, const char *what, int64_t done, int64_t all);
/* Before other lines are printed. */
void mtc_meter_clear(MtcMeter *meter);

int mtc_meter_width(void); /* what a line of the terminal holds: one that wraps could not be drawn over */
/* [=====>    ], where there is room for it. */
void mtc_meter_cells(MtcText *text, int64_t done, int64_t all, int room);

#endif
