/* `mtc tokens`: texts as files of tokens, of which programs train. */
#ifndef MTC_TOKENS_COMMAND_H
#define MTC_TOKENS_COMMAND_H

#include "support/diag.h"

typedef struct TokensRequest {
    int texts; /* paths, at least one */
    const char *const *text;
    const char *tokenizer; /* path of its file */
    const char *output;
} TokensRequest;

/* Writes the tokens of all texts, one behind the other, with a header that says how many. 0, or the code to exit with after a report. */
int tokens_encode(Diag *diag, const TokensRequest *request);

#endif
