/* What the files of this room have in common. */
#ifndef MTC_ONNX_INSIDE_H
#define MTC_ONNX_INSIDE_H

#include "onnx/onnx.h"

#include <onnx.pb-c.h>

enum { ONNX_BUCKETS = 1024 };

/* A node of the file, and the next one in its chain of those with equal hashes. */
typedef struct OnnxMade {
    Onnx__NodeProto node;
    struct OnnxMade *next;
} OnnxMade;

/* Whoever a name belongs to. */
typedef struct OnnxName {
    const char *text;
    OnnxMade *made; /* the node that makes the value; NULL: an input or an initializer */
    bool needed;    /* somebody reads it */
    struct OnnxName *next;
} OnnxName;

struct Onnx {
    Arena *arena;
    const Module *module;
    OnnxValue *values; /* of the nodes of the graph, by their ids */
    VEC(OnnxMade *) nodes;
    VEC(Onnx__TensorProto *) initializers;
    VEC(Onnx__ValueInfoProto *) inputs;
    OnnxMade *shared[ONNX_BUCKETS];
    OnnxName *names[ONNX_BUCKETS];
    const char *batch;   /* the input that tells how many examples there are; NULL: none does yet */
    const char *refusal; /* NULL: all could be said */
    Span refused;
};

OnnxName *onnx_find_name(Onnx *o, const char *text); /* NULL: nobody has it */
/* `wanted`, or where somebody has that, `wanted_2`. */
const char *onnx_new_name(Onnx *o, const char *wanted, OnnxMade *made);
int onnx_dtype(DType dtype); /* of TensorProto; 0: there is none */
/* Without its numbers where `bytes` is NULL. The name must be free. */
const char *onnx_initializer(Onnx *o, const char *name, DType dtype, int rank, const int64_t *dim, const void *bytes,
                             size_t size);

#endif
