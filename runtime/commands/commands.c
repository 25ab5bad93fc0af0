/* What all commands share, and eval. */
#include "base/device.h"
#include "base/line.h"
#include "checkpoint/checkpoint.h"
#include "commands/cli.h"
#include "commands/confusion.h"
#include "commands/together.h"
#include "data/source.h"
#include "random.h"
#include "ranks/ranks.h"
#include "session/finite.h"
#include "session/open.h"
#include "session/session_data.h"
#include "session/weights.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- opening ---- */

/* The data of a command, read by a thread while the device starts. */
typedef struct DataLoad {
    const MtcModel *model;
    const char *const *split; /* one name or NULL for each data set of a session */
    MtcReading reading;
    MtcEncoding encoding;
    MtcExamples examples[MTC_SPLITS];
    MtcFault fault;
    bool threaded;
    pthread_t thread;
} DataLoad;

static void *run_load(void *argument) {
    DataLoad *load = (DataLoad *)argument;
    mtc_read_splits(&load->fault, load->model, &load->reading, &load->encoding, load->split, MTC_SPLITS,
                    load->examples);
    return NULL;
}

static int unknown_split(MtcFault *fault, const MtcModel *model, const char *name) {
    const char *names[8];
    int count = model->splits < 8 ? model->splits : 8;
    for (int i = 0; i < count; i++)
        names[i] = model->split[i].name;
    const char *nearest = mtc_nearest(name, names, count);
    MtcText all = {NULL, 0, 0};
    for (int i = 0; i < count; i++)
        mtc_text_add(&all, "%s%s", i ? ", " : "", names[i]);
    mtc_fail(fault, MTC_USAGE, "the model has no data set '%s'%s%s%s", name, nearest ? "; did you mean '" : "",
             nearest ? nearest : "", nearest ? "'?" : "");
    mtc_note(fault, "it has %s", all.at ? all.at : "none");
    free(all.at);
    return fault->code;
}

int mtc_reading_of(MtcFault *fault, const MtcOptions *options, MtcReading *reading) {
    const char *bad_rows = options->bad_rows ? options->bad_rows : "error";
    memset(reading, 0, sizeof *reading);
    reading->folder = options->data;
    reading->seed = (uint64_t)options->seed;
    reading->skip_bad_rows = strcmp(bad_rows, "skip") == 0;
    reading->cache = !options->no_cache;
    reading->resize = options->resize;
    return reading->skip_bad_rows || strcmp(bad_rows, "error") == 0
               ? 0
               : mtc_fail(fault, MTC_USAGE, "--bad-rows is error or skip, not '%s'", bad_rows);
}

void mtc_warn_of_reading(const MtcOptions *options, const MtcReading *reading) {
    if (mtc_rank())
        return; /* rank 0 has read the same */
    if (reading->skipped)
        fprintf(stderr, "%s: warning: %lld bad %s%s left out; the first: %s\n", options->program,
                (long long)reading->skipped, reading->images ? "image" : "row",
                reading->skipped == 1 ? " was" : "s were", mtc_harmless(reading->first_bad));
    if (*reading->rounded)
        fprintf(stderr, "%s: note: %s\n", options->program, mtc_harmless(reading->rounded));
}

static int check_splits(MtcFault *fault, const MtcModel *model, const char *const *split) {
    for (int which = 0; which < MTC_SPLITS; which++)
        if (split[which] && !mtc_split(model, split[which]))
            return unknown_split(fault, model, split[which]);
    return 0;
}

/* By the thread that has joined the ranks, and no other. */
static bool reads_together(const MtcModel *model) {
    bool together = false;
    for (int i = 0; i < model->origins && mtc_rank_count() > 1; i++)
        together |= mtc_source_of(&model->origin[i])->together;
    return together;
}

static void begin_load(DataLoad *load, const MtcModel *model, const char *const *split) {
    bool any = false;
    for (int which = 0; which < MTC_SPLITS; which++)
        any |= split[which] != NULL;
    load->model = model;
    load->split = split;
    load->threaded = any && !reads_together(model) && pthread_create(&load->thread, NULL, run_load, load) == 0;
    if (any && !load->threaded)
        run_load(load);
}

