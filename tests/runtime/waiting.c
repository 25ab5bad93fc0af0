/* How long a rank waits for another:  waiting WORK LATE  works for so many seconds, and then hears of a rank that takes so many
 * more. Prints the code. */
#include "ranks/ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double late;

static void pass(double seconds) {
    const struct timespec time = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};
    nanosleep(&time, NULL);
}

static bool started(int *rank) {
    *rank = 0;
    return true;
}

static const char *open_two(int *rank, int *count) {
    *rank = 0;
    *count = 2;
    return NULL;
}

static MtcArrival exchange_late(int to, const void *send, size_t send_bytes, int from, void *receive,
                                size_t receive_bytes, bool (*expired)(void)) {
    const double until = mtc_seconds() + late;
    (void)to, (void)send, (void)send_bytes, (void)from, (void)receive;
    while (receive_bytes && mtc_seconds() < until)
        if (expired())
            return MTC_EXPIRED;
    return MTC_ARRIVED;
}

static void leave(void) {
}

const MtcTransport mtc_transport_mpi = {
    .name = "test", .started = started, .open = open_two, .exchange = exchange_late, .close = leave, .abort = exit};

int main(int argc, char **argv) {
    MtcFault fault = {0, ""};
    float values[4] = {0};
    bool held = false;
    if (argc != 3 || mtc_ranks_join(&fault, 0.3))
        return 1;
    pass(strtod(argv[1], NULL));
    mtc_ranks_share(&fault, &held, sizeof held, false); /* which does not hear of the other */
    late = strtod(argv[2], NULL);
    printf("%d\n", mtc_ranks_sum(&fault, values, 4, false));
    mtc_ranks_leave(0);
    return 0;
}
