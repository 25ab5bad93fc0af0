/* Several texts of a prompt at a time, a token of each in one run of the model's: all are at one position, for they begin with the same tokens. One that has
 * come to a stop goes on with the others, and what it says from there on is dropped. They go on while the first of them is told that has more to say. */
#include "base/parallel.h"
#include "commands/generate.h"
#include "session/library.h"
#include "session/run.h"

#include <stdlib.h>
#include <string.h>

typedef struct TextRow {
    MtcSequence sequence;
    MtcMade made;
    size_t end; /* of its tokens; 0: it goes on */
} TextRow;

struct MtcTexts {
    MtcGenerator *g;
    int64_t first, count; /* texts of the generator that are made; 0: none yet */
    TextRow *row;
    size_t begin;     /* of the window whose tokens the caches have; TOKENS_MISSING: they have none */
    bool made;        /* what the model's texts need of weights alone is there */
    char *room;       /* of the device, for draws there */
    int32_t *drawn;   /* TOKENS_AT_A_TIME for each text */
    int32_t *token;   /* of the model's texts, the last of each */
    float *predicted; /* of each text */
    double *scores;
};

static const size_t TOKENS_MISSING = SIZE_MAX;
enum { TOKENS_AT_A_TIME = 32 };

static const MtcModel *model_of_texts(const MtcTexts *t) {
    return t->g->decoder.session->model;
}

/* Of each window: all have as many tokens. */
static int64_t tokens_of_windows(const MtcTexts *t) {
    return (int64_t)(t->row[0].sequence.token.count - t->row[0].sequence.begin);
}

/* ---- one position ---- */

static const char *set_places(const MtcTexts *t) {
    MtcSession *session = t->g->decoder.session;
    const int64_t position = tokens_of_windows(t) - 1;
    for (int64_t i = 0; i < t->count; i++)
        t->token[i] = t->row[i].sequence.token.at[t->row[i].sequence.token.count - 1];
    const char *error = mtc_upload(session->clock + MTC_POSITION, &position, sizeof position);
    return error ? error
                 : mtc_upload(session->arena + model_of_texts(t)->tokens_offset, t->token,
                              (size_t)model_of_texts(t)->texts * sizeof *t->token);
}

static MtcRun run_of_texts(const MtcTexts *t) {
    const MtcSession *session = t->g->decoder.session;
    MtcRun run = mtc_run(session, &session->batch, session->evaluation);
    run.begins = !t->made;
    return run;
}

/* ---- draws of the device ---- */

typedef struct RoomForTexts {
    size_t weights, drawn, seen, arrivals, all;
} RoomForTexts;

static RoomForTexts room_for_texts(const MtcModel *model) {
    RoomForTexts room = {.drawn =
                             (size_t)model->texts * mtc_drawing_bytes(model->vocabulary, mtc_drawing_tiles(model))};
    room.seen = room.drawn + (size_t)model->texts * TOKENS_AT_A_TIME * sizeof(int32_t);
    room.arrivals = (room.seen + (size_t)model->texts * (size_t)model->vocabulary + 15) / 16 * 16;
    room.all = room.arrivals + sizeof(unsigned);
    return room;
}

static MtcDrawing drawing_of_texts(const MtcTexts *t) {
    const MtcModel *model = model_of_texts(t);
    const MtcSampling *sampling = &t->g->sampling;
    const RoomForTexts room = room_for_texts(model);
    MtcDrawing drawing = {.repetition_penalty = sampling->repetition_penalty,
                          .temperature = sampling->temperature,
                          .seed = sampling->seed,
                          .text = (uint64_t)t->first,
                          .vocabulary = model->vocabulary,
                          .tiles = mtc_drawing_tiles(model),
                          .tokens = t->g->wording.vocabulary.tokens,
                          .position = tokens_of_windows(t) - 1,
                          .place = (int64_t)t->row[0].sequence.token.count,
                          .texts = t->count,
                          .each_drawn = TOKENS_AT_A_TIME};
    drawing.each_weight = (int64_t)(mtc_drawing_bytes(model->vocabulary, drawing.tiles) / sizeof(double));
    drawing.prediction = (const float *)(t->g->decoder.session->arena + model->texts_scores_offset);
    drawing.token = (int32_t *)(t->g->decoder.session->arena + model->tokens_offset);
    drawing.weight = (double *)t->room;
    drawing.drawn = (int32_t *)(t->room + room.drawn);
    drawing.seen = (unsigned char *)(t->room + room.seen);
    drawing.arrivals = (unsigned *)(t->room + room.arrivals);
    return drawing;
}

