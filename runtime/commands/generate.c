/* generate: text that goes on from a prompt. */
#include "commands/generate.h"

#include "commands/cli.h"
#include "data/bpe.h"
#include "data/source.h"
#include "session/library.h"
#include "session/run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- one token through the model ---- */

static int generates_nothing(MtcFault *fault, const MtcModel *model) {
    return mtc_fail(fault, MTC_USAGE, "%s generates no text: %s", model->name,
                    model->no_decode ? model->no_decode : "its data are not windows of tokens");
}

int mtc_decode(MtcSession *session, int64_t position, int32_t token, float *scores) {
    const MtcModel *model = session->model;
    const int64_t place[] = {position, token};
    int code = mtc_enter(session);
    if (code)
        return code;
    if (!model->decode)
        return generates_nothing(&session->fault, model);
    if (position < 0 || position >= model->context || token < 0 || token >= model->vocabulary)
        return mtc_fail(&session->fault, MTC_USAGE,
                        "token %d at position %lld: there are %lld tokens and %lld positions", (int)token,
                        (long long)position, (long long)model->vocabulary, (long long)model->context);
    MtcRun run = mtc_run(session, &session->batch, session->evaluation);
    const char *error = mtc_upload(session->clock + MTC_POSITION, place, sizeof place);
    error = error ? error : mtc_model_decode(model, &run);
    if (!error && scores)
        error = mtc_download(scores, session->arena + model->scores_offset, (size_t)model->vocabulary * sizeof *scores);
    return mtc_device_fault(session, error, "generating");
}

/* ---- tokens one after the other ---- */

static void append(MtcGenerator *g, int32_t token) {
    if (g->count == g->capacity) {
        g->capacity = g->capacity ? 2 * g->capacity : 256;
        g->token = (int32_t *)mtc_memory(g->token, (size_t)g->capacity * sizeof *g->token);
    }
    g->token[g->count++] = token;
}

/* Brings the tokens [from, count) into the cache, from its beginning on. */
static int refill(MtcGenerator *g, int64_t from) {
    int code = 0;
    g->position = 0;
    for (int64_t i = from; i < g->count && !code; i++)
        code = mtc_decode(g->session, g->position++, g->token[i], i + 1 == g->count ? g->prediction : NULL);
    return code;
}

/* The last token joins the cache. A full one begins again with the last half of its tokens: keys and values know the
 * positions that they were computed at, and cannot move. */
static int feed_last(MtcGenerator *g) {
    int64_t context = g->session->model->context;
    if (g->position == context)
        return refill(g, g->count - 1 - context / 2);
    return mtc_decode(g->session, g->position++, g->token[g->count - 1], g->prediction);
}

static void append_encoded(MtcGenerator *g, const char *text, size_t length) {
    MtcTokenList tokens = {NULL, 0, 0};
    MtcEncoder *encoder = mtc_encoder_new(g->tokenizer);
    mtc_encode(encoder, (const uint8_t *)text, length, &tokens);
    mtc_encoder_free(encoder);
    for (size_t i = 0; i < tokens.count; i++)
        append(g, tokens.at[i]);
    free(tokens.at);
}

static int append_prompt(MtcGenerator *g, const char *prompt, size_t length) {
    int32_t *token = NULL;
    int64_t count = 0;
    if (g->tokenizer) {
        append_encoded(g, prompt, length);
        return 0;
    }
    int code = mtc_encode_text(&g->session->fault, &g->vocabulary, "prompt", prompt, length, &token, &count);
    for (int64_t i = 0; i < count && !code; i++)
        append(g, token[i]);
    free(token);
    if (code && g->vocabulary.level == MTC_LEVEL_NUMBERS && g->session->program)
        mtc_note(&g->session->fault, "a prompt of text needs its tokenizer: of generate, --tokenizer FILE");
    return code;
}

