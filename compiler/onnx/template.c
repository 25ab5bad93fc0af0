/* Templates of maps: "Sub(Exp($0), 1)". A word is an operator of ONNX, $k an operand, a number one of the operands' type. */
#include "onnx/inside.h"
#include "onnx/order.h"

#include <ctype.h>
#include <stdlib.h>

typedef struct Reader {
    Onnx *o;
    const char *at;
    const char **in; /* the operands */
    DType dtype;     /* of numbers */
} Reader;

static bool takes(Reader *r, char c) {
    r->at += strspn(r->at, " ");
    bool found = *r->at == c;
    r->at += found;
    return found;
}

static const char *term(Reader *r);

static const char *call(Reader *r) {
    const char *in[MAX_INPUTS] = {0};
    size_t length = strcspn(r->at, "(");
    const char *op = arena_strndup(r->o->arena, r->at, length);
    int count = 0;
    r->at += length;
    ENSURE(takes(r, '('));
    do
        in[count++] = term(r);
    while (takes(r, ','));
    ENSURE(takes(r, ')'));
    return onnx_node(r->o, op, count, in, 0, NULL);
}

static const char *term(Reader *r) {
    r->at += strspn(r->at, " ");
    if (isalpha((unsigned char)*r->at))
        return call(r);
    char *end;
    bool operand = takes(r, '$');
    double number = strtod(r->at, &end);
    ENSURE(end > r->at);
    r->at = end;
    return operand ? r->in[(int)number] : onnx_number(r->o, r->dtype, number);
}

OnnxValue onnx_map(Onnx *o, const Node *n, const char *template_) {
    const char *in[MAX_INPUTS];
    OnnxValue result = onnx_meet(o, n, in);
    Reader r = {o, template_, in, n->in[n->inputs - 1]->type.dtype};
    result.name = term(&r);
    return result;
}
