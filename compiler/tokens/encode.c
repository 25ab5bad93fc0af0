/* A text is cut where words end whatever stands around them, so that the pieces have the tokens of the whole: any number of
 * threads writes the same bytes. A round of pieces is encoded side by side, then written in order. */
#include "runtime/base/files.h"
#include "runtime/base/meter.h"
#include "runtime/base/parallel.h"
#include "runtime/tokenizer/tokenizer.h"
#include "tokens/tokens.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static const Span nowhere = {0};

enum { PIECE_BYTES = 1 << 18, LONGEST_PIECE = 1 << 26, ROUND = 64, MOST_ENCODERS = 64 };

typedef struct Piece {
    const uint8_t *text;
    size_t size;
    MtcTokenList tokens;
    uint8_t *written; /* as the file has them */
} Piece;

typedef struct Encoding {
    const TokensRequest *request;
    MtcFault fault;
    MtcTokenizer *tokenizer;
    MtcOutput *output;
    size_t width; /* bytes of a token in the file */
    uint64_t count;
    int64_t done, all; /* bytes of text */
    MtcMeter meter;
    Piece piece[ROUND];
    int pieces;
    pthread_mutex_t lock; /* of the encoders that no thread has */
    MtcEncoder *idle[MOST_ENCODERS];
    int idle_count;
} Encoding;

/* ---- a round ---- */

static MtcEncoder *take_encoder(Encoding *e) {
    pthread_mutex_lock(&e->lock);
    MtcEncoder *encoder = e->idle_count ? e->idle[--e->idle_count] : NULL;
    pthread_mutex_unlock(&e->lock);
    return encoder ? encoder : mtc_encoder_new(e->tokenizer);
}

static void return_encoder(Encoding *e, MtcEncoder *encoder) {
    pthread_mutex_lock(&e->lock);
    const bool room = e->idle_count < MOST_ENCODERS;
    if (room)
        e->idle[e->idle_count++] = encoder;
    pthread_mutex_unlock(&e->lock);
    if (!room)
        mtc_encoder_free(encoder);
}

