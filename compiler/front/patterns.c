/* Patterns of the names of weights, by which settings choose them. */
#include "front/lower.h"

enum { MAX_LISTED = 12 };

/* `*` stands for any characters, also none. What the last star stands for grows until the rest fits. */
static bool matches(const char *pattern, const char *name) {
    const char *star = NULL, *from = name;
    while (*name)
        if (*pattern == '*') {
            star = pattern++;
            from = name;
        } else if (*pattern == *name) {
            pattern++;
            name++;
        } else if (star) {
            pattern = star + 1;
            name = ++from;
        } else {
            return false;
        }
    return pattern[strspn(pattern, "*")] == '\0';
}

/* Training can change it. */
static bool is_trainable(const Lowering *l, int weight) {
    return l->module->weights.at[weight].kind != WEIGHT_BUFFER;
}

static const char **trainable_names(const Lowering *l, int *count) {
    const char **names = NEW_ARRAY(l->arena, const char *, l->module->weights.count);
    *count = 0;
    for (int i = 0; i < l->module->weights.count; i++)
        if (is_trainable(l, i))
            names[(*count)++] = l->module->weights.at[i].name;
    return names;
}

/* What could have been meant: names, and where they have points, "h.0.*" and "*.weight". */
static const char **likely_patterns(Arena *arena, const char **names, int count, int *found) {
    VEC(const char *) all = {0};
    for (int i = 0; i < count; i++) {
        VEC_PUSH(arena, &all, names[i]);
        for (const char *point = strchr(names[i], '.'); point; point = strchr(point + 1, '.')) {
            VEC_PUSH(arena, &all, arena_printf(arena, "%.*s.*", (int)(point - names[i]), names[i]));
            VEC_PUSH(arena, &all, arena_printf(arena, "*%s", point));
        }
    }
    *found = all.count;
    return all.at;
}

/* "!h.*" */
static bool takes_away(const Value *pattern) {
    return pattern->kind == VALUE_STRING && *pattern->string == '!';
}

/* A layer has its name in those of its weights: "c" may mean "c.*". */
static const char *meant(Arena *arena, const char *pattern, const char **names, int count) {
    const size_t length = strlen(pattern);
    int likely_count;
    for (int i = 0; i < count && length; i++)
        if (strncmp(names[i], pattern, length) == 0 && names[i][length] == '.')
            return arena_printf(arena, "; did you mean '%s.*'?", pattern);
    const char **likely = likely_patterns(arena, names, count, &likely_count);
    return suggestion(arena, pattern, likely, likely_count);
}

static void matches_nothing(Lowering *l, const Value *pattern) {
    int count;
    const char **names = trainable_names(l, &count);
    diag_error(l->diag, pattern->src, "'%s' matches no weight%s", pattern->string,
               meant(l->arena, pattern->string + takes_away(pattern), names, count));
    bool all = count <= MAX_LISTED;
    diag_note(l->diag, pattern->src, "the weights are %s%s", name_list(l->arena, names, all ? count : MAX_LISTED),
              all ? "" : " and more");
}

/* What the pattern matches is set to `choice`. */
static void match_pattern(Lowering *l, const Value *pattern, bool choice, bool *chosen) {
    bool found = false;
    if (pattern->kind != VALUE_STRING) {
        diag_error(l->diag, pattern->src, "expected a pattern of names such as \"*.bias\", not %s",
                   value_kind_text(l->arena, pattern));
        return;
    }
    for (int i = 0; i < l->module->weights.count; i++) {
        if (!is_trainable(l, i) || !matches(pattern->string + takes_away(pattern), l->module->weights.at[i].name))
            continue;
        found = true;
        chosen[i] = choice;
    }
    if (!found)
        matches_nothing(l, pattern);
}

/* Those that are taken away come last, wherever they stand: without any others, from all weights. */
void match_patterns(Lowering *l, const Value *patterns, bool *chosen) {
    const bool several = patterns->kind == VALUE_LIST;
    const Value *items = several ? patterns->items : patterns;
    int count = several ? patterns->count : patterns->kind != VALUE_ERROR, less = 0;
    for (int i = 0; i < count; i++)
        less += takes_away(&items[i]);
    for (int i = 0; i < l->module->weights.count; i++)
        chosen[i] = less && less == count && is_trainable(l, i);
    for (int i = 0; i < count; i++)
        if (!takes_away(&items[i]))
            match_pattern(l, &items[i], true, chosen);
    for (int i = 0; i < count; i++)
        if (takes_away(&items[i]))
            match_pattern(l, &items[i], false, chosen);
}

const bool *chosen_weights(Frame *frame, const Block *train, const char *key) {
    Stmt *s = block_find(train, key);
    if (!s)
        return NULL;
    bool *chosen = NEW_ARRAY(frame->l->arena, bool, frame->l->module->weights.count);
    Value v = eval_setting(frame, s->value);
    match_patterns(frame->l, &v, chosen);
    return chosen;
}
