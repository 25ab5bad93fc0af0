/* What a language model says of the token after a sequence, by a cache of what it has seen. */
#include "commands/generate.h"
#include "session/library.h"
#include "session/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- one token through the model ---- */

int mtc_generates_nothing(MtcFault *fault, const MtcModel *model) {
    return mtc_fail(fault, MTC_USAGE, "%s generates no text: %s", model->name,
                    model->no_decode ? model->no_decode : "its data are not windows of tokens");
}

static const char *set_place(MtcSession *session, int64_t position, int32_t token) {
    const int64_t place[] = {position, token};
    return mtc_upload(session->clock + MTC_POSITION, place, sizeof place);
}

static int decode_token(MtcSession *session, int64_t position, int32_t token, bool begins, float *scores) {
    const MtcModel *model = session->model;
    MtcRun run = mtc_run(session, &session->batch, session->evaluation);
    run.begins = begins;
    const char *error = set_place(session, position, token);
    error = error ? error : mtc_model_decode(model, &run);
    if (!error && scores)
        error = mtc_download(scores, session->arena + model->scores_offset, (size_t)model->vocabulary * sizeof *scores);
    return mtc_device_fault(session, error, "generating");
}

int mtc_decode(MtcSession *session, int64_t position, int32_t token, float *scores) {
    const MtcModel *model = session->model;
    int code = mtc_enter(session);
    if (code)
        return code;
    if (!model->decode)
        return mtc_generates_nothing(&session->fault, model);
    if (position < 0 || position >= model->context || token < 0 || token >= model->vocabulary)
        return mtc_fail(&session->fault, MTC_USAGE,
                        "token %d at position %lld: there are %lld tokens and %lld positions", (int)token,
                        (long long)position, (long long)model->vocabulary, (long long)model->context);
    return decode_token(session, position, token, position == 0, scores);
}

/* ---- sequences ---- */

void mtc_sequence_add(MtcSequence *sequence, int32_t token, int64_t context) {
    MtcTokenList *list = &sequence->token;
    if (list->count == list->capacity) {
        list->capacity = list->capacity ? 2 * list->capacity : 256;
        list->at = (int32_t *)mtc_memory(list->at, list->capacity * sizeof *list->at);
    }
    list->at[list->count++] = token;
    if (list->count - sequence->begin > (size_t)context) {
        sequence->given = (size_t)context / 2;
        sequence->begin = list->count - 1 - sequence->given;
    }
}

void mtc_sequence_copy(MtcSequence *to, const MtcSequence *from) {
    *to = *from;
    to->token.capacity = from->token.count;
    to->token.at = (int32_t *)mtc_memory(NULL, from->token.count * sizeof *to->token.at);
    if (from->token.count)
        memcpy(to->token.at, from->token.at, from->token.count * sizeof *to->token.at);
}

/* ---- the cache ---- */

void mtc_decoder_open(MtcDecoder *decoder, MtcSession *session) {
    memset(decoder, 0, sizeof *decoder);
    decoder->session = session;
    decoder->cached = (int32_t *)mtc_zeroed((size_t)session->model->context * sizeof *decoder->cached);
    decoder->prediction = (float *)mtc_zeroed((size_t)session->model->vocabulary * sizeof *decoder->prediction);
}

void mtc_decoder_close(MtcDecoder *decoder) {
    free(decoder->cached);
    free(decoder->prediction);
    mtc_device_free(decoder->room);
}

/* Training calls functions of the caller's between its own launches, which are no calls: its steps tell. */
int mtc_decoder_enter(MtcDecoder *decoder, bool *kept) {
    MtcSession *session = decoder->session;
    *kept = decoder->calls == session->calls && decoder->step == session->at.step;
    int code = mtc_enter(session);
    decoder->calls = session->calls;
    decoder->step = session->at.step;
    if (!*kept) {
        decoder->position = 0;
        decoder->made = false;
    }
    return code;
}

static const int32_t *tokens_of_window(const MtcSequence *sequence, int64_t *count) {
    *count = (int64_t)(sequence->token.count - sequence->begin);
    return sequence->token.at + sequence->begin;
}