static void wait_for(DataLoad *load) {
    if (load->threaded)
        pthread_join(load->thread, NULL);
    load->threaded = false;
}

/* The first ones of the first epoch alone. */
static int keep_first(MtcFault *fault, MtcExamples *examples, const MtcModel *model, uint64_t seed, int64_t most) {
    const uint32_t count = (uint32_t)examples->count,
                   rows = (uint32_t)(examples->count < most ? examples->count : most);
    const uint64_t key = mtc_shuffle_key(seed, 0);
    int64_t *which = (int64_t *)mtc_memory(NULL, rows * sizeof *which);
    for (uint32_t i = 0; i < rows; i++)
        which[i] = mtc_permute(key, count, i);
    int code = mtc_keep_examples(fault, model, which, rows, examples);
    free(which);
    return code;
}

static int give_data(MtcSession *session, const MtcOptions *options, MtcOpening *opening, DataLoad *load) {
    int code = 0;
    opening->examples = load->examples[MTC_TRAIN].count;
    if (options->overfit_batch) {
        code = keep_first(&session->fault, &load->examples[MTC_TRAIN], session->model, session->seed,
                          mtc_step_examples(session->model));
        if (!code)
            code = mtc_session_set_data(session, MTC_TEST, &load->examples[MTC_TRAIN]);
    }
    if (options->of_floats)
        code =
            keep_first(&session->fault, &load->examples[MTC_TRAIN], session->model, session->seed, options->calibrate);
    for (int which = 0; which < MTC_SPLITS && !code; which++)
        if (load->examples[which].count)
            code = mtc_session_set_data(session, which, &load->examples[which]);
    if (load->examples[MTC_TEST].path) {
        opening->paths = (int)load->examples[MTC_TEST].count;
        opening->path = load->examples[MTC_TEST].path;
        load->examples[MTC_TEST].path = NULL;
    }
    return code;
}

/* Parameters given now are stronger than those of a checkpoint, which is read behind this. */
static int set_params(MtcSession *session, const MtcOptions *options) {
    const MtcModel *model = session->model;
    int code = 0;
    for (int i = 0; i < model->knobs && !code; i++)
        if (options->knob_given[i])
            code = mtc_set_knob(session, model->knob[i].name, options->knob[i]);
    return code;
}

static void note_params(const MtcSession *session, const MtcOptions *options, const MtcCheckpoint *checkpoint,
                        MtcText *notes) {
    const MtcModel *model = session->model;
    for (int i = 0; i < model->knobs && options->resume; i++) {
        const double before = mtc_param_in_file(checkpoint, model->knob[i].name, session->knob[i]);
        if (options->knob_given[i] && mtc_as_computed(model, before) != session->knob[i])
            mtc_text_add(notes, "  %s: %s in the checkpoint, now %s\n", model->knob[i].name, mtc_number(before),
                         mtc_number(session->knob[i]));
    }
}

/* Where the weights that are asked were trained with another value than the program has. */
static void tell_params(const MtcSession *session, const MtcOptions *options) {
    const MtcModel *model = session->model;
    for (int i = 0; i < model->knobs && options->load && !mtc_rank(); i++) {
        const MtcKnob *knob = &model->knob[i];
        if (!options->knob_given[i] && session->knob[i] != mtc_as_computed(model, knob->value))
            fprintf(stderr, "%s: note: %s is %s, as in the training that wrote %s, and not %s: --%s chooses\n",
                    options->program, knob->name, mtc_number(session->knob[i]), mtc_harmless(options->load),
                    mtc_number(knob->value), knob->name);
    }
}

/* The seed of a resumed training stays, unless another is given. */
static void set_seed(MtcSession *session, const MtcOptions *options, MtcText *notes) {
    uint64_t before = session->seed, given = (uint64_t)options->seed;
    if (!options->resume || !options->seed_given || before == given)
        return;
    session->seed = given;
    mtc_text_add(notes, "  seed: %llu in the checkpoint, now %llu\n", (unsigned long long)before,
                 (unsigned long long)given);
}

