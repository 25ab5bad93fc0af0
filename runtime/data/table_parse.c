/* Text into cells: chunks parsed by all processors, then joined. */
#include "base/parallel.h"
#include "data/table.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t CHUNK_BYTES = 1 << 20, LONGEST_WORD = 4096;

typedef struct Chunk {
    size_t from, to;           /* in the text */
    const char *begin, *limit; /* its bytes, while it is parsed */
    bool good_text;            /* UTF-8 throughout, and so in each row */
    int64_t rows, capacity;
    uint64_t *at;
    void **cell;
    MtcDictionary *dictionary; /* one per wanted column, of words in use */
    int64_t bad, bad_capacity;
    uint64_t *bad_at;
    MtcFlaw first_bad;
    size_t flaw_from, flaw_to; /* its span in the text */
    char *plain;               /* a field without doubled quotes */
    size_t plain_size;
    int64_t first_row; /* in the table */
} Chunk;

typedef struct Parse {
    const MtcTableForm *form;
    const int *position;
    int fields;
    MtcTableText *text;
    bool skip_bad;
    int chunks;
    int64_t next;   /* the chunk that is parsed next */
    size_t largest; /* of chunks */
    bool quotes;    /* there are some in a text that is not known */
    Chunk *chunk;
    MtcTable *table;
    int32_t ***code; /* code[column][chunk]: where the table's list has the words of a chunk's dictionary */
} Parse;

/* ---- a cell ---- */

static MtcFlawKind parse_number(const Chunk *chunk, const MtcSpan *span, float *cell) {
    if (!mtc_parse_float(span, chunk->limit, cell)) {
        *cell = NAN;
        return mtc_is_missing(span) ? MTC_FLAW_EMPTY : MTC_FLAW_NUMBER;
    }
    return fabsf(*cell) <= FLT_MAX ? MTC_FLAW_NONE : MTC_FLAW_LARGE;
}

static MtcFlawKind parse_integer(const Chunk *chunk, const MtcTableColumn *column, const MtcSpan *span, int32_t *cell) {
    double value;
    *cell = MTC_EMPTY;
    if (!mtc_parse_number(span, chunk->limit, &value))
        return mtc_is_missing(span) ? MTC_FLAW_EMPTY : MTC_FLAW_INTEGER;
    if (value != floor(value))
        return MTC_FLAW_INTEGER;
    if (value < column->low || value > column->high)
        return MTC_FLAW_RANGE;
    *cell = (int32_t)value;
    return MTC_FLAW_NONE;
}

static MtcFlawKind parse_date(const MtcTableColumn *column, const MtcSpan *span, int32_t *cell) {
    MtcFlawKind flaw = mtc_parse_date(span, column->date_format, cell);
    if (flaw == MTC_FLAW_NONE)
        return flaw;
    *cell = MTC_EMPTY;
    return mtc_is_missing(span) ? MTC_FLAW_EMPTY : flaw;
}

static MtcFlawKind parse_word(const Parse *parse, Chunk *chunk, int column, const MtcSpan *span, int32_t *cell) {
    MtcSpan plain = {span->begin, span->end, false};
    if (span->doubled)
        plain = mtc_span_plain(span, parse->form->quote, &chunk->plain, &chunk->plain_size);
    size_t length = (size_t)(plain.end - plain.begin);
    *cell = MTC_EMPTY;
    if (length == 0)
        return MTC_FLAW_EMPTY;
    if (length > LONGEST_WORD)
        return MTC_FLAW_LONG;
    *cell =
        mtc_dictionary_code(&chunk->dictionary[column], plain.begin, length, span->doubled ? plain.end : chunk->limit);
    return MTC_FLAW_NONE;
}

static MtcFlawKind parse_cell(const Parse *parse, Chunk *chunk, int index, const MtcSpan *span) {
    const MtcTableColumn *column = &parse->form->column[index];
    int32_t *cell = (int32_t *)chunk->cell[index] + chunk->rows;
    MtcFlawKind flaw;
    switch (column->cell) {
    case MTC_CELL_NUMBER: flaw = parse_number(chunk, span, (float *)chunk->cell[index] + chunk->rows); break;
    case MTC_CELL_INTEGER: flaw = parse_integer(chunk, column, span, cell); break;
    case MTC_CELL_DATE: flaw = parse_date(column, span, cell); break;
    default: flaw = parse_word(parse, chunk, index, span, cell); break;
    }
    return flaw == MTC_FLAW_EMPTY && column->optional ? MTC_FLAW_NONE : flaw;
}

