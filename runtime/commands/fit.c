/* train: the command. It steers the training of train.c: what is shown, saved, watched, and when it ends. */
#include "checkpoint/checkpoint.h"
#include "checkpoint/keeper.h"
#include "commands/dry_run.h"
#include "commands/generate.h"
#include "commands/progress.h"
#include "commands/together.h"
#include "ranks/ranks.h"
#include "session/advice.h"
#include "session/best.h"
#include "session/evaluate.h"
#include "session/finite.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct Fit {
    MtcSession *session;
    MtcOptions options; /* with what a checkpoint and the model decide filled in */
    MtcTraining training;
    MtcProgress progress;
    MtcAdvice advice;
    MtcKeeper *keeper; /* NULL: nothing is saved */
    int monitor;       /* the report that decides which weights are best */
    int64_t patience;  /* 0: without end */
    bool best_due, save_due, sample_due, enough;
    bool best_saved, best_taken; /* this run wrote the file of the best; the session has become that */
} Fit;

/* ---- signals ---- */

static volatile sig_atomic_t stop_signal;
static volatile double stopped_at; /* seconds */

/* Said twice by who means it once: of a terminal that is closed, shell and kernel both tell; timeout signals its command, and at once the
 * group that this is of. */
static bool is_echo(int number) {
    return number == SIGHUP || (number == SIGTERM && stop_signal == SIGTERM && mtc_seconds() - stopped_at < 1);
}

/* The first one ends training after the steps in flight, so that they are still saved; the second ends the program. Of several ranks
 * the first alone decides: one that ended by itself would end all, unsaved. */
static void on_stop(int number) {
    if (stop_signal && (mtc_rank() || is_echo(number)))
        return;
    if (stop_signal) {
        signal(number, SIG_DFL);
        raise(number);
    }
    stopped_at = mtc_seconds();
    stop_signal = number;
    mtc_hurry_outputs();
}

