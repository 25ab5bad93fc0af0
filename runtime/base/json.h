/* Reading JSON, as much as the header of a checkpoint needs: the whole language, strictly. */
#ifndef MTC_JSON_H
#define MTC_JSON_H

#include "base/common.h"

typedef enum MtcJsonKind {
    MTC_JSON_NULL,
    MTC_JSON_FALSE,
    MTC_JSON_TRUE,
    MTC_JSON_NUMBER,
    MTC_JSON_STRING,
    MTC_JSON_ARRAY,
    MTC_JSON_OBJECT
} MtcJsonKind;

typedef struct MtcJson MtcJson;
struct MtcJson {
    MtcJsonKind kind;
    const char *key;       /* member of an object; else NULL */
    const char *string;    /* STRING, UTF-8, without NUL */
    double number;         /* NUMBER */
    int64_t integer;       /* NUMBER, when is_integer */
    bool is_integer;       /* written without fraction or exponent, and within int64_t */
    MtcJson *first, *next; /* ARRAY, OBJECT: the items; and the item after this one */
};

/* A document, which owns its values. `text` is changed: strings are unescaped where they stand, so it must outlive the
 * document. On a fault the message names `path` and the byte. Duplicate keys are a fault. */
typedef struct MtcJsonDocument MtcJsonDocument;
int mtc_json_read(MtcFault *fault, const char *path, char *text, size_t size, MtcJsonDocument **document);
const MtcJson *mtc_json_root(const MtcJsonDocument *document);
void mtc_json_free(MtcJsonDocument *document);

const MtcJson *mtc_json_member(const MtcJson *object, const char *key); /* NULL: none */

#endif