/* Which tokens each text has, and that none has its next one. */
static const char *upload_seen_of_texts(const MtcTexts *t, const MtcDrawing *drawing) {
    const size_t vocabulary = (size_t)model_of_texts(t)->vocabulary;
    const char *error = mtc_zero(drawing->arrivals, sizeof *drawing->arrivals);
    if (drawing->repetition_penalty == 1)
        return error;
    unsigned char *seen = (unsigned char *)mtc_zeroed((size_t)t->count * vocabulary);
    for (int64_t i = 0; i < t->count; i++)
        for (size_t k = 0; k < t->row[i].sequence.token.count; k++)
            seen[(size_t)i * vocabulary + (size_t)t->row[i].sequence.token.at[k]] = 1;
    error = error ? error : mtc_upload(drawing->seen, seen, (size_t)t->count * vocabulary);
    free(seen);
    return error;
}

static const char *draw_texts_on_device(MtcTexts *t, int64_t tokens) {
    MtcSession *session = t->g->decoder.session;
    const char *error = t->room ? NULL : mtc_device_alloc((void **)&t->room, room_for_texts(session->model).all);
    if (error)
        return error;
    const MtcDrawing drawing = drawing_of_texts(t);
    MtcRun run = run_of_texts(t);
    error = upload_seen_of_texts(t, &drawing);
    error = error ? error : set_places(t);
    error = error ? error : mtc_model_draw_texts(session->model, &run, &drawing, tokens);
    return error ? error
                 : mtc_download(t->drawn, drawing.drawn, (size_t)t->count * TOKENS_AT_A_TIME * sizeof *t->drawn);
}

/* ---- draws of the host ---- */

static void draw_for_text(void *context, int64_t i) {
    MtcTexts *t = (MtcTexts *)context;
    const MtcGenerator *g = t->g;
    const MtcTokenList *list = &t->row[i].sequence.token;
    const int64_t count = g->wording.vocabulary.tokens, vocabulary = model_of_texts(t)->vocabulary;
    double *scores = t->scores + i * vocabulary;
    mtc_scores(t->predicted + i * vocabulary, count, scores);
    mtc_penalize(g->sampling.repetition_penalty, list->at, list->count, scores, count);
    t->drawn[i * TOKENS_AT_A_TIME] =
        (int32_t)mtc_sample(&g->sampling, scores, count, (uint64_t)list->count, (uint64_t)(t->first + i));
}

/* Threads take longer to begin than few scores to be weighed. */
static void draw_all(MtcTexts *t) {
    enum { FEW = 1 << 15 };
    if (t->count * model_of_texts(t)->vocabulary > FEW) {
        mtc_parallel(t->count, draw_for_text, t);
        return;
    }
    for (int64_t i = 0; i < t->count; i++)
        draw_for_text(t, i);
}

static const char *draw_texts_here(MtcTexts *t) {
    MtcSession *session = t->g->decoder.session;
    const MtcModel *model = session->model;
    MtcRun run = run_of_texts(t);
    const char *error = set_places(t);
    error = error ? error : mtc_model_decode_texts(model, &run);
    error = error ? error
                  : mtc_download(t->predicted, session->arena + model->texts_scores_offset,
                                 (size_t)(t->count * model->vocabulary) * sizeof *t->predicted);
    if (!error)
        draw_all(t);
    return error;
}

/* ---- texts ---- */

/* The caches of all texts have their windows but for the last tokens. */
static int fill_caches_of_texts(MtcTexts *t) {
    int code = 0;
    for (int64_t i = 0; i < t->count && !code && t->begin != t->row[0].sequence.begin; i++) {
        code = mtc_decoder_fill_text(&t->g->decoder, &t->row[i].sequence, i);
        t->made = false; /* other programs have run */
    }
    t->begin = t->row[0].sequence.begin;
    return code;
}

