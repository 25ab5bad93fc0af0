/* A word's tokens: its bytes are tokens; of the neighbours that merge, those of the lowest rank do, the first of them first; and
 * so on until none do. A heap holds the pairs, so that a word of n bytes takes n log n steps. Words come again and again: the
 * tokens of short ones are kept. */
#include "tokenizer/vocabulary.h"

#include <stdlib.h>
#include <string.h>

/* 64 bytes: a line of the cache. */
enum { WORD_KEYS = 3, WORD_BYTES = 8 * WORD_KEYS, WORD_TOKENS = 8, WORD_ROWS = 1 << 15, NO_RANK = INT32_MAX };
typedef struct KnownWord {
    uint64_t key[WORD_KEYS]; /* its bytes, and zeros */
    uint8_t size, count;     /* size 0: an empty row */
    int32_t token[WORD_TOKENS];
} KnownWord;

/* One or more bytes of the word; those that another part has taken in have no rank. */
typedef struct WordPart {
    int32_t token, before, behind; /* neighbours: -1 and the word's size are none */
    int32_t rank, merged;          /* of the pair that begins here */
} WordPart;

typedef struct Candidate {
    int32_t rank, at;
} Candidate;

struct MtcEncoder {
    const MtcTokenizer *tokenizer;
    KnownWord *known;
    WordPart *part;
    Candidate *heap;
    size_t room, waiting; /* bytes of a word that parts and heap have room for; candidates in the heap */
};

MtcEncoder *mtc_encoder_new(const MtcTokenizer *tokenizer) {
    MtcEncoder *e = (MtcEncoder *)mtc_zeroed(sizeof *e);
    e->tokenizer = tokenizer;
    e->known = (KnownWord *)mtc_zeroed(WORD_ROWS * sizeof *e->known);
    return e;
}

void mtc_encoder_free(MtcEncoder *e) {
    if (!e)
        return;
    free(e->known);
    free(e->part);
    free(e->heap);
    free(e);
}

static void reserve_tokens(MtcTokenList *list, size_t more) {
    if (list->count + more <= list->capacity)
        return;
    list->capacity = (list->count + more) * 3 / 2;
    list->at = (int32_t *)mtc_memory(list->at, list->capacity * sizeof *list->at);
}

/* ---- merging ---- */

/* By rank, then by place. */
static bool is_sooner(Candidate a, Candidate b) {
    return a.rank != b.rank ? a.rank < b.rank : a.at < b.at;
}

static void push_candidate(MtcEncoder *e, Candidate candidate) {
    size_t at = e->waiting++;
    for (size_t parent; at > 0 && is_sooner(candidate, e->heap[parent = (at - 1) / 2]); at = parent)
        e->heap[at] = e->heap[parent];
    e->heap[at] = candidate;
}

static Candidate pop_candidate(MtcEncoder *e) {
    const Candidate first = e->heap[0], last = e->heap[--e->waiting];
    size_t at = 0, child;
    while ((child = 2 * at + 1) < e->waiting) {
        child += child + 1 < e->waiting && is_sooner(e->heap[child + 1], e->heap[child]);
        if (!is_sooner(e->heap[child], last))
            break;
        e->heap[at] = e->heap[child];
        at = child;
    }
    e->heap[at] = last;
    return first;
}

/* The pair of a part and the one behind it, of which one is new. */
static void consider_pair(MtcEncoder *e, int32_t at, int32_t size) {
    WordPart *part = &e->part[at];
    const MtcMerge *merge =
        part->behind < size ? mtc_merge_of(e->tokenizer, part->token, e->part[part->behind].token) : NULL;
    part->rank = merge ? merge->rank : NO_RANK;
    if (!merge)
        return;
    part->merged = merge->merged;
    push_candidate(e, (Candidate){merge->rank, at});
}

static void merge_at(MtcEncoder *e, int32_t at, int32_t size) {
    WordPart *part = &e->part[at], *taken = &e->part[part->behind];
    part->token = part->merged;
    part->behind = taken->behind;
    taken->rank = NO_RANK;
    if (part->behind < size)
        e->part[part->behind].before = at;
    consider_pair(e, at, size);
    if (part->before >= 0)
        consider_pair(e, part->before, size);
}

/* Each merge adds two candidates at most, and there are fewer merges than bytes. */
static void make_room(MtcEncoder *e, size_t size) {
    if (size <= e->room)
        return;
    e->room = size * 2;
    e->part = (WordPart *)mtc_memory(e->part, e->room * sizeof *e->part);
    e->heap = (Candidate *)mtc_memory(e->heap, 3 * e->room * sizeof *e->heap);
}

static void merge_word(MtcEncoder *e, const uint8_t *word, int32_t size, MtcTokenList *tokens) {
    make_room(e, (size_t)size);
    e->waiting = 0;
    for (int32_t i = 0; i < size; i++)
        e->part[i] = (WordPart){e->tokenizer->byte[word[i]], i - 1, i + 1, NO_RANK, 0};
    for (int32_t i = 0; i < size; i++)
        consider_pair(e, i, size);
    while (e->waiting) {
        const Candidate first = pop_candidate(e);
        if (e->part[first.at].rank == first.rank)
            merge_at(e, first.at, size);
    }
    for (int32_t i = 0; i < size; i = e->part[i].behind)
        tokens->at[tokens->count++] = e->part[i].token;
}

/* There is room for as many tokens as the word has bytes. */
static void encode_new_word(MtcEncoder *e, const uint8_t *word, int32_t size, MtcTokenList *tokens) {
    const int32_t whole = e->tokenizer->whole_words ? mtc_token_of(e->tokenizer, word, (size_t)size) : MTC_NO_TOKEN;
    if (whole == MTC_NO_TOKEN)
        merge_word(e, word, size, tokens);
    else
        tokens->at[tokens->count++] = whole;
}

