/* The lines of a training: the progress bar, an epoch's summary, the log of JSON lines. fit.c calls it after each chunk of steps and
 * each epoch; base/meter.c draws the bar's cells and any other long work, base/line.c fits fields to a terminal's width. */
#include "commands/progress.h"

#include "base/line.h"
#include "commands/confusion.h"
#include "commands/members.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- JSON lines ---- */

void mtc_add_start(MtcText *text, const MtcSession *session) {
    char key[32];
    for (int part = 0; part < MTC_START_PARTS; part++) {
        snprintf(key, sizeof key, "%s_seconds", mtc_start_name((MtcStartPart)part));
        mtc_add_number(text, key, session->start.seconds[part]);
    }
}

/* The first failure is told at once; the training goes on, and the exit code tells at its end. */
static void log_line(MtcProgress *progress, MtcText *text) {
    bool written = !progress->log || (fprintf(progress->log, "%s}\n", text->at) >= 0 && fflush(progress->log) == 0);
    if (!written && !progress->log_error) {
        progress->log_error = errno;
        mtc_meter_clear(progress->meter);
        fprintf(stderr, "%s: warning: the log is incomplete from here on: %s: cannot write: %s\n",
                progress->options->program, progress->options->log, strerror(progress->log_error));
    }
    free(text->at);
}

static void log_config(MtcProgress *progress, const MtcSession *session) {
    MtcText text = {NULL, 0, 0};
    mtc_add_config(&text, session, progress->options, progress->last_step, progress->log_every);
    log_line(progress, &text);
}

/* ---- means ---- */

/* Adds a mean to a line of the log and to the event for TensorBoard. */
static void add_mean(MtcProgress *progress, MtcText *text, const char *group, const char *prefix, int report,
                     double mean) {
    char key[128];
    snprintf(key, sizeof key, "%s%s", prefix, progress->model->report[report]);
    mtc_add_number(text, key, mean);
    mtc_events_add(progress->events, group, progress->model->report[report], mean);
}

static void log_interval(MtcProgress *progress, int64_t step) {
    MtcText text = {NULL, 0, 0};
    mtc_text_add(&text, "{\"event\":\"train\"");
    mtc_add_count(&text, "step", step + 1);
    mtc_add_count(&text, "epoch", mtc_place_of_step(&progress->course, step).epoch + 1);
    mtc_events_begin(progress->events, step + 1);
    for (int r = 0; r < progress->model->reports; r++)
        add_mean(progress, &text, "train", "", r, mtc_sums_mean(&progress->interval, r));
    mtc_events_end(progress->events);
    mtc_add_number(&text, "seconds", mtc_seconds() - progress->began);
    log_line(progress, &text);
}

/* The sums are the same with a log and without: checkpoints hold them. */
static void end_interval(MtcProgress *progress, int64_t step) {
    if (progress->log || progress->events)
        log_interval(progress, step);
    memset(&progress->interval, 0, sizeof progress->interval);
}

/* ---- the bar ---- */

/* The numbers say it too, where a line has few columns (0: any number). */
static const char *epoch_word(int columns) {
    return columns && columns < 40 ? "" : "epoch ";
}

/* Behind the loss, the time that is left matters most. */
static void add_numbers(MtcLine *line, const MtcProgress *progress, int64_t done) {
    const MtcModel *model = progress->model;
    const double rate = (double)(done - progress->course.first.step) / (mtc_seconds() - progress->began);
    const long left = (long)((double)(progress->last_step - done) / rate + 0.5);
    for (int r = 0; r < model->reports && r < 3; r++)
        mtc_line_add(line, r ? 1 + r : 0, " %s %.4f", model->report[r], mtc_sums_mean(&progress->epoch, r));
    mtc_line_add(line, MTC_MAX_LINE, "  %.0f examples/s", rate * (double)mtc_step_examples(model));
    mtc_line_add(line, 1, "  %ld:%02ld left", left / 60, left % 60);
}

