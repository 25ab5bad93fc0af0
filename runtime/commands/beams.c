/* The likeliest text, by a beam search: of all continuations of the texts that are kept, the best are kept. One that comes to a stop is
 * complete, and its place is gone: those that are left go on. In the end the best are those with the highest mean of their tokens' scores. */
#include "commands/generate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct Beam {
    MtcSequence sequence;
    MtcMade made;
    double score; /* the sum of those of its tokens */
} Beam;

typedef struct Choice {
    double score;
    int64_t beam;
    int32_t token;
} Choice;

typedef struct Search {
    MtcGenerator *g;
    Beam *live, *complete;
    int64_t lives, completes;
    Choice *choice; /* the best so far, the best first */
    int64_t choices;
} Search;

static void free_beam(Beam *beam) {
    free(beam->sequence.token.at);
    free(beam->made.text.at);
}

/* Among as many as have a place. Of equal ones the earlier beam, then the lower token, is first. */
static void offer(Search *search, int64_t places, Choice choice) {
    int64_t at = search->choices;
    if (at == places && !(choice.score > search->choice[at - 1].score))
        return;
    at -= at == places;
    for (; at > 0 && choice.score > search->choice[at - 1].score; at--)
        search->choice[at] = search->choice[at - 1];
    search->choice[at] = choice;
    search->choices += search->choices < places;
}

static int offer_tokens(Search *search, int64_t places, int64_t b) {
    MtcGenerator *g = search->g;
    const Beam *beam = &search->live[b];
    const int64_t count = g->wording.vocabulary.tokens;
    int code = mtc_decoder_predict(&g->decoder, &beam->sequence);
    if (code)
        return code;
    mtc_scores(g->decoder.prediction, count, g->scores);
    mtc_penalize(g->sampling.repetition_penalty, beam->sequence.token.at, beam->sequence.token.count, g->scores, count);
    for (int64_t i = 0; i < count; i++) {
        if (isnan(g->scores[i]))
            return mtc_not_finite(g, beam->sequence.token.count);
        if (!isinf(g->scores[i]))
            offer(search, places, (Choice){beam->score + g->scores[i], b, (int32_t)i});
    }
    return 0;
}

static Beam continued(const MtcGenerator *g, const Beam *beam, const Choice *choice) {
    char room[MTC_TOKEN_BYTES];
    size_t count;
    Beam made;
    mtc_sequence_copy(&made.sequence, &beam->sequence);
    mtc_sequence_add(&made.sequence, choice->token, g->decoder.session->model->context);
    made.made = beam->made;
    made.made.text.at = (char *)mtc_memory(NULL, made.made.text.capacity);
    if (made.made.text.length)
        memcpy(made.made.text.at, beam->made.text.at, made.made.text.length);
    made.score = choice->score;
    const char *bytes = mtc_wording_bytes(&g->wording, choice->token, room, &count);
    mtc_made_add(&made.made, &g->stops, bytes, count);
    return made;
}

/* A token more for each text that is not complete. */
static int go_on(Search *search) {
    const int64_t places = search->g->beams - search->completes;
    Beam *next = (Beam *)mtc_zeroed((size_t)places * sizeof *next);
    int64_t nexts = 0;
    int code = 0;
    search->choices = 0;
    for (int64_t b = 0; b < search->lives && !code; b++)
        code = offer_tokens(search, places, b);
    for (int64_t i = 0; i < search->choices && !code; i++) {
        Beam made = continued(search->g, &search->live[search->choice[i].beam], &search->choice[i]);
        if (made.made.stopped)
            search->complete[search->completes++] = made;
        else
            next[nexts++] = made;
    }
    for (int64_t b = 0; b < search->lives; b++)
        free_beam(&search->live[b]);
    free(search->live);
    search->live = next;
    search->lives = nexts;
    return code;
}

static double mean(const Search *search, const Beam *beam) {
    return beam->score / (double)(beam->sequence.token.count - search->g->prompt.token.count);
}

/* The best by their mean, of equal ones the first, become the generator's. */
static void keep_best_texts(Search *search) {
    MtcGenerator *g = search->g;
    g->texts = g->texts < search->completes ? g->texts : search->completes; /* fewer have a probability */
    g->found = (MtcSequence *)mtc_zeroed((size_t)g->texts * sizeof *g->found);
    for (int64_t n = 0; n < g->texts; n++) {
        Beam *best = NULL;
        for (int64_t b = 0; b < search->completes; b++) {
            Beam *beam = &search->complete[b];
            if (beam->sequence.token.at && (!best || mean(search, beam) > mean(search, best)))
                best = beam;
        }
        g->found[n] = best->sequence;
        best->sequence.token.at = NULL;
    }
}

int mtc_search_beams(MtcGenerator *g) {
    Search search = {.g = g, .lives = 1};
    int code = 0;
    search.live = (Beam *)mtc_zeroed(sizeof *search.live);
    search.complete = (Beam *)mtc_zeroed((size_t)g->beams * sizeof *search.complete);
    search.choice = (Choice *)mtc_zeroed((size_t)g->beams * sizeof *search.choice);
    mtc_sequence_copy(&search.live[0].sequence, &g->prompt);
    for (int64_t n = 0; n < g->tokens && search.lives && !code; n++)
        code = go_on(&search);
    for (int64_t b = 0; b < search.lives; b++)
        search.complete[search.completes++] = search.live[b];
    if (!code)
        keep_best_texts(&search);
    for (int64_t b = 0; b < search.completes; b++)
        free_beam(&search.complete[b]);
    free(search.live);
    free(search.complete);
    free(search.choice);
    return code;
}
