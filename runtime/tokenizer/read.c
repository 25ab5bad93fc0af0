/* tokenizer.json, and vocab.json with merges.txt. Whatever stands there is one of the few things that mean what encode.c does, or a fault. */
#include "base/files.h"
#include "base/json.h"
#include "tokenizer/vocabulary.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FILE_BYTES = 1 << 30 };

typedef struct TokenizerReader {
    MtcFault *fault;
    const char *path;
    MtcTokenizer *tokenizer;
    size_t used;           /* of the tokenizer's memory */
    const MtcJson **added; /* tokens by number; NULL: there is none of it */
} TokenizerReader;

/* ---- what is allowed to stand somewhere ---- */

static const char *json_kind(const MtcJson *value) {
    static const char *const names[] = {"null", "false", "true", "a number", "a string", "a list", "an object"};
    return names[value->kind];
}

/* "\"NFC\"", "an object of the type \"NFC\"", "true". */
static void describe_value(MtcText *text, const MtcJson *value) {
    const MtcJson *type = mtc_json_member(value, "type");
    if (value->kind == MTC_JSON_STRING)
        mtc_text_json(text, value->string);
    else if (type && type->kind == MTC_JSON_STRING) {
        mtc_text_add(text, "of the type ");
        mtc_text_json(text, type->string);
    } else
        mtc_text_add(text, "%s", json_kind(value));
}

/* `cure`: what to do, or NULL. */
static bool refuse_value(TokenizerReader *r, const char *place, const MtcJson *value, const char *expected,
                         const char *cure) {
    MtcText found = {NULL, 0, 0};
    describe_value(&found, value);
    mtc_fail(r->fault, MTC_BAD_DATA, "%s: %s is %s: expected %s", r->path, place, mtc_harmless(found.at), expected);
    if (cure)
        mtc_note(r->fault, "%s", cure);
    free(found.at);
    return false;
}

static bool is_nothing(const MtcJson *value) {
    return !value || value->kind == MTC_JSON_NULL || (value->kind == MTC_JSON_STRING && !value->string[0]) ||
           ((value->kind == MTC_JSON_ARRAY || value->kind == MTC_JSON_OBJECT) && !value->first);
}

static bool is_string(const MtcJson *value, const char *string) {
    return value && value->kind == MTC_JSON_STRING && strcmp(value->string, string) == 0;
}

static bool is_type(const MtcJson *value, const char *type) {
    return value && is_string(mtc_json_member(value, "type"), type);
}

/* A member that is not there has the value that its absence means. */
static bool is_flag(const MtcJson *value, bool word, bool absent) {
    return value ? value->kind == (word ? MTC_JSON_TRUE : MTC_JSON_FALSE) : word == absent;
}

/* One that decides which tokens come. */
static bool read_flag(TokenizerReader *r, const MtcJson *object, const char *name, bool absent, bool *flag) {
    const MtcJson *value = mtc_json_member(object, name);
    *flag = is_flag(value, true, absent);
    return *flag || is_flag(value, false, absent) || refuse_value(r, name, value, "true or false", NULL);
}

/* Names of members, with an end; every other is a fault, for it could mean anything. */
static bool check_members(TokenizerReader *r, const char *place, const MtcJson *object, const char *const *names) {
    for (const MtcJson *item = object->first; item; item = item->next) {
        int i = 0;
        while (names[i] && strcmp(names[i], item->key) != 0)
            i++;
        if (!names[i]) {
            mtc_fail(r->fault, MTC_BAD_DATA, "%s: %s has a member \"%s\", which means nothing here", r->path, place,
                     mtc_harmless(item->key));
            return false;
        }
    }
    return true;
}

static const MtcJson *member_of_kind(TokenizerReader *r, const char *place, const MtcJson *object, const char *name,
                                     MtcJsonKind kind) {
    const MtcJson *value = mtc_json_member(object, name), wanted = {.kind = kind};
    if (value && value->kind == kind)
        return value;
    mtc_fail(r->fault, MTC_BAD_DATA, "%s: %s \"%s\" is %s: expected %s", r->path, place, name,
             value ? json_kind(value) : "missing", json_kind(&wanted));
    return NULL;
}

