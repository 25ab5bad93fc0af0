/* Tokens and what they stand for: of the field class[V][L] of a model whose examples are windows of a text or of tokens. */
#ifndef MTC_VOCABULARY_H
#define MTC_VOCABULARY_H

#include "data/dataset.h"

/* CHARACTERS: the classes of the training text's characters, in the order of their code points. BYTES: token b is the byte
 * b. NUMBERS: what tokens stand for is not known here. PIECES: byte pairs, of the tokenizer that the model names (bpe.h). */
typedef enum MtcLevel { MTC_LEVEL_CHARACTERS, MTC_LEVEL_BYTES, MTC_LEVEL_NUMBERS, MTC_LEVEL_PIECES } MtcLevel;

typedef struct MtcVocabulary {
    MtcLevel level;
    int field;         /* row of model->field */
    int tokens;        /* in use: 0 to tokens - 1, of the field's classes */
    char *const *word; /* CHARACTERS: each token's, UTF-8, sorted; they are the encoding's */
} MtcVocabulary;

/* mtc_vocabulary_of (source.h), of a model whose tokens are at that level. */
int mtc_vocabulary_at(MtcFault *fault, const MtcModel *model, MtcLevel level, const MtcEncoding *encoding,
                      MtcVocabulary *vocabulary);

/* Text as tokens; free *token. `name` is what messages call the text: a file, "--prompt". CHARACTERS: a character that the
 * vocabulary lacks, and bytes that are no UTF-8, are a fault with line and column. NUMBERS: the text is whole numbers with
 * spaces, commas or line ends between. An empty text has no tokens. */
int mtc_encode_text(MtcFault *fault, const MtcVocabulary *vocabulary, const char *name, const char *text, size_t size,
                    int32_t **token, int64_t *count);
/* A token as text: so many bytes, not terminated. A number is followed by a space; a token of CHARACTERS or BYTES that
 * stands for nothing (the field has more classes than are in use) is U+FFFD. Bytes of one character come one by one. */
enum { MTC_TOKEN_BYTES = 16 };
size_t mtc_decode_token(const MtcVocabulary *vocabulary, int32_t token, char bytes[MTC_TOKEN_BYTES]);

/* ---- characters ---- */

/* A character as messages show it: escaped where it would not be seen. Words of several characters are themselves. In one of
 * four buffers of the thread. */
const char *mtc_visible(const char *word);
/* The distinct characters of a text, sorted. A fault: it is not UTF-8, or has more of them than the field has classes. */
int mtc_learn_characters(MtcFault *fault, const MtcField *field, const char *name, const char *text, size_t size,
                         MtcMeaning *meaning);
/* The characters of a text as the field has them; free *values. */
int mtc_encode_characters(MtcFault *fault, const MtcField *field, const MtcVocabulary *vocabulary, const char *name,
                          const char *text, size_t size, void **values, int64_t *count);

#endif
