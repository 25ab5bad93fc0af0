/* Members of a JSON object, each behind a comma: what logs and reports are made of. */
#ifndef MTC_MEMBERS_H
#define MTC_MEMBERS_H

#include "base/common.h"

void mtc_add_field(MtcText *text, const char *key, const char *value); /* ,"key":"value" */
void mtc_add_number(MtcText *text, const char *key, double value);     /* ,"key":1.5; null when it is not finite */
void mtc_add_count(MtcText *text, const char *key, int64_t value);

#endif
