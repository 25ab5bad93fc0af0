/* Literals and rows of the tables in a generated program. */
#ifndef MTC_ROW_H
#define MTC_ROW_H

#include "emit/kernel/emitter.h"
#include "emit/text/foreign.h"

const char *number(Arena *arena, double value);
const char *integer(Arena *arena, int64_t value);
/* "{28, 28}": the axes from `first` on; "{0}" when there are none. */
const char *dims(Arena *arena, const Type *type, int first);
/* "MTC_F32"; `computed`: of a value of a step, which --real f64 makes MTC_F64. */
const char *runtime_type(const Emitter *e, DType dtype, bool computed);
/* ".member = value" */
const char *is(Arena *arena, const char *member, const char *value);

/* A row of a table, on one line or with an item a line. */
void write_row(Writer *out, const char *const *items, int count);
#define WRITE_ROW(out, ...)                                                                                            \
    write_row(out, (const char *[]){__VA_ARGS__}, sizeof((const char *[]){__VA_ARGS__}) / sizeof(const char *))

/* "a, b, c" in lines that fit, the first after `head`, further ones below its end: as clang-format breaks a list. */
void write_list(Writer *out, const char *head, const char *const *items, int count, const char *tail);

/* A row, and something about it. */
typedef struct Note {
    const char *row, *about;
} Note;
typedef VEC(Note) Notes;
/* "head = { ... };" with a row a line: clang-format would put several short ones into a line, if it were not for comments
 * behind them. */
void write_notes(Writer *out, const char *head, const Notes *notes);

#endif