/* ---- a chunk ---- */

static bool check_row(const Parse *parse, const Chunk *chunk, MtcRow *row) {
    const char *bad = chunk->good_text ? NULL : mtc_text_bad(row->begin, row->end);
    MtcFlaw *flaw = &row->flaw;
    flaw->column = NULL;
    if (bad) {
        flaw->kind = MTC_FLAW_BYTES;
        flaw->span.begin = flaw->span.end = bad;
    } else if (flaw->kind == MTC_FLAW_NONE && row->fields != parse->fields) {
        flaw->kind = MTC_FLAW_COLUMNS;
        flaw->span.begin = flaw->span.end = row->begin;
        flaw->found = row->fields;
        flaw->expected = parse->fields;
    }
    return flaw->kind == MTC_FLAW_NONE;
}

static bool parse_row(const Parse *parse, Chunk *chunk, MtcRow *row) {
    if (!check_row(parse, chunk, row))
        return false;
    for (int c = 0; c < parse->form->columns; c++) {
        MtcSpan span = mtc_row_field(row, parse->position[c]);
        row->flaw.kind = parse_cell(parse, chunk, c, &span);
        if (row->flaw.kind != MTC_FLAW_NONE) {
            row->flaw.span = span;
            row->flaw.column = &parse->form->column[c];
            return false;
        }
    }
    return true;
}

/* Memory for a row at `at`: for some at first, then for as many as the chunk seems to have. */
static void reserve_row(const Parse *parse, Chunk *chunk, const char *at) {
    if (chunk->rows < chunk->capacity)
        return;
    double part = (double)(at - chunk->begin) / (double)(chunk->limit - chunk->begin);
    double times = part < 1.1 / 16 ? 16 : part > 1.1 / 2 ? 2 : 1.1 / part;
    chunk->capacity = chunk->rows ? (int64_t)(times * (double)chunk->rows) : 1024;
    chunk->at = (uint64_t *)mtc_memory(chunk->at, (size_t)chunk->capacity * sizeof *chunk->at);
    for (int c = 0; c < parse->form->columns; c++)
        chunk->cell[c] = mtc_memory(chunk->cell[c], (size_t)chunk->capacity * 4);
}

static void add_bad(Chunk *chunk, uint64_t at, const MtcFlaw *flaw) {
    if (chunk->bad == 0) {
        chunk->first_bad = *flaw;
        chunk->flaw_from = chunk->from + (size_t)(flaw->span.begin - chunk->begin);
        chunk->flaw_to = chunk->from + (size_t)(flaw->span.end - chunk->begin);
    }
    if (chunk->bad == chunk->bad_capacity) {
        chunk->bad_capacity = chunk->bad_capacity ? 2 * chunk->bad_capacity : 16;
        chunk->bad_at = (uint64_t *)mtc_memory(chunk->bad_at, (size_t)chunk->bad_capacity * sizeof *chunk->bad_at);
    }
    chunk->bad_at[chunk->bad++] = at;
}

static void parse_chunk(const Parse *parse, Chunk *chunk, MtcRow *row) {
    size_t columns = (size_t)parse->form->columns;
    MtcScan scan;
    chunk->cell = (void **)mtc_zeroed(columns * sizeof *chunk->cell);
    chunk->dictionary = (MtcDictionary *)mtc_zeroed(columns * sizeof *chunk->dictionary);
    chunk->good_text = mtc_text_bad(chunk->begin, chunk->limit) == NULL;
    mtc_scan_begin(&scan, parse->form, chunk->begin, chunk->limit);
    while ((parse->skip_bad || chunk->bad == 0) && mtc_scan_row(&scan, row)) {
        reserve_row(parse, chunk, row->begin);
        chunk->at[chunk->rows] = chunk->from + (size_t)(row->begin - chunk->begin);
        if (parse_row(parse, chunk, row))
            chunk->rows++;
        else
            add_bad(chunk, chunk->at[chunk->rows], &row->flaw);
    }
}

/* The bytes of a chunk. NULL: they cannot be read, or they have quotes, and so the chunk may not end where a row does. */
static const char *chunk_text(Parse *parse, const Chunk *chunk, char *buffer) {
    const char *bytes = mtc_text_piece(parse->text, chunk->from, chunk->to - chunk->from, buffer);
    bool unknown = bytes == buffer && parse->form->quote;
    if (!bytes || !unknown || !memchr(bytes, parse->form->quote, chunk->to - chunk->from))
        return bytes;
    __atomic_store_n(&parse->quotes, true, __ATOMIC_RELAXED);
    return NULL;
}

