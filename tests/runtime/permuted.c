/* Tensors of many shapes and widths in the order of files and back: each element against its place. Prints those that are wrong. */
#include "session/permute.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const MtcTensor tensors[] = {
    {.name = "transposed", .rank = 2, .dim = {768, 515}, .file_axis = {1, 0}},
    {.name = "narrow", .rank = 2, .dim = {3, 40000}, .file_axis = {1, 0}},
    {.name = "filters", .rank = 4, .dim = {130, 3, 3, 67}, .file_axis = {0, 3, 1, 2}},
    {.name = "one tap", .rank = 4, .dim = {64, 1, 1, 33}, .file_axis = {0, 3, 1, 2}},
    {.name = "one channel", .rank = 4, .dim = {64, 5, 5, 1}, .file_axis = {0, 3, 1, 2}},
    {.name = "backwards", .rank = 4, .dim = {7, 31, 33, 65}, .file_axis = {3, 2, 1, 0}},
    {.name = "rows", .rank = 3, .dim = {31, 65, 200}, .file_axis = {1, 0, 2}},
    {.name = "number", .rank = 2, .dim = {1, 1}, .file_axis = {1, 0}},
};
static const MtcType types[] = {MTC_U8, MTC_F16, MTC_F32, MTC_F64};

/* Neighbours differ in each byte. */
static char byte_at(int64_t element, size_t k) {
    return (char)(uint8_t)((uint64_t)(element + 1) * 0x9E3779B97F4A7C15u >> (8 * k + 3));
}

static bool check(MtcTensor tensor, MtcType type) {
    const size_t width = mtc_type_size(type);
    const int64_t count = mtc_elements(tensor.rank, tensor.dim);
    char *values = malloc((size_t)count * width), *file = malloc((size_t)count * width);
    char *back = malloc((size_t)count * width);
    bool good = true;
    tensor.type = type;
    for (int64_t i = 0; i < count; i++)
        for (size_t k = 0; k < width; k++)
            values[(size_t)i * width + k] = byte_at(i, k);
    mtc_to_file(&tensor, values, file);
    mtc_from_file(&tensor, file, back);
    for (int64_t i = 0; i < count && good; i++)
        good = memcmp(file + (size_t)mtc_file_element(&tensor, i) * width, values + (size_t)i * width, width) == 0;
    good = good && memcmp(back, values, (size_t)count * width) == 0;
    free(values);
    free(file);
    free(back);
    return good;
}

int main(void) {
    bool good = true;
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++)
        for (size_t t = 0; t < sizeof types / sizeof *types; t++)
            if (!check(tensors[i], types[t])) {
                printf("%s of %s\n", tensors[i].name, mtc_type_name(types[t]));
                good = false;
            }
    return !good;
}
