/* The evaluation of a language model at one position of one example, which `generate` runs for each token, and at all of them as far as
 * those behind a prompt need it. */
#ifndef MTC_DECODE_H
#define MTC_DECODE_H

#include "ir/graph.h"

/* Of a model that can generate text its graphs `decode` and `prefill`, and `texts` of so many, unless they are 0; of others
 * module->no_decode says why, unless their data are no tokens at all. */
void add_decoding(Module *module, int64_t texts);

#endif
