/* Dates of the Gregorian calendar, as days since 1970-01-01. Years here begin with March, so that the day that a leap year
 * has more is its last. */
#include "data/table.h"

#include <string.h>

static bool is_leap(int year) {
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static int days_in_month(int year, int month) {
    static const signed char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return days[month - 1] + (month == 2 && is_leap(year));
}

/* March 1 of year 0 is day -719468; the months from March have 31, 30, 31, 30, 31 days, again and again. */
static int32_t day_number(int year, int month, int day) {
    int y = year - (month < 3), m = (month + 9) % 12;
    return 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719468;
}

/* Up to `most` digits; -1: there is none. */
static int take_number(const char **at, const char *end, int most) {
    int value = 0, digits = 0;
    for (; digits < most && *at < end && **at >= '0' && **at <= '9'; digits++, (*at)++)
        value = 10 * value + (**at - '0');
    return digits ? value : -1;
}

/* "2024-09-30", as most dates are written: false where it is not. */
static inline bool take_iso(const char *at, int part[3]) {
    uint64_t bytes = mtc_load_eight(at) ^ 0x2D30302D30303030u;
    uint64_t others = ((bytes + 0x7F76767F76767676u) | bytes) & 0x8080808080808080u;
    unsigned ten = (unsigned char)(at[8] - '0'), one = (unsigned char)(at[9] - '0');
    if (others || ten > 9 || one > 9)
        return false;
    bytes = 10 * bytes + (bytes >> 8); /* pairs of digits, in bytes 0, 2, 5 */
    part[0] = 100 * (int)(bytes & 0xFF) + (int)(bytes >> 16 & 0xFF);
    part[1] = (int)(bytes >> 40 & 0xFF);
    part[2] = (int)(10 * ten + one);
    return true;
}

/* As the format says; a time may follow. */
static bool take_date(const char *at, const char *end, const char *format, int part[3]) {
    mtc_trim(&at, &end);
    for (const char *f = format; *f; f++) {
        if (*f != '%' || !f[1]) {
            if (at == end || *at++ != *f)
                return false;
            continue;
        }
        int which = *++f == 'Y' ? 0 : *f == 'm' ? 1 : 2;
        const char *begin = at;
        part[which] = take_number(&at, end, which == 0 ? 4 : 2);
        if (part[which] < 0 || (which == 0 && at - begin != 4))
            return false;
    }
    return at == end || *at == ' ' || *at == 'T';
}

MtcFlawKind mtc_parse_date(const MtcSpan *span, const char *format, int32_t *day) {
    int part[3] = {-1, 1, 1}; /* year, month, day */
    bool iso = span->end - span->begin == 10 && strcmp(format, "%Y-%m-%d") == 0 && take_iso(span->begin, part);
    if (!iso && !take_date(span->begin, span->end, format, part))
        return MTC_FLAW_DATE;
    if (part[0] < 1 || part[1] < 1 || part[1] > 12 || part[2] < 1 || part[2] > days_in_month(part[0], part[1]))
        return MTC_FLAW_NO_DAY;
    *day = day_number(part[0], part[1], part[2]);
    return MTC_FLAW_NONE;
}

MtcDay mtc_day(int32_t day) {
    MtcDay result;
    int year = 1970 + day / 366 - (day < 0), month = 1;
    while (day_number(year + 1, 1, 1) <= day)
        year++;
    while (day_number(year, 1, 1) > day)
        year--;
    result.of_year = day - day_number(year, 1, 1) + 1;
    while (month < 12 && day_number(year, month + 1, 1) <= day)
        month++;
    result.month = month;
    result.weekday = 1 + ((day + 3) % 7 + 7) % 7; /* 1970-01-01 was a Thursday */
    return result;
}
