/* What `export` of a program writes: the network that predicts, as a file of ONNX in which the weights' numbers are missing. */
#ifndef MTC_ONNX_NETWORK_H
#define MTC_ONNX_NETWORK_H

#include "ir/graph.h"

typedef struct Network {
    const uint8_t *bytes; /* a ModelProto; NULL: the network cannot be said in ONNX's operators */
    size_t size;
    const char *refusal; /* why not: "the prediction draws random numbers"; */
    Span at;             /* and where */
} Network;

/* Of the graph `eval` as it was written: before a pass has changed it. Inputs are the fields that the prediction needs, the output is
 * the prediction; both have the names of the model, and in front an axis "batch" of any extent. Weights, and params that are flags of
 * the program, are initializers of their names without numbers. */
Network network_of(const Module *module);
/* "models/gan.mt:12: the prediction draws random numbers"; NULL where there is a network. */
const char *network_refusal(Arena *arena, const Network *network);

#endif
