/* What a training step does with the gradients:
 *
 *   gradients of the loss -> mean over `accumulate` steps -> clip by value -> clip by global norm
 *   -> the optimizer's update of each weight -> moving average of the weights, which evaluation reads */
#ifndef MTC_UPDATE_H
#define MTC_UPDATE_H

#include "op/optimizer.h"

/* Adds it all to module->train or, where the batch has shards, to module->update, and makes module->eval read the averages. False when a weight cannot be trained:
 * reported. */
bool add_updates(Module *module, Node *loss, const Training *training);

/* Instead: adds each weight's gradient to the state `<weight>.gradient`; no weight changes. */
bool add_gradients(Module *module, Node *loss);

#endif
