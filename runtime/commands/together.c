#include "commands/together.h"

#include "base/device.h"
#include "ranks/launch.h"
#include "ranks/nccl.h"
#include "ranks/ranks.h"
#include "session/rank_sums.h"
#include "session/session_data.h"
#include "session/weights.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int mtc_check_ranks(MtcFault *fault, const MtcModel *model, const char *program, int count) {
    char shards[16];
    MtcText again = {NULL, 0, 0};
    if (count == 1 || (model->shards && model->shards % count == 0))
        return 0;
    snprintf(shards, sizeof shards, "%d", count);
    mtc_remake(&again, model, "--shards", shards, program);
    if (model->shards)
        mtc_fail(fault, MTC_USAGE, "%d processes cannot have equally many of this program's %d shards of a batch",
                 count, model->shards);
    else
        mtc_fail(fault, MTC_USAGE, "this program computes a batch whole, and was started %d times", count);
    mtc_note(fault, "so many share the batch of %s", again.at);
    free(again.at);
    return fault->code;
}

static int start_gpus(MtcFault *fault, const MtcModel *model, const MtcOptions *options, bool trains, bool *waited) {
    const int count = (int)options->gpus;
    *waited = false;
    if (count && strcmp(model->target, "cuda") != 0)
        return mtc_fail(fault, MTC_USAGE,
                        "--gpus is of programs for GPUs, and this one is for the processor; mpirun -n "
                        "%d starts it as several processes",
                        count);
    if (count && mtc_ranks_started())
        return mtc_fail(fault, MTC_USAGE,
                        "--gpus starts processes, and this is one of several that were started "
                        "already: one of the two");
    if (count > 1 && options->device >= 0)
        return mtc_fail(fault, MTC_USAGE, "--gpus gives each process a GPU of its own, --device names one: which?");
    if (count < 2)
        return 0;
    const int code = trains ? mtc_check_ranks(fault, model, options->program, count) : 0;
    return code ? code : mtc_ranks_launch(fault, count, (double)options->rank_timeout, waited);
}

void mtc_give_up_together(void) {
    if (mtc_nccl_lost())
        mtc_device_abandon();
}

void mtc_leave_together(MtcSession *session, int code) {
    if (mtc_nccl_lost())
        return;
    mtc_nccl_leave(code != 0);
    mtc_destroy(session);
}

static int note_sharing(MtcFault *fault, MtcSession *session, const MtcOptions *options) {
    const int count = mtc_rank_count();
    int devices = 0;
    const int code = mtc_rank_devices(session, &devices);
    if (code)
        *fault = session->fault;
    else if (mtc_rank() == 0 && devices && devices < count)
        fprintf(stderr, "%s: note: %d processes share %d GPU%s\n", options->program, count, devices,
                devices == 1 ? "" : "s");
    return code;
}

static const struct {
    const char *name;
    MtcSumsWay way;
} sums_ways[] = {{"peers", MTC_SUMS_PEERS}, {"nccl", MTC_SUMS_NCCL}, {"host", MTC_SUMS_HOST}};

int mtc_choose_sums(MtcFault *fault, MtcSession *session, const char *how) {
    size_t row = 0;
    if (!how)
        return 0;
    while (row < sizeof sums_ways / sizeof *sums_ways && strcmp(sums_ways[row].name, how) != 0)
        row++;
    if (row == sizeof sums_ways / sizeof *sums_ways)
        return mtc_fail(fault, MTC_USAGE, "--sums is peers, nccl or host, not '%s'", how);
    session->sums_way = sums_ways[row].way;
    if (session->sums_way != MTC_SUMS_HOST && strcmp(session->model->target, "cuda") != 0)
        return mtc_fail(fault, MTC_USAGE, "--sums %s is of programs for GPUs, and this one is for the processor", how);
    return 0;
}

int mtc_quiet_other_ranks(MtcFault *fault, MtcOptions *options) {
    if (!mtc_rank())
        return 0;
    if (!freopen("/dev/null", "w", stdout))
        return mtc_fail(fault, MTC_IO, "/dev/null: %s", strerror(errno));
    options->quiet = true;
    options->sample = 0;
    options->sample_prompt = options->save = options->save_every = options->log = options->tensorboard = NULL;
    options->keep = 0;
    return 0;
}

/* Rows of what must be the same. */
typedef struct Agreement {
    int count;
    MtcAgreed row[16 + MTC_MAX_KNOBS];
    char text[16 + MTC_MAX_KNOBS][96];
} Agreement;

