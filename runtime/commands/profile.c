/* profile: how long each kernel of a training step takes when it is launched alone, again and again, and which limit of
 * the device it comes nearest to. */
#include "base/line.h"
#include "commands/bench.h"
#include "commands/members.h"
#include "commands/own_steps.h"
#include "commands/rates.h"
#include "commands/together.h"
#include "ranks/ranks.h"
#include "session/finite.h"
#include "session/library.h"
#include "session/run.h"
#include "session/train.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A run of a kernel: as many launches as take some milliseconds, so that what comes once in a run does not count. */
static const double RUN_SECONDS = 0.005;
static const int64_t TRIAL_LAUNCHES = 10, MOST_LAUNCHES = 1000;

/* Where a step takes longer, it is made once for so many kernels, not before each of their runs. */
static const double LONG_STEP = 0.002;
enum { KERNELS_A_REFRESH = 32 };

/* Below this part of both peaks, a kernel waits for something else: launch, barriers, too little work to fill the device. */
static const double BUSY = 0.25;

typedef struct Profile {
    MtcSession *session;
    MtcStepTimes step;
    double bandwidth, flops[MTC_MATHS]; /* the device's peaks, a second; 0: not known */
    bool real_data;
    double *seconds; /* of each kernel; of a batch in shards, of one of them */
    double sum;
    double
        *own; /* of each rank, a step of its shards and the update, without the others; NULL: the batch has no shards */
} Profile;

/* A row of the table: a kernel, or those that are the same in layer after layer. */
typedef struct Row {
    int first, count; /* the first kernel, and how many */
    double seconds, flops, bytes;
    double arithmetic; /* seconds that its arithmetic takes at the peak; below 0: not known */
} Row;

/* ---- measuring ---- */

/* Every value as a step leaves it: a kernel that works in place drifts away when it runs again and again. A step that is
 * long is made before some kernels only. */
static const char *refresh(const Profile *profile, const MtcRun *run, int kernel, bool first) {
    const MtcModel *model = profile->session->model;
    const bool due = profile->step.median < LONG_STEP || (first && kernel % KERNELS_A_REFRESH == 0);
    return due ? mtc_model_train_until(model, run, model->train_phases - 1) : NULL;
}

/* Seconds of device time for each of `times` launches. */
static const char *time_launches(MtcSession *session, const MtcRun *run, int kernel, int64_t times,
                                 MtcEvent *const *event, double *seconds) {
    const char *error = mtc_event_record(event[0]);
    error = error ? error : mtc_model_run_kernel(session->model, run, kernel, times);
    error = error ? error : mtc_event_record(event[1]);
    error = error ? error : mtc_event_wait(event[1]);
    if (!error)
        *seconds = mtc_event_seconds(event[0], event[1]) / (double)times;
    return error;
}

static int64_t launches(double seconds) {
    double wanted = RUN_SECONDS / (seconds > 1e-7 ? seconds : 1e-7);
    return wanted < 1 ? 1 : wanted > MOST_LAUNCHES ? MOST_LAUNCHES : (int64_t)wanted;
}

/* The times of several runs, after two that find out how many launches make one, and one that prepares. */
static const char *time_kernel(Profile *profile, const MtcRun *run, int kernel, MtcEvent *const *event,
                               double *seconds) {
    enum { TRIALS = 2, BEFORE = TRIALS + 1 };
    int64_t times = TRIAL_LAUNCHES;
    const char *error = NULL;
    for (int64_t i = 0; i < BEFORE + profile->step.runs && !error; i++) {
        times = i == TRIALS ? launches(*seconds) : times;
        double *result = &seconds[i > BEFORE ? i - BEFORE : 0];
        error = refresh(profile, run, kernel, i == 0);
        error = error ? error : time_launches(profile->session, run, kernel, times, event, result);
    }
    return error;
}

