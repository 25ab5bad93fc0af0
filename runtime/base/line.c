#include "base/line.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

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

void mtc_line_put(MtcText *text, MtcLine *line, int width) {
    int last = last_rank(line, width);
    for (int i = 0; i < line->count; i++) {
        if (line->rank[i] <= last)
            mtc_text_add(text, "%s", line->field[i]);
        free(line->field[i]);
    }
    line->count = 0;
}
