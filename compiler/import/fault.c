/* Refusals and warnings, with the node that they are about. */
#include "import/importer.h"

#include <stdarg.h>

static const char *place_of(Importer *im, const Node *node) {
    if (!node)
        return "";
    const char *name = node->proto->name && *node->proto->name ? node->proto->name
                       : node->proto->n_output                 ? node->proto->output[0]
                                                               : "";
    return arena_printf(im->arena, "node %d, '%s' (%s): ", node->number, shown(im, name),
                        shown(im, node->proto->op_type));
}

void refuse(Importer *im, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const char *what = arena_vprintf(im->arena, format, args);
    va_end(args);
    im->why = arena_printf(im->arena, "%s%s", place_of(im, im->at), what);
    longjmp(im->refused, 1);
}

void warn_later(Importer *im, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const char *warning = arena_printf(im->arena, "%s%s", place_of(im, im->at), arena_vprintf(im->arena, format, args));
    va_end(args);
    VEC_PUSH(im->arena, &im->warnings, warning);
}
