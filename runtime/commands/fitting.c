/* A training in epochs for programs that embed a model: what the command `train` does, without files and without a word. */
#include "checkpoint/checkpoint.h"
#include "ranks/ranks.h"
#include "session/advice.h"
#include "session/best.h"
#include "session/sums.h"
#include "session/train.h"
#include "session/weights.h"

#include <string.h>

/* Between two calls of `steps`. */
static const double STEPS_SECONDS = 0.04;

typedef struct Fitting {
    MtcSession *session;
    const MtcFitting *asked;
    MtcTraining training;
    MtcCourse course;
    MtcAdvice advice;
    double called; /* when `steps` was, last */
    int64_t step;  /* done and told of */
    bool enough;
    int fault;      /* of going on with the device */
    int64_t writes; /* the session's, that all ranks have */
    /* Of the last summary, until its pause. */
    bool due, evaluated;
    MtcPosition at;
    double watched[MTC_MAX_REPORTS];
} Fitting;

/* ---- what the caller hears ---- */

/* Whatever the caller did meanwhile, training goes on with the session's device. */
static void heard(Fitting *fitting, bool enough) {
    fitting->fault = mtc_enter(fitting->session);
    fitting->enough |= enough || fitting->fault;
}

static void epoch_means(const Fitting *fitting, double *means) {
    for (int r = 0; r < fitting->session->model->reports; r++)
        means[r] = mtc_sums_mean(&fitting->session->record.epoch, r);
}

static void tell_steps(Fitting *fitting, bool last) {
    const double now = mtc_seconds();
    double means[MTC_MAX_REPORTS];
    if (!fitting->asked->steps || (now - fitting->called < STEPS_SECONDS && !last))
        return;
    fitting->called = now;
    epoch_means(fitting, means);
    const bool rested = mtc_ranks_rest(), enough = fitting->asked->steps(fitting->asked->user, fitting->step, means);
    mtc_ranks_go_on(rested);
    heard(fitting, enough);
}

static void tell_epoch(Fitting *fitting) {
    double means[MTC_MAX_REPORTS];
    epoch_means(fitting, means);
    fitting->due = false;
    if (!fitting->asked->epoch)
        return;
    const bool rested = mtc_ranks_rest();
    const bool enough = fitting->asked->epoch(fitting->asked->user, fitting->at.epoch, means,
                                              fitting->evaluated ? fitting->watched : NULL);
    mtc_ranks_go_on(rested);
    heard(fitting, enough);
}

/* ---- the training's events ---- */

/* The sums are the record's at once: a checkpoint that the caller writes in a pause has them. */
static void fitting_steps(void *user, int64_t first, int64_t count, const double *reports) {
    Fitting *fitting = (Fitting *)user;
    MtcSums *epoch = &fitting->session->record.epoch;
    const MtcModel *model = fitting->session->model;
    for (int64_t i = 0; i < count; i++) {
        const int64_t epoch_step = mtc_place_of_step(&fitting->course, first + i).epoch_step;
        if (epoch_step == 0)
            memset(epoch, 0, sizeof *epoch);
        mtc_sums_add(model, epoch, reports + i * mtc_report_columns(model),
                     mtc_rows_of_step(&fitting->course, epoch_step));
    }
    if (fitting->asked->warn)
        mtc_advice_steps(&fitting->advice, first, count,
                         reports); /* data that it cannot read, the next step cannot either */
    fitting->step = first + count;
    tell_steps(fitting, fitting->step == fitting->training.until);
}

static void fitting_summary(void *user, const MtcPosition *at, const double *means) {
    Fitting *fitting = (Fitting *)user;
    fitting->due = true;
    fitting->at = *at;
    fitting->evaluated = means != NULL;
    if (means)
        memcpy(fitting->watched, means, (size_t)mtc_evaluated(fitting->session->model) * sizeof *means);
    if (means && fitting->session->model->plateaus)
        mtc_judge(fitting->session, fitting->session->model->monitor, at, means[fitting->session->model->monitor]);
    if (!fitting->training.pauses)
        tell_epoch(fitting);
}

/* What the caller of rank 0 has set in a pause: params, and tensors, by name or where they lie. */
typedef struct Changes {
    double knob[MTC_MAX_KNOBS];
    bool written;
} Changes;

