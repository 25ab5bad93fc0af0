/* Signatures. They are part of the compiler: what is wrong in one is an internal error. */
#include "op/signature.h"

#include "support/text.h"

#include <ctype.h>
#include <stdlib.h>

static const char *skip_spaces(const char *at) {
    return at + strspn(at, " ");
}

static bool take(const char **at, const char *word) {
    size_t length = strlen(word);
    if (strncmp(*at, word, length) != 0)
        return false;
    *at = skip_spaces(*at + length);
    return true;
}

static double parse_number(const char **at) {
    char *end;
    double number = strtod(*at, &end);
    ENSURE(end != *at);
    *at = skip_spaces(end);
    return number;
}

static const char *parse_string(Arena *arena, const char **at) {
    size_t length = 0;
    while ((*at)[length] != '"')
        length += (*at)[length] == '\\' ? 2 : 1;
    const char *string = arena_strndup(arena, *at, length);
    *at = skip_spaces(*at + length + 1);
    return string;
}

static Value parse_default(Arena *arena, const char **at) {
    if (take(at, "none"))
        return (Value){.kind = VALUE_NONE};
    if (take(at, "true"))
        return (Value){.kind = VALUE_BOOL, .number = 1};
    if (take(at, "false"))
        return (Value){.kind = VALUE_BOOL};
    if (take(at, "\""))
        return (Value){.kind = VALUE_STRING, .string = parse_string(arena, at)};
    return (Value){.kind = VALUE_NUMBER, .number = parse_number(at)};
}

/* "> 0", ">= 0", "in [0, 1)", "in (0, 1]", or nothing: false. */
static bool parse_bounds(const char **at, Bounds *bounds) {
    *bounds = (Bounds){.high = INFINITY};
    bool reaches = take(at, ">="), interval = !reaches && take(at, "in ");
    bounds->above = !reaches && !interval && take(at, ">");
    if (interval) {
        bounds->above = take(at, "(");
        ENSURE(bounds->above || take(at, "["));
    }
    if (reaches || interval || bounds->above)
        bounds->low = parse_number(at);
    if (interval) {
        ENSURE(take(at, ","));
        bounds->high = parse_number(at);
        bounds->below = take(at, ")");
        ENSURE(bounds->below || take(at, "]"));
    }
    return reaches || interval || bounds->above;
}

static const char *parse_word(Arena *arena, const char **at) {
    size_t length = 0;
    while (isalnum((unsigned char)(*at)[length]) || (*at)[length] == '_')
        length++;
    ENSURE(length > 0);
    const char *word = arena_strndup(arena, *at, length);
    *at = skip_spaces(*at + length);
    return word;
}

/* "a" or "b" */
static void parse_words(Arena *arena, const char **at, Parameter *p) {
    VEC(const char *) words = {0};
    do {
        ENSURE(take(at, "\""));
        VEC_PUSH(arena, &words, parse_string(arena, at));
    } while (take(at, "or "));
    p->kind = "word";
    p->words = words.at;
    p->word_count = words.count;
}

static void parse_kind(Arena *arena, const char **at, Parameter *p) {
    if (**at == '"')
        parse_words(arena, at, p);
    else
        p->kind = parse_word(arena, at);
}

static Parameter parse_parameter(Arena *arena, const char **at) {
    Parameter p = {.name = parse_word(arena, at), .required = true};
    p.rest = take(at, "...");
    if (take(at, ":"))
        parse_kind(arena, at, &p);
    p.bounded = parse_bounds(at, &p.bounds);
    if (take(at, "=")) {
        p.required = false;
        p.fallback = parse_default(arena, at);
    }
    return p;
}

const Signature *signature_parse(Arena *arena, const char *name, const char *parameters) {
    VEC(Parameter) list = {0};
    for (const char *at = parameters; *at; take(&at, ","))
        VEC_PUSH(arena, &list, parse_parameter(arena, &at));
    Signature *s = NEW(arena, Signature);
    *s = (Signature){arena_printf(arena, "%s(%s)", name, parameters), list.at, list.count};
    return s;
}

const Signature *signature_of_op(Arena *arena, const OpDef *op) {
    return signature_parse(arena, op->name, op->signature);
}

bool is_of_kind(const Parameter *parameter, const char *kind) {
    return parameter->kind && strcmp(parameter->kind, kind) == 0;
}
