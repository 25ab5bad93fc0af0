/* What may be overwritten. A name after -o can be mistyped: a file that is there already is replaced only by another of its
 * kind, or where it has no content; and never is one that the work reads. */
#ifndef MTC_OUTPUT_H
#define MTC_OUTPUT_H

#include "support/diag.h"

typedef enum OutputKind {
    OUTPUT_PROGRAM,
    OUTPUT_TEXT,
    OUTPUT_SVG,
    OUTPUT_PNG,
    OUTPUT_TOKENS,
    OUTPUT_WEIGHTS,
    OUTPUT_NETWORK
} OutputKind;

typedef struct InputFile {
    const char *path;
    const char *why; /* it may not be written: "it is the input" */
} InputFile;
typedef VEC(InputFile) InputFiles;

/* May `path` be written, and can it? False after a report: to be asked before long work, and before anything is written. */
bool output_allowed(Diag *diag, const char *path, OutputKind kind, const InputFiles *inputs);

#endif
