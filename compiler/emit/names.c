#include "emit/names.h"
#include "ir/op.h"

#include <ctype.h>

/* Words of C, C++ and CUDA, macros of the headers that a program includes, and what every kernel calls its own. */
static const char *const reserved[] = {
    "alignas",     "alignof",  "and",      "asm",        "auto",        "bool",       "break",       "case",
    "catch",       "char",     "class",    "const",      "constexpr",   "continue",   "decltype",    "default",
    "delete",      "do",       "double",   "else",       "enum",        "explicit",   "export",      "extern",
    "false",       "float",    "for",      "friend",     "goto",        "if",         "inline",      "int",
    "long",        "main",     "mutable",  "namespace",  "new",         "noexcept",   "not",         "nullptr",
    "operator",    "or",       "private",  "protected",  "public",      "real",       "register",    "restrict",
    "return",      "short",    "signed",   "sizeof",     "static",      "struct",     "switch",      "template",
    "this",        "throw",    "true",     "try",        "typedef",     "typename",   "union",       "unsigned",
    "using",       "virtual",  "void",     "volatile",   "while",       "xor",        "i",           "j",
    "k",           "b",        "c",        "t",          "sum",         "sums",       "tile",        "batch",
    "shared",      "team",     "run",      "steps",      "row",         "example",    "share",       "product",
    "uniform",     "matmul",   "matrix",   "transposed", "gathered",    "tensors",    "train",       "eval",
    "min",         "max",      "linux",    "unix",       "schedule",    "prepare",    "release",     "evaluate",
    "left",        "right",    "out",      "convert",    "gate",        "Gate",       "read",        "ahead",
    "Ahead",       "row_out",  "read_row", "RowAhead",   "read_column", "column_out", "ColumnAhead", "row_sums",
    "column_sums", "leads",    "BLOCKS",   "rows",       "columns",     "ROWS",       "COLUMNS",     "Train",
    "Eval",        "Tensors",  "Batch",    "Matrix",     "Team",        "complex",    "I",           "NULL",
    "NAN",         "INFINITY", "EOF",      "BUFSIZ",     "RAND_MAX",    "BATCH",      "REPORTS",     "TRAIN",
    "EVAL"};

bool has_word(const char *text, const char *word) {
    size_t length = strlen(word);
    for (const char *at = text; (at = strstr(at, word)); at += length) {
        bool starts = at == text || (!isalnum((unsigned char)at[-1]) && !strchr("_$", at[-1]));
        bool ends = !isalnum((unsigned char)at[length]) && at[length] != '_';
        if (starts && ends)
            return true;
    }
    return false;
}

static bool is_reserved(const char *name) {
    for (size_t k = 0; k < sizeof reserved / sizeof *reserved; k++)
        if (strcmp(reserved[k], name) == 0)
            return true;
    for (int k = 0; k < op_count; k++)
        if ((op_table[k]->c && has_word(op_table[k]->c, name)) ||
            (op_table[k]->combine && has_word(op_table[k]->combine, name)))
            return true;
    return false;
}

static bool is_taken(const Names *names, const char *name) {
    for (; names; names = names->outer)
        for (int k = 0; k < names->taken.count; k++)
            if (strcmp(names->taken.at[k], name) == 0)
                return true;
    return is_reserved(name);
}

static char *identifier(Arena *arena, const char *name) {
    bool needs_letter = !isalpha((unsigned char)*name);
    char *result = arena_printf(arena, "%s%s", needs_letter ? "v" : "", name);
    for (char *c = result; *c; c++)
        if (!isalnum((unsigned char)*c))
            *c = '_';
    return result;
}

static const char *claim(Names *names, const char *wanted) {
    const char *name = wanted;
    for (int k = 2; is_taken(names, name); k++)
        name = arena_printf(names->arena, "%s_%d", wanted, k);
    VEC_PUSH(names->arena, &names->taken, name);
    return name;
}

const char *names_claim(Names *names, const char *wanted) {
    return claim(names, identifier(names->arena, wanted));
}

const char *names_claim_constant(Names *names, const char *wanted) {
    char *name = identifier(names->arena, wanted);
    for (char *c = name; *c; c++)
        *c = (char)toupper((unsigned char)*c);
    return claim(names, name);
}
