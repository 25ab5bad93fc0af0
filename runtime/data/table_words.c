/* Dictionaries of words: made by each thread for its chunk, then merged into one list in the order of the words' bytes. */
#include "data/table.h"

#include <stdlib.h>
#include <string.h>

/* ---- a chunk's dictionary: a hash table with linear probing ---- */

static inline uint64_t low_bytes(uint64_t bytes, size_t count) {
    return count < 8 ? bytes & (((uint64_t)1 << 8 * count) - 1) : bytes;
}

/* Without a branch that depends on the length, where 16 bytes can be read. */
static inline MtcWordHead word_head(const char *word, size_t length, const char *limit) {
    char copy[16] = {0};
    if (limit - word < 16) {
        memcpy(copy, word, length < 16 ? length : 16);
        word = copy;
    }
    MtcWordHead head = {
        {low_bytes(mtc_load_eight(word), length), low_bytes(mtc_load_eight(word + 8), length > 8 ? length - 8 : 0)}};
    return head;
}

static inline uint64_t hash_word(MtcWordHead head, const char *word, size_t length) {
    const uint64_t factor = 0x9E3779B97F4A7C15u;
    uint64_t hash = (head.at[0] ^ length) * factor;
    hash = (hash ^ hash >> 32 ^ head.at[1]) * factor;
    for (size_t at = 16; at < length; at += 8)
        hash = (hash ^ hash >> 32 ^ mtc_load_eight(word + (at + 8 < length ? at : length - 8))) * factor;
    return hash ^ hash >> 32;
}

static void rehash(MtcDictionary *d) {
    d->slots = d->slots ? 2 * d->slots : 256;
    d->slot = (int32_t *)mtc_memory(d->slot, d->slots * sizeof *d->slot);
    memset(d->slot, -1, d->slots * sizeof *d->slot);
    for (int code = 0; code < d->count; code++) {
        uint64_t at = d->word[code].hash & (d->slots - 1);
        while (d->slot[at] >= 0)
            at = (at + 1) & (d->slots - 1);
        d->slot[at] = code;
    }
}

static int32_t add_word(MtcDictionary *d, MtcWordHead head, const char *word, size_t length, uint64_t hash) {
    if (d->used + length + 1 > d->capacity)
        d->bytes = (char *)mtc_memory(d->bytes, d->capacity = 2 * (d->used + length + 1));
    if (d->count == d->most) {
        d->most = d->most ? 2 * d->most : 64;
        d->word = (MtcDictionaryWord *)mtc_memory(d->word, (size_t)d->most * sizeof *d->word);
    }
    MtcDictionaryWord *added = &d->word[d->count];
    added->hash = hash;
    added->head = head;
    added->begin = d->used;
    added->length = length;
    memcpy(d->bytes + d->used, word, length);
    d->bytes[d->used + length] = 0;
    d->used += length + 1;
    return d->count++;
}

static inline bool is_word(const MtcDictionary *d, int32_t code, MtcWordHead head, const char *word, size_t length) {
    const MtcDictionaryWord *known = &d->word[code];
    if (known->head.at[0] != head.at[0] || known->head.at[1] != head.at[1] || known->length != length)
        return false;
    return length <= 16 || memcmp(d->bytes + known->begin + 16, word + 16, length - 16) == 0;
}

int32_t mtc_dictionary_code(MtcDictionary *d, const char *word, size_t length, const char *limit) {
    MtcWordHead head = word_head(word, length, limit);
    uint64_t hash = hash_word(head, word, length);
    if (2 * (uint64_t)d->count >= d->slots)
        rehash(d);
    uint64_t at = hash & (d->slots - 1);
    for (; d->slot[at] >= 0; at = (at + 1) & (d->slots - 1))
        if (is_word(d, d->slot[at], head, word, length))
            return d->slot[at];
    return d->slot[at] = add_word(d, head, word, length, hash);
}

void mtc_dictionary_free(MtcDictionary *d) {
    free(d->bytes);
    free(d->word);
    free(d->slot);
    memset(d, 0, sizeof *d);
}

/* ---- the list of all words ---- */

static int by_bytes(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void mtc_word_list_from(MtcWordList *list, const char *bytes, size_t size, int count) {
    list->count = count;
    list->size = size;
    list->bytes = NULL;
    list->word = (const char **)mtc_memory(NULL, (size_t)count * sizeof *list->word);
    for (int i = 0; i < count; i++, bytes += strlen(bytes) + 1)
        list->word[i] = bytes;
}

void mtc_word_list_free(MtcWordList *list) {
    free(list->bytes);
    free(list->word);
    memset(list, 0, sizeof *list);
}

/* A dictionary's word. Most are told apart by their first eight bytes, as a number. */
typedef struct Entry {
    uint64_t first;
    const char *word;
    int32_t *code; /* where it goes in the list is written here */
} Entry;

static uint64_t first_bytes(const char *word) {
    uint64_t first = 0;
    for (int i = 0; i < 8; i++)
        first = first << 8 | (unsigned char)(*word ? *word++ : 0);
    return first;
}

static int by_entry(const void *a, const void *b) {
    const Entry *x = (const Entry *)a, *y = (const Entry *)b;
    return x->first != y->first ? (x->first > y->first) - (x->first < y->first) : strcmp(x->word, y->word);
}

/* Every word of every dictionary, sorted. */
static Entry *sorted_entries(MtcDictionary *const *dictionary, int count, int32_t **code, size_t *total) {
    *total = 0;
    for (int d = 0; d < count; d++)
        *total += (size_t)dictionary[d]->count;
    Entry *entry = (Entry *)mtc_memory(NULL, *total * sizeof *entry), *next = entry;
    for (int d = 0; d < count; d++) {
        const MtcDictionary *from = dictionary[d];
        code[d] = (int32_t *)mtc_memory(NULL, (size_t)from->count * sizeof *code[d]);
        for (int i = 0; i < from->count; i++, next++) {
            next->word = from->bytes + from->word[i].begin;
            next->first = first_bytes(next->word);
            next->code = &code[d][i];
        }
    }
    qsort(entry, *total, sizeof *entry, by_entry);
    return entry;
}

int mtc_find_word(const char *const *word, int count, const char *wanted) {
    const char *const *found =
        count ? (const char *const *)bsearch(&wanted, word, (size_t)count, sizeof *word, by_bytes) : NULL;
    return found ? (int)(found - word) : -1;
}

void mtc_merge_words(MtcDictionary *const *dictionary, int count, MtcWordList *list, int32_t **code) {
    size_t total, size = 0;
    int distinct = 0;
    Entry *entry = sorted_entries(dictionary, count, code, &total);
    for (size_t i = 0; i < total; i++) {
        bool fresh = i == 0 || by_entry(&entry[i - 1], &entry[i]) != 0;
        distinct += fresh;
        size += fresh ? strlen(entry[i].word) + 1 : 0;
        *entry[i].code = distinct - 1;
    }
    char *bytes = (char *)mtc_memory(NULL, size), *to = bytes;
    for (size_t i = 0; i < total; i++)
        if (i == 0 || *entry[i].code != *entry[i - 1].code)
            to = stpcpy(to, entry[i].word) + 1;
    mtc_word_list_from(list, bytes, size, distinct);
    list->bytes = bytes;
    free(entry);
}
