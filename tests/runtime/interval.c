/* What --save-every means: for each argument a line "<steps> <seconds>", or "refused". */
#include "checkpoint/keeper.h"

#include <stdio.h>

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        MtcFault fault;
        MtcInterval interval;
        if (mtc_parse_interval(&fault, argv[i], &interval))
            puts("refused");
        else
            printf("%lld %g\n", (long long)interval.steps, interval.seconds);
    }
    return 0;
}
