/* Texts that go on from a prompt, piece by piece. */
#include "commands/generate.h"
#include "data/bpe.h"
#include "data/source.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- text and tokens ---- */

/* A number that is nobody's is U+FFFD, as it is without a tokenizer. */
const char *mtc_wording_bytes(const MtcWording *wording, int32_t token, char room[MTC_TOKEN_BYTES], size_t *count) {
    if (!wording->tokenizer) {
        *count = mtc_decode_token(&wording->vocabulary, token, room);
        return room;
    }
    const bool known = token < mtc_tokenizer_classes(wording->tokenizer);
    const uint8_t *bytes = known ? mtc_tokenizer_bytes(wording->tokenizer, token, count) : NULL;
    if (bytes)
        return (const char *)bytes;
    *count = (size_t)snprintf(room, MTC_TOKEN_BYTES, "\xEF\xBF\xBD");
    return room;
}

/* That which the model names. */
static int find_own_tokenizer(MtcGenerator *g) {
    MtcSession *session = g->decoder.session;
    int code = mtc_find_tokenizer(&session->fault, session->model, mtc_windows_origin(session->model), session->folder,
                                  &g->wording.own);
    if (code && session->program)
        mtc_note(&session->fault, "of generate, --tokenizer FILE says where it is");
    g->wording.tokenizer = g->wording.own;
    return code;
}

/* It is that of the weights. */
static int check_learned(MtcGenerator *g) {
    MtcSession *session = g->decoder.session;
    MtcWording *wording = &g->wording;
    const int classes = mtc_tokenizer_classes(wording->tokenizer);
    if (classes < wording->vocabulary.tokens)
        wording->vocabulary.tokens = classes; /* the model's further classes are nobody's */
    return mtc_check_tokenizer(&session->fault, &session->encoding.field[wording->vocabulary.field], wording->tokenizer,
                               wording->own ? mtc_windows_origin(session->model)->path[1] : "--tokenizer");
}

/* Whose numbers the model has. */
static int check_tokenizer(MtcFault *fault, const MtcVocabulary *vocabulary, const MtcTokenizer *tokenizer) {
    if (vocabulary->level != MTC_LEVEL_NUMBERS && vocabulary->level != MTC_LEVEL_PIECES)
        return mtc_fail(fault, MTC_USAGE,
                        "--tokenizer says what tokens are that come as numbers, tokens(...); this model's are %s",
                        vocabulary->level == MTC_LEVEL_BYTES ? "bytes" : "characters");
    if (mtc_tokenizer_classes(tokenizer) > vocabulary->tokens)
        return mtc_fail(fault, MTC_USAGE, "--tokenizer has the tokens 0 to %d, this model 0 to %d: it learned others",
                        mtc_tokenizer_classes(tokenizer) - 1, vocabulary->tokens - 1);
    return 0;
}

/* The words are the session's, and may be others after a call that loads weights. */
static int open_wording(MtcGenerator *g) {
    MtcFault *fault = &g->decoder.session->fault;
    MtcWording *wording = &g->wording;
    int code = mtc_vocabulary_of(fault, g->decoder.session->model, &g->decoder.session->encoding, &wording->vocabulary);
    const bool pieces = wording->vocabulary.level == MTC_LEVEL_PIECES;
    if (!code && !wording->tokenizer && pieces)
        code = find_own_tokenizer(g);
    if (!code && wording->tokenizer)
        code = check_tokenizer(fault, &wording->vocabulary, wording->tokenizer);
    return code || !pieces ? code : check_learned(g);
}

/* ---- the prompt ---- */

static void add_encoded(MtcGenerator *g, const char *text, size_t length) {
    MtcTokenList tokens = {NULL, 0, 0};
    MtcEncoder *encoder = mtc_encoder_new(g->wording.tokenizer);
    mtc_encode(encoder, (const uint8_t *)text, length, &tokens);
    mtc_encoder_free(encoder);
    for (size_t i = 0; i < tokens.count; i++)
        mtc_sequence_add(&g->prompt, tokens.at[i], INT32_MAX);
    free(tokens.at);
}