static const char *time_kernels(Profile *profile, double *seconds) {
    MtcSession *session = profile->session;
    MtcRun run = mtc_run(session, &session->data[MTC_TRAIN], session->trainer->reports);
    MtcEvent *event[2] = {NULL, NULL};
    const char *error = mtc_event_new(&event[0]);
    error = error ? error : mtc_event_new(&event[1]);
    error = error ? error : mtc_begin_epoch(session);
    for (int k = 0; k < session->model->kernels && !error; k++) {
        mtc_meter_part(&session->meter, "profiling kernels", k, session->model->kernels);
        error = time_kernel(profile, &run, k, event, seconds);
        profile->seconds[k] = mtc_median(seconds, profile->step.runs);
        profile->sum += profile->seconds[k];
    }
    mtc_meter_clear(&session->meter);
    mtc_event_free(event[0]);
    mtc_event_free(event[1]);
    return error;
}

static int measure_kernels(Profile *profile, const MtcOptions *options) {
    MtcSession *session = profile->session;
    int code = mtc_time_steps(session, options, &profile->step);
    double *seconds = (double *)calloc((size_t)options->runs, sizeof *seconds);
    profile->seconds = (double *)calloc((size_t)session->model->kernels, sizeof *profile->seconds);
    if (!code && (!seconds || !profile->seconds))
        code = mtc_no_memory(&session->fault, (size_t)options->runs * sizeof *seconds, "times");
    if (!code)
        code = mtc_device_fault(session, time_kernels(profile, seconds), "profiling");
    code = mtc_ranks_ready(&session->fault, code);
    if (!code)
        code = mtc_measure_own_steps(session, &profile->step, &profile->own);
    free(seconds);
    return code;
}

/* ---- what bounds a kernel ---- */

static bool uses(const MtcModel *model, int math) {
    for (int k = 0; k < model->kernels; k++)
        if ((int)model->kernel[k].math == math)
            return true;
    return false;
}

/* Of what the program's products run in. */
static void find_peaks(Profile *profile, int device) {
    const MtcPeaks peaks = mtc_device_peaks(device);
    const MtcDeviceInfo *info = &profile->session->device;
    profile->bandwidth = peaks.bandwidth;
    for (int m = 0; m < MTC_MATHS; m++)
        if (uses(profile->session->model, m))
            profile->flops[m] =
                peaks.cycles * mtc_operations_per_cycle(info->major, info->minor, info->name, (MtcMath)m);
}

typedef struct Rates {
    double bandwidth, flops;       /* a second */
    double of_bandwidth, of_flops; /* of the peak; below 0: it is not known */
    const char *bound;             /* "": not known */
} Rates;

static Rates rates_of(const Profile *profile, const Row *row) {
    Rates rates = {row->bytes / row->seconds, row->flops / row->seconds, -1, -1, ""};
    if (profile->bandwidth > 0)
        rates.of_bandwidth = rates.bandwidth / profile->bandwidth;
    if (row->arithmetic >= 0)
        rates.of_flops = row->arithmetic / row->seconds;
    if (rates.of_bandwidth < 0 || rates.of_flops < 0)
        return rates;
    bool memory = rates.of_bandwidth >= rates.of_flops;
    double most = memory ? rates.of_bandwidth : rates.of_flops;
    rates.bound = most < BUSY ? "latency" : memory ? "memory" : "arithmetic";
    return rates;
}

/* ---- rows ---- */

static Row row_of(const Profile *profile, int k) {
    const MtcKernel *kernel = &profile->session->model->kernel[k];
    double peak = profile->flops[kernel->math];
    Row row = {k, 1, profile->seconds[k], kernel->flops, kernel->bytes, peak > 0 ? kernel->flops / peak : -1};
    return row;
}

static bool is_decimal(char c) {
    return c >= '0' && c <= '9';
}

static const char *skip_decimals(const char *text) {
    while (is_decimal(*text))
        text++;
    return text;
}

/* "h_0_attn_seen" and "h_11_attn_seen": but for numbers, the same. */
static bool same_but_numbers(const char *a, const char *b) {
    for (; *a && *b; a++, b++) {
        bool numbers = is_decimal(*a) && is_decimal(*b);
        a = numbers ? skip_decimals(a) - 1 : a;
        b = numbers ? skip_decimals(b) - 1 : b;
        if (!numbers && *a != *b)
            return false;
    }
    return *a == *b;
}