/* ---- the steps beside the model ---- */

/* The pattern's own splitting, or none that follows a Split. */
static bool check_byte_level(TokenizerReader *r, const char *place, const MtcJson *step, bool splits) {
    static const char *const names[] = {"type", "add_prefix_space", "trim_offsets", "use_regex", NULL};
    if (!is_type(step, "ByteLevel"))
        return refuse_value(r, place, step, "\"ByteLevel\"", "mtc encodes bytes, as GPT-2 and Llama 3 do");
    if (!check_members(r, place, step, names))
        return false;
    if (!is_flag(mtc_json_member(step, "add_prefix_space"), false, true)) {
        mtc_fail(r->fault, MTC_BAD_DATA, "%s: %s adds a space before the text: expected \"add_prefix_space\": false",
                 r->path, place);
        return false;
    }
    if (is_flag(mtc_json_member(step, "use_regex"), splits, true))
        return true;
    mtc_fail(r->fault, MTC_BAD_DATA, "%s: %s: expected \"use_regex\": %s", r->path, place, splits ? "true" : "false");
    return false;
}

static bool read_split_step(TokenizerReader *r, const MtcJson *step) {
    static const char *const names[] = {"type", "pattern", "behavior", "invert", NULL};
    static const char place[] = "the Split of pre_tokenizer";
    const MtcJson *pattern = mtc_json_member(step, "pattern");
    const MtcJson *regex = pattern ? mtc_json_member(pattern, "Regex") : NULL;
    if (!check_members(r, place, step, names))
        return false;
    r->tokenizer->pattern = regex && regex->kind == MTC_JSON_STRING ? mtc_pattern_of(regex->string) : NULL;
    if (!r->tokenizer->pattern) {
        mtc_fail(r->fault, MTC_BAD_DATA, "%s: %s has another pattern than %s: %s", r->path, place, mtc_pattern_names(),
                 regex && regex->kind == MTC_JSON_STRING ? mtc_harmless(regex->string) : "no regular expression");
        return false;
    }
    if (is_string(mtc_json_member(step, "behavior"), "Isolated") &&
        is_flag(mtc_json_member(step, "invert"), false, false))
        return true;
    mtc_fail(r->fault, MTC_BAD_DATA, "%s: %s: expected \"behavior\": \"Isolated\", \"invert\": false", r->path, place);
    return false;
}

/* ByteLevel by itself has GPT-2's pattern; Llama 3 has a Split before it. */
static bool read_pre_tokenizer(TokenizerReader *r, const MtcJson *step) {
    static const char place[] = "pre_tokenizer";
    const MtcJson *list = step ? mtc_json_member(step, "pretokenizers") : NULL, missing = {.kind = MTC_JSON_NULL};
    r->tokenizer->pattern = &mtc_gpt2_pattern;
    if (!is_type(step, "Sequence"))
        return check_byte_level(r, place, step ? step : &missing, true);
    const MtcJson *first = list && list->kind == MTC_JSON_ARRAY ? list->first : NULL;
    if (!is_type(first, "Split") || !first->next || first->next->next) {
        mtc_fail(r->fault, MTC_BAD_DATA, "%s: %s is a sequence of other steps than a Split and a ByteLevel", r->path,
                 place);
        return false;
    }
    return read_split_step(r, first) && check_byte_level(r, "the second step of pre_tokenizer", first->next, false);
}