/* A thread's memory for a piece of the text is used for each of its chunks, and so stays in the processor's cache. */
static void parse_chunks(void *context, int64_t worker) {
    Parse *parse = (Parse *)context;
    char *buffer = parse->text->known == parse->text->size ? NULL : (char *)mtc_memory(NULL, parse->largest);
    MtcRow row;
    int64_t task;
    (void)worker;
    memset(&row, 0, sizeof row);
    row.capacity = parse->fields;
    row.field = (MtcSpan *)mtc_memory(NULL, (size_t)(parse->fields + 1) * sizeof *row.field);
    while ((task = __atomic_fetch_add(&parse->next, 1, __ATOMIC_RELAXED)) < parse->chunks) {
        Chunk *chunk = &parse->chunk[task];
        chunk->begin = __atomic_load_n(&parse->quotes, __ATOMIC_RELAXED) ? NULL : chunk_text(parse, chunk, buffer);
        if (!chunk->begin)
            break;
        chunk->limit = chunk->begin + (chunk->to - chunk->from);
        parse_chunk(parse, chunk, &row);
    }
    free(row.field);
    free(buffer);
}

static void free_chunk(const Parse *parse, Chunk *chunk) {
    for (int c = 0; c < parse->form->columns && chunk->cell; c++) {
        free(chunk->cell[c]);
        mtc_dictionary_free(&chunk->dictionary[c]);
    }
    free(chunk->cell);
    free(chunk->dictionary);
    free(chunk->at);
    free(chunk->bad_at);
    free(chunk->plain);
}

/* ---- the table ---- */

static void copy_chunk(void *context, int64_t task) {
    const Parse *parse = (const Parse *)context;
    const Chunk *chunk = &parse->chunk[task];
    size_t first = (size_t)chunk->first_row, rows = (size_t)chunk->rows;
    if (rows == 0)
        return;
    memcpy(parse->table->at + first, chunk->at, rows * sizeof *chunk->at);
    for (int c = 0; c < parse->form->columns; c++) {
        const int32_t *from = (const int32_t *)chunk->cell[c], *code = parse->code[c] ? parse->code[c][task] : NULL;
        int32_t *to = (int32_t *)parse->table->cell[c] + first;
        if (!code)
            memcpy(to, from, 4 * rows);
        for (size_t i = 0; i < rows && code; i++)
            to[i] = from[i] == MTC_EMPTY ? MTC_EMPTY : code[from[i]];
    }
}

static void merge_column(void *context, int64_t column) {
    const Parse *parse = (const Parse *)context;
    size_t chunks = (size_t)parse->chunks;
    if (parse->form->column[column].cell != MTC_CELL_WORD)
        return;
    MtcDictionary **dictionary = (MtcDictionary **)mtc_memory(NULL, chunks * sizeof *dictionary);
    for (int k = 0; k < parse->chunks; k++)
        dictionary[k] = &parse->chunk[k].dictionary[column];
    parse->code[column] = (int32_t **)mtc_memory(NULL, chunks * sizeof **parse->code);
    mtc_merge_words(dictionary, parse->chunks, &parse->table->words[column], parse->code[column]);
    free(dictionary);
}

static void free_codes(Parse *parse) {
    for (int c = 0; c < parse->form->columns; c++) {
        for (int k = 0; k < parse->chunks && parse->code[c]; k++)
            free(parse->code[c][k]);
        free(parse->code[c]);
    }
    free(parse->code);
}

static void join_bad(Parse *parse) {
    MtcTable *table = parse->table;
    uint64_t *to = table->bad ? (uint64_t *)mtc_memory(NULL, (size_t)table->bad * sizeof *to) : NULL;
    table->bad_at = to;
    for (int k = 0; k < parse->chunks; k++)
        if (parse->chunk[k].bad) {
            memcpy(to, parse->chunk[k].bad_at, (size_t)parse->chunk[k].bad * sizeof *to);
            to += parse->chunk[k].bad;
        }
}

static void reserve_table(MtcTable *table, size_t columns) {
    size_t rows = (size_t)table->rows, size = rows * (sizeof *table->at + 4 * columns);
    table->memory = mtc_large_memory(size);
    if (!table->memory)
        table->memory = mtc_memory(NULL, size);
    table->at = (uint64_t *)table->memory;
    for (size_t c = 0; c < columns; c++)
        table->cell[c] = (char *)(table->at + rows) + 4 * rows * c;
}

