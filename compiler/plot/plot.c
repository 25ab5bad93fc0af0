#include "plot/plot.h"

#include "plot/panel.h"

#include <math.h>
#include <stdlib.h>

static const Span nowhere = {0};

/* Does any line of the log say where on this axis it belongs? */
static bool has_axis(const PlotRun *run, PlotAxis axis) {
    for (int c = 0; c < run->curves.count; c++)
        for (int i = 0; i < run->curves.at[c].points.count; i++)
            if (isfinite(run->curves.at[c].points.at[i].x[axis]))
                return true;
    return false;
}

static int add_run(Diag *diag, const PlotRequest *request, const char *path, PlotRuns *runs) {
    static const char *const axis[] = {"step", "epoch", "seconds"};
    PlotRun run;
    int code = plot_read(diag, path, &run);
    if (code)
        return code;
    if (!run.curves.count) {
        diag_warning(diag, nowhere, "%s: is left out: the training ended before it logged a loss", path);
        return EXIT_SUCCESS;
    }
    if (!has_axis(&run, request->axis)) {
        diag_error(diag, nowhere, "%s: its lines have no \"%s\"; choose another --x", path, axis[request->axis]);
        return EXIT_MODEL;
    }
    VEC_PUSH(diag_arena(diag), runs, run);
    return EXIT_SUCCESS;
}

static int write_picture(Diag *diag, const PlotRequest *request, const PlotRuns *runs, Text *out) {
    Picture picture = {.arena = diag_arena(diag)};
    plot_draw(&picture, runs, request);
    if (request->format == PLOT_SVG)
        picture_svg(&picture, out);
    else if (!picture_png(&picture, out)) {
        diag_error(diag, nowhere, "the picture is %.0f high, too much for PNG; a name that ends in .svg takes it",
                   picture.height);
        return EXIT_USAGE;
    }
    return EXIT_SUCCESS;
}

int plot(Diag *diag, const PlotRequest *request, Text *out) {
    PlotRuns runs = {0};
    if (request->logs > PLOT_MOST_RUNS) {
        diag_error(diag, nowhere, "%d logs; more than %d cannot be told apart in one picture", request->logs,
                   PLOT_MOST_RUNS);
        return EXIT_USAGE;
    }
    for (int i = 0; i < request->logs; i++) {
        int code = add_run(diag, request, request->log[i], &runs);
        if (code)
            return code;
    }
    if (!runs.count) {
        diag_error(diag, nowhere, "nothing to draw");
        return EXIT_MODEL;
    }
    plot_name_runs(diag_arena(diag), &runs);
    return write_picture(diag, request, &runs, out);
}
