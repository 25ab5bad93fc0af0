/* Numbers in text. A double holds every integer up to 2^53 and every power of ten up to 10^22, so that a number of such
 * digits and such a power is one product or quotient of two exact doubles, correctly rounded; strtod does the rest. */
#include "data/table.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool mtc_is_missing(const MtcSpan *span) {
    static const char *const word[] = {"", "NA", "NaN", "null"};
    const char *begin = span->begin, *end = span->end;
    mtc_trim(&begin, &end);
    size_t length = (size_t)(end - begin);
    for (int i = 0; i < 4 && length < 5; i++)
        if (strlen(word[i]) == length && strncasecmp(word[i], begin, length) == 0)
            return true;
    return false;
}

/* What a number is written as: mantissa * 10^power, the mantissa of `digits` digits. */
typedef struct Decimal {
    uint64_t mantissa; /* right for up to 19 digits */
    int64_t digits, power;
} Decimal;

static inline bool is_digit(const char *at, const char *end) {
    return at < end && (unsigned char)(*at - '0') < 10;
}

static inline const char *take_digits(const char *at, const char *end, Decimal *decimal) {
    const char *begin = at;
    uint64_t mantissa = decimal->mantissa;
    for (; is_digit(at, end); at++)
        mantissa = 10 * mantissa + (uint64_t)(*at - '0');
    decimal->mantissa = mantissa;
    decimal->digits += at - begin;
    return at;
}

/* "e-5"; NULL: a sign without digits. Powers beyond any double's stay so. */
static const char *take_power(const char *at, const char *end, Decimal *decimal) {
    bool negative = at + 1 < end && at[1] == '-';
    int64_t power = 0;
    at += at + 1 < end && (at[1] == '-' || at[1] == '+') ? 2 : 1;
    if (!is_digit(at, end))
        return NULL;
    for (; is_digit(at, end); at++)
        power = power < 100000 ? 10 * power + (*at - '0') : power;
    decimal->power += negative ? -power : power;
    return at;
}

static bool take_decimal(const char *at, const char *end, Decimal *decimal) {
    at = take_digits(at, end, decimal);
    if (at < end && *at == '.') {
        const char *point = ++at;
        at = take_digits(at, end, decimal);
        decimal->power = point - at;
    }
    if (decimal->digits > 0 && at < end && (*at == 'e' || *at == 'E'))
        at = take_power(at, end, decimal);
    return decimal->digits > 0 && at == end;
}

static double power_of_ten(int64_t power) {
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    return powers[power];
}

static double by_strtod(const char *begin, const char *end) {
    char small[64], *text = small;
    size_t length = (size_t)(end - begin);
    if (length >= sizeof small)
        text = (char *)mtc_memory(NULL, length + 1);
    memcpy(text, begin, length);
    text[length] = 0;
    double value = strtod(text, NULL);
    if (text != small)
        free(text);
    return value;
}

static __attribute__((noinline)) bool parse_any(const char *begin, const char *end, double *value) {
    const uint64_t exact = (uint64_t)1 << 53;
    Decimal decimal = {0, 0, 0};
    mtc_trim(&begin, &end);
    bool negative = begin < end && *begin == '-', sign = negative || (begin < end && *begin == '+');
    if (!take_decimal(begin + sign, end, &decimal))
        return false;
    if (decimal.digits > 19 || decimal.mantissa > exact || decimal.power < -22 || decimal.power > 22) {
        *value = by_strtod(begin, end);
        return true;
    }
    double mantissa = (double)decimal.mantissa;
    *value = decimal.power < 0 ? mantissa / power_of_ten(-decimal.power) : mantissa * power_of_ten(decimal.power);
    if (negative)
        *value = -*value;
    return true;
}

/* ---- short numbers, as most are: no branch depends on their length ---- */

/* The number that eight digits are, the first one lowest: they are joined to pairs, fours, eight. */
static inline uint32_t join_digits(uint64_t digits) {
    const uint64_t pairs = 0x000000FF000000FFu, upper = 100 + (1000000ull << 32), lower = 1 + (10000ull << 32);
    digits = 10 * digits + (digits >> 8);
    return (uint32_t)(((digits & pairs) * upper + (digits >> 16 & pairs) * lower) >> 32);
}

/* digits / 10^power, each of these below 2^27 and 9. */
typedef struct Short {
    uint32_t digits;
    int power;
} Short;

/* Up to eight digits and a point; false: something else. */
static inline bool take_short(const char *begin, size_t length, Short *number) {
    uint64_t bytes = mtc_load_eight(begin);
    bytes = (bytes ^ 0x3030303030303030u) << 8 * (8 - length); /* zeros first, then digits */
    uint64_t others = ((bytes + 0x7676767676767676u) | bytes) & 0x8080808080808080u;
    if (!others) {
        number->digits = join_digits(bytes);
        number->power = 0;
        return true;
    }
    int point = __builtin_ctzll(others) - 7; /* the bit where it begins, if it is one */
    if ((others & (others - 1)) || (bytes >> point & 0xFF) != ('.' ^ '0') || length == 1)
        return false;
    uint64_t below = ((uint64_t)1 << point) - 1;
    number->digits = join_digits((bytes & below) << 8 | (bytes & ~below << 8));
    number->power = 7 - point / 8;
    return true;
}

/* A sign, then that. */
static inline bool take_signed(const MtcSpan *span, const char *limit, bool *negative, Short *number) {
    const char *begin = span->begin;
    *negative = begin < span->end && *begin == '-';
    begin += *negative;
    size_t length = (size_t)(span->end - begin);
    return length - 1 < 8 && limit - begin >= 8 && take_short(begin, length, number);
}

bool mtc_parse_number(const MtcSpan *span, const char *limit, double *value) {
    bool negative;
    Short number;
    if (!take_signed(span, limit, &negative, &number))
        return parse_any(span->begin, span->end, value);
    double size = number.digits / power_of_ten(number.power);
    *value = negative ? -size : size;
    return true;
}

static __attribute__((noinline)) bool any_float(const MtcSpan *span, float *value) {
    double exact;
    bool good = parse_any(span->begin, span->end, &exact);
    if (good)
        *value = (float)exact;
    return good;
}

/* A product is faster than a quotient. As a double it may be another one, but as a float never: what lies halfway between two
 * floats is further away from such a number than that, unless it is the number, and then the product is exact enough too.
 * tests/runtime/short_numbers.c tries all of them. */
bool mtc_parse_float(const MtcSpan *span, const char *limit, float *value) {
    static const double parts[] = {1e0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7};
    bool negative;
    Short number;
    if (!take_signed(span, limit, &negative, &number))
        return any_float(span, value);
    float size = (float)(number.digits * parts[number.power]);
    *value = negative ? -size : size;
    return true;
}
