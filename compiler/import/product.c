/* Products of matrices. One with a weight on the right is a linear layer. */
#include "import/rules.h"

/* ---- a linear layer ---- */

/* The matrix [in, out] as a layer keeps it, [out, in]. */
static const Tensor *turned(Importer *im, const Tensor *matrix) {
    static const int order[] = {1, 0};
    return tensor_permuted(im, matrix, order);
}

/* x times the matrix, [in, out] or, transposed, [out, in]; `bias` may be NULL. */
static Expression linear_expression(Importer *im, Value *x, const Tensor *matrix, bool transposed, const Tensor *bias) {
    const int64_t outputs = matrix->extents.size[transposed ? 0 : 1];
    Layer *layer = layer_new(im, "linear(%s, %lld", operand(im, x, OR), (long long)outputs);
    layer->may_bias = true;
    layer->outputs = outputs;
    layer_add(layer, "weight", transposed ? matrix : turned(im, matrix));
    layer->has_bias = bias != NULL;
    if (bias)
        layer_add(layer, "bias", bias);
    return layer_expression(im, layer);
}

/* A matrix that is a weight of this node alone; what several share is a weight with a name. */
static bool is_own_matrix(const Tensor *tensor) {
    return tensor && tensor->element == REAL && tensor->extents.rank == 2 && tensor->uses <= 1 && tensor->trained;
}

/* ---- MatMul ---- */

/* As a matrix, where the operand is a row or column: with an axis of size 1 for it, of which the result has none. */
static Shape as_matrix(Importer *im, const Shape *shape, bool left) {
    return shape->all.rank > 1 ? *shape : with_axis(im, shape, left ? 0 : 1, 1);
}

static Shape product_shape(Importer *im, const Value *a, const Value *b) {
    if (a->shape.all.rank == 0 || b->shape.all.rank == 0)
        refuse(im, "a product of %s and %s: a number is no matrix", shape_text(im, &a->shape),
               shape_text(im, &b->shape));
    const Shape left = as_matrix(im, &a->shape, true), right = as_matrix(im, &b->shape, false);
    const int ra = left.all.rank, rb = right.all.rank;
    if (left.batch == ra - 1 || right.batch == rb - 2)
        text_axis(im, left.batch == ra - 1 ? &left : &right, left.batch == ra - 1 ? ra - 1 : rb - 2);
    if (left.all.size[ra - 1] != right.all.size[rb - 2])
        refuse(im, "a product of %s and %s: %lld columns meet %lld rows", shape_text(im, &a->shape),
               shape_text(im, &b->shape), (long long)left.all.size[ra - 1], (long long)right.all.size[rb - 2]);
    Shape stack_left = left, stack_right = right;
    stack_left.all.size[ra - 1] = stack_right.all.size[rb - 2] = stack_right.all.size[rb - 1] = 1;
    Shape result;
    if (right.batch == rb - 1) { /* columns: they stretch what has one */
        stack_left.all.size[ra - 2] = 1;
        result = broadcast(im, &stack_left, &stack_right);
        result.all.size[result.all.rank - 2] = left.all.size[ra - 2];
    } else {
        result = broadcast(im, &stack_left, &stack_right);
    }
    result.all.size[result.all.rank - 1] = right.all.size[rb - 1];
    if (a->shape.all.rank == 1)
        result = without_axis(&result, result.all.rank - 2);
    return b->shape.all.rank == 1 ? without_axis(&result, result.all.rank - 1) : result;
}

/* The operand's axes of the text, of which the last two are the matrix: rows or columns that are the batch become one. */
static Extents matrix_extents(const Shape *shape, const Shape *stack) {
    Extents extents = {0};
    const int rank = shape->all.rank, before = stack->all.rank - rank;
    for (int i = 0; i < rank; i++) {
        if (i >= rank - 2 || has_text_axis(stack, i + before))
            extents.size[extents.rank++] = shape->all.size[i];
    }
    return extents;
}

static void give_product(Importer *im, Node *node, Value *a, Value *b) {
    const Shape shape = product_shape(im, a, b), left = as_matrix(im, &a->shape, true),
                right = as_matrix(im, &b->shape, false);
    Shape stack = left.all.rank > right.all.rank ? left : right;
    stack.batch = -1;
    if (left.batch >= 0 && left.batch < left.all.rank - 2)
        stack.batch = left.batch + stack.all.rank - left.all.rank;
    if (right.batch >= 0 && right.batch < right.all.rank - 2)
        stack.batch = right.batch + stack.all.rank - right.all.rank;
    if (stack.batch >= 0)
        stack.all.size[stack.batch] = shape.all.size[shape.batch];
    const Extents one = matrix_extents(&left, &stack), other = matrix_extents(&right, &stack);
    const char *x = operand_as(im, a, &one, OR);
    Expression e = text_expression(im, ATOM, "matmul(%s, %s)", x, operand_as(im, b, &other, OR));
    /* What it has: the longer stack, then rows and columns, those of one included. */
    const Extents *longer = one.rank >= other.rank ? &one : &other, *shorter = longer == &one ? &other : &one;
    e.extents = *longer;
    for (int back = 2; back < shorter->rank; back++) {
        int64_t *size = &e.extents.size[longer->rank - 1 - back];
        *size = *size == 1 ? shorter->size[shorter->rank - 1 - back] : *size;
    }
    e.extents.size[e.extents.rank - 2] = one.size[one.rank - 2];
    e.extents.size[e.extents.rank - 1] = other.size[other.rank - 1];
    give_as(im, node, 0, REAL, &shape, e);
}

