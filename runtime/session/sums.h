/* Means over the steps of an epoch: of a step's batch every example counts as one, or as it weighs, also where the
 * last batch is smaller. */
#ifndef MTC_SUMS_H
#define MTC_SUMS_H

#include "session/session.h"

/* The steps of a training from where it began or went on: which epochs they belong to, and how many examples they have. */
typedef struct MtcCourse {
    MtcPosition first;
    int64_t examples, batch, steps_per_epoch;
} MtcCourse;

MtcCourse mtc_course(const MtcSession *session);
/* A step's epoch, and the steps of that epoch before it. A training that was resumed with other data has done another number
 * of steps than its epochs have now. */
MtcPosition mtc_place_of_step(const MtcCourse *course, int64_t step);
int64_t mtc_rows_of_step(const MtcCourse *course, int64_t epoch_step);

/* A step's finished row, of so many examples. */
void mtc_sums_add(const MtcModel *model, MtcSums *sums, const double *row, int64_t examples);
double mtc_sums_mean(const MtcSums *sums, int report);

#endif