/* One line of the model makes both, and they do the same. */
static bool is_like(const MtcKernel *a, const MtcKernel *b) {
    return a->statement == b->statement && a->math == b->math && a->flops == b->flops && a->bytes == b->bytes &&
           same_but_numbers(a->name, b->name);
}

static void add_to_row(Row *row, const Row *more) {
    row->count += more->count;
    row->seconds += more->seconds;
    row->flops += more->flops;
    row->bytes += more->bytes;
    row->arithmetic = row->arithmetic < 0 || more->arithmetic < 0 ? -1 : row->arithmetic + more->arithmetic;
}

static int gather_rows(const Profile *profile, Row *rows) {
    const MtcModel *model = profile->session->model;
    int count = 0;
    for (int k = 0; k < model->kernels; k++) {
        Row row = row_of(profile, k);
        int like = 0;
        while (like < count && !is_like(&model->kernel[rows[like].first], &model->kernel[k]))
            like++;
        if (like < count)
            add_to_row(&rows[like], &row);
        else
            rows[count++] = row;
    }
    return count;
}

/* The longest first; of two that took as long, the first of a step. */
static int by_time(const void *a, const void *b) {
    const Row *x = (const Row *)a, *y = (const Row *)b;
    return x->seconds != y->seconds ? (x->seconds < y->seconds ? 1 : -1) : x->first - y->first;
}

/* ---- the table ---- */

/* "h_*_attn_seen x12" */
static void add_row_name(MtcText *text, const MtcModel *model, const Row *row) {
    const char *name = model->kernel[row->first].name;
    if (row->count == 1) {
        mtc_text_add(text, "%s", name);
        return;
    }
    for (; *name; name = is_decimal(*name) ? skip_decimals(name) : name + 1)
        mtc_text_add(text, "%c", is_decimal(*name) ? '*' : *name);
    mtc_text_add(text, " x%d", row->count);
}

static const char WHOLE_STEP[] = "step as trained";

static size_t longest_kernel(const MtcModel *model, const Row *rows, int count) {
    size_t width = strlen(WHOLE_STEP);
    for (int i = 0; i < count; i++) {
        MtcText text = {NULL, 0, 0};
        add_row_name(&text, model, &rows[i]);
        width = text.length > width ? text.length : width;
        free(text.at);
    }
    return width;
}

/* Which columns stay on a narrow terminal. */
enum {
    PROFILE_NAME,
    PROFILE_TIME,
    PROFILE_SHARE,
    PROFILE_LINE,
    PROFILE_BOUND,
    PROFILE_BANDWIDTH,
    PROFILE_FLOPS,
    PROFILE_PHASE
};
enum { TIME_WIDTH = 10 };

/* ": at most 4814 GB/s, 66.9 TFLOP/s in fp32, 1071 in bf16" */
static void tell_peaks(MtcText *text, const Profile *profile) {
    const char *unit = " TFLOP/s";
    mtc_text_add(text, ": at most %.0f GB/s", 1e-9 * profile->bandwidth);
    for (int m = 0; m < MTC_MATHS; m++) {
        double peak = 1e-12 * profile->flops[m];
        if (peak > 0) {
            mtc_text_add(text, ", %.*f%s in %s", peak < 100 ? 1 : 0, peak, unit, mtc_math_name((MtcMath)m));
            unit = "";
        }
    }
}

static void print_head(const Profile *profile) {
    const MtcSession *session = profile->session;
    MtcText text = {NULL, 0, 0}, peaks = {NULL, 0, 0};
    MtcLine line = {0};
    if (profile->bandwidth > 0)
        tell_peaks(&peaks, profile);
    mtc_line_add(&line, 0, "%s", session->device.name);
    mtc_line_add(&line, 2, "%s", peaks.at ? peaks.at : "");
    mtc_line_add(&line, 1, "; batch of %lld, %s data", (long long)session->model->batch,
                 profile->real_data ? "real" : "random");
    mtc_line_put(&text, &line, mtc_columns(STDOUT_FILENO));
    printf("%s\n\n", text.at ? text.at : session->device.name);
    free(text.at);
    free(peaks.at);
}

