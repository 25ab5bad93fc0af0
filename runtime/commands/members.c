#include "commands/members.h"

#include <math.h>

void mtc_add_field(MtcText *text, const char *key, const char *value) {
    mtc_text_add(text, ",");
    mtc_text_json(text, key);
    mtc_text_add(text, ":");
    mtc_text_json(text, value);
}

void mtc_add_number(MtcText *text, const char *key, double value) {
    mtc_text_add(text, ",");
    mtc_text_json(text, key);
    mtc_text_add(text, isfinite(value) ? ":%.9g" : ":null", value);
}

void mtc_add_count(MtcText *text, const char *key, int64_t value) {
    mtc_text_add(text, ",");
    mtc_text_json(text, key);
    mtc_text_add(text, ":%lld", (long long)value);
}