/* Behind a line end, where the vocabulary has one. */
static int begin_without_prompt(MtcGenerator *g) {
    MtcFault *fault = &g->session->fault, before = *fault;
    const bool numbers = g->vocabulary.level == MTC_LEVEL_NUMBERS && !g->tokenizer;
    if (!numbers && append_prompt(g, "\n", 1) == 0)
        return 0;
    *fault = before;
    if (!g->session->program)
        return mtc_fail(fault, MTC_USAGE, "this model needs a beginning: a prompt%s",
                        numbers ? ", of numbers with spaces between" : "");
    return mtc_fail(fault, MTC_USAGE, "this model needs a beginning: --prompt (in training --sample-prompt) %s",
                    numbers ? "\"17 4 ...\"" : "TEXT");
}

static int read_prompt(MtcGenerator *g, const char *prompt) {
    int64_t context = g->session->model->context;
    int code = prompt ? append_prompt(g, prompt, strlen(prompt)) : 0;
    if (!code && g->count > context)
        return mtc_fail(&g->session->fault, MTC_USAGE, "the prompt has %lld tokens, the model sees %lld at most",
                        (long long)g->count, (long long)context);
    g->prompt = g->count;
    return code || g->count ? code : begin_without_prompt(g);
}

/* That which the model names. */
static int find_own_tokenizer(MtcGenerator *g) {
    MtcSession *session = g->session;
    int code = mtc_find_tokenizer(&session->fault, session->model, mtc_windows_origin(session->model), session->folder,
                                  &g->own);
    if (code && session->program)
        mtc_note(&session->fault, "of generate, --tokenizer FILE says where it is");
    g->tokenizer = g->own;
    return code;
}

