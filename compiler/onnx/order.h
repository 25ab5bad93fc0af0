/* What network.c says of nodes for whose sake no node of the file is needed. */
#ifndef MTC_ONNX_ORDER_H
#define MTC_ONNX_ORDER_H

#include "onnx/onnx.h"

/* The names of a map's operands, brought to one order of axes; and what the map's value is, still without a name of its own. */
OnnxValue onnx_meet(Onnx *o, const Node *n, const char **in);
OnnxValue onnx_expansion(Onnx *o, const Node *n); /* OP_REPEATS */
OnnxValue onnx_exchange(Onnx *o, const Node *n);  /* ATTR_ORDER */

#endif
