/* Which process of how many this is, and where all meet, as whoever started it says by the environment. */
#ifndef MTC_ENVIRONMENT_H
#define MTC_ENVIRONMENT_H

#include "base/common.h"

typedef struct MtcMeeting {
    int rank, count;
    char host[256], port[16]; /* where rank 0 listens */
    uint64_t job;             /* of the launcher's name for it; 0: it has none */
} MtcMeeting;

/* It was started as one of several, or half of that is said. `rank`: 0, where nothing is. */
bool mtc_environment_started(int *rank);
/* NULL, or what is missing. */
const char *mtc_environment_read(MtcMeeting *meeting);

#endif
