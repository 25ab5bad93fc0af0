/* Computing with numbers that are known when importing. Each gives the node's first output; NULL: not of such operands. */
#ifndef MTC_IMPORT_FOLD_H
#define MTC_IMPORT_FOLD_H

#include "import/importer.h"

Fold fold_arithmetic, fold_where, fold_cast, fold_concat, fold_gather, fold_reduce, fold_range;

/* So many elements along an axis, from one on in steps; all within the tensor. */
const Tensor *fold_slice_axis(Importer *im, const Tensor *tensor, int axis, int64_t begin, int64_t step, int64_t count);
/* Stretched to a shape that it fits. */
Tensor *fold_expand(Importer *im, const Tensor *tensor, const Extents *extents);

#endif
