/* The rows of operators.def. */
#include "import/fold.h"
#include "import/rules.h"

static const Operator operators[] = {
#define OPERATOR(name, first, last, least, most, attributes, rule, text, fold)                                         \
    {#name, first, last, least, most, attributes, rule, text, fold},
#include "import/operators.def"
#undef OPERATOR
};
enum { OPERATORS = sizeof operators / sizeof *operators };

static _Noreturn void unknown(Importer *im, const NodeProto *node) {
    const char *names[OPERATORS], *domain = node->domain && *node->domain ? node->domain : NULL;
    for (int i = 0; i < OPERATORS; i++)
        names[i] = operators[i].name;
    const char *nearest = domain ? NULL : nearest_name(node->op_type, names, OPERATORS);
    refuse(im,
           "mtc does not know this operator%s%s%s%s%s%s; docs/onnx.md lists those that it knows, and how to do without "
           "others",
           domain ? ", of the set '" : "", domain ? shown(im, domain) : "", domain ? "'" : "",
           nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

const Operator *operator_for(Importer *im, const NodeProto *node) {
    const bool own = !node->domain || !*node->domain || strcmp(node->domain, "ai.onnx") == 0;
    for (int i = 0; own && i < OPERATORS; i++) {
        const Operator *op = &operators[i];
        if (strcmp(op->name, node->op_type) != 0)
            continue;
        if (im->version < op->first || im->version > op->last)
            refuse(im,
                   "mtc knows this operator of versions %d to %d of the set, and the file has version %d; "
                   "onnx.version_converter makes another "
                   "version of a file",
                   op->first, op->last, im->version);
        return op;
    }
    unknown(im, node);
}

void range_rule(Importer *im, Node *node) {
    (void)node;
    refuse(im, "its numbers are computed when the model runs; mtc must know them when importing");
}
