#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create */
#endif
#include "embed/weights.h"

#include "base/axes.h"
#include "base/param.h"
#include "base/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- a tensor ---- */

static float from_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* 2^(e - 15) (1 + m / 2^10); e = 0: m 2^-24; e = 31: infinite, or no number. */
static float from_half(uint16_t bits) {
    const uint32_t sign = (uint32_t)(bits >> 15) << 31, exponent = bits >> 10 & 31, mantissa = bits & 1023;
    if (exponent == 0)
        return (sign ? -1.0f : 1.0f) * (float)mantissa * 0x1p-24f;
    return from_bits(sign | (exponent == 31 ? 255u : exponent + 112) << 23 | mantissa << 13);
}

/* A float of any width, so many bytes, or an integer of one; the file's data need not be aligned. */
static float read_number(const MtcBlob *blob, const char *at, size_t width) {
    double wide;
    float value;
    uint16_t bits;
    switch (width) {
    case sizeof wide: memcpy(&wide, at, sizeof wide); return (float)wide;
    case sizeof value: memcpy(&value, at, sizeof value); return value;
    case sizeof(signed char): return *(const signed char *)at;
    default: memcpy(&bits, at, sizeof bits);
    }
    return blob->dtype[0] == 'B' ? from_bits((uint32_t)bits << 16) : from_half(bits);
}

static bool is_of_type(const MtcBlob *blob, MtcType type) {
    return type == MTC_I8 ? strcmp(blob->dtype, mtc_dtype(type)) == 0 : mtc_has_floats(blob);
}

static int check_blob(MtcFault *fault, const char *path, const MtcTensor *tensor, const MtcBlob *blob) {
    int64_t dim[8];
    if (!blob)
        return mtc_fail(fault, MTC_BAD_DATA, "%s: has no tensor '%s', which the network needs", path, tensor->name);
    mtc_file_dim(tensor, dim);
    const bool same = blob->rank == tensor->rank && memcmp(dim, blob->dim, (size_t)tensor->rank * sizeof *dim) == 0;
    if (same && is_of_type(blob, tensor->type))
        return 0;
    const bool whole = tensor->type == MTC_I8;
    mtc_fail(fault, MTC_BAD_DATA, "%s: tensor '%s': expected %s of shape %s, found %s of type %s", path, blob->name,
             whole ? "integers of 8 bits" : "floats", mtc_shape(tensor->rank, dim), mtc_shape(blob->rank, blob->dim),
             blob->dtype);
    if (same && whole && mtc_has_floats(blob))
        mtc_note(fault, "the command quantize of a program of 'mtc --precision int8' makes integers of floats");
    if (same && !whole && is_of_type(blob, MTC_I8))
        mtc_note(fault, "it has integers, for libraries of 'mtc --precision int8'; this one takes the floats that they "
                        "were made of");
    return fault->code;
}

static void store(const MtcTensor *tensor, char *to, int64_t at, float value) {
    if (tensor->type == MTC_I8)
        ((signed char *)to)[at] = (signed char)value;
    else
        ((float *)(void *)to)[at] = value;
}

/* In the order of the file; `at` is where each element is here. */
static int copy_blob(MtcFault *fault, const char *path, const MtcTensor *tensor, const MtcBlob *blob, char *to) {
    int64_t dim[8] = {0}, stride[8] = {0}, index[8] = {0}, at = 0;
    mtc_file_dim(tensor, dim);
    mtc_file_strides(tensor, stride);
    const int64_t count = mtc_elements(tensor->rank, dim);
    const size_t width = count ? blob->size / (size_t)count : 0;
    for (int64_t i = 0; i < count; i++) {
        const float value = read_number(blob, (const char *)blob->bytes + (size_t)i * width, width);
        if (!(value - value == 0) || (tensor->type == MTC_I8 && value == INT8_MIN))
            return mtc_fail(fault, MTC_BAD_DATA, "%s: tensor '%s': %s is %s%s", path, tensor->name,
                            mtc_index(i, tensor->rank, dim), mtc_number((double)value),
                            tensor->type == MTC_I8 ? ", and integers of weights are from -127 to 127" : "");
        store(tensor, to, at, value);
        mtc_next_element(tensor->rank, dim, stride, index, &at);
    }
    return 0;
}

/* Inputs are divided by them. */
static int check_input_scales(MtcFault *fault, const MtcModel *model, const char *path, const char *arena) {
    for (int i = 0; i < model->quantized; i++) {
        const MtcTensor *tensor = &model->tensor[model->quantized_weight[i].input_scale];
        const float *scale = (const float *)(const void *)(arena + tensor->offset);
        if (!(*scale > 0))
            return mtc_fail(fault, MTC_BAD_DATA, "%s: tensor '%s' is %s, and a scale is above 0", path, tensor->name,
                            mtc_number((double)*scale));
    }
    return 0;
}