static int add_prompt(MtcGenerator *g, const char *prompt, size_t length) {
    MtcSession *session = g->decoder.session;
    const MtcVocabulary *vocabulary = &g->wording.vocabulary;
    int32_t *token = NULL;
    int64_t count = 0;
    if (g->wording.tokenizer) {
        add_encoded(g, prompt, length);
        return 0;
    }
    int code = mtc_encode_text(&session->fault, vocabulary, "prompt", prompt, length, &token, &count);
    for (int64_t i = 0; i < count && !code; i++)
        mtc_sequence_add(&g->prompt, token[i], INT32_MAX);
    free(token);
    if (code && vocabulary->level == MTC_LEVEL_NUMBERS && session->program)
        mtc_note(&session->fault, "a prompt of text needs its tokenizer: of generate, --tokenizer FILE");
    return code;
}

/* Behind a line end, where the vocabulary has one. */
static int begin_without_prompt(MtcGenerator *g) {
    MtcFault *fault = &g->decoder.session->fault, before = *fault;
    const bool numbers = g->wording.vocabulary.level == MTC_LEVEL_NUMBERS && !g->wording.tokenizer;
    if (!numbers && add_prompt(g, "\n", 1) == 0) {
        g->hidden = g->prompt.token.count;
        return 0;
    }
    *fault = before;
    if (!g->decoder.session->program)
        return mtc_fail(fault, MTC_USAGE, "this model needs a beginning: a prompt%s",
                        numbers ? ", of numbers with spaces between" : "");
    return mtc_fail(fault, MTC_USAGE, "this model needs a beginning: --prompt (in training --sample-prompt) %s",
                    numbers ? "\"17 4 ...\"" : "TEXT");
}

static int read_prompt(MtcGenerator *g, const char *prompt) {
    int64_t context = g->decoder.session->model->context;
    int code = prompt ? add_prompt(g, prompt, strlen(prompt)) : 0;
    if (!code && (int64_t)g->prompt.token.count > context)
        return mtc_fail(&g->decoder.session->fault, MTC_USAGE,
                        "the prompt has %lld tokens, the model sees %lld at most", (long long)g->prompt.token.count,
                        (long long)context);
    code = code || g->prompt.token.count ? code : begin_without_prompt(g);
    g->prompt.given = code ? 0 : g->prompt.token.count - 1;
    return code;
}

/* ---- stops ---- */

/* As the vocabulary writes it: a character that it lacks would never come. */
static int take_stop(MtcGenerator *g, const char *text, MtcText *stop) {
    const MtcVocabulary *vocabulary = &g->wording.vocabulary;
    char room[MTC_TOKEN_BYTES];
    int32_t *token = NULL;
    int64_t count = 0;
    if (g->wording.tokenizer) {
        mtc_text_add(stop, "%s", text);
        return 0;
    }
    int code = mtc_encode_text(&g->decoder.session->fault, vocabulary, "stop", text, strlen(text), &token, &count);
    for (int64_t i = 0; i < count && !code; i++)
        mtc_text_add(stop, "%.*s", (int)mtc_decode_token(vocabulary, token[i], room), room);
    free(token);
    return code;
}

static int take_stops(MtcGenerator *g, const MtcGeneration *how) {
    MtcStops *stops = &g->stops;
    int code = 0;
    stops->text = (MtcText *)mtc_zeroed((size_t)how->stops * sizeof *stops->text);
    stops->words = !g->wording.tokenizer && g->wording.vocabulary.level == MTC_LEVEL_NUMBERS;
    for (; stops->count < how->stops && !code; stops->count++) {
        MtcText *stop = &stops->text[stops->count];
        code = take_stop(g, how->stop[stops->count], stop);
        if (!code && !stop->length)
            code = mtc_fail(&g->decoder.session->fault, MTC_USAGE, "a stop is a text that is not empty");
        stops->longest = stop->length > stops->longest ? stop->length : stops->longest;
    }
    return code;
}