static bool check_steps(TokenizerReader *r, const MtcJson *root) {
    static const char *const nothing[] = {"truncation", "padding", "normalizer"};
    static const char *const byte_level[] = {"post_processor", "decoder"};
    for (int i = 0; i < 3; i++) {
        const MtcJson *value = mtc_json_member(root, nothing[i]);
        if (!is_nothing(value))
            return refuse_value(r, nothing[i], value, "null", "mtc encodes texts as they are, whole");
    }
    for (int i = 0; i < 2; i++) {
        const MtcJson *value = mtc_json_member(root, byte_level[i]);
        if (!is_nothing(value) && !is_type(value, "ByteLevel"))
            return refuse_value(
                r, byte_level[i], value, "null or \"ByteLevel\"",
                "tokens of a training are those of the text alone: write null there, in a copy of the file");
    }
    return read_pre_tokenizer(r, mtc_json_member(root, "pre_tokenizer"));
}

/* ---- the vocabulary ---- */

/* The number of a token, or a fault. */
static bool read_number_of(TokenizerReader *r, const char *place, const char *name, const MtcJson *id) {
    if (id && id->kind == MTC_JSON_NUMBER && id->is_integer && id->integer >= 0 && id->integer < MTC_MOST_TOKENS)
        return true;
    mtc_fail(r->fault, MTC_BAD_DATA, "%s: %s: the number of \"%s\" is none from 0 to %d", r->path, place,
             mtc_harmless(name), MTC_MOST_TOKENS - 1);
    return false;
}

/* How many numbers there are, and bytes: no token has more than its name. */
static bool measure_tokens(TokenizerReader *r, const MtcJson *vocabulary, const MtcJson *added, size_t *bytes) {
    int64_t highest = -1;
    for (const MtcJson *item = vocabulary->first; item; item = item->next) {
        if (!read_number_of(r, "the vocabulary", item->key, item))
            return false;
        highest = item->integer > highest ? item->integer : highest;
        *bytes += strlen(item->key);
    }
    for (const MtcJson *item = added; item; item = item->next) {
        const MtcJson *id = mtc_json_member(item, "id");
        const MtcJson *content = member_of_kind(r, "added_tokens:", item, "content", MTC_JSON_STRING);
        if (!content || !read_number_of(r, "added_tokens", content->string, id))
            return false;
        highest = id->integer > highest ? id->integer : highest;
        *bytes += strlen(content->string);
        r->tokenizer->added_count++;
    }
    r->tokenizer->count = (int32_t)highest + 1;
    return true;
}

/* The bytes are the name's, or, of a token of the vocabulary, those that it stands for. */
static uint8_t *keep_name(TokenizerReader *r, const char *name, size_t *size) {
    uint8_t *bytes = r->tokenizer->memory + r->used;
    *size = strlen(name);
    memcpy(bytes, name, *size);
    r->used += *size;
    return bytes;
}

static bool give_number(TokenizerReader *r, const char *name, int64_t number, const uint8_t *bytes, size_t size) {
    MtcTokenBytes *token = &r->tokenizer->token[number];
    if (token->at) {
        mtc_fail(r->fault, MTC_BAD_DATA, "%s: two tokens have the number %lld; \"%s\" is one of them", r->path,
                 (long long)number, mtc_harmless(name));
        return false;
    }
    *token = (MtcTokenBytes){bytes, size};
    return true;
}

/* What is written by no bytes is an added token, whose list has its text. */
static bool is_added(const TokenizerReader *r, const MtcJson *entry) {
    const MtcJson *added = r->added[entry->integer];
    return added && is_string(mtc_json_member(added, "content"), entry->key);
}

static bool read_vocabulary(TokenizerReader *r, const MtcJson *vocabulary) {
    for (const MtcJson *item = vocabulary->first; item; item = item->next) {
        size_t size;
        const uint8_t *at;
        uint8_t *bytes = keep_name(r, item->key, &size);
        const bool written = size && mtc_unwrite_bytes(bytes, &size, &at);
        if (written && !give_number(r, item->key, item->integer, bytes, size))
            return false;
        if (!written && !is_added(r, item)) {
            mtc_fail(r->fault, MTC_BAD_DATA,
                     "%s: the vocabulary has \"%s\", number %lld, which is not written as bytes are", r->path,
                     mtc_harmless(item->key), (long long)item->integer);
            mtc_note(r->fault, "mtc takes vocabularies of bytes, as those of GPT-2 and Llama 3, of which each is a "
                               "printable character");
            return false;
        }
    }
    return true;
}

