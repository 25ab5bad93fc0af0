/* What can be computed when importing is: shapes above all, of which exporters make long chains. Weights are not folded, so that
 * they train. Whole numbers may have a part for each example of the batch, as sizes have, where the file leaves open how many
 * there are. */
#include "import/fold.h"

#include <math.h>

/* ---- numbers ---- */

/* n + batches * (how many examples a batch has) */
typedef struct Whole {
    int64_t n, batches;
} Whole;

static _Noreturn void too_large(Importer *im) {
    refuse(im, "whole numbers that are computed when importing pass 64 bits");
}

static _Noreturn void no_symbol(Importer *im) {
    refuse(im, "how many examples a batch has is computed with in a way that mtc does not follow; export the model "
               "with a batch of 1");
}

static Whole plain(Importer *im, Whole a) {
    if (a.batches)
        no_symbol(im);
    return a;
}

static int64_t sum(Importer *im, int64_t a, int64_t b) {
    int64_t result;
    if (__builtin_add_overflow(a, b, &result))
        too_large(im);
    return result;
}

static int64_t times(Importer *im, int64_t a, int64_t b) {
    int64_t result;
    if (__builtin_mul_overflow(a, b, &result))
        too_large(im);
    return result;
}

static Whole add(Importer *im, Whole a, Whole b) {
    return (Whole){sum(im, a.n, b.n), sum(im, a.batches, b.batches)};
}

static Whole multiply(Importer *im, Whole a, Whole b) {
    if (a.batches && b.batches)
        no_symbol(im);
    return (Whole){times(im, a.n, b.n), sum(im, times(im, a.n, b.batches), times(im, a.batches, b.n))};
}

static Whole subtract(Importer *im, Whole a, Whole b) {
    return add(im, a, multiply(im, b, (Whole){-1, 0}));
}

static Whole divide(Importer *im, Whole a, Whole b) {
    const int64_t by = plain(im, b).n;
    if (by == 0)
        refuse(im, "whole numbers are divided by 0");
    if (by == -1)
        return subtract(im, (Whole){0, 0}, a);
    if (a.batches && (a.batches % by || a.n % by))
        no_symbol(im);
    return (Whole){a.n / by, a.batches / by};
}

/* With the sign of the divisor; with that of the dividend where the node says fmod. */
static Whole remainder_of(Importer *im, Whole a, Whole b) {
    const int64_t by = plain(im, b).n, n = plain(im, a).n;
    if (by == 0)
        refuse(im, "the remainder of a division by 0 is asked for");
    const int64_t rest = by == -1 ? 0 : n % by;
    const bool as_dividend = int_attribute(im, im->at, "fmod", 0) != 0;
    return (Whole){!as_dividend && rest && (rest < 0) != (by < 0) ? rest + by : rest, 0};
}

static Whole power(Importer *im, Whole a, Whole b) {
    Whole result = {1, 0};
    const int64_t times_it = plain(im, b).n;
    if (times_it < 0 || times_it > 64)
        refuse(im, "a whole number is raised to the power %lld", (long long)times_it);
    for (int64_t i = 0; i < times_it; i++)
        result = multiply(im, result, a);
    return result;
}

static Whole smaller(Importer *im, Whole a, Whole b) {
    return plain(im, a).n < plain(im, b).n ? a : b;
}

static Whole larger(Importer *im, Whole a, Whole b) {
    return plain(im, a).n > plain(im, b).n ? a : b;
}

/* A size with the batch is unlike any that is a number. */
static Whole equal(Importer *im, Whole a, Whole b) {
    (void)im;
    return (Whole){a.n == b.n && a.batches == b.batches, 0};
}

static Whole less(Importer *im, Whole a, Whole b) {
    return (Whole){plain(im, a).n < plain(im, b).n, 0};
}

static Whole at_most(Importer *im, Whole a, Whole b) {
    return (Whole){plain(im, a).n <= plain(im, b).n, 0};
}

static Whole greater(Importer *im, Whole a, Whole b) {
    return less(im, b, a);
}

