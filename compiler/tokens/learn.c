/* Learning merges: the pair of neighbours that is met most often becomes a token, again and again. Of pairs that are met equally often
 * the first by its bytes is taken, so that a text has one tokenizer. Each distinct word stands once, as a chain of parts; a pair
 * knows where it was seen, so that a merge costs what it changes. */
#include "runtime/base/files.h"
#include "runtime/base/meter.h"
#include "runtime/tokenizer/vocabulary.h"
#include "tokens/tokens.h"
#include "tokens/words.h"

#include <stdio.h>
#include <stdlib.h>

static const Span nowhere = {0};

enum { BYTES = 256, NONE = -1 };

/* A part of a word, by the place of its first byte. */
typedef struct Part {
    int32_t token; /* NONE: the part before has taken it in */
    int32_t before, behind;
    int32_t word;
} Part;

typedef struct Pair {
    int32_t left, right; /* left NONE: an empty row */
    int64_t count;       /* in the texts */
    int32_t *seen;       /* where, now or before */
    int32_t seen_count, seen_room;
    bool changed; /* its count is to go into the heap */
} Pair;

/* As the pair was when it came into the heap; one whose count has changed since comes again. */
typedef struct Rival {
    int64_t count;
    int32_t left, right;
} Rival;

typedef struct Learner {
    const TokensRequest *request;
    MtcFault fault;
    CountedWords words;
    int64_t bytes; /* of all texts */
    Part *part;
    Pair *pair; /* hash table */
    size_t pairs, rows;
    Rival *heap;
    size_t rivals, heap_room;
    VEC(Rival) merges;
    MtcTokenBytes *token;
    int32_t tokens;
    VEC(Rival) touched; /* pairs whose counts a merge has changed */
    Arena *arena;
    MtcMeter meter;
} Learner;

/* ---- pairs ---- */

static size_t pair_row(const Learner *l, int32_t left, int32_t right) {
    uint64_t hash = ((uint64_t)left << 32 | (uint32_t)right) * 0x9E3779B97F4A7C15u;
    size_t row = (hash ^ hash >> 31) & (l->rows - 1);
    while (l->pair[row].left != NONE && (l->pair[row].left != left || l->pair[row].right != right))
        row = (row + 1) & (l->rows - 1);
    return row;
}

static void grow_pairs(Learner *l) {
    const Pair *old = l->pair;
    const size_t rows = l->rows;
    if (2 * l->pairs < l->rows)
        return;
    l->rows = rows ? 2 * rows : 1 << 16;
    l->pair = mtc_zeroed(l->rows * sizeof *l->pair);
    for (size_t i = 0; i < l->rows; i++)
        l->pair[i].left = NONE;
    for (size_t i = 0; i < rows; i++)
        if (old[i].left != NONE)
            l->pair[pair_row(l, old[i].left, old[i].right)] = old[i];
    free((void *)old);
}

static Pair *pair_of(Learner *l, int32_t left, int32_t right) {
    grow_pairs(l);
    Pair *pair = &l->pair[pair_row(l, left, right)];
    l->pairs += pair->left == NONE;
    pair->left = left;
    pair->right = right;
    return pair;
}

/* The pair that begins at a part, and one behind it, came to be or is no more. */
static void change_count(Learner *l, int32_t at, int sign) {
    const Part *part = &l->part[at];
    Pair *pair = pair_of(l, part->token, l->part[part->behind].token);
    pair->count += sign * l->words.at[part->word].count;
    if (!pair->changed)
        VEC_PUSH(l->arena, &l->touched, ((Rival){0, pair->left, pair->right}));
    pair->changed = true;
    if (sign < 0)
        return;
    if (pair->seen_count == pair->seen_room) {
        pair->seen_room = 2 * pair->seen_room + 4;
        pair->seen = mtc_memory(pair->seen, (size_t)pair->seen_room * sizeof *pair->seen);
    }
    pair->seen[pair->seen_count++] = at;
}

/* ---- the pair that is next ---- */

static int compare_tokens(const Learner *l, int32_t a, int32_t b) {
    const MtcTokenBytes *x = &l->token[a], *y = &l->token[b];
    const int order = memcmp(x->at, y->at, x->size < y->size ? x->size : y->size);
    return order ? order : (x->size > y->size) - (x->size < y->size);
}

static bool is_ahead(const Learner *l, const Rival *a, const Rival *b) {
    if (a->count != b->count)
        return a->count > b->count;
    const int left = compare_tokens(l, a->left, b->left);
    return left ? left < 0 : compare_tokens(l, a->right, b->right) < 0;
}

static void push_rival(Learner *l, Rival rival) {
    size_t at = l->rivals++;
    if (l->rivals > l->heap_room) {
        l->heap_room = 2 * l->rivals + 1024;
        l->heap = mtc_memory(l->heap, l->heap_room * sizeof *l->heap);
    }
    for (size_t parent; at > 0 && is_ahead(l, &rival, &l->heap[parent = (at - 1) / 2]); at = parent)
        l->heap[at] = l->heap[parent];
    l->heap[at] = rival;
}

