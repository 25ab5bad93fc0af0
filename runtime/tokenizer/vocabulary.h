/* What a tokenizer is made of: tokens by number and by bytes, pairs that merge, tokens that are looked for in the text. */
#ifndef MTC_TOKENIZER_VOCABULARY_H
#define MTC_TOKENIZER_VOCABULARY_H

#include "tokenizer/split.h"
#include "tokenizer/tokenizer.h"

enum { MTC_NO_TOKEN = -1 };

typedef struct MtcTokenBytes {
    const uint8_t *at; /* NULL: the number is nobody's */
    size_t size;
} MtcTokenBytes;

/* The pair becomes `merged`; the lower `rank`, the sooner. */
typedef struct MtcMerge {
    int32_t left, right, rank, merged; /* left MTC_NO_TOKEN: an empty row */
} MtcMerge;

typedef struct MtcAddedToken {
    const uint8_t *bytes;
    size_t size;
    int32_t token;
    bool late; /* looked for in what those that are not have left */
} MtcAddedToken;

struct MtcTokenizer {
    const MtcPattern *pattern;
    bool whole_words;     /* a word that is a token is that one, whatever merges make of it */
    uint8_t *classes;     /* of characters */
    int32_t count;        /* numbers: the highest and one */
    MtcTokenBytes *token; /* by number */
    int32_t byte[256];    /* their tokens */
    int32_t *by_bytes;    /* hash table: numbers of tokens of the vocabulary */
    MtcMerge *merge;      /* hash table */
    size_t words, merges; /* rows of the two tables, powers of two */
    MtcAddedToken *added; /* the longest first */
    int added_count;
    bool begins[2][256]; /* an added token that is not late, or is, begins with this byte */
    uint8_t *memory;     /* the bytes of all tokens */
};

/* Of so many merges. The token table has `count` rows, with bytes where a number is somebody's: by_bytes is made of them. */
void mtc_vocabulary_index(MtcTokenizer *tokenizer, size_t merges);
int32_t mtc_token_of(const MtcTokenizer *tokenizer, const uint8_t *bytes, size_t size); /* or MTC_NO_TOKEN */
/* The merge of a pair, or NULL. */
const MtcMerge *mtc_merge_of(const MtcTokenizer *tokenizer, int32_t left, int32_t right);
/* Adds one; false: the pair has one already, *found. */
bool mtc_merge_add(MtcTokenizer *tokenizer, MtcMerge merge, const MtcMerge **found);

/* Files write a byte as a printable character: itself where it is one, else U+0100 and on, in the order of the bytes. */
uint32_t mtc_byte_character(uint8_t byte);
/* Bytes of a text that is written so, in place; false: *at is a character that stands for none. Returns how many in *size. */
bool mtc_unwrite_bytes(uint8_t *text, size_t *size, const uint8_t **at);

#endif
