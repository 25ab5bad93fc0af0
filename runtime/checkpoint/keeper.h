/* Saving while training goes on: the training copies what is to be kept, a thread writes it.
 *
 *     training | steps | copy | steps        | steps   | copy | ...
 *     writer                  | write, sync, move      |      | write ...
 *
 * The last one needs no copy.
 *
 * FILE is always the newest checkpoint; with --keep there are numbered ones too, of which FILE is another name; the best
 * weights are in a file of their own. A training that has diverged, though every number is finite, saves as before, but what FILE
 * had until then stays as FILE-last-good.safetensors. Each is the old one or the whole new one, whenever the program is killed. */
#ifndef MTC_KEEPER_H
#define MTC_KEEPER_H

#include "session/train.h"

typedef struct MtcKeeper MtcKeeper;

/* Steps or seconds between checkpoints, as --save-every says them; the other is 0. */
typedef struct MtcInterval {
    int64_t steps;
    double seconds;
} MtcInterval;
int mtc_parse_interval(MtcFault *fault, const char *text, MtcInterval *interval);

/* How a training is to be kept, as its command line says; NULL and 0: not given. */
typedef struct MtcKeeping {
    const char *program;                    /* the running program */
    const char *save, *save_every, *resume; /* --save FILE, --save-every N, --resume FILE */
    int64_t keep;                           /* --keep N: numbered checkpoints beside FILE */
} MtcKeeping;

/* The file of the best weights beside the checkpoint `path`. Free it. */
char *mtc_best_path(const char *path);
/* The file that keeps what FILE had when a diverged training came to replace it. Free it. */
char *mtc_last_good_path(const char *path);
/* Is it the checkpoint `save`, or a file whose name is made of its? */
bool mtc_is_named_after(const char *save, const char *path);
bool mtc_is_own_checkpoint(const char *path); /* a program of mtc has written the file */
/* The step that a checkpoint of ours is of; -1: it is none. */
int64_t mtc_step_of_file(const char *path);
/* Has `path`, but for its folder, the name of a numbered checkpoint of `save`? */
bool mtc_is_numbered(const char *save, const char *path);

/* Could the checkpoints be written? Removes what killed programs left. Asked before hours of training. */
int mtc_keeper_check(MtcFault *fault, const MtcKeeping *keeping);

/* A fault of the session. */
int mtc_keeper_open(MtcSession *session, const MtcKeeping *keeping, MtcKeeper **keeper);
/* Is it time, and the writer free? */
bool mtc_keeper_due(MtcKeeper *keeper);
/* Takes a copy of where the session stands and has it written; waits while a regular checkpoint is still being written. Where
 * training ends, nothing goes on meanwhile: the session's own memory is written then, and the function waits for that. */
int mtc_keeper_save(MtcKeeper *keeper, MtcSession *session, bool ends);
/* As the best so far. Does not wait, while training goes on and there is host memory for another copy. */
int mtc_keeper_save_best(MtcKeeper *keeper, MtcSession *session, bool ends);
/* Waits until everything that was handed over is written, or could not be. */
void mtc_keeper_settle(MtcKeeper *keeper);
/* Warns on stderr of checkpoints that could not be written since, and of one whose training has diverged. */
void mtc_keeper_warn(MtcKeeper *keeper);
/* Waits for the writer, and frees the keeper. A fault: the last checkpoint of either kind could not be written. *newest:
 * the step of the newest one that was, -1: none. */
int mtc_keeper_close(MtcFault *fault, MtcKeeper *keeper, int64_t *newest);

#endif
