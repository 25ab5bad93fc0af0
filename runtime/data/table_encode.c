/* Rows of a table into the arrays of fields. A row that has no class for one of them is bad. */
#include "data/field.h"
#include "data/table_fields.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A field being made for some rows. */
typedef struct Encoder {
    const MtcFieldTable *fields;
    int f;
    const MtcField *field;
    const MtcMeaning *meaning;
    int32_t *class_of; /* of words: for each of the table's, -1: none; after the last, of an empty column */
    void *values;
} Encoder;

static int class_of_word(const Encoder *encoder, const char *word) {
    const MtcMeaning *meaning = encoder->meaning;
    int found = !word                ? -1
                : meaning->words > 0 ? mtc_find_word((const char *const *)meaning->word, meaning->words, word)
                                     : mtc_label_of(word, mtc_word_classes(encoder->field));
    return found < 0 && word && encoder->field->columns.unseen_other ? encoder->field->classes - 1 : found;
}

static void map_words(Encoder *encoder) {
    const MtcWordList *list = &encoder->fields->table.words[encoder->fields->of[encoder->f][0]];
    encoder->class_of = (int32_t *)mtc_memory(NULL, ((size_t)list->count + 1) * sizeof *encoder->class_of);
    for (int i = 0; i < list->count; i++)
        encoder->class_of[i] = class_of_word(encoder, list->word[i]);
    encoder->class_of[list->count] = class_of_word(encoder, mtc_missing_word(&encoder->field->columns));
}

static double missing_value(const Encoder *encoder, int element) {
    return encoder->field->columns.missing == MTC_MISSING_MEAN ? encoder->meaning->mean[element]
                                                               : encoder->field->columns.missing_value;
}

static void put_value(const Encoder *encoder, int64_t at, double value) {
    if (encoder->field->type == MTC_F32)
        ((float *)encoder->values)[at] = (float)value;
    else if (encoder->field->classes)
        mtc_put_class(encoder->field, encoder->values, at, (int64_t)value);
    else if (encoder->field->type == MTC_I32)
        ((int32_t *)encoder->values)[at] = (int32_t)value;
    else
        ((uint8_t *)encoder->values)[at] = (uint8_t)value;
}

static bool encode_word(const Encoder *encoder, int64_t at, int64_t row) {
    const MtcWordList *list = &encoder->fields->table.words[encoder->fields->of[encoder->f][0]];
    int32_t code = mtc_cell_integer(encoder->fields, encoder->f, 0, row);
    int32_t class_ = encoder->class_of[code == MTC_EMPTY ? list->count : code];
    put_value(encoder, at, class_ < 0 ? 0 : class_);
    return class_ >= 0;
}

/* One element that is no word. Classes of a part of the date begin with 0; one that stands in is a class already. */
static bool encode_value(const Encoder *encoder, int64_t at, int element, int64_t row) {
    bool empty = mtc_cell_empty(encoder->fields, encoder->f, element, row);
    double value = empty ? missing_value(encoder, element) : mtc_cell_value(encoder->fields, encoder->f, element, row);
    if (encoder->field->columns.part != MTC_PART_VALUE && encoder->field->classes && !empty)
        value -= 1;
    bool good = (!encoder->field->classes || (value >= 0 && value < encoder->field->classes)) &&
                (!encoder->field->weighs || mtc_is_weight(value));
    put_value(encoder, at, good ? value : 0);
    return good;
}

static bool encode_row(const Encoder *encoder, int64_t i, int64_t row) {
    if (encoder->class_of)
        return encode_word(encoder, i, row);
    bool good = true;
    for (int e = 0; e < encoder->field->columns.count; e++)
        good &= encode_value(encoder, i * encoder->field->elements + e, e, row);
    return good;
}

/* ---- rows that have no class ---- */

/* Which rows are wrong, and the field of the first. */
typedef struct Wrong {
    bool *row;
    int64_t count, first;
    int field;
} Wrong;

static int encode_field(MtcFault *fault, MtcFieldTable *fields, const MtcEncoding *encoding, int f, const int64_t *row,
                        int64_t count, Wrong *wrong, void **values) {
    const MtcField *field = &fields->model->field[f];
    Encoder encoder = {fields, f, field, &encoding->field[f], NULL, NULL};
    if (field->columns.missing == MTC_MISSING_MEAN && !encoder.meaning->mean)
        return mtc_fail(fault, MTC_BAD_DATA, "the mean of field '%s' is not known: it is kept with trained weights",
                        field->name);
    *values = encoder.values = mtc_memory(NULL, (size_t)(count * field->elements) * mtc_type_size(field->type));
    if (mtc_is_words(field))
        map_words(&encoder);
    for (int64_t i = 0; i < count; i++) {
        if (encode_row(&encoder, i, row[i]) || wrong->row[i])
            continue;
        wrong->row[i] = true;
        if (wrong->count++ == 0 || i < wrong->first) {
            wrong->first = i;
            wrong->field = f;
        }
    }
    free(encoder.class_of);
    return 0;
}

