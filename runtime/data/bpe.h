/* Texts of byte pairs: the tokenizer that the model file names beside the text, and which one the weights have learned with. */
#ifndef MTC_BPE_H
#define MTC_BPE_H

#include "data/dataset.h"
#include "tokenizer/tokenizer.h"

/* That of the origin, which reads such a text. `folder` as in MtcReading. */
int mtc_find_tokenizer(MtcFault *fault, const MtcModel *model, const MtcOrigin *origin, const char *folder,
                       MtcTokenizer **tokenizer);
/* What the tokenizer, a file of that name, is to the field from now on. */
void mtc_learn_tokenizer(const MtcTokenizer *tokenizer, const char *name, MtcMeaning *meaning);
/* A fault where it is not the one that was learned with; `name` is that of its file. */
int mtc_check_tokenizer(MtcFault *fault, const MtcMeaning *meaning, const MtcTokenizer *tokenizer, const char *name);
/* A text in the field's type; free *values. A fault: the tokenizer has more tokens than the field has classes. */
int mtc_encode_pieces(MtcFault *fault, const MtcField *field, const MtcTokenizer *tokenizer, const MtcOrigin *origin,
                      const uint8_t *text, size_t size, void **values, int64_t *count);

#endif
