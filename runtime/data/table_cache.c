/* Parsed tables, kept (cache.h).
 *
 * A kept table is used for the very bytes and columns that it was made of: its header holds digests of both, and of what
 * follows the header, so that a file that was cut or damaged is not used either. Numbers are in this machine's order. */
#include "data/table.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- what decides what is kept ---- */

/* Of everything that decides what a table's cells are. */
static MtcDigest digest_form(const MtcTableForm *form) {
    MtcText text = {NULL, 0, 0};
    mtc_text_add(&text, "%d %d %d %d %d\n", form->header, form->shorter, form->separator, form->quote, form->columns);
    for (int i = 0; i < form->names; i++)
        mtc_text_add(&text, "%s\n", form->name[i]);
    for (int c = 0; c < form->columns; c++) {
        const MtcTableColumn *column = &form->column[c];
        bool date = column->cell == MTC_CELL_DATE;
        mtc_text_add(&text, "\n%s\n%d %d %d %d\n%s", column->name, column->cell, column->optional, column->low,
                     column->high, date ? column->date_format : "");
    }
    MtcDigest digest = mtc_digest(text.at, text.length);
    free(text.at);
    return digest;
}

/* ---- the file: header, then rows, cells of each column, words of each column, each padded to eight bytes ---- */

enum { FORMAT_VERSION = 2 };
static const char magic[8] = {'m', 't', 'c', 't', 'a', 'b', 'l', 'e'};

typedef struct CacheHeader {
    char magic[8];
    uint32_t version, columns;
    MtcDigest content, form, rest;
    uint64_t rest_size;
    int64_t rows, bad;
    char first_bad[512]; /* without the table's path, with which it begins */
} CacheHeader;

static size_t padded(size_t size) {
    return (size + 7) / 8 * 8;
}

/* What lies after the header: written to, or read from. */
typedef struct Cursor {
    char *at;
    size_t left;
} Cursor;

static void *take(Cursor *cursor, size_t size) {
    char *at = cursor->at;
    if (padded(size) > cursor->left)
        return NULL;
    cursor->at += padded(size);
    cursor->left -= padded(size);
    return at;
}

static void put(Cursor *cursor, const void *bytes, size_t size) {
    memcpy(take(cursor, size), bytes, size);
}

/* ---- loading ---- */

static bool take_words(Cursor *cursor, int64_t rows, const int32_t *cell, MtcWordList *list) {
    const uint64_t *counts = (const uint64_t *)take(cursor, 2 * sizeof *counts);
    if (!counts || counts[0] > INT32_MAX || counts[1] > cursor->left)
        return false;
    const char *bytes = (const char *)take(cursor, counts[1]);
    uint64_t ends = 0;
    for (uint64_t i = 0; bytes && i < counts[1]; i++)
        ends += bytes[i] == 0;
    if (!bytes || ends != counts[0] || (counts[1] > 0 && bytes[counts[1] - 1] != 0))
        return false;
    for (int64_t i = 0; i < rows; i++)
        if (cell[i] != MTC_EMPTY && (cell[i] < 0 || (uint64_t)cell[i] >= counts[0]))
            return false;
    mtc_word_list_from(list, bytes, counts[1], (int)counts[0]);
    return true;
}

static bool take_table(MtcTable *table, const MtcTableForm *form, Cursor *cursor) {
    size_t rows = (size_t)table->rows;
    table->columns = form->columns;
    table->cell = (void **)mtc_zeroed((size_t)form->columns * sizeof *table->cell);
    table->words = (MtcWordList *)mtc_zeroed((size_t)form->columns * sizeof *table->words);
    bool good = rows <= cursor->left / 8 && (table->at = (uint64_t *)take(cursor, 8 * rows)) != NULL;
    for (int c = 0; c < form->columns && good; c++)
        good = (table->cell[c] = take(cursor, 4 * rows)) != NULL;
    for (int c = 0; c < form->columns && good; c++)
        if (form->column[c].cell == MTC_CELL_WORD)
            good = take_words(cursor, table->rows, (const int32_t *)table->cell[c], &table->words[c]);
    return good;
}

static bool is_of(const CacheHeader *header, size_t size, const MtcTableForm *form, MtcDigest content, bool skip_bad) {
    MtcDigest wanted = digest_form(form);
    return memcmp(header->magic, magic, sizeof magic) == 0 && header->version == FORMAT_VERSION &&
           memcmp(&header->content, &content, sizeof content) == 0 &&
           memcmp(&header->form, &wanted, sizeof wanted) == 0 && header->columns == (uint32_t)form->columns &&
           header->rest_size == size - sizeof *header && header->rows > 0 && (header->bad == 0 || skip_bad);
}

