/* Byte-pair encoding: a text as tokens, and back.
 *
 *     text -> parts between added tokens -> words (split.h) -> bytes, of which neighbours are merged: tokens
 *
 * Each of the 256 bytes is a token, so that any bytes can be encoded, and decoded to the same bytes. */
#ifndef MTC_TOKENIZER_H
#define MTC_TOKENIZER_H

#include "base/common.h"

typedef struct MtcTokenizer MtcTokenizer;
enum { MTC_MOST_TOKENS = 1 << 22 }; /* every number is below that */

/* tokenizer.json of the package tokenizers; or vocab.json of GPT-2, with the merges.txt beside it. What stands there and would
 * make other tokens than ours is a fault, which says where. */
int mtc_tokenizer_open(MtcFault *fault, const char *path, MtcTokenizer **tokenizer);
void mtc_tokenizer_free(MtcTokenizer *tokenizer);         /* NULL: nothing */
int mtc_tokenizer_classes(const MtcTokenizer *tokenizer); /* every token is below that */
/* What it makes of texts, in a number: two that have one make the same tokens, however their files are written. */
uint64_t mtc_tokenizer_digest(const MtcTokenizer *tokenizer);
/* The bytes of a token; none: nothing has this number. */
const uint8_t *mtc_tokenizer_bytes(const MtcTokenizer *tokenizer, int32_t token, size_t *size);

typedef struct MtcTokenList {
    int32_t *at;
    size_t count, capacity;
} MtcTokenList;

/* Encodes, and remembers the words that it has seen: one for each thread. */
typedef struct MtcEncoder MtcEncoder;
MtcEncoder *mtc_encoder_new(const MtcTokenizer *tokenizer);
void mtc_encoder_free(MtcEncoder *encoder); /* NULL: nothing */

/* Adds the tokens of a text of less than 2 GB; a byte that is no UTF-8 is a character that is neither letter, number nor space. */
void mtc_encode(MtcEncoder *encoder, const uint8_t *text, size_t size, MtcTokenList *tokens);

/* The first place from `from` on, and below `most`, where the text may be cut: its halves have the same tokens as the whole.
 * `most`: there is none. */
size_t mtc_tokenizer_cut(const MtcTokenizer *tokenizer, const uint8_t *text, size_t size, size_t from, size_t most);

#endif
