/* For test_tree.py: prints a form again, as it is read or with operands in its places, whether that is the same tree, and how many
 * parts it has; then with sums of whole numbers computed. */
#include "ir/tree.h"

#include <stdio.h>

enum { MOST = 10 };

int main(int argc, char **argv) {
    Arena *arena = arena_new();
    const Tree *operands[MOST], *form = tree_read(arena, argv[1]);
    int count = argc - 2 < MOST ? argc - 2 : MOST;
    for (int k = 0; k < count; k++)
        operands[k] = tree_read(arena, argv[2 + k]);
    const Tree *filled = count ? tree_with(arena, form, operands, count) : tree_read(arena, tree_text(arena, form));
    const char *same = tree_same(form, filled) ? "same" : "another";
    printf("%s\n%s\n%d\n", tree_text(arena, filled), same, tree_nodes(filled));
    printf("%s\n", tree_text(arena, tree_summed(arena, filled)));
    arena_free(arena);
    return 0;
}
