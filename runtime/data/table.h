/* Tables: text files of rows and columns (tsv, csv), read with all processors.
 *
 *     file -> text -> chunks, cut at line ends -> rows -> cells of the wanted columns -> one table
 *
 * A chunk is read and parsed by one thread, with dictionaries of its own for words; the chunks' cells are then joined in the order
 * of the file, and words get codes in the order of their bytes, so that the table does not depend on threads or chunks.
 * Rows that are wrong are found in the order of the file too. A parsed table is kept beside its file (table_cache.c). */
#ifndef MTC_TABLE_H
#define MTC_TABLE_H

#include "base/cache.h"
#include "base/files.h"

#include <string.h>
#include <time.h>

/* AVX2 where the processor has it; the same in plain C elsewhere, and where MTC_PORTABLE asks for it. */
#if defined(__x86_64__) && !defined(MTC_PORTABLE)
#include <immintrin.h>
#define MTC_AVX2 __attribute__((target("avx2,bmi,popcnt")))
static inline bool mtc_has_avx2(void) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("popcnt");
}
#endif

/* What a column's cells are, four bytes each: f32, NaN where the column is empty; or i32, MTC_EMPTY there. */
typedef enum MtcCell { MTC_CELL_NUMBER, MTC_CELL_INTEGER, MTC_CELL_DATE, MTC_CELL_WORD } MtcCell;
#define MTC_EMPTY INT32_MIN

/* A column that is wanted. DATE: days since 1970-01-01. WORD: which of the column's words. */
typedef struct MtcTableColumn {
    const char *name;
    MtcCell cell;
    const char *date_format;
    bool optional;     /* may be empty; else a row where it is is wrong */
    int32_t low, high; /* INTEGER: the range of values */
} MtcTableColumn;

/* What a file is to be read as. */
typedef struct MtcTableForm {
    bool header;             /* the first line names the columns */
    int names;               /* columns of a file without a header; with one: names that it must be, or 0 */
    const char *const *name; /* "_": not used */
    bool shorter;            /* columns that are not wanted may be missing: any with a header, the last ones without */
    bool series;             /* each row is of windows: none may be left out */
    char separator, quote;   /* quote 0: none */
    int columns;
    const MtcTableColumn *column;
} MtcTableForm;

/* ---- text ---- */

/* The text of a file begins after a byte order mark and ends before blank lines. It is read in pieces, of which each thread
 * holds one, and is in memory as a whole only where that is needed: where quotes are, of gzip, and for messages. */
typedef struct MtcTableText {
    char *path;
    int file; /* open, if there is a path */
    size_t file_size;
    struct timespec changed; /* when the file last was, as it was opened */
    size_t start, size;      /* where the text begins in the file, and how long it is */
    const char *bytes;       /* its first `known` bytes */
    size_t known;
    char *memory; /* where they lie */
    int problem;  /* of a piece that could not be read: an errno; -1: the file ends too early */
} MtcTableText;

int mtc_text_open(MtcFault *fault, const char *path, MtcTableText *text);
int mtc_text_digest(MtcFault *fault, MtcTableText *text, MtcDigest *content); /* of the file */
int mtc_text_measure(MtcFault *fault, MtcTableText *text);           /* start and size; of gzip, also the bytes */
int mtc_text_know(MtcFault *fault, MtcTableText *text, size_t size); /* at least so many bytes */
/* A piece of the text, in `buffer` where it is not known. NULL: `problem` is set. */
const char *mtc_text_piece(MtcTableText *text, size_t from, size_t size, char *buffer);
size_t mtc_text_line(MtcTableText *text, size_t at); /* where the line after the one at `at` begins; or the end */
int mtc_text_check(MtcFault *fault, const MtcTableText *text); /* are all pieces read, and of the same file? */
void mtc_text_close(MtcTableText *text);
/* `size` bytes of an open file, read by all processors. Free them. NULL: *why says why not. */
char *mtc_file_bytes(int file, size_t from, size_t size, const char **why);
/* Memory in large pages, of which there are few to fault in: reading is twice as fast. Free it. NULL: there is none. */
void *mtc_large_memory(size_t size);
/* The first byte of a text that is not UTF-8, or is 0; NULL: there is none. */
const char *mtc_text_bad(const char *begin, const char *end);

/* ---- rows ---- */

/* A field: [begin, end) without its quotes; `doubled`: quotes in it are written twice. */
typedef struct MtcSpan {
    const char *begin, *end;
    bool doubled;
} MtcSpan;

