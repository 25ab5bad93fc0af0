/* A batch in shards: the training graph computes the gradients of one of them, and what it leaves is added up over all. A
 * second graph, module->update, takes the sums:
 *
 *     train:  shard -> gradient, change of each running mean -> state `<weight>.shard_sum`
 *     update: `<weight>.shard_sum`, added up over the shards -> new weights, running means and states
 *
 * As `share` is an example's part in the whole batch, sums over shards are those of the batch. */
#ifndef MTC_SHARD_H
#define MTC_SHARD_H

#include "op/optimizer.h"

typedef VEC(Node *) Assigns;

/* What layers that keep statistics assign in the forward pass; they are roots no more. Before weights are updated. */
Assigns take_statistics(Graph *g);

/* What each weight's gradient is in the graph of updates, which is made; by weight, NULL: not trained. */
void sum_over_shards(Module *module, Node **gradient);
/* Likewise what the examples of a shard weigh, in a state of the weight `owner`. */
Node *weights_over_shards(Module *module, int owner, Node *weights);

/* The numbers of the train block, made in that graph. */
Training training_of_shards(Module *module, const Training *training);

#endif