static void agree_on(Agreement *all, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void agree_on(Agreement *all, const char *name, const char *format, ...) {
    va_list args;
    char *text = all->text[all->count];
    va_start(args, format);
    vsnprintf(text, sizeof all->text[0], format, args);
    va_end(args);
    all->row[all->count++] = (MtcAgreed){name, text};
}

static void agree_on_program(Agreement *all, const MtcModel *model) {
    agree_on(all, "program", "%s in %d shards", model->model_hash, model->shards);
}

/* What comes next is told as that program would. */
int mtc_join_others(MtcFault *fault, const MtcModel *model, const MtcOptions *options, bool trains, bool *waited) {
    Agreement all = {0};
    int code = start_gpus(fault, model, options, trains, waited);
    if (code || *waited)
        return code;
    code = mtc_ranks_join(fault, (double)options->rank_timeout);
    agree_on_program(&all, model);
    return code ? code : mtc_ranks_agree(fault, all.row, all.count);
}

/* Each rank evaluates a part of these. */
static int agree_on_evaluated(MtcFault *fault, Agreement *all, MtcSession *session, int which, const char *name) {
    uint64_t hash = 0;
    if (mtc_hash_data(session, which, &hash)) {
        *fault = session->fault;
        return fault->code;
    }
    agree_on(all, name, "%lld examples, %016llx", (long long)session->data[which].examples, (unsigned long long)hash);
    return 0;
}

static int agree_on_values(MtcFault *fault, Agreement *all, MtcSession *session) {
    const MtcModel *model = session->model;
    uint64_t weights = 0;
    if (mtc_hash_kept(session, &weights)) {
        *fault = session->fault;
        return fault->code;
    }
    agree_on(all, "set of weights and states", "%016llx", (unsigned long long)weights);
    for (int i = 0; i < model->knobs; i++)
        agree_on(all, model->knob[i].name, "%.17g", session->knob[i]);
    return 0;
}

int mtc_agree_on_data(MtcFault *fault, MtcSession *session) {
    Agreement all = {0};
    agree_on_program(&all, session->model);
    agree_on(&all, "training data", "%lld examples", (long long)session->data[MTC_TRAIN].examples);
    int code = mtc_ranks_agree(fault, all.row, all.count);
    if (!code && mtc_share_train_hash(session)) {
        *fault = session->fault;
        return fault->code;
    }
    all.count = 0;
    agree_on(&all, "training data", "%016llx", (unsigned long long)session->train_hash);
    code = code ? code : agree_on_evaluated(fault, &all, session, MTC_TEST, "test data");
    code = code ? code : agree_on_evaluated(fault, &all, session, MTC_VALIDATION, "validation data");
    return code ? code : mtc_ranks_agree(fault, all.row, all.count);
}

int mtc_agree(MtcFault *fault, MtcSession *session, const MtcOptions *options) {
    Agreement all = {0};
    if (mtc_rank_count() == 1)
        return mtc_choose_sums(fault, session, options->sums);
    agree_on(&all, "beginning", "step %lld, seed %llu", (long long)session->at.step, (unsigned long long)session->seed);
    agree_on(&all, "length of training", "%lld epochs, %lld steps, every %lld", (long long)options->epochs,
             (long long)options->limit_steps, (long long)options->every);
    agree_on(&all, "way to add up", "%s", options->sums ? options->sums : "any");
    int code = mtc_agree_on_data(fault, session);
    code = code ? code : agree_on_values(fault, &all, session);
    code = code ? code : mtc_ranks_agree(fault, all.row, all.count);
    code = code ? code : note_sharing(fault, session, options);
    return code ? code : mtc_choose_sums(fault, session, options->sums);
}

int mtc_agree_on_evaluation(MtcFault *fault, MtcSession *session, const MtcOptions *options) {
    Agreement all = {0};
    if (mtc_rank_count() == 1)
        return 0;
    agree_on_program(&all, session->model);
    int code = agree_on_evaluated(fault, &all, session, MTC_TEST, "data set to evaluate");
    code = code ? code : agree_on_values(fault, &all, session);
    code = code ? code : mtc_ranks_agree(fault, all.row, all.count);
    return code ? code : note_sharing(fault, session, options);
}

int mtc_agree_on_test(MtcSession *session, bool *evaluates, bool restored) {
    bool decided[] = {*evaluates, restored};
    int code = mtc_ranks_share(&session->fault, decided, sizeof decided, true);
    *evaluates = decided[0];
    return code || !decided[0] || !decided[1] ? code : mtc_share_kept(session);
}
