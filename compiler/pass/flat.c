#include "pass/flat.h"

#include "ir/op.h"

#include <string.h>

bool is_flat(const Module *module, int weight) {
    return module->weights.at[weight].flat;
}

bool lies_within(const Module *module, int weight) {
    return module->weights.at[weight].within > 0;
}

/* ---- joining ---- */

static int64_t room_of(const Type *type) {
    return (type_elements(type) + FLAT_ALIGN - 1) / FLAT_ALIGN * FLAT_ALIGN;
}

static bool may_join(const Module *module, const Training *training, Node *const *gradient, int weight) {
    const Weight *w = &module->weights.at[weight];
    return gradient[weight] && !w->within && w->type.rank && w->type.dtype == DT_F32 &&
           !training->optimizers[training->updated_by[weight]]->whole;
}

static bool are_alike(const Training *training, int a, int b) {
    return training->updated_by[a] == training->updated_by[b] && training->decayed[a] == training->decayed[b];
}

static const char *name_of_flat(const Module *module, const Optimizer *optimizer, int first) {
    const int number = module->weights.count - first;
    return number ? arena_printf(module->arena, "%s:weights %d", optimizer->name, number + 1)
                  : arena_printf(module->arena, "%s:weights", optimizer->name);
}

/* Each that is like `first` and has room, in the order of the table. Returns their elements. */
static int64_t put_within(Module *module, const Training *training, Node *const *gradient, int first, int flat) {
    int64_t elements = 0;
    for (int i = first; i < flat; i++) {
        Weight *weight = &module->weights.at[i];
        if (weight->flat || !may_join(module, training, gradient, i) || !are_alike(training, first, i) ||
            elements + room_of(&weight->type) > INT32_MAX)
            continue;
        weight->within = flat + 1;
        weight->at = elements;
        elements += room_of(&weight->type);
    }
    return elements;
}

/* The sums of those in it lie likewise. */
static Node *sum_of_flat(Module *module, int flat) {
    const int row = module_state(module, flat, "shard_sum");
    module->states.at[row].summed = module->states.at[row].flat = true;
    for (int i = 0; i < module->weights.count; i++) {
        const Weight *weight = &module->weights.at[i];
        if (weight->within != flat + 1)
            continue;
        Weight *sum = &module->states.at[module_state(module, i, "shard_sum")];
        sum->within = row + 1;
        sum->at = weight->at;
    }
    return graph_state(module->update, row);
}

/* The arrays by weight, with rows for as many flat ones as there can be. */
typedef struct ByWeight {
    int *updated_by;
    bool *decayed;
    Node **gradient;
} ByWeight;

static ByWeight longer_arrays(Module *module, const Training *training, Node *const *gradient) {
    const size_t count = (size_t)module->weights.count;
    ByWeight all = {NEW_ARRAY(module->arena, int, 2 * count), NEW_ARRAY(module->arena, bool, 2 * count),
                    NEW_ARRAY(module->arena, Node *, 2 * count)};
    memcpy(all.updated_by, training->updated_by, count * sizeof *all.updated_by);
    memcpy(all.decayed, training->decayed, count * sizeof *all.decayed);
    memcpy(all.gradient, gradient, count * sizeof *all.gradient);
    return all;
}

/* Of those like the weight `first`. */
static void join(Module *module, const Training *training, const ByWeight *all, int first, int first_flat) {
    const int flat = module->weights.count, by = all->updated_by[first];
    const Optimizer *optimizer = training->optimizers[by];
    Weight row = {.name = name_of_flat(module, optimizer, first_flat),
                  .kind = WEIGHT_TRAINED,
                  .src = optimizer->src,
                  .of = -1,
                  .flat = true};
    VEC_PUSH(module->arena, &module->weights, row);
    const int64_t elements = put_within(module, training, all->gradient, first, flat);
    module->weights.at[flat].type = (Type){.dtype = DT_F32, .rank = 1, .dim = {elements}};
    all->updated_by[flat] = by;
    all->decayed[flat] = all->decayed[first];
    all->gradient[flat] = sum_of_flat(module, flat);
}

int join_weights(Module *module, Training *training, Node ***gradient) {
    const int first_flat = module->weights.count;
    const ByWeight all = longer_arrays(module, training, *gradient);
    training->updated_by = all.updated_by;
    training->decayed = all.decayed;
    *gradient = all.gradient;
    for (int i = 0; i < first_flat; i++)
        if (may_join(module, training, all.gradient, i))
            join(module, training, &all, i, first_flat);
    return first_flat;
}

/* ---- states ---- */

/* Of all steps, not the sum of one. */
static bool is_state_of(const Weight *state, int weight) {
    return state->of == weight && !state->summed;
}

void part_states(Module *module, int weight) {
    for (int i = 0; i < module->states.count; i++)
        if (is_state_of(&module->states.at[i], weight))
            module->states.at[i].parted = module->states.at[i].flat = true;
}

/* "m" of "adam:weights.m" */
static const char *own_name(const Module *module, const Weight *state) {
    return state->name + strlen(module->weights.at[state->of].name) + 1;
}

void states_within(Module *module, int weight) {
    const Weight *of = &module->weights.at[weight];
    const int flat = of->within - 1, count = module->states.count;
    for (int i = 0; i < count; i++) {
        if (!is_state_of(&module->states.at[i], flat))
            continue;
        const int row = module_state(module, weight, own_name(module, &module->states.at[i]));
        const Weight *whole = &module->states.at[i];
        Weight *state = &module->states.at[row];
        state->init = whole->init;
        state->parted = whole->parted;
        state->within = i + 1;
        state->at = of->at;
    }
}
