/* Sizes as symbols. Axes that operators tie together (the k of a product, the same axis of a map's operands) are one
 * size and get one enumeration constant, named after the value of the model that has it: `H`, `LOGITS`, `IMAGE_ROWS`. */
#ifndef MTC_SIZES_H
#define MTC_SIZES_H

#include "emit/text/names.h"
#include "emit/text/writer.h"
#include "ir/op.h"

typedef struct Sizes Sizes;

Sizes *sizes_new(Names *names, const Module *module);

/* A shape whose axes have sizes: H, 1, or ROWS * COLUMNS. */
typedef struct Shape {
    Type type;
    const Tree *size[MAX_RANK];
} Shape;
Shape sizes_shape(Sizes *sizes, const Node *n);

/* The size with that symbol; 0: there is none. */
int64_t sizes_value(const Sizes *sizes, const char *symbol, size_t length);

/* The axes from `first` on, `count` of them. */
Shape shape_slice(const Shape *shape, int first, int count);
/* "IMAGE_ROWS * IMAGE_COLUMNS" of the axes from `first` on, `count` of them; "1" of none. A field flattened somewhere in
 * the model has a symbol for that: "IMAGE". */
const Tree *shape_extent(Arena *arena, const Shape *shape, int first, int count);
/* The same as a number by itself, and not as a factor of what is wide already: "(int64_t)A * B" where an int does not hold it. */
const Tree *shape_count(Arena *arena, const Shape *shape, int first, int count);
const char *shape_product(Arena *arena, const Shape *shape, int first, int count);
/* The size of one axis as text. */
const char *shape_symbol(Arena *arena, const Shape *shape, int axis);
/* The elements of one example of a field. */
const Tree *sizes_example(Sizes *sizes, const Node *field);

/* The enumeration of the sizes that are written by name so far, and of the batch size, which the tables name. */
void sizes_write(const Sizes *sizes, Writer *w);

#endif
