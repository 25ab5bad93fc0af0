/* Weights as integers of 8 bits, with a scale for each output (session/scales.h), of a file that has floats; and what a file of
 * integers must be. */
#include "checkpoint/checkpoint.h"
#include "session/finite.h"
#include "session/scales.h"
#include "session/weights.h"

#include <stdlib.h>
#include <string.h>

static MtcBlob *find_blob(const MtcCheckpoint *checkpoint, const char *name) {
    for (int i = 0; i < checkpoint->archive.count; i++)
        if (strcmp(checkpoint->archive.blob[i].name, name) == 0)
            return &checkpoint->archive.blob[i];
    return NULL;
}

static bool is_of_integers(const MtcModel *model, const MtcTensor *tensor) {
    return mtc_quantized(model, tensor) != NULL;
}

/* ---- floats to integers ---- */

/* As the model would have it of floats. */
static MtcTensor of_floats(const MtcTensor *tensor) {
    MtcTensor floats = *tensor;
    floats.type = MTC_F32;
    return floats;
}

/* Averages of the weights, "h.weight.ema", are states behind them. */
static void take_averages(MtcCheckpoint *checkpoint, const MtcModel *model) {
    for (int i = 0; i < model->tensors && checkpoint->ours; i++) {
        MtcText name = {NULL, 0, 0};
        mtc_text_add(&name, "%s.ema", model->tensor[i].name);
        MtcBlob *blob = find_blob(checkpoint, model->tensor[i].name), *average = find_blob(checkpoint, name.at);
        if (blob && average && average - checkpoint->archive.blob >= checkpoint->weights && average->size == blob->size)
            blob->bytes = average->bytes;
        free(name.at);
    }
}

/* Appended behind the file's tensors, whose order says what is a state. */
static void add_blob(MtcArchive *archive, const MtcTensor *tensor, const void *bytes) {
    MtcBlob *blob = &archive->blob[archive->count++];
    memset(blob, 0, sizeof *blob);
    blob->name = tensor->name;
    blob->dtype = mtc_dtype(tensor->type);
    blob->rank = tensor->rank;
    mtc_file_dim(tensor, blob->dim);
    blob->bytes = bytes;
    blob->size = mtc_tensor_bytes(tensor);
}

/* In memory's order on the way, where outputs are axis 0; `made` takes integers and scales. */
static int quantize_blob(MtcFault *fault, const MtcCheckpoint *checkpoint, const MtcTensor *tensor, MtcBlob *blob,
                         char *made) {
    const MtcTensor floats = of_floats(tensor);
    const int64_t elements = mtc_elements(tensor->rank, tensor->dim), outputs = tensor->dim[0];
    float *values = (float *)mtc_blob_values(fault, &floats, blob);
    if (!values)
        return fault->code;
    const MtcBadNumber bad = mtc_find_bad(MTC_F32, values, elements);
    if (bad.found) {
        free(values);
        return mtc_fail(fault, MTC_BAD_DATA, "%s: '%s' is not finite: %s", checkpoint->path, tensor->name,
                        mtc_bad_text(&bad, blob->rank, blob->dim));
    }
    float *ordered = (float *)mtc_memory(NULL, (size_t)elements * sizeof *ordered);
    signed char *integers = (signed char *)mtc_memory(NULL, (size_t)elements);
    float *scale = (float *)(void *)made;
    memcpy(ordered, values, (size_t)elements * sizeof *ordered);
    if (mtc_is_permuted(tensor))
        mtc_from_file(&floats, values, ordered);
    mtc_quantize_rows(ordered, outputs, elements / outputs, integers, scale);
    made += (size_t)outputs * sizeof *scale;
    if (mtc_is_permuted(tensor))
        mtc_to_file(tensor, integers, made);
    else
        memcpy(made, integers, (size_t)elements);
    blob->dtype = mtc_dtype(MTC_I8);
    blob->bytes = made;
    blob->size = (size_t)elements;
    free(integers);
    free(ordered);
    free(values);
    return 0;
}

/* Of scales and integers, with the next scales aligned behind them. */
static size_t bytes_made(const MtcTensor *tensor) {
    const size_t bytes = (size_t)tensor->dim[0] * sizeof(float) + mtc_tensor_bytes(tensor);
    return (bytes + sizeof(float) - 1) / sizeof(float) * sizeof(float);
}

