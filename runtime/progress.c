#include "progress.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* ---- JSON lines ---- */

void mtc_add_field(MtcText *text, const char *key, const char *value) {
    mtc_text_add(text, ",");
    mtc_text_json(text, key);
    mtc_text_add(text, ":");
    mtc_text_json(text, value);
}

void mtc_add_number(MtcText *text, const char *key, double value) {
    mtc_text_add(text, ",");
    mtc_text_json(text, key);
    mtc_text_add(text, isfinite(value) ? ":%.9g" : ":null", value);
}

void mtc_add_count(MtcText *text, const char *key, int64_t value) {
    mtc_text_add(text, ",");
    mtc_text_json(text, key);
    mtc_text_add(text, ":%lld", (long long)value);
}

void mtc_add_params(MtcText *text, const MtcModel *model, const MtcSession *session) {
    for (int i = 0; i < model->fixed; i++)
        mtc_add_number(text, model->fixed_param[i].name, model->fixed_param[i].value);
    for (int i = 0; i < model->knobs; i++)
        mtc_add_number(text, model->knob[i].name, (double)session->knob[i]);
}

void mtc_add_start(MtcText *text, const MtcSession *session) {
    mtc_add_number(text, "device_seconds", session->start.device);
    mtc_add_number(text, "files_seconds", session->start.files);
    mtc_add_number(text, "upload_seconds", session->start.upload);
}

static void log_line(MtcProgress *progress, MtcText *text) {
    bool written = fprintf(progress->log, "%s}\n", text->at) >= 0 && fflush(progress->log) == 0;
    if (!written && !progress->log_error)
        progress->log_error = errno;
    free(text->at);
}

static void log_config(MtcProgress *progress, const MtcSession *session) {
    const MtcModel *model = progress->model;
    const MtcOptions *options = progress->options;
    MtcText text = {NULL, 0, 0}, params = {NULL, 0, 0};
    mtc_text_add(&text, "{\"event\":\"config\"");
    mtc_add_field(&text, "model", model->name);
    mtc_add_field(&text, "source", model->source);
    mtc_add_field(&text, "model_hash", model->model_hash);
    mtc_add_field(&text, "target", model->target);
    mtc_add_field(&text, "schedule", model->schedule);
    mtc_add_field(&text, "device", session->device.name);
    mtc_text_add(&text, ",\"seed\":%llu", (unsigned long long)session->seed);
    mtc_add_count(&text, "epochs", options->epochs);
    mtc_add_count(&text, "steps", progress->last_step);
    mtc_add_count(&text, "batch", model->batch);
    mtc_add_count(&text, "parameters", model->parameters);
    mtc_add_count(&text, "train_examples", session->data[MTC_TRAIN].examples);
    mtc_add_count(&text, "test_examples", session->data[MTC_TEST].examples);
    if (options->load)
        mtc_add_field(&text, "load", options->load);
    mtc_text_add(&params, "%s", "");
    mtc_add_params(&params, model, session);
    mtc_text_add(&text, ",\"params\":{%s}", params.length ? params.at + 1 : "");
    free(params.at);
    log_line(progress, &text);
}

/* ---- sums ---- */

static int64_t rows_of_step(const MtcProgress *progress, int64_t step) {
    int64_t batch = progress->model->batch, left = progress->examples - step % progress->steps_per_epoch * batch;
    return left < batch ? left : batch;
}

static void add_row(MtcSums *sums, int reports, const double *row, double rows) {
    for (int r = 0; r < reports; r++)
        sums->report[r] += row[r] * rows;
    sums->examples += rows;
}

static double sums_mean(const MtcSums *sums, int report) {
    return sums->report[report] / sums->examples;
}

static void log_interval(MtcProgress *progress, int64_t step) {
    MtcText text = {NULL, 0, 0};
    mtc_text_add(&text, "{\"event\":\"train\"");
    mtc_add_count(&text, "step", step + 1);
    mtc_add_count(&text, "epoch", step / progress->steps_per_epoch + 1);
    for (int r = 0; r < progress->model->reports; r++)
        mtc_add_number(&text, progress->model->report[r], sums_mean(&progress->interval, r));
    mtc_add_number(&text, "seconds", mtc_seconds() - progress->began);
    memset(&progress->interval, 0, sizeof progress->interval);
    log_line(progress, &text);
}

