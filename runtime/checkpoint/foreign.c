/* What files of other programs hold beside weights, and no model needs. */
#include "base/ending.h"
#include "checkpoint/checkpoint.h"

#include <string.h>

static bool is_whole_number(const MtcBlob *blob) {
    return strcmp(blob->dtype, "I64") == 0 && mtc_elements(blob->rank, blob->dim) == 1;
}

/* [1, 1, n, n] */
static bool is_square(const MtcBlob *blob) {
    return blob->rank == 4 && blob->dim[0] == 1 && blob->dim[1] == 1 && blob->dim[2] == blob->dim[3];
}

static const struct {
    const char *ending; /* of the tensor's name */
    bool (*is_so)(const MtcBlob *blob);
    const char *what; /* as notes call it */
} needless[] = {
    /* PyTorch counts the batches that a running mean has seen. */
    {".num_batches_tracked", is_whole_number, "num_batches_tracked"},
    /* Published files of GPT-2 hold which positions see which, in every layer. */
    {".attn.bias", is_square, "causal masks"},
};

const char *mtc_needless(const MtcBlob *blob) {
    for (size_t i = 0; i < sizeof needless / sizeof *needless; i++)
        if (mtc_ends_with(blob->name, needless[i].ending) && needless[i].is_so(blob))
            return needless[i].what;
    return NULL;
}
