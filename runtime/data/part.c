#include "data/part.h"

#include "random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A row is in the part where it stands, or where the permutation puts it. */
static int64_t rows_of_part(const MtcSplit *split, uint64_t seed, int64_t count, int64_t **row) {
    const int64_t begin = llround(split->from * (double)count), end = llround(split->to * (double)count);
    uint64_t key = mtc_split_key(seed);
    const bool in_order = split->in_order || end - begin == count;
    int64_t rows = 0;
    *row = (int64_t *)mtc_memory(NULL, (size_t)(end - begin) * sizeof **row);
    for (int64_t i = 0; i < count; i++) {
        int64_t place = in_order ? i : (int64_t)mtc_permute(key, (uint32_t)count, (uint32_t)i);
        if (place >= begin && place < end)
            (*row)[rows++] = i;
    }
    return rows;
}

int mtc_part_rows(MtcFault *fault, const MtcSplitPart *part, const char *name, int64_t count, int64_t **row,
                  int64_t *rows) {
    const MtcSplit *split = part->split;
    *rows = rows_of_part(split, part->seed, count, row);
    return *rows ? 0
                 : mtc_fail(fault, MTC_BAD_DATA, "%s: '%s', %.6g%% of %lld example%s, is empty", name, split->name,
                            100 * (split->to - split->from), (long long)count, count == 1 ? "" : "s");
}

static void gather(const MtcModel *model, const MtcExamples *from, const int64_t *row, int64_t rows, MtcExamples *to) {
    to->count = rows;
    for (int f = 0; f < model->fields; f++) {
        size_t size = mtc_example_bytes(&model->field[f]);
        to->field[f] = mtc_memory(NULL, (size_t)rows * size);
        for (int64_t i = 0; i < rows; i++)
            memcpy((char *)to->field[f] + (size_t)i * size, (const char *)from->field[f] + (size_t)row[i] * size, size);
    }
    to->path = from->path ? (char **)mtc_memory(NULL, (size_t)rows * sizeof *to->path) : NULL;
    for (int64_t i = 0; i < rows && from->path; i++)
        to->path[i] = strdup(from->path[row[i]]);
}

int mtc_part_arrays(MtcFault *fault, const MtcModel *model, const MtcSplitPart *part, const char *name,
                    MtcExamples *arrays, MtcExamples *examples) {
    int64_t *row = NULL, rows;
    if (part->last && part->split->from <= 0 && part->split->to >= 1) {
        *examples = *arrays;
        memset(arrays, 0, sizeof *arrays);
        return 0;
    }
    int code = mtc_part_rows(fault, part, name, arrays->count, &row, &rows);
    if (!code)
        gather(model, arrays, row, rows, examples);
    free(row);
    return code;
}
