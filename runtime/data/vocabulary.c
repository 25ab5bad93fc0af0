#include "data/vocabulary.h"

#include "data/table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CODE_POINTS = 0x110000, NO_CLASS = -1 };

/* ---- UTF-8 ---- */

/* The code point at `at`, in text that is UTF-8; *at is the next one's then. */
static int next_character(const char **at) {
    const unsigned char *c = (const unsigned char *)*at;
    const int length = c[0] < 0x80 ? 1 : c[0] < 0xE0 ? 2 : c[0] < 0xF0 ? 3 : 4;
    int character = length == 1 ? c[0] : c[0] & (0x7F >> length);
    for (int i = 1; i < length; i++)
        character = character << 6 | (c[i] & 0x3F);
    *at += length;
    return character;
}

static char *write_character(int character, char *to) {
    const int length = character < 0x80 ? 1 : character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
    static const int lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (int i = length - 1; i > 0; i--, character >>= 6)
        to[i] = (char)(0x80 | (character & 0x3F));
    to[0] = (char)(lead[length] | character);
    to[length] = 0;
    return to + length;
}

static int code_point(const char *word) {
    return next_character(&word);
}

/* Is the word one character? */
static bool is_character(const char *word) {
    const char *end = word;
    if (!*word || mtc_text_bad(word, word + strlen(word)))
        return false;
    next_character(&end);
    return !*end;
}

static bool is_invisible(int character) {
    return character < 0x20 || (character >= 0x7F && character <= 0xA0) || character == 0xAD ||
           (character >= 0x2000 && character <= 0x200F) || (character >= 0x2028 && character <= 0x202F) ||
           (character >= 0x2060 && character <= 0x206F) || character == 0x3000 || character == 0xFEFF;
}

const char *mtc_visible(const char *word) {
    static __thread char text[4][16];
    static __thread unsigned next;
    static const char plain[] = "nrt", control[] = "\n\r\t";
    if (!is_character(word) || !is_invisible(code_point(word)))
        return mtc_harmless(word);
    const int character = code_point(word);
    char *shown = text[next++ % 4];
    const char *known = strchr(control, character);
    if (known)
        snprintf(shown, sizeof text[0], "\\%c", plain[known - control]);
    else
        snprintf(shown, sizeof text[0], "\\u%04x", (unsigned)character);
    return shown;
}

/* "input.txt:12:3: " */
static void place_of(const char *name, const char *text, const char *at, char *place, size_t size) {
    MtcTableText whole;
    memset(&whole, 0, sizeof whole);
    whole.path = (char *)name;
    whole.bytes = text;
    mtc_place_text(&whole, at, place, size);
}

static int check_utf8(MtcFault *fault, const char *name, const char *text, size_t size) {
    const char *bad = mtc_text_bad(text, text + size);
    char place[512];
    if (!bad)
        return 0;
    place_of(name, text, bad, place, sizeof place);
    return mtc_fail(fault, MTC_BAD_DATA, "%sexpected text in UTF-8, found the byte 0x%02x", place, (unsigned char)*bad);
}

/* ---- learning ---- */

static int too_many(MtcFault *fault, const MtcField *field, const char *name, int found) {
    mtc_fail(fault, MTC_BAD_DATA, "%s: has %d distinct characters, and '%s' is class[%d][%lld]", name, found,
             field->name, field->classes, (long long)field->elements);
    mtc_note(fault, "'%s : class[%d][%lld]' has room for them", field->name, found, (long long)field->elements);
    return fault->code;
}

