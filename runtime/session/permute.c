#include "session/permute.h"

#include "base/parallel.h"

#include <string.h>

/* Neighbours in memory are far from each other in the file, and the other way, so that elements go in squares of which caches hold both
 * sides:
 *
 *     file [.., near, .., last]    `last`: the axis of neighbours in the file
 *                                  `near`: that of neighbours in memory
 */
enum { SIDE = 64, MOST_AXES = 8, ELEMENTS_PER_TASK = 1 << 17 };

typedef struct FileAxis {
    int64_t size, file, memory; /* strides in elements */
} FileAxis;

typedef struct Permutation {
    const char *from;
    char *to;
    size_t width; /* bytes of an element */
    bool to_file;
    FileAxis near, last;
    int outer_axes;
    FileAxis outer[MOST_AXES];
    int64_t strips, strips_per_task; /* SIDE indices of `near`, each with all of `last` */
} Permutation;

/* The file's axes, of which those that are neighbours on both sides are one; how many. */
static int axes_of(const MtcTensor *tensor, FileAxis axis[MOST_AXES]) {
    int64_t dim[MOST_AXES], stride[MOST_AXES], file = 1;
    int count = 0;
    mtc_file_dim(tensor, dim);
    mtc_file_strides(tensor, stride);
    for (int k = tensor->rank - 1; k >= 0; file *= dim[k--]) {
        FileAxis *inner = count ? &axis[count - 1] : NULL;
        if (inner && stride[k] == inner->memory * inner->size)
            inner->size *= dim[k];
        else if (dim[k] > 1)
            axis[count++] = (FileAxis){dim[k], file, stride[k]};
    }
    return count;
}

static int64_t strips_along(const FileAxis *near) {
    return (near->size + SIDE - 1) / SIDE;
}

/* axis[0] is that of neighbours in the file. Where it is also that of memory, there are no squares: `near` has one index. */
static void find_squares(Permutation *p, const FileAxis *axis, int axes) {
    p->near = p->last = (FileAxis){1, 0, 0};
    p->strips = 1;
    for (int k = 0; k < axes; k++) {
        if (k == 0)
            p->last = axis[k];
        else if (axis[k].memory == 1)
            p->near = axis[k];
        else {
            p->outer[p->outer_axes++] = axis[k];
            p->strips *= axis[k].size;
        }
    }
    p->strips *= strips_along(&p->near);
    p->strips_per_task = 1 + ELEMENTS_PER_TASK / (SIDE * p->last.size);
}

/* A row of `from` becomes a column of `to`, by way of a square where they meet: so every line of memory is read and written once, in one go.
 * Of one width, which the compiler knows where this is inlined. */
static inline __attribute__((always_inline)) void transpose_as(size_t width, const char *from, int64_t from_stride,
                                                               char *to, int64_t to_stride, int64_t rows,
                                                               int64_t columns) {
    char square[SIDE * SIDE * sizeof(double)];
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            memcpy(square + (size_t)(c * SIDE + r) * width, from + (size_t)(r * from_stride + c) * width, width);
    for (int64_t c = 0; c < columns; c++)
        memcpy(to + (size_t)(c * to_stride) * width, square + (size_t)(c * SIDE) * width, (size_t)rows * width);
}

static void transpose(size_t width, const char *from, int64_t from_stride, char *to, int64_t to_stride, int64_t rows,
                      int64_t columns) {
    switch (width) {
    case 1: transpose_as(1, from, from_stride, to, to_stride, rows, columns); break;
    case 2: transpose_as(2, from, from_stride, to, to_stride, rows, columns); break;
    case 4: transpose_as(4, from, from_stride, to, to_stride, rows, columns); break;
    default: transpose_as(8, from, from_stride, to, to_stride, rows, columns);
    }
}

static void permute_square(const Permutation *p, int64_t file, int64_t memory, int64_t near, int64_t last) {
    const size_t width = p->width, in_file = (size_t)file * width, in_memory = (size_t)memory * width;
    if (p->to_file)
        transpose(width, p->from + in_memory, p->last.memory, p->to + in_file, p->near.file, last, near);
    else
        transpose(width, p->from + in_file, p->near.file, p->to + in_memory, p->last.memory, near, last);
}

static void permute_strip(const Permutation *p, int64_t strip) {
    const int64_t along = strips_along(&p->near), first = strip % along * SIDE, left = p->near.size - first;
    int64_t file = first * p->near.file, memory = first * p->near.memory, rest = strip / along;
    for (int k = 0; k < p->outer_axes; rest /= p->outer[k++].size) {
        file += rest % p->outer[k].size * p->outer[k].file;
        memory += rest % p->outer[k].size * p->outer[k].memory;
    }
    for (int64_t j = 0; j < p->last.size; j += SIDE)
        permute_square(p, file + j, memory + j * p->last.memory, left < SIDE ? left : SIDE,
                       p->last.size - j < SIDE ? p->last.size - j : SIDE);
}

static void permute_strips(void *context, int64_t task) {
    const Permutation *p = (const Permutation *)context;
    const int64_t from = task * p->strips_per_task;
    for (int64_t strip = from; strip < p->strips && strip < from + p->strips_per_task; strip++)
        permute_strip(p, strip);
}

static void permute(const MtcTensor *tensor, const void *from, void *to, bool to_file) {
    Permutation p = {.from = (const char *)from, .to = (char *)to, .to_file = to_file};
    FileAxis axis[MOST_AXES];
    p.width = mtc_type_size(tensor->type);
    find_squares(&p, axis, axes_of(tensor, axis));
    mtc_parallel((p.strips + p.strips_per_task - 1) / p.strips_per_task, permute_strips, &p);
}

void mtc_to_file(const MtcTensor *tensor, const void *values, void *file) {
    permute(tensor, values, file, true);
}

void mtc_from_file(const MtcTensor *tensor, const void *file, void *values) {
    permute(tensor, file, values, false);
}