typedef enum MtcFlawKind {
    MTC_FLAW_NONE,
    MTC_FLAW_COLUMNS,
    MTC_FLAW_BYTES,
    MTC_FLAW_QUOTE_OPEN,
    MTC_FLAW_QUOTE_CLOSED,
    MTC_FLAW_EMPTY,
    MTC_FLAW_NUMBER,
    MTC_FLAW_LARGE,
    MTC_FLAW_INTEGER,
    MTC_FLAW_RANGE,
    MTC_FLAW_DATE,
    MTC_FLAW_NO_DAY,
    MTC_FLAW_LONG
} MtcFlawKind;

/* What is wrong with a row, and where. */
typedef struct MtcFlaw {
    MtcFlawKind kind;
    MtcSpan span;                 /* the field; else where it is wrong */
    const MtcTableColumn *column; /* NULL: the row itself */
    int found, expected;          /* COLUMNS */
} MtcFlaw;
void mtc_flaw_text(const MtcTableText *text, const MtcFlaw *flaw, char *message, size_t size);
/* What to do where each row is like this one; NULL: the row is the fault. */
const char *mtc_flaw_cure(const MtcFlaw *flaw);
/* A word as messages show it, cut where it is long: in one of four buffers of the thread. */
const char *mtc_shown(const char *word);
/* "sales.tsv:1234:17: ": line, and character in it, of a place in the text. */
void mtc_place_text(const MtcTableText *text, const char *at, char *place, size_t size);

/* Breaks, separators and line ends, are found in so many bytes at a time. */
enum { MTC_SCAN_BYTES = 4096 };

/* Goes through rows: `at` is where the next one begins. */
typedef struct MtcScan {
    const char *at, *end;
    char separator, quote;
    const char *base, *known; /* where breaks were found last */
    int next, count;
    uint16_t stop[MTC_SCAN_BYTES + 64]; /* the breaks, counted from `base`; those before `next` are passed */
} MtcScan;

typedef struct MtcRow {
    const char *begin, *end; /* without the line end */
    int fields;              /* how many the row has; the first `capacity` can be asked for */
    int capacity;
    MtcSpan *field;       /* memory for one more; not set in a plain row, without quotes: */
    const char *base;     /* its field i ends at base + stop[i], in the scan's memory */
    const uint16_t *stop; /* NULL: the row is not plain */
    MtcFlaw flaw;         /* of its quotes */
} MtcRow;

void mtc_scan_begin(MtcScan *scan, const MtcTableForm *form, const char *begin, const char *end);
bool mtc_scan_row(MtcScan *scan, MtcRow *row); /* false: there are no more */
/* A field of the row that was scanned last. */
static inline MtcSpan mtc_row_field(const MtcRow *row, int i) {
    if (!row->stop)
        return row->field[i];
    const char *end = row->base + row->stop[i];
    MtcSpan span = {i ? row->base + row->stop[i - 1] + 1 : row->begin, end < row->end ? end : row->end, false};
    return span;
}
/* Cuts a text from `begin` into chunks of about `size` bytes that end where rows end: (*cut)[0] = begin .. (*cut)[count] = end.
 * A text that is not known as a whole has no quotes. */
int mtc_cut_chunks(const MtcTableForm *form, MtcTableText *text, size_t begin, size_t size, size_t **cut);
/* A field as it is meant, in *buffer where it has doubled quotes: no longer than it is written. */
MtcSpan mtc_span_plain(const MtcSpan *span, char quote, char **buffer, size_t *capacity);

/* ---- cells ---- */

/* Spaces around these do not count. Spans are passed where they are: copies of what was just written are slow. */
bool mtc_is_missing(const MtcSpan *span); /* empty, NA, NaN, null, in capitals or not */
/* A decimal number, correctly rounded: the nearest double. Its own grammar: no hexadecimal, no names. Bytes below `limit`
 * can be read: at least the span's. */
