/* `mtc import`: an ONNX file as a model, NAME.mt, and its weights beside it, NAME.safetensors. */
#ifndef MTC_IMPORT_COMMAND_H
#define MTC_IMPORT_COMMAND_H

#include "support/diag.h"

/* An axis of the inputs that has a name instead of a size: "sequence" is 128. */
typedef struct AxisSize {
    const char *name, *value;
} AxisSize;

typedef struct ImportRequest {
    const char *input;
    const char *output; /* of the text; the weights' path has .safetensors in place of .mt */
    const AxisSize *sizes;
    int size_count;
    bool force; /* files that are there are replaced */
    bool flat;  /* blocks that repeat are written out */
} ImportRequest;

/* "a/NAME.mt" of "b/NAME.onnx" is "NAME.mt": in the folder that mtc runs in. */
const char *import_output(Arena *arena, const char *input);
/* 0, or the code to exit with after a report. Nothing is written after a fault. */
int import_onnx(Diag *diag, const ImportRequest *request);

#endif