/* ---- words that are known ---- */

/* `size` bytes, up to 8, the first the lowest; eight may be read where `end` is so far. */
static uint64_t load_word_bytes(const uint8_t *bytes, size_t size, const uint8_t *end) {
    uint64_t value = 0;
    if (end - bytes >= 8 && size) {
        for (int i = 0; i < 8; i++) /* one load, which the compiler sees */
            value |= (uint64_t)bytes[i] << 8 * i;
        return value & UINT64_MAX >> (64 - 8 * size);
    }
    for (size_t i = 0; i < size; i++)
        value |= (uint64_t)bytes[i] << 8 * i;
    return value;
}

static KnownWord *known_row(MtcEncoder *e, const uint8_t *word, size_t size, const uint8_t *end,
                            uint64_t key[WORD_KEYS]) {
    uint64_t hash = size;
    for (size_t i = 0; i < WORD_KEYS; i++) {
        key[i] = 8 * i < size ? load_word_bytes(word + 8 * i, size - 8 * i < 8 ? size - 8 * i : 8, end) : 0;
        hash = (hash ^ key[i]) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 32;
    }
    return &e->known[hash & (WORD_ROWS - 1)];
}

static bool is_known(const KnownWord *row, size_t size, const uint64_t key[WORD_KEYS]) {
    return row->size == size && row->key[0] == key[0] && row->key[1] == key[1] && row->key[2] == key[2];
}

static void remember(KnownWord *row, size_t size, const uint64_t key[WORD_KEYS], const int32_t *tokens, size_t count) {
    if (count > WORD_TOKENS)
        return;
    row->size = (uint8_t)size;
    row->count = (uint8_t)count;
    memcpy(row->key, key, sizeof row->key);
    memcpy(row->token, tokens, count * sizeof *tokens);
}

static void encode_one_word(MtcEncoder *e, const uint8_t *word, size_t size, const uint8_t *end, MtcTokenList *tokens) {
    uint64_t key[WORD_KEYS];
    reserve_tokens(tokens, size > WORD_TOKENS ? size : WORD_TOKENS);
    if (size > WORD_BYTES) {
        encode_new_word(e, word, (int32_t)size, tokens);
        return;
    }
    KnownWord *row = known_row(e, word, size, end, key);
    if (is_known(row, size, key)) {
        memcpy(tokens->at + tokens->count, row->token, sizeof row->token); /* all of them: one copy of a known length */
        tokens->count += row->count;
        return;
    }
    const size_t before = tokens->count;
    encode_new_word(e, word, (int32_t)size, tokens);
    remember(row, size, key, tokens->at + before, tokens->count - before);
}

static void encode_words(MtcEncoder *e, const uint8_t *text, const uint8_t *end, MtcTokenList *tokens) {
    const MtcTokenizer *t = e->tokenizer;
    while (text < end) {
        const uint8_t *next = mtc_word_end(t->pattern, t->classes, text, end);
        encode_one_word(e, text, (size_t)(next - text), end, tokens);
        text = next;
    }
}

/* ---- added tokens ---- */

/* The longest that begins here; NULL: none. */
static const MtcAddedToken *added_at(const MtcTokenizer *t, bool late, const uint8_t *text, const uint8_t *end) {
    for (int i = 0; i < t->added_count; i++) {
        const MtcAddedToken *added = &t->added[i];
        if (added->late == late && added->size <= (size_t)(end - text) && memcmp(added->bytes, text, added->size) == 0)
            return added;
    }
    return NULL;
}

/* Tokens that are looked for first, then late ones in what is left, then words. */
enum { FIRST_ADDED, LATE_ADDED, WORDS };

static void encode_span(MtcEncoder *e, int phase, const uint8_t *text, const uint8_t *end, MtcTokenList *tokens) {
    const MtcTokenizer *t = e->tokenizer;
    const uint8_t *from = text;
    if (phase == WORDS) {
        encode_words(e, text, end, tokens);
        return;
    }
    while (text < end) {
        const MtcAddedToken *added = t->begins[phase][*text] ? added_at(t, phase == LATE_ADDED, text, end) : NULL;
        if (!added) {
            text++;
            continue;
        }
        encode_span(e, phase + 1, from, text, tokens);
        reserve_tokens(tokens, 1);
        tokens->at[tokens->count++] = added->token;
        from = text += added->size;
    }
    encode_span(e, phase + 1, from, end, tokens);
}

void mtc_encode(MtcEncoder *encoder, const uint8_t *text, size_t size, MtcTokenList *tokens) {
    encode_span(encoder, FIRST_ADDED, text, text + size, tokens);
}

/* ---- cutting ---- */

static bool is_within_added(const MtcTokenizer *t, const uint8_t *text, size_t size, size_t at) {
    for (int i = 0; i < t->added_count; i++)
        for (size_t before = 1; before < t->added[i].size && before <= at; before++)
            if (t->added[i].size - before <= size - at &&
                memcmp(text + at - before, t->added[i].bytes, t->added[i].size) == 0)
                return true;
    return false;
}

size_t mtc_tokenizer_cut(const MtcTokenizer *t, const uint8_t *text, size_t size, size_t from, size_t most) {
    for (size_t at = from ? from : 1; at < most && at < size; at++)
        if (mtc_words_end(t->pattern, t->classes, text, text + at, text + size) && !is_within_added(t, text, size, at))
            return at;
    return most;
}
