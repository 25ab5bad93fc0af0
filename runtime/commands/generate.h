/* Text from a trained language model, token by token. */
#ifndef MTC_GENERATE_H
#define MTC_GENERATE_H

#include "data/vocabulary.h"
#include "session/session.h"
#include "tokenizer/tokenizer.h"

/* A token drawn with the probabilities softmax(scores / temperature): the `draw`-th of its seed. -1: a score is NaN or
 * positive infinity, or all are negative infinity. */
int64_t mtc_sample(const MtcSampling *sampling, const double *scores, int64_t count, uint64_t draw);

/* Tokens one after the other, in one session. */
typedef struct MtcGenerator {
    MtcSession *session;
    MtcVocabulary vocabulary;
    const MtcTokenizer *tokenizer; /* what numbers stand for; NULL: the vocabulary says */
    MtcTokenizer *own; /* that of the model, which nobody else frees; NULL: it has none, or another was given */
    MtcSampling sampling;
    int64_t position; /* tokens that the cache has */
    int32_t *token;   /* all, from the prompt on */
    int64_t count, capacity, prompt;
    float *prediction; /* of the token after the last */
    double *scores;
} MtcGenerator;

/* With the words of the tokenizer, which outlives the generator, or, where it is NULL, of the session's vocabulary. The prompt is text
 * as the tokenizer or mtc_encode_text takes it; NULL or "": text begins behind a line end. Faults are the session's. */
int mtc_generator_open(MtcGenerator *generator, MtcSession *session, const MtcTokenizer *tokenizer,
                       const MtcSampling *sampling, const char *prompt);
/* Draws the next token, and appends it. A model that has seen as much as its context holds goes on from the last half. */
int mtc_generator_next(MtcGenerator *generator);
void mtc_generator_close(MtcGenerator *generator);
/* A fault where the session's model generates no text, or none from this prompt. */
int mtc_generator_check(MtcSession *session, const char *prompt);

/* mtc_generate's text on stdout, and a line end, if the text has none. */
int mtc_print_generated(MtcSession *session, const MtcTokenizer *tokenizer, const MtcSampling *sampling,
                        const char *prompt, int64_t tokens);

#endif
