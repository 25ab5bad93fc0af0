/* What print(x) of the text shows: values of the next step, looked at before it. */
#ifndef MTC_WATCH_H
#define MTC_WATCH_H

#include "session/session.h"

/* Of the examples that there are; numbers that are none are counted, and left out of the rest, as infinite ones are of the mean. */
typedef struct MtcPrinted {
    double mean, deviation, smallest, largest;
    int64_t numbers, nan, infinite;
} MtcPrinted;

typedef void MtcShowPrinted(void *user, int64_t step, const MtcPrint *print, const MtcPrinted *printed);

/* The values themselves, as the program computes with them; a fault of the session ends the visit. */
typedef int MtcVisitPrinted(void *user, int row, const void *values, int64_t count);
int mtc_visit_printed(MtcSession *session, const MtcRun *run, int64_t rows, MtcVisitPrinted *visit, void *user);

/* Runs the forward pass of the step that the clock and the order on the device say, of so many examples, and shows its values. */
int mtc_show_printed(MtcSession *session, const MtcRun *run, int64_t rows, MtcShowPrinted *show, void *user);

#endif