static int take_tensors(MtcFault *fault, const MtcModel *model, const char *path, const MtcArchive *archive,
                        char *arena) {
    for (int i = 0; i < model->tensors; i++) {
        const MtcTensor *tensor = &model->tensor[i];
        const MtcBlob *blob = tensor->role == MTC_STATE ? mtc_archive_find_average(archive, tensor->name)
                                                        : mtc_archive_find(archive, tensor->name);
        int code = check_blob(fault, path, tensor, blob);
        if (!code)
            code = copy_blob(fault, path, tensor, blob, arena + tensor->offset);
        if (code)
            return code;
    }
    return check_input_scales(fault, model, path, arena);
}

/* ---- what a checkpoint says beside weights ---- */

static int take_params(MtcFault *fault, const MtcModel *model, const char *path, const MtcArchive *archive,
                       MtcNetWeights *weights) {
    MtcFault wrong = {0};
    for (int i = 0; i < model->knobs; i++) {
        const MtcKnob *param = &model->knob[i];
        char key[256], *end = NULL;
        snprintf(key, sizeof key, "mtc.param.%s", param->name);
        const char *text = mtc_archive_metadata(archive, key);
        const double value = text ? strtod(text, &end) : param->value;
        if (text && (end == text || *end))
            return mtc_fail(fault, MTC_BAD_DATA, "%s: '%s' of its metadata is no number: '%s'", path, key, text);
        if (mtc_check_param(&wrong, param, value, false))
            return mtc_fail(fault, MTC_BAD_DATA, "%s: was trained with another param than this network takes: %s", path,
                            wrong.text);
        weights->knob[i] = (float)value;
    }
    return 0;
}

static int take_words(MtcFault *fault, const char *path, const MtcArchive *archive, MtcNetWeights *weights) {
    const char *encoding = mtc_archive_metadata(archive, "mtc.encoding");
    if (!encoding)
        return 0;
    const size_t length = strlen(encoding);
    weights->text = (char *)mtc_memory(NULL, length + 1);
    memcpy(weights->text, encoding, length + 1);
    return mtc_json_read(fault, path, weights->text, length, &weights->words);
}

/* ---- the memory ---- */

char *mtc_net_arena(const MtcNetWeights *weights) {
    void *arena = mmap(NULL, weights->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, weights->file, 0);
    return arena == MAP_FAILED ? NULL : (char *)arena;
}

static int fill(MtcFault *fault, const MtcNetModel *net, const char *path, const MtcArchive *archive,
                MtcNetWeights *weights) {
    const MtcModel *model = &net->model;
    weights->bytes = model->arena_bytes + 1;
    weights->file = memfd_create("mtc weights", MFD_CLOEXEC);
    if (weights->file < 0 || ftruncate(weights->file, (off_t)weights->bytes) != 0)
        return mtc_no_memory(fault, weights->bytes, path);
    void *arena = mmap(NULL, weights->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, weights->file, 0);
    if (arena == MAP_FAILED)
        return mtc_no_memory(fault, weights->bytes, path);
    int code = take_tensors(fault, model, path, archive, (char *)arena);
    munmap(arena, weights->bytes);
    if (!code)
        code = take_params(fault, model, path, archive, weights);
    return code ? code : take_words(fault, path, archive, weights);
}

static int open_archive(MtcFault *fault, const MtcNetModel *net, const char **path, MtcArchive *archive) {
    if (*path)
        return mtc_archive_read(fault, *path, archive);
    if (!net->weights)
        return mtc_fail(fault, MTC_USAGE, "the library carries no weights: name a file, or compile it with --embed");
    *path = "the weights in the library";
    return mtc_archive_parse(fault, *path, net->weights, (size_t)(net->weights_end - net->weights), archive);
}

int mtc_net_weights_read(MtcFault *fault, const MtcNetModel *net, const char *path, MtcNetWeights **result) {
    MtcArchive archive;
    int code = open_archive(fault, net, &path, &archive);
    if (code)
        return code;
    MtcNetWeights *weights = (MtcNetWeights *)mtc_zeroed(sizeof *weights);
    weights->nets = 1;
    code = fill(fault, net, path, &archive, weights);
    if (!code)
        code = mtc_archive_unchanged(fault, path, &archive);
    mtc_archive_free(&archive);
    if (code)
        mtc_net_weights_free(weights);
    else
        *result = weights;
    return code;
}

void mtc_net_weights_free(MtcNetWeights *weights) {
    if (weights->words)
        mtc_json_free(weights->words);
    if (weights->file >= 0)
        close(weights->file);
    free(weights->text);
    free(weights);
}
