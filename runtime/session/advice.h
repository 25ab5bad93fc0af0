/* What is not wrong, but goes nowhere: a warning of a training, each once, that names the cure. */
#ifndef MTC_ADVICE_H
#define MTC_ADVICE_H

#include "session/sums.h"
#include "session/train.h"

typedef struct MtcAdvice {
    void (*warn)(void *user, const char *text); /* gets each warning, a line without its end */
    void *user;
    bool one_batch; /* of the data that there are is to be learned: it may be larger than they are */
    bool watching;  /* the caller sees to it that there are data to watch */
    /* What follows is the advice's own. */
    MtcSession *session;
    MtcCourse course;
    bool
        watched; /* its first epochs, from initial weights, without a warning of a loss that stands still; where optimizers have
                     losses of their own, such a balance is what they may be after */
    int64_t epochs;       /* that have been */
    double first;         /* its first loss */
    double before;        /* the mean over the epoch before; NaN: there is none */
    double sum, examples; /* of the running epoch */
} MtcAdvice;

/* Before the first step, with the caller's members set. Warns of a batch that is larger than the data, of metrics over a set and of
 * patience where nothing is evaluated, and of weights that have no update until the end. */
void mtc_advice_open(MtcAdvice *advice, MtcSession *session);
/* Steps [first, first + count) are done; their reports as MtcTraining.steps has them. Warns of a target that is no distribution, of a first loss that numbers far from 0 make,
 * of one that does not move from epoch to epoch, and of an epoch of examples that weigh nothing. A fault of the session: the data cannot be read. */
int mtc_advice_steps(MtcAdvice *advice, int64_t first, int64_t count, const double *reports);
/* The training has ended. Warns of updates that were left out, for gradients that are not finite, to the end. A fault of the session: its
 * tensors cannot be read. */
int mtc_advice_end(const MtcAdvice *advice);

#endif