static int take_token_of(MtcTexts *t, TextRow *row, int32_t token) {
    MtcGenerator *g = t->g;
    char room[MTC_TOKEN_BYTES];
    size_t count;
    if (token < 0)
        return mtc_not_finite(g, row->sequence.token.count);
    mtc_sequence_add(&row->sequence, token, model_of_texts(t)->context);
    if (row->end)
        return 0;
    const char *bytes = mtc_wording_bytes(&g->wording, token, room, &count);
    mtc_made_add(&row->made, &g->stops, bytes, count);
    const bool full = row->sequence.token.count == g->prompt.token.count + (size_t)g->tokens;
    row->end = row->made.stopped || full ? row->sequence.token.count : 0;
    return 0;
}

static int64_t fewer(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* So many tokens more for each text as the window has positions for, and are wanted. */
static int texts_go_on(MtcTexts *t) {
    MtcGenerator *g = t->g;
    const int64_t made = (int64_t)(t->row[0].sequence.token.count - g->prompt.token.count);
    const int64_t room = fewer(model_of_texts(t)->context - tokens_of_windows(t) + 1, g->tokens - made);
    const bool device = model_of_texts(t)->draw_texts && mtc_decoder_draws(&g->decoder, &g->sampling);
    const int64_t tokens = device ? fewer(room, TOKENS_AT_A_TIME) : 1;
    int code = fill_caches_of_texts(t);
    if (!code)
        code = mtc_device_fault(g->decoder.session, device ? draw_texts_on_device(t, tokens) : draw_texts_here(t),
                                "generating");
    t->made = !code;
    for (int64_t n = 0; n < tokens; n++)
        for (int64_t i = 0; i < t->count && !code; i++)
            code = take_token_of(t, &t->row[i], t->drawn[i * TOKENS_AT_A_TIME + n]);
    return code;
}

static void drop_rows(MtcTexts *t) {
    for (int64_t i = 0; i < t->count; i++) {
        free(t->row[i].sequence.token.at);
        free(t->row[i].made.text.at);
    }
    t->count = 0;
}

/* That one, and as many behind it as there is room for. */
static void begin_texts_from(MtcTexts *t, int64_t text) {
    drop_rows(t);
    t->first = text;
    t->count = fewer(model_of_texts(t)->texts, t->g->texts - text);
    t->begin = TOKENS_MISSING;
    for (int64_t i = 0; i < t->count; i++) {
        t->row[i] = (TextRow){.end = 0};
        mtc_sequence_copy(&t->row[i].sequence, &t->g->prompt);
    }
}

int mtc_texts_go_on(MtcTexts *t, int64_t text, MtcSequence *sequence) {
    if (text >= t->first + t->count)
        begin_texts_from(t, text);
    const TextRow *row = &t->row[text - t->first];
    const MtcTokenList *list = &row->sequence.token;
    int code = list->count == sequence->token.count ? texts_go_on(t) : 0;
    const size_t count = row->end ? row->end : list->count;
    for (size_t i = sequence->token.count; i < count && !code; i++)
        mtc_sequence_add(sequence, list->at[i], model_of_texts(t)->context);
    return code;
}

void mtc_texts_forget(MtcTexts *t) {
    t->begin = TOKENS_MISSING;
}

MtcTexts *mtc_texts_new(MtcGenerator *g) {
    const MtcModel *model = g->decoder.session->model;
    const size_t texts = (size_t)model->texts, scores = texts * (size_t)model->vocabulary;
    MtcTexts *t = (MtcTexts *)mtc_zeroed(sizeof *t);
    t->g = g;
    t->row = (TextRow *)mtc_zeroed(texts * sizeof *t->row);
    t->drawn = (int32_t *)mtc_zeroed(texts * TOKENS_AT_A_TIME * sizeof *t->drawn);
    t->token = (int32_t *)mtc_zeroed(texts * sizeof *t->token);
    t->predicted = (float *)mtc_zeroed(scores * sizeof *t->predicted);
    t->scores = (double *)mtc_zeroed(scores * sizeof *t->scores);
    return t;
}

void mtc_texts_free(MtcTexts *t) {
    if (!t)
        return;
    drop_rows(t);
    mtc_device_free(t->room);
    free(t->row);
    free(t->drawn);
    free(t->token);
    free(t->predicted);
    free(t->scores);
    free(t);
}