/* A signal that is ignored, as nohup has it, stays so. A reader of stdout that goes away is a fault of writing to it. */
static void catch_signals(void) {
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action, before;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_stop;
    action.sa_flags = SA_RESTART | SA_NODEFER;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(numbers[i], &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

/* Nobody can be told of a line on stdout that cannot be written, so training ends with it, as by a signal. */
static bool fit_interrupted(void *user) {
    return stop_signal || ((Fit *)user)->progress.unheard;
}

static int report_unheard(MtcFault *fault, const Fit *fit) {
    mtc_fail(fault, MTC_IO, "cannot write the output: %s", strerror(fit->progress.unheard));
    mtc_note(fault, "training was stopped after %lld steps; %s%s", (long long)fit->session->at.step,
             fit->keeper ? "they are saved in " : "nothing was saved, for there is no --save",
             fit->keeper ? fit->options.save : "");
    return fault->code;
}

static int report_stop(const Fit *fit) {
    if (!mtc_rank())
        fprintf(stderr, "%s after %lld steps%s\n", stop_signal == SIGINT ? "interrupted" : "terminated",
                (long long)fit->session->at.step, fit->keeper ? "" : "; nothing was saved, for there is no --save");
    return 128 + (stop_signal == SIGHUP ? SIGTERM : stop_signal);
}

/* ---- which weights are best ---- */

static void print_fall(const Fit *fit) {
    const MtcRecord *record = &fit->session->record;
    printf("the learning rate falls: %lld evaluation%s without a better %s %s than %s, after step %lld\n",
           (long long)record->since_best, record->since_best == 1 ? "" : "s", fit->progress.test, record->monitor,
           mtc_number(record->best), (long long)record->best_step);
}

/* Without a better value of the monitored report for long enough, training ends. */
static void judge(Fit *fit, const MtcPosition *at, double value) {
    const int64_t falls = mtc_falls(fit->session);
    fit->best_due |= mtc_judge(fit->session, fit->monitor, at, value);
    fit->enough = fit->patience && fit->session->record.since_best >= fit->patience;
    if (mtc_falls(fit->session) > falls && !fit->options.quiet)
        print_fall(fit);
}

static void print_enough(const Fit *fit) {
    const MtcRecord *record = &fit->session->record;
    if (fit->enough && !fit->options.quiet)
        printf("stopped: %lld evaluation%s without a better %s %s than %s, after step %lld\n",
               (long long)record->since_best, record->since_best == 1 ? "" : "s", fit->progress.test, record->monitor,
               mtc_number(record->best), (long long)record->best_step);
}

/* ---- the training's events ---- */

static void fit_steps(void *user, int64_t first, int64_t count, const double *reports) {
    Fit *fit = (Fit *)user;
    mtc_progress_steps(&fit->progress, first, count, reports);
    mtc_advice_steps(&fit->advice, first, count, reports); /* data that it cannot read, the next step cannot either */
    if (fit->keeper)
        mtc_keeper_warn(fit->keeper);
}

/* A summary for no other reason than that training stops there leaves no trace: a training that goes on from here is as
 * one that never stopped. */
static void fit_summary(void *user, const MtcPosition *at, const double *means) {
    Fit *fit = (Fit *)user;
    bool planned = at->epoch_step == 0 && at->epoch % fit->training.every == 0;
    mtc_progress_summary(&fit->progress, at, means);
    fit->sample_due = fit->options.sample && !fit->options.quiet;
    if (means && (planned || at->step == fit->session->last_step))
        judge(fit, at, means[fit->monitor]);
}

static bool fit_stopped(void *user) {
    return fit_interrupted(user) || ((Fit *)user)->enough;
}

static bool fit_pause(void *user) {
    Fit *fit = (Fit *)user;
    fit->save_due |= fit->keeper && mtc_keeper_due(fit->keeper);
    return fit->save_due;
}

/* What is shown becomes part of the session's record, so that a checkpoint has it. */
static void record_sums(Fit *fit) {
    MtcRecord *record = &fit->session->record;
    record->epoch = fit->progress.epoch;
    record->interval = fit->progress.interval;
}

static bool fit_saves(void *user, bool ends) {
    const Fit *fit = (const Fit *)user;
    const int64_t cut = fit->training.cut;
    return fit->keeper && (ends || fit->best_due || fit->save_due || (cut && fit->session->at.step % cut == 0));
}

static int save_now(Fit *fit, bool ends) {
    record_sums(fit);
    fit->save_due = false;
    return mtc_keeper_save(fit->keeper, fit->session, ends);
}

/* What the model says now, with the same random numbers each time. */
static int print_sample(Fit *fit) {
    const MtcGeneration how = mtc_drawn_text(fit->options.sample_prompt, fit->options.sample, fit->session->seed);
    fit->sample_due = false;
    return mtc_print_generated(fit->session, NULL, &how, NULL);
}

static int fit_paused(void *user, const MtcPosition *at) {
    Fit *fit = (Fit *)user;
    int code = fit->sample_due ? print_sample(fit) : 0;
    if (code || !fit->keeper)
        return code;
    record_sums(fit);
    if (fit->best_due)
        code = mtc_keeper_save_best(fit->keeper, fit->session, at->step >= fit->training.until || fit_stopped(fit));
    fit->best_saved |= fit->best_due;
    fit->best_due = false;
    fit->save_due |= fit->training.cut && at->step % fit->training.cut == 0;
    return code || !fit->save_due ? code : save_now(fit, false);
}

/* ---- the plan ---- */

/* Patience counts evaluations: then there is one after each epoch. */
static int64_t summary_interval(const MtcOptions *options, const MtcModel *model) {
    const int64_t few = 50;
    bool each = options->epochs <= few || options->patience || model->patience || model->plateaus;
    return options->every ? options->every : each ? 1 : options->epochs / 10;
}

/* How many epochs there are in all: as asked for now, when a resumed training began, or in the model. One batch again and
 * again takes as many steps as the whole training would have. */
static void resolve_epochs(Fit *fit, int64_t examples, MtcText *notes) {
    MtcSession *session = fit->session;
    MtcRecord *record = &session->record;
    MtcOptions *options = &fit->options;
    int64_t batch = mtc_step_examples(session->model), before = record->epochs;
    if (options->overfit_batch && !options->epochs_given)
        options->epochs *= (examples + batch - 1) / batch;
    if (before && !options->epochs_given)
        options->epochs = before;
    if (before && before != options->epochs)
        mtc_text_add(notes, "  epochs: %lld in the checkpoint, now %lld\n", (long long)before,
                     (long long)options->epochs);
    record->epochs = options->epochs;
}

static void fit_printed(void *user, int64_t step, const MtcPrint *print, const MtcPrinted *printed) {
    mtc_progress_print(&((Fit *)user)->progress, step, print, printed);
}

static void plan_training(Fit *fit) {
    enum { PRINT_EVERY = 100 };
    MtcSession *session = fit->session;
    const MtcOptions *options = &fit->options;
    MtcTraining *training = &fit->training;
    session->last_step = training->until = mtc_last_step(session, options->epochs);
    if (options->limit_steps && options->limit_steps < training->until)
        training->until = options->limit_steps;
    training->every = summary_interval(options, session->model);
    training->print = options->quiet ? 0 : options->print_every ? options->print_every : PRINT_EVERY;
    training->printed = fit_printed;
    training->user = fit;
    training->steps = fit_steps;
    training->summary = fit_summary;
    training->stopped = fit_stopped;
    training->pause = fit_pause;
    training->paused = fit_paused;
    training->saves = fit_saves;
}

static int nothing_to_watch(MtcFault *fault, const MtcOptions *options) {
    return mtc_fail(fault, MTC_USAGE, "%s needs data to evaluate: the model has neither validation nor test",
                    options->patience  ? "--patience"
                    : options->monitor ? "--monitor"
                                       : "plateau_lr");
}

/* Where nothing is evaluated, or nobody asks, summaries need no pause. */
static int plan_watching(MtcFault *fault, Fit *fit) {
    const MtcModel *model = fit->session->model;
    bool evaluated = fit->session->data[mtc_watched(fit->session)].examples > 0;
    fit->patience = fit->options.patience ? fit->options.patience : model->patience;
    if ((fit->options.patience || fit->options.monitor || model->plateaus) && !evaluated)
        return nothing_to_watch(fault, &fit->options);
    fit->training.pauses = (evaluated && (fit->keeper || fit->patience || model->plateaus)) || fit->options.sample;
    fit->enough =
        fit->patience && fit->session->record.since_best >= fit->patience && mtc_knows_best(fit->session, fit->monitor);
    return 0;
}

/* Before training, rather than after its first epoch. */
static int check_sample(MtcFault *fault, Fit *fit) {
    if (!fit->options.sample && !fit->options.sample_prompt)
        return 0;
    int code = mtc_generator_check(fit->session, fit->options.sample_prompt);
    if (code)
        *fault = fit->session->fault;
    else if (!fit->options.sample)
        code = mtc_fail(fault, MTC_USAGE, "--sample-prompt needs --sample N");
    return code;
}

static MtcKeeping keeping_of(const MtcOptions *options) {
    return (MtcKeeping){options->program, options->save, options->save_every, options->resume, options->keep};
}

static int plan_saving(MtcFault *fault, Fit *fit) {
    MtcInterval interval = {0, 0};
    if (!fit->options.save)
        return 0;
    const MtcKeeping keeping = keeping_of(&fit->options);
    int code = mtc_keeper_open(fit->session, &keeping, &fit->keeper);
    if (code)
        *fault = fit->session->fault;
    if (!code && fit->options.save_every)
        code = mtc_parse_interval(fault, fit->options.save_every, &interval);
    fit->training.cut = mtc_written_in_place(fit->options.save) ? 0 : interval.steps;
    return code;
}

/* ---- the end ---- */

/* Is the best weights' file of this run, or of the one that it goes on from, with its FILE? A pipe has none beside it. */
static bool owns_best(const Fit *fit) {
    const MtcOptions *options = &fit->options;
    return mtc_knows_best(fit->session, fit->monitor) && !mtc_written_in_place(options->save) &&
           (fit->best_saved || (options->resume && strcmp(options->resume, options->save) == 0));
}

static int take_best_file(Fit *fit, const char *path) {
    MtcSession *session = fit->session;
    MtcCheckpoint checkpoint;
    MtcPosition at;
    int code = mtc_checkpoint_open(&session->fault, path, &checkpoint);
    if (!code)
        code = mtc_checkpoint_position(&session->fault, &checkpoint, &at);
    if (!code && at.step != session->record.best_step)
        code = mtc_fail(&session->fault, MTC_BAD_DATA, "%s is of step %lld, not %lld", path, (long long)at.step,
                        (long long)session->record.best_step);
    if (!code)
        code = mtc_checkpoint_apply(session, &checkpoint, MTC_TAKE_ALL, false, NULL);
    mtc_checkpoint_close(&checkpoint);
    return code;
}

/* A training that found no better weights for long enough ends with the best: what FILE has and the test data see. It goes
 * on from there as it did before. */
static void take_best(Fit *fit) {
    if (!fit->enough || fit_interrupted(fit) || !fit->keeper || !owns_best(fit))
        return;
    char *path = mtc_best_path(fit->options.save);
    mtc_keeper_settle(fit->keeper);
    fit->best_taken = take_best_file(fit, path) == 0;
    if (fit->best_taken) {
        fit->progress.epoch = fit->session->record.epoch;
        fit->progress.interval = fit->session->record.interval;
    } else
        fprintf(stderr, "%s: warning: %s has the last weights, for the best cannot be read: %s\n", fit->options.program,
                fit->options.save, fit->session->fault.text);
    free(path);
}

/* Where validation data steer the training, the test data are looked at once. */
static int evaluate_test(Fit *fit) {
    MtcSession *session = fit->session;
    double means[MTC_MAX_REPORTS];
    bool evaluates = !fit_interrupted(fit), whole = false;
    if (mtc_watched(session) == MTC_TEST || session->data[MTC_TEST].examples == 0)
        return 0;
    int code = mtc_agree_on_test(session, &evaluates, fit->best_taken);
    if (!code && evaluates)
        code = mtc_evaluate_whole(session, MTC_TEST, means, &whole);
    if (code || !whole)
        return code;
    mtc_progress_test(&fit->progress, &session->at, fit->best_taken ? "best" : "last", means);
    return mtc_check_means(session, MTC_TEST, "test", session->at.step, means);
}

static void print_best(const Fit *fit) {
    const MtcRecord *record = &fit->session->record;
    char *best = mtc_best_path(fit->options.save);
    struct stat status;
    if (owns_best(fit) && stat(best, &status) == 0)
        printf("best %s %s %s after step %lld: %s\n", fit->progress.test, record->monitor, mtc_number(record->best),
               (long long)record->best_step, best);
    free(best);
}

/* Saves where training stands, and waits until every checkpoint is written. */
static int finish_saving(MtcFault *fault, Fit *fit) {
    MtcFault unsaved;
    int64_t newest;
    int code = save_now(fit, true), other = mtc_keeper_close(&unsaved, fit->keeper, &newest);
    if (code || other)
        *fault = code ? fit->session->fault : unsaved;
    else if (!fit->options.quiet) {
        printf("%sweights saved to %s\n", fit->best_taken ? "best " : "", mtc_harmless(fit->options.save));
        print_best(fit);
    }
    return code ? code : other;
}

/* After a fault, which says what there is to go on with. */
static void abandon_saving(MtcFault *fault, Fit *fit) {
    MtcFault unsaved;
    int64_t newest = -1;
    if (fit->keeper && mtc_keeper_close(&unsaved, fit->keeper, &newest))
        mtc_note(fault, "a checkpoint was not written: %s", unsaved.text);
    if (newest >= 0)
        mtc_note(fault, "%s is the checkpoint of step %lld", fit->options.save, (long long)newest);
}

static const double LONG_SECONDS = 10; /* of a training whose weights somebody may miss */

/* Trains, and saves the weights even when the log could not be written. */
static int run_fit(MtcFault *fault, Fit *fit) {
    MtcSession *session = fit->session;
    session->stopped = mtc_rank() ? NULL : fit_interrupted; /* all are told, and not at once: rank 0 decides */
    session->stopped_by = fit;
    int code = mtc_train_run(session, &fit->training);
    if (code) {
        *fault = session->fault;
        mtc_give_up_together();
        mtc_progress_abandon(&fit->progress, fault);
        abandon_saving(fault, fit);
        return code;
    }
    mtc_advice_end(&fit->advice);
    print_enough(fit);
    take_best(fit);
    int untested = evaluate_test(fit);
    MtcFault test = session->fault, unlogged;
    int log = mtc_progress_close(&unlogged, &fit->progress, session, &fit->training);
    int unsaved = fit->keeper ? finish_saving(fault, fit) : 0;
    if (!fit->keeper && !fit->options.quiet && !stop_signal && mtc_seconds() - fit->progress.began > LONG_SECONDS)
        printf("weights were not saved: --save FILE\n");
    if (!unsaved && (untested || log))
        *fault = untested ? test : unlogged;
    return unsaved ? unsaved : untested ? untested : log;
}

static void print_nothing_left(const Fit *fit) {
    const int64_t asked = fit->options.epochs, done = fit->session->at.step / mtc_steps_per_epoch(fit->session);
    const int64_t epochs = done > asked ? done : asked;
    if (fit->session->at.step < fit->session->last_step)
        printf("nothing is left to train: %lld steps are done, and --limit-steps is %lld\n",
               (long long)fit->session->at.step, (long long)fit->options.limit_steps);
    else
        printf("nothing is left to train: %lld epoch%s %s done; --epochs %lld or more goes on\n", (long long)epochs,
               epochs == 1 ? "" : "s", epochs == 1 ? "is" : "are", (long long)epochs + 1);
}

/* What is lost is told with --quiet too. */
static void print_notes(const MtcOptions *options, const MtcText *notes) {
    MtcText told = {NULL, 0, 0};
    if (!options->quiet && notes->at)
        mtc_text_add(&told, "%s", notes->at);
    mtc_note_replaced(options, &told);
    if (told.at)
        fprintf(options->quiet ? stderr : stdout, "%s", mtc_harmless_lines(told.at));
    free(told.at);
}

static int begin_fit(MtcFault *fault, Fit *fit, int64_t examples, MtcText *notes) {
    MtcSession *session = fit->session;
    int code = mtc_check_resumed(session, fit->options.partial, notes);
    if (code) {
        *fault = session->fault;
        return code;
    }
    resolve_epochs(fit, examples, notes);
    plan_training(fit);
    print_notes(&fit->options, notes);
    if (!fit->options.quiet && session->at.step >= fit->training.until && !session->record.summary_due)
        print_nothing_left(fit);
    return plan_saving(fault, fit);
}

static int train_fit(MtcFault *fault, Fit *fit, int64_t examples, MtcText *notes) {
    MtcSession *session = fit->session;
    int code = begin_fit(fault, fit, examples, notes);
    if (!code)
        code = plan_watching(fault, fit);
    if (!code)
        code = check_sample(fault, fit);
    if (!code)
        code = mtc_progress_open(fault, &fit->progress, session, &fit->options, fit->training.until);
    if (code) {
        abandon_saving(fault, fit);
        return code;
    }
    fit->progress.epoch = session->record.epoch;
    fit->progress.interval = session->record.interval;
    fit->advice.warn = mtc_progress_warn;
    fit->advice.user = &fit->progress;
    fit->advice.one_batch = fit->options.overfit_batch;
    fit->advice.watching = fit->options.patience > 0;
    mtc_advice_open(&fit->advice, session);
    mtc_meter_part(&session->meter, "training", session->at.step, fit->training.until);
    code = run_fit(fault, fit);
    if (!code && fit->progress.unheard)
        code = report_unheard(fault, fit);
    return code || !stop_signal ? code : report_stop(fit);
}

static int train_session(MtcFault *fault, Fit *fit, int64_t examples, MtcText *notes) {
    MtcOutputLocks locks;
    catch_signals(); /* from here on a signal ends a training in order, and its locks go */
    int code = mtc_lock_outputs(fault, &fit->options, &locks);
    if (!code)
        code = train_fit(fault, fit, examples, notes);
    mtc_unlock_outputs(&locks);
    return code;
}

/* ---- --dry-run ---- */

static void dry_steps(void *user, int64_t first, int64_t count, const double *reports) {
    (void)first;
    (void)count;
    const MtcModel *model = ((Fit *)user)->session->model;
    mtc_print_dry_reports(model, "step", model->reports, reports);
}

static void dry_summary(void *user, const MtcPosition *at, const double *means) {
    const MtcSession *session = ((Fit *)user)->session;
    (void)at;
    if (means)
        mtc_print_dry_reports(session->model, mtc_watched_name(session, &((Fit *)user)->options),
                              mtc_evaluated(session->model), means);
}

/* One step and one evaluation, through everything that a training goes through. */
static int dry_run(MtcFault *fault, Fit *fit, int64_t examples, MtcText *notes) {
    MtcSession *session = fit->session;
    int code = mtc_check_resumed(session, fit->options.partial, notes);
    resolve_epochs(fit, examples, notes);
    plan_training(fit);
    printf("dry run\n%s", notes->at ? mtc_harmless_lines(notes->at) : "");
    mtc_print_dry_data(session);
    fit->training.until = session->at.step + 1;
    fit->training.steps = dry_steps;
    fit->training.summary = dry_summary;
    fit->training.stopped = NULL;
    fit->training.paused = NULL;
    if (!code)
        code = mtc_train_run(session, &fit->training);
    if (code)
        *fault = session->fault;
    else {
        mtc_print_dry_start(&session->start);
        code = mtc_print_dry_saving(fault, session->model, fit->options.save);
    }
    if (!code)
        printf("nothing was saved\n");
    return code;
}

/* ---- the command ---- */

static int check_options(MtcFault *fault, const MtcModel *model, Fit *fit) {
    int code = mtc_find_monitor(fault, model, fit->options.monitor, &fit->monitor);
    if (!code && fit->options.resume && fit->options.init_from)
        code = mtc_fail(fault, MTC_USAGE, "--resume goes on with a training, --init-from begins one: which?");
    if (!code && fit->options.partial && !fit->options.resume && !fit->options.init_from)
        code = mtc_fail(fault, MTC_USAGE, "--partial says how to read a checkpoint: --resume FILE or --init-from FILE");
    const MtcKeeping keeping = keeping_of(&fit->options);
    return code ? code : mtc_keeper_check(fault, &keeping);
}

int mtc_command_train(MtcFault *fault, const MtcModel *model, const MtcOptions *options) {
    bool waited;
    const int joined = mtc_join_others(fault, model, options, true, &waited);
    if (joined || waited)
        return joined;
    Fit *fit = (Fit *)mtc_zeroed(sizeof *fit);
    MtcOpening opening;
    memset(&opening, 0, sizeof opening);
    fit->options = *options;
    opening.split[MTC_TRAIN] = "train";
    for (int which = MTC_TEST; which < MTC_SPLITS && !options->overfit_batch; which++)
        opening.split[which] = mtc_split(model, mtc_split_name(which)) ? mtc_split_name(which) : NULL;
    int code = mtc_quiet_other_ranks(fault, &fit->options);
    options = &fit->options;
    if (!code)
        code = mtc_check_ranks(fault, model, options->program, mtc_rank_count());
    if (!code)
        code = check_options(fault, model, fit);
    if (!code)
        code = mtc_open_splits(fault, model, options, &opening, &fit->session);
    code = mtc_ranks_ready(fault, code);
    if (!code)
        code = mtc_agree(fault, fit->session, options);
    if (!code && options->dry_run)
        code = dry_run(fault, fit, opening.examples, &opening.notes);
    else if (!code)
        code = train_session(fault, fit, opening.examples, &opening.notes);
    mtc_leave_together(fit->session, code);
    mtc_opening_free(&opening);
    free(fit);
    return code;
}
