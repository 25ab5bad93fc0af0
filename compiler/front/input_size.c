/* Layers elsewhere are told the size of their input before anything else: conv2d(x, 1, 8, 3). Here it is known, and each number
 * that follows would mean what stands one place before. Where such a call is one of ours too, there is a doubt. */
#include "front/arguments.h"
#include "front/lower.h"

#include <math.h>

static const double FEW_LAYERS = 4, SMALL_KERNEL = 4, LARGE_KERNEL = 16, LARGE_EPS = 1;

/* The number that stands there without a name; NaN: none does. */
static double number_in_place(const Expr *call, const Value *args, int index) {
    bool in_place = index < call->args.count && !call->args.at[index].name.text && index < call->signature->count;
    return in_place && args[index].kind == VALUE_NUMBER ? args[index].number : NAN;
}

/* Kernels are small or odd; those of patches, and of steps in time, are a multiple of the stride. */
static bool is_odd_kernel(const Expr *call, const Value *args, int index) {
    const double kernel = args[index].number, stride = number_in_place(call, args, index + 1);
    return kernel > SMALL_KERNEL && fmod(kernel, 2) == 0 && kernel != stride &&
           (fmod(kernel, stride) != 0 || kernel >= LARGE_KERNEL) && stride >= 1;
}

static bool is_many_layers(const Expr *call, const Value *args, int index) {
    (void)call;
    return args[index].number > FEW_LAYERS;
}

static bool is_large_eps(const Expr *call, const Value *args, int index) {
    (void)call;
    return args[index].number >= LARGE_EPS;
}

/* What the parameter that may have been given another number is called, and the one before it if that has to be the size of
 * the input along its first axis or its last. */
static const struct {
    const char *parameter, *before;
    bool last;
    bool (*is_odd)(const Expr *call, const Value *args, int index);
} habits[] = {
    {"kernel", "out", false, is_odd_kernel},
    {"layers", "units", true, is_many_layers},
    {"eps", NULL, false, is_large_eps},
};

static bool is_input_size(const Node *x, bool last, double number) {
    int axis = last ? x->type.rank - 1 : x->type.batched;
    return axis >= x->type.batched && axis < x->type.rank && (double)x->type.dim[axis] == number;
}

static bool is_doubtful(const Expr *call, const Value *args, int index, size_t habit) {
    const Parameter *at = call->signature->at;
    const char *before = habits[habit].before;
    return strcmp(at[index].name, habits[habit].parameter) == 0 && !isnan(number_in_place(call, args, index)) &&
           (!before || (strcmp(at[index - 1].name, before) == 0 &&
                        is_input_size(args[0].node, habits[habit].last, number_in_place(call, args, index - 1)))) &&
           habits[habit].is_odd(call, args, index);
}

void doubt_input_size(Lowering *l, const Expr *call, const Value *args) {
    for (int i = 1; i < call->signature->count && args[0].kind == VALUE_TENSOR; i++)
        for (size_t k = 0; k < sizeof habits / sizeof *habits; k++) {
            if (!is_doubtful(call, args, i, k))
                continue;
            const char *name = habits[k].parameter, *number = span_text(l->arena, call->bound[i]->span);
            const char *text = arena_printf(l->arena, "this %s is '%s' of '%s'", number, name, call->name.text);
            const char *cure = arena_printf(
                l->arena,
                "the size of the input is not said, it is that of the argument%s; if it is meant, say %s = %s",
                habits[k].before ? arena_printf(l->arena, ": %s", without_input_size(l->arena, call)) : "", name,
                number);
            module_doubt(l->module, (Doubt){call->bound[i]->span, call->span, text, cure});
        }
}
