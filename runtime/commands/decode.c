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

static int decode_token(MtcSession *session, int64_t position, int32_t token, float *scores) {
    const MtcModel *model = session->model;
    const int64_t place[] = {position, token};
    MtcRun run = mtc_run(session, &session->batch, session->evaluation);
    const char *error = mtc_upload(session->clock + MTC_POSITION, place, sizeof place);
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
    return decode_token(session, position, token, scores);
}

/* ---- sequences ---- */

void mtc_sequence_add(MtcSequence *sequence, int32_t token, int64_t context) {
    MtcTokenList *list = &sequence->token;
    if (list->count == list->capacity) {
        list->capacity = list->capacity ? 2 * list->capacity : 256;
        list->at = (int32_t *)mtc_memory(list->at, list->capacity * sizeof *list->at);
    }
    list->at[list->count++] = token;
    if (list->count - sequence->begin > (size_t)context)
        sequence->begin = list->count - 1 - (size_t)context / 2;
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
}

/* Training calls functions of the caller's between its own launches, which are no calls: its steps tell. */
int mtc_decoder_enter(MtcDecoder *decoder, bool *kept) {
    MtcSession *session = decoder->session;
    *kept = decoder->calls == session->calls && decoder->step == session->at.step;
    int code = mtc_enter(session);
    decoder->calls = session->calls;
    decoder->step = session->at.step;
    if (!*kept)
        decoder->position = 0;
    return code;
}

int mtc_decoder_predict(MtcDecoder *decoder, const MtcSequence *sequence) {
    const int32_t *token = sequence->token.at + sequence->begin;
    const int64_t count = (int64_t)(sequence->token.count - sequence->begin);
    int64_t at = 0;
    int code = 0;
    while (at < decoder->position && at + 1 < count && decoder->cached[at] == token[at])
        at++;
    for (; at < count && !code; at++) {
        decoder->cached[at] = token[at];
        code = decode_token(decoder->session, at, token[at], at + 1 == count ? decoder->prediction : NULL);
    }
    decoder->position = code ? 0 : count;
    return code;
}

void mtc_decoder_scores(const MtcDecoder *decoder, int64_t count, double *scores) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (double)decoder->prediction[i];
    for (int64_t i = 0; i < count; i++)
        scores[i] = log((double)decoder->prediction[i] / sum);
}
