/* Tensors and parameters of a model: what they are, and their values. */
#ifndef MTC_WEIGHTS_H
#define MTC_WEIGHTS_H

#include "session/permute.h"
#include "session/session.h"

bool mtc_computes_in_double(const MtcModel *model);
size_t mtc_real_bytes(const MtcModel *model); /* of a number that it computes with */ /* made by `mtc --real f64` */
double mtc_as_computed(const MtcModel *model, double value);    /* the number of the program's type that is nearest */
double mtc_shortest_knob(const MtcSession *session, int index); /* as mtc_shortest, of a param */
bool mtc_is_kept(const MtcTensor *tensor); /* in checkpoints, as what the model is: a weight or a buffer */
const MtcTensor *mtc_find_tensor(const MtcModel *model, const char *name); /* NULL: none */
size_t mtc_tensor_bytes(const MtcTensor *tensor);
const char *mtc_tensor_shape(const MtcTensor *tensor); /* as files have it, in one of the buffers of mtc_shape */

/* The row of MtcModel.quantized_weight that the tensor is the weight of; NULL: none. */
const MtcQuantized *mtc_quantized(const MtcModel *model, const MtcTensor *tensor);

/* The value of a param, from a file: who has set it by mtc_set_knob is stronger. A fault: it cannot have that one. */
int mtc_put_knob(MtcSession *session, int index, double value);

/* As it lies on the device. */
int mtc_read_tensor(MtcSession *session, const MtcTensor *tensor, void *values);
int mtc_write_tensor(MtcSession *session, const MtcTensor *tensor, const void *values);
int mtc_write_file_values(MtcSession *session, const MtcTensor *tensor, const void *values); /* in the order of files */
/* Tensors that begin as a copy of another one (MTC_COPY) become it again. */
int mtc_copy_states(MtcSession *session);
/* Of all that steps leave to the next ones: weights, buffers and states. */
int mtc_hash_kept(MtcSession *session, uint64_t *hash);
/* All ranks get what rank 0 has of that. */
int mtc_share_kept(MtcSession *session);

#endif