void matmul_rule(Importer *im, Node *node) {
    Value *x = node->input[0], *w = node->input[1];
    const Tensor *matrix = w->constant;
    if (!is_own_matrix(matrix) || x->constant || x->shape.all.rank == 0) {
        give_product(im, node, x, w);
        return;
    }
    const Shape shape = product_shape(im, x, w);
    give(im, node, 0, REAL, &shape, linear_expression(im, x, matrix, false, NULL));
}

/* ---- Gemm: alpha A B + beta C ---- */

static Value *transposed_operand(Importer *im, Value *x) {
    Value *turned_value = NEW(im->arena, Value);
    *turned_value = *x;
    const int64_t size[] = {x->shape.all.size[1], x->shape.all.size[0]};
    turned_value->shape = plain_shape(2, size);
    turned_value->shape.batch = x->shape.batch < 0 ? -1 : 1 - x->shape.batch;
    turned_value->shape.ahead = x->shape.ahead;
    turned_value->uses = 1;
    turned_value->output = false;
    if (x->constant && !(x->constant->trained && x->constant->uses > 1)) {
        turned_value->constant = turned(im, x->constant);
        return turned_value;
    }
    turned_value->constant = NULL;
    turned_value->stated = false;
    turned_value->expression = x->shape.batch >= 0 ? text_expression(im, ATOM, "%s", operand(im, x, ATOM))
                                                   : text_expression(im, ATOM, "transpose(%s)", operand(im, x, OR));
    turned_value->expression.extents = text_extents(&turned_value->shape);
    turned_value->expression.depth = 0;
    return turned_value;
}

static bool is_bias(const Value *c, int64_t outputs) {
    const Tensor *tensor = c ? c->constant : NULL;
    return tensor && tensor->element == REAL && tensor->count == outputs && tensor->extents.rank > 0 &&
           tensor->extents.size[tensor->extents.rank - 1] == outputs;
}

static void add_scaled(Importer *im, Node *node, Value *c, double beta) {
    Value product = *node->output[0];
    Extents one, other;
    product.uses = 1;
    product.output = false;
    const Shape shape = broadcast(im, &product.shape, &c->shape);
    if (!extents_same(&shape.all, &product.shape.all))
        refuse(im, "its input 2 is %s, and the product %s", shape_text(im, &c->shape), shape_text(im, &product.shape));
    const char *text = operand_beside(im, &product, &shape, SUM, &one),
               *added = operand_beside(im, c, &shape, PRODUCT, &other);
    Expression e = beta == 1 ? text_expression(im, SUM, "%s + %s", text, added)
                             : text_expression(im, SUM, "%s + %s * %s", text, number_text(im, beta), added);
    give(im, node, 0, REAL, &shape, e);
}

void gemm_rule(Importer *im, Node *node) {
    Value *a = node->input[0], *b = node->input[1], *c = node->inputs > 2 ? node->input[2] : NULL;
    const double alpha = real_attribute(im, node, "alpha", 1), beta = real_attribute(im, node, "beta", 1);
    const bool turn_a = int_attribute(im, node, "transA", 0) != 0, turn_b = int_attribute(im, node, "transB", 0) != 0;
    if (a->shape.all.rank != 2 || b->shape.all.rank != 2)
        refuse(im, "its operands are %s and %s, and not two matrices", shape_text(im, &a->shape),
               shape_text(im, &b->shape));
    a = turn_a ? transposed_operand(im, a) : a;
    const Tensor *matrix = b->constant;
    const int64_t inputs = matrix ? matrix->extents.size[turn_b ? 1 : 0] : 0,
                  outputs = matrix ? matrix->extents.size[turn_b ? 0 : 1] : 0;
    if (is_own_matrix(matrix) && alpha == 1 && (!c || (beta == 1 && is_bias(c, outputs))) && a->shape.batch != 1 &&
        !a->constant) {
        const Extents flat = {.rank = 1, .size = {outputs}};
        Shape shape = a->shape;
        if (inputs != shape.all.size[1])
            refuse(im, "a product of %s and %s: %lld columns meet %lld rows", shape_text(im, &a->shape),
                   shape_text(im, &b->shape), (long long)shape.all.size[1], (long long)inputs);
        shape.all.size[1] = outputs;
        give(im, node, 0, REAL, &shape,
             linear_expression(im, a, matrix, turn_b, c ? tensor_as(im, c->constant, &flat) : NULL));
        return;
    }
    give_product(im, node, a, turn_b ? transposed_operand(im, b) : b);
    if (alpha != 1) {
        Value product = *node->output[0];
        product.uses = 1;
        product.output = false;
        const Extents extents = text_extents(&product.shape);
        give(
            im, node, 0, REAL, &product.shape,
            text_expression(im, PRODUCT, "%s * %s", number_text(im, alpha), operand_as(im, &product, &extents, POWER)));
        node->output[0]->expression.depth = 0;
    }
    if (c && beta != 0)
        add_scaled(im, node, c, beta);
}