/* How many of the window's first tokens are read at once. Their keys have other last bits then: whatever the cache has, it depends on the
 * text alone. */
static int64_t read_at_once(const MtcModel *model, const MtcSequence *sequence) {
    const int64_t given = (int64_t)sequence->given;
    return model->prefill && given >= model->prefill_from ? given : 0;
}

/* Where what the cache has ends, of a sequence whose last token is decoded in any case. */
static int64_t cached_part(const MtcDecoder *decoder, const int32_t *token, int64_t count, int64_t at_once) {
    int64_t at = 0;
    while (at < decoder->position && at + 1 < count && decoder->cached[at] == token[at] &&
           (at < decoder->at_once) == (at < at_once))
        at++;
    return at;
}

/* So many tokens, and filler behind them. */
static int prefill_cache(MtcDecoder *decoder, const int32_t *token, int64_t count) {
    MtcSession *session = decoder->session;
    const MtcModel *model = session->model;
    const size_t bytes = (size_t)model->prompt_tokens * sizeof *token;
    int32_t *prompt = (int32_t *)mtc_zeroed(bytes);
    memcpy(prompt, token, (size_t)count * sizeof *token);
    memcpy(decoder->cached, token, (size_t)count * sizeof *token);
    MtcRun run = mtc_run(session, &session->batch, session->evaluation);
    const char *error = mtc_upload(session->arena + model->prompt_offset, prompt, bytes);
    error = error ? error : mtc_model_prefill(model, &run);
    free(prompt);
    decoder->made = false;
    return mtc_device_fault(session, error, "reading a prompt");
}

/* The tokens before `end`, so that the cache has them; the last one's prediction too, if it is before it. */
static int fill_cache(MtcDecoder *decoder, const MtcSequence *sequence, int64_t end) {
    int64_t count;
    const int32_t *token = tokens_of_window(sequence, &count);
    const int64_t at_once = read_at_once(decoder->session->model, sequence);
    int64_t at = cached_part(decoder, token, count, at_once);
    int code = at < at_once ? prefill_cache(decoder, token, at_once) : 0;
    for (at = at < at_once ? at_once : at; at < end && !code; at++) {
        decoder->cached[at] = token[at];
        code =
            decode_token(decoder->session, at, token[at], !decoder->made, at + 1 == count ? decoder->prediction : NULL);
        decoder->made = !code;
    }
    decoder->position = code ? 0 : at;
    decoder->at_once = at_once;
    return code;
}

int mtc_decoder_predict(MtcDecoder *decoder, const MtcSequence *sequence) {
    return fill_cache(decoder, sequence, (int64_t)(sequence->token.count - sequence->begin));
}

int mtc_decoder_fill_text(MtcDecoder *decoder, const MtcSequence *sequence, int64_t text) {
    MtcSession *session = decoder->session;
    const MtcModel *model = session->model;
    const int64_t positions = (int64_t)(sequence->token.count - sequence->begin) - 1;
    int code = fill_cache(decoder, sequence, positions);
    const char *error = NULL;
    for (int k = 0; k < model->caches && !code && !error; k++) {
        const MtcCache *cache = &model->cache[k];
        const size_t own = (size_t)text * (size_t)model->context * cache->row_bytes;
        error = mtc_copy(session->arena + cache->texts_offset + own, session->arena + cache->offset,
                         (size_t)positions * cache->row_bytes);
    }
    decoder->made = false; /* the program of the texts comes */
    return code ? code : mtc_device_fault(session, error, "generating");
}

/* ---- draws of the device ---- */

int64_t mtc_drawing_tiles(const MtcModel *model) {
    return (model->vocabulary + MTC_DRAWING_TILE - 1) / MTC_DRAWING_TILE;
}

bool mtc_decoder_draws(const MtcDecoder *decoder, const MtcSampling *sampling) {
    const MtcModel *model = decoder->session->model;
    return model->draw_tokens && mtc_drawing_tiles(model) <= MTC_DRAWING_TILES &&
           !mtc_filters(sampling, model->vocabulary);
}

static size_t weights_bytes(const MtcModel *model) {
    return mtc_drawing_bytes(model->vocabulary, mtc_drawing_tiles(model));
}