static int choose_place(MtcSession *session, const MtcOptions *options) {
    const char *place = options->data_on;
    if (!place)
        return 0;
    session->data_on = strcmp(place, "host") == 0 ? MTC_DATA_ON_HOST : MTC_DATA_ON_DEVICE;
    return session->data_on == MTC_DATA_ON_HOST || strcmp(place, "device") == 0
               ? 0
               : mtc_fail(&session->fault, MTC_USAGE, "--data-on is host or device, not '%s'", place);
}

int mtc_chosen_device(const MtcOptions *options) {
    const int here = mtc_rank_here(), devices = here ? mtc_device_count() : 1;
    return options->device >= 0 ? (int)options->device : devices ? here % devices : 0;
}

static int start_device(MtcFault *fault, const MtcModel *model, const MtcOptions *options,
                        const MtcCheckpoint *checkpoint, MtcText *notes, MtcSession **session) {
    MtcTake take = options->resume ? MTC_TAKE_ALL : options->init_from ? MTC_TAKE_INITIAL : MTC_TAKE_LOAD;
    const bool draws = !checkpoint->path || !mtc_checkpoint_gives_all(checkpoint, model, take);
    const double before = mtc_seconds() - options->started;
    int code =
        mtc_session_new(model, options->program, (uint64_t)options->seed, mtc_chosen_device(options), draws, session);
    if (!code)
        (*session)->start.seconds[MTC_START_CHECKPOINT] = before;
    if (!code && !options->quiet)
        mtc_meter_open(&(*session)->meter);
    if (!code)
        code = choose_place(*session, options);
    if (!code)
        code = set_params(*session, options);
    if (!code && checkpoint->path)
        code = mtc_checkpoint_apply(*session, checkpoint, take, options->partial, notes);
    if (!code)
        mtc_start_end_part(&(*session)->start, MTC_START_CHECKPOINT);
    if (!code)
        note_params(*session, options, checkpoint, notes);
    if (!*session)
        return mtc_no_memory(fault, sizeof **session, "a session");
    set_seed(*session, options, notes);
    if (code)
        *fault = (*session)->fault;
    return code;
}

static int read_checkpoint(MtcFault *fault, const MtcModel *model, const MtcOptions *options, const char *path,
                           MtcCheckpoint *checkpoint, DataLoad *load) {
    int code = mtc_checkpoint_open(fault, path, checkpoint);
    if (!code && options->of_floats)
        code = mtc_checkpoint_quantize(fault, checkpoint, model);
    if (!code)
        code = mtc_checkpoint_encoding(fault, checkpoint, model, &load->encoding);
    if (!code && checkpoint->ours && !options->init_from)
        load->reading.seed = checkpoint->split_seed;
    return code;
}

/* Whether it can be had is asked by whoever opens the session. */
static void *wake_device(void *options) {
    mtc_device_choose(mtc_chosen_device((const MtcOptions *)options));
    return NULL;
}

/* The checkpoint first, for it may decide how data are read; the device, which takes as long, wakes meanwhile. */
static int open_checkpoint(MtcFault *fault, const MtcModel *model, const MtcOptions *options, MtcCheckpoint *checkpoint,
                           DataLoad *load) {
    const char *path = options->resume ? options->resume : options->init_from ? options->init_from : options->load;
    pthread_t waking;
    int code = mtc_reading_of(fault, options, &load->reading);
    if (code || !path)
        return code;
    const bool beside = pthread_create(&waking, NULL, wake_device, (void *)options) == 0;
    code = read_checkpoint(fault, model, options, path, checkpoint, load);
    if (beside)
        pthread_join(waking, NULL);
    return code;
}

/* The encoding moves to the session. */
static int finish_load(MtcFault *fault, MtcSession *session, const MtcOptions *options, MtcOpening *opening,
                       DataLoad *load) {
    if (load->fault.code) {
        *fault = load->fault;
        return fault->code;
    }
    mtc_warn_of_reading(options, &load->reading);
    mtc_encoding_free(&session->encoding);
    session->encoding = load->encoding;
    memset(&load->encoding, 0, sizeof load->encoding);
    session->split_seed = load->reading.seed;
    int code = give_data(session, options, opening, load);
    if (code)
        *fault = session->fault;
    return code;
}