/* It is that of the weights. */
static int check_learned(MtcGenerator *g) {
    MtcSession *session = g->session;
    const int classes = mtc_tokenizer_classes(g->tokenizer);
    if (classes < g->vocabulary.tokens)
        g->vocabulary.tokens = classes; /* the model's further classes are nobody's */
    return mtc_check_tokenizer(&session->fault, &session->encoding.field[g->vocabulary.field], g->tokenizer,
                               g->own ? mtc_windows_origin(session->model)->path[1] : "--tokenizer");
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

int mtc_generator_open(MtcGenerator *g, MtcSession *session, const MtcTokenizer *tokenizer, const MtcSampling *sampling,
                       const char *prompt) {
    const MtcModel *model = session->model;
    memset(g, 0, sizeof *g);
    g->session = session;
    g->tokenizer = tokenizer;
    g->sampling = *sampling;
    g->prediction = (float *)mtc_zeroed((size_t)model->vocabulary * sizeof *g->prediction);
    g->scores = (double *)mtc_zeroed((size_t)model->vocabulary * sizeof *g->scores);
    int code = mtc_vocabulary_of(&session->fault, model, &session->encoding, &g->vocabulary);
    if (!code && !tokenizer && g->vocabulary.level == MTC_LEVEL_PIECES)
        code = find_own_tokenizer(g);
    if (!code && g->tokenizer)
        code = check_tokenizer(&session->fault, &g->vocabulary, g->tokenizer);
    if (!code && g->vocabulary.level == MTC_LEVEL_PIECES)
        code = check_learned(g);
    if (!code)
        code = read_prompt(g, prompt);
    return code ? code : refill(g, 0);
}

/* A prediction is a distribution: its logarithms are scores, but for what is the same in all. Tokens that no data had, behind
 * those in use, are never drawn. */
int mtc_generator_next(MtcGenerator *g) {
    for (int64_t i = 0; i < g->vocabulary.tokens; i++)
        g->scores[i] = log((double)g->prediction[i]);
    int64_t token = mtc_sample(&g->sampling, g->scores, g->vocabulary.tokens, (uint64_t)g->count);
    if (token < 0)
        return mtc_fail(&g->session->fault, MTC_BAD_DATA,
                        "the scores of token %lld are not finite: the weights have diverged or are damaged",
                        (long long)g->count);
    append(g, (int32_t)token);
    return feed_last(g);
}

void mtc_generator_close(MtcGenerator *g) {
    mtc_tokenizer_free(g->own);
    free(g->token);
    free(g->prediction);
    free(g->scores);
}

/* ---- the C ABI ---- */

static int check_sampling(MtcFault *fault, const MtcSampling *sampling, const char *temperature, const char *top_p) {
    if (!(sampling->temperature >= 0))
        return mtc_fail(fault, MTC_USAGE, "%s is at least 0, not %g", temperature, sampling->temperature);
    if (isinf(sampling->temperature)) /* minus infinity divided by it is no number */
        return mtc_fail(fault, MTC_USAGE, "%s is finite, not %g", temperature, sampling->temperature);
    if (sampling->top_k < 0) /* flags cannot say so */
        return mtc_fail(fault, MTC_USAGE, "top_k is at least 0, not %lld", (long long)sampling->top_k);
    if (!(sampling->top_p > 0 && sampling->top_p <= 1))
        return mtc_fail(fault, MTC_USAGE, "%s is above 0 and at most 1, not %g", top_p, sampling->top_p);
    return 0;
}

typedef struct Generating {
    MtcSession *session;
    const MtcTokenizer *tokenizer;
    const MtcSampling *sampling;
    const char *prompt;
    int64_t tokens;
    MtcTokenTaker take;
    void *user;
} Generating;

/* The bytes of a token, which may be in `room`. A number that is nobody's is U+FFFD, as it is without a tokenizer. */
static const char *text_of_token(const MtcGenerator *g, int32_t token, char room[MTC_TOKEN_BYTES], size_t *count) {
    if (!g->tokenizer) {
        *count = mtc_decode_token(&g->vocabulary, token, room);
        return room;
    }
    const bool known = token < mtc_tokenizer_classes(g->tokenizer);
    const uint8_t *bytes = known ? mtc_tokenizer_bytes(g->tokenizer, token, count) : NULL;
    if (bytes)
        return (const char *)bytes;
    *count = (size_t)snprintf(room, MTC_TOKEN_BYTES, "\xEF\xBF\xBD");
    return room;
}

static bool give_token(const Generating *generating, const MtcGenerator *g, int64_t at) {
    char room[MTC_TOKEN_BYTES];
    size_t count;
    const char *bytes = text_of_token(g, g->token[at], room, &count);
    return generating->take(generating->user, g->token[at], bytes, count);
}

static int generate_tokens(void *context) {
    const Generating *generating = (const Generating *)context;
    MtcGenerator generator;
    int code = mtc_generator_open(&generator, generating->session, generating->tokenizer, generating->sampling,
                                  generating->prompt);
    bool enough = false;
    for (int64_t i = 0; i < generator.prompt && !code && !enough; i++)
        enough = give_token(generating, &generator, i);
    for (int64_t n = 0; n < generating->tokens && !code && !enough; n++) {
        code = mtc_generator_next(&generator);
        enough = !code && give_token(generating, &generator, generator.count - 1);
    }
    mtc_generator_close(&generator);
    return code;
}

static int generate_text(const Generating *generating) {
    MtcSession *session = generating->session;
    int code = mtc_enter(session);
    if (!code && !session->model->decode)
        code = generates_nothing(&session->fault, session->model);
    if (!code)
        code = check_sampling(&session->fault, generating->sampling, "temperature", "top_p");
    return code ? code : mtc_guard(&session->fault, generate_tokens, (void *)(uintptr_t)generating);
}

int mtc_generate(MtcSession *session, const MtcSampling *sampling, const char *prompt, int64_t tokens,
                 MtcTokenTaker take, void *user) {
    const Generating generating = {session, NULL, sampling, prompt, tokens, take, user};
    return generate_text(&generating);
}

/* ---- printing ---- */

/* The text of tokens on stdout as they come; bytes that begin a character wait for its others. */
typedef struct Printer {
    MtcSession *session;
    char pending[8];
    size_t waiting;
    bool line_ended;
} Printer;

/* Bytes of the character of UTF-8 that begins with this one; of what is no beginning: 1. */
static size_t character_bytes(unsigned char first) {
    return first >= 0xF0 && first < 0xF8   ? 4
           : first >= 0xE0 && first < 0xF0 ? 3
           : first >= 0xC0 && first < 0xE0 ? 2
                                           : 1;
}

static void print_bytes(Printer *printer, const char *bytes, size_t count) {
    if (count)
        printer->line_ended = bytes[count - 1] == '\n';
    fwrite(bytes, 1, count, stdout);
}

static void print_byte(Printer *printer, char byte) {
    bool goes_on = ((unsigned char)byte & 0xC0) == 0x80;
    if (!goes_on) { /* whatever waited is no character, and comes as it is */
        print_bytes(printer, printer->pending, printer->waiting);
        printer->waiting = 0;
    }
    printer->pending[printer->waiting++] = byte;
    if (printer->waiting >= character_bytes((unsigned char)printer->pending[0])) {
        print_bytes(printer, printer->pending, printer->waiting);
        printer->waiting = 0;
    }
}

static bool print_token(void *user, int32_t token, const char *bytes, size_t count) {
    (void)token;
    MtcSession *session = ((Printer *)user)->session;
    for (size_t i = 0; i < count; i++)
        print_byte((Printer *)user, bytes[i]);
    fflush(stdout);
    return session->stopped && session->stopped(session->stopped_by);
}

/* Of a character whose end did not come, nothing is printed. */
int mtc_print_generated(MtcSession *session, const MtcTokenizer *tokenizer, const MtcSampling *sampling,
                        const char *prompt, int64_t tokens) {
    Printer printer = {session, {0}, 0, true};
    const Generating generating = {session, tokenizer, sampling, prompt, tokens, print_token, &printer};
    int code = generate_text(&generating);
    if (!printer.line_ended)
        fwrite("\n", 1, 1, stdout);
    fflush(stdout);
    return code;
}

/* ---- the command ---- */

int mtc_generator_check(MtcSession *session, const char *prompt) {
    const MtcSampling sampling = {0, 0, 1, 0};
    MtcGenerator generator;
    if (!session->model->decode)
        return generates_nothing(&session->fault, session->model);
    int code = mtc_generator_open(&generator, session, NULL, &sampling, prompt);
    mtc_generator_close(&generator);
    return code;
}

static int generate(MtcSession *session, const MtcTokenizer *tokenizer, const MtcSampling *sampling,
                    const MtcOptions *options) {
    const double start = mtc_seconds();
    int code = mtc_print_generated(session, tokenizer, sampling, options->prompt, options->tokens);
    double seconds = fmax(mtc_seconds() - start, 1e-9);
    if (!code)
        fprintf(stderr, "%lld token%s in %.3g s: %.4g a second\n", (long long)options->tokens,
                options->tokens == 1 ? "" : "s", seconds, (double)options->tokens / seconds);
    return code;
}

int mtc_command_generate(MtcFault *fault, const MtcModel *model, const MtcOptions *options) {
    MtcSession *session = NULL;
    MtcTokenizer *tokenizer = NULL;
    const MtcSampling sampling = {options->temperature, options->top_k, options->top_p, (uint64_t)options->seed};
    int code = check_sampling(fault, &sampling, "--temperature", "--top-p");
    if (!code && !model->decode)
        code = generates_nothing(fault, model);
    if (!code && options->tokenizer)
        code = mtc_tokenizer_open(fault, options->tokenizer, &tokenizer);
    if (!code)
        code = mtc_open_session(fault, model, options, NULL, NULL, &session);
    if (!code) {
        code = generate(session, tokenizer, &sampling, options);
        if (code)
            *fault = session->fault;
    }
    mtc_tokenizer_free(tokenizer);
    mtc_destroy(session);
    return code;
}