/* The last columns depend on what is known of the device. */
static void print_titles(const Profile *profile, MtcGrid *grid) {
    MtcLine line = {0};
    mtc_grid_name(grid, &line, "kernel");
    mtc_line_add(&line, PROFILE_PHASE, "  phase");
    mtc_line_add(&line, PROFILE_TIME, "%*s", TIME_WIDTH, "us");
    mtc_line_add(&line, PROFILE_SHARE, "  share");
    mtc_line_add(&line, PROFILE_BANDWIDTH, "     GB/s");
    if (profile->bandwidth > 0) {
        mtc_line_add(&line, PROFILE_BANDWIDTH, "  peak");
        mtc_line_add(&line, PROFILE_FLOPS, "   TFLOP/s  peak");
        mtc_line_add(&line, PROFILE_BOUND, "  bound     ");
    } else
        mtc_line_add(&line, PROFILE_FLOPS, "   GFLOP/s");
    mtc_grid_rest(grid, &line, PROFILE_LINE, "  line");
    mtc_grid_titles(grid, &line);
}

/* "  42%", or as many spaces where the part is not known. */
static void add_share(MtcLine *line, int rank, double part) {
    if (part < 0)
        mtc_line_add(line, rank, "      ");
    else
        mtc_line_add(line, rank, " %4.0f%%", 100 * part);
}

/* Small numbers with more decimals. */
static void add_tflops(MtcLine *line, double flops) {
    double tflops = 1e-12 * flops;
    mtc_line_add(line, PROFILE_FLOPS, "  %8.*f", tflops < 1 ? 4 : tflops < 10 ? 2 : 1, tflops);
}

static void add_time(MtcLine *line, double seconds) {
    mtc_line_add(line, PROFILE_TIME, " %*.2f", TIME_WIDTH - 1, 1e6 * seconds);
}

static void add_rates(MtcLine *line, const Profile *profile, const Row *row) {
    Rates rates = rates_of(profile, row);
    add_time(line, row->seconds);
    mtc_line_add(line, PROFILE_SHARE, "  %4.0f%%", 100 * row->seconds / profile->sum);
    mtc_line_add(line, PROFILE_BANDWIDTH, " %8.1f", 1e-9 * rates.bandwidth);
    if (profile->bandwidth <= 0) {
        mtc_line_add(line, PROFILE_FLOPS, "  %8.2f", 1e-9 * rates.flops);
        return;
    }
    add_share(line, PROFILE_BANDWIDTH, rates.of_bandwidth);
    add_tflops(line, rates.flops);
    add_share(line, PROFILE_FLOPS, rates.of_flops);
    mtc_line_add(line, PROFILE_BOUND, "  %-10s", rates.bound);
}

static void print_row(const Profile *profile, const Row *row, const MtcGrid *grid) {
    const MtcModel *model = profile->session->model;
    const MtcKernel *kernel = &model->kernel[row->first];
    MtcText name = {NULL, 0, 0}, statement = {NULL, 0, 0};
    MtcLine line = {0};
    add_row_name(&name, model, row);
    mtc_grid_name(grid, &line, name.at ? name.at : kernel->name);
    mtc_line_add(&line, PROFILE_PHASE, "  %5d", kernel->phase + 1);
    add_rates(&line, profile, row);
    if (grid->last >= PROFILE_LINE)
        mtc_add_statement(&statement, model, kernel->statement);
    mtc_grid_row(grid, &line, statement.at);
    free(name.at);
    free(statement.at);
}

/* Those that are not shown. */
static void print_others(const Profile *profile, const Row *rows, int count, const MtcGrid *grid) {
    Row others = {0, 0, 0, 0, 0, 0};
    for (int i = 0; i < count; i++)
        add_to_row(&others, &rows[i]);
    char name[64], rest[64];
    MtcLine line = {0};
    snprintf(name, sizeof name, "%d others", others.count);
    snprintf(rest, sizeof rest, "  ('--top %d' shows all)", profile->session->model->kernels);
    mtc_grid_name(grid, &line, name);
    mtc_line_add(&line, PROFILE_PHASE, "       ");
    add_rates(&line, profile, &others);
    mtc_grid_row(grid, &line, rest);
}