static Whole at_least(Importer *im, Whole a, Whole b) {
    return at_most(im, b, a);
}

static Whole both(Importer *im, Whole a, Whole b) {
    return (Whole){plain(im, a).n && plain(im, b).n, 0};
}

static Whole either(Importer *im, Whole a, Whole b) {
    return (Whole){plain(im, a).n || plain(im, b).n, 0};
}

static Whole negative(Importer *im, Whole a, Whole b) {
    (void)b;
    return subtract(im, (Whole){0, 0}, a);
}

static Whole magnitude(Importer *im, Whole a, Whole b) {
    return plain(im, a).n < 0 ? negative(im, a, b) : a;
}

static Whole opposite(Importer *im, Whole a, Whole b) {
    (void)b;
    return (Whole){!plain(im, a).n, 0};
}

static double add_real(double a, double b) {
    return a + b;
}
static double subtract_real(double a, double b) {
    return a - b;
}
static double multiply_real(double a, double b) {
    return a * b;
}
static double divide_real(double a, double b) {
    return a / b;
}
static double equal_real(double a, double b) {
    return a == b;
}
static double less_real(double a, double b) {
    return a < b;
}
static double at_most_real(double a, double b) {
    return a <= b;
}
static double greater_real(double a, double b) {
    return a > b;
}
static double at_least_real(double a, double b) {
    return a >= b;
}
static double negative_real(double a, double b) {
    return (void)b, -a;
}
static double magnitude_real(double a, double b) {
    return (void)b, fabs(a);
}
static double root_real(double a, double b) {
    return (void)b, sqrt(a);
}
static double floor_real(double a, double b) {
    return (void)b, floor(a);
}
static double ceiling_real(double a, double b) {
    return (void)b, ceil(a);
}
static double inverse_real(double a, double b) {
    return (void)b, 1 / a;
}
static double exp_real(double a, double b) {
    return (void)b, exp(a);
}
static double log_real(double a, double b) {
    return (void)b, log(a);
}

/* NULL: not of such numbers. */
static const struct Arithmetic {
    const char *name;
    Whole (*whole)(Importer *im, Whole a, Whole b);
    double (*real)(double a, double b);
    bool condition; /* is the result */
} arithmetic[] = {{"Add", add, add_real, false},
                  {"Sub", subtract, subtract_real, false},
                  {"Mul", multiply, multiply_real, false},
                  {"Div", divide, divide_real, false},
                  {"Mod", remainder_of, NULL, false},
                  {"Pow", power, pow, false},
                  {"Min", smaller, fmin, false},
                  {"Max", larger, fmax, false},
                  {"Equal", equal, equal_real, true},
                  {"Less", less, less_real, true},
                  {"LessOrEqual", at_most, at_most_real, true},
                  {"Greater", greater, greater_real, true},
                  {"GreaterOrEqual", at_least, at_least_real, true},
                  {"And", both, NULL, true},
                  {"Or", either, NULL, true},
                  {"Not", opposite, NULL, true},
                  {"Neg", negative, negative_real, false},
                  {"Abs", magnitude, magnitude_real, false},
                  {"Sqrt", NULL, root_real, false},
                  {"Floor", NULL, floor_real, false},
                  {"Ceil", NULL, ceiling_real, false},
                  {"Reciprocal", NULL, inverse_real, false},
                  {"Exp", NULL, exp_real, false},
                  {"Log", NULL, log_real, false}};

/* ---- element by element ---- */

/* Of element i of a result, the place of the operand's element that is stretched to it. */
static int64_t stretched_place(const Extents *result, const Extents *operand, int64_t i) {
    int64_t place = 0, apart = 1;
    for (int back = 0; back < result->rank; back++) {
        const int64_t size = result->size[result->rank - 1 - back], at = i % size;
        i /= size;
        if (back >= operand->rank)
            continue;
        const int64_t own = operand->size[operand->rank - 1 - back];
        place += own == 1 ? 0 : at * apart;
        apart *= own;
    }
    return place;
}

