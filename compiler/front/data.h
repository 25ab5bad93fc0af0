/* What the data block can say: where examples come from, and which columns of a table a field is made of.
 *
 * data_calls.c lists the functions and checks a call by its parameters, each argument by the parameter's name;
 * check_data.c checks the statements; data.c turns them into tables of the module. */
#ifndef MTC_DATA_H
#define MTC_DATA_H

#include "front/check.h"
#include "front/lower.h"

/* `train = tsv("sales.tsv")`: a function that examples are read with. */
typedef struct SourceDef {
    const char *name, *parameters;
    const char *format;    /* as Origin.format */
    bool file_per_field;   /* else one file, or none */
    bool columns;          /* rows of a table whose columns have names: fields may say which they are made of */
    bool images;           /* one field is an image, and one at most a class */
    bool by_class;         /* its examples lie one class behind the other */
    bool windows;          /* the one field is windows of a row of tokens; others have windows of rows, with a stride */
    char separator, quote; /* where the call does not say */
} SourceDef;

/* `day : f32[1] = day_of_year("date")`: a function of columns. */
typedef struct FieldSourceDef {
    const char *name, *parameters;
    Part part;
    int values; /* parts of a date are 1 to `values`; else 0 */
} FieldSourceDef;

/* NULL: there is no such function. */
const SourceDef *source_find(const char *name);
const FieldSourceDef *field_source_find(const char *name);

/* `train = csv("load.csv", stride = 1)`: examples are windows of rows. The first such set of the block, or NULL; of checked calls. */
const Stmt *series_of(const Block *data);

/* Origin.format of the call, which was checked: text has one for each level. */
const char *source_format(const Expr *call);

/* What the call calls, its arguments bound and each checked by itself; NULL after reporting. */
const SourceDef *check_source_call(Scope *scope, Expr *call);
const FieldSourceDef *check_field_source_call(Scope *scope, Expr *call);

/* The statement `name = ...` of a data block, or NULL; fields are none. */
const Stmt *data_setting(const Block *data, const char *name);
/* The numbers of `80 / 10 / 10`. */
ExprList split_parts(Arena *arena, Expr *split);

void check_data(Diag *diag, Ast *ast, const Block *data);
/* Fills the module's tables of fields, origins and splits. */
void add_data(Lowering *l, Frame *frame);

#endif
