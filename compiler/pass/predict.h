/* A module that only predicts: what a library for programs that use a trained network is made of. */
#ifndef MTC_PREDICT_H
#define MTC_PREDICT_H

#include "ir/graph.h"

/* After add_updates, before simplify. Evaluation keeps the prediction, and tables the weights and buffers that it needs (with moving averages,
 * those); training, metrics, measuring, decoding and states are gone. False: the module has no prediction. */
bool keep_prediction(Module *module);

#endif
