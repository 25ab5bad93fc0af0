#include "tokenizer/vocabulary.h"

#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

/* ---- bytes as characters ---- */

/* Those that are none: 0 to 0x20, 0x7F to 0xA0, 0xAD, in this order from here on. */
enum { UNPRINTABLE = 0x100, BEHIND_SPACE = UNPRINTABLE + 0x21, SOFT_HYPHEN = BEHIND_SPACE + 0x22 };

uint32_t mtc_byte_character(uint8_t byte) {
    return byte <= 0x20                   ? UNPRINTABLE + (uint32_t)byte
           : byte >= 0x7F && byte <= 0xA0 ? BEHIND_SPACE + (byte - 0x7Fu)
           : byte == 0xAD                 ? SOFT_HYPHEN
                                          : byte;
}

/* -1: it stands for none. */
static int byte_of_character(uint32_t code) {
    const uint32_t byte = code < UNPRINTABLE    ? code
                          : code < BEHIND_SPACE ? code - UNPRINTABLE
                          : code < SOFT_HYPHEN  ? code - BEHIND_SPACE + 0x7F
                                                : 0xAD;
    return mtc_byte_character((uint8_t)byte) == code ? (int)byte : -1;
}

bool mtc_unwrite_bytes(uint8_t *text, size_t *size, const uint8_t **at) {
    const uint8_t *from = text, *end = text + *size;
    uint8_t *to = text;
    while (from < end) {
        uint32_t code;
        const int length = mtc_character(from, end, &code), byte = byte_of_character(code);
        *at = from;
        if (byte < 0)
            return false;
        *to++ = (uint8_t)byte;
        from += length;
    }
    *size = (size_t)(to - text);
    return true;
}

/* ---- tables ---- */

static uint64_t mix(uint64_t value) {
    value *= 0x9E3779B97F4A7C15u;
    return value ^ value >> 29;
}

static uint64_t hash_of_bytes(const uint8_t *bytes, size_t size) {
    uint64_t hash = size;
    for (size_t i = 0; i < size; i++)
        hash = mix(hash ^ bytes[i]);
    return hash;
}

static bool has_bytes(const MtcTokenizer *t, int32_t token, const uint8_t *bytes, size_t size) {
    return t->token[token].size == size && memcmp(t->token[token].at, bytes, size) == 0;
}

static size_t row_of_bytes(const MtcTokenizer *t, const uint8_t *bytes, size_t size) {
    size_t row = hash_of_bytes(bytes, size) & (t->words - 1);
    while (t->by_bytes[row] != MTC_NO_TOKEN && !has_bytes(t, t->by_bytes[row], bytes, size))
        row = (row + 1) & (t->words - 1);
    return row;
}

int32_t mtc_token_of(const MtcTokenizer *t, const uint8_t *bytes, size_t size) {
    return t->by_bytes[row_of_bytes(t, bytes, size)];
}

static size_t row_of_merge(const MtcTokenizer *t, int32_t left, int32_t right) {
    size_t row = mix(mix((uint64_t)left << 32 | (uint32_t)right)) & (t->merges - 1);
    while (t->merge[row].left != MTC_NO_TOKEN && (t->merge[row].left != left || t->merge[row].right != right))
        row = (row + 1) & (t->merges - 1);
    return row;
}

const MtcMerge *mtc_merge_of(const MtcTokenizer *t, int32_t left, int32_t right) {
    const MtcMerge *merge = &t->merge[row_of_merge(t, left, right)];
    return merge->left == MTC_NO_TOKEN ? NULL : merge;
}

bool mtc_merge_add(MtcTokenizer *t, MtcMerge merge, const MtcMerge **found) {
    MtcMerge *row = &t->merge[row_of_merge(t, merge.left, merge.right)];
    *found = row;
    if (row->left != MTC_NO_TOKEN)
        return false;
    *row = merge;
    return true;
}

/* At most half full. */
static size_t rows_for(size_t count) {
    size_t rows = 16;
    while (rows < 2 * count)
        rows *= 2;
    return rows;
}

void mtc_vocabulary_index(MtcTokenizer *t, size_t merges) {
    t->words = rows_for((size_t)t->count);
    t->merges = rows_for(merges);
    t->by_bytes = (int32_t *)mtc_memory(NULL, t->words * sizeof *t->by_bytes);
    t->merge = (MtcMerge *)mtc_memory(NULL, t->merges * sizeof *t->merge);
    memset(t->by_bytes, 0xFF, t->words * sizeof *t->by_bytes);
    memset(t->merge, 0xFF, t->merges * sizeof *t->merge);
    for (int32_t i = 0; i < t->count; i++)
        if (t->token[i].at)
            t->by_bytes[row_of_bytes(t, t->token[i].at, t->token[i].size)] = i;
    for (int b = 0; b < 256; b++) {
        const uint8_t byte = (uint8_t)b;
        t->byte[b] = mtc_token_of(t, &byte, 1);
    }
}

/* ---- the tokenizer ---- */

int mtc_tokenizer_classes(const MtcTokenizer *tokenizer) {
    return tokenizer->count;
}

const uint8_t *mtc_tokenizer_bytes(const MtcTokenizer *tokenizer, int32_t token, size_t *size) {
    *size = tokenizer->token[token].size;
    return tokenizer->token[token].at;
}

void mtc_tokenizer_free(MtcTokenizer *tokenizer) {
    if (!tokenizer)
        return;
    free(tokenizer->classes);
    free(tokenizer->token);
    free(tokenizer->by_bytes);
    free(tokenizer->merge);
    free(tokenizer->added);
    free(tokenizer->memory);
    free(tokenizer);
}

/* ---- which tokenizer it is ---- */

static void digest_numbers(MtcHash *hash, const int64_t *number, size_t count) {
    mtc_hash_add(hash, number, count * sizeof *number);
}

static uint64_t merge_digest(const MtcMerge *merge) {
    const int64_t numbers[] = {merge->left, merge->right, merge->rank, merge->merged};
    MtcHash hash;
    mtc_hash_begin(&hash);
    digest_numbers(&hash, numbers, 4);
    return mtc_hash_end(&hash);
}

/* Rows of the hash table lie as they came: their sum does not depend on that. */
uint64_t mtc_tokenizer_digest(const MtcTokenizer *tokenizer) {
    uint64_t merges = 0;
    for (size_t i = 0; i < tokenizer->merges; i++)
        merges += tokenizer->merge[i].left == MTC_NO_TOKEN ? 0 : merge_digest(&tokenizer->merge[i]);
    MtcHash hash;
    mtc_hash_begin(&hash);
    const char *pattern = tokenizer->pattern->regex;
    const int64_t numbers[] = {tokenizer->count, tokenizer->whole_words, (int64_t)merges};
    digest_numbers(&hash, numbers, 3);
    mtc_hash_add(&hash, pattern, strlen(pattern));
    for (int32_t i = 0; i < tokenizer->count; i++) {
        const MtcTokenBytes *token = &tokenizer->token[i];
        const int64_t size = token->at ? (int64_t)token->size : -1;
        digest_numbers(&hash, &size, 1);
        mtc_hash_add(&hash, token->at, token->at ? token->size : 0);
    }
    for (int i = 0; i < tokenizer->added_count; i++) {
        const int64_t added[] = {tokenizer->added[i].token, tokenizer->added[i].late};
        digest_numbers(&hash, added, 2);
    }
    return mtc_hash_end(&hash);
}
