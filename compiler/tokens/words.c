#include "tokens/words.h"

#include <stdlib.h>
#include <string.h>

static uint64_t hash_of(const uint8_t *bytes, size_t size) {
    uint64_t hash = size;
    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ bytes[i]) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 29;
    }
    return hash;
}

static size_t *row_of(const CountedWords *w, const uint8_t *bytes, size_t size) {
    size_t row = hash_of(bytes, size) & (w->rows - 1);
    for (; w->row[row]; row = (row + 1) & (w->rows - 1)) {
        const CountedWord *word = &w->at[w->row[row] - 1];
        if (word->size == size && memcmp(w->bytes + word->begin, bytes, size) == 0)
            break;
    }
    return &w->row[row];
}

/* At most half full. */
static void grow_table(CountedWords *w) {
    if (2 * w->count < w->rows)
        return;
    w->rows = w->rows ? 2 * w->rows : 1024;
    free(w->row);
    w->row = mtc_zeroed(w->rows * sizeof *w->row);
    for (size_t i = 0; i < w->count; i++)
        *row_of(w, w->bytes + w->at[i].begin, w->at[i].size) = i + 1;
}

static CountedWord *add_word(CountedWords *w, const uint8_t *bytes, size_t size) {
    if (w->used + size > w->room) {
        w->room = 2 * (w->used + size);
        w->bytes = mtc_memory(w->bytes, w->room);
    }
    if (w->count == w->capacity) {
        w->capacity = 2 * w->capacity + 1024;
        w->at = mtc_memory(w->at, w->capacity * sizeof *w->at);
    }
    memcpy(w->bytes + w->used, bytes, size);
    w->at[w->count] = (CountedWord){w->used, size, 0};
    w->used += size;
    return &w->at[w->count++];
}

static void count_word(CountedWords *w, const uint8_t *bytes, size_t size) {
    grow_table(w);
    size_t *row = row_of(w, bytes, size);
    CountedWord *word = *row ? &w->at[*row - 1] : add_word(w, bytes, size);
    *row = (size_t)(word - w->at) + 1;
    word->count++;
}

void words_count(CountedWords *words, const MtcPattern *pattern, const uint8_t *classes, const uint8_t *text,
                 size_t size) {
    for (const uint8_t *at = text, *end = text + size, *next; at < end; at = next) {
        next = mtc_word_end(pattern, classes, at, end);
        count_word(words, at, (size_t)(next - at));
    }
}

void words_free(CountedWords *words) {
    free(words->bytes);
    free(words->at);
    free(words->row);
}