static bool read_cache(const char *path, MtcTable *table) {
    struct stat status;
    const char *unused;
    int file = mtc_open_file(path, &unused);
    if (file >= 0 && fstat(file, &status) == 0 && (size_t)status.st_size > sizeof(CacheHeader)) {
        table->cache_size = (size_t)status.st_size;
        table->cache = mtc_file_bytes(file, 0, table->cache_size, &unused);
    }
    if (file >= 0)
        close(file);
    return table->cache != NULL;
}

/* Everything but the text. */
static void forget_table(MtcTable *table) {
    MtcTableText text = table->text;
    for (int c = 0; c < table->columns && table->words; c++)
        mtc_word_list_free(&table->words[c]);
    free(table->memory);
    free(table->cell);
    free(table->words);
    free(table->bad_at);
    free(table->cache);
    memset(table, 0, sizeof *table);
    table->text = text;
}

static bool load_from(const char *path, MtcTable *table, const MtcTableForm *form, MtcDigest content, bool skip_bad) {
    if (!read_cache(path, table))
        return false;
    CacheHeader header;
    memcpy(&header, table->cache, sizeof header);
    Cursor cursor = {(char *)table->cache + sizeof header, table->cache_size - sizeof header};
    bool good = is_of(&header, table->cache_size, form, content, skip_bad);
    MtcDigest rest = good ? mtc_digest(cursor.at, cursor.left) : content;
    good = good && memcmp(&rest, &header.rest, sizeof rest) == 0;
    table->rows = header.rows;
    table->bad = header.bad;
    header.first_bad[sizeof header.first_bad - 1] = 0;
    if (good && header.bad)
        snprintf(table->first_bad, sizeof table->first_bad, "%s%s", table->text.path, header.first_bad);
    good = good && take_table(table, form, &cursor);
    if (!good)
        forget_table(table);
    return good;
}

bool mtc_cache_load(MtcTable *table, const MtcTableForm *form, MtcDigest content, bool skip_bad) {
    bool loaded = false;
    for (int place = 0; place < MTC_CACHE_PLACES && !loaded; place++) {
        char *path = mtc_cache_path(table->text.path, place);
        loaded = path && load_from(path, table, form, content, skip_bad);
        free(path);
    }
    return loaded;
}

/* ---- storing ---- */

static size_t rest_size(const MtcTable *table, const MtcTableForm *form) {
    size_t rows = (size_t)table->rows, size = 8 * rows + (size_t)form->columns * padded(4 * rows);
    for (int c = 0; c < form->columns; c++)
        if (form->column[c].cell == MTC_CELL_WORD)
            size += 16 + padded(table->words[c].size);
    return size;
}

static void put_table(Cursor *cursor, const MtcTable *table, const MtcTableForm *form) {
    size_t rows = (size_t)table->rows;
    put(cursor, table->at, 8 * rows);
    for (int c = 0; c < form->columns; c++)
        put(cursor, table->cell[c], 4 * rows);
    for (int c = 0; c < form->columns; c++) {
        const MtcWordList *list = &table->words[c];
        uint64_t counts[2] = {(uint64_t)list->count, list->size};
        if (form->column[c].cell != MTC_CELL_WORD)
            continue;
        put(cursor, counts, sizeof counts);
        if (list->size)
            put(cursor, list->bytes, list->size);
    }
}

void mtc_cache_store(const MtcTable *table, const MtcTableForm *form, MtcDigest content) {
    size_t size = rest_size(table, form), path_length = strlen(table->text.path);
    char *bytes = (char *)mtc_zeroed(size);
    Cursor cursor = {bytes, size};
    CacheHeader header;
    memset(&header, 0, sizeof header);
    put_table(&cursor, table, form);
    memcpy(header.magic, magic, sizeof magic);
    header.version = FORMAT_VERSION;
    header.columns = (uint32_t)form->columns;
    header.content = content;
    header.form = digest_form(form);
    header.rest = mtc_digest(bytes, size);
    header.rest_size = size;
    header.rows = table->rows;
    header.bad = table->bad;
    if (table->bad && strlen(table->first_bad) > path_length)
        strcpy(header.first_bad, table->first_bad + path_length);
    mtc_cache_keep(table->text.path, &header, sizeof header, bytes, size);
    free(bytes);
}

/* ---- the end of a table ---- */

void mtc_table_free(MtcTable *table) {
    forget_table(table);
    mtc_text_close(&table->text);
}
