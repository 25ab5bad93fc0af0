/* `mtc weights`: weights that PyTorch has saved, as a file that programs load. */
#ifndef MTC_WEIGHTS_COMMAND_H
#define MTC_WEIGHTS_COMMAND_H

#include "support/diag.h"

typedef struct WeightsRequest {
    const char *input;  /* of torch.save: .pt, .pth */
    const char *key;    /* the member of a checkpoint that holds them; NULL: found */
    const char *rename; /* path of a file of rules; NULL: names stay */
    const char *output; /* safetensors */
} WeightsRequest;

/* 0, or the code to exit with after a report. Nothing of the input is run. */
int weights_convert(Diag *diag, const WeightsRequest *request);

#endif
