/* Every number of up to seven digits and a point as a float: the nearest double's. Prints the first that is another one. */
#include "data/table.h"

#include <stdio.h>
#include <string.h>

static const double powers[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7};

/* The next number of as many digits; the point stays. */
static void count_up(char *last) {
    for (; *last == '9' || *last == '.'; last--)
        *last = *last == '.' ? '.' : '0';
    ++*last;
}

static bool check(int decimals) {
    char text[] = "00000000";
    MtcSpan span = {text, text + 8, false};
    text[7 - decimals] = '.';
    for (uint32_t digits = 0; digits < 10000000; digits++) {
        float value, expected = (float)(digits / powers[decimals]);
        if (!mtc_parse_float(&span, span.end, &value) || memcmp(&value, &expected, sizeof value) != 0) {
            puts(text);
            return false;
        }
        if (digits + 1 < 10000000)
            count_up(text + 7);
    }
    return true;
}

int main(void) {
    bool good = true;
    for (int decimals = 0; decimals < 8 && good; decimals++)
        good = check(decimals);
    return !good;
}