static Whole whole_at(const Tensor *tensor, int64_t i) {
    return (Whole){tensor->whole[i], tensor->batches ? tensor->batches[i] : 0};
}

static void put_whole(Importer *im, Tensor *tensor, int64_t i, Whole number) {
    tensor_wholes(im, tensor)[i] = number.n;
    if (number.batches && !tensor->batches)
        tensor->batches = NEW_ARRAY(im->arena, int64_t, tensor->count + 1);
    if (tensor->batches)
        ((int64_t *)(uintptr_t)tensor->batches)[i] = number.batches;
}

/* Element `from` of the one becomes element `to` of the other. */
static void copy_element(Importer *im, Tensor *result, int64_t to, const Tensor *tensor, int64_t from) {
    if (tensor->element == REAL)
        tensor_reals(im, result)[to] = tensor->real[from];
    else
        put_whole(im, result, to, whole_at(tensor, from));
}

static Extents stretched_extents(Importer *im, const Tensor *a, const Tensor *b) {
    const Shape one = plain_shape(a->extents.rank, a->extents.size),
                other = plain_shape(b->extents.rank, b->extents.size);
    return broadcast(im, &one, &other).all;
}

static Tensor *pair(Importer *im, const struct Arithmetic *op, const Tensor *a, const Tensor *b) {
    const bool real = a->element == REAL;
    const Extents extents = stretched_extents(im, a, b);
    Tensor *result = tensor_new(im, op->condition ? CONDITION : a->element, &extents);
    if (real != (b->element == REAL))
        refuse(im, "operands are of different types");
    for (int64_t i = 0; i < result->count; i++) {
        const int64_t x = stretched_place(&extents, &a->extents, i), y = stretched_place(&extents, &b->extents, i);
        if (!real)
            put_whole(im, result, i, op->whole(im, whole_at(a, x), whole_at(b, y)));
        else if (op->condition)
            put_whole(im, result, i, (Whole){op->real(a->real[x], b->real[y]) != 0, 0});
        else
            tensor_reals(im, result)[i] = (float)op->real(a->real[x], b->real[y]);
    }
    return result;
}

/* A table that is made of rows and columns, such as the mask of an attention, is shorter as a formula. */
static bool grows(Importer *im, const Tensor *a, const Tensor *b) {
    enum { MOST_LISTED = 1024 };
    const Extents extents = stretched_extents(im, a, b);
    const int64_t count = extents_count(im, &extents);
    return count > MOST_LISTED && count > a->count && count > b->count;
}

const Tensor *fold_arithmetic(Importer *im, Node *node) {
    const struct Arithmetic *op = NULL;
    for (size_t i = 0; i < sizeof arithmetic / sizeof *arithmetic; i++)
        if (strcmp(arithmetic[i].name, node->operator->name) == 0)
            op = &arithmetic[i];
    const Tensor *result = node->input[0]->constant;
    if (!op || (result->element == REAL ? !op->real : !op->whole))
        return NULL;
    if (node->inputs == 1)
        return pair(im, op, result, result);
    for (int i = 1; i < node->inputs; i++) {
        if (grows(im, result, node->input[i]->constant))
            return NULL;
        result = pair(im, op, result, node->input[i]->constant);
    }
    return result;
}

const Tensor *fold_where(Importer *im, Node *node) {
    const Tensor *condition = node->input[0]->constant, *a = node->input[1]->constant, *b = node->input[2]->constant;
    const Extents beside = stretched_extents(im, a, b);
    Tensor like = {.extents = beside};
    const Extents extents = stretched_extents(im, condition, &like);
    if (condition->element == REAL || a->element != b->element)
        refuse(im, "operands are of types that do not go together");
    Tensor *result = tensor_new(im, a->element, &extents);
    for (int64_t i = 0; i < result->count; i++) {
        const Tensor *from = condition->whole[stretched_place(&extents, &condition->extents, i)] ? a : b;
        copy_element(im, result, i, from, stretched_place(&extents, &from->extents, i));
    }
    return result;
}

