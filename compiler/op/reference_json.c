/* The table of operators for programs: an object for each that can be called. */
#include "op/reference.h"
#include "op/signature.h"
#include "op/table.h"

static const char *const kind_name[] = {
    [KIND_FUNCTION] = "function",       [KIND_ACTIVATION] = "activation",     [KIND_LOSS] = "loss",
    [KIND_METRIC] = "metric",           [KIND_OPTIMIZER] = "optimizer",       [KIND_SCHEDULE] = "schedule",
    [KIND_INITIALISER] = "initialiser", [KIND_AUGMENTATION] = "augmentation", [KIND_MIXTURE] = "mixture",
};

static void put_string(Text *out, const char *string) {
    text_putc(out, '"');
    text_visible(out, string, "\"\\");
    text_putc(out, '"');
}

static void put_member(Text *out, const char *name, const char *string) {
    text_printf(out, "\"%s\": ", name);
    put_string(out, string);
}

static void put_default(Text *out, const Value *value) {
    if (value->kind == VALUE_NUMBER)
        text_number(out, value->number);
    else if (value->kind == VALUE_BOOL)
        text_puts(out, value->number != 0 ? "true" : "false");
    else if (value->kind == VALUE_STRING)
        put_string(out, value->string);
    else
        text_puts(out, "null");
}

static void put_bounds(Text *out, const Bounds *bounds) {
    text_printf(out, ", \"low\": %g", bounds->low);
    if (isfinite(bounds->high))
        text_printf(out, ", \"high\": %g", bounds->high);
    if (bounds->above)
        text_puts(out, ", \"above\": true");
    if (bounds->below)
        text_puts(out, ", \"below\": true");
}

static void put_words(Text *out, const Parameter *p) {
    text_puts(out, ", \"words\": [");
    for (int i = 0; i < p->word_count; i++) {
        text_puts(out, i ? ", " : "");
        put_string(out, p->words[i]);
    }
    text_puts(out, "]");
}

static void put_parameter(Text *out, const Parameter *p) {
    text_puts(out, "{");
    put_member(out, "name", p->name);
    if (p->kind) {
        text_puts(out, ", ");
        put_member(out, "kind", p->kind);
    }
    if (p->words)
        put_words(out, p);
    if (p->bounded)
        put_bounds(out, &p->bounds);
    if (p->rest)
        text_puts(out, ", \"rest\": true");
    if (!p->required) {
        text_puts(out, ", \"default\": ");
        put_default(out, &p->fallback);
    }
    text_puts(out, "}");
}

static bool calls(const char *instead, const char *name) {
    const size_t length = strlen(name);
    return strncmp(instead, name, length) == 0 && instead[length] == '(';
}

static void put_synonyms(Text *out, const OpDef *op, const Synonym *synonyms) {
    const char *between = "";
    text_puts(out, ",\n  \"synonyms\": [");
    for (const Synonym *s = synonyms; s->word; s++) {
        if (!calls(s->instead, op->name))
            continue;
        text_puts(out, between);
        put_string(out, s->word);
        between = ", ";
    }
    text_puts(out, "]");
}

static void put_op(Text *out, const OpDef *op, const Synonym *synonyms) {
    const Signature *signature = signature_of_op(out->arena, op);
    text_puts(out, "{");
    put_member(out, "name", op->name);
    text_puts(out, ", ");
    put_member(out, "kind", kind_name[op->kind]);
    text_puts(out, ", ");
    put_member(out, "class", op_title(out->arena, op));
    text_puts(out, ",\n  ");
    put_member(out, "doc", op->doc);
    text_puts(out, ",\n  \"parameters\": [");
    for (int i = 0; i < signature->count; i++) {
        text_puts(out, i ? ",\n    " : "\n    ");
        put_parameter(out, &signature->at[i]);
    }
    text_puts(out, "]");
    put_synonyms(out, op, synonyms);
    text_puts(out, "}");
}

void reference_json(Text *out, const Synonym *synonyms) {
    const char *between = "[\n";
    for (int i = 0; i < op_table.count; i++) {
        if (!op_table.at[i]->signature)
            continue;
        text_puts(out, between);
        put_op(out, op_table.at[i], synonyms);
        between = ",\n";
    }
    text_puts(out, "\n]\n");
}