static void join_chunks(Parse *parse) {
    MtcTable *table = parse->table;
    size_t columns = (size_t)parse->form->columns;
    parse->code = (int32_t ***)mtc_zeroed(columns * sizeof *parse->code);
    reserve_table(table, columns);
    mtc_parallel(parse->form->columns, merge_column, parse);
    mtc_parallel(parse->chunks, copy_chunk, parse);
    join_bad(parse);
    free_codes(parse);
}

/* The first bad row of a chunk in words. */
static int explain(MtcFault *fault, Parse *parse, Chunk *chunk) {
    MtcTableText *text = parse->text;
    int code = mtc_text_know(fault, text, chunk->flaw_to < text->size ? chunk->flaw_to + 1 : text->size);
    if (code)
        return code;
    chunk->first_bad.span.begin = text->bytes + chunk->flaw_from;
    chunk->first_bad.span.end = text->bytes + chunk->flaw_to;
    mtc_flaw_text(text, &chunk->first_bad, parse->table->first_bad, sizeof parse->table->first_bad);
    parse->table->first_cure = mtc_flaw_cure(&chunk->first_bad);
    return 0;
}

/* Counts rows and bad ones; the first bad one in the order of the file is the fault, unless such rows are left out. */
static int count_rows(MtcFault *fault, Parse *parse) {
    MtcTable *table = parse->table;
    int code = mtc_text_check(fault, parse->text);
    for (int k = 0; k < parse->chunks && !code; k++) {
        Chunk *chunk = &parse->chunk[k];
        chunk->first_row = table->rows;
        table->rows += chunk->rows;
        if (chunk->bad && table->bad == 0)
            code = explain(fault, parse, chunk);
        table->bad += chunk->bad;
    }
    if (code)
        return code;
    if (table->bad && !parse->skip_bad) {
        mtc_fail(fault, MTC_BAD_DATA, "%s", table->first_bad);
        if (table->first_cure)
            mtc_note(fault, "%s", table->first_cure);
        if (!parse->form->series)
            mtc_note(fault, "--bad-rows skip leaves out rows that are wrong");
        return fault->code;
    }
    if (table->rows == 0 && table->bad)
        return mtc_fail(fault, MTC_BAD_DATA, "%s: all %lld rows are bad; the first: %s", parse->text->path,
                        (long long)table->bad, table->first_bad);
    return 0;
}

/* Tests make chunks small, so that rows lie across their borders. */
static size_t chunk_bytes(void) {
    const char *text = getenv("MTC_TABLE_CHUNK");
    long long size = text ? strtoll(text, NULL, 10) : 0;
    return size > 0 ? (size_t)size : CHUNK_BYTES;
}

static void free_chunks(Parse *parse) {
    for (int k = 0; k < parse->chunks; k++)
        free_chunk(parse, &parse->chunk[k]);
    free(parse->chunk);
}

static void parse_from(Parse *parse, size_t begin) {
    size_t *cut;
    int64_t processors = mtc_processors();
    parse->next = 0;
    parse->quotes = false;
    parse->chunks = mtc_cut_chunks(parse->form, parse->text, begin, chunk_bytes(), &cut);
    parse->chunk = (Chunk *)mtc_zeroed((size_t)parse->chunks * sizeof(Chunk));
    for (int k = 0; k < parse->chunks; k++) {
        size_t size = cut[k + 1] - cut[k];
        parse->chunk[k].from = cut[k];
        parse->chunk[k].to = cut[k + 1];
        parse->largest = size > parse->largest ? size : parse->largest;
    }
    free(cut);
    mtc_parallel(processors < parse->chunks ? processors : parse->chunks, parse_chunks, parse);
}

int mtc_table_parse(MtcFault *fault, const MtcTableForm *form, const int *position, int fields, size_t begin,
                    bool skip_bad, MtcTable *table) {
    Parse parse = {form, position, fields, &table->text, skip_bad, 0, 0, 0, false, NULL, table, NULL};
    size_t columns = (size_t)form->columns;
    parse_from(&parse, begin);
    if (parse.quotes) {
        free_chunks(&parse);
        int code = mtc_text_know(fault, &table->text, table->text.size);
        if (code)
            return code;
        parse_from(&parse, begin);
    }
    table->columns = form->columns;
    table->cell = (void **)mtc_zeroed(columns * sizeof *table->cell);
    table->words = (MtcWordList *)mtc_zeroed(columns * sizeof *table->words);
    int code = count_rows(fault, &parse);
    if (!code)
        join_chunks(&parse);
    free_chunks(&parse);
    return code;
}
