/* How far long work is, over a line of stderr: loading, measuring, profiling. Of a training commands/progress.c says more, with the
 * cells of this bar. */
#include "base/meter.h"

#include "base/line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const double FRAME = 0.05, FIRST_SILENCE = 3, LONGEST_SILENCE = 60; /* seconds */

void mtc_meter_open(MtcMeter *meter) {
    meter->on = true;
    const char *kind = getenv("TERM");
    meter->terminal =
        isatty(STDERR_FILENO) && !(kind && strcmp(kind, "dumb") == 0); /* a dumb one cannot draw over a line */
    meter->heard = mtc_seconds();
    meter->silence = meter->terminal ? FRAME : FIRST_SILENCE;
}

bool mtc_meter_due(const MtcMeter *meter) {
    return meter->on && mtc_seconds() - meter->heard >= meter->silence;
}

void mtc_meter_draw(MtcMeter *meter, const char *line) {
    meter->heard = mtc_seconds();
    if (meter->terminal) {
        fprintf(stderr, "\r%.*s\033[K", mtc_meter_width(), line);
        meter->drawn = true;
    } else {
        fprintf(stderr, "%s\n", line);
        meter->silence = meter->silence * 2 < LONGEST_SILENCE ? meter->silence * 2 : LONGEST_SILENCE;
    }
    fflush(stderr);
}

void mtc_meter_part(MtcMeter *meter, const char *what, int64_t done, int64_t all) {
    MtcText text = {NULL, 0, 0}, numbers = {NULL, 0, 0};
    if (!mtc_meter_due(meter))
        return;
    mtc_text_add(&numbers, " %lld/%lld", (long long)done, (long long)all);
    if (mtc_meter_width() >= (int)(strlen(what) + numbers.length))
        mtc_text_add(&text, "%s", what);
    mtc_meter_cells(&text, done, all, mtc_meter_width() - (int)(text.length + numbers.length) - 3);
    mtc_text_add(&text, "%s", numbers.at);
    mtc_meter_draw(meter, text.at);
    free(text.at);
    free(numbers.at);
}

void mtc_meter_clear(MtcMeter *meter) {
    if (meter->drawn)
        fputs("\r\033[K", stderr);
    meter->drawn = false;
    meter->heard = mtc_seconds();
}

int mtc_meter_width(void) {
    int columns = mtc_columns(STDERR_FILENO);
    return columns > 1 ? columns - 1 : 79;
}

void mtc_meter_cells(MtcText *text, int64_t done, int64_t all, int room) {
    enum { MOST = 24, FEWEST = 3 };
    int cells = room < MOST ? room : MOST, full = (int)(cells * done / all);
    if (cells < FEWEST)
        return;
    mtc_text_add(text, " [");
    for (int i = 0; i < cells; i++)
        mtc_text_add(text, "%c", i < full ? '=' : i == full ? '>' : ' ');
    mtc_text_add(text, "]");
}
