/* The rules of operators.def. */
#ifndef MTC_IMPORT_RULES_H
#define MTC_IMPORT_RULES_H

#include "import/importer.h"

#include <stdlib.h>

#define OPERATOR(name, first, last, least, most, attributes, rule, text, fold) Rule rule;
#include "import/operators.def"
#undef OPERATOR

/* x in a larger shape, whose axes of the text are `extents`. */
void give_expanded(Importer *im, Node *node, Value *x, const Shape *shape, const Extents *extents);

/* `size` elements along an axis of a text of that rank, with others before and after that have a value. */
const char *padded_text(Importer *im, const char *x, int axis, int rank, int64_t size, int64_t before, int64_t after,
                        double value);

#endif