int mtc_open_splits(MtcFault *fault, const MtcModel *model, const MtcOptions *options, MtcOpening *opening,
                    MtcSession **session) {
    MtcCheckpoint checkpoint;
    DataLoad *load = (DataLoad *)mtc_zeroed(sizeof *load);
    memset(&checkpoint, 0, sizeof checkpoint);
    *session = NULL;
    int code = check_splits(fault, model, opening->split);
    if (!code)
        code = open_checkpoint(fault, model, options, &checkpoint, load);
    if (!code) {
        begin_load(load, model, opening->split);
        code = start_device(fault, model, options, &checkpoint, &opening->notes, session);
    }
    if (!code && options->data)
        (*session)->folder = strdup(options->data);
    mtc_checkpoint_close(&checkpoint);
    wait_for(load);
    if (!code)
        mtc_start_end_part(&(*session)->start, MTC_START_FILES);
    if (!code)
        code = finish_load(fault, *session, options, opening, load);
    for (int which = 0; which < MTC_SPLITS; which++)
        mtc_examples_free(&load->examples[which]);
    mtc_encoding_free(&load->encoding);
    free(load);
    if (!code) {
        mtc_start_end_part(&(*session)->start, MTC_START_UPLOAD);
        tell_params(*session, options);
    }
    return code;
}

void mtc_opening_free(MtcOpening *opening) {
    free(opening->notes.at);
    mtc_free_strings(opening->path, opening->paths);
}

int mtc_open_session(MtcFault *fault, const MtcModel *model, const MtcOptions *options, const char *train,
                     const char *test, MtcSession **session) {
    MtcOpening opening;
    memset(&opening, 0, sizeof opening);
    opening.split[MTC_TRAIN] = train;
    opening.split[MTC_TEST] = test;
    int code = mtc_open_splits(fault, model, options, &opening, session);
    mtc_opening_free(&opening);
    return code;
}

/* ---- eval ---- */

/* On a narrow terminal, the loss stays longest. */
static void print_means(const MtcModel *model, const char *split, int64_t examples, const double *means) {
    MtcText text = {NULL, 0, 0};
    MtcLine line = {0};
    mtc_line_add(&line, 1, "%s:", split);
    mtc_line_add(&line, 2 + MTC_MAX_REPORTS, " %lld examples ", (long long)examples);
    for (int r = 0; r < mtc_evaluated(model); r++)
        mtc_line_add(&line, r ? 1 + r : 0, "  %s %s", model->report[r], mtc_number(means[r]));
    mtc_line_put(&text, &line, mtc_columns(STDOUT_FILENO));
    printf("%s\n", text.at ? text.at : "");
    free(text.at);
}

static int print_reports(MtcSession *session, const MtcOptions *options) {
    const MtcModel *model = session->model;
    double reports[MTC_MAX_REPORTS];
    int code = mtc_evaluate(session, MTC_TEST, reports);
    mtc_meter_clear(&session->meter);
    if (code)
        return code;
    print_means(model, options->split, session->data[MTC_TEST].examples, reports);
    mtc_print_confusion(session);
    return mtc_check_means(session, MTC_TEST, options->split, 0, reports);
}

int mtc_command_eval(MtcFault *fault, const MtcModel *model, const MtcOptions *options) {
    MtcOptions own = *options;
    MtcSession *session = NULL;
    bool waited;
    const int joined = mtc_join_others(fault, model, options, false, &waited);
    if (joined || waited)
        return joined;
    int code = mtc_quiet_other_ranks(fault, &own);
    if (!code)
        code = mtc_open_session(fault, model, &own, NULL, own.split, &session);
    code = mtc_ranks_ready(fault, code);
    if (!code)
        code = mtc_agree_on_evaluation(fault, session, &own);
    if (!code) {
        code = print_reports(session, &own);
        if (code)
            *fault = session->fault;
    }
    mtc_destroy(session);
    return code;
}
