/* generate: text that goes on from prompts, printed as it is made. */
#include "commands/generate.h"

#include "commands/cli.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- printing ---- */

#define BETWEEN "---\n" /* texts */

/* The text of tokens on stdout as they come; bytes that begin a character wait for its others. */
typedef struct Printer {
    MtcSession *session;
    int64_t text;
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

/* Of a character whose end did not come, nothing is printed. */
static void end_text(Printer *printer) {
    printer->waiting = 0;
    if (!printer->line_ended)
        print_bytes(printer, "\n", 1);
}

static bool print_piece(void *user, const MtcPiece *piece) {
    Printer *printer = (Printer *)user;
    MtcSession *session = printer->session;
    if (piece->text != printer->text) {
        end_text(printer);
        print_bytes(printer, BETWEEN, sizeof BETWEEN - 1);
        printer->text = piece->text;
    }
    for (size_t i = 0; i < piece->count; i++)
        print_byte(printer, piece->bytes[i]);
    fflush(stdout);
    return session->stopped && session->stopped(session->stopped_by);
}

/* With a tokenizer that the command line names. */
static int print_pieces(MtcSession *session, const MtcTokenizer *tokenizer, const MtcGeneration *how, Printer *printer,
                        int64_t *drawn) {
    MtcGenerator *generator;
    MtcPiece piece;
    int code = mtc_generator_open(session, tokenizer, how, &generator);
    for (bool enough = false; !code && !enough;) {
        code = mtc_generator_next(generator, &piece);
        enough = code || piece.text < 0 || print_piece(printer, &piece);
    }
    *drawn = code ? 0 : generator->drawn;
    mtc_generator_free(generator);
    return code;
}

int mtc_print_generated(MtcSession *session, const MtcTokenizer *tokenizer, const MtcGeneration *how, int64_t *drawn) {
    Printer printer = {session, 0, {0}, 0, true};
    int64_t tokens;
    int code = print_pieces(session, tokenizer, how, &printer, drawn ? drawn : &tokens);
    end_text(&printer);
    fflush(stdout);
    return code;
}

/* ---- the command ---- */

int mtc_generator_check(MtcSession *session, const char *prompt) {
    const MtcGeneration how = mtc_drawn_text(prompt, 1, 0);
    MtcGenerator *generator;
    int code = mtc_generator_open(session, NULL, &how, &generator);
    mtc_generator_free(generator);
    return code;
}

/* Texts of a prompt, where the program decodes one after the other. */
static void say_how_together(const MtcModel *model, const MtcOptions *options) {
    MtcText command = {NULL, 0, 0};
    if (options->batch < 2 || options->beams > 1 || model->texts)
        return;
    mtc_remake(&command, model, "--decode-batch", mtc_number((double)(options->batch < 32 ? options->batch : 32)),
               options->program);
    fprintf(stderr, "these texts were made one after the other; several at a time: %s\n", command.at);
    free(command.at);
}

/* The texts of one prompt after those of another. */
static int generate(MtcSession *session, const MtcTokenizer *tokenizer, MtcGeneration *how, const MtcOptions *options) {
    const double start = mtc_seconds();
    int64_t drawn = 0, more;
    int code = 0;
    for (int i = 0; (i == 0 || i < options->prompt.count) && !code; i++, drawn += more) {
        if (i)
            fputs(BETWEEN, stdout);
        how->prompt = options->prompt.count ? options->prompt.at[i] : NULL;
        code = mtc_print_generated(session, tokenizer, how, &more);
    }
    double seconds = fmax(mtc_seconds() - start, 1e-9);
    if (!code)
        fprintf(stderr, "%lld token%s in %.3g s: %.4g a second\n", (long long)drawn, drawn == 1 ? "" : "s", seconds,
                (double)drawn / seconds);
    if (!code)
        say_how_together(session->model, options);
    return code;
}

static MtcGeneration generation_of(const MtcOptions *options) {
    return (MtcGeneration){.sampling = {.repetition_penalty = options->repetition_penalty,
                                        .temperature = options->temperature,
                                        .top_k = options->top_k,
                                        .top_p = options->top_p,
                                        .min_p = options->min_p,
                                        .seed = (uint64_t)options->seed},
                           .tokens = options->tokens,
                           .batch = options->batch ? options->batch : 1,
                           .beams = options->beams,
                           .stops = options->stop.count,
                           .stop = options->stop.at};
}

int mtc_command_generate(MtcFault *fault, const MtcModel *model, const MtcOptions *options) {
    MtcSession *session = NULL;
    MtcTokenizer *tokenizer = NULL;
    MtcGeneration how = generation_of(options);
    int code = mtc_generation_check(fault, &how, true);
    if (!code && !model->decode)
        code = mtc_generates_nothing(fault, model);
    if (!code && options->tokenizer)
        code = mtc_tokenizer_open(fault, options->tokenizer, &tokenizer);
    if (!code)
        code = mtc_open_session(fault, model, options, NULL, NULL, &session);
    if (!code) {
        code = generate(session, tokenizer, &how, options);
        if (code)
            *fault = session->fault;
    }
    mtc_tokenizer_free(tokenizer);
    mtc_destroy(session);
    return code;
}