static void note_words(MtcFault *fault, const MtcField *field, const MtcMeaning *meaning) {
    MtcText some = {NULL, 0, 0};
    for (int i = 0; i < meaning->words && i < 8; i++)
        mtc_text_add(&some, "%s'%s'", i ? ", " : "", mtc_shown(meaning->word[i]));
    mtc_note(fault, "it has %s%s; unseen = \"other\" in the model gives other words the last class of '%s'", some.at,
             meaning->words > 8 ? ", ..." : "", field->name);
    free(some.at);
}

/* The fault of a row that has no class for a field. */
static int wrong_row(MtcFault *fault, MtcFieldTable *fields, const MtcEncoding *encoding, int f, int64_t row) {
    const MtcField *field = &fields->model->field[f];
    const MtcMeaning *meaning = &encoding->field[f];
    const char *column = field->columns.name[0];
    char place[512];
    mtc_table_place(&fields->table, &fields->form, row, fields->of[f][0], place, sizeof place);
    if (field->weighs)
        return mtc_fail(fault, MTC_BAD_DATA,
                        "%sexpected the weight of an example, " MTC_A_WEIGHT ", in column '%s', found %s", place,
                        column, mtc_number(mtc_cell_value(fields, f, 0, row)));
    if (!mtc_is_words(field))
        return mtc_fail(fault, MTC_BAD_DATA, "%sthe date in column '%s' has no class: field '%s' is class[%d]", place,
                        column, field->name, field->classes);
    int32_t code = mtc_cell_integer(fields, f, 0, row);
    const char *word =
        code == MTC_EMPTY ? mtc_missing_word(&field->columns) : fields->table.words[fields->of[f][0]].word[code];
    if (!word)
        word = "";
    if (meaning->words == 0) {
        mtc_fail(fault, MTC_BAD_DATA, "%sexpected a label from 0 to %d in column '%s', found '%s'", place,
                 mtc_word_classes(field) - 1, column, mtc_shown(word));
        if (!encoding->known)
            mtc_note(fault, "which words are the classes of '%s' is not known: the weights were saved without them",
                     field->name);
        return fault->code;
    }
    const char *nearest = mtc_nearest(word, (const char *const *)meaning->word, meaning->words);
    mtc_fail(fault, MTC_BAD_DATA, "%sthe training data have no '%s' in column '%s'%s%s%s", place, mtc_shown(word),
             column, nearest ? "; did you mean '" : "", nearest ? mtc_shown(nearest) : "", nearest ? "'?" : "");
    note_words(fault, field, meaning);
    return fault->code;
}

/* Takes the wrong rows out of the examples, and out of the list of rows. */
static void drop_wrong(const MtcModel *model, const Wrong *wrong, int64_t *row, MtcExamples *examples) {
    int64_t kept = 0;
    for (int64_t i = 0; i < examples->count; i++) {
        if (wrong->row[i])
            continue;
        for (int f = 0; f < model->fields; f++) {
            size_t size = (size_t)model->field[f].elements * mtc_type_size(model->field[f].type);
            char *values = (char *)examples->field[f];
            if (values && kept < i)
                memcpy(values + (size_t)kept * size, values + (size_t)i * size, size);
        }
        row[kept++] = row[i];
    }
    examples->count = kept;
}

static int finish_examples(MtcFault *fault, MtcFieldTable *fields, const MtcEncoding *encoding, MtcReading *reading,
                           int64_t *row, const Wrong *wrong, MtcExamples *examples) {
    if (wrong->count == 0)
        return 0;
    MtcFault first;
    wrong_row(&first, fields, encoding, wrong->field, row[wrong->first]);
    if (!reading->skip_bad_rows) {
        *fault = first;
        if (!fields->form.series)
            mtc_note(fault, "--bad-rows skip leaves out rows that are wrong");
        return fault->code;
    }
    first.text[strcspn(first.text, "\n")] = 0;
    mtc_count_bad(reading, wrong->count, first.text);
    drop_wrong(fields->model, wrong, row, examples);
    return examples->count ? 0
                           : mtc_fail(fault, MTC_BAD_DATA, "%s: no row is left; the first bad one: %s",
                                      fields->table.text.path, first.text);
}

int mtc_field_table_encode(MtcFault *fault, MtcFieldTable *fields, const MtcEncoding *encoding, MtcReading *reading,
                           int64_t *row, int64_t count, MtcExamples *examples) {
    Wrong wrong = {(bool *)mtc_zeroed((size_t)count), 0, 0, 0};
    int code = 0;
    memset(examples, 0, sizeof *examples);
    examples->count = count;
    for (int f = 0; f < fields->model->fields && !code; f++)
        if (fields->of[f])
            code = encode_field(fault, fields, encoding, f, row, count, &wrong, &examples->field[f]);
    if (!code)
        code = finish_examples(fault, fields, encoding, reading, row, &wrong, examples);
    if (code)
        mtc_examples_free(examples);
    free(wrong.row);
    return code;
}