/* ---- settings ---- */

MtcGeneration mtc_drawn_text(const char *prompt, int64_t tokens, uint64_t seed) {
    return (MtcGeneration){{1, 1, 0, 1, 0, seed}, prompt, tokens, 1, 1, 0, NULL};
}

/* "--top-p" of a program, whose flags have dashes. */
static const char *setting(bool program, const char *name) {
    static __thread char flag[32];
    snprintf(flag, sizeof flag, "%s%s", program ? "--" : "", name);
    for (char *c = flag; program && *c; c++)
        *c = *c == '_' ? '-' : *c;
    return flag;
}

static int check_counts(MtcFault *fault, const MtcGeneration *how, bool program) {
    const MtcSampling *s = &how->sampling;
    if (how->beams < 1 || how->batch < 1) /* flags cannot say so, nor that top_k is below 0 */
        return mtc_fail(fault, MTC_USAGE, "beams and batch are at least 1, not %lld and %lld", (long long)how->beams,
                        (long long)how->batch);
    if (s->top_k < 0)
        return mtc_fail(fault, MTC_USAGE, "top_k is at least 0, not %lld", (long long)s->top_k);
    if (how->beams > 1 && (s->top_k || s->top_p < 1 || s->min_p > 0 || (s->temperature != 1 && s->temperature != 0)))
        return mtc_fail(fault, MTC_USAGE, "%s draws nothing: it goes without temperature, top-k, top-p and min-p",
                        setting(program, "beams"));
    if (how->beams > 1 && how->batch > how->beams)
        return mtc_fail(fault, MTC_USAGE, "%s: the %lld best of %lld beams are asked for", setting(program, "batch"),
                        (long long)how->batch, (long long)how->beams);
    return 0;
}

int mtc_generation_check(MtcFault *fault, const MtcGeneration *how, bool program) {
    const MtcSampling *s = &how->sampling;
    const char *temperature = "temperature";
    if (!(s->temperature >= 0))
        return mtc_fail(fault, MTC_USAGE, "%s is at least 0, not %g", setting(program, temperature), s->temperature);
    if (isinf(s->temperature)) /* minus infinity divided by it is no number */
        return mtc_fail(fault, MTC_USAGE, "%s is finite, not %g", setting(program, temperature), s->temperature);
    if (!(s->top_p > 0 && s->top_p <= 1))
        return mtc_fail(fault, MTC_USAGE, "%s is above 0 and at most 1, not %g", setting(program, "top_p"), s->top_p);
    if (!(s->min_p >= 0 && s->min_p <= 1))
        return mtc_fail(fault, MTC_USAGE, "%s is from 0 to 1, not %g", setting(program, "min_p"), s->min_p);
    if (!(s->repetition_penalty > 0 && isfinite(s->repetition_penalty))) /* 0 times minus infinity is no number */
        return mtc_fail(fault, MTC_USAGE, "%s is above 0 and finite, not %g", setting(program, "repetition_penalty"),
                        s->repetition_penalty);
    return check_counts(fault, how, program);
}

/* ---- texts ---- */

int mtc_not_finite(MtcGenerator *g, size_t token) {
    return mtc_fail(&g->decoder.session->fault, MTC_BAD_DATA,
                    "the scores of token %lld are not finite: the weights have diverged or are damaged",
                    (long long)token);
}

static int take_token(MtcGenerator *g, int64_t token) {
    if (token < 0)
        return mtc_not_finite(g, g->sequence.token.count);
    mtc_sequence_add(&g->sequence, (int32_t)token, g->decoder.session->model->context);
    return 0;
}

