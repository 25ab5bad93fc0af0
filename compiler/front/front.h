/* The front end: from .mt text to the graphs of a module.
 *
 *   text -> lexer.l -> parser.y -> Ast -> check.c (names, blocks, calls) -> lower.c (values, shapes) -> Module
 *
 * Each stage reports every fault that it finds and is run only after the one before found none. */
#ifndef MTC_FRONT_H
#define MTC_FRONT_H

#include "op/optimizer.h"
#include "support/output.h"

typedef struct Ast Ast;

/* `--set name=value`: replaces the value of a param. */
typedef struct ParamSetting {
    const char *name, *value;
} ParamSetting;

typedef struct FrontOptions {
    const ParamSetting *settings;
    int setting_count;
    const Precision *precision; /* instead of the text's; or NULL */
    const bool *recompute;      /* likewise */
    int batch;                  /* likewise; or 0 */
    int shards;                 /* of a batch; 0: it is computed whole */
    bool parts_states;          /* as Module has it */
} FrontOptions;

enum { MAX_BATCH = 1 << 24, MAX_SHARDS = 1 << 12 };

/* A flag that every generated program has; a param may not take its name. */
typedef struct ProgramFlag {
    const char *name, *argument; /* "epochs", "N"; NULL: it takes no value */
} ProgramFlag;
const ProgramFlag *program_flag(const char *name); /* without dashes; NULL: there is none */

typedef struct Lowered {
    Module *module;    /* both graphs: forward, reports, and (eval) the output */
    Node *train_loss;  /* f32 scalar of module->train: mean of the loss over the batch */
    Training training; /* its numbers are nodes of module->train */
    Node *prediction,
        *target; /* of module->eval: the output, and what the loss compares it with; NULL: the loss does not tell */
} Lowered;

/* Reads the file and what it includes. NULL when it cannot be read or has syntax errors (all reported). */
Ast *front_parse(Diag *diag, Arena *arena, const char *path);

/* Adds the files that it includes, and those of its data where they may lie: some of these paths name none. */
void front_inputs(const Ast *ast, InputFiles *inputs);

/* Blocks, names, calls. False when something is wrong. */
bool front_check(Diag *diag, Ast *ast);

/* Requires front_check. False when something is wrong. */
bool front_lower(Diag *diag, Ast *ast, const FrontOptions *options, Lowered *lowered);

/* `--emit=ast`. */
void front_print(const Ast *ast, Text *out);
/* The same without places and comments: equal for files that say the same. */
void front_print_plain(const Ast *ast, Text *out);

/* The file in canonical layout, comments kept; false when it cannot be parsed. */
bool front_format(Diag *diag, Arena *arena, const char *path, Text *out);

#endif