static void cast_element(Importer *im, Tensor *result, int64_t i, const Tensor *tensor) {
    if (result->element == REAL)
        tensor_reals(im, result)[i] = (float)plain(im, whole_at(tensor, i)).n;
    else if (tensor->element != REAL)
        put_whole(im, result, i, whole_at(tensor, i));
    else if (!(fabs((double)tensor->real[i]) < 9e18))
        refuse(im, "a constant that becomes a whole number is too large, or none");
    else
        put_whole(im, result, i, (Whole){(int64_t)tensor->real[i], 0});
}

const Tensor *fold_cast(Importer *im, Node *node) {
    const Tensor *tensor = node->input[0]->constant;
    const Element element = element_of(im, (int)int_attribute(im, node, "to", 0), "attribute to");
    if (element == tensor->element)
        return tensor;
    Tensor *result = tensor_new(im, element, &tensor->extents);
    for (int64_t i = 0; i < tensor->count; i++) {
        if (element == CONDITION)
            put_whole(im, result, i, (Whole){tensor_number(tensor, i) != 0, 0});
        else
            cast_element(im, result, i, tensor);
    }
    return result;
}

/* ---- parts ---- */

/* The elements before an axis, along it, and behind it. */
typedef struct Cut {
    int64_t outer, size, inner;
} Cut;

static Cut cut_at(const Extents *extents, int axis) {
    Cut cut = {1, extents->size[axis], 1};
    for (int i = 0; i < extents->rank; i++) {
        cut.outer *= i < axis ? extents->size[i] : 1;
        cut.inner *= i > axis ? extents->size[i] : 1;
    }
    return cut;
}

static Extents joined_extents(Importer *im, const Node *node, int axis) {
    Extents extents = node->input[0]->constant->extents;
    for (int i = 1; i < node->inputs; i++) {
        const Extents *part = &node->input[i]->constant->extents;
        Extents like = *part;
        if (part->rank == extents.rank)
            like.size[axis] = extents.size[axis];
        if (!extents_same(&like, &extents) || node->input[i]->element != node->input[0]->element)
            refuse(im, "input %d is %s, beside %s", i, sizes_text(im, part), sizes_text(im, &extents));
        extents.size[axis] += part->size[axis];
    }
    return extents;
}

const Tensor *fold_concat(Importer *im, Node *node) {
    const Tensor *first = node->input[0]->constant;
    const int axis = axis_from(im, int_attribute(im, node, "axis", 0), first->extents.rank, "attribute axis");
    const Extents extents = joined_extents(im, node, axis);
    Tensor *result = tensor_new(im, first->element, &extents);
    const Cut whole = cut_at(&extents, axis);
    int64_t begin = 0;
    for (int i = 0; i < node->inputs; i++) {
        const Tensor *part = node->input[i]->constant;
        const int64_t length = part->extents.size[axis] * whole.inner;
        for (int64_t k = 0; k < part->count; k++)
            copy_element(im, result, k / length * whole.size * whole.inner + begin + k % length, part, k);
        begin += length;
    }
    return result;
}

const Tensor *fold_gather(Importer *im, Node *node) {
    const Tensor *data = node->input[0]->constant, *index = node->input[1]->constant;
    const int axis = axis_from(im, int_attribute(im, node, "axis", 0), data->extents.rank, "attribute axis");
    const Cut cut = cut_at(&data->extents, axis);
    Shape shape = plain_shape(data->extents.rank, data->extents.size);
    if (index->element == REAL)
        refuse(im, "indices are no whole numbers");
    shape = without_axis(&shape, axis);
    for (int i = 0; i < index->extents.rank; i++)
        shape = with_axis(im, &shape, axis + i, index->extents.size[i]);
    Tensor *result = tensor_new(im, data->element, &shape.all);
    for (int64_t i = 0; i < result->count; i++) {
        const int64_t outer = i / (index->count * cut.inner), at = i / cut.inner % index->count;
        int64_t row = plain(im, whole_at(index, at)).n;
        if (row < -cut.size || row >= cut.size)
            refuse(im, "index %lld is outside of the %lld elements along axis %d", (long long)row, (long long)cut.size,
                   axis);
        row += row < 0 ? cut.size : 0;
        copy_element(im, result, i, data, (outer * cut.size + row) * cut.inner + i % cut.inner);
    }
    return result;
}