/* Also those of a token that the vocabulary has too. */
static bool index_added(TokenizerReader *r, const MtcJson *items) {
    r->added = (const MtcJson **)mtc_zeroed((size_t)r->tokenizer->count * sizeof *r->added + 1);
    for (const MtcJson *item = items; item; item = item->next) {
        const MtcJson **row = &r->added[mtc_json_member(item, "id")->integer];
        if (*row) {
            mtc_fail(r->fault, MTC_BAD_DATA, "%s: added_tokens: two have the number %lld", r->path,
                     (long long)(row - r->added));
            return false;
        }
        *row = item;
    }
    return true;
}

static bool check_bytes(TokenizerReader *r) {
    int missing = 0, first = 0;
    for (int b = 255; b >= 0; b--)
        if (r->tokenizer->byte[b] == MTC_NO_TOKEN) {
            missing++;
            first = b;
        }
    if (!missing)
        return true;
    mtc_fail(r->fault, MTC_BAD_DATA,
             "%s: %d of the 256 bytes are no tokens, 0x%02X among them: no text with one of these could be encoded",
             r->path, missing, (unsigned)first);
    mtc_note(r->fault, "the package tokenizers takes them all with initial_alphabet=ByteLevel.alphabet()");
    return false;
}

/* ---- added tokens ---- */

static int compare_added(const void *a, const void *b) {
    const MtcAddedToken *x = (const MtcAddedToken *)a, *y = (const MtcAddedToken *)b;
    if (x->size != y->size)
        return x->size > y->size ? -1 : 1;
    const int order = memcmp(x->bytes, y->bytes, x->size);
    return order ? order : x->token - y->token;
}

/* Of the vocabulary, where a name stands for bytes. */
static int32_t token_of_name(const TokenizerReader *r, const char *name) {
    const uint8_t *at;
    size_t size = strlen(name);
    uint8_t *bytes = (uint8_t *)mtc_memory(NULL, size + 1);
    memcpy(bytes, name, size + 1);
    const bool written = mtc_unwrite_bytes(bytes, &size, &at);
    const int32_t token = written ? mtc_token_of(r->tokenizer, bytes, size) : MTC_NO_TOKEN;
    free(bytes);
    return token;
}

static bool read_added_token(TokenizerReader *r, const MtcJson *item, MtcAddedToken *added) {
    static const char *const names[] = {"id",     "content",    "single_word", "lstrip",
                                        "rstrip", "normalized", "special",     NULL};
    static const char *const no[] = {"single_word", "lstrip", "rstrip"};
    const char *content = mtc_json_member(item, "content")->string;
    if (!check_members(r, "added_tokens", item, names))
        return false;
    for (int i = 0; i < 3; i++)
        if (!is_flag(mtc_json_member(item, no[i]), false, false)) {
            mtc_fail(r->fault, MTC_BAD_DATA, "%s: added_tokens: \"%s\" is to be found with \"%s\": expected false",
                     r->path, mtc_harmless(content), no[i]);
            return false;
        }
    if (!read_flag(r, item, "normalized", true, &added->late))
        return false;
    added->bytes = keep_name(r, content, &added->size);
    added->token = (int32_t)mtc_json_member(item, "id")->integer;
    if (!added->size) {
        mtc_fail(r->fault, MTC_BAD_DATA, "%s: added_tokens: number %d has no text", r->path, added->token);
        return false;
    }
    const int32_t known = token_of_name(r, content);
    if (known == MTC_NO_TOKEN)
        return give_number(r, content, added->token, added->bytes, added->size);
    if (known == added->token && mtc_token_of(r->tokenizer, added->bytes, added->size) == known)
        return true;
    mtc_fail(r->fault, MTC_BAD_DATA, "%s: added_tokens: \"%s\" is number %d, and number %d in the vocabulary", r->path,
             mtc_harmless(content), added->token, known);
    return false;
}

