#include "checkpoint/inspect.h"

#include "checkpoint/checkpoint.h"
#include "data/vocabulary.h"
#include "session/weights.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers of any type ---- */

/* A number of sign, exponent and mantissa. `finite`: of the kind whose largest exponent is one like the others, and only
 * all ones are NaN. */
static double minifloat(uint64_t bits, int exponent, int mantissa, bool finite) {
    uint64_t most = ((uint64_t)1 << exponent) - 1, ones = ((uint64_t)1 << mantissa) - 1;
    uint64_t power = bits >> mantissa & most, part = bits & ones;
    int bias = (int)(most >> 1);
    double sign = bits >> (exponent + mantissa) & 1 ? -1 : 1;
    if (power == most && (!finite || part == ones))
        return part ? (double)NAN : sign * (double)INFINITY;
    return power ? sign * ldexp((double)(part + ones + 1), (int)power - bias - mantissa)
                 : sign * ldexp((double)part, 1 - bias - mantissa);
}

typedef struct NumberType {
    const char *name; /* of the format */
    int bytes;
    char kind; /* 'f': of these two sizes; 'e': the same without infinities; 'i', 'u': whole numbers */
    int exponent, mantissa;
} NumberType;

static const NumberType *number_type(const char *dtype) {
    static const NumberType types[] = {{"F64", 8, 'f', 11, 52}, {"F32", 4, 'f', 8, 23},    {"F16", 2, 'f', 5, 10},
                                       {"BF16", 2, 'f', 8, 7},  {"F8_E5M2", 1, 'f', 5, 2}, {"F8_E4M3", 1, 'e', 4, 3},
                                       {"I64", 8, 'i', 0, 0},   {"I32", 4, 'i', 0, 0},     {"I16", 2, 'i', 0, 0},
                                       {"I8", 1, 'i', 0, 0},    {"U64", 8, 'u', 0, 0},     {"U32", 4, 'u', 0, 0},
                                       {"U16", 2, 'u', 0, 0},   {"U8", 1, 'u', 0, 0},      {"BOOL", 1, 'u', 0, 0}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(types[i].name, dtype) == 0)
            return &types[i];
    return NULL;
}

static double decoded_number(const NumberType *type, const uint8_t *at) {
    uint64_t bits = 0;
    int unused = 64 - 8 * type->bytes;
    for (int i = 0; i < type->bytes; i++)
        bits |= (uint64_t)at[i] << 8 * i;
    if (type->kind == 'u')
        return (double)bits;
    return type->kind == 'i' ? (double)((int64_t)(bits << unused) >> unused)
                             : minifloat(bits, type->exponent, type->mantissa, type->kind == 'e');
}

/* ---- statistics ---- */

typedef struct Statistics {
    double least, largest, mean, deviation; /* of the finite numbers */
    int64_t finite, nan, infinite;
} Statistics;

static void count_number(Statistics *s, double value, double *sum) {
    s->nan += isnan(value) != 0;
    s->infinite += isinf(value) != 0;
    if (!isfinite(value))
        return;
    s->least = s->finite ? fmin(s->least, value) : value;
    s->largest = s->finite ? fmax(s->largest, value) : value;
    s->finite++;
    *sum += value;
}

static Statistics statistics_of(const MtcBlob *blob) {
    const NumberType *type = number_type(blob->dtype);
    const uint8_t *bytes = (const uint8_t *)blob->bytes;
    double sum = 0, squares = 0;
    Statistics s;
    memset(&s, 0, sizeof s);
    for (size_t at = 0; at < blob->size; at += (size_t)type->bytes)
        count_number(&s, decoded_number(type, bytes + at), &sum);
    s.mean = sum / (double)s.finite;
    for (size_t at = 0; at < blob->size; at += (size_t)type->bytes) {
        double value = decoded_number(type, bytes + at);
        squares += isfinite(value) ? (value - s.mean) * (value - s.mean) : 0;
    }
    s.deviation = sqrt(squares / (double)s.finite);
    return s;
}

/* ---- printing ---- */

enum { VALUE_WIDTH = 72, LINE_WIDTH = 100 };

