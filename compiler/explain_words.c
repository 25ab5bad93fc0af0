#include "explain_words.h"

#include "ir/op.h"

#include <string.h>

void fill(Text *out, int indent, const char *words) {
    enum { WIDTH = 80 };
    int at = 0;
    for (const char *word = words + strspn(words, " "); *word;) {
        const int length = (int)strcspn(word, " ");
        if (at && at + 1 + length > WIDTH) {
            text_putc(out, '\n');
            at = 0;
            indent += at == 0 && words ? 2 : 0;
            words = NULL;
        }
        text_printf(out, "%*s%.*s", at ? 1 : indent, "", length, word);
        at += (at ? 1 : indent) + length;
        word += length + (int)strspn(word + length, " ");
    }
    text_putc(out, '\n');
}

bool nodes_have(const Kernel *kernel, const Node *n) {
    for (int i = 0; i < kernel->nodes.count; i++)
        if (kernel->nodes.at[i] == n)
            return true;
    return false;
}

static int count_class(const Kernel *kernel, OpClass cls) {
    int count = 0;
    for (int i = 0; i < kernel->nodes.count; i++)
        count += kernel->nodes.at[i]->op->cls == cls;
    return count;
}

static const char *plural(int count) {
    return count == 1 ? "" : "s";
}

static void say_product(const Kernel *kernel, Text *out) {
    const int after = kernel->nodes.count - 1 - kernel->folds.count - (kernel->side != NULL);
    text_printf(out, "a product of %lld x %lld outputs, each of %lld terms", (long long)(kernel->batches * kernel->m),
                (long long)kernel->n, (long long)kernel->k);
    if (kernel->a.computed || kernel->b.computed)
        text_puts(out, ", whose operand is computed from the data as it is read");
    if (after)
        text_printf(out, "; %d operation%s on its outputs before they are stored", after, plural(after));
    if (kernel->folds.count)
        text_printf(out, "; %d sum%s over each %lld rows of a tile", kernel->folds.count, plural(kernel->folds.count),
                    (long long)kernel->fold_rows);
    if (kernel->side)
        text_puts(out, "; the sum over the rows of an operand, which it has in hand, rides along");
    text_putc(out, '.');
}

static void add_count(Text *out, const char **before, int count, const char *what, const char *how) {
    if (!count)
        return;
    text_printf(out, "%s%d %s%s%s", *before, count, what, plural(count), how);
    *before = ", ";
}

static void say_rows(const Kernel *kernel, Text *out) {
    const int maps = count_class(kernel, OP_MAP), folds = count_class(kernel, OP_REDUCE),
              products = count_class(kernel, OP_CONTRACT);
    text_printf(out, "%s row%s", text_grouped(out->arena, kernel->rows), kernel->rows == 1 ? "" : "s");
    if (type_elements(&kernel->full) > kernel->rows)
        text_printf(out, " of %s", text_grouped(out->arena, type_elements(&kernel->full) / kernel->rows));
    const char *before = ": ";
    add_count(out, &before, products, "product", " with a weight so small that each row reads all of it");
    add_count(out, &before, folds, "fold", " of a row (a sum, the largest)");
    add_count(out, &before, maps, "operation", " element by element");
    text_putc(out, '.');
}

void say_work(const Kernel *kernel, Text *out) {
    if (kernel->cls == KERNEL_CONTRACT)
        say_product(kernel, out);
    else if (kernel->cls == KERNEL_CALL)
        text_printf(out, "the function %s of the kernels library.", kernel->call->op->name);
    else
        say_rows(kernel, out);
}

void say_why_apart(const Kernel *kernel, Text *out) {
    static const char *const beside[APARTS] = {
        [APART_WHOLE_ROWS] = "because it multiplies whole rows of that product's outputs, which tiles have in pieces",
        [APART_FROM_CALL] = "which is a function of the library: nothing joins it",
        [APART_FROM_COPY] = "which only puts data in memory for others",
        [APART_OVERWRITES] = "because it writes over what kernels still to come read",
        [APART_ROWS] = "whose rows are others: no row of the one has the elements of a row of the other",
        [APART_LARGE_ROWS] = "because few rows would each have too many elements",
        [APART_OTHERS] = "because it reads numbers of other rows, which are there when that one has ended, or would "
                         "compute too much again",
        [APART_FOLDS] = "which has as many sums as a kernel may have",
        [APART_ROOM] = "whose rows have no room for another product",
        [APART_SHAPE] = "because it has not one element for each of that product's outputs",
        [APART_PLACE] = "because it reads that product's outputs at other places than its own",
        [APART_TILES] = "because its sums are not over the rows of that product's tiles"};
    static const char *const alone[APARTS] = {
        [APART_FIRST] = "It begins here: what its first value reads is data, weights and constants.",
        [APART_PRODUCT] = "It begins here: a product is cut into tiles of its own.",
        [APART_CALL] = "It begins here: the function reads whole buffers.",
        [APART_MEMORY] = "It is there because its value is read from memory, whole."};
    if (alone[kernel->apart])
        text_puts(out, alone[kernel->apart]);
    else if (beside[kernel->apart])
        text_printf(out, "Not joined with %s, %s.",
                    kernel->apart_from ? kernel->apart_from->name : "a kernel that is gone", beside[kernel->apart]);
}
