/* `mtc tokens`: texts as files of tokens, of which programs train; and tokenizers made of texts. */
#ifndef MTC_TOKENS_COMMAND_H
#define MTC_TOKENS_COMMAND_H

#include "runtime/tokenizer/tokenizer.h"
#include "support/diag.h"

typedef struct TokensRequest {
    int texts; /* paths, at least one */
    const char *const *text;
    const char *tokenizer; /* path of its file; NULL: */
    int learn;             /* a tokenizer of so many tokens is made, more than 256 */
    const char *output;
} TokensRequest;

/* Writes the tokens of all texts, one behind the other, with a header that says how many. 0, or the code to exit with after a report. */
int tokens_encode(Diag *diag, const TokensRequest *request);
/* Writes the tokenizer.json that the texts teach. */
int tokens_learn(Diag *diag, const TokensRequest *request);

#endif
