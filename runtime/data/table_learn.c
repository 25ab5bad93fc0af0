/* What the training part of a table decides: which words are the classes of a field, and the means that stand in for what is
 * missing. */
#include "data/table_fields.h"

#include <stdlib.h>
#include <string.h>

/* ---- words ---- */

static int too_many_words(MtcFault *fault, const MtcFieldTable *fields, int f, char **word, int count) {
    const MtcField *field = &fields->model->field[f];
    MtcText some = {NULL, 0, 0};
    for (int i = 0; i < count && i < 8; i++)
        mtc_text_add(&some, "%s'%s'", i ? ", " : "", mtc_shown(word[i]));
    mtc_fail(fault, MTC_BAD_DATA,
             "%s: column '%s' has %d different words in the training data; field '%s' is class[%d]%s",
             fields->table.text.path, field->columns.name[0], count, field->name, field->classes,
             field->columns.unseen_other ? ", whose last class is for words that are not known" : "");
    mtc_note(fault, "they are %s%s", some.at, count > 8 ? ", ..." : "");
    mtc_note(fault, "'%s: class[%d]' has room for them", field->name, count + field->columns.unseen_other);
    free(some.at);
    return fault->code;
}

/* The words of the rows, sorted, for the caller to own; an empty column counts as its word. */
static char **used_words(const MtcFieldTable *fields, int f, const int64_t *row, int64_t count, int *used) {
    const MtcWordList *list = &fields->table.words[fields->of[f][0]];
    const char *missing = mtc_missing_word(&fields->model->field[f].columns);
    bool *is_used = (bool *)mtc_zeroed((size_t)list->count), add = false;
    *used = 0;
    for (int64_t i = 0; i < count; i++) {
        int32_t code = mtc_cell_integer(fields, f, 0, row[i]);
        if (code == MTC_EMPTY)
            add = missing != NULL;
        else
            is_used[code] = true;
    }
    char **word = (char **)mtc_memory(NULL, ((size_t)list->count + 1) * sizeof *word);
    add = add && !(mtc_find_word(list->word, list->count, missing) >= 0 &&
                   is_used[mtc_find_word(list->word, list->count, missing)]);
    for (int code = 0; code <= list->count; code++) {
        if (add && (code == list->count || strcmp(missing, list->word[code]) < 0)) {
            word[(*used)++] = strdup(missing);
            add = false;
        }
        if (code < list->count && is_used[code])
            word[(*used)++] = strdup(list->word[code]);
    }
    free(is_used);
    return word;
}

static int learn_words(MtcFault *fault, const MtcFieldTable *fields, int f, const int64_t *row, int64_t count,
                       MtcMeaning *meaning) {
    const MtcField *field = &fields->model->field[f];
    int used, labels = 0;
    char **word = used_words(fields, f, row, count, &used);
    while (labels < used && mtc_label_of(word[labels], mtc_word_classes(field)) >= 0)
        labels++;
    int code = labels < used && used > mtc_word_classes(field) ? too_many_words(fault, fields, f, word, used) : 0;
    if (code || labels == used) {
        mtc_free_strings(word, used);
        return code;
    }
    meaning->words = used;
    meaning->word = word;
    return 0;
}

/* ---- means ---- */

static int learn_mean(MtcFault *fault, const MtcFieldTable *fields, int f, const int64_t *row, int64_t count,
                      MtcMeaning *meaning) {
    const MtcColumns *columns = &fields->model->field[f].columns;
    meaning->mean = (double *)mtc_zeroed((size_t)columns->count * sizeof *meaning->mean);
    for (int e = 0; e < columns->count; e++) {
        int64_t present = 0;
        double sum = 0;
        for (int64_t i = 0; i < count; i++)
            if (!mtc_cell_empty(fields, f, e, row[i])) {
                sum += mtc_cell_value(fields, f, e, row[i]);
                present++;
            }
        if (present == 0)
            return mtc_fail(fault, MTC_BAD_DATA, "%s: column '%s' is empty in all training data: there is no mean",
                            fields->table.text.path, columns->name[e]);
        meaning->mean[e] = sum / (double)present;
    }
    return 0;
}

int mtc_field_table_learn(MtcFault *fault, const MtcFieldTable *fields, const int64_t *row, int64_t count,
                          MtcEncoding *encoding) {
    int code = 0;
    for (int f = 0; f < fields->model->fields && !code; f++) {
        const MtcField *field = &fields->model->field[f];
        if (mtc_is_words(field))
            code = learn_words(fault, fields, f, row, count, &encoding->field[f]);
        else if (field->columns.missing == MTC_MISSING_MEAN)
            code = learn_mean(fault, fields, f, row, count, &encoding->field[f]);
    }
    return code;
}