/* The weights, the tokens, and which of them the text has. */
static const char *make_room_for_draws(MtcDecoder *decoder) {
    const MtcModel *model = decoder->session->model;
    const size_t drawn = (size_t)model->context * sizeof(int32_t), seen = (size_t)model->vocabulary;
    return decoder->room ? NULL : mtc_device_alloc((void **)&decoder->room, weights_bytes(model) + drawn + seen);
}

static MtcDrawing drawing_of(const MtcDecoder *decoder, const MtcSequence *sequence, const MtcDraws *draws) {
    const MtcModel *model = decoder->session->model;
    const MtcSampling *sampling = draws->sampling;
    MtcDrawing drawing = {.repetition_penalty = sampling->repetition_penalty,
                          .temperature = sampling->temperature,
                          .seed = sampling->seed,
                          .text = (uint64_t)draws->text,
                          .vocabulary = model->vocabulary,
                          .tiles = mtc_drawing_tiles(model),
                          .tokens = draws->tokens,
                          .position = decoder->position,
                          .place = (int64_t)sequence->token.count,
                          .texts = 1};
    drawing.prediction = (const float *)(decoder->session->arena + model->scores_offset);
    drawing.weight = (double *)decoder->room;
    drawing.drawn = (int32_t *)(decoder->room + weights_bytes(model));
    drawing.seen = (unsigned char *)(drawing.drawn + model->context);
    return drawing;
}

/* Which tokens a text has, its whole text and not the window alone. */
static const char *upload_seen(const MtcDecoder *decoder, const MtcSequence *sequence, const MtcDrawing *drawing) {
    const int64_t vocabulary = decoder->session->model->vocabulary;
    if (drawing->repetition_penalty == 1)
        return NULL;
    unsigned char *seen = (unsigned char *)mtc_zeroed((size_t)vocabulary);
    for (size_t i = 0; i < sequence->token.count; i++)
        seen[sequence->token.at[i]] = 1;
    const char *error = mtc_upload(drawing->seen, seen, (size_t)vocabulary);
    free(seen);
    return error;
}

static const char *draw(MtcDecoder *decoder, const MtcSequence *sequence, const MtcDraws *draws, MtcTokenList *drawn) {
    MtcSession *session = decoder->session;
    const char *error = make_room_for_draws(decoder);
    const MtcDrawing drawing = drawing_of(decoder, sequence, draws);
    MtcRun run = mtc_run(session, &session->batch, session->evaluation);
    run.begins = !decoder->made;
    error = error ? error : upload_seen(decoder, sequence, &drawing);
    error = error ? error : set_place(session, decoder->position, sequence->token.at[sequence->token.count - 1]);
    error = error ? error : mtc_model_draw_tokens(session->model, &run, &drawing, (int64_t)drawn->count);
    decoder->made = !error;
    return error ? error : mtc_download(drawn->at, drawing.drawn, drawn->count * sizeof *drawn->at);
}

/* The last of the sequence, and the drawn ones but the last. */
static void note_cached(MtcDecoder *decoder, int32_t last, const MtcTokenList *drawn) {
    decoder->cached[decoder->position++] = last;
    for (size_t i = 0; i + 1 < drawn->count; i++)
        decoder->cached[decoder->position++] = drawn->at[i];
}

int mtc_decoder_draw(MtcDecoder *decoder, const MtcSequence *sequence, const MtcDraws *draws, MtcTokenList *drawn) {
    int64_t count;
    const int32_t *token = tokens_of_window(sequence, &count);
    const size_t left = (size_t)(decoder->session->model->context - count + 1);
    int code = fill_cache(decoder, sequence, count - 1);
    drawn->count = drawn->capacity < left ? drawn->capacity : left;
    code = code ? code : mtc_device_fault(decoder->session, draw(decoder, sequence, draws, drawn), "generating");
    if (code)
        decoder->position = 0;
    else
        note_cached(decoder, token[count - 1], drawn);
    return code;
}

void mtc_scores(const float *prediction, int64_t count, double *scores) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (double)prediction[i];
    for (int64_t i = 0; i < count; i++)
        scores[i] = log((double)prediction[i] / sum);
}
