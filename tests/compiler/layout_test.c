/* Each line of the input as it is laid out, in column 4, and an empty one behind it. */
#include "emit/text/layout.h"

#include <stdio.h>

static void print_laid_out(Arena *arena, const char *text) {
    const Lexemes line = lexemes_of(arena, text);
    const LineStart *starts = lay_out(arena, &line, 4, 120);
    for (int k = 0; k < line.count; k++) {
        if (starts[k].begins)
            printf("%s%*s", k ? "\n" : "", starts[k].column, "");
        else
            printf("%s", line.at[k].spaced ? " " : "");
        printf("%.*s", line.at[k].length, line.at[k].text);
    }
    printf("\n\n");
}

int main(void) {
    static char line[4096];
    Arena *arena = arena_new();
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        print_laid_out(arena, line);
    }
    arena_free(arena);
    return 0;
}