/* ---- the bar ---- */

/* What a line of the terminal holds: one that wraps could not be drawn over. */
static int terminal_width(void) {
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1 : 79;
}

/* [=====>    ], where there is room for it. */
static void add_cells(MtcText *text, const MtcProgress *progress, int64_t done, int room) {
    enum { MOST = 24, FEWEST = 3 };
    int64_t in_epoch = (done - 1) % progress->steps_per_epoch + 1;
    int cells = room < MOST ? room : MOST, full = (int)(cells * in_epoch / progress->steps_per_epoch);
    if (cells < FEWEST)
        return;
    mtc_text_add(text, " [");
    for (int i = 0; i < cells; i++)
        mtc_text_add(text, "%c", i < full ? '=' : i == full ? '>' : ' ');
    mtc_text_add(text, "]");
}

static void draw_bar(MtcProgress *progress, int64_t done) {
    const MtcModel *model = progress->model;
    double now = mtc_seconds(), rate = (double)done / (now - progress->began);
    long left = (long)((double)(progress->last_step - done) / rate + 0.5);
    int width = terminal_width();
    MtcText text = {NULL, 0, 0}, numbers = {NULL, 0, 0};
    if (now - progress->drawn < 0.05)
        return;
    progress->drawn = now;
    for (int r = 0; r < model->reports && r < 3; r++)
        mtc_text_add(&numbers, " %s %.4f", model->report[r], sums_mean(&progress->epoch, r));
    mtc_text_add(&numbers, "  %.0f examples/s  %ld:%02ld left", rate * (double)model->batch, left / 60, left % 60);
    mtc_text_add(&text, "epoch %lld/%lld", (long long)((done - 1) / progress->steps_per_epoch + 1),
                 (long long)progress->options->epochs);
    add_cells(&text, progress, done, width - (int)(text.length + numbers.length) - 3);
    mtc_text_add(&text, "%s", numbers.at);
    fprintf(stderr, "\r%.*s\033[K", width, text.at);
    fflush(stderr);
    free(text.at);
    free(numbers.at);
}

static void clear_bar(const MtcProgress *progress) {
    if (progress->bar)
        fputs("\r\033[K", stderr);
}

/* ---- the training's events ---- */

int mtc_progress_open(MtcFault *fault, MtcProgress *progress, const MtcSession *session, const MtcOptions *options,
                      int64_t last_step) {
    memset(progress, 0, sizeof *progress);
    progress->model = session->model;
    progress->options = options;
    progress->test = mtc_test_split(session->model);
    progress->examples = session->data[MTC_TRAIN].examples;
    progress->steps_per_epoch = mtc_batches(session, &session->data[MTC_TRAIN]);
    progress->last_step = last_step;
    progress->log_every = options->log_every ? options->log_every : (progress->steps_per_epoch + 9) / 10;
    progress->bar = !options->quiet && isatty(STDERR_FILENO);
    if (options->log) {
        progress->log = fopen(options->log, "w");
        if (!progress->log)
            return mtc_fail(fault, MTC_CANT_CREATE, "%s: cannot write: %s", options->log, strerror(errno));
        log_config(progress, session);
    }
    progress->began = mtc_seconds();
    return 0;
}

void mtc_progress_steps(void *user, int64_t first, int64_t count, const double *reports) {
    MtcProgress *progress = (MtcProgress *)user;
    int width = progress->model->reports;
    for (int64_t i = 0; i < count; i++) {
        double rows = (double)rows_of_step(progress, first + i);
        add_row(&progress->epoch, width, reports + i * width, rows);
        add_row(&progress->interval, width, reports + i * width, rows);
        if (progress->log && (first + i + 1) % progress->log_every == 0)
            log_interval(progress, first + i);
    }
    if (progress->bar)
        draw_bar(progress, first + count);
}

