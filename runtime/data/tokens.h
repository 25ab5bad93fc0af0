/* Tokens in a file, which stay there: what is asked for is read, in the field's type. */
#ifndef MTC_TOKENS_H
#define MTC_TOKENS_H

#include "data/dataset.h"

/* The file's tokens: each of its bytes, or numbers, found by its header. The field must outlive them. A fault: the file cannot be
 * mapped, or its length or header is wrong. */
int mtc_tokens_open(MtcFault *fault, const MtcField *field, bool bytes, const char *path, MtcTokens **tokens);
/* The same of bytes that are there; they become the tokens', after a fault too. `path` for messages. */
int mtc_tokens_new(MtcFault *fault, const MtcField *field, bool bytes, const char *path, MtcMapped *mapped,
                   MtcTokens **tokens);
/* One more owner; the last one that frees them closes the file. */
MtcTokens *mtc_tokens_share(MtcTokens *tokens);
void mtc_tokens_free(MtcTokens *tokens); /* NULL: nothing */
int64_t mtc_tokens_count(const MtcTokens *tokens);

/* So many tokens, `from` on. A fault: one is no class of the field; another program has changed the file since it was
 * opened. Threads may read side by side. */
int mtc_tokens_read(MtcFault *fault, const MtcTokens *tokens, int64_t from, int64_t count, void *values);

#endif
