/* Fields that fit a terminal's width: of progress.c's bar and summaries, and of the tables of profile and gradcheck. */
#include "base/line.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

int mtc_columns(int file) {
    struct winsize size;
    return ioctl(file, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

void mtc_line_add(MtcLine *line, int rank, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *field = (char *)mtc_memory(NULL, (size_t)length + 1);
    va_start(args, format);
    vsnprintf(field, (size_t)length + 1, format, args);
    va_end(args);
    line->rank[line->count] = rank;
    line->field[line->count++] = field;
}

/* The highest rank that has a place; fields of equal rank come and go together. */
static int last_rank(const MtcLine *line, int width) {
    for (int rank = -1;;) {
        size_t length = 0;
        int next = INT32_MAX;
        for (int i = 0; i < line->count; i++)
            if (line->rank[i] > rank && line->rank[i] < next)
                next = line->rank[i];
        for (int i = 0; i < line->count; i++)
            length += line->rank[i] <= next ? strlen(line->field[i]) : 0;
        if (next == INT32_MAX || (width && length > (size_t)width))
            return rank;
        rank = next;
    }
}

/* Adds the fields up to a rank, and frees the line. */
static void put_ranks(MtcText *text, MtcLine *line, int last) {
    for (int i = 0; i < line->count; i++) {
        if (line->rank[i] <= last)
            mtc_text_add(text, "%s", line->field[i]);
        free(line->field[i]);
    }
    line->count = 0;
}

void mtc_line_put(MtcText *text, MtcLine *line, int width) {
    put_ranks(text, line, last_rank(line, width));
}

/* ---- tables ---- */

enum { LEAST_REST = 8 }; /* of a text that is cut */

void mtc_grid_open(MtcGrid *grid, size_t longest, int beside) {
    grid->width = mtc_columns(STDOUT_FILENO);
    const int room = grid->width > beside ? grid->width - beside : 1;
    grid->name = grid->width && longest > (size_t)room ? room : (int)longest;
    grid->last = INT32_MAX;
}

/* Of names that are too long the end: they begin with what they are a part of. */
void mtc_grid_name(const MtcGrid *grid, MtcLine *line, const char *name) {
    const int length = (int)strlen(name), over = length - grid->name;
    if (over <= 0)
        mtc_line_add(line, 0, "%-*s", grid->name, name);
    else if (grid->name > 2)
        mtc_line_add(line, 0, "..%s", name + over + 2);
    else
        mtc_line_add(line, 0, "%s", name + over);
}

void mtc_grid_rest(const MtcGrid *grid, MtcLine *titles, int rank, const char *title) {
    mtc_line_add(titles, rank, "%-*s", grid->width ? LEAST_REST : 0, title);
}

void mtc_grid_titles(MtcGrid *grid, MtcLine *titles) {
    grid->last = last_rank(titles, grid->width);
    mtc_grid_row(grid, titles, NULL);
}

void mtc_grid_row(const MtcGrid *grid, MtcLine *line, const char *rest) {
    MtcText text = {NULL, 0, 0};
    put_ranks(&text, line, grid->last);
    const int length = rest ? (int)strlen(rest) : 0, room = grid->width - (int)text.length;
    if (!grid->width || length <= room)
        mtc_text_add(&text, "%s", rest ? rest : "");
    else if (room >= LEAST_REST)
        mtc_text_add(&text, "%.*s...", room - 3, rest);
    printf("%s\n", text.at ? text.at : "");
    free(text.at);
}