static void draw_bar(MtcProgress *progress, int64_t done) {
    const MtcPosition at = mtc_place_of_step(&progress->course, done - 1);
    MtcText text = {NULL, 0, 0}, numbers = {NULL, 0, 0};
    MtcLine line = {0};
    if (!mtc_meter_due(progress->meter))
        return;
    mtc_text_add(&text, "%s%lld/%lld", epoch_word(mtc_meter_width()), (long long)at.epoch + 1,
                 (long long)progress->options->epochs);
    int room = mtc_meter_width() - (int)text.length;
    add_numbers(&line, progress, done);
    mtc_text_add(&numbers, "%s", "");
    mtc_line_put(&numbers, &line, room > 0 ? room : 1);
    mtc_meter_cells(&text, at.epoch_step + 1, progress->course.steps_per_epoch, room - (int)numbers.length - 3);
    mtc_text_add(&text, "%s", numbers.at);
    mtc_meter_draw(progress->meter, text.at);
    free(text.at);
    free(numbers.at);
}

/* ---- the training's events ---- */

/* At the end of the log's last whole line: a program that was killed may have left a part of one. */
static FILE *open_to_go_on(const char *path) {
    FILE *log = fopen(path, "r+");
    if (!log)
        return fopen(path, "w");
    if (fseek(log, 0, SEEK_END) == 0) {
        long end = ftell(log);
        while (end > 0 && fseek(log, end - 1, SEEK_SET) == 0 && fgetc(log) != '\n')
            end--;
        if (ftruncate(fileno(log), end) == 0)
            fseek(log, end, SEEK_SET);
    }
    return log;
}

const char *mtc_watched_name(const MtcSession *session, const MtcOptions *options) {
    return options->overfit_batch ? "batch" : mtc_split_name(mtc_watched(session));
}

int mtc_progress_open(MtcFault *fault, MtcProgress *progress, MtcSession *session, const MtcOptions *options,
                      int64_t last_step) {
    memset(progress, 0, sizeof *progress);
    progress->model = session->model;
    progress->session = session;
    progress->options = options;
    progress->test = mtc_watched_name(session, options);
    progress->course = mtc_course(session); /* from where this run begins */
    progress->last_step = last_step;
    progress->log_every = options->log_every ? options->log_every : (progress->course.steps_per_epoch + 9) / 10;
    progress->meter = &session->meter;
    if (options->log) {
        progress->log = options->resume ? open_to_go_on(options->log) : fopen(options->log, "w");
        if (!progress->log)
            return mtc_fail(fault, MTC_CANT_CREATE, "%s: cannot write: %s", options->log,
                            mtc_why_unwritten(options->log));
        log_config(progress, session);
    }
    progress->began = mtc_seconds();
    return options->tensorboard ? mtc_events_open(fault, options->program, options->tensorboard, &progress->events) : 0;
}

void mtc_progress_steps(void *user, int64_t first, int64_t count, const double *reports) {
    MtcProgress *progress = (MtcProgress *)user;
    const MtcModel *model = progress->model;
    for (int64_t i = 0; i < count; i++) {
        int64_t epoch_step = mtc_place_of_step(&progress->course, first + i).epoch_step;
        const double *row = reports + i * mtc_report_columns(model);
        const int64_t examples = mtc_rows_of_step(&progress->course, epoch_step);
        if (epoch_step == 0)
            memset(&progress->epoch, 0, sizeof progress->epoch);
        mtc_sums_add(model, &progress->epoch, row, examples);
        mtc_sums_add(model, &progress->interval, row, examples);
        if ((first + i + 1) % progress->log_every == 0)
            end_interval(progress, first + i);
    }
    draw_bar(progress, first + count);
}

