/* Rows that are looked up. The language looks up by whole numbers, and computes in f32 what may pass 32 bits: such an index becomes a whole
 * number again by the row that has it for a number, the largest of `index == iota(rows)`. */
#include "import/importer.h"

enum { MOST_COMPARED = 4096 };

/* What the language makes of operators on whole numbers (docs/language.md, "Whole numbers"). */
typedef enum Effect { VIEW, CHOICE, SUM_OF, PLACE } Effect;

static const struct {
    const char *name;
    Effect effect;
} effects[] = {{"Reshape", VIEW}, {"Flatten", VIEW},  {"Squeeze", VIEW}, {"Unsqueeze", VIEW}, {"Transpose", VIEW},
               {"Slice", VIEW},   {"Identity", VIEW}, {"Split", VIEW},   {"Gather", VIEW},    {"Cast", VIEW},
               {"Clip", VIEW},    {"Where", CHOICE},  {"Add", SUM_OF},   {"Sub", SUM_OF},     {"Mul", SUM_OF},
               {"Neg", SUM_OF},   {"ArgMax", PLACE},  {"ArgMin", PLACE}, {"TopK", PLACE}};

static Width larger(Width a, Width b) {
    return a > b ? a : b;
}

static Width width_of(const Value *value) {
    const bool byte = value->type == ONNX__TENSOR_PROTO__DATA_TYPE__UINT8;
    if (!value->constant && value->element == REAL)
        return IN_REAL;
    if (value->constant || value->element == CONDITION || (value->is_field && byte))
        return BOUNDED;
    return value->is_field ? ANY_WHOLE : value->width;
}

void note_width(const Node *node, Value *value) {
    value->width = UNKNOWN_WIDTH;
    for (size_t i = 0; i < sizeof effects / sizeof *effects; i++) {
        if (strcmp(node->proto->op_type, effects[i].name) != 0)
            continue;
        const Effect effect = effects[i].effect;
        const int first = effect == CHOICE ? 1 : 0, last = effect == VIEW || effect == PLACE ? 0 : node->inputs - 1;
        Width width = BOUNDED;
        for (int k = first; k <= last && effect != PLACE; k++)
            width = larger(width, node->input[k] ? width_of(node->input[k]) : BOUNDED);
        value->width = effect == SUM_OF && width == ANY_WHOLE ? IN_REAL : width;
    }
}

const char *row_text(Importer *im, Value *index, int64_t rows) {
    const Width width = width_of(index);
    Extents longer = text_extents(&index->shape);
    if (width < UNKNOWN_WIDTH || (width == UNKNOWN_WIDTH && rows > MOST_COMPARED))
        return operand(im, index, OR);
    if (rows > MOST_COMPARED)
        refuse(im,
               "it looks up one of %lld rows by an index that the language computes in f32, as it may pass 32 bits; "
               "mtc makes a whole "
               "number of it again for %d rows at most. Let the index be an input of the network: it is then a class "
               "of the data",
               (long long)rows, MOST_COMPARED);
    if (longer.rank >= MOST_RANK - 1)
        refuse(im, "its indices have %d axes", longer.rank);
    longer.size[longer.rank++] = 1;
    return arena_printf(im->arena, "argmax(%s == iota(%lld))", operand_as(im, index, &longer, SUM), (long long)rows);
}
