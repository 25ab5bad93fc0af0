/* Tables with rows that repeat: where a row, or several of them, comes again and again with other numbers that grow evenly, as the
 * layers of `repeat` do, it is written once, as a macro of what differs.
 *
 *     #define ROWS(i) {.name = "h." #i ".weight", .offset = 256 + i * 4096}
 *         ROWS(0), ROWS(1), ROWS(2),
 *     #undef ROWS
 */
#ifndef MTC_TABLE_H
#define MTC_TABLE_H

#include "emit/kernel/row.h"

typedef enum PieceKind {
    PIECE_TEXT,   /* the same wherever the row comes again */
    PIECE_NUMBER, /* may grow evenly */
    PIECE_NAME,   /* of a string: text without quotes */
    PIECE_COUNT,  /* a number in a string */
    PIECE_NEXT    /* between two members: a line may end here */
} PieceKind;

typedef struct Piece {
    PieceKind kind;
    const char *text;
    int64_t number;
} Piece;

typedef struct TableRow {
    VEC(Piece) pieces;
    const char *about; /* behind it, where it stands by itself; NULL: nothing */
    const char *macro; /* that is given its members; NULL: they are in braces */
    int lines;         /* that it takes by itself */
    bool narrow;       /* its members fit into lines of a macro */
    uint64_t shape;    /* a hash of it without its numbers */
} TableRow;

/* What rows that come again are written as. */
typedef enum RowsAgain { AGAIN_MACRO, AGAIN_RUN, AGAIN_LOOP } RowsAgain;

typedef struct RowTable {
    Arena *arena;
    VEC(TableRow) rows;
    RowsAgain again;
} RowTable;

void table_row(RowTable *table, const char *about); /* begins one */
/* Members of the last row; `member` is NULL where they are known by their order. */
void table_text(RowTable *table, const char *member, const char *text);
void table_number(RowTable *table, const char *member, int64_t number);
void table_name(RowTable *table, const char *member, const char *name); /* as a string */

/* Rows from `first` on: `period` of them, `times` times. The numbers of the k-th time are those of the first plus k times the
 * difference of the second. */
typedef struct Fold {
    int first, period, times;
} Fold;
typedef VEC(Fold) Folds;

/* How rows that are code, of `TableRow.lines` each, are written with as few lines as can be: those that come again as a loop over i.
 * A row that stands by itself is a fold of one time. */
Folds table_loops(RowTable *table);
/* Which row that is, in all times; and what number `number` of a row of the fold's first time is: "7", "7 + 2 * i". */
const char *fold_row(Arena *arena, const Fold *fold, int row);
const char *table_growth(const RowTable *table, const Fold *fold, int row, int number);

/* "head = { ... };" */
void write_table(RowTable *table, const char *head, Writer *out);

/* "static memory type name[rows][columns] = { ... };" of numbers alone; where some go on evenly, a Places of cuda/launches.cuh,
 * which is made of runs: {row, every, times, {where it begins}, {its steps}}. Returns how the rows are called: "name", "name.at". */
typedef struct RunTable {
    const char *memory, *type, *name;
    int columns;
} RunTable;
const char *write_runs(RowTable *table, const RunTable *as, Writer *out);

#endif
