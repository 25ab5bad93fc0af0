/* Checkpoints: one safetensors file with the weights and buffers first, as others read them, then the optimizer states; in
 * its metadata, all strings, what else a training needs to go on.
 *
 *     mtc.checksum     of every byte of the file (safetensors.h)
 *     mtc.version      of this layout: 1
 *     mtc.model, mtc.model_hash, mtc.param.NAME
 *     mtc.weights      how many of the tensors, in the order of their bytes, are weights and buffers
 *     mtc.step, mtc.epoch, mtc.epoch_step, mtc.epochs, mtc.seed, mtc.split_seed
 *     mtc.data         number and hash of the training examples
 *     mtc.epoch_sums, mtc.interval_sums    examples, then the sum of each report; where there are any
 *     mtc.losses       of the first and of the last step
 *     mtc.first_weight the largest when the training that is saved began
 *     mtc.diverged     1, where they and the weights say that training has diverged (keeper.h)
 *     mtc.summary_due  1, where the evaluation after the last step was ended before its end
 *     mtc.monitor, mtc.best, mtc.best_step, mtc.since_best
 *     mtc.plateaus     of each learning rate that waits for a better one: how long it does, it has, and how often in vain
 *     mtc.encoding     JSON: {"FIELD": {"words": [...], "mean": [...]}, ...},
 *                      of byte pairs {"FIELD": {"tokenizer": "tokenizer.json", "digest": "0123456789abcdef"}} */
#ifndef MTC_CHECKPOINT_H
#define MTC_CHECKPOINT_H

#include "base/safetensors.h"
#include "session/snapshot.h"
#include "session/train.h"

enum { MTC_LAYOUT = 1 };

/* A file that was read and is sound. One without mtc.version is somebody else's: tensors, nothing more. */
typedef struct MtcCheckpoint {
    const char *path; /* the caller's */
    MtcArchive archive;
    bool ours;
    int weights; /* ours: how many of its tensors are no states */
    uint64_t seed, split_seed;
    int64_t epochs;
    char *integers; /* memory of the tensors that mtc_checkpoint_quantize made; else NULL */
} MtcCheckpoint;

/* Free with mtc_checkpoint_close, also after a fault. */
int mtc_checkpoint_open(MtcFault *fault, const char *path, MtcCheckpoint *checkpoint);
/* The same from memory, as mtc_archive_parse. */
int mtc_checkpoint_parse(MtcFault *fault, const char *path, const uint8_t *bytes, size_t size,
                         MtcCheckpoint *checkpoint);
void mtc_checkpoint_close(MtcCheckpoint *checkpoint);

/* Its metadata, by their names without "mtc.": texts are NULL where there is none, other values are a fault. */
const char *mtc_checkpoint_text(const MtcCheckpoint *checkpoint, const char *key);
int mtc_checkpoint_number(MtcFault *fault, const MtcCheckpoint *checkpoint, const char *key, double *value);
int mtc_checkpoint_position(MtcFault *fault, const MtcCheckpoint *checkpoint, MtcPosition *at);
int mtc_checkpoint_record(MtcFault *fault, const MtcCheckpoint *checkpoint, const MtcModel *model, MtcRecord *record);
/* Of the training data; 0 examples: it does not say. */
int mtc_checkpoint_data(MtcFault *fault, const MtcCheckpoint *checkpoint, int64_t *examples, uint64_t *hash);
/* What the training data decided; stays unknown where the file says nothing. Free with mtc_encoding_free. */
int mtc_checkpoint_encoding(MtcFault *fault, const MtcCheckpoint *checkpoint, const MtcModel *model,
                            MtcEncoding *encoding);

/* LOAD: weights and buffers, to evaluate. INITIAL: the same to train with, states begin anew. ALL: everything. */
typedef enum MtcTake { MTC_TAKE_LOAD, MTC_TAKE_INITIAL, MTC_TAKE_ALL } MtcTake;

/* Of a file with floats: those that the model has as integers become integers with scales, as a file of the model's has them; the
 * scales of what they are multiplied with are 1. Where the file has averages of weights, which its training evaluates with, those
 * are taken. A fault: integers already, or numbers that are none. */
int mtc_checkpoint_quantize(MtcFault *fault, MtcCheckpoint *checkpoint, const MtcModel *model);
/* A fault where integers or scales are none that a program can compute with. */
int mtc_check_quantized(MtcFault *fault, const MtcCheckpoint *checkpoint, const MtcModel *model);
/* A note where floats are given to a program of integers, or integers to one of floats. */
void mtc_note_quantized(MtcFault *fault, const MtcCheckpoint *checkpoint, const MtcModel *model, const char *program);

/* Nothing that a session would draw stays as it was drawn. */
bool mtc_checkpoint_gives_all(const MtcCheckpoint *checkpoint, const MtcModel *model, MtcTake take);
/* Into the session, all or nothing; with `partial`, whatever fits. Lines that say what was taken, what differs and what is
 * missing are added to `notes`, which may be NULL. */
int mtc_checkpoint_apply(MtcSession *session, const MtcCheckpoint *checkpoint, MtcTake take, bool partial,
                         MtcText *notes);
/* What the file says of a param, fixed when the program was compiled or not; `unsaid`, where it says no number. */
double mtc_param_in_file(const MtcCheckpoint *checkpoint, const char *name, double unsaid);
/* A note to the session's fault: which params the file was written with that this program has otherwise for ever. */
void mtc_note_params(MtcSession *session, const MtcCheckpoint *checkpoint);
/* That its names have all a prefix, and how to be rid of it; that one of both trains in fp16. */
void mtc_note_prefix(MtcFault *fault, const MtcCheckpoint *checkpoint, const MtcModel *model);
void mtc_note_precision(MtcFault *fault, const MtcCheckpoint *checkpoint, const MtcModel *model);
/* Has a file the tensor, with the shape and a type that can be taken? If not, what is the matter. */
bool mtc_blob_fits(const MtcTensor *tensor, const MtcBlob *blob);
void mtc_misfit_text(const MtcTensor *tensor, const MtcBlob *blob, char *text, size_t size);
/* What a tensor of a file is, by its name, that is not expected where so much is taken. */
const char *mtc_unexpected_text(const MtcModel *model, const char *name, MtcTake take);
const char *
mtc_needless(const MtcBlob *blob); /* what it is of somebody else's that is not needed; NULL: it is none of these */

/* The blob's numbers, as many as the tensor has, in the tensor's type and the file's order. Free them; NULL: a fault. */
void *mtc_blob_values(MtcFault *fault, const MtcTensor *tensor, const MtcBlob *blob);

int mtc_count_tensors(const MtcModel *model, MtcRole role);
/* The JSON object for a checkpoint of where the session stands. */
void mtc_checkpoint_metadata(MtcText *text, const MtcSession *session);
/* Weights that are not finite are a fault. `base`: as of mtc_archive_write. */
int mtc_checkpoint_write(MtcFault *fault, const MtcState *state, const char *path, const char *base,
                         const char *metadata);

#endif
