#include "base/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { JSON_MAX_DEPTH = 64, JSON_BLOCK = 256 };

typedef struct JsonBlock JsonBlock;
struct JsonBlock {
    JsonBlock *next;
    int used;
    MtcJson value[JSON_BLOCK];
};

struct MtcJsonDocument {
    JsonBlock *blocks;
    MtcJson *root;
};

typedef struct JsonReader {
    MtcFault *fault;
    const char *path;
    char *begin, *at, *end;
    MtcJsonDocument *document;
    int depth;
} JsonReader;

static bool json_error(JsonReader *r, const char *what) {
    mtc_fail(r->fault, MTC_BAD_DATA, "%s: bad JSON at byte %lld: %s", r->path, (long long)(r->at - r->begin), what);
    return false;
}

static MtcJson *json_new(JsonReader *r) {
    JsonBlock *block = r->document->blocks;
    if (!block || block->used == JSON_BLOCK) {
        block = (JsonBlock *)calloc(1, sizeof *block);
        if (!block)
            return NULL;
        block->next = r->document->blocks;
        r->document->blocks = block;
    }
    return &block->value[block->used++];
}

static void skip_space(JsonReader *r) {
    while (r->at < r->end && *r->at && strchr(" \t\r\n", *r->at))
        r->at++;
}

static bool skip_char(JsonReader *r, char c) {
    skip_space(r);
    if (r->at == r->end || *r->at != c)
        return false;
    r->at++;
    return true;
}

/* ---- strings ---- */

/* The length of the UTF-8 sequence at `s`, or 0 when there is none: no overlong forms, no surrogates. */
static int utf8_length(const unsigned char *s, const unsigned char *end) {
    int length = s[0] < 0x80 ? 1 : s[0] < 0xC2 ? 0 : s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : s[0] < 0xF5 ? 4 : 0;
    if (length == 0 || end - s < length)
        return 0;
    for (int i = 1; i < length; i++)
        if ((s[i] & 0xC0) != 0x80)
            return 0;
    bool overlong = (s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xF0 && s[1] < 0x90);
    bool outside = (s[0] == 0xED && s[1] >= 0xA0) || (s[0] == 0xF4 && s[1] >= 0x90);
    return overlong || outside ? 0 : length;
}

static bool read_hex(JsonReader *r, unsigned *code) {
    *code = 0;
    for (int i = 0; i < 4; i++, r->at++) {
        char c = r->at < r->end ? *r->at : 0;
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0)
            return json_error(r, "\\u needs four hexadecimal digits");
        *code = *code << 4 | (unsigned)digit;
    }
    return true;
}

/* After "\u": a code point, from two escapes where it needs a surrogate pair. */
static bool read_unicode(JsonReader *r, char **out) {
    unsigned code, low;
    if (!read_hex(r, &code))
        return false;
    if (code >= 0xD800 && code < 0xDC00 && r->end - r->at >= 6 && r->at[0] == '\\' && r->at[1] == 'u') {
        r->at += 2;
        if (!read_hex(r, &low))
            return false;
        code = low >= 0xDC00 && low < 0xE000 ? 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00) : 0xD800;
    }
    if (code == 0 || (code >= 0xD800 && code < 0xE000))
        return json_error(r, "not a character that a name can hold");
    int more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const unsigned lead[] = {0, 0xC0, 0xE0, 0xF0};
    *(*out)++ = (char)(lead[more] | code >> 6 * more);
    while (more-- > 0)
        *(*out)++ = (char)(0x80 | (code >> 6 * more & 0x3F));
    return true;
}

static bool read_escape(JsonReader *r, char **out) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    char c = r->at < r->end ? *r->at++ : 0;
    const char *found = c ? strchr(from, c) : NULL;
    if (c == 'u')
        return read_unicode(r, out);
    if (!found)
        return json_error(r, "unknown escape");
    *(*out)++ = to[found - from];
    return true;
}

/* Unescaped where it stands: that is never longer. */
static bool read_string(JsonReader *r, const char **string) {
    if (!skip_char(r, '"'))
        return json_error(r, "expected a string");
    char *out = r->at;
    *string = out;
    while (r->at < r->end && *r->at != '"') {
        int length = utf8_length((unsigned char *)r->at, (unsigned char *)r->end);
        if (length == 0 || (unsigned char)*r->at < 0x20)
            return json_error(r, length ? "control character in a string" : "not UTF-8");
        if (*r->at == '\\') {
            r->at++;
            if (!read_escape(r, &out))
                return false;
            continue;
        }
        memmove(out, r->at, (size_t)length);
        out += length;
        r->at += length;
    }
    if (r->at == r->end)
        return json_error(r, "a string without end");
    r->at++;
    *out = 0;
    return true;
}

/* ---- values ---- */

static void skip_digits(JsonReader *r) {
    while (r->at < r->end && *r->at >= '0' && *r->at <= '9')
        r->at++;
}