static void print_sum(const MtcGrid *grid, const char *name, double seconds, const char *rest) {
    MtcLine line = {0};
    mtc_grid_name(grid, &line, name);
    mtc_line_add(&line, PROFILE_PHASE, "       ");
    add_time(&line, seconds);
    mtc_grid_row(grid, &line, rest);
}

/* What a rank waits for the others beside its own work, which their sums take too. */
static double waited(const Profile *profile, int rank) {
    const double seconds = profile->step.median - profile->own[rank];
    return seconds > 0 ? seconds : 0;
}

static void print_ranks(const Profile *profile, const MtcGrid *grid) {
    char name[32], rest[96];
    for (int rank = 0; rank < mtc_rank_count(); rank++) {
        snprintf(name, sizeof name, mtc_rank_count() > 1 ? "work of rank %d" : "work", rank);
        snprintf(rest, sizeof rest, "  its shards and the update; %.2f us for sums and for others",
                 1e6 * waited(profile, rank));
        print_sum(grid, name, profile->own[rank], mtc_rank_count() > 1 ? rest : "  all shards and the update");
    }
}

static void print_sums(const Profile *profile, const MtcGrid *grid) {
    char phases[64];
    snprintf(phases, sizeof phases, "  all phases, %s", profile->session->model->schedule);
    printf("\n");
    print_sum(grid, "sum", profile->sum,
              profile->own ? "  of a shard's kernels, each launched alone" : "  of the kernels, each launched alone");
    if (profile->own)
        print_ranks(profile, grid);
    print_sum(grid, (size_t)grid->name < strlen(WHOLE_STEP) ? "step" : WHOLE_STEP, profile->step.median, phases);
}

/* All rows in the order of a step, if they are few; else the longest. */
static void print_rows(const Profile *profile, Row *rows, int count, int64_t top) {
    enum { FEW = 40 };
    int shown = top > 0 && top < count ? (int)top : top == 0 && count > FEW ? FEW : count;
    if (top > 0 || shown < count)
        qsort(rows, (size_t)count, sizeof *rows, by_time);
    MtcGrid grid;
    mtc_grid_open(&grid, longest_kernel(profile->session->model, rows, shown), TIME_WIDTH);
    print_head(profile);
    print_titles(profile, &grid);
    for (int i = 0; i < shown; i++)
        print_row(profile, &rows[i], &grid);
    if (shown < count)
        print_others(profile, rows + shown, count - shown, &grid);
    print_sums(profile, &grid);
}

static int print_kernel_table(const Profile *profile, int64_t top) {
    size_t bytes = (size_t)profile->session->model->kernels * sizeof(Row);
    Row *rows = (Row *)malloc(bytes);
    if (!rows)
        return mtc_no_memory(&profile->session->fault, bytes, "the table");
    print_rows(profile, rows, gather_rows(profile, rows), top);
    free(rows);
    return 0;
}

/* ---- JSON ---- */

static void add_statement(MtcText *text, const MtcStatement *statement) {
    if (statement->file)
        mtc_add_field(text, "file", statement->file);
    mtc_add_count(text, "line", statement->line);
    mtc_add_field(text, "text", statement->text);
}

static void add_kernel(MtcText *text, const Profile *profile, int k) {
    const MtcModel *model = profile->session->model;
    const MtcKernel *kernel = &model->kernel[k];
    const Row row = row_of(profile, k);
    Rates rates = rates_of(profile, &row);
    mtc_text_add(text, "%s{\"name\":\"%s\"", k ? "," : "", kernel->name);
    mtc_add_count(text, "phase", kernel->phase + 1);
    mtc_add_number(text, "us", 1e6 * profile->seconds[k]);
    mtc_add_number(text, "share", profile->seconds[k] / profile->sum);
    mtc_add_number(text, "flops", kernel->flops);
    mtc_add_number(text, "bytes", kernel->bytes);
    if (rates.of_bandwidth >= 0) {
        mtc_add_field(text, "math", mtc_math_name(kernel->math));
        mtc_add_number(text, "of_bandwidth", rates.of_bandwidth);
    }
    if (rates.of_flops >= 0)
        mtc_add_number(text, "of_flops", rates.of_flops);
    if (*rates.bound)
        mtc_add_field(text, "bound", rates.bound);
    if (kernel->statement >= 0)
        add_statement(text, &model->statement[kernel->statement]);
    mtc_text_add(text, "}");
}