/* So many at a time that the host's share of a token is little, and few are in vain where a text stops. */
static int draw_ahead(MtcGenerator *g) {
    enum { AT_A_TIME = 32 };
    const size_t most = g->prompt.token.count + (size_t)g->tokens - g->sequence.token.count;
    const MtcDraws draws = {&g->sampling, g->wording.vocabulary.tokens, g->text};
    if (!g->ahead.at)
        g->ahead.at = (int32_t *)mtc_zeroed(AT_A_TIME * sizeof *g->ahead.at);
    g->ahead.capacity = most < AT_A_TIME ? most : AT_A_TIME;
    g->next = 0;
    return mtc_decoder_draw(&g->decoder, &g->sequence, &draws, &g->ahead);
}

static int draw_on_device(MtcGenerator *g) {
    int code = g->next < g->ahead.count ? 0 : draw_ahead(g);
    return code ? code : take_token(g, g->ahead.at[g->next++]);
}

/* Tokens that no data had, behind those in use, are never drawn. */
static int draw_here(MtcGenerator *g) {
    const MtcTokenList *list = &g->sequence.token;
    const int64_t count = g->wording.vocabulary.tokens;
    int code = mtc_decoder_predict(&g->decoder, &g->sequence);
    if (code)
        return code;
    mtc_scores(g->decoder.prediction, count, g->scores);
    mtc_penalize(g->sampling.repetition_penalty, list->at, list->count, g->scores, count);
    return take_token(g, mtc_sample(&g->sampling, g->scores, count, (uint64_t)list->count, (uint64_t)g->text));
}

static int draw_token(MtcGenerator *g) {
    if (g->together)
        return mtc_texts_go_on(g->together, g->text, &g->sequence);
    return mtc_decoder_draws(&g->decoder, &g->sampling) ? draw_on_device(g) : draw_here(g);
}

/* What was drawn ahead belongs to the text that ends, or to weights that may be others now. */
static void drop_ahead(MtcGenerator *g) {
    g->ahead.count = g->next = 0;
}

static void begin_text(MtcGenerator *g, int64_t text) {
    free(g->sequence.token.at);
    free(g->made.text.at);
    memset(&g->sequence, 0, sizeof g->sequence);
    memset(&g->made, 0, sizeof g->made);
    drop_ahead(g);
    g->text = text;
    g->told = g->hidden;
    if (text < g->texts)
        mtc_sequence_copy(&g->sequence, g->found ? &g->found[text] : &g->prompt);
}

static void give_known(MtcGenerator *g, MtcPiece *piece, int32_t token) {
    const size_t from = g->made.given;
    g->made.given = g->made.known;
    *piece = (MtcPiece){g->text, token, g->made.text.at + from, g->made.known - from};
}

/* The next of the tokens that are there. */
static void tell_token(MtcGenerator *g, MtcPiece *piece) {
    const int32_t token = g->sequence.token.at[g->told++];
    size_t count;
    const char *bytes = mtc_wording_bytes(&g->wording, token, g->room, &count);
    if (g->told <= g->prompt.token.count) {
        *piece = (MtcPiece){g->text, token, bytes, count};
        return;
    }
    g->drawn++;
    mtc_made_add(&g->made, &g->stops, bytes, count);
    give_known(g, piece, token);
}

/* Those of a search, all before the first is told. */
static int begin_texts(MtcGenerator *g) {
    int code = g->beams > 1 ? mtc_search_beams(g) : 0;
    if (!code && g->beams == 1 && g->texts > 1 && g->decoder.session->model->texts)
        g->together = mtc_texts_new(g);
    if (!code)
        begin_text(g, 0);
    return code;
}

static int next_piece(void *context) {
    MtcGenerator *g = (MtcGenerator *)((void **)context)[0];
    MtcPiece *piece = (MtcPiece *)((void **)context)[1];
    int code = g->sequence.token.count || g->text ? 0 : begin_texts(g);
    while (!code && g->text < g->texts) {
        const size_t most = g->prompt.token.count + (size_t)g->tokens;
        if (g->told == g->sequence.token.count && !g->found && !g->made.stopped && g->told < most)
            code = draw_token(g);
        if (!code && g->told < g->sequence.token.count) {
            tell_token(g, piece);
            return 0;
        }
        mtc_made_end(&g->made);
        if (!code && g->made.given < g->made.known) {
            give_known(g, piece, -1);
            return 0;
        }
        if (!code)
            begin_text(g, g->text + 1);
    }
    return code;
}