/* A part of a list that goes on in the line below, where it is too long for this one. */
static void print_listed(int *column, int indent, const char *text, bool first) {
    const int width = mtc_characters(text);
    bool wraps = !first && *column + 2 + width > LINE_WIDTH;
    if (wraps)
        printf(",\n%*s", indent, "");
    else if (!first)
        printf(", ");
    printf("%s", text);
    *column = (wraps ? indent : *column + (first ? 0 : 2)) + width;
}

/* The words of a field's classes, in their order; or the means of its elements. */
static void print_meaning(const MtcJson *list, const char *name, const char *before) {
    enum { INDENT = 23 };
    int column = INDENT + (int)strlen(before), k = 0;
    printf("  %-20s %s", mtc_harmless(name), before);
    for (const MtcJson *item = list->first; item; item = item->next, k++) {
        MtcText text = {NULL, 0, 0};
        if (item->kind == MTC_JSON_STRING)
            mtc_text_add(&text, strcmp(item->string, " ") ? "%d %s" : "%d '%s'", k, mtc_visible(item->string));
        else
            mtc_text_add(&text, "%s", mtc_number(item->number));
        print_listed(&column, INDENT, text.at, k == 0);
        free(text.at);
    }
    printf("\n");
}

/* "65 of 96 classes: ", where a text has fewer characters than the field has classes; else nothing. */
static char *classes_in_use(const MtcModel *model, const char *name, const MtcJson *words) {
    MtcText text = {NULL, 0, 0};
    int count = 0;
    for (const MtcJson *item = words->first; item; item = item->next)
        count++;
    mtc_text_add(&text, "%s", "");
    for (int f = 0; f < model->fields; f++)
        if (model->field[f].windows && strcmp(model->field[f].name, name) == 0 && count < model->field[f].classes)
            mtc_text_add(&text, "%d of %d classes: ", count, model->field[f].classes);
    return text.at;
}

/* What the training data decided, of this model's fields or another's. */
static void print_encoding(const MtcModel *model, const MtcCheckpoint *checkpoint) {
    const char *text = mtc_checkpoint_text(checkpoint, "encoding");
    char *copy = strdup(text ? text : "{}"); /* reading changes it */
    MtcJsonDocument *document;
    MtcFault fault;
    if (copy && mtc_json_read(&fault, checkpoint->path, copy, strlen(copy), &document) == 0) {
        const MtcJson *root = mtc_json_root(document), *first = root->kind == MTC_JSON_OBJECT ? root->first : NULL;
        if (first)
            printf("\nlearned from the training data\n");
        for (const MtcJson *field = first; field; field = field->next) {
            const MtcJson *words = mtc_json_member(field, "words"), *mean = mtc_json_member(field, "mean");
            if (words) {
                char *in_use = classes_in_use(model, field->key, words);
                print_meaning(words, field->key, in_use);
                free(in_use);
            }
            const MtcJson *tokenizer = mtc_json_member(field, "tokenizer"), *digest = mtc_json_member(field, "digest");
            if (tokenizer && digest && tokenizer->kind == MTC_JSON_STRING && digest->kind == MTC_JSON_STRING)
                printf("  %-20s tokens of %s, whose digest is %s\n", mtc_harmless(field->key),
                       mtc_harmless(tokenizer->string), mtc_harmless(digest->string));
            if (mean)
                print_meaning(mean, field->key, "where missing: ");
        }
        mtc_json_free(document);
    }
    free(copy);
}

static void print_metadata(const MtcArchive *archive) {
    const MtcJson *metadata = mtc_json_member(mtc_json_root(archive->header), "__metadata__");
    if (!metadata || !metadata->first)
        return;
    printf("\nmetadata\n");
    for (const MtcJson *item = metadata->first; item; item = item->next) {
        if (strcmp(item->key, "mtc.encoding") == 0)
            continue; /* shown below */
        const char *value = item->kind == MTC_JSON_STRING ? item->string : "(no text)";
        size_t length = strlen(value), cut = length;
        MtcText shown = {NULL, 0, 0};
        if (cut > VALUE_WIDTH)
            cut = VALUE_WIDTH;
        while (cut < length && cut > 0 && ((unsigned char)value[cut] & 0xC0) == 0x80)
            cut--; /* not within a character */
        mtc_text_harmless(&shown, value, cut, "");
        printf("  %-20s %s", mtc_harmless(item->key), shown.at);
        free(shown.at);
        if (cut < length)
            printf("... (%zu bytes)", length);
        printf("\n");
    }
}

