/* Where the search for the first bad number goes back to: weights, buffers and states as they were before the step that made it.
 *
 * Of a small model the device has copies, taken at the beginning of each chunk of steps; going back is a few steps then. Of a
 * large one the host has a single copy. It is renewed so seldom that it costs next to nothing, with nothing under way and all
 * losses until then finite, and only with numbers that are finite too: those of the step after may show that they are not. Going
 * back repeats the steps since. Weights that a session has drawn and nobody has changed need no copy: they are drawn again. */
#ifndef MTC_SNAPSHOT_H
#define MTC_SNAPSHOT_H

#include "needs.h"
#include "session/pieces.h"

/* The bytes of the arena that hold weights, buffers and states, in order; a copy has them one after the other. */
typedef struct MtcRange {
    size_t begin, end;
} MtcRange;
typedef struct MtcKept {
    int ranges;
    MtcRange *range; /* freed by the owner */
    size_t bytes;
} MtcKept;
int mtc_kept_ranges(MtcFault *fault, const MtcModel *model, MtcKept *kept);
/* Of these, what each of several processes has whole. */
int mtc_kept_here(MtcFault *fault, const MtcModel *model, MtcKept *kept);
/* To host memory of kept->bytes; returns when they are there. */
int mtc_download_kept(MtcSession *session, const MtcKept *kept, char *to);
/* What a checkpoint is written of: a copy in host memory; or the session as it stands, of which no step may be under way. */
typedef struct MtcState {
    MtcSession *session;
    const MtcKept *kept;
    const char *copy; /* NULL: the session's own memory */
} MtcState;
/* The tensor's bytes in order: at once, or piece by piece. */
int mtc_visit_state(const MtcState *state, const MtcTensor *tensor, MtcVisitBytes *visit, void *user);

typedef struct MtcSnapshot {
    bool taken, drawn; /* drawn: it is what the session drew, and has no copy of it */
    char *bytes;
    MtcPosition at;
} MtcSnapshot;

/* What steps are computed with beside the arena and the data, from step `step` on. */
typedef struct MtcConduct {
    int64_t step, last_step, epochs;
    uint64_t seed;
    double knob[MTC_MAX_KNOBS];
    int64_t falls[MTC_MAX_PLATEAUS];
} MtcConduct;

typedef struct MtcSnapshots {
    MtcKept kept;
    bool on_host;
    MtcSnapshot snapshot[MTC_SNAPSHOTS]; /* on the host: the first alone */
    int64_t count;                       /* taken on the device so far */
    int64_t writes;                      /* the session's when these were taken */
    double due, interval;                /* on the host: when one is; seconds between two, below 0: by what they cost */
    double taken, took;                  /* when the last one was, and its seconds */
    int64_t looked_at;                   /* and the step that was the last to be looked at for one */
    bool doubted;                        /* which held bad numbers */
    MtcConduct *conduct;
    int conducts;
} MtcSnapshots;

int mtc_snapshots_new(MtcSession *session, MtcSnapshots *snapshots);
void mtc_snapshots_free(MtcSession *session, MtcSnapshots *snapshots);
/* A training begins, or goes on: copies of a state that was changed meanwhile are none any more. */
void mtc_snapshots_begin(MtcSession *session);
/* The next steps are enqueued: what they are computed with, and on the device a copy of what they begin with. */
int mtc_snapshot_enqueue(MtcSession *session);
/* On the host: shall it be renewed, once nothing is under way? Then that is done. */
bool mtc_snapshot_due(const MtcSession *session);
int mtc_snapshot_renew(MtcSession *session);

/* The newest from before that step, or, if there is none, from its beginning; NULL: neither, or no memory to search. */
MtcSnapshot *mtc_snapshot_before(MtcSession *session, int64_t step);
/* Another one, of no use any more; or `from`, where there is but one. */
MtcSnapshot *mtc_snapshot_scratch(MtcSession *session, MtcSnapshot *from);
int mtc_snapshot_save(MtcSession *session, MtcSnapshot *snapshot, const MtcPosition *at);
int mtc_snapshot_restore(MtcSession *session, const MtcSnapshot *snapshot);

MtcConduct mtc_conduct_now(const MtcSession *session);
void mtc_conduct_take(MtcSession *session, const MtcConduct *conduct);
/* What that step was computed with becomes the session's; the first step after it that has others, INT64_MAX: none. */
int64_t mtc_conduct_at(MtcSession *session, int64_t step);

#endif
