/* Calls that have weights, and the names of these: the file's own where they are names of a layer's parts, as PyTorch's are. */
#include "import/importer.h"

enum { LONGEST_PATH = 90 };

const Tensor *weight_of(const Node *node, int input) {
    const Value *value = input < node->inputs ? node->input[input] : NULL;
    return value ? value->constant : NULL;
}

Layer *layer_new(Importer *im, const char *format, ...) {
    Layer *layer = NEW(im->arena, Layer);
    va_list args;
    va_start(args, format);
    layer->call = arena_vprintf(im->arena, format, args);
    va_end(args);
    layer->home = im->at->output[0]->name;
    return layer;
}

void layer_add(Layer *layer, const char *name, const Tensor *tensor) {
    int i = 0;
    while (layer->weight[i])
        i++;
    layer->weight[i] = tensor;
    layer->weight_name[i] = name;
}

Expression layer_expression(Importer *im, Layer *layer) {
    (void)im;
    return (Expression){.before = "", .layer = layer, .after = "", .strength = ATOM, .depth = 1};
}

/* ---- names ---- */

/* "fc" of tensors "fc.weight" and "fc.bias", else of the node; NULL: neither is called so. */
static const char *path_in_file(Importer *im, const Layer *layer) {
    static const char *const endings[] = {".weight", ".bias", "_weight", "_bias", ".gamma", ".beta"};
    for (int i = 0; i < 4 && layer->weight[i]; i++) {
        const char *name = layer->weight[i]->name;
        for (size_t k = 0; name && k < sizeof endings / sizeof *endings; k++) {
            const char *path = without_ending(im, name, endings[k]);
            if (path && *weight_path(im, path))
                return weight_path(im, path);
        }
    }
    return module_path(im, layer->home);
}

static bool is_free(Importer *im, const Layer *layer, const char *path) {
    bool free = !names_find(im->weight_names, path);
    for (int i = 0; i < 4 && layer->weight[i]; i++)
        free &= !names_find(im->weight_names, arena_printf(im->arena, "%s.%s", path, layer->weight_name[i]));
    return free;
}

/* A path that no other layer has, with the weights' names behind it. */
static const char *free_path(Importer *im, const Layer *layer, const char *wanted) {
    const char *path = arena_printf(im->arena, "%.*s", LONGEST_PATH, wanted);
    for (int i = 1; !is_free(im, layer, path); i++)
        path = arena_printf(im->arena, "%.*s_%d", LONGEST_PATH, wanted, i);
    names_add(im, im->weight_names, path, (void *)(uintptr_t)path);
    return path;
}

const char *layer_identifier(Importer *im, const Layer *layer) {
    const char *path = path_in_file(im, layer);
    if (!path)
        return NULL;
    char *word = arena_strdup(im->arena, layer->call);
    word[strcspn(word, "(")] = '\0';
    char *flat = arena_strdup(im->arena, path);
    for (char *c = flat; *c; c++)
        *c = *c == '.' ? '_' : *c;
    return identifier(im, flat, word);
}

void layer_take(Importer *im, const Layer *layer, Statement *s) {
    const char *wanted = path_in_file(im, layer);
    s->path = free_path(im, layer, wanted ? wanted : s->names);
    s->call = arena_printf(im->arena, "%s%s", layer->call, layer->may_bias && !layer->has_bias ? ", bias = false" : "");
    s->first_weight = im->weights.count;
    for (; s->weights < 4 && layer->weight[s->weights]; s->weights++) {
        const int i = s->weights;
        Weight weight = {arena_printf(im->arena, "%s.%s", s->path, layer->weight_name[i]), layer->weight[i], false};
        names_add(im, im->weight_names, weight.name, (void *)(uintptr_t)weight.name);
        VEC_PUSH(im->arena, &im->weights, weight);
    }
}

/* ---- weights in statements of their own ---- */

static const char *state_weight(Importer *im, Tensor *tensor, const Extents *extents, const char *otherwise) {
    const char *called = tensor->name ? tensor->name : otherwise, *path = weight_path(im, called);
    const char *name = identifier(im, called, "w");
    path = unique(im, im->weight_names, *path ? path : name, LONGEST_PATH);
    Weight weight = {path, tensor_as(im, tensor, extents), !tensor->trained};
    const Statement statement = {.names = name,
                                 .before = "",
                                 .call = arena_printf(im->arena, "weight(%s", sizes_text(im, extents)),
                                 .after = "",
                                 .path = path,
                                 .first_weight = im->weights.count,
                                 .weights = 1,
                                 .node = -1};
    VEC_PUSH(im->arena, &im->weights, weight);
    VEC_PUSH(im->arena, &im->statements, statement);
    tensor->statement = name;
    tensor->stated = *extents;
    return name;
}

const char *weight_statement(Importer *im, const Tensor *tensor, const Extents *extents, const char *otherwise) {
    Tensor *t = (Tensor *)(uintptr_t)tensor;
    const Extents one = {.rank = 1, .size = {1}};
    if (!t->statement)
        state_weight(im, t, extents->rank ? extents : &one, otherwise);
    if (extents_same(&t->stated, extents))
        return t->statement;
    return extents->rank == 1 ? arena_printf(im->arena, "flatten(%s)", t->statement)
                              : arena_printf(im->arena, "reshape(%s, %s)", t->statement, sizes_text(im, extents));
}

const Tensor *filled(Importer *im, int64_t count, double number) {
    const Extents extents = {.rank = 1, .size = {count}};
    Tensor *tensor = tensor_new(im, REAL, &extents);
    for (int64_t i = 0; i < count; i++)
        tensor_reals(im, tensor)[i] = (float)number;
    return tensor;
}
