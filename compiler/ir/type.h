/* Element types and shapes. */
#ifndef MTC_TYPE_H
#define MTC_TYPE_H

#include "support/arena.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum DType {
#define DTYPE(id, name, c, bytes, safetensors, rounding) DT_##id,
#include "ir/dtype.def"
#undef DTYPE
    DTYPE_COUNT
} DType;

typedef struct DTypeInfo {
    const char *name, *c_name, *safetensors_name;
    int bytes;
    const char *rounding; /* operator that makes one of an f32 number, and function of the kernels' library; or NULL */
} DTypeInfo;

extern const DTypeInfo dtype_info[DTYPE_COUNT];
bool dtype_from_name(const char *name, DType *dtype);

enum { MAX_RANK = 8 };

/* A tensor's type. `batched` says that dim[0] is the batch axis, which the language leaves unsaid: user-visible axis k
 * is then dim[k + 1]. In matrices made of images it is the batch axis and those of the pixels. Row-major; rank 0 is a
 * scalar. */
typedef struct Type {
    DType dtype;
    int rank;
    int64_t dim[MAX_RANK];
    bool batched;
} Type;

Type type_scalar(DType dtype);
Type type_make(DType dtype, bool batched, int rank, const int64_t *dim);
int64_t type_elements(const Type *type); /* MAX_ELEMENTS when there are more */
int64_t type_bytes(const Type *type);
int64_t type_extent(const Type *type, int first, int end); /* of the axes from `first` to before `end` together */
bool type_same_shape(const Type *a, const Type *b);        /* rank and every dim; not dtype, not batched */
int64_t type_stride(const Type *type, int axis);           /* in elements */

/* "f32[28, 28]" as the user thinks of it (batch axis left out) / "f32[64, 28, 28]" as the graph has it. */
const char *type_user_text(Arena *arena, const Type *type);
const char *type_graph_text(Arena *arena, const Type *type);

/* The whole numbers from low to high that a value is one of. low > high: it need not be whole. Both ends are within 2^53. */
typedef struct Range {
    int64_t low, high;
} Range;

extern const Range range_unknown;
bool dtype_is_narrow(DType dtype); /* numbers of 16 bits, made of f32 by rounding */
bool dtype_is_byte(DType dtype);   /* numbers of 8 bits that products multiply */
bool dtype_is_real(DType dtype);   /* these, and f32 */
bool dtype_is_whole(DType dtype);  /* holds whole numbers, or the conditions 0 and 1 */
Range range_of_dtype(DType dtype);
Range range_of_number(double number);
bool range_is_known(Range a);
bool range_within(Range a, Range b); /* false where `a` is unknown */
/* Unknown where an operand is, or the result may pass 2^53. */
Range range_sum(Range a, Range b);
Range range_difference(Range a, Range b);
Range range_product(Range a, Range b);
Range range_union(Range a, Range b);

/* The most elements of a tensor; an axis has at most INT32_MAX. Small enough that sums of bytes do not overflow. */
#define MAX_ELEMENTS ((int64_t)1 << 40)
/* What an int counts, by steps of as many as a block takes at a time: the step behind the last is an int too. */
enum { MOST_COUNTED = INT32_MAX - 65535 };

/* a * b, or -1 when that is above MAX_ELEMENTS. */
int64_t size_product(int64_t a, int64_t b);
/* Greatest common divisor; of a and 0: a. */
int64_t common_divisor(int64_t a, int64_t b);
bool type_fits(const Type *type); /* within both limits */
/* Does an int hold a place so far behind a tensor's begin; does one count so many? Else both have 64 bits. $MTC_INT_HOLDS, for tests: an int is
 * given no more than that, so that small tensors are computed with as large ones are. */
bool int_holds(int64_t most);
bool int_counts(int64_t count);

#endif