static bool read_added(TokenizerReader *r, const MtcJson *items) {
    MtcTokenizer *t = r->tokenizer;
    MtcAddedToken *added = t->added = (MtcAddedToken *)mtc_zeroed((size_t)t->added_count * sizeof *added + 1);
    for (const MtcJson *item = items; item; item = item->next, added++) {
        if (!read_added_token(r, item, added))
            return false;
        t->begins[added->late][added->bytes[0]] = true;
    }
    qsort(t->added, (size_t)t->added_count, sizeof *added, compare_added);
    for (int i = 1; i < t->added_count; i++)
        if (t->added[i].size == t->added[i - 1].size &&
            memcmp(t->added[i].bytes, t->added[i - 1].bytes, t->added[i].size) == 0) {
            mtc_fail(r->fault, MTC_BAD_DATA, "%s: added_tokens: the numbers %d and %d have the same text", r->path,
                     t->added[i - 1].token, t->added[i].token);
            return false;
        }
    return true;
}

/* ---- merges ---- */

static bool merge_fault(TokenizerReader *r, const char *place, int32_t rank, const char *what) {
    mtc_fail(r->fault, MTC_BAD_DATA, "%s: %s %d, counted from 0: %s", r->path, place, rank, what);
    return false;
}

static bool no_such_token(TokenizerReader *r, const char *place, int32_t rank, const char *part) {
    MtcText text = {NULL, 0, 0};
    mtc_text_add(&text, "\"%s\" is no token of the vocabulary", mtc_harmless(part));
    merge_fault(r, place, rank, text.at);
    free(text.at);
    return false;
}

/* The token of one side, whose bytes go into `bytes`, where there is room for all of the part. */
static bool read_side(TokenizerReader *r, const char *place, int32_t rank, const char *part, uint8_t *bytes,
                      size_t *size, int32_t *token) {
    const uint8_t *at;
    *size = strlen(part);
    memcpy(bytes, part, *size);
    *token = *size && mtc_unwrite_bytes(bytes, size, &at) ? mtc_token_of(r->tokenizer, bytes, *size) : MTC_NO_TOKEN;
    return *token != MTC_NO_TOKEN || no_such_token(r, place, rank, part);
}

static bool add_merge(TokenizerReader *r, const char *place, int32_t rank, const char *left, const char *right) {
    MtcMerge merge = {.rank = rank};
    const MtcMerge *found;
    size_t first, second;
    uint8_t *bytes = (uint8_t *)mtc_memory(NULL, strlen(left) + strlen(right) + 1);
    bool good = read_side(r, place, rank, left, bytes, &first, &merge.left) &&
                read_side(r, place, rank, right, bytes + first, &second, &merge.right);
    merge.merged = good ? mtc_token_of(r->tokenizer, bytes, first + second) : MTC_NO_TOKEN;
    free(bytes);
    if (good && merge.merged == MTC_NO_TOKEN)
        return merge_fault(r, place, rank, "what it makes is no token of the vocabulary");
    if (good && !mtc_merge_add(r->tokenizer, merge, &found))
        return merge_fault(r, place, rank, "the same pair was merged before");
    return good;
}

/* "a b": nothing else has a space, which as a byte is written otherwise. The text is cut in two. */
static bool add_written_merge(TokenizerReader *r, const char *place, int32_t rank, char *text) {
    char *space = strchr(text, ' ');
    if (!space || strchr(space + 1, ' '))
        return merge_fault(r, place, rank, "expected two tokens with a space between");
    *space = 0;
    return add_merge(r, place, rank, text, space + 1);
}

