/* Data sets: files of examples, checked against the fields of the model, in host memory. */
#ifndef MTC_DATASET_H
#define MTC_DATASET_H

#include "base/files.h"
#include "data/field.h"

typedef struct MtcTokens MtcTokens;

/* One array per field, in the field's type; free with mtc_examples_free. */
typedef struct MtcExamples {
    int64_t count;
    void *field[MTC_MAX_FIELDS];
    MtcTokens *tokens;   /* windows of a file: the only field is not in an array but there, see tokens.h; else NULL */
    int64_t first_token; /* of the first window */
    int64_t stride;      /* of windows: elements from one to the next; 0: examples lie one behind the other */
    int64_t rows, *row;  /* examples to predict: how many rows their table has, and which of them each is; NULL: all */
    struct MtcTableRows
        *source; /* where the reading asks for it, of a table to predict: its rows, see table.h; else NULL */
    char **path; /* of images: the file of each row, or example where there are no rows; else NULL */
} MtcExamples;

void mtc_examples_free(MtcExamples *examples);
/* So many elements of a field, `from` on, as the examples lie one after the other; one example. A fault: tokens of a file
 * that are no classes, or a file that was changed; arrays have none. */
int mtc_read_elements(MtcFault *fault, const MtcModel *model, const MtcExamples *examples, int field, int64_t from,
                      int64_t count, void *values);
int mtc_read_example(MtcFault *fault, const MtcModel *model, const MtcExamples *examples, int field, int64_t example,
                     void *values);
/* Leaves `count` of the examples, which[i] (NULL: the first ones), one behind the other in arrays. After a fault, all. */
int mtc_keep_examples(MtcFault *fault, const MtcModel *model, const int64_t *which, int64_t count,
                      MtcExamples *examples);

/* What the training data decided about the meaning of the fields: learned with them, kept in checkpoints, and from then on
 * given. Owns its words; one per field. */
typedef struct MtcMeaning {
    int words;    /* of a class field made of words or characters: how many classes are in use; 0: labels are numbers */
    char **word;  /* class k is word[k]: sorted, UTF-8 */
    double *mean; /* of each element, where an empty column stands for it; else NULL */
    char *tokenizer; /* of windows of byte pairs: its file, as the model names it; else NULL */
    uint64_t digest; /* of that tokenizer */
} MtcMeaning;
typedef struct MtcEncoding {
    bool known; /* restored, or learned */
    MtcMeaning field[MTC_MAX_FIELDS];
} MtcEncoding;
void mtc_encoding_free(MtcEncoding *encoding);

/* How data are to be read. */
typedef struct MtcReading {
    const char *folder;  /* where the files are, as --data says; NULL: where the model file says */
    uint64_t seed;       /* decides which examples a part gets */
    bool skip_bad_rows;  /* rows, or images, that are wrong are left out and counted; else the first one is a fault */
    bool cache;          /* parsed tables and decoded images are kept beside their files and used again */
    bool source;         /* the text of a table to predict is kept with the examples */
    bool resize;         /* images to predict of other sizes are scaled */
    int64_t skipped;     /* result: bad rows left out */
    bool images;         /* result: they were images */
    char first_bad[512]; /* result: what was wrong with the first of them */
    char rounded[512];   /* result: the first array whose numbers were rounded to the type of its field; "": none */
} MtcReading;

/* Reads splits of the model by name (NULL: none, its examples stay empty), each origin once. What `encoding` does not know
 * is learned from the part of the training split, which is read for that even when it is not asked for. */
int mtc_read_splits(MtcFault *fault, const MtcModel *model, MtcReading *reading, MtcEncoding *encoding,
                    const char *const *name, int count, MtcExamples *examples);
/* A file of examples to predict, in the format of the model's data (tsv, csv, npz) or, one file for each field, npy and
 * IDX; an image or a folder of images. Fields that the prediction does not depend on may be missing. */
int mtc_read_input(MtcFault *fault, const MtcModel *model, MtcReading *reading, const MtcEncoding *encoding,
                   const char *const *path, int paths, MtcExamples *examples);

/* Before any is read: are there too many? */
int mtc_check_inputs(MtcFault *fault, const MtcModel *model, const char *const *path, int paths);

/* The arrays of an npz file that are named like fields. Those that are not wanted may be missing; NULL: all are wanted. */
int mtc_read_npz(MtcFault *fault, const MtcModel *model, const char *path, const bool *wanted, MtcReading *reading,
                 MtcExamples *examples);
/* path[f]: the npy or IDX file of field f, or NULL. */
int mtc_read_field_files(MtcFault *fault, const MtcModel *model, const char *const *path, MtcReading *reading,
                         MtcExamples *examples);
typedef enum MtcFileKind { MTC_FILE_NPY, MTC_FILE_IDX, MTC_FILE_ZIP, MTC_FILE_IMAGES, MTC_FILE_TEXT } MtcFileKind;
int mtc_file_kind(MtcFault *fault, const char *path,
                  MtcFileKind *kind); /* as its first bytes say; IMAGES: a folder too */

const MtcSplit *mtc_split(const MtcModel *model, const char *name); /* NULL: none */
/* The split that eval and predict use unless another is named: "test", else "validation", else NULL. */
const char *mtc_test_split(const MtcModel *model);

/* Examples that are windows of a row of tokens, see windows.c: the training data's origin, NULL: they are none; the field of
 * such a model. */
const MtcOrigin *mtc_windows_origin(const MtcModel *model);
const MtcField *mtc_window_field(const MtcModel *model);

#endif
