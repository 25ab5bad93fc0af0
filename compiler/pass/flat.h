/* Of several processes that share a batch, each updates a part of the weights, and has the optimizer's states of that alone.
 *
 * A part is a range of memory, whatever tensors begin in it: so weights whose updates are alike, the same optimizer with or without
 * its decay, lie one behind the other, and are updated as one tensor of a single axis, their `flat` one; so do their sums over shards
 * and their states. What is one element's own business can be done so, element by element. Optimizers for which a weight is a matrix,
 * or has a norm (Optimizer.whole), update theirs apart, in each process all. */
#ifndef MTC_FLAT_H
#define MTC_FLAT_H

#include "op/optimizer.h"

/* Elements: each weight begins at a multiple of these in its flat one, so that kernels read as many neighbours at once as ever. */
enum { FLAT_ALIGN = 64 };

/* Makes the flat weights, the last rows of the module's table, and returns the first of these, or how many rows there are. Theirs are
 * then rows of `training` and of `gradient`, by weight, too: what the gradients of theirs are in module->update. */
int join_weights(Module *module, Training *training, Node ***gradient);

/* Of a flat weight's states so far: each process has its part. */
void part_states(Module *module, int weight);
/* The states that the flat weight has got are those of the weights in it: makes the rows of this one's. */
void states_within(Module *module, int weight);

bool is_flat(const Module *module, int weight);
bool lies_within(const Module *module, int weight); /* a flat one */

#endif