/* In seven characters, so that the lines of epochs make columns: six digits, the more of them decimals the smaller it is. */
static void add_report(MtcLine *line, int rank, const char *before, const char *name, double mean) {
    double size = fabs(mean);
    int decimals = 5;
    for (double limit = 10; decimals > 0 && size >= limit; limit *= 10)
        decimals--;
    if (isnan(mean))
        mtc_line_add(line, rank, "%s  %s %-7s", before, name, "NaN"); /* printf may write its sign */
    else if (size >= 1e6 || (size < 1e-4 && size > 0))
        mtc_line_add(line, rank, "%s  %s %-7.1e", before, name, mean);
    else
        mtc_line_add(line, rank, "%s  %s %-7.*f", before, name, decimals, mean);
}

static void print_line(const MtcProgress *progress, MtcLine *line, bool shown) {
    MtcText text = {NULL, 0, 0};
    mtc_line_put(&text, line, mtc_columns(STDOUT_FILENO));
    if (shown && !progress->options->quiet)
        printf("%s\n", text.at ? text.at : "");
    free(text.at);
}

/* On a narrow terminal, the loss and what is evaluated stay longest; the log has all. */
static void print_summary(MtcProgress *progress, int64_t epoch, const double *test) {
    const MtcModel *model = progress->model;
    MtcLine line = {0};
    char before[64];
    int digits = snprintf(NULL, 0, "%lld", (long long)progress->options->epochs);
    mtc_meter_clear(progress->meter);
    mtc_line_add(&line, 0, "%s%*lld/%lld ", epoch_word(mtc_columns(STDOUT_FILENO)), digits, (long long)epoch,
                 (long long)progress->options->epochs);
    for (int r = 0; r < model->reports; r++)
        add_report(&line, r ? 2 + MTC_MAX_REPORTS + r : 1, "", model->report[r], mtc_sums_mean(&progress->epoch, r));
    snprintf(before, sizeof before, "  | %s", progress->test ? progress->test : "");
    for (int r = 0; r < mtc_evaluated(model) && test; r++)
        add_report(&line, 2 + r, r ? "" : before, model->report[r], test[r]);
    mtc_line_add(&line, MTC_MAX_LINE, "  | %.2f s", mtc_seconds() - progress->began);
    print_line(progress, &line, true);
    errno = EIO; /* of a line that failed before it was flushed */
    if ((fflush(stdout) != 0 || ferror(stdout)) && !progress->unheard)
        progress->unheard = errno;
}

static void log_summary(MtcProgress *progress, const MtcPosition *at, int64_t epoch, const double *test) {
    MtcText text = {NULL, 0, 0};
    char prefix[64];
    snprintf(prefix, sizeof prefix, "%s_", progress->test ? progress->test : "");
    mtc_text_add(&text, "{\"event\":\"epoch\"");
    mtc_add_count(&text, "epoch", epoch);
    mtc_add_count(&text, "step", at->step);
    mtc_events_begin(progress->events, at->step);
    for (int r = 0; r < progress->model->reports; r++)
        add_mean(progress, &text, "train_epoch", "", r, mtc_sums_mean(&progress->epoch, r));
    for (int r = 0; r < mtc_evaluated(progress->model) && test; r++)
        add_mean(progress, &text, progress->test, prefix, r, test[r]);
    if (test)
        mtc_add_confusion(&text, progress->session, prefix);
    mtc_events_end(progress->events);
    mtc_add_number(&text, "seconds", mtc_seconds() - progress->began);
    log_line(progress, &text);
}

void mtc_progress_summary(void *user, const MtcPosition *at, const double *test) {
    MtcProgress *progress = (MtcProgress *)user;
    int64_t epoch = at->epoch + (at->epoch_step > 0);
    if (!progress->options->quiet)
        print_summary(progress, epoch, test);
    if (progress->log || progress->events)
        log_summary(progress, at, epoch, test);
}

