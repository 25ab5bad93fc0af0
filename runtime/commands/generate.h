/* Text from a trained language model, token by token.
 *
 *     prompt -> tokens -> decode.c: what the model says of the next one -> sample.c draws it, or beams.c searches for many
 *            -> generator.c: the tokens' text, up to a stop (stop.c) -> whoever called; generate.c prints it */
#ifndef MTC_GENERATE_H
#define MTC_GENERATE_H

#include "data/vocabulary.h"
#include "session/session.h"
#include "tokenizer/tokenizer.h"

/* ---- the choice of a token ---- */

/* Multiplies the scores of the tokens that are among `token`, each once. */
void mtc_penalize(double penalty, const int32_t *token, size_t tokens, double *scores, int64_t count);
/* Of so many tokens not all may be drawn. */
bool mtc_filters(const MtcSampling *sampling, int64_t count);
/* A token drawn with the probabilities softmax(scores / temperature): the `draw`-th of that text of the seed. -1: a score is NaN or
 * positive infinity, or all are negative infinity. */
int64_t mtc_sample(const MtcSampling *sampling, const double *scores, int64_t count, uint64_t draw, uint64_t text);

/* ---- what the model says ---- */

/* The tokens of a text. From `begin` on they are in the window that the model sees: as many as its context, and where one more
 * comes, the last half. Keys and values know the positions that they were computed at, and cannot move. The first `given` tokens of the
 * window were there when it began, before one more was asked for. */
typedef struct MtcSequence {
    MtcTokenList token;
    size_t begin, given;
} MtcSequence;
void mtc_sequence_add(MtcSequence *sequence, int32_t token, int64_t context);
void mtc_sequence_copy(MtcSequence *to, const MtcSequence *from); /* `to` gets memory of its own, and frees none */

/* A session's cache of keys and values, and what is in it. */
typedef struct MtcDecoder {
    MtcSession *session;
    int32_t *cached; /* the tokens at the positions [0, position) */
    int64_t position;
    int64_t at_once;   /* the first so many were read by the model's prefill, those behind one after the other */
    bool made;         /* what decoding computes of weights alone is there, which lasts until another program has run */
    float *prediction; /* of the token that follows the last sequence */
    int64_t calls, step; /* of the session when the cache was last seen: then nobody else has been there since */
    char *room;          /* of the device, for draws there; NULL: none was made */
} MtcDecoder;
void mtc_decoder_open(MtcDecoder *decoder, MtcSession *session);
void mtc_decoder_close(MtcDecoder *decoder);
/* What a call of the C ABI begins with. *kept: the cache is as it was left. */
int mtc_decoder_enter(MtcDecoder *decoder, bool *kept);
/* The prediction of the token after a sequence, which has one at least. Of the cache, what begins the sequence stays. */
int mtc_decoder_predict(MtcDecoder *decoder, const MtcSequence *sequence);
/* What a token is drawn for. */
typedef struct MtcDraws {
    const MtcSampling *sampling;
    int64_t tokens; /* of the vocabulary that may be drawn, the first ones */
    int64_t text;
} MtcDraws;
/* The model's own functions draw so. */
bool mtc_decoder_draws(const MtcDecoder *decoder, const MtcSampling *sampling);
/* Tokens after a sequence, drawn where they are decoded, as many as `drawn` has room for and the window has positions; -1: of the token
 * there, the scores are none. The cache has all but the last. */
int mtc_decoder_draw(MtcDecoder *decoder, const MtcSequence *sequence, const MtcDraws *draws, MtcTokenList *drawn);
/* A prediction as `count` scores, logarithms of probabilities that have the sum 1. */
void mtc_scores(const float *prediction, int64_t count, double *scores);
/* What decoding needs of all tokens of a sequence but the last, for a text of several. */
int mtc_decoder_fill_text(MtcDecoder *decoder, const MtcSequence *sequence, int64_t text);
int64_t mtc_drawing_tiles(const MtcModel *model);
/* A fault: the session's model generates no text. */
int mtc_generates_nothing(MtcFault *fault, const MtcModel *model);

