/* Text from a trained language model, token by token. */
#ifndef MTC_GENERATE_H
#define MTC_GENERATE_H

#include "session.h"
#include "vocabulary.h"

/* How the next token is drawn from what the model says of it. */
typedef struct MtcSampling {
    double temperature; /* scores are divided by it; 0: the token of the highest score */
    int64_t top_k;      /* only the so many highest; 0: all */
    double top_p;       /* of those, only the highest that together have this probability; 1: all */
    uint64_t seed;
} MtcSampling;

/* A token drawn with the probabilities softmax(scores / temperature): the `draw`-th of its seed. -1: a score is NaN or
 * positive infinity, or all are negative infinity. */
int64_t mtc_sample(const MtcSampling *sampling, const double *scores, int64_t count, uint64_t draw);

/* Tokens one after the other, in one session. */
typedef struct MtcGenerator {
    MtcSession *session;
    MtcVocabulary vocabulary;
    MtcSampling sampling;
    int64_t position; /* tokens that the cache has */
    int32_t *token;   /* all, from the prompt on */
    int64_t count, capacity, prompt;
    float *prediction; /* of the token after the last */
    double *scores;
} MtcGenerator;

/* With the words of the session's vocabulary. The prompt is text as mtc_encode_text takes it; NULL or "": text begins behind
 * a line end. Faults are the session's. */
int mtc_generator_open(MtcGenerator *generator, MtcSession *session, const MtcSampling *sampling, const char *prompt);
/* Draws the next token, and appends it. A model that has seen as much as its context holds goes on from the last half. */
int mtc_generator_next(MtcGenerator *generator);
void mtc_generator_close(MtcGenerator *generator);
/* A fault where the session's model generates no text, or none from this prompt. */
int mtc_generator_check(MtcSession *session, const char *prompt);

/* The text of tokens on stdout as they come; bytes that begin a character wait for its others. */
typedef struct MtcPrinter {
    const MtcVocabulary *vocabulary;
    char pending[8];
    size_t waiting;
    bool line_ended;
} MtcPrinter;
void mtc_print_token(MtcPrinter *printer, int32_t token);
void mtc_print_end(MtcPrinter *printer); /* and a line end, if the text has none */

/* The prompt, and as many tokens after it. */
int mtc_print_generated(MtcSession *session, const MtcSampling *sampling, const char *prompt, int64_t tokens);

#endif
