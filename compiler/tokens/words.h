/* The words of texts, and how often each is met. */
#ifndef MTC_TOKENS_WORDS_H
#define MTC_TOKENS_WORDS_H

#include "runtime/tokenizer/split.h"

typedef struct CountedWord {
    size_t begin, size; /* of its bytes */
    int64_t count;
} CountedWord;

typedef struct CountedWords {
    uint8_t *bytes; /* of all of them, one word behind the other */
    size_t used, room;
    CountedWord *at;
    size_t count, capacity;
    size_t *row; /* hash table: 1 + place in `at`; 0: an empty row */
    size_t rows; /* a power of two */
} CountedWords;

/* Adds those of a text. All zeros: none yet. */
void words_count(CountedWords *words, const MtcPattern *pattern, const uint8_t *classes, const uint8_t *text,
                 size_t size);
void words_free(CountedWords *words);

#endif