static int share_changes(Fitting *fitting) {
    MtcSession *session = fitting->session;
    Changes changes;
    if (mtc_rank_count() == 1)
        return 0;
    memset(&changes, 0, sizeof changes);
    memcpy(changes.knob, session->knob, sizeof changes.knob);
    changes.written = session->located || session->writes != fitting->writes;
    int code = mtc_ranks_share(&session->fault, &changes, sizeof changes, true);
    memcpy(session->knob, changes.knob, sizeof changes.knob);
    if (!code && changes.written)
        code = mtc_share_kept(session);
    fitting->writes = session->writes;
    return code;
}

static int fitting_paused(void *user, const MtcPosition *at) {
    Fitting *fitting = (Fitting *)user;
    (void)at;
    if (fitting->due)
        tell_epoch(fitting);
    return share_changes(fitting);
}

static bool fitting_stopped(void *user) {
    return ((Fitting *)user)->enough;
}

/* While data are evaluated `steps` is called too, of the same step again: it may say that this is enough. */
static bool fitting_interrupted(void *user) {
    Fitting *fitting = (Fitting *)user;
    if (!fitting->enough && fitting->session->record.epoch.examples > 0)
        tell_steps(fitting, false);
    return fitting->enough;
}

/* ---- the plan ---- */

static int check_fitting(MtcSession *session, const MtcFitting *asked) {
    int code = mtc_enter_idle(session);
    if (code)
        return code;
    if (session->data[MTC_TRAIN].examples == 0)
        return mtc_fail(&session->fault, MTC_USAGE, "there are no data to train on: set or load them first");
    if (session->model->plateaus && session->data[mtc_watched(session)].examples == 0)
        return mtc_fail(&session->fault, MTC_USAGE,
                        "plateau_lr needs data to evaluate: there are neither validation nor test data");
    if (asked->epochs < 0 || asked->every < 0)
        return mtc_fail(&session->fault, MTC_USAGE, "cannot train %lld epochs, and tell of every %lldth",
                        (long long)asked->epochs, (long long)asked->every);
    if (asked->epochs > (INT64_MAX - session->at.step) / mtc_steps_per_epoch(session))
        return mtc_fail(&session->fault, MTC_USAGE, "%lld epochs have more steps than can be counted",
                        (long long)asked->epochs);
    return 0;
}

static void open_advice(Fitting *fitting) {
    fitting->advice.warn = fitting->asked->warn;
    fitting->advice.user = fitting->asked->user;
    fitting->advice.watching = true; /* patience is the caller's */
    mtc_advice_open(&fitting->advice, fitting->session);
}

static void plan_fitting(Fitting *fitting, MtcSession *session, const MtcFitting *asked) {
    MtcTraining *training = &fitting->training;
    memset(fitting, 0, sizeof *fitting);
    fitting->session = session;
    fitting->asked = asked;
    fitting->course = mtc_course(session);
    fitting->step = session->at.step;
    fitting->writes = session->writes;
    session->record.epochs = asked->epochs;
    session->last_step = training->until = mtc_last_step(session, asked->epochs);
    const bool summaries = asked->epoch || session->model->plateaus;
    training->every = !summaries ? 0 : asked->every ? asked->every : 1;
    training->pauses = (asked->epoch && asked->pauses) || session->model->plateaus;
    training->user = fitting;
    training->steps = fitting_steps;
    training->summary = summaries ? fitting_summary : NULL;
    training->stopped = fitting_stopped;
    training->paused = training->pauses ? fitting_paused : NULL;
    memset(&session->record.interval, 0, sizeof session->record.interval); /* there is no log */
}

int mtc_fit(MtcSession *session, const MtcFitting *asked) {
    Fitting fitting;
    int code = check_fitting(session, asked);
    if (!code)
        code = mtc_check_resumed(session, false, NULL);
    if (code || asked->epochs < session->at.epoch ||
        (asked->epochs == session->at.epoch && !session->record.summary_due))
        return code;
    plan_fitting(&fitting, session, asked);
    session->busy = true;
    if (asked->warn)
        open_advice(&fitting);
    session->stopped = mtc_rank() ? NULL : fitting_interrupted; /* of several ranks the first decides */
    session->stopped_by = &fitting;
    code = mtc_train_run(session, &fitting.training);
    session->busy = false;
    session->stopped = NULL;
    if (!code && asked->warn)
        code = mtc_advice_end(&fitting.advice);
    return code ? code : fitting.fault;
}
