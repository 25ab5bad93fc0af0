/* The table of mtc's flags: what options.c parses, help.c prints. */
#ifndef MTC_FLAGS_H
#define MTC_FLAGS_H

#include "options.h"

#include <stddef.h>

typedef enum FlagKind {
    FLAG_SWITCH, /* bool */
    FLAG_STRING, /* const char * */
    FLAG_NUMBER, /* int, from 1 to `bound` */
    FLAG_CHOICE, /* int: `bound` plus the position in `argument` */
    FLAG_SETTING /* NAME=VALUE, repeatable */
} FlagKind;

typedef struct Flag {
    const char *name;
    const char *argument; /* NULL, what it stands for, or the choices: "cuda|cpu" */
    const char *group, *help;
    size_t field;
    FlagKind kind;
    int bound;
    char letter;
} Flag;

/* Of `group`. */
extern const char OUTPUT[], TARGET_FLAGS[], MODEL[], INFORMATION[], FORMATTING[], PLOTTING[], TOKENS[], WEIGHTS[],
    IMPORTING[];

enum { FLAGS = 37 };
extern const Flag flags[];

/* mtc gradcheck has it. */
bool flag_is_of_gradcheck(const Flag *flag);

/* mtc import has it: axes have sizes as params have values. */
bool flag_is_of_import(const Flag *flag);

/* mtc explain has it: what decides the program. */
bool flag_is_of_explain(const Flag *flag);

#endif
