/* The command line of a program: what was asked for, and the functions that do it. */
#ifndef MTC_CLI_H
#define MTC_CLI_H

#include "session/session.h"

/* The values of a flag that may be given again and again. */
typedef struct MtcList {
    int count;
    const char *at[MTC_MAX_FIELDS];
} MtcList;

typedef struct MtcOptions {
    const char *program;
    int64_t epochs, steps, every, log_every, print_every, runs, top, seed, device, gpus,
        batch;                           /* steps, every, log_every, batch: 0: not given */
    int64_t rank_timeout;                /* seconds */
    int64_t keep, patience, limit_steps; /* 0: not given */
    const char *data, *log, *save, *load, *split, *output;
    const char *save_every, *resume, *init_from, *monitor, *bad_rows, *tensorboard, *data_on,
        *sums;             /* NULL: not given */
    int64_t samples;       /* elements of each tensor that gradcheck looks at */
    const char *file;      /* info: the checkpoint to look at; NULL: the program */
    MtcList input;         /* a file for each field, as far as given */
    MtcList prompt, stop;  /* generate */
    const char *tokenizer; /* NULL: not given */
    int64_t tokens, top_k, beams;
    int64_t calibrate;         /* quantize: examples */
    bool of_floats;            /* --load has floats, which become the program's integers */
    const char *sample_prompt; /* train: NULL: not given */
    int64_t sample;            /* tokens that are shown after each line of an epoch; 0: none */
    double temperature, top_p, min_p, repetition_penalty;
    bool quiet, json, partial, overfit_batch, dry_run, no_cache, resize, forward, random_data;
    bool epochs_given, seed_given, split_given; /* else they are the model's */
    bool exports;                               /* the command is export: its --output is a file of ONNX */
    bool knob_given[MTC_MAX_KNOBS];
    double knob[MTC_MAX_KNOBS];
    double started; /* when the program began */
} MtcOptions;

/* Each returns the exit code; messages of faults are printed by the caller from `fault`. */
int mtc_command_train(MtcFault *fault, const MtcModel *model, const MtcOptions *options);
int mtc_command_eval(MtcFault *fault, const MtcModel *model, const MtcOptions *options);
int mtc_command_predict(MtcFault *fault, const MtcModel *model, const MtcOptions *options);
int mtc_command_generate(MtcFault *fault, const MtcModel *model, const MtcOptions *options);
int mtc_command_export(MtcFault *fault, const MtcModel *model, const MtcOptions *options);
int mtc_command_info(MtcFault *fault, const MtcModel *model, const MtcOptions *options);
int mtc_command_bench(MtcFault *fault, const MtcModel *model, const MtcOptions *options);
int mtc_command_profile(MtcFault *fault, const MtcModel *model, const MtcOptions *options);
int mtc_command_quantize(MtcFault *fault, const MtcModel *model, const MtcOptions *options);
int mtc_command_gradcheck(MtcFault *fault, const MtcModel *model, const MtcOptions *options);

/* ---- help ---- */

/* What a model can do that not every model can. */
enum {
    MTC_CAN_EVALUATE = 1,
    MTC_CAN_CHECK = 2,    /* gradients, as programs of mtc gradcheck */
    MTC_CAN_GENERATE = 4, /* text */
    MTC_CAN_WATCH = 8,    /* test or validation data while it trains */
    MTC_CAN_SEE = 16,     /* predict from one image */
    MTC_CAN_READ = 32,    /* files */
    MTC_CAN_PARSE = 64,   /* tables or folders of images, which may have bad rows and are kept parsed */
    MTC_CAN_CHOOSE = 128, /* among devices */
    MTC_CAN_TRAIN = 256,
    MTC_CAN_QUANTIZE = 512
};
int mtc_abilities(const MtcModel *model);
/* A line "  --epochs N   words", broken between words where the terminal ends. */
void mtc_help_row(const char *name, const char *words);
void mtc_help_examples(const MtcModel *model, const char *program);

/* ---- what is not on its command line ---- */

/* An example of the value of a flag of mtc that changes what a program computes or where ("": it takes none); NULL: no such. */
const char *mtc_compiled_flag(const char *name);
/* The flag, or the usual name of a param, that other programs call `name`; NULL: not known. */
const char *mtc_usual_command(const char *name);
const char *mtc_usual_word(const char *name);

/* ---- what the commands share ---- */

/* A fault where a file that is written is one that is read, the running program, or another output: before anything is done. */
int mtc_check_outputs(MtcFault *fault, const MtcModel *model, const MtcOptions *options);

/* What a training writes is its alone: two would write through each other's log, and replace each other's checkpoints. After a
 * fault, too, the locks are the caller's to release. */
typedef struct MtcOutputLocks {
    MtcLock *log, *save, *best;
} MtcOutputLocks;

int mtc_lock_outputs(MtcFault *fault, const MtcOptions *options, MtcOutputLocks *locks);
void mtc_unlock_outputs(MtcOutputLocks *locks);
/* A new training takes the name of an older one's file: that is told before it is gone. */
void mtc_note_replaced(const MtcOptions *options, MtcText *notes);

/* How --data, --seed, --bad-rows and --no-cache say that data are to be read. */
int mtc_reading_of(MtcFault *fault, const MtcOptions *options, MtcReading *reading);
void mtc_warn_of_reading(const MtcOptions *options, const MtcReading *reading); /* what was left out or rounded */

/* How a session is opened, and what came of it. */
typedef struct MtcOpening {
    const char *split[MTC_SPLITS]; /* names of the splits that become its data sets; NULL: none */
    int64_t examples;              /* result: of the training split, before --overfit-batch took one batch of it */
    MtcText notes;                 /* result: lines about what came from a checkpoint */
    int paths;                     /* result: of test data that are images, the file of each */
    char **path;
} MtcOpening;
void mtc_opening_free(MtcOpening *opening); /* its results */

/* What --device says; else 0, and of several processes of a machine each has its own, or as few share one as can. */
int mtc_chosen_device(const MtcOptions *options);
/* A session with the options' device, seed, parameters and weights, and the splits on the device. The files are read while
 * the device starts, in the way that the checkpoint says, if there is one. */
int mtc_open_splits(MtcFault *fault, const MtcModel *model, const MtcOptions *options, MtcOpening *opening,
                    MtcSession **session);
/* The same with two splits at most (NULL: none). */
int mtc_open_session(MtcFault *fault, const MtcModel *model, const MtcOptions *options, const char *train,
                     const char *test, MtcSession **session);

/* The first line of a log but for its last brace. */
void mtc_add_config(MtcText *text, const MtcSession *session, const MtcOptions *options, int64_t last_step,
                    int64_t log_every);
/* ,"train":{"loss":"cross_entropy(logits, label)","optimizer":"adam(lr)"} */
void mtc_add_training(MtcText *text, const MtcModel *model);
/* ,"lr":0.001,"hidden":128 */
void mtc_add_params(MtcText *text, const MtcModel *model, const MtcSession *session);
void mtc_add_start(MtcText *text, const MtcSession *session);

#endif
