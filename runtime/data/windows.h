/* Examples that are windows of a row of tokens: of the characters or the bytes of a text, or of a file of tokens.
 *
 *     file -> text, or tokens that stay in it -> a part of the tokens -> windows, which begin every `stride` tokens */
#ifndef MTC_WINDOWS_H
#define MTC_WINDOWS_H

#include "data/dataset.h"

/* What a file holds. All zero: nothing. */
typedef struct MtcTokenRow {
    char *path;
    uint8_t *text; /* characters, until the vocabulary is known: the file's bytes; else NULL */
    size_t size;
    int64_t count;
    void *token;     /* `count` of them, in the field's type; or NULL, and */
    MtcTokens *file; /* they stay in the file */
} MtcTokenRow;
void mtc_token_row_free(MtcTokenRow *row);

/* The file of the origin, or another one in its format. */
int mtc_token_row_read(MtcFault *fault, const MtcModel *model, const MtcOrigin *origin, const char *path,
                       MtcTokenRow *row);
/* Tokens, by what the encoding knows: a character that it lacks is a fault. */
int mtc_token_row_encode(MtcFault *fault, const MtcModel *model, const MtcEncoding *encoding, MtcTokenRow *row);
/* The windows within the part of the row that the split has (NULL: all of it). `last`: nobody else needs the row. */
int mtc_token_row_part(MtcFault *fault, const MtcModel *model, const MtcOrigin *origin, const MtcSplit *split,
                       bool last, MtcTokenRow *row, MtcExamples *examples);

#endif
