/* A text into words: what the pattern of a tokenizer takes, one match after the other. No token reaches across two words. */
#ifndef MTC_SPLIT_H
#define MTC_SPLIT_H

#include "tokenizer/unicode.h"

typedef struct MtcPattern MtcPattern;
struct MtcPattern {
    const char *name, *regex; /* regex: as tokenizer.json writes it */
    int most_digits;          /* of a word; 0: any number */
    bool
        lines; /* the words of Llama 3: line ends stay with what is before them, and one character may begin a word of letters */
};

extern const MtcPattern mtc_gpt2_pattern;
/* NULL: none that is known. */
const MtcPattern *mtc_pattern_of(const char *regex);
const char *mtc_pattern_names(void); /* "that of GPT-2 and that of Llama 3" */

/* The end of the word that begins at `text`; some bytes come before `end`. */
const uint8_t *mtc_word_end(const MtcPattern *pattern, const uint8_t *classes, const uint8_t *text, const uint8_t *end);
/* Does a word end at `text`, whatever stands further away on either side? Both sides have bytes. */
bool mtc_words_end(const MtcPattern *pattern, const uint8_t *classes, const uint8_t *begin, const uint8_t *text,
                   const uint8_t *end);

#endif