/* -?(0|[1-9][0-9]*)(.[0-9]+)?([eE][+-]?[0-9]+)? */
static bool read_number(JsonReader *r, MtcJson *value) {
    char *start = r->at, *mark;
    r->at += *r->at == '-';
    mark = r->at;
    skip_digits(r);
    bool good = r->at > mark && (*mark != '0' || r->at == mark + 1);
    value->is_integer = true;
    if (r->at < r->end && *r->at == '.') {
        mark = ++r->at;
        skip_digits(r);
        good = good && r->at > mark;
        value->is_integer = false;
    }
    if (r->at < r->end && (*r->at == 'e' || *r->at == 'E')) {
        r->at++;
        r->at += r->at < r->end && (*r->at == '+' || *r->at == '-');
        mark = r->at;
        skip_digits(r);
        good = good && r->at > mark;
        value->is_integer = false;
    }
    char digits[64] = {0}; /* what follows the text need not be a character */
    if (!good || (size_t)(r->at - start) >= sizeof digits)
        return json_error(r, "malformed number");
    memcpy(digits, start, (size_t)(r->at - start));
    errno = 0;
    value->integer = value->is_integer ? strtoll(digits, NULL, 10) : 0;
    value->is_integer = value->is_integer && errno == 0;
    value->number = strtod(digits, NULL);
    value->kind = MTC_JSON_NUMBER;
    return true;
}

static bool read_value(JsonReader *r, MtcJson *value);

static bool read_item(JsonReader *r, MtcJson *parent, MtcJson ***tail) {
    MtcJson *item = json_new(r);
    if (!item)
        return json_error(r, "out of memory");
    if (parent->kind == MTC_JSON_OBJECT) {
        if (!read_string(r, &item->key))
            return false;
        if (!skip_char(r, ':'))
            return json_error(r, "expected ':'");
    }
    if (!read_value(r, item))
        return false;
    **tail = item;
    *tail = &item->next;
    return true;
}

static int compare_keys(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool check_unique(JsonReader *r, const MtcJson *object) {
    size_t count = 0, i = 0;
    bool unique = true;
    for (const MtcJson *item = object->first; item; item = item->next)
        count++;
    const char **keys = (const char **)malloc((count + 1) * sizeof *keys);
    if (!keys)
        return json_error(r, "out of memory");
    for (const MtcJson *item = object->first; item; item = item->next)
        keys[i++] = item->key;
    qsort(keys, count, sizeof *keys, compare_keys);
    for (i = 1; i < count && unique; i++)
        if (strcmp(keys[i - 1], keys[i]) == 0) {
            mtc_fail(r->fault, MTC_BAD_DATA, "%s: bad JSON: the name \"%s\" occurs twice in one object", r->path,
                     keys[i]);
            unique = false;
        }
    free(keys);
    return unique;
}

static bool read_items(JsonReader *r, MtcJson *value, char close) {
    MtcJson **tail = &value->first;
    if (++r->depth > JSON_MAX_DEPTH)
        return json_error(r, "nested too deeply");
    if (!skip_char(r, close)) {
        do {
            if (!read_item(r, value, &tail))
                return false;
        } while (skip_char(r, ','));
        if (!skip_char(r, close))
            return json_error(r, close == ']' ? "expected ',' or ']'" : "expected ',' or '}'");
    }
    r->depth--;
    return value->kind == MTC_JSON_ARRAY || check_unique(r, value);
}

static bool read_word(JsonReader *r, MtcJson *value, const char *word, MtcJsonKind kind) {
    size_t length = strlen(word);
    if ((size_t)(r->end - r->at) < length || memcmp(r->at, word, length) != 0)
        return json_error(r, "expected a value");
    r->at += length;
    value->kind = kind;
    return true;
}

static bool read_value(JsonReader *r, MtcJson *value) {
    skip_space(r);
    switch (r->at < r->end ? *r->at : 0) {
    case '{':
        r->at++;
        value->kind = MTC_JSON_OBJECT;
        return read_items(r, value, '}');
    case '[':
        r->at++;
        value->kind = MTC_JSON_ARRAY;
        return read_items(r, value, ']');
    case '"': value->kind = MTC_JSON_STRING; return read_string(r, &value->string);
    case 't': return read_word(r, value, "true", MTC_JSON_TRUE);
    case 'f': return read_word(r, value, "false", MTC_JSON_FALSE);
    case 'n': return read_word(r, value, "null", MTC_JSON_NULL);
    default:
        return r->at < r->end && strchr("-0123456789", *r->at) ? read_number(r, value)
                                                               : json_error(r, "expected a value");
    }
}

int mtc_json_read(MtcFault *fault, const char *path, char *text, size_t size, MtcJsonDocument **result) {
    MtcJsonDocument *document = (MtcJsonDocument *)calloc(1, sizeof *document);
    if (!document)
        return mtc_no_memory(fault, sizeof *document, path);
    JsonReader r = {fault, path, text, text, text + size, document, 0};
    *result = document;
    document->root = json_new(&r);
    bool good = document->root ? read_value(&r, document->root) : json_error(&r, "out of memory");
    skip_space(&r);
    if (good && r.at != r.end)
        good = json_error(&r, "more after the end");
    if (good)
        return 0;
    mtc_json_free(document);
    return fault->code;
}

const MtcJson *mtc_json_root(const MtcJsonDocument *document) {
    return document->root;
}

void mtc_json_free(MtcJsonDocument *document) {
    while (document && document->blocks) {
        JsonBlock *next = document->blocks->next;
        free(document->blocks);
        document->blocks = next;
    }
    free(document);
}

const MtcJson *mtc_json_member(const MtcJson *object, const char *key) {
    const MtcJson *item = object->kind == MTC_JSON_OBJECT ? object->first : NULL;
    while (item && strcmp(item->key, key) != 0)
        item = item->next;
    return item;
}
