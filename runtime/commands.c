/* train, eval and what all commands share. */
#include "cli.h"
#include "finite.h"
#include "progress.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- opening ---- */

/* A data set of a command, read by a thread while the device starts. */
typedef struct SplitLoad {
    const MtcModel *model;
    const MtcSplit *split; /* NULL: none */
    const char *folder;
    MtcExamples examples;
    MtcFault fault;
    bool threaded;
    pthread_t thread;
} SplitLoad;

static void *run_load(void *argument) {
    SplitLoad *load = (SplitLoad *)argument;
    mtc_load_split(&load->fault, load->model, load->split, load->folder, &load->examples);
    return NULL;
}

static int unknown_split(MtcFault *fault, const MtcModel *model, const char *name) {
    const char *names[8];
    int count = model->splits < 8 ? model->splits : 8;
    for (int i = 0; i < count; i++)
        names[i] = model->split[i].name;
    const char *nearest = mtc_nearest(name, names, count);
    return mtc_fail(fault, MTC_USAGE, "the model has no data set '%s'%s%s%s", name, nearest ? "; did you mean '" : "",
                    nearest ? nearest : "", nearest ? "'?" : "");
}

static int begin_load(MtcFault *fault, SplitLoad *load, const MtcModel *model, const char *folder, const char *name) {
    memset(load, 0, sizeof *load);
    load->model = model;
    load->folder = folder;
    load->split = name ? mtc_split(model, name) : NULL;
    if (!name)
        return 0;
    if (!load->split)
        return unknown_split(fault, model, name);
    load->threaded = pthread_create(&load->thread, NULL, run_load, load) == 0;
    return 0;
}

static void wait_for(SplitLoad *load) {
    if (load->threaded)
        pthread_join(load->thread, NULL);
    else if (load->split)
        run_load(load);
}

static int give_data(MtcFault *fault, MtcSession *session, int which, const SplitLoad *load) {
    if (load->fault.code)
        *fault = load->fault;
    if (load->fault.code || !load->split)
        return load->fault.code;
    int code = mtc_session_set_data(session, which, &load->examples);
    if (code)
        *fault = session->fault;
    return code;
}

static int configure(MtcSession *session, const MtcOptions *options) {
    int code = 0;
    for (int i = 0; i < session->model->knobs && !code; i++)
        if (options->knob_given[i])
            code = mtc_set_knob(session, session->model->knob[i].name, options->knob[i]);
    return code || !options->load ? code : mtc_load(session, options->load);
}

static int start_device(MtcFault *fault, const MtcModel *model, const MtcOptions *options, MtcSession **session) {
    int code = mtc_session_new(model, options->program, (uint64_t)options->seed, (int)options->device, session);
    if (!code)
        code = configure(*session, options);
    if (!*session)
        return mtc_no_memory(fault, sizeof **session, "a session");
    if (code)
        *fault = (*session)->fault;
    return code;
}

int mtc_open_session(MtcFault *fault, const MtcModel *model, const MtcOptions *options, const char *train,
                     const char *test, MtcSession **session) {
    SplitLoad load[2];
    *session = NULL;
    double began = mtc_seconds();
    int code = begin_load(fault, &load[MTC_TRAIN], model, options->data, train);
    int other = begin_load(fault, &load[MTC_TEST], model, options->data, test);
    code = code ? code : other;
    if (!code)
        code = start_device(fault, model, options, session);
    double device = mtc_seconds();
    for (int which = 0; which < 2; which++)
        wait_for(&load[which]);
    double files = mtc_seconds();
    for (int which = 0; which < 2; which++) {
        if (!code)
            code = give_data(fault, *session, which, &load[which]);
        mtc_examples_free(&load[which].examples);
    }
    if (!code) {
        MtcStart start = {device - began, files - device, mtc_seconds() - files};
        (*session)->start = start;
    }
    return code;
}

/* ---- train ---- */

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number) {
    (void)number;
    interrupted = 1;
}

/* The first Ctrl-C ends training after the chunk, so that weights are still saved; the second ends the program. */
static void catch_interrupt(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_interrupt;
    action.sa_flags = SA_RESTART | (int)SA_RESETHAND;
    sigaction(SIGINT, &action, NULL);
}

static bool was_interrupted(void *user) {
    (void)user;
    return interrupted != 0;
}

static int64_t summary_interval(const MtcOptions *options) {
    const int64_t few = 50;
    return options->every ? options->every : options->epochs <= few ? 1 : options->epochs / 10;
}

static int save(MtcFault *fault, MtcSession *session, const MtcOptions *options) {
    int code = options->save ? mtc_save(session, options->save) : 0;
    if (code)
        *fault = session->fault;
    else if (options->save && !options->quiet)
        printf("weights saved to %s\n", options->save);
    return code;
}

/* Trains, and saves the weights even when the log could not be written. */
static int train_session(MtcFault *fault, MtcSession *session, const MtcOptions *options) {
    MtcProgress progress;
    MtcTraining training;
    int64_t steps = options->epochs * mtc_batches(session, &session->data[MTC_TRAIN]);
    memset(&training, 0, sizeof training);
    training.until = options->steps && options->steps < steps ? options->steps : steps;
    training.every = summary_interval(options);
    training.user = &progress;
    training.steps = mtc_progress_steps;
    training.summary = mtc_progress_summary;
    training.stopped = was_interrupted;
    int code = mtc_progress_open(fault, &progress, session, options, training.until);
    if (code)
        return code;
    catch_interrupt();
    code = mtc_train_run(session, &training);
    if (!code) {
        int unlogged = mtc_progress_close(fault, &progress, session, &training),
            unsaved = save(fault, session, options);
        return unsaved ? unsaved : unlogged;
    }
    *fault = session->fault;
    mtc_progress_abandon(&progress, fault);
    return code;
}

int mtc_command_train(MtcFault *fault, const MtcModel *model, const MtcOptions *options) {
    MtcSession *session = NULL;
    int code = options->save ? mtc_output_check(fault, options->save) : 0;
    if (!code)
        code = mtc_open_session(fault, model, options, "train", mtc_test_split(model), &session);
    if (!code)
        code = train_session(fault, session, options);
    if (!code && interrupted) {
        fprintf(stderr, "interrupted after %lld steps\n", (long long)session->at.step);
        code = 128 + SIGINT;
    }
    mtc_destroy(session);
    return code;
}

/* ---- eval ---- */

static int print_reports(MtcSession *session, const MtcOptions *options) {
    const MtcModel *model = session->model;
    double reports[MTC_MAX_REPORTS];
    int code = mtc_evaluate(session, MTC_TEST, reports);
    if (code)
        return code;
    printf("%s: %lld examples ", options->split, (long long)session->data[MTC_TEST].examples);
    for (int r = 0; r < model->reports; r++)
        printf("  %s %s", model->report[r], mtc_number(reports[r]));
    printf("\n");
    return mtc_check_means(session, options->split, 0, reports);
}

int mtc_command_eval(MtcFault *fault, const MtcModel *model, const MtcOptions *options) {
    MtcSession *session;
    int code = mtc_open_session(fault, model, options, NULL, options->split, &session);
    if (!code) {
        code = print_reports(session, options);
        if (code)
            *fault = session->fault;
    }
    mtc_destroy(session);
    return code;
}