void mtc_progress_test(MtcProgress *progress, const MtcPosition *at, const char *weights, const double *reports) {
    const MtcModel *model = progress->model;
    MtcText text = {NULL, 0, 0};
    MtcLine line = {0};
    mtc_meter_clear(progress->meter);
    mtc_line_add(&line, 0, "test ");
    mtc_text_add(&text, "{\"event\":\"test\"");
    mtc_add_count(&text, "step", at->step);
    mtc_add_field(&text, "weights", weights);
    mtc_events_begin(progress->events, at->step);
    for (int r = 0; r < mtc_evaluated(model); r++) {
        add_report(&line, 1 + r, "", model->report[r], reports[r]);
        add_mean(progress, &text, "test", "test_", r, reports[r]);
    }
    mtc_add_confusion(&text, progress->session, "test_");
    mtc_add_number(&text, "seconds", mtc_seconds() - progress->began);
    mtc_line_add(&line, 1 + mtc_evaluated(model), "  | %s weights, of step %lld", weights, (long long)at->step);
    print_line(progress, &line, true);
    mtc_events_end(progress->events);
    log_line(progress, &text);
}

static int close_log(MtcFault *fault, MtcProgress *progress) {
    if (!progress->log)
        return 0;
    if (fclose(progress->log) != 0 && !progress->log_error)
        progress->log_error = errno;
    return progress->log_error
               ? mtc_fail(fault, MTC_IO, "%s: cannot write: %s", progress->options->log, strerror(progress->log_error))
               : 0;
}

void mtc_progress_warn(void *progress, const char *text) {
    const MtcProgress *shown = (const MtcProgress *)progress;
    mtc_meter_clear(shown->meter);
    fprintf(stderr, "%s: warning: %s\n", shown->options->program, text);
}

void mtc_progress_print(MtcProgress *progress, int64_t step, const MtcPrint *print, const MtcPrinted *printed) {
    mtc_meter_clear(progress->meter);
    printf("step %lld  %s  %s  %s  mean %s, deviation %s, from %s to %s, %lld NaN", (long long)step + 1, print->at,
           print->text, print->type, mtc_number(printed->mean), mtc_number(printed->deviation),
           mtc_number(printed->smallest), mtc_number(printed->largest), (long long)printed->nan);
    if (printed->infinite)
        printf(", %lld infinite", (long long)printed->infinite);
    printf(" of %lld\n", (long long)printed->numbers);
    fflush(stdout);
}

void mtc_progress_abandon(MtcProgress *progress, const MtcFault *fault) {
    MtcText text = {NULL, 0, 0};
    MtcFault ignored; /* what failed before is told */
    mtc_meter_clear(progress->meter);
    mtc_text_add(&text, "{\"event\":\"fault\"");
    mtc_add_field(&text, "message", fault->text);
    log_line(progress, &text);
    close_log(&ignored, progress);
    mtc_events_close(&ignored, progress->events);
}

int mtc_progress_close(MtcFault *fault, MtcProgress *progress, const MtcSession *session, const MtcTraining *training) {
    double now = mtc_seconds(), process = now - progress->options->started;
    int64_t steps = training->ended - progress->course.first.step;
    MtcLine line = {0};
    double step_us = steps ? 1e6 * training->train_seconds / (double)steps : 0;
    mtc_meter_clear(progress->meter);
    mtc_line_add(&line, 0, "%lld steps in %.3f s", (long long)steps, training->train_seconds);
    mtc_line_add(&line, 1, ", %.2f us a step", step_us);
    mtc_line_add(&line, 2, "; evaluation %.3f s", training->evaluate_seconds);
    mtc_line_add(&line, 3, "; whole process %.3f s", process);
    print_line(progress, &line, steps);
    MtcText text = {NULL, 0, 0};
    mtc_text_add(&text, "{\"event\":\"end\"");
    mtc_add_count(&text, "steps", training->ended);
    mtc_add_number(&text, "train_seconds", training->train_seconds);
    mtc_add_number(&text, "evaluate_seconds", training->evaluate_seconds);
    mtc_add_number(&text, "us_per_step", step_us);
    mtc_add_start(&text, session);
    mtc_add_number(&text, "process_seconds", process);
    log_line(progress, &text);
    int unlogged = close_log(fault, progress), unsent = mtc_events_close(fault, progress->events);
    return unlogged ? unlogged : unsent;
}