static int widest_name(const MtcArchive *archive) {
    size_t width = strlen("tensors") - 2;
    for (int i = 0; i < archive->count; i++)
        width =
            strlen(mtc_harmless(archive->blob[i].name)) > width ? strlen(mtc_harmless(archive->blob[i].name)) : width;
    return width > 48 ? 48 : (int)width;
}

static void print_blob(const MtcBlob *blob, int width) {
    Statistics s = statistics_of(blob);
    printf("  %-*s  %-7s %-18s %12zu", width, mtc_harmless(blob->name), mtc_harmless(blob->dtype),
           mtc_shape(blob->rank, blob->dim), blob->size);
    if (s.finite)
        printf(" %12.5g %12.5g %12.5g %12.5g", s.least, s.largest, s.mean, s.deviation);
    if (s.nan)
        printf("  %lld NaN", (long long)s.nan);
    if (s.infinite)
        printf("  %lld infinite", (long long)s.infinite);
    printf("\n");
}

static void print_blobs(const MtcArchive *archive) {
    int width = widest_name(archive);
    printf("\n%-*s  %-7s %-18s %12s %12s %12s %12s %12s\n", width + 2, "tensors", "type", "shape", "bytes", "min",
           "max", "mean", "std");
    for (int i = 0; i < archive->count; i++)
        print_blob(&archive->blob[i], width);
}

/* ---- does it fit? ---- */

static void difference(int *count, const char *name, const char *what) {
    if ((*count)++ == 0)
        printf("\nit does not fit this program\n");
    printf("  %s: %s\n", mtc_harmless(name), mtc_harmless(what));
}

static void compare_tensor(const MtcTensor *tensor, const MtcBlob *blob, int *count) {
    char what[400];
    if (mtc_blob_fits(tensor, blob))
        return;
    mtc_misfit_text(tensor, blob, what, sizeof what);
    difference(count, tensor->name, what);
}

static void print_fit(const MtcModel *model, const MtcArchive *archive) {
    int differences = 0;
    for (int i = 0; i < model->tensors; i++)
        if (mtc_is_kept(&model->tensor[i]))
            compare_tensor(&model->tensor[i], mtc_archive_find(archive, model->tensor[i].name), &differences);
    for (int i = 0; i < archive->count; i++) {
        const MtcTensor *tensor = mtc_find_tensor(model, archive->blob[i].name);
        if ((!tensor || tensor->role == MTC_VALUE) && !mtc_needless(&archive->blob[i]))
            difference(&differences, archive->blob[i].name, "is no tensor of this program");
    }
    if (!differences)
        printf("\nit fits this program: every weight is there, with its shape and type\n");
}

/* The program that wrote it may have been compiled from another text of the model. */
static void print_origin(const MtcModel *model, const MtcCheckpoint *checkpoint) {
    const char *hash = mtc_archive_metadata(&checkpoint->archive, "mtc.model_hash");
    if (!checkpoint->ours || !hash)
        printf("not written by a program of mtc\n");
    else if (strcmp(hash, model->model_hash) == 0)
        printf("written by a program of this very model\n");
    else
        printf("written by a program of another model, or of another version of this one\n");
}

static void print_size(const char *path, const MtcArchive *archive) {
    int64_t numbers = 0;
    size_t bytes = 0;
    for (int i = 0; i < archive->count; i++) {
        numbers += mtc_elements(archive->blob[i].rank, archive->blob[i].dim);
        bytes += archive->blob[i].size;
    }
    printf("%s: %d tensors, %lld numbers, %s\n", mtc_harmless(path), archive->count, (long long)numbers,
           mtc_bytes((double)bytes));
}

int mtc_inspect(MtcFault *fault, const MtcModel *model, const char *path) {
    MtcCheckpoint checkpoint;
    int code = mtc_checkpoint_open(fault, path, &checkpoint);
    if (!code) {
        print_size(path, &checkpoint.archive);
        print_origin(model, &checkpoint);
        print_metadata(&checkpoint.archive);
        print_encoding(model, &checkpoint);
        print_blobs(&checkpoint.archive);
        print_fit(model, &checkpoint.archive);
    }
    mtc_checkpoint_close(&checkpoint);
    return code;
}