int mtc_learn_characters(MtcFault *fault, const MtcField *field, const char *name, const char *text, size_t size,
                         MtcMeaning *meaning) {
    if (check_utf8(fault, name, text, size))
        return fault->code;
    if (size == 0)
        return mtc_fail(fault, MTC_BAD_DATA, "%s: is empty", name);
    bool *found = (bool *)mtc_zeroed(CODE_POINTS * sizeof *found);
    int count = 0;
    for (const char *at = text; at < text + size;)
        found[next_character(&at)] = true;
    for (int c = 0; c < CODE_POINTS; c++)
        count += found[c];
    int code = count > field->classes ? too_many(fault, field, name, count) : 0;
    meaning->word = code ? NULL : (char **)mtc_memory(NULL, ((size_t)count + 1) * sizeof *meaning->word);
    for (int c = 0; c < CODE_POINTS && !code; c++)
        if (found[c]) {
            char word[8];
            write_character(c, word);
            meaning->word[meaning->words++] = strdup(word);
        }
    free(found);
    return code;
}

/* ---- the vocabulary of a model ---- */

static int take_characters(MtcFault *fault, const MtcField *field, const MtcMeaning *meaning,
                           MtcVocabulary *vocabulary) {
    for (int k = 0; k < meaning->words; k++)
        if (!is_character(meaning->word[k]))
            return mtc_fail(fault, MTC_BAD_DATA, "the weights are of a model of words, such as '%s', not of characters",
                            mtc_shown(meaning->word[k]));
    if (meaning->words == 0)
        return mtc_fail(fault, MTC_BAD_DATA,
                        "which characters the classes of '%s' are is not known: the weights were saved without them",
                        field->name);
    vocabulary->tokens = meaning->words;
    vocabulary->word = meaning->word;
    return 0;
}

int mtc_vocabulary_at(MtcFault *fault, const MtcModel *model, MtcLevel level, const MtcEncoding *encoding,
                      MtcVocabulary *vocabulary) {
    const MtcOrigin *origin = mtc_windows_origin(model);
    memset(vocabulary, 0, sizeof *vocabulary);
    if (!origin)
        return mtc_fail(fault, MTC_USAGE, "the model reads no windows of a text or of tokens");
    const MtcField *field = mtc_window_field(model);
    vocabulary->field = (int)(field - model->field);
    vocabulary->tokens = field->classes;
    const MtcMeaning *meaning = &encoding->field[vocabulary->field];
    vocabulary->level = level;
    if (level == MTC_LEVEL_CHARACTERS && !meaning->tokenizer)
        return take_characters(fault, field, meaning, vocabulary);
    if (meaning->tokenizer && level != MTC_LEVEL_PIECES)
        return mtc_fail(fault, MTC_BAD_DATA, "the weights are of a model of the tokens of %s, and this one reads %s",
                        mtc_shown(meaning->tokenizer), origin->format);
    if (meaning->words)
        return mtc_fail(fault, MTC_BAD_DATA, "the weights are of a model of %d characters, and this one reads %s",
                        meaning->words, origin->format);
    return 0;
}

/* ---- text to tokens ---- */

static int unknown_character(MtcFault *fault, const MtcVocabulary *vocabulary, const char *name, const char *text,
                             const char *at, int character) {
    char place[512], word[8];
    place_of(name, text, at, place, sizeof place);
    write_character(character, word);
    return mtc_fail(fault, MTC_BAD_DATA,
                    "%s'%s' is none of the %d characters that the model knows: those of its training text", place,
                    mtc_visible(word), vocabulary->tokens);
}

/* By code point, up to the vocabulary's last; free it. */
static int32_t *classes_of_characters(const MtcVocabulary *vocabulary, int *most) {
    *most = code_point(vocabulary->word[vocabulary->tokens - 1]);
    int32_t *class_of = (int32_t *)mtc_memory(NULL, ((size_t)*most + 1) * sizeof *class_of);
    for (int c = 0; c <= *most; c++)
        class_of[c] = NO_CLASS;
    for (int k = 0; k < vocabulary->tokens; k++)
        class_of[code_point(vocabulary->word[k])] = k;
    return class_of;
}