static bool read_merge(TokenizerReader *r, int32_t rank, const MtcJson *item) {
    static const char place[] = "merge";
    const MtcJson *left = item->kind == MTC_JSON_ARRAY ? item->first : NULL, *right = left ? left->next : NULL;
    if (item->kind == MTC_JSON_STRING) {
        char *text = strdup(item->string);
        bool good = add_written_merge(r, place, rank, text);
        free(text);
        return good;
    }
    if (!right || right->next || left->kind != MTC_JSON_STRING || right->kind != MTC_JSON_STRING)
        return merge_fault(r, place, rank, "expected two tokens, as a list or with a space between");
    return add_merge(r, place, rank, left->string, right->string);
}

/* ---- tokenizer.json ---- */

static size_t count_items(const MtcJson *list) {
    size_t count = 0;
    for (const MtcJson *item = list->first; item; item = item->next)
        count++;
    return count;
}

static bool check_model(TokenizerReader *r, const MtcJson *model) {
    static const char *const names[] = {"type",
                                        "dropout",
                                        "unk_token",
                                        "continuing_subword_prefix",
                                        "end_of_word_suffix",
                                        "fuse_unk",
                                        "byte_fallback",
                                        "ignore_merges",
                                        "vocab",
                                        "merges",
                                        NULL};
    static const char *const nothing[] = {"dropout", "continuing_subword_prefix", "end_of_word_suffix"};
    const MtcJson *type = mtc_json_member(model, "type");
    if (type && !is_string(type, "BPE"))
        return refuse_value(r, "the type of the model", type, "\"BPE\"", "mtc has byte-pair encoding alone");
    if (!check_members(r, "the model", model, names))
        return false;
    for (int i = 0; i < 3; i++)
        if (!is_nothing(mtc_json_member(model, nothing[i])))
            return refuse_value(r, nothing[i], mtc_json_member(model, nothing[i]), "null", NULL);
    /* unk_token, fuse_unk, byte_fallback are about what is no token; here each byte is one */
    return read_flag(r, model, "ignore_merges", false, &r->tokenizer->whole_words);
}

/* Tokens and the tables of them, for so many merges. */
static bool read_tokens(TokenizerReader *r, const MtcJson *vocabulary, const MtcJson *added, size_t merges) {
    MtcTokenizer *t = r->tokenizer;
    size_t bytes = 0;
    if (!measure_tokens(r, vocabulary, added, &bytes))
        return false;
    t->token = (MtcTokenBytes *)mtc_zeroed((size_t)t->count * sizeof *t->token + 1);
    t->memory = (uint8_t *)mtc_memory(NULL, bytes + 1);
    if (!index_added(r, added) || !read_vocabulary(r, vocabulary))
        return false;
    mtc_vocabulary_index(t, merges);
    return check_bytes(r) && read_added(r, added);
}

static bool read_tokenizer(TokenizerReader *r, const MtcJson *root) {
    static const char *const names[] = {"version",       "truncation",     "padding", "added_tokens", "normalizer",
                                        "pre_tokenizer", "post_processor", "decoder", "model",        NULL};
    const MtcJson *model = mtc_json_member(root, "model"), *added = mtc_json_member(root, "added_tokens");
    if (!check_members(r, "the file", root, names) || !check_model(r, model) || !check_steps(r, root))
        return false;
    if (added && added->kind != MTC_JSON_ARRAY)
        return refuse_value(r, "added_tokens", added, "a list", NULL);
    const MtcJson *vocabulary = member_of_kind(r, "the model's", model, "vocab", MTC_JSON_OBJECT);
    const MtcJson *merges = vocabulary ? member_of_kind(r, "the model's", model, "merges", MTC_JSON_ARRAY) : NULL;
    if (!merges || !read_tokens(r, vocabulary, added ? added->first : NULL, count_items(merges)))
        return false;
    int32_t rank = 0;
    for (const MtcJson *item = merges->first; item; item = item->next)
        if (!read_merge(r, rank++, item))
            return false;
    return true;
}

/* ---- vocab.json and merges.txt ---- */

static const char VOCABULARY_FILE[] = "vocab.json", MERGES_FILE[] = "merges.txt";

