/* Attributes of a node, by name: with the type that the operator gives them, or refused. */
#include "import/importer.h"

#include <stdlib.h>

static void check_type(Importer *im, const AttributeProto *a, int type, bool given, const char *what) {
    if (a->ref_attr_name && *a->ref_attr_name)
        refuse(im, "attribute %s refers to one of a function", a->name);
    if ((a->has_type && a->type != (Onnx__AttributeProto__AttributeType)type) || !given)
        refuse(im, "attribute %s is no %s", a->name, what);
}

const AttributeProto *attribute(Importer *im, const Node *node, const char *name) {
    const AttributeProto *found = NULL;
    for (size_t i = 0; i < node->proto->n_attribute; i++) {
        const AttributeProto *a = node->proto->attribute[i];
        if (!a->name || strcmp(a->name, name) != 0)
            continue;
        if (found)
            refuse(im, "attribute %s is given twice", name);
        found = a;
    }
    return found;
}

int64_t int_attribute(Importer *im, const Node *node, const char *name, int64_t otherwise) {
    const AttributeProto *a = attribute(im, node, name);
    if (!a)
        return otherwise;
    check_type(im, a, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT, true, "whole number");
    return a->i; /* 0 may be left out */
}

double decimal(double real) {
    return (double)(float)real == real ? mtc_shortest((float)real) : real;
}

double real_attribute(Importer *im, const Node *node, const char *name, double otherwise) {
    const AttributeProto *a = attribute(im, node, name);
    if (!a)
        return otherwise;
    check_type(im, a, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT, true, "number");
    const double number = decimal(a->f);
    if (number - number != 0)
        refuse(im, "attribute %s is not finite", name);
    return number;
}

const char *word_attribute(Importer *im, const Node *node, const char *name, const char *otherwise) {
    const AttributeProto *a = attribute(im, node, name);
    if (!a)
        return otherwise;
    check_type(im, a, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING, true, "string");
    return arena_strndup(im->arena, a->s.data ? (const char *)a->s.data : "", a->s.len);
}

int ints_attribute(Importer *im, const Node *node, const char *name, int64_t *at) {
    const AttributeProto *a = attribute(im, node, name);
    if (!a)
        return 0;
    check_type(im, a, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS, true, "list of whole numbers");
    if (a->n_ints > 2 * MOST_RANK)
        refuse(im, "attribute %s has %zu numbers", name, a->n_ints);
    for (size_t i = 0; i < a->n_ints; i++)
        at[i] = a->ints[i];
    return (int)a->n_ints;
}

void only_int(Importer *im, const Node *node, const char *name, int64_t only) {
    const int64_t given = int_attribute(im, node, name, only);
    if (given != only)
        refuse(im, "attribute %s is %lld; mtc knows it as %lld alone", name, (long long)given, (long long)only);
}

void only_word(Importer *im, const Node *node, const char *name, const char *only) {
    const char *given = word_attribute(im, node, name, only);
    if (strcmp(given, only) != 0)
        refuse(im, "attribute %s is \"%s\"; mtc knows it as \"%s\" alone", name, shown(im, given), only);
}
