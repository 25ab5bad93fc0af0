/* The command line of a program: what was asked for, and the functions that do it. */
#ifndef MTC_CLI_H
#define MTC_CLI_H

#include "session.h"

/* The values of a flag that may be given again and again. */
typedef struct MtcList {
    int count;
    const char *at[MTC_MAX_FIELDS];
} MtcList;

typedef struct MtcOptions {
    const char *program;
    int64_t epochs, steps, every, log_every, runs, seed, device; /* steps, every, log_every: 0: not given */
    const char *data, *log, *save, *load, *split, *output;
    MtcList input; /* a file for each field, as far as given */
    bool quiet;
    bool knob_given[MTC_MAX_KNOBS];
    double knob[MTC_MAX_KNOBS];
    double started; /* when the program began */
} MtcOptions;

/* Each returns the exit code; messages of faults are printed by the caller from `fault`. */
int mtc_command_train(MtcFault *fault, const MtcModel *model, const MtcOptions *options);
int mtc_command_eval(MtcFault *fault, const MtcModel *model, const MtcOptions *options);
int mtc_command_predict(MtcFault *fault, const MtcModel *model, const MtcOptions *options);
int mtc_command_info(MtcFault *fault, const MtcModel *model, const MtcOptions *options);
int mtc_command_bench(MtcFault *fault, const MtcModel *model, const MtcOptions *options);

/* ---- what the commands share ---- */

/* A session with the options' device, seed, parameters and weights, and the named splits on the device (NULL: none). The
 * files are read while the device starts. */
int mtc_open_session(MtcFault *fault, const MtcModel *model, const MtcOptions *options, const char *train,
                     const char *test, MtcSession **session);

/* ,"lr":0.001,"hidden":128 */
void mtc_add_params(MtcText *text, const MtcModel *model, const MtcSession *session);
void mtc_add_field(MtcText *text, const char *key, const char *value); /* ,"key":"value" */
void mtc_add_number(MtcText *text, const char *key, double value);     /* ,"key":1.5; null when it is not finite */
void mtc_add_start(MtcText *text, const MtcSession *session);
void mtc_add_count(MtcText *text, const char *key, int64_t value);

#endif