/* "gpt2-merges.txt" of "gpt2-vocab.json"; NULL: the file has another name. */
static char *merges_path(const char *path) {
    const size_t length = strlen(path), ending = strlen(VOCABULARY_FILE);
    if (length < ending || strcmp(path + length - ending, VOCABULARY_FILE) != 0)
        return NULL;
    MtcText text = {NULL, 0, 0};
    mtc_text_add(&text, "%.*s%s", (int)(length - ending), path, MERGES_FILE);
    return text.at;
}

static size_t count_lines(const char *text) {
    size_t count = 1;
    while ((text = strchr(text, '\n')))
        count++, text++;
    return count;
}

/* The text is cut into lines; the first may say a version. */
static bool read_lines(TokenizerReader *r, char *text) {
    int32_t rank = 0;
    for (char *line = text, *next; *line; line = next) {
        char *end = line + strcspn(line, "\n");
        next = end + (*end == '\n');
        *end = 0;
        if (line == text && strncmp(line, "#version", 8) == 0)
            continue;
        if (!add_written_merge(r, "merge", rank++, line))
            return false;
    }
    return true;
}

static bool read_text_file(MtcFault *fault, const char *path, char **text, size_t *size) {
    uint8_t *bytes;
    if (mtc_read_file(fault, path, &bytes, size))
        return false;
    *text = (char *)mtc_memory(bytes, *size + 1);
    (*text)[*size] = 0;
    if (*size <= MOST_FILE_BYTES)
        return true;
    mtc_fail(fault, MTC_BAD_DATA, "%s: has %s: more than a tokenizer needs", path, mtc_bytes((double)*size));
    free(*text);
    return false;
}

/* `path` of the merges; the tokens are there. */
static bool read_merges(TokenizerReader *r, const MtcJson *vocabulary, const char *path) {
    char *text;
    size_t size;
    if (!read_text_file(r->fault, path, &text, &size))
        return false;
    bool good = read_tokens(r, vocabulary, NULL, count_lines(text));
    r->path = path;
    if (good && strlen(text) != size) {
        mtc_fail(r->fault, MTC_BAD_DATA, "%s: byte %zu is NUL", path, strlen(text));
        good = false;
    }
    good = good && read_lines(r, text);
    free(text);
    return good;
}

static bool read_vocabulary_file(TokenizerReader *r, const MtcJson *root) {
    char *merges = merges_path(r->path);
    r->tokenizer->pattern = &mtc_gpt2_pattern;
    if (!merges) {
        mtc_fail(r->fault, MTC_BAD_DATA, "%s: has no \"model\": it is no tokenizer.json", r->path);
        mtc_note(r->fault, "a vocabulary whose merges are beside it is called vocab.json, and they merges.txt");
        return false;
    }
    bool good = read_merges(r, root, merges);
    free(merges);
    return good;
}

/* ---- either ---- */

static bool read_root(TokenizerReader *r, const MtcJson *root) {
    if (root->kind != MTC_JSON_OBJECT)
        return refuse_value(r, "the file", root, "an object", NULL);
    const MtcJson *model = mtc_json_member(root, "model");
    return model && model->kind == MTC_JSON_OBJECT ? read_tokenizer(r, root) : read_vocabulary_file(r, root);
}

int mtc_tokenizer_open(MtcFault *fault, const char *path, MtcTokenizer **result) {
    MtcJsonDocument *document;
    char *text;
    size_t size;
    if (!read_text_file(fault, path, &text, &size))
        return fault->code;
    int code = mtc_json_read(fault, path, text, size, &document);
    if (!code) {
        TokenizerReader r = {fault, path, (MtcTokenizer *)mtc_zeroed(sizeof(MtcTokenizer)), 0, NULL};
        r.tokenizer->classes = mtc_character_classes();
        code = read_root(&r, mtc_json_root(document)) ? 0 : fault->code;
        if (code)
            mtc_tokenizer_free(r.tokenizer);
        else
            *result = r.tokenizer;
        free(r.added);
        mtc_json_free(document);
    }
    free(text);
    return code;
}