const Tensor *fold_slice_axis(Importer *im, const Tensor *tensor, int axis, int64_t begin, int64_t step,
                              int64_t count) {
    const Cut cut = cut_at(&tensor->extents, axis);
    Extents extents = tensor->extents;
    extents.size[axis] = count;
    Tensor *result = tensor_new(im, tensor->element, &extents);
    for (int64_t i = 0; i < result->count; i++) {
        const int64_t outer = i / (count * cut.inner), at = begin + i / cut.inner % count * step;
        copy_element(im, result, i, tensor, (outer * cut.size + at) * cut.inner + i % cut.inner);
    }
    return result;
}

Tensor *fold_expand(Importer *im, const Tensor *tensor, const Extents *extents) {
    Tensor *result = tensor_new(im, tensor->element, extents);
    for (int64_t i = 0; i < result->count; i++)
        copy_element(im, result, i, tensor, stretched_place(extents, &tensor->extents, i));
    return result;
}

/* ---- sums and products of shapes ---- */

const Tensor *fold_reduce(Importer *im, Node *node) {
    const Tensor *tensor = node->input[0]->constant;
    const bool product = strcmp(node->operator->name, "ReduceProd") == 0;
    int64_t axes[2 * MOST_RANK];
    const bool listed = ints_attribute(im, node, "axes", axes) || (node->inputs > 1 && node->input[1]);
    if (tensor->element == REAL || tensor->extents.rank != 1 || (listed && tensor->extents.rank > 1))
        return NULL;
    const Extents extents = {.rank = int_attribute(im, node, "keepdims", 1) != 0, .size = {1}};
    Tensor *result = tensor_new(im, WHOLE, &extents);
    Whole total = {product, 0};
    for (int64_t i = 0; i < tensor->count; i++)
        total = product ? multiply(im, total, whole_at(tensor, i)) : add(im, total, whole_at(tensor, i));
    put_whole(im, result, 0, total);
    return result;
}

const Tensor *fold_range(Importer *im, Node *node) {
    const Tensor *begin = node->input[0]->constant, *end = node->input[1]->constant, *step = node->input[2]->constant;
    if (begin->count != 1 || end->count != 1 || step->count != 1 || begin->element != end->element ||
        begin->element != step->element)
        refuse(im, "begin, end and step are three numbers of one type");
    const double from = tensor_number(begin, 0), by = tensor_number(step, 0);
    const double count = ceil((tensor_number(end, 0) - from) / by);
    if (!(fabs(count) < 1e9) || by == 0)
        refuse(im, "from %g to %g in steps of %g is no range", from, tensor_number(end, 0), by);
    const Extents extents = {.rank = 1, .size = {count > 0 ? (int64_t)count : 0}};
    Tensor *result = tensor_new(im, begin->element, &extents);
    for (int64_t i = 0; i < result->count; i++) {
        if (begin->element == REAL)
            tensor_reals(im, result)[i] = (float)(from + by * (double)i);
        else
            put_whole(im, result, i, (Whole){sum(im, begin->whole[0], times(im, step->whole[0], i)), 0});
    }
    return result;
}

/* ---- when ---- */

bool fold(Importer *im, Node *node) {
    if (!node->operator->fold)
        return false;
    for (int i = 0; i < node->inputs; i++)
        if (node->input[i] &&
            (!node->input[i]->constant || node->input[i]->constant->trained || node->input[i]->shape.batch >= 0))
            return false;
    const Tensor *result = node->operator->fold(im, node);
    if (result)
        give_constant(im, node, result);
    return result != NULL;
}
