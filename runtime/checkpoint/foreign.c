/* What files of other programs hold beside weights: what no model needs, and what this one has no place for. */
#include "base/ending.h"
#include "checkpoint/checkpoint.h"
#include "session/weights.h"

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

/* A state has the name of its weight before its own: "fc.weight.momentum". */
static bool is_state_of_weight(const MtcModel *model, const char *name) {
    const char *dot = strrchr(name, '.');
    for (int i = 0; i < model->tensors && dot; i++)
        if (model->tensor[i].role == MTC_WEIGHT && strlen(model->tensor[i].name) == (size_t)(dot - name) &&
            strncmp(model->tensor[i].name, name, (size_t)(dot - name)) == 0)
            return true;
    return false;
}

const char *mtc_unexpected_text(const MtcModel *model, const char *name, MtcTake take) {
    const MtcTensor *tensor = mtc_find_tensor(model, name);
    if (take == MTC_TAKE_ALL)
        return "is nothing that this model has";
    if (tensor && tensor->role == MTC_STATE)
        return "is a state of the training, where weights alone are taken";
    return is_state_of_weight(model, name) ? "is no weight of this model, but a state of one, by its name"
                                           : "is no weight of this model";
}