static void print_report(const char *name, double mean) {
    if (isnan(mean))
        printf("  %s NaN", name); /* printf may write its sign */
    else
        printf("  %s %.5f", name, mean);
}

static void print_summary(const MtcProgress *progress, int64_t epoch, const double *test) {
    const MtcModel *model = progress->model;
    int digits = snprintf(NULL, 0, "%lld", (long long)progress->options->epochs);
    clear_bar(progress);
    printf("epoch %*lld/%lld ", digits, (long long)epoch, (long long)progress->options->epochs);
    for (int r = 0; r < model->reports; r++)
        print_report(model->report[r], sums_mean(&progress->epoch, r));
    if (test)
        printf("  | %s", progress->test);
    for (int r = 0; r < model->reports && test; r++)
        print_report(model->report[r], test[r]);
    printf("  | %.2f s\n", mtc_seconds() - progress->began);
    fflush(stdout);
}

static void log_summary(MtcProgress *progress, const MtcPosition *at, int64_t epoch, const double *test) {
    MtcText text = {NULL, 0, 0};
    mtc_text_add(&text, "{\"event\":\"epoch\"");
    mtc_add_count(&text, "epoch", epoch);
    mtc_add_count(&text, "step", at->step);
    for (int r = 0; r < progress->model->reports; r++)
        mtc_add_number(&text, progress->model->report[r], sums_mean(&progress->epoch, r));
    for (int r = 0; r < progress->model->reports && test; r++) {
        char name[128];
        snprintf(name, sizeof name, "%s_%s", progress->test, progress->model->report[r]);
        mtc_add_number(&text, name, test[r]);
    }
    mtc_add_number(&text, "seconds", mtc_seconds() - progress->began);
    log_line(progress, &text);
}

void mtc_progress_summary(void *user, const MtcPosition *at, const double *test) {
    MtcProgress *progress = (MtcProgress *)user;
    int64_t epoch = at->epoch + (at->epoch_step > 0);
    if (!progress->options->quiet)
        print_summary(progress, epoch, test);
    if (progress->log)
        log_summary(progress, at, epoch, test);
    memset(&progress->epoch, 0, sizeof progress->epoch);
}

static int close_log(MtcFault *fault, MtcProgress *progress) {
    if (fclose(progress->log) != 0 && !progress->log_error)
        progress->log_error = errno;
    return progress->log_error
               ? mtc_fail(fault, MTC_IO, "%s: cannot write: %s", progress->options->log, strerror(progress->log_error))
               : 0;
}

void mtc_progress_abandon(MtcProgress *progress, const MtcFault *fault) {
    MtcText text = {NULL, 0, 0};
    clear_bar(progress);
    if (!progress->log)
        return;
    mtc_text_add(&text, "{\"event\":\"fault\"");
    mtc_add_field(&text, "message", fault->text);
    log_line(progress, &text);
    fclose(progress->log);
}

int mtc_progress_close(MtcFault *fault, MtcProgress *progress, const MtcSession *session, const MtcTraining *training) {
    double now = mtc_seconds(), process = now - progress->options->started;
    double step_us = session->at.step ? 1e6 * training->train_seconds / (double)session->at.step : 0;
    clear_bar(progress);
    if (!progress->options->quiet)
        printf("%lld steps in %.3f s, %.2f us a step; evaluation %.3f s; whole process %.3f s\n",
               (long long)session->at.step, training->train_seconds, step_us, training->evaluate_seconds, process);
    if (!progress->log)
        return 0;
    MtcText text = {NULL, 0, 0};
    mtc_text_add(&text, "{\"event\":\"end\"");
    mtc_add_count(&text, "steps", session->at.step);
    mtc_add_number(&text, "train_seconds", training->train_seconds);
    mtc_add_number(&text, "evaluate_seconds", training->evaluate_seconds);
    mtc_add_number(&text, "us_per_step", step_us);
    mtc_add_start(&text, session);
    mtc_add_number(&text, "process_seconds", process);
    log_line(progress, &text);
    return close_log(fault, progress);
}
