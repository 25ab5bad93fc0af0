/* Numbers that are known when importing. */
#include "import/importer.h"

#include <math.h>

/* What folding may make in all: shapes and tables, not weights. */
static const int64_t MOST_FOLDED = 1 << 26;

Tensor *tensor_new(Importer *im, Element element, const Extents *extents) {
    Tensor *tensor = NEW(im->arena, Tensor);
    tensor->element = element;
    tensor->extents = *extents;
    tensor->count = extents_count(im, extents);
    if (im->at && (im->folded += (size_t)tensor->count) > (size_t)MOST_FOLDED)
        refuse(im, "constants are computed when importing, and these are too large: %s", sizes_text(im, extents));
    if (element == REAL)
        tensor->real = NEW_ARRAY(im->arena, float, tensor->count + 1);
    else
        tensor->whole = NEW_ARRAY(im->arena, int64_t, tensor->count + 1);
    return tensor;
}

float *tensor_reals(Importer *im, Tensor *tensor) {
    (void)im;
    ENSURE(tensor->element == REAL);
    return (float *)(uintptr_t)tensor->real;
}

int64_t *tensor_wholes(Importer *im, Tensor *tensor) {
    (void)im;
    ENSURE(tensor->element != REAL);
    return (int64_t *)(uintptr_t)tensor->whole;
}

double tensor_number(const Tensor *tensor, int64_t i) {
    return tensor->element == REAL ? tensor->real[i] : (double)tensor->whole[i];
}

Tensor *tensor_as(Importer *im, const Tensor *tensor, const Extents *extents) {
    Tensor *other = NEW(im->arena, Tensor);
    *other = *tensor;
    other->extents = *extents;
    other->statement = NULL;
    ENSURE(extents_count(im, extents) == tensor->count);
    return other;
}

/* For each axis of the result, how far its neighbours are apart in the tensor. */
static void permuted_steps(const Tensor *tensor, const int *order, int64_t *step) {
    int64_t apart[MOST_RANK], elements = 1;
    for (int i = tensor->extents.rank - 1; i >= 0; i--) {
        apart[i] = elements;
        elements *= tensor->extents.size[i];
    }
    for (int i = 0; i < tensor->extents.rank; i++)
        step[i] = apart[order[i]];
}

static int64_t permuted_place(const Extents *extents, const int64_t *step, int64_t i) {
    int64_t place = 0;
    for (int axis = extents->rank - 1; axis >= 0; axis--) {
        place += i % extents->size[axis] * step[axis];
        i /= extents->size[axis];
    }
    return place;
}

Tensor *tensor_permuted(Importer *im, const Tensor *tensor, const int *order) {
    int64_t step[MOST_RANK];
    Extents extents = {.rank = tensor->extents.rank};
    permuted_steps(tensor, order, step);
    for (int i = 0; i < extents.rank; i++)
        extents.size[i] = tensor->extents.size[order[i]];
    Node *const at = im->at;
    im->at = tensor->trained ? NULL : at; /* weights are as large as they are */
    Tensor *result = tensor_new(im, tensor->element, &extents);
    im->at = at;
    result->name = tensor->name;
    result->trained = tensor->trained;
    result->uses = tensor->uses;
    for (int64_t i = 0; i < tensor->count; i++) {
        const int64_t place = permuted_place(&extents, step, i);
        if (tensor->element == REAL)
            tensor_reals(im, result)[i] = tensor->real[place];
        else
            tensor_wholes(im, result)[i] = tensor->whole[place];
    }
    return result;
}

const Tensor *known_wholes(Importer *im, const Node *node, int input, const char *what) {
    const Value *value = input < node->inputs ? node->input[input] : NULL;
    if (!value)
        return NULL;
    if (!value->constant || value->constant->element == REAL)
        refuse(im, "%s are computed when the model runs; mtc must know them when importing", what);
    return value->constant;
}

int known_list(Importer *im, const Node *node, int input, const char *what, int64_t *at) {
    const Tensor *tensor = known_wholes(im, node, input, what);
    if (!tensor)
        return 0;
    if (tensor->extents.rank > 1 || tensor->count > 2 * MOST_RANK)
        refuse(im, "%s are %s, and no list of at most %d", what, sizes_text(im, &tensor->extents), 2 * MOST_RANK);
    for (int64_t i = 0; i < tensor->count; i++) {
        if (tensor->batches && tensor->batches[i])
            refuse(im, "%s depend on how many examples the batch has", what);
        at[i] = tensor->whole[i];
    }
    return (int)tensor->count;
}

double known_number(Importer *im, const Node *node, int input, double otherwise, const char *what) {
    const Value *value = input < node->inputs ? node->input[input] : NULL;
    if (!value)
        return otherwise;
    if (!value->constant || value->constant->count != 1)
        refuse(im, "%s is not one number that is known when importing", what);
    return decimal(tensor_number(value->constant, 0));
}
