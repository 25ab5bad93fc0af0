/* Fields of examples, made of the columns of a table as the model says. */
#ifndef MTC_TABLE_FIELDS_H
#define MTC_TABLE_FIELDS_H

#include "data/dataset.h"
#include "data/table.h"

typedef struct MtcFieldTable {
    const MtcModel *model;
    const MtcOrigin *origin;
    MtcTable table;
    MtcTableForm form;
    MtcTableColumn *column;
    int *of[MTC_MAX_FIELDS]; /* the form's column for each of the field's; NULL: the field is not wanted */
    int64_t rows, *row;      /* the table's rows without those that `missing = "skip"` leaves out */
} MtcFieldTable;

/* Reads the table at `path`. wanted[f]: is field f? NULL: all are. shorter: see MtcTableForm. Counts bad rows in
 * `reading`. */
int mtc_field_table_open(MtcFault *fault, const MtcModel *model, const MtcOrigin *origin, const char *path,
                         MtcReading *reading, const bool *wanted, bool shorter, MtcFieldTable *fields);
void mtc_field_table_free(MtcFieldTable *fields);

/* Learns from these rows of the table: vocabularies, and means that stand in for what is missing. */
int mtc_field_table_learn(MtcFault *fault, const MtcFieldTable *fields, const int64_t *row, int64_t count,
                          MtcEncoding *encoding);
/* The fields of these rows. A row that has a word without a class is bad; one that is left out leaves `row` too. */
int mtc_field_table_encode(MtcFault *fault, MtcFieldTable *fields, const MtcEncoding *encoding, MtcReading *reading,
                           int64_t *row, int64_t count, MtcExamples *examples);

/* ---- inside ---- */

bool mtc_is_words(const MtcField *field); /* a class made of words */
/* Element i of field f in a row of the table: whether its cell is empty; the integer in it; the number or part of the date. */
bool mtc_cell_empty(const MtcFieldTable *fields, int f, int i, int64_t row);
int32_t mtc_cell_integer(const MtcFieldTable *fields, int f, int i, int64_t row);
double mtc_cell_value(const MtcFieldTable *fields, int f, int i, int64_t row);
/* The label that a word is itself, a whole number from 0 to below `classes`; -1: another word. */
int mtc_label_of(const char *word, int classes);
/* How many classes words can have: the last one may be for those that are not known. */
int mtc_word_classes(const MtcField *field);
/* The word that an empty column is read as, perhaps in a buffer of mtc_number; NULL: none. */
const char *mtc_missing_word(const MtcColumns *columns);
void mtc_count_bad(MtcReading *reading, int64_t bad, const char *first);

#endif
