/* Gradients in a loss: of a number of each example, with respect to a value of each. What it gives is made of the operators that gradients are made
 * of, so that it can be differentiated again, by the text and by the training. */
#include "ir/autodiff.h"
#include "op/compose.h"

static bool is_differentiable(Call *call, int arg, const Node *x) {
    const char *text = type_user_text(call->g->arena, &x->type);
    if (x->type.dtype != DT_F32)
        call_error(call, arg,
                   "a gradient is with respect to numbers, and %s is whole; 1.0 * x is numbers, before they are used",
                   text);
    else if (!x->type.batched)
        call_error(call, arg, "grad is of each example, and this is the same for all: %s", text);
    else
        return call_parts_no_batch(call, arg, x, ~0u);
    return false;
}

static Value build_grad(Call *call) {
    Node *y = call_tensor(call, 0), *x = call_tensor(call, 1);
    if (!y || !x || !is_differentiable(call, 1, x))
        return value_tensor(NULL);
    if (y->type.rank == 1 && y->type.batched && y->type.dtype == DT_F32)
        return value_tensor(graph_gradient(call->g, y, x));
    call_error(call, 0, "grad is of one number for each example, not %s%s", type_user_text(call->g->arena, &y->type),
               user_axes(y) ? "; take an element, y[0], or sum(y)" : "");
    return value_tensor(NULL);
}

const OpDef op_grad = {
    .name = "grad",
    .cls = OP_LIBRARY,
    .doc = "The gradient of y, a number of each example, with respect to x, a value of each that y is made of: of the "
           "shape of x.",
    .example = "y = grad(sum(square(x)), x)",
    .signature = "y, x",
    .build = build_grad,
};
