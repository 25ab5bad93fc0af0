/* profile: how long each kernel of a training step takes when it is launched alone, again and again, and which limit of
 * the device it comes nearest to. */
#include "bench.h"
#include "finite.h"
#include "train.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    MtcPeaks peaks;
    bool real_data;
    double *seconds; /* of each kernel */
    double sum;
} Profile;

/* ---- measuring ---- */

/* The clock at the first step of an epoch, whose order is on the device: a whole batch, wherever training stands. */
static const char *set_clock(MtcSession *session) {
    const int64_t clock[3] = {session->at.step, 0, 0};
    return mtc_upload(session->clock, clock, sizeof clock);
}

/* Every value as a step leaves it: a kernel that works in place drifts away when it runs again and again. A step that is
 * long is made before some kernels only. */
static const char *refresh(const Profile *profile, const MtcRun *run, int kernel, bool first) {
    const MtcModel *model = profile->session->model;
    const bool due = profile->step.median < LONG_STEP || (first && kernel % KERNELS_A_REFRESH == 0);
    return due ? model->train_until(run, model->train_phases - 1) : NULL;
}

/* Seconds of device time for each of `times` launches. */
static const char *time_launches(MtcSession *session, const MtcRun *run, int kernel, int64_t times,
                                 MtcEvent *const *event, double *seconds) {
    const char *error = mtc_event_record(event[0]);
    error = error ? error : session->model->run_kernel(run, kernel, times);
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
    error = error ? error : set_clock(session);
    for (int k = 0; k < session->model->kernels && !error; k++) {
        error = time_kernel(profile, &run, k, event, seconds);
        profile->seconds[k] = mtc_median(seconds, profile->step.runs);
        profile->sum += profile->seconds[k];
    }
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
    free(seconds);
    return code;
}

/* ---- what bounds a kernel ---- */

typedef struct Rates {
    double bandwidth, flops;       /* a second */
    double of_bandwidth, of_flops; /* of the peak; 0: it is not known */
    const char *bound;             /* NULL: not known */
} Rates;

static Rates rates_of(const Profile *profile, int k) {
    const MtcKernel *kernel = &profile->session->model->kernel[k];
    const MtcPeaks *peaks = &profile->peaks;
    Rates rates = {kernel->bytes / profile->seconds[k], kernel->flops / profile->seconds[k], 0, 0, NULL};
    if (peaks->bandwidth <= 0 || peaks->flops <= 0)
        return rates;
    rates.of_bandwidth = rates.bandwidth / peaks->bandwidth;
    rates.of_flops = rates.flops / peaks->flops;
    bool memory = rates.of_bandwidth >= rates.of_flops;
    double most = memory ? rates.of_bandwidth : rates.of_flops;
    rates.bound = most < BUSY ? "latency" : memory ? "memory" : "arithmetic";
    return rates;
}

/* ---- the table ---- */

static int kernel_width(const MtcModel *model) {
    size_t width = strlen("step as trained");
    for (int k = 0; k < model->kernels; k++)
        width = strlen(model->kernel[k].name) > width ? strlen(model->kernel[k].name) : width;
    return (int)width;
}

static void print_head(const Profile *profile, int width) {
    const MtcSession *session = profile->session;
    const MtcPeaks *peaks = &profile->peaks;
    printf("%s", session->device.name);
    if (peaks->bandwidth > 0)
        printf(": at most %.0f GB/s, %.1f TFLOP/s in fp32", 1e-9 * peaks->bandwidth, 1e-12 * peaks->flops);
    printf("; batch of %lld, %s data\n\n", (long long)session->model->batch, profile->real_data ? "real" : "random");
    printf("%-*s  phase        us  share     GB/s", width, "kernel");
    printf(peaks->bandwidth > 0 ? "  peak   TFLOP/s  peak  bound     " : "   GFLOP/s");
    printf("  line\n");
}

static void print_kernel(const Profile *profile, int k, int width) {
    const MtcModel *model = profile->session->model;
    const MtcKernel *kernel = &model->kernel[k];
    Rates rates = rates_of(profile, k);
    printf("%-*s  %5d %9.2f  %4.0f%% %8.1f", width, kernel->name, kernel->phase + 1, 1e6 * profile->seconds[k],
           100 * profile->seconds[k] / profile->sum, 1e-9 * rates.bandwidth);
    if (rates.bound)
        printf("  %3.0f%%  %8.4f  %3.0f%%  %-10s", 100 * rates.of_bandwidth, 1e-12 * rates.flops, 100 * rates.of_flops,
               rates.bound);
    else
        printf("  %8.2f", 1e-9 * rates.flops);
    if (kernel->line)
        printf("  %d: %s", kernel->line, mtc_line_text(model, kernel->line));
    printf("\n");
}

static void print_table(const Profile *profile) {
    const MtcModel *model = profile->session->model;
    int width = kernel_width(model);
    print_head(profile, width);
    for (int k = 0; k < model->kernels; k++)
        print_kernel(profile, k, width);
    printf("\n%-*s        %9.2f  of the kernels, each launched alone\n", width, "sum", 1e6 * profile->sum);
    printf("%-*s        %9.2f  all phases, %s\n", width, "step as trained", 1e6 * profile->step.median,
           model->schedule);
}

/* ---- JSON ---- */

static void add_kernel(MtcText *text, const Profile *profile, int k) {
    const MtcModel *model = profile->session->model;
    const MtcKernel *kernel = &model->kernel[k];
    Rates rates = rates_of(profile, k);
    mtc_text_add(text, "%s{\"name\":\"%s\"", k ? "," : "", kernel->name);
    mtc_add_count(text, "phase", kernel->phase + 1);
    mtc_add_number(text, "us", 1e6 * profile->seconds[k]);
    mtc_add_number(text, "share", profile->seconds[k] / profile->sum);
    mtc_add_number(text, "flops", kernel->flops);
    mtc_add_number(text, "bytes", kernel->bytes);
    if (rates.bound) {
        mtc_add_number(text, "of_bandwidth", rates.of_bandwidth);
        mtc_add_number(text, "of_flops", rates.of_flops);
        mtc_add_field(text, "bound", rates.bound);
    }
    mtc_add_count(text, "line", kernel->line);
    mtc_add_field(text, "text", mtc_line_text(model, kernel->line));
    mtc_text_add(text, "}");
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
    if (profile->peaks.bandwidth > 0) {
        mtc_add_number(&text, "bandwidth", profile->peaks.bandwidth);
        mtc_add_number(&text, "flops", profile->peaks.flops);
    }
    mtc_add_number(&text, "us_per_step", 1e6 * profile->step.median);
    mtc_add_number(&text, "us_sum", 1e6 * profile->sum);
    mtc_text_add(&text, ",\"kernels\":[");
    for (int k = 0; k < session->model->kernels; k++)
        add_kernel(&text, profile, k);
    printf("%s]}\n", text.at);
    free(text.at);
}

int mtc_command_profile(MtcFault *fault, const MtcModel *model, const MtcOptions *options) {
    Profile profile;
    memset(&profile, 0, sizeof profile);
    int code = mtc_open_trial(fault, model, options, &profile.session, &profile.real_data);
    if (!code && mtc_needs_device_data(profile.session)) {
        *fault = profile.session->fault;
        code = fault->code;
    }
    if (!code) {
        code = measure_kernels(&profile, options);
        if (code)
            *fault = profile.session->fault;
    }
    if (!code) {
        profile.peaks = mtc_device_peaks((int)options->device);
        if (options->json)
            print_json(&profile);
        else
            print_table(&profile);
    }
    free(profile.seconds);
    mtc_destroy(profile.session);
    return code;
}