static void put_little_endian(uint8_t *at, uint64_t value, size_t width) {
    for (size_t i = 0; i < width; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

static void encode_piece(void *context, int64_t task) {
    Encoding *e = context;
    Piece *piece = &e->piece[task];
    MtcEncoder *encoder = take_encoder(e);
    piece->tokens.count = 0;
    mtc_encode(encoder, piece->text, piece->size, &piece->tokens);
    return_encoder(e, encoder);
    piece->written = mtc_memory(piece->written, piece->tokens.count * e->width + 1);
    for (size_t i = 0; i < piece->tokens.count; i++)
        put_little_endian(piece->written + i * e->width, (uint32_t)piece->tokens.at[i], e->width);
}

static int encode_round(Encoding *e) {
    int code = 0;
    mtc_parallel(e->pieces, encode_piece, e);
    for (int i = 0; i < e->pieces && !code; i++) {
        code = mtc_output_write(&e->fault, e->output, e->piece[i].written, e->piece[i].tokens.count * e->width);
        e->count += e->piece[i].tokens.count;
        e->done += (int64_t)e->piece[i].size;
    }
    e->pieces = 0;
    mtc_meter_part(&e->meter, "encoding, MB", e->done >> 20, e->all >> 20);
    return code;
}

/* ---- a text ---- */

/* Where the piece that begins at `from` ends. */
static int find_end(Encoding *e, const char *path, const MtcMapped *text, size_t from, size_t *end) {
    const size_t left = text->size - from, most = left < LONGEST_PIECE ? text->size : from + LONGEST_PIECE;
    *end = left <= PIECE_BYTES ? text->size
                               : mtc_tokenizer_cut(e->tokenizer, text->bytes, text->size, from + PIECE_BYTES, most);
    if (*end < most || most == text->size)
        return 0;
    mtc_fail(&e->fault, MTC_BAD_DATA, "%s: from byte %zu on no word ends within %s", path, from,
             mtc_bytes(LONGEST_PIECE));
    mtc_note(&e->fault, "a text has spaces or line ends; this file seems to be none");
    return e->fault.code;
}

static int encode_bytes(Encoding *e, const char *path, const MtcMapped *text) {
    size_t end;
    int code = 0;
    for (size_t from = 0; from < text->size && !code; from = end) {
        Piece *piece = &e->piece[e->pieces];
        code = find_end(e, path, text, from, &end);
        piece->text = text->bytes + from;
        piece->size = end - from;
        if (!code && ++e->pieces == ROUND)
            code = encode_round(e);
    }
    return code ? code : encode_round(e);
}

static int encode_text(Encoding *e, const char *path) {
    MtcMapped text;
    int code = mtc_map_file(&e->fault, path, &text);
    if (code)
        return code;
    code = encode_bytes(e, path, &text);
    if (!code && !mtc_mapped_is_same(&text))
        code = mtc_fail(&e->fault, MTC_NO_INPUT, "%s: was changed while it was read", path);
    mtc_unmap_file(&text);
    return code;
}

/* ---- the file of tokens ---- */

/* 256 numbers of 32 bits: as programs, and llm.c, read them. */
enum { HEADER_BYTES = 1024 };

/* The count is known in the end: until then it is 0. */
static void make_header(const Encoding *e, uint8_t header[HEADER_BYTES]) {
    const bool narrow = e->width == sizeof(uint16_t);
    memset(header, 0, HEADER_BYTES);
    put_little_endian(header, narrow ? 20240520 : 20240801, 4);
    put_little_endian(header + 4, narrow ? 1 : 7, 4);
    put_little_endian(header + 8, e->count, 4);
}

static int end_file(Encoding *e) {
    uint8_t header[HEADER_BYTES];
    if (e->count == 0)
        return mtc_fail(&e->fault, MTC_BAD_DATA, "%s: there is no text in %s", e->request->output,
                        e->request->texts == 1 ? "the file" : "the files");
    if (e->count > UINT32_MAX)
        return mtc_fail(&e->fault, MTC_BAD_DATA,
                        "%s: would have %llu tokens; its header counts to %u: write several files", e->request->output,
                        (unsigned long long)e->count, UINT32_MAX);
    make_header(e, header);
    return mtc_output_rewrite(&e->fault, e->output, header, sizeof header);
}

static int encode_texts(Encoding *e) {
    uint8_t header[HEADER_BYTES];
    make_header(e, header);
    int code = mtc_output_write(&e->fault, e->output, header, sizeof header);
    for (int i = 0; i < e->request->texts && !code; i++)
        code = encode_text(e, e->request->text[i]);
    return code ? code : end_file(e);
}

static int write_tokens(Encoding *e) {
    int code = mtc_output_open(&e->fault, e->request->output, &e->output);
    if (code)
        return code;
    code = encode_texts(e);
    if (!code)
        return mtc_output_commit(&e->fault, e->output);
    mtc_output_discard(e->output);
    return code;
}

/* ---- the command ---- */

/* Every text can be opened: asked before the work, which can take long. */
static int measure_texts(Encoding *e) {
    MtcMapped text;
    for (int i = 0; i < e->request->texts; i++) {
        int code = mtc_map_file(&e->fault, e->request->text[i], &text);
        if (code)
            return code;
        e->all += (int64_t)text.size;
        mtc_unmap_file(&text);
    }
    return 0;
}

static void say_written(const Encoding *e, double seconds) {
    fprintf(stderr, "%s: %llu tokens of %zu bits, class[%d], of %s in %.3g s: %s a second\n", e->request->output,
            (unsigned long long)e->count, 8 * e->width, mtc_tokenizer_classes(e->tokenizer), mtc_bytes((double)e->done),
            seconds, mtc_bytes((double)e->done / seconds));
}

static int encode_with(Encoding *e) {
    const double start = mtc_seconds();
    e->width = mtc_tokenizer_classes(e->tokenizer) <= UINT16_MAX + 1 ? sizeof(uint16_t) : sizeof(uint32_t);
    mtc_meter_open(&e->meter);
    int code = write_tokens(e);
    mtc_meter_clear(&e->meter);
    if (!code)
        say_written(e, mtc_seconds() - start + 1e-9);
    return code;
}

int tokens_encode(Diag *diag, const TokensRequest *request) {
    Encoding *e = mtc_zeroed(sizeof *e);
    e->request = request;
    pthread_mutex_init(&e->lock, NULL);
    int code = mtc_tokenizer_open(&e->fault, request->tokenizer, &e->tokenizer);
    if (!code)
        code = measure_texts(e);
    if (!code)
        code = encode_with(e);
    if (code)
        diag_error(diag, nowhere, "%s", e->fault.text);
    for (int i = 0; i < e->idle_count; i++)
        mtc_encoder_free(e->idle[i]);
    for (int i = 0; i < ROUND; i++) {
        free(e->piece[i].tokens.at);
        free(e->piece[i].written);
    }
    mtc_tokenizer_free(e->tokenizer);
    free(e);
    return code;
}