/* ---- where a text ends ---- */

typedef struct MtcStops {
    int count;
    MtcText *text;
    size_t longest; /* bytes */
    bool words;     /* what ends at a space begins behind one: numbers, each with a space behind it */
} MtcStops;

/* The text that is made, of which [given, known) can be told; what follows may be the beginning of a stop. */
typedef struct MtcMade {
    MtcText text;
    size_t given, known;
    bool stopped; /* the text ends at `known` */
} MtcMade;
void mtc_made_add(MtcMade *made, const MtcStops *stops, const char *bytes, size_t count);
void mtc_made_end(MtcMade *made); /* nothing follows: all of it is known */

/* ---- texts ---- */

/* What tokens stand for. */
typedef struct MtcWording {
    MtcVocabulary vocabulary;
    const MtcTokenizer *tokenizer; /* what numbers stand for; NULL: the vocabulary says */
    MtcTokenizer *own; /* that of the model, which nobody else frees; NULL: it has none, or another was given */
} MtcWording;
/* The bytes of a token, which may be in `room`. */
const char *mtc_wording_bytes(const MtcWording *wording, int32_t token, char room[MTC_TOKEN_BYTES], size_t *count);

/* Texts that are drawn together. */
typedef struct MtcTexts MtcTexts;

struct MtcGenerator {
    MtcDecoder decoder;
    MtcWording wording;
    MtcStops stops;
    MtcSampling sampling;
    int64_t tokens, texts, beams;
    MtcSequence prompt;
    size_t hidden; /* of its tokens: a line end in place of a prompt */
    double *scores;
    /* where it stands */
    int64_t text;
    MtcSequence sequence;
    MtcTokenList ahead; /* tokens of the text that were drawn, from `next` on not in the sequence */
    size_t next;
    size_t told; /* of its tokens */
    MtcMade made;
    int64_t drawn;      /* tokens of all texts */
    MtcSequence *found; /* `texts`, of a search; NULL: there was none */
    MtcTexts *together; /* NULL: each is drawn by itself */
    char room[MTC_TOKEN_BYTES];
};

/* mtc_generator_new with the words of the tokenizer, which outlives the generator, or, where it is NULL, of the session's vocabulary. */
int mtc_generator_open(MtcSession *session, const MtcTokenizer *tokenizer, const MtcGeneration *how,
                       MtcGenerator **generator);
/* One text, of which each token is drawn from all. */
MtcGeneration mtc_drawn_text(const char *prompt, int64_t tokens, uint64_t seed);
/* A fault where settings make no sense; of a program, it names flags. */
int mtc_generation_check(MtcFault *fault, const MtcGeneration *how, bool program);
/* A fault: of the token that would be that one, the scores are none. */
int mtc_not_finite(MtcGenerator *generator, size_t token);
/* The `texts` best of a beam search become generator->found. */
int mtc_search_beams(MtcGenerator *generator);
/* Those of the generator, which outlives them. Texts are told in their order: `text` gets tokens that it has beyond those of the sequence, of
 * which there are more. Other programs may have run in between: forget what the caches have. */
MtcTexts *mtc_texts_new(MtcGenerator *generator);
int mtc_texts_go_on(MtcTexts *texts, int64_t text, MtcSequence *sequence);
void mtc_texts_forget(MtcTexts *texts);
void mtc_texts_free(MtcTexts *texts);

/* A fault where the session's model generates no text, or none from this prompt. */
int mtc_generator_check(MtcSession *session, const char *prompt);
/* mtc_generate's texts on stdout, each with a line end, if it has none, and lines "---" between them. *drawn (may be NULL): how many tokens
 * were made. */
int mtc_print_generated(MtcSession *session, const MtcTokenizer *tokenizer, const MtcGeneration *how, int64_t *drawn);

#endif
