#include "commands/together.h"

#include "base/device.h"
#include "ranks/launch.h"
#include "ranks/nccl.h"
#include "ranks/ranks.h"
#include "session/weights.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int mtc_check_ranks(MtcFault *fault, const MtcModel *model, const MtcOptions *options, int count) {
    char shards[16];
    MtcText again = {NULL, 0, 0};
    if (count == 1 || (model->shards && model->shards % count == 0))
        return 0;
    snprintf(shards, sizeof shards, "%d", count);
    mtc_remake(&again, model, "--shards", shards, options->program);
    if (model->shards)
        mtc_fail(fault, MTC_USAGE, "%d processes cannot have equally many of this program's %d shards of a batch",
                 count, model->shards);
    else
        mtc_fail(fault, MTC_USAGE, "this program computes a batch whole, and was started %d times", count);
    mtc_note(fault, "so many share the batch of %s", again.at);
    free(again.at);
    return fault->code;
}

static int start_gpus(MtcFault *fault, const MtcModel *model, const MtcOptions *options, bool *waited) {
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
    const int code = mtc_check_ranks(fault, model, options, count);
    return code ? code : mtc_ranks_launch(fault, count, (double)options->rank_timeout, waited);
}

int mtc_join_others(MtcFault *fault, const MtcModel *model, const MtcOptions *options, bool *waited) {
    const int code = start_gpus(fault, model, options, waited);
    return code || *waited ? code : mtc_ranks_join(fault, (double)options->rank_timeout);
}

static int note_sharing(MtcFault *fault, const MtcSession *session, const MtcOptions *options) {
    enum { ID = sizeof session->device.id };
    const int count = mtc_rank_count();
    int devices = 0;
    if (count == 1)
        return 0;
    unsigned char(*id)[ID] = (unsigned char(*)[ID])mtc_zeroed((size_t)count * ID);
    const unsigned char host[ID] = {0};
    const int code = mtc_ranks_each(fault, session->device.id, ID, id);
    for (int rank = 0; rank < count; rank++) {
        int like = 0;
        while (memcmp(id[like], id[rank], ID) != 0)
            like++;
        devices += like == rank;
    }
    if (!code && mtc_rank() == 0 && devices < count && memcmp(id[0], host, ID) != 0)
        fprintf(stderr, "%s: note: %d processes share %d GPU%s\n", options->program, count, devices,
                devices == 1 ? "" : "s");
    free(id);
    return code;
}

static int join_sums(MtcFault *fault, const MtcModel *model, const MtcOptions *options) {
    const char *how = options->sums ? options->sums : "host";
    const bool nccl = strcmp(how, "nccl") == 0;
    if (!nccl && strcmp(how, "host") != 0)
        return mtc_fail(fault, MTC_USAGE, "--sums is host or nccl, not '%s'", how);
    if (nccl && strcmp(model->target, "cuda") != 0)
        return mtc_fail(fault, MTC_USAGE, "--sums nccl is of programs for GPUs, and this one is for the processor");
    return nccl && mtc_rank_count() > 1 ? mtc_nccl_join(fault) : 0;
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

int mtc_agree(MtcFault *fault, MtcSession *session, const MtcOptions *options) {
    enum { FIXED = 6 };
    const MtcModel *model = session->model;
    char program[96], data[32], place[96], length[96], values[32], param[MTC_MAX_KNOBS][32];
    MtcAgreed agreed[FIXED + MTC_MAX_KNOBS] = {{"program", program},
                                               {"training data", data},
                                               {"beginning", place},
                                               {"length of training", length},
                                               {"way to add up", options->sums ? options->sums : "host"},
                                               {"set of weights and states", values}};
    uint64_t weights = 0;
    if (mtc_rank_count() > 1 && mtc_hash_kept(session, &weights)) {
        *fault = session->fault;
        return fault->code;
    }
    snprintf(program, sizeof program, "%s in %d shards", model->model_hash, model->shards);
    snprintf(data, sizeof data, "%016llx", (unsigned long long)session->train_hash);
    snprintf(place, sizeof place, "step %lld, seed %llu", (long long)session->at.step,
             (unsigned long long)session->seed);
    snprintf(length, sizeof length, "%lld epochs, %lld steps, every %lld", (long long)options->epochs,
             (long long)options->limit_steps, (long long)options->every);
    snprintf(values, sizeof values, "%016llx", (unsigned long long)weights);
    for (int i = 0; i < model->knobs; i++) {
        agreed[FIXED + i] = (MtcAgreed){model->knob[i].name, param[i]};
        snprintf(param[i], sizeof param[i], "%.17g", session->knob[i]);
    }
    int code = mtc_ranks_agree(fault, agreed, FIXED + model->knobs);
    code = code ? code : note_sharing(fault, session, options);
    return code ? code : join_sums(fault, model, options);
}
