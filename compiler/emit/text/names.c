#include "emit/text/names.h"
#include "op/table.h"

#include <ctype.h>

/* Words of C, C++ and CUDA, macros of the headers that a program includes, and what every kernel calls its own. */
static const char reserved[] =
    "alignas alignof and asm auto bool break case catch char class const constexpr continue decltype default "
    "delete do double else enum explicit export extern false float for friend goto if inline int long main "
    "mutable namespace new noexcept not nullptr operator or private protected public real register restrict "
    "return short signed sizeof static struct switch template this throw true try typedef typename union "
    "unsigned using virtual void volatile while xor i j k b c t sum sums tile batch shared team run steps row "
    "share product i0 j0 uniform random_shift random_mirror alternating_mirror reflected next_row matmul matrix "
    "transposed gathered tensors train "
    "eval min "
    "max "
    "linux unix "
    "schedule prepare release evaluate left right out convert gate Gate read ahead Ahead row_out read_row "
    "RowAhead read_column column_out ColumnAhead row_sums column_sums leads BLOCKS rows columns ROWS COLUMNS "
    "Train Eval Tensors Batch Matrix Team complex I NULL NAN INFINITY EOF BUFSIZ RAND_MAX BATCH REPORTS TRAIN "
    "EVAL repeated Repeated run_kernel measure Measure MEASURE capture arena arena_bytes "
    "shuffle Form tensor_table field_table origin_table split_table knob_table fixed_table report_table "
    "rises_table set_input_table set_metric_table confusion_matrix kernel_table statement_table train_until "
    "train_phases eval_phases measure_phases decode_phases train_kernel eval_kernel measure_kernel decode_kernel "
    "train_ends eval_ends measure_ends decode_ends TRAIN_PHASES EVAL_PHASES MEASURE_PHASES DECODE_PHASES "
    "TRAIN_SHARED EVAL_SHARED MEASURE_SHARED begin_at at_place Places EvenRows MATMUL_ROWS "
    "MATMUL_COLUMNS "
    "math_errhandling Axis Product Tile TensorTile TurnTile Shape Cut Own tiles each row_floats shared_bytes "
    "wanted_bytes kernel_bytes weights_at "
    "folds_of width_of is_tensor takes_turns is_resident MtcRun known decode draw_tokens token_graphs Decode";

bool has_word(const char *text, const char *word) {
    size_t length = strlen(word);
    for (const char *at = text; (at = strstr(at, word)); at += length) {
        bool starts = at == text || (!isalnum((unsigned char)at[-1]) && !strchr("_$", at[-1]));
        bool ends = !isalnum((unsigned char)at[length]) && at[length] != '_';
        if (starts && ends)
            return true;
    }
    return false;
}

/* A function of the library, or the type that it is called with. */
static bool is_called(const OpDef *op, const char *name) {
    return op->call && (strcmp(op->name, name) == 0 || strcmp(op->call->shape, name) == 0);
}

bool names_reserved(const char *name) {
    if (has_word(reserved, name))
        return true;
    for (int k = 0; k < op_table.count; k++)
        if ((op_table.at[k]->c && has_word(op_table.at[k]->c, name)) ||
            (op_table.at[k]->near && has_word(op_table.at[k]->near, name)) ||
            (op_table.at[k]->rounds && has_word(op_table.at[k]->rounds, name)) ||
            (op_table.at[k]->combine && has_word(op_table.at[k]->combine, name)) || is_called(op_table.at[k], name))
            return true;
    return false;
}

static bool is_taken(const Names *names, const char *name) {
    for (; names; names = names->outer)
        for (int k = 0; k < names->taken.count; k++)
            if (strcmp(names->taken.at[k], name) == 0)
                return true;
    return names_reserved(name);
}

static char *identifier(Arena *arena, const char *name) {
    bool needs_letter = !isalpha((unsigned char)*name);
    char *result = arena_printf(arena, "%s%s", needs_letter ? "v" : "", name);
    for (char *c = result; *c; c++)
        if (!isalnum((unsigned char)*c))
            *c = '_';
    return result;
}

void names_take(Names *names, const char *name) {
    VEC_PUSH(names->arena, &names->taken, name);
    if (names->ever)
        VEC_PUSH(names->arena, names->ever, name);
}

const char *names_claim_type(Names *names, const char *wanted) {
    const char *name = wanted;
    for (int k = 2; is_taken(names, name); k++)
        name = arena_printf(names->arena, "%s_%d", wanted, k);
    names_take(names, name);
    return name;
}

/* Headers own whole prefixes, "mem" and "str": a number behind the name would not do. */
static const char *claim(Names *names, const char *wanted) {
    bool defined = names->defined && names->defined(wanted);
    return names_claim_type(names, defined ? arena_printf(names->arena, "v_%s", wanted) : wanted);
}

const char *names_upper(Arena *arena, const char *name) {
    char *upper = arena_strdup(arena, name);
    for (char *c = upper; *c; c++)
        *c = (char)toupper((unsigned char)*c);
    return upper;
}

/* Constants are claimed when somebody asks for a size, after names of inner scopes: what is no constant is not all in
 * capitals, or it would hide one. */
const char *names_claim(Names *names, const char *wanted) {
    char *name = identifier(names->arena, wanted);
    if (strcmp(name, names_upper(names->arena, name)) == 0)
        for (char *c = name; *c; c++)
            *c = (char)tolower((unsigned char)*c);
    return claim(names, name);
}

const char *names_claim_constant(Names *names, const char *wanted) {
    const char *name = names_upper(names->arena, identifier(names->arena, wanted));
    return claim(names, defined_constant(name) ? arena_printf(names->arena, "%s_SIZE", name) : name);
}

/* What is computed from an index alone is one value for all of a graph, whoever named it. */
static const char *given_name(const Node *n) {
    if (!n->name)
        return n->hint;
    return n->op->cls == OP_INDEX ? n->op->name : n->name;
}

/* A number, or one for all elements: nothing is called after it. */
static const Node *constant_of(const Node *n) {
    while (n->op->cls == OP_VIEW && n->inputs == 1)
        n = n->in[0];
    return n->inputs || given_name(n) ? NULL : n;
}

/* What is done to the operand that a value is called after: 1 / x is its inverse. */
static const char *deed(const Node *n) {
    bool inverse = strcmp(n->op->name, "div") == 0 && constant_of(n->in[0]) && constant_of(n->in[0])->attr.value == 1;
    return inverse ? "inverse" : n->op->name;
}

const char *local_name(Arena *arena, const Node *n) {
    const Node *from = n;
    while (!given_name(from) && from->inputs) {
        int k = 0;
        while (k + 1 < from->inputs && constant_of(from->in[k]))
            k++;
        from = from->in[k];
    }
    const char *name = given_name(from);
    return !name || from == n ? name ? name : deed(n) : arena_printf(arena, "%s_%s", name, deed(n));
}