/* ---- Einsum ---- */

static int term_length(const char *term) {
    return (int)strspn(term, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
}

typedef struct Letters {
    int64_t size[128]; /* by letter; 0: it stands nowhere */
    char batch;        /* 0: none */
} Letters;

static void read_term(Importer *im, const Value *x, const char *term, Letters *letters) {
    if (term_length(term) != x->shape.all.rank)
        refuse(im, "its equation has another number of letters for %s", shape_text(im, &x->shape));
    for (int i = 0; i < x->shape.all.rank; i++) {
        int64_t *size = &letters->size[(int)term[i]];
        if (*size && *size != x->shape.all.size[i])
            refuse(im, "in its equation %c is %lld and %lld", term[i], (long long)*size,
                   (long long)x->shape.all.size[i]);
        *size = x->shape.all.size[i];
        if (i == x->shape.batch && letters->batch && letters->batch != term[i])
            refuse(im, "in its equation %c and %c are the batch", letters->batch, term[i]);
        letters->batch = i == x->shape.batch ? term[i] : letters->batch;
    }
}

static const char *without_letter(Importer *im, const char *equation, char letter) {
    Text text = TEXT(im->arena);
    for (const char *c = equation; *c; c++)
        if (*c != letter)
            text_putc(&text, *c);
    return text_string(&text);
}

static Shape read_result(Importer *im, const char *result, const Letters *letters) {
    Shape shape = {.batch = -1};
    bool seen[128] = {false};
    if (term_length(result) > MOST_RANK || result[term_length(result)])
        refuse(im, "the result of its equation is '%s'", shown(im, result));
    for (const char *c = result; *c; c++) {
        if (!letters->size[(int)*c] || seen[(int)*c])
            refuse(im, "in its equation %c of the result is in no operand, or twice", *c);
        seen[(int)*c] = true;
        if (*c == letters->batch)
            shape.batch = shape.all.rank;
        shape.all.size[shape.all.rank++] = letters->size[(int)*c];
    }
    if (letters->batch && shape.batch < 0)
        refuse(im, "its equation sums over the batch");
    return shape;
}

static void check_batch(Importer *im, const Node *node, const Letters *letters, const char *equation) {
    for (int i = 0; i < node->inputs; i++, equation += strcspn(equation, ",-") + 1) {
        const bool has = letters->batch && memchr(equation, letters->batch, (size_t)term_length(equation));
        if (has && node->input[i]->shape.batch < 0)
            refuse(im, "in its equation %c is the batch of one operand and not of another", letters->batch);
    }
}

void einsum_rule(Importer *im, Node *node) {
    const char *equation = without_letter(im, word_attribute(im, node, "equation", ""), ' '),
               *arrow = strstr(equation, "->"), *term = equation;
    Letters letters = {0};
    Text parts = TEXT(im->arena);
    if (!arrow || strstr(equation, ".."))
        refuse(im, "its equation is '%s'; mtc knows those with -> and without ...", shown(im, equation));
    for (int i = 0; i < node->inputs; i++) {
        read_term(im, node->input[i], term, &letters);
        term += term_length(term);
        if (*term != (i + 1 < node->inputs ? ',' : '-'))
            refuse(im, "its equation '%s' is not of %d operands", shown(im, equation), node->inputs);
        term++;
    }
    check_batch(im, node, &letters, equation);
    const Shape shape = read_result(im, arrow + 2, &letters);
    for (int i = 0; i < node->inputs; i++)
        text_printf(&parts, i ? ", %s" : "%s", operand(im, node->input[i], OR));
    const bool drops = letters.batch && letters.size[(int)letters.batch] == 1;
    give(im, node, 0, REAL, &shape,
         text_expression(im, ATOM, "einsum(\"%s\", [%s])",
                         drops ? without_letter(im, equation, letters.batch) : equation, text_string(&parts)));
}