/* ,"bandwidth":4.8e12,"flops":{"fp32":6.7e13,"bf16":1.1e15} */
static void add_peaks(MtcText *text, const Profile *profile) {
    const char *comma = "";
    mtc_add_number(text, "bandwidth", profile->bandwidth);
    mtc_text_add(text, ",\"flops\":{");
    for (int m = 0; m < MTC_MATHS; m++)
        if (profile->flops[m] > 0) {
            mtc_text_add(text, "%s\"%s\":%.9g", comma, mtc_math_name((MtcMath)m), profile->flops[m]);
            comma = ",";
        }
    mtc_text_add(text, "}");
}

/* ,"shards":4,"ranks":[{"us_own":812.5,"us_waited":104.1}] */
static void add_ranks(MtcText *text, const Profile *profile) {
    mtc_add_count(text, "shards", profile->session->model->shards);
    mtc_text_add(text, ",\"ranks\":[");
    for (int rank = 0; rank < mtc_rank_count(); rank++)
        mtc_text_add(text, "%s{\"us_own\":%.9g,\"us_waited\":%.9g}", rank ? "," : "", 1e6 * profile->own[rank],
                     1e6 * waited(profile, rank));
    mtc_text_add(text, "]");
}

static void print_json(const Profile *profile) {
    const MtcSession *session = profile->session;
    MtcText text = {NULL, 0, 0};
    mtc_text_add(&text, "{\"event\":\"profile\"");
    mtc_add_field(&text, "model", session->model->name);
    mtc_add_field(&text, "target", session->model->target);
    mtc_add_field(&text, "schedule", session->model->schedule);
    mtc_add_field(&text, "device", session->device.name);
    mtc_add_field(&text, "data", profile->real_data ? "train" : "random");
    mtc_add_count(&text, "batch", session->model->batch);
    if (profile->bandwidth > 0)
        add_peaks(&text, profile);
    mtc_add_number(&text, "us_per_step", 1e6 * profile->step.median);
    mtc_add_number(&text, "us_sum", 1e6 * profile->sum);
    if (profile->own)
        add_ranks(&text, profile);
    mtc_text_add(&text, ",\"kernels\":[");
    for (int k = 0; k < session->model->kernels; k++)
        add_kernel(&text, profile, k);
    printf("%s]}\n", text.at);
    free(text.at);
}

static int print_profile(Profile *profile, const MtcOptions *options) {
    find_peaks(profile, mtc_chosen_device(options));
    if (mtc_rank())
        return 0;
    if (!options->json)
        return print_kernel_table(profile, options->top);
    print_json(profile);
    return 0;
}

static int profile_session(Profile *profile, const MtcOptions *options) {
    int code = measure_kernels(profile, options);
    return code ? code : print_profile(profile, options);
}

/* All ranks are ready, or none goes on. */
static int open_profile(MtcFault *fault, const MtcModel *model, const MtcOptions *options, Profile *profile) {
    int code = mtc_check_ranks(fault, model, options->program, mtc_rank_count());
    if (!code)
        code = mtc_open_trial(fault, model, options, &profile->session, &profile->real_data);
    if (!code && mtc_needs_device_data(profile->session)) {
        *fault = profile->session->fault;
        code = fault->code;
    }
    code = mtc_ranks_ready(fault, code);
    return code ? code : mtc_agree(fault, profile->session, options);
}

int mtc_command_profile(MtcFault *fault, const MtcModel *model, const MtcOptions *given) {
    MtcOptions options = *given;
    Profile profile;
    bool waited_for = false;
    memset(&profile, 0, sizeof profile);
    int code = mtc_join_others(fault, model, given, true, &waited_for);
    if (code || waited_for)
        return code;
    code = mtc_quiet_other_ranks(fault, &options);
    if (!code)
        code = open_profile(fault, model, &options, &profile);
    if (!code) {
        code = profile_session(&profile, &options);
        if (code)
            *fault = profile.session->fault;
    }
    free(profile.seconds);
    free(profile.own);
    mtc_leave_together(profile.session, code);
    return code;
}
