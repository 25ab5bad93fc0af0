#include "data/bpe.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

int mtc_find_tokenizer(MtcFault *fault, const MtcModel *model, const MtcOrigin *origin, const char *folder,
                       MtcTokenizer **tokenizer) {
    char *path;
    int code = mtc_find_data(fault, model->source, folder, origin->path[1], &path);
    if (code)
        return code;
    code = mtc_tokenizer_open(fault, path, tokenizer);
    free(path);
    return code;
}

void mtc_learn_tokenizer(const MtcTokenizer *tokenizer, const char *name, MtcMeaning *meaning) {
    meaning->tokenizer = strdup(name);
    meaning->digest = mtc_tokenizer_digest(tokenizer);
}

int mtc_check_tokenizer(MtcFault *fault, const MtcMeaning *meaning, const MtcTokenizer *tokenizer, const char *name) {
    const uint64_t digest = mtc_tokenizer_digest(tokenizer);
    if (meaning->words)
        return mtc_fail(fault, MTC_BAD_DATA, "the weights are of a model of %d characters, and this one reads %s",
                        meaning->words, name);
    if (!meaning->tokenizer || meaning->digest == digest)
        return 0;
    mtc_fail(
        fault, MTC_BAD_DATA,
        "%s is not the tokenizer that the weights have learned with: its digest is %016llx, that of %s was %016llx",
        name, (unsigned long long)digest, meaning->tokenizer, (unsigned long long)meaning->digest);
    mtc_note(fault, "tokens of another tokenizer are other words to the model; bring back %s, or train anew",
             meaning->tokenizer);
    return fault->code;
}

static int too_many_pieces(MtcFault *fault, const MtcField *field, const char *name, int classes) {
    mtc_fail(fault, MTC_BAD_DATA, "%s: has %d tokens, and '%s' is class[%d][%lld]", name, classes, field->name,
             field->classes, (long long)field->elements);
    mtc_note(fault, "'%s : class[%d][%lld]' has room for them", field->name, classes, (long long)field->elements);
    return fault->code;
}

int mtc_encode_pieces(MtcFault *fault, const MtcField *field, const MtcTokenizer *tokenizer, const MtcOrigin *origin,
                      const uint8_t *text, size_t size, void **values, int64_t *count) {
    const int classes = mtc_tokenizer_classes(tokenizer);
    MtcTokenList tokens = {NULL, 0, 0};
    if (classes > field->classes)
        return too_many_pieces(fault, field, origin->path[1], classes);
    if (size >= INT_MAX) {
        mtc_fail(fault, MTC_BAD_DATA, "%s: has %zu bytes, and a text whose tokens are made in each run less than 2^31",
                 origin->path[0], size);
        mtc_note(fault, "make them once: mtc tokens %s --tokenizer %s -o train.bin; train = tokens(\"train.bin\")",
                 origin->path[0], origin->path[1]);
        return fault->code;
    }
    MtcEncoder *encoder = mtc_encoder_new(tokenizer);
    mtc_encode(encoder, text, size, &tokens);
    mtc_encoder_free(encoder);
    *values = mtc_memory(NULL, (tokens.count + 1) * mtc_type_size(field->type));
    *count = (int64_t)tokens.count;
    for (size_t i = 0; i < tokens.count; i++)
        mtc_put_class(field, *values, (int64_t)i, tokens.at[i]);
    free(tokens.at);
    return 0;
}