static Rival pop_rival(Learner *l) {
    const Rival first = l->heap[0], last = l->heap[--l->rivals];
    size_t at = 0, child;
    while ((child = 2 * at + 1) < l->rivals) {
        child += child + 1 < l->rivals && is_ahead(l, &l->heap[child + 1], &l->heap[child]);
        if (!is_ahead(l, &l->heap[child], &last))
            break;
        l->heap[at] = l->heap[child];
        at = child;
    }
    l->heap[at] = last;
    return first;
}

static void push_touched(Learner *l) {
    for (int i = 0; i < l->touched.count; i++) {
        Pair *pair = pair_of(l, l->touched.at[i].left, l->touched.at[i].right);
        pair->changed = false;
        if (pair->count > 0)
            push_rival(l, (Rival){pair->count, pair->left, pair->right});
    }
    l->touched.count = 0;
}

/* False: no word has two parts any more. Whoever is in the heap with another count is there with its own too. */
static bool find_next(Learner *l, Rival *next) {
    while (l->rivals) {
        *next = pop_rival(l);
        if (pair_of(l, next->left, next->right)->count == next->count)
            return true;
    }
    return false;
}

/* ---- merging ---- */

static int compare_places(const void *a, const void *b) {
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static void merge_parts(Learner *l, int32_t at, int32_t token) {
    Part *part = &l->part[at], *taken = &l->part[part->behind];
    if (part->before != NONE)
        change_count(l, part->before, -1);
    if (taken->behind != NONE)
        change_count(l, part->behind, -1);
    part->token = token;
    part->behind = taken->behind;
    taken->token = NONE;
    if (part->before != NONE)
        change_count(l, part->before, 1);
    if (part->behind == NONE)
        return;
    l->part[part->behind].before = at;
    change_count(l, at, 1);
}

/* From left to right, as encoding does: of three equal parts the first two. */
static void merge_pair(Learner *l, const Rival *next, int32_t token) {
    Pair *pair = pair_of(l, next->left, next->right);
    int32_t *seen = pair->seen;
    const int32_t count = pair->seen_count;
    pair->seen = NULL;
    pair->seen_count = pair->seen_room = 0;
    qsort(seen, (size_t)count, sizeof *seen, compare_places);
    for (int32_t i = 0; i < count; i++) {
        const Part *part = &l->part[seen[i]];
        if (part->token == next->left && part->behind != NONE && l->part[part->behind].token == next->right)
            merge_parts(l, seen[i], token);
    }
    free(seen);
    pair_of(l, next->left, next->right)->count = 0; /* nobody has it any more */
    push_touched(l);
}

/* The token of these bytes, which another pair may have made before. */
static int32_t make_token(Learner *l, const Rival *next) {
    const MtcTokenBytes left = l->token[next->left], right = l->token[next->right];
    const size_t size = left.size + right.size;
    uint8_t *bytes = arena_alloc(l->arena, size);
    memcpy(bytes, left.at, left.size);
    memcpy(bytes + left.size, right.at, right.size);
    for (int32_t i = BYTES; i < l->tokens; i++)
        if (l->token[i].size == size && memcmp(l->token[i].at, bytes, size) == 0)
            return i;
    l->token[l->tokens] = (MtcTokenBytes){bytes, size};
    return l->tokens++;
}

static void learn_merges(Learner *l) {
    Rival next;
    while (l->tokens < l->request->learn && find_next(l, &next)) {
        VEC_PUSH(l->arena, &l->merges, next);
        merge_pair(l, &next, make_token(l, &next));
        mtc_meter_part(&l->meter, "learning", l->tokens, l->request->learn);
    }
}

/* ---- the texts ---- */

static int read_words(Learner *l) {
    uint8_t *classes = mtc_character_classes();
    int code = 0;
    for (int i = 0; i < l->request->texts && !code; i++) {
        MtcMapped text;
        code = mtc_map_file(&l->fault, l->request->text[i], &text);
        if (code)
            break;
        words_count(&l->words, &mtc_gpt2_pattern, classes, text.bytes, text.size);
        l->bytes += (int64_t)text.size;
        mtc_unmap_file(&text);
    }
    free(classes);
    if (!code && l->words.used > INT32_MAX)
        code = mtc_fail(&l->fault, MTC_BAD_DATA, "the texts have %s of different words: 2 GB at most",
                        mtc_bytes((double)l->words.used));
    if (!code && !l->words.used)
        code = mtc_fail(&l->fault, MTC_BAD_DATA, "%s: there is no text in it", l->request->text[0]);
    return code;
}

static void make_parts(Learner *l) {
    l->part = mtc_memory(NULL, l->words.used * sizeof *l->part);
    for (size_t w = 0; w < l->words.count; w++) {
        const int32_t begin = (int32_t)l->words.at[w].begin, end = begin + (int32_t)l->words.at[w].size;
        for (int32_t i = begin; i < end; i++)
            l->part[i] = (Part){l->words.bytes[i], i > begin ? i - 1 : NONE, i + 1 < end ? i + 1 : NONE, (int32_t)w};
        for (int32_t i = begin; i + 1 < end; i++)
            change_count(l, i, 1);
    }
    push_touched(l);
}

static void make_bytes(Learner *l) {
    uint8_t *bytes = arena_alloc(l->arena, BYTES);
    l->token = mtc_zeroed((size_t)l->request->learn * sizeof *l->token);
    for (int b = 0; b < BYTES; b++) {
        bytes[b] = (uint8_t)b;
        l->token[b] = (MtcTokenBytes){bytes + b, 1};
    }
    l->tokens = BYTES;
}

/* ---- tokenizer.json ---- */

static const char HEAD[] = "{\n"
                           "  \"version\": \"1.0\",\n"
                           "  \"truncation\": null,\n"
                           "  \"padding\": null,\n"
                           "  \"added_tokens\": [],\n"
                           "  \"normalizer\": null,\n"
                           "  \"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false, "
                           "\"trim_offsets\": true, \"use_regex\": true},\n"
                           "  \"post_processor\": null,\n"
                           "  \"decoder\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": "
                           "true, \"use_regex\": true},\n"
                           "  \"model\": {\n"
                           "    \"type\": \"BPE\",\n"
                           "    \"dropout\": null,\n"
                           "    \"unk_token\": null,\n"
                           "    \"continuing_subword_prefix\": null,\n"
                           "    \"end_of_word_suffix\": null,\n"
                           "    \"fuse_unk\": false,\n"
                           "    \"byte_fallback\": false,\n"
                           "    \"ignore_merges\": false,\n"
                           "    \"vocab\": {";

static void add_written(MtcText *text, const MtcTokenBytes *token) {
    for (size_t i = 0; i < token->size; i++) {
        uint8_t character[4];
        const int size = mtc_put_character(mtc_byte_character(token->at[i]), character);
        const bool escaped = token->at[i] == '"' || token->at[i] == '\\';
        mtc_text_add(text, "%s%.*s", escaped ? "\\" : "", size, (const char *)character);
    }
}

static void make_document(const Learner *l, MtcText *text) {
    mtc_text_add(text, "%s", HEAD);
    for (int32_t i = 0; i < l->tokens; i++) {
        mtc_text_add(text, "%s\n      \"", i ? "," : "");
        add_written(text, &l->token[i]);
        mtc_text_add(text, "\": %d", i);
    }
    mtc_text_add(text, "\n    },\n    \"merges\": [");
    for (int i = 0; i < l->merges.count; i++) {
        mtc_text_add(text, "%s\n      \"", i ? "," : "");
        add_written(text, &l->token[l->merges.at[i].left]);
        mtc_text_add(text, " ");
        add_written(text, &l->token[l->merges.at[i].right]);
        mtc_text_add(text, "\"");
    }
    mtc_text_add(text, "\n    ]\n  }\n}\n");
}

static int write_tokenizer(Learner *l) {
    MtcText text = {NULL, 0, 0};
    MtcOutput *output;
    int code = mtc_output_open(&l->fault, l->request->output, &output);
    if (code)
        return code;
    make_document(l, &text);
    code = mtc_output_write(&l->fault, output, text.at, text.length);
    free(text.at);
    if (!code)
        return mtc_output_commit(&l->fault, output);
    mtc_output_discard(output);
    return code;
}

/* ---- the command ---- */

static int learn(Learner *l) {
    const double start = mtc_seconds();
    int code = read_words(l);
    if (code)
        return code;
    make_bytes(l);
    make_parts(l);
    mtc_meter_open(&l->meter);
    learn_merges(l);
    mtc_meter_clear(&l->meter);
    code = write_tokenizer(l);
    if (!code)
        fprintf(stderr, "%s: %d tokens, of %s in %.3g s\n", l->request->output, l->tokens, mtc_bytes((double)l->bytes),
                mtc_seconds() - start);
    return code;
}

static void free_learner(Learner *l) {
    for (size_t i = 0; i < l->rows; i++)
        free(l->pair[i].seen);
    words_free(&l->words);
    free(l->part);
    free(l->pair);
    free(l->heap);
    free(l->token);
    free(l);
}

int tokens_learn(Diag *diag, const TokensRequest *request) {
    Learner *l = mtc_zeroed(sizeof *l);
    l->request = request;
    l->arena = diag_arena(diag);
    int code = learn(l);
    if (code)
        diag_error(diag, nowhere, "%s", l->fault.text);
    else if (l->tokens < request->learn)
        diag_warning(diag, nowhere, "%s: has %d tokens, not %d: the texts have no more to learn", request->output,
                     l->tokens, request->learn);
    free_learner(l);
    return code;
}
