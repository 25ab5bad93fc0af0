/* A training in epochs in several processes, for programs that embed a model: that of fitting.c, whose beginning rank 0 has. */
#include "commands/together.h"
#include "ranks/nccl.h"
#include "ranks/ranks.h"
#include "session/train.h"
#include "session/weights.h"

#include <string.h>

static const double FOREVER = 1e9; /* seconds, of which devices count nanoseconds in 64 bits */

/* All that a training depends on beside data and tensors. */
typedef struct Beginning {
    uint64_t seed;
    int64_t epochs, every;
    bool pauses, tells; /* of epochs */
    MtcPosition at;
    MtcRecord record;
    double knob[MTC_MAX_KNOBS];
} Beginning;

static void fill_beginning(Beginning *begin, const MtcSession *session, const MtcFitting *asked) {
    memset(begin, 0, sizeof *begin);
    begin->seed = session->seed;
    begin->epochs = asked->epochs;
    begin->every = asked->every;
    begin->pauses = asked->pauses;
    begin->tells = asked->epoch != NULL;
    begin->at = session->at;
    begin->record = session->record;
    memcpy(begin->knob, session->knob, sizeof begin->knob);
}

/* Other ranks pause where rank 0 does, and say nothing. */
static bool says_nothing(void *user, int64_t epoch, const double *means, const double *watched) {
    (void)user, (void)epoch, (void)means, (void)watched;
    return false;
}

static void take_beginning(const Beginning *begin, MtcSession *session, MtcFitting *asked) {
    *asked = (MtcFitting){.epochs = begin->epochs, .every = begin->every, .pauses = begin->pauses};
    asked->epoch = begin->tells ? says_nothing : NULL;
    session->seed = begin->seed;
    session->at = begin->at;
    session->record = begin->record;
    session->orders = 0; /* those on the device may be another seed's */
    session->resumed = false;
    memcpy(session->knob, begin->knob, sizeof begin->knob);
}

static int share_beginning(MtcSession *session, MtcFitting *asked) {
    Beginning begin;
    fill_beginning(&begin, session, asked);
    int code = mtc_ranks_share(&session->fault, &begin, sizeof begin, true);
    if (!code && mtc_rank())
        take_beginning(&begin, session, asked);
    return code ? code : mtc_share_kept(session);
}

/* A trainer has memory for the shards of a rank: one that was alone before, or will be, has another. */
static int fit_joined(MtcSession *session, MtcFitting *asked, const char *sums) {
    mtc_trainer_free(session);
    int code = mtc_agree_on_data(&session->fault, session);
    code = code ? code : share_beginning(session, asked);
    code = code ? code : mtc_choose_sums(&session->fault, session, sums);
    code = code ? code : mtc_fit(session, asked);
    mtc_nccl_leave(code != 0);
    mtc_trainer_free(session);
    return code;
}

static int check_joined(MtcSession *session, const MtcRanks *ranks) {
    const int code = mtc_enter_idle(session);
    if (!code && mtc_nccl_joined())
        return mtc_fail(&session->fault, MTC_USAGE,
                        "another training of this library adds up by NCCL: one at a time does");
    return code ? code : mtc_check_ranks(&session->fault, session->model, NULL, ranks->count);
}

int mtc_fit_together(MtcSession *session, const MtcFitting *asked, const MtcRanks *ranks) {
    MtcFault *fault = &session->fault;
    MtcFitting own = *asked;
    if (ranks->count < 1 || ranks->rank < 0 || ranks->rank >= ranks->count)
        return mtc_fail(fault, MTC_USAGE, "there is no rank %d of %d", ranks->rank, ranks->count);
    if (ranks->count == 1)
        return mtc_fit(session, asked);
    int code = mtc_ranks_join_by(fault, ranks->rank, ranks->count, ranks->socket,
                                 ranks->timeout > 0 ? ranks->timeout : FOREVER);
    if (!code) {
        const int unready = check_joined(session, ranks);
        code = mtc_ranks_ready(fault, unready);
        if (code && !unready) /* another one's fault, which its own session tells */
            code = fault->code = MTC_RANK_LOST;
    }
    if (!code)
        code = fit_joined(session, &own, ranks->sums);
    mtc_ranks_leave(code);
    return code;
}