bool mtc_parse_number(const MtcSpan *span, const char *limit, double *value);
bool mtc_parse_float(const MtcSpan *span, const char *limit, float *value); /* that double as the nearest float */
MtcFlawKind mtc_parse_date(const MtcSpan *span, const char *format, int32_t *day); /* days since 1970-01-01 */
static inline void mtc_trim(const char **begin, const char **end) {
    while (*begin < *end && **begin == ' ')
        ++*begin;
    while (*begin < *end && (*end)[-1] == ' ')
        --*end;
}
/* Eight bytes as a number, the first one lowest. */
static inline uint64_t mtc_load_eight(const char *at) {
    uint64_t bytes;
    memcpy(&bytes, at, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    bytes = __builtin_bswap64(bytes);
#endif
    return bytes;
}
/* Of such a day: the day of the year from 1, the month from 1, the day of the week from Monday, 1. */
typedef struct MtcDay {
    int of_year, month, weekday;
} MtcDay;
MtcDay mtc_day(int32_t day);

/* Words and their codes: 0, 1, 2 ... in the order in which they came. All zero: none yet. */
typedef struct MtcWordHead {
    uint64_t at[2]; /* the first 16 bytes, then 0 */
} MtcWordHead;

typedef struct MtcDictionaryWord {
    uint64_t hash;
    MtcWordHead head;
    size_t begin, length; /* in the dictionary's bytes */
} MtcDictionaryWord;

typedef struct MtcDictionary {
    char *bytes; /* the words, each with a 0 after it */
    size_t used, capacity;
    int count, most;
    MtcDictionaryWord *word;
    int32_t *slot; /* codes by hash, -1: free */
    uint64_t slots;
} MtcDictionary;
/* Bytes below `limit` can be read: at least the word's. */
int32_t mtc_dictionary_code(MtcDictionary *dictionary, const char *word, size_t length, const char *limit);
void mtc_dictionary_free(MtcDictionary *dictionary);

/* Words in the order of their bytes. */
typedef struct MtcWordList {
    int count;
    size_t size; /* of bytes: the words, each with a 0 after it */
    char *bytes; /* NULL: those of a cache */
    const char **word;
} MtcWordList;
void mtc_word_list_from(MtcWordList *list, const char *bytes, size_t size, int count);
void mtc_word_list_free(MtcWordList *list);
/* The union of dictionaries; *code[d][c] is where the list has word c of dictionary d. Free each *code[d]. */
void mtc_merge_words(MtcDictionary *const *dictionary, int count, MtcWordList *list, int32_t **code);
int mtc_find_word(const char *const *word, int count, const char *wanted); /* sorted words; -1: not there */

/* ---- tables ---- */

typedef struct MtcTable {
    MtcTableText text;
    int64_t rows;
    uint64_t *at; /* where each row begins in the text */
    int columns;
    void **cell;        /* cell[c]: `rows` numbers of four bytes */
    MtcWordList *words; /* of each column */
    int64_t bad;        /* rows that were wrong and left out */
    uint64_t *bad_at;   /* where each of them begins in the text; NULL: there are none, or the table was kept */
    char first_bad[512];
    const char *first_cure; /* mtc_flaw_cure of it */
    void *memory;           /* `at` and the cells lie in it, */
    void *cache;            /* or in what was kept */
    size_t cache_size;
} MtcTable;

/* skip_bad: rows that are wrong are left out; else the first one is the fault. cache: a table kept beside the file is
 * taken, if it is of these very bytes and columns, and kept if there was none. */
int mtc_table_read(MtcFault *fault, const char *path, const MtcTableForm *form, bool skip_bad, bool cache,
                   MtcTable *table);
void mtc_table_free(MtcTable *table);
/* The place of a row's column, "sales.tsv:1234:17: ", for a message. */
void mtc_table_place(MtcTable *table, const MtcTableForm *form, int64_t row, int column, char *place, size_t size);

/* Kept tables. Neither can fail: what cannot be read or written is not used. */
bool mtc_cache_load(MtcTable *table, const MtcTableForm *form, MtcDigest content, bool skip_bad);
void mtc_cache_store(const MtcTable *table, const MtcTableForm *form, MtcDigest content);

/* The rows of a table as its text has them, those too that were wrong and left out: for whoever writes them again. */
typedef struct MtcTableRows {
    int64_t rows;
    int columns;
    char **name; /* of each column: as the header has it, else as the model has */
    MtcTableForm form;
    char *text;
    uint64_t *at; /* where each row begins in it, and the last one ends */
} MtcTableRows;
/* Of a table that was read in that form, and whose bad rows, if it has any, are known. Free with mtc_table_rows_free. */
int mtc_table_rows(MtcFault *fault, MtcTable *table, const MtcTableForm *form, MtcTableRows **rows);
/* The texts of a row's fields, one for each column; free each. A row that has broken quotes, or more or fewer fields than there are
 * columns, stands whole in the first. */
void mtc_table_row_fields(const MtcTableRows *rows, int64_t row, char **field);
void mtc_table_rows_free(MtcTableRows *rows);

/* Which column of the file each wanted column is, and how many the file has; `begin`: where the rows begin. The first line
 * is known. Free *position. */
int mtc_table_layout(MtcFault *fault, const MtcTableText *text, const MtcTableForm *form, int **position, int *fields,
                     size_t *begin);
/* Parses the rows from `begin`. */
int mtc_table_parse(MtcFault *fault, const MtcTableForm *form, const int *position, int fields, size_t begin,
                    bool skip_bad, MtcTable *table);

#endif
