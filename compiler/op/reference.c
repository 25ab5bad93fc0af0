#include "op/reference.h"

#include "op/table.h"

#include <ctype.h>

static const char *const class_title[] = {
    [OP_LEAF] = "Leaves", [OP_INDEX] = "Values by index", [OP_MAP] = "Element by element",
    [OP_VIEW] = "Views",  [OP_REDUCE] = "Reductions",     [OP_CONTRACT] = "Products",
    [OP_CALL] = "Calls",  [OP_ROOT] = "Effects",          [OP_LIBRARY] = "Library",
};

static const char *const class_text[] = {
    [OP_LEAF] = "What a step reads.",
    [OP_INDEX] = "Computed from an element's own index wherever it is needed, never stored.",
    [OP_MAP] = "Element i of the result from element i of each operand. Operands of unlike shapes are broadcast by "
               "NumPy's rule on the axes of one example. A chain of these is part of the kernel before or after it.",
    [OP_VIEW] = "Another way to index the operand; no memory moves.",
    [OP_REDUCE] = "Axes folded in a fixed order. `axis` is a number or a list of numbers, negative ones count from the "
                  "last axis; `none` is all axes of one example.",
    [OP_CONTRACT] =
        "`matmul` is the one operator that multiplies matrices. Its gradients are two more of it, and a convolution "
        "becomes one of windows.",
    [OP_CALL] =
        "Whole tensors from whole tensors, by a function of kernels_lib that is written by hand. Nothing is fused "
        "into its kernel.",
    [OP_ROOT] = "What a step leaves behind.",
    [OP_LIBRARY] = "Functions of the language that are made of the operators below: their gradients follow.",
};

static const char *const preface =
    "# Operators\n\n"
    "Written by `mtc --operators` from the table of operators. Library functions come first here, then the "
    "operators that\n"
    "they are made of, as far as a model can call them. Behind them are those that only mtc makes: dumps show them "
    "(`--emit`).\n"
    "`eps: number > 0 = 1e-5` is a number above 0, and 1e-5 where a call does not say it.\n"
    "`scale: interval in (0, 1]` is two such numbers, the least and the most; `size: pixels` the rows and columns of "
    "the\n"
    "image that comes out, one number for both or two: [rows, columns].\n";

const char *op_title(Arena *arena, const OpDef *op) {
    Text title = TEXT(arena);
    bool begins = true;
    if (op->title)
        return op->title;
    for (const char *c = op->name; *c; c++) {
        if (*c != '_')
            text_putc(&title, (char)(begins ? toupper((unsigned char)*c) : *c));
        begins = *c == '_';
    }
    return text_string(&title);
}

/* The kinds that the Python package makes classes of. */
static bool is_class(const OpDef *op) {
    return op->kind == KIND_ACTIVATION || op->kind == KIND_AUGMENTATION || op->kind == KIND_MIXTURE ||
           op->kind == KIND_LOSS || op->kind == KIND_OPTIMIZER || op->kind == KIND_SCHEDULE;
}

static void print_op(const OpDef *op, Text *out) {
    text_printf(out, "\n### %s\n\n", op->name);
    if (op->signature)
        text_printf(out, "`%s(%s)`\n\n", op->name, op->signature);
    text_printf(out, "%s\n", op->doc);
    if (op->flags & OP_NO_GRAD)
        text_puts(out, "No gradient flows through it.\n");
    if (is_class(op))
        text_printf(out, "In Python: `mtc.%s`.\n", op_title(out->arena, op));
    if (op->example)
        text_printf(out, "\n```\n%s\n```\n", op->example);
}

/* By call or by sign: each that a model can write has an example. */
static bool is_written(const OpDef *op) {
    return op->example != NULL;
}

/* The operators of a class that a model writes, or the others; `told`: what the class is has been said. */
static bool print_class(OpClass cls, bool written, bool told, Text *out) {
    bool any = false;
    for (int i = 0; i < op_table.count; i++) {
        if (op_table.at[i]->cls != cls || is_written(op_table.at[i]) != written)
            continue;
        if (!any)
            text_printf(out, "\n## %s%s\n", written ? "" : "In dumps: ", class_title[cls]);
        if (!any && !told)
            text_printf(out, "\n%s\n", class_text[cls]);
        any = true;
        print_op(op_table.at[i], out);
    }
    return any;
}

void reference_print(Text *out) {
    static const OpClass order[] = {OP_LIBRARY, OP_MAP,  OP_REDUCE, OP_CONTRACT, OP_CALL,
                                    OP_VIEW,    OP_LEAF, OP_INDEX,  OP_ROOT};
    bool told[sizeof order / sizeof *order];
    text_puts(out, preface);
    for (size_t c = 0; c < sizeof order / sizeof *order; c++)
        told[c] = print_class(order[c], true, false, out);
    for (size_t c = 0; c < sizeof order / sizeof *order; c++)
        print_class(order[c], false, told[c], out);
}