int mtc_encode_characters(MtcFault *fault, const MtcField *field, const MtcVocabulary *vocabulary, const char *name,
                          const char *text, size_t size, void **values, int64_t *count) {
    if (check_utf8(fault, name, text, size))
        return fault->code;
    int most, code = 0;
    int32_t *class_of = classes_of_characters(vocabulary, &most);
    *count = 0;
    *values = mtc_memory(NULL, (size + 1) * mtc_type_size(field->type));
    for (const char *at = text; at < text + size && !code;) {
        const char *from = at;
        const int character = next_character(&at);
        if (character > most || class_of[character] == NO_CLASS)
            code = unknown_character(fault, vocabulary, name, text, from, character);
        else
            mtc_put_class(field, *values, (*count)++, class_of[character]);
    }
    free(class_of);
    if (code) {
        free(*values);
        *values = NULL;
    }
    return code;
}

static int no_token(MtcFault *fault, const MtcVocabulary *vocabulary, const char *name, const char *text,
                    const char *at) {
    char place[512];
    place_of(name, text, at, place, sizeof place);
    return mtc_fail(fault, MTC_BAD_DATA, "%sexpected a token, a whole number from 0 to %d, found '%.*s'", place,
                    vocabulary->tokens - 1, (int)strcspn(at, " ,\r\n\t"), at);
}

/* `text` is terminated. */
static int read_numbers(MtcFault *fault, const MtcVocabulary *vocabulary, const char *name, const char *text,
                        int32_t *token, int64_t *count) {
    static const char between[] = " ,\r\n\t";
    for (const char *at = text + strspn(text, between); *at; at += strspn(at, between)) {
        char *end;
        errno = 0;
        const long value = strtol(at, &end, 10);
        if (*at < '0' || *at > '9' || errno || value >= vocabulary->tokens || (*end && !strchr(between, *end)))
            return no_token(fault, vocabulary, name, text, at);
        token[(*count)++] = (int32_t)value;
        at = end;
    }
    return 0;
}

static int encode_numbers(MtcFault *fault, const MtcVocabulary *vocabulary, const char *name, const char *text,
                          size_t size, int32_t *token, int64_t *count) {
    if (check_utf8(fault, name, text, size))
        return fault->code;
    char *copy = (char *)mtc_memory(NULL, size + 1);
    memcpy(copy, text, size);
    copy[size] = 0;
    int code = read_numbers(fault, vocabulary, name, copy, token, count);
    free(copy);
    return code;
}

int mtc_encode_text(MtcFault *fault, const MtcVocabulary *vocabulary, const char *name, const char *text, size_t size,
                    int32_t **token, int64_t *count) {
    MtcField number;
    int code = 0;
    memset(&number, 0, sizeof number);
    number.type = MTC_I32;
    *count = 0;
    if (vocabulary->level == MTC_LEVEL_CHARACTERS)
        return mtc_encode_characters(fault, &number, vocabulary, name, text, size, (void **)token, count);
    *token = (int32_t *)mtc_memory(NULL, (size + 1) * sizeof **token);
    if (vocabulary->level == MTC_LEVEL_NUMBERS)
        code = encode_numbers(fault, vocabulary, name, text, size, *token, count);
    else
        for (; *count < (int64_t)size; ++*count)
            (*token)[*count] = (unsigned char)text[*count];
    if (code) {
        free(*token);
        *token = NULL;
    }
    return code;
}

/* ---- tokens to text ---- */

size_t mtc_decode_token(const MtcVocabulary *vocabulary, int32_t token, char bytes[MTC_TOKEN_BYTES]) {
    if (vocabulary->level == MTC_LEVEL_NUMBERS)
        return (size_t)snprintf(bytes, MTC_TOKEN_BYTES, "%d ", token);
    if (vocabulary->level == MTC_LEVEL_BYTES && token >= 0 && token <= UINT8_MAX) {
        bytes[0] = (char)token;
        return 1;
    }
    bool known = vocabulary->word && token >= 0 && token < vocabulary->tokens;
    return (size_t)snprintf(bytes, MTC_TOKEN_BYTES, "%s", known ? vocabulary->word[token] : "\xEF\xBF\xBD");
}
