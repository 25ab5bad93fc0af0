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

enum { FLAGS = 40 };
extern const Flag flags[];

/* A first word that says what is to be done instead of making a program. */
typedef enum CommandId {
    COMMAND_PLOT,
    COMMAND_GRADCHECK,
    COMMAND_TOKENS,
    COMMAND_WEIGHTS,
    COMMAND_EXPLAIN,
    COMMAND_IMPORT,
    COMMANDS
} CommandId;

typedef struct Command {
    const char *name;
    size_t field;                    /* bool */
    const char *group;               /* of the flags that are its alone; NULL: it has none */
    bool (*takes)(const Flag *flag); /* NULL: those of its group, and two that are everybody's */
    const char *otherwise;           /* what is said of a flag that it has not; NULL: where its flags are listed */
} Command;

extern const Command commands[COMMANDS];

/* NULL: a program is made, or something is told. */
const Command *command_of(const Options *options);
bool command_takes(const Command *command, const Flag *flag);
/* gradcheck has it: the others go to the program. */
bool flag_is_of_gradcheck(const Flag *flag);

#endif
