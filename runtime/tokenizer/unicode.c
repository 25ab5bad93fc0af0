#include "tokenizer/unicode.h"

#include <string.h>

enum { MOST_CODE_POINTS = 0x110000 };

static const struct {
    uint32_t first, last;
    MtcCharacter kind;
} character_ranges[] = {
#define RANGE(first, last, kind) {first, last, MTC_##kind},
#include "tokenizer/unicode.def"
#undef RANGE
};

uint8_t *mtc_character_classes(void) {
    uint8_t *classes = (uint8_t *)mtc_zeroed(MOST_CODE_POINTS);
    for (size_t i = 0; i < sizeof character_ranges / sizeof *character_ranges; i++)
        memset(classes + character_ranges[i].first, (int)character_ranges[i].kind,
               character_ranges[i].last - character_ranges[i].first + 1);
    return classes;
}

int mtc_character(const uint8_t *text, const uint8_t *end, uint32_t *code) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const uint8_t first = *text;
    const int length = first < 0x80 ? 1 : first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
    uint32_t value = length < 2 ? first : first & (0x7Fu >> length);
    bool good = length > 0 && end - text >= length;
    for (int i = 1; i < length && good; i++) {
        good = (text[i] & 0xC0) == 0x80;
        value = value << 6 | (text[i] & 0x3F);
    }
    good = good && value >= least[length] && value < MOST_CODE_POINTS && (value < 0xD800 || value > 0xDFFF);
    *code = good ? value : MTC_NO_CHARACTER;
    return good ? length : 1;
}

/* A lead byte is in no other character, so the one that ends here is the same read from either side. */
int mtc_character_before(const uint8_t *text, const uint8_t *begin, uint32_t *code) {
    for (int length = 1; length <= 4 && length <= text - begin; length++)
        if (mtc_character(text - length, text, code) == length && (length > 1 || *code != MTC_NO_CHARACTER))
            return length;
    *code = MTC_NO_CHARACTER;
    return 1;
}

int mtc_put_character(uint32_t code, uint8_t *bytes) {
    static const uint8_t lead[] = {0, 0xC0, 0xE0, 0xF0};
    const int more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    bytes[0] = (uint8_t)(lead[more] | code >> 6 * more);
    for (int i = 1; i <= more; i++)
        bytes[i] = (uint8_t)(0x80 | (code >> 6 * (more - i) & 0x3F));
    return more + 1;
}
