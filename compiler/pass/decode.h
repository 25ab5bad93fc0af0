/* The evaluation of a language model at one position of one example, which `generate` runs for each token, and at all of them as far as
 * those behind a prompt need it. */
#ifndef MTC_DECODE_H
#define MTC_DECODE_H

#include "ir/graph.h"

/* Of a model that can generate text its graphs `decode` and `prefill`, and `texts` of so many, unless they are 0; of others
 * module->no_decode says why, unless their data are no tokens at all. */
void add_decoding(Module *module, int64_t texts);

/* One row [1, K] of floats times a matrix: y[0, j] = sum over k of x[0, k] w[k, j]. A sum has a row of threads for each j, which read
 * the weight as it lies; a product's tiles would be filler but for one row. */
Node *row_times_matrix(Graph *g, Node *row, Node *matrix, bool transposed);

#endif