static int integers_already(MtcFault *fault, const MtcCheckpoint *checkpoint, const MtcTensor *tensor) {
    mtc_fail(fault, MTC_BAD_DATA, "%s: '%s' is of integers already", checkpoint->path, tensor->name);
    mtc_note(fault, "what is quantized are the floats of a training; this file can be evaluated as it is");
    return fault->code;
}

int mtc_checkpoint_quantize(MtcFault *fault, MtcCheckpoint *checkpoint, const MtcModel *model) {
    static const float one = 1;
    MtcArchive *archive = &checkpoint->archive;
    size_t bytes = 0;
    for (int i = 0; i < model->quantized; i++)
        bytes += bytes_made(&model->tensor[model->quantized_weight[i].weight]);
    take_averages(checkpoint, model);
    archive->blob =
        (MtcBlob *)mtc_memory(archive->blob, (size_t)(archive->count + 2 * model->quantized) * sizeof(MtcBlob));
    checkpoint->integers = (char *)mtc_memory(NULL, bytes);
    char *made = checkpoint->integers;
    for (int i = 0; i < model->quantized; i++) {
        const MtcQuantized *quantized = &model->quantized_weight[i];
        const MtcTensor *tensor = &model->tensor[quantized->weight], floats = of_floats(tensor);
        MtcBlob *blob = find_blob(checkpoint, tensor->name);
        if (blob && strcmp(blob->dtype, mtc_dtype(MTC_I8)) == 0)
            return integers_already(fault, checkpoint, tensor);
        if (!mtc_blob_fits(&floats, blob))
            continue; /* taking it says what is wrong */
        const int code = quantize_blob(fault, checkpoint, tensor, blob, made);
        if (code)
            return code;
        add_blob(archive, &model->tensor[quantized->scale], made);
        add_blob(archive, &model->tensor[quantized->input_scale], &one);
        made += bytes_made(tensor);
    }
    return 0;
}

/* ---- what a program can compute with ---- */

static int check_integers(MtcFault *fault, const char *path, const MtcBlob *blob) {
    const signed char *integers = (const signed char *)blob->bytes;
    for (size_t i = 0; i < blob->size; i++)
        if (integers[i] == INT8_MIN)
            return mtc_fail(fault, MTC_BAD_DATA,
                            "%s: element %s of '%s' is -128, and integers of weights are from -127 to 127", path,
                            mtc_index((int64_t)i, blob->rank, blob->dim), blob->name);
    return 0;
}

static int check_input_scale(MtcFault *fault, const char *path, const MtcBlob *blob) {
    float scale = 0;
    memcpy(&scale, blob->bytes, blob->size < sizeof scale ? blob->size : sizeof scale);
    return scale > 0 ? 0
                     : mtc_fail(fault, MTC_BAD_DATA, "%s: '%s' is %s, and a scale is above 0", path, blob->name,
                                mtc_number((double)scale));
}

int mtc_check_quantized(MtcFault *fault, const MtcCheckpoint *checkpoint, const MtcModel *model) {
    int code = 0;
    for (int i = 0; i < model->quantized && !code; i++) {
        const MtcTensor *weight = &model->tensor[model->quantized_weight[i].weight],
                        *input = &model->tensor[model->quantized_weight[i].input_scale];
        const MtcBlob *integers = find_blob(checkpoint, weight->name), *scale = find_blob(checkpoint, input->name);
        if (mtc_blob_fits(weight, integers))
            code = check_integers(fault, checkpoint->path, integers);
        if (!code && mtc_blob_fits(input, scale) && strcmp(scale->dtype, mtc_dtype(MTC_F32)) == 0)
            code = check_input_scale(fault, checkpoint->path, scale);
    }
    return code;
}

void mtc_note_quantized(MtcFault *fault, const MtcCheckpoint *checkpoint, const MtcModel *model, const char *program) {
    for (int i = 0; i < model->tensors; i++) {
        const MtcTensor *tensor = &model->tensor[i];
        const MtcBlob *blob = find_blob(checkpoint, tensor->name);
        if (!mtc_is_kept(tensor) || !blob)
            continue;
        if (is_of_integers(model, tensor) && mtc_has_floats(blob)) {
            mtc_note(fault,
                     "it has floats, and this program computes in int8: %s quantize --load %s --save NEW.safetensors",
                     program ? program : "the program's command", checkpoint->path);
            return;
        }
        if (tensor->type == MTC_F32 && strcmp(blob->dtype, mtc_dtype(MTC_I8)) == 0) {
            mtc_note(fault,
                     "it has integers, for programs of 'mtc --precision int8'; this one takes the floats that they "
                     "were made of");
            return;
        }
    }
}