int mtc_generator_next(MtcGenerator *g, MtcPiece *piece) {
    void *context[] = {g, piece};
    bool kept;
    *piece = (MtcPiece){-1, -1, NULL, 0};
    int code = mtc_decoder_enter(&g->decoder, &kept);
    if (!kept)
        drop_ahead(g);
    if (!kept && g->together)
        mtc_texts_forget(g->together);
    if (!code && !kept)
        code = open_wording(g);
    return code ? code : mtc_guard(&g->decoder.session->fault, next_piece, context);
}

/* ---- beginning and end ---- */

typedef struct Opening {
    MtcSession *session;
    const MtcTokenizer *tokenizer;
    const MtcGeneration *how;
    MtcGenerator *generator;
} Opening;

static int open_generator(void *context) {
    Opening *opening = (Opening *)context;
    MtcGenerator *g = opening->generator = (MtcGenerator *)mtc_zeroed(sizeof *g);
    const MtcGeneration *how = opening->how;
    bool kept;
    mtc_decoder_open(&g->decoder, opening->session);
    g->wording.tokenizer = opening->tokenizer;
    g->sampling = how->sampling;
    g->tokens = how->tokens;
    g->texts = how->batch;
    g->beams = how->beams;
    g->scores = (double *)mtc_zeroed((size_t)opening->session->model->vocabulary * sizeof *g->scores);
    int code = mtc_decoder_enter(&g->decoder, &kept);
    code = code ? code : open_wording(g);
    code = code ? code : read_prompt(g, how->prompt);
    return code ? code : take_stops(g, how);
}

int mtc_generator_open(MtcSession *session, const MtcTokenizer *tokenizer, const MtcGeneration *how,
                       MtcGenerator **generator) {
    Opening opening = {session, tokenizer, how, NULL};
    int code = session->model->decode ? 0 : mtc_generates_nothing(&session->fault, session->model);
    if (!code)
        code = mtc_generation_check(&session->fault, how, session->program != NULL);
    if (!code)
        code = mtc_guard(&session->fault, open_generator, &opening);
    if (code)
        mtc_generator_free(opening.generator);
    *generator = code ? NULL : opening.generator;
    return code;
}

int mtc_generator_new(MtcSession *session, const MtcGeneration *how, MtcGenerator **generator) {
    *generator = NULL;
    int code = mtc_enter(session);
    return code ? code : mtc_generator_open(session, NULL, how, generator);
}

void mtc_generator_free(MtcGenerator *g) {
    if (!g)
        return;
    for (int64_t n = 0; g->found && n < g->texts; n++)
        free(g->found[n].token.at);
    for (int i = 0; i < g->stops.count; i++)
        free(g->stops.text[i].at);
    mtc_texts_free(g->together);
    mtc_decoder_close(&g->decoder);
    mtc_tokenizer_free(g->wording.own);
    free(g->found);
    free(g->stops.text);
    free(g->prompt.token.at);
    free(g->sequence.token.at);
    free(g->ahead.at);
    free(g->made.text.at);
    free(g->scores);
    free(g);
}

int mtc_generate(MtcSession *session, const MtcGeneration *how, MtcPieceTaker take, void *user) {
    MtcGenerator *generator;
    MtcPiece piece;
    int code = mtc_generator_new(session, how, &generator);
    for (bool enough = false; !code && !enough;) {
        code = mtc_generator_next(generator, &piece);
        enough = code || piece.text < 0 || take(user, &piece);
    }
    mtc_generator_free(generator);
    return code;
}
