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

static const char *without_stars(Arena *arena, const char *pattern) {
    Text text = TEXT(arena);
    for (; *pattern; pattern++)
        if (*pattern != '*')
            text_putc(&text, *pattern);
    return text_string(&text);
}

/* The weights that training can change. */
static const char **trainable_names(const Lowering *l, int *count) {
    const char **names = NEW_ARRAY(l->arena, const char *, l->module->weights.count);
    *count = 0;
    for (int i = 0; i < l->module->weights.count; i++)
        if (l->module->weights.at[i].kind != WEIGHT_BUFFER)
            names[(*count)++] = l->module->weights.at[i].name;
    return names;
}

static void matches_nothing(Lowering *l, const Value *pattern) {
    int count;
    const char **names = trainable_names(l, &count);
    const char *plain = without_stars(l->arena, pattern->string);
    diag_error(l->diag, pattern->src, "'%s' matches no weight%s", pattern->string,
               suggestion(l->arena, plain, names, count));
    bool all = count <= MAX_LISTED;
    diag_note(l->diag, pattern->src, "the weights are %s%s", name_list(l->arena, names, all ? count : MAX_LISTED),
              all ? "" : " and more");
}

static void match_pattern(Lowering *l, const Value *pattern, bool *chosen) {
    bool found = false;
    if (pattern->kind != VALUE_STRING) {
        diag_error(l->diag, pattern->src, "expected a pattern of names such as \"*.bias\", not %s",
                   value_kind_text(l->arena, pattern));
        return;
    }
    for (int i = 0; i < l->module->weights.count; i++) {
        const Weight *weight = &l->module->weights.at[i];
        if (weight->kind == WEIGHT_BUFFER || !matches(pattern->string, weight->name))
            continue;
        found = chosen[i] = true;
    }
    if (!found)
        matches_nothing(l, pattern);
}

const bool *chosen_weights(Frame *frame, const Block *train, const char *key) {
    Stmt *s = block_find(train, key);
    if (!s)
        return NULL;
    bool *chosen = NEW_ARRAY(frame->l->arena, bool, frame->l->module->weights.count);
    Value v = eval_setting(frame, s->value);
    if (v.kind == VALUE_LIST)
        for (int i = 0; i < v.count; i++)
            match_pattern(frame->l, &v.items[i], chosen);
    else if (v.kind != VALUE_ERROR)
        match_pattern(frame->l, &v, chosen);
    return chosen;
}
