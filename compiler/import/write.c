/* The result: the text, with what is to be edited said where it stands, and the weights beside it. */
#include "import/importer.h"
#include "runtime/base/file.h"
#include "runtime/base/safetensors.h"
#include "support/file.h"
#include "support/output.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const Span nowhere = {0};

/* ---- rows of a block, with their signs beneath each other ---- */

typedef struct Row {
    const char *left, *sign, *right;
} Row;

typedef VEC(Row) Rows;

static void add_row(Importer *im, Rows *rows, const char *left, const char *sign, const char *right) {
    Row row = {left, sign, right};
    VEC_PUSH(im->arena, rows, row);
}

static void put_rows(Text *out, const Rows *rows) {
    int width = 0;
    for (int i = 0; i < rows->count; i++)
        width = (int)strlen(rows->at[i].left) > width ? (int)strlen(rows->at[i].left) : width;
    for (int i = 0; i < rows->count; i++)
        text_printf(out, "  %-*s %s %s\n", width, rows->at[i].left, rows->at[i].sign, rows->at[i].right);
}

/* ---- what is predicted, and what it is compared with ---- */

typedef struct Goal {
    const char *prediction, *scores, *target;
    const char *loss, *metric; /* metric NULL: none */
    const char *type;          /* of the target */
} Goal;

const Value *scores_of(const Value *output) {
    const Node *maker = output->maker;
    const bool softmax =
        maker && (strcmp(maker->proto->op_type, "Softmax") == 0 || strcmp(maker->proto->op_type, "LogSoftmax") == 0);
    return softmax && maker->input[0]->stated ? maker->input[0] : NULL;
}

static const char *f32_text(Importer *im, const Extents *extents) {
    return extents->rank ? arena_printf(im->arena, "f32%s", sizes_text(im, extents)) : "f32";
}

static Goal goal_of(Importer *im, const Value *output) {
    const Extents extents = text_extents(&output->shape);
    const Value *scores = scores_of(output);
    Goal goal = {.prediction = output->expression.before};
    goal.scores = scores ? scores->expression.before : goal.prediction;
    if (output->element == REAL && extents.rank == 1 && extents.size[0] > 1) {
        goal.target = identifier(im, "label", "label");
        goal.type = arena_printf(im->arena, "class[%lld]", (long long)extents.size[0]);
        goal.loss = arena_printf(im->arena, "cross_entropy(%s, %s)", goal.scores, goal.target);
        goal.metric = arena_printf(im->arena, "accuracy(%s, %s)", goal.scores, goal.target);
        return goal;
    }
    goal.target = identifier(im, "target", "target");
    goal.type = f32_text(im, &extents);
    goal.loss = arena_printf(im->arena, "mse(%s, %s)", goal.prediction, goal.target);
    return goal;
}

/* ---- the blocks ---- */

static const char *field_type(Importer *im, const Value *field) {
    const Extents extents = text_extents(&field->shape);
    const char *sizes = extents.rank ? sizes_text(im, &extents) : "";
    const bool byte = field->type == ONNX__TENSOR_PROTO__DATA_TYPE__UINT8 || field->element == CONDITION;
    if (field->element == WHOLE && field->classes > 0 && field->look_ups == field->uses)
        return arena_printf(im->arena, "class[%lld]%s", (long long)field->classes, sizes);
    return arena_printf(im->arena, "%s%s", field->element == REAL ? "f32" : byte ? "u8" : "i32", sizes);
}

static void put_banner(Importer *im, Text *out, const char *weights) {
    const ModelProto *model = im->model;
    const bool made = model->producer_name && *model->producer_name;
    text_printf(out, "# Imported from %s", shown(im, path_base(im->request->input)));
    if (made)
        text_printf(out, ", made by %s", shown(im, model->producer_name));
    if (made && model->producer_version && *model->producer_version)
        text_printf(out, " %s", shown(im, model->producer_version));
    text_puts(out, ".\n");
    if (im->weights.count)
        text_printf(out, "# Its weights are in %s: ./PROGRAM predict --load %s, or --init-from %s to train on.\n",
                    shown(im, weights), shown(im, weights), shown(im, weights));
    text_puts(out, "\n");
}

static void put_data(Importer *im, Text *out, const Goal *goal) {
    Rows rows = {0};
    text_puts(out, "data {\n  # To be edited: where the examples are, and what is known of each. The last field is "
                   "what the network is to say.\n");
    add_row(im, &rows, "train", "=", "npz(\"train.npz\")");
    for (int i = 0; i < im->inputs.count; i++)
        add_row(im, &rows, im->inputs.at[i]->field, ":", field_type(im, im->inputs.at[i]));
    add_row(im, &rows, goal->target, ":", goal->type);
    put_rows(out, &rows);
    text_puts(out, "}\n\n");
}

static void put_functions(Importer *im, Text *out) {
    for (int f = 0; f < im->functions.count; f++) {
        const Function *function = &im->functions.at[f];
        Rows rows = {0};
        for (int i = 0; i < function->statements.count; i++)
            add_row(im, &rows, function->statements.at[i].names, "=", statement_text(im, &function->statements.at[i]));
        text_printf(out, "fn %s {\n", function->head);
        put_rows(out, &rows);
        text_printf(out, "  return %s\n}\n\n", function->result);
    }
}

static void put_model(Importer *im, Text *out) {
    Rows rows = {0};
    text_puts(out, "model {\n");
    for (int i = 0; i < im->statements.count; i++) {
        const Statement *statement = &im->statements.at[i];
        if (!statement->repeats) {
            add_row(im, &rows, statement->names, "=", statement_text(im, statement));
            continue;
        }
        put_rows(out, &rows);
        text_printf(out, "  %s\n    %s\n  }\n", statement->before, statement->call);
        rows.count = 0;
    }
    put_rows(out, &rows);
    text_puts(out, "}\n\n");
}

/* Patterns of the weights that the file has as constants. */
static const char *frozen_text(Importer *im) {
    Text text = TEXT(im->arena);
    for (int i = 0; i < im->weights.count; i++)
        if (im->weights.at[i].frozen)
            text_printf(&text, "%s\"%s\"", text.length ? ", " : "[", im->weights.at[i].name);
    if (text.length)
        text_puts(&text, "]");
    return text.length ? text_string(&text) : NULL;
}

static void put_train(Importer *im, Text *out, const Goal *goal) {
    Rows rows = {0};
    const char *frozen = frozen_text(im);
    text_puts(out, "train {\n  # To be edited: the loss, and how it is made smaller.\n");
    add_row(im, &rows, "loss", "=", goal->loss);
    if (goal->metric)
        add_row(im, &rows, "metric", "=", goal->metric);
    add_row(im, &rows, "predict", "=", goal->prediction);
    add_row(im, &rows, "optimizer", "=", "adam(1e-4)");
    if (frozen)
        add_row(im, &rows, "freeze", "=", frozen);
    put_rows(out, &rows);
    text_puts(out, "}\n");
}

/* ---- the weights ---- */

static void make_blob(const Weight *weight, MtcBlob *blob) {
    *blob = (MtcBlob){.name = weight->name, .dtype = "F32", .rank = weight->tensor->extents.rank};
    for (int i = 0; i < blob->rank; i++)
        blob->dim[i] = weight->tensor->extents.size[i];
    blob->size = (size_t)weight->tensor->count * sizeof(float);
}

/* As the file has them, in 32 bits. */
static const float *weight_numbers(Importer *im, const Tensor *tensor) {
    if (tensor->element == REAL)
        return tensor->real;
    float *numbers = NEW_ARRAY(im->arena, float, tensor->count + 1);
    for (int64_t i = 0; i < tensor->count; i++)
        numbers[i] = (float)tensor->whole[i];
    return numbers;
}

typedef struct Writing {
    Importer *im;
    MtcFault fault;
} Writing;

static int fill(void *user, MtcArchiveWriter *writer) {
    Writing *w = user;
    int code = 0;
    for (int i = 0; i < w->im->weights.count && !code; i++) {
        const Tensor *tensor = w->im->weights.at[i].tensor;
        const float *numbers = weight_numbers(w->im, tensor);
        code = mtc_archive_add(&w->fault, writer, numbers, (size_t)tensor->count * sizeof *numbers);
    }
    return code;
}

static int write_weights(Writing *w, const char *path) {
    const int count = w->im->weights.count;
    MtcBlob *blob = NEW_ARRAY(w->im->arena, MtcBlob, count + 1);
    for (int i = 0; i < count; i++)
        make_blob(&w->im->weights.at[i], &blob[i]);
    return count ? mtc_archive_write(&w->fault, path, NULL, "{\"format\":\"pt\"}", blob, count, fill, w) : 0;
}

/* ---- both files ---- */

/* Nothing is replaced unasked: a text may have been edited, and weights trained. */
static bool may_write(Importer *im, const char *path, OutputKind kind) {
    const InputFile input = {im->request->input, "it is the input"};
    InputFiles inputs = {0};
    VEC_PUSH(im->arena, &inputs, input);
    if (access(path, F_OK) == 0 && !im->request->force && !path_same(path, im->request->input)) {
        diag_error(im->diag, nowhere,
                   "cannot write '%s': it is there already; --force replaces it, -o chooses another name", path);
        return false;
    }
    return output_allowed(im->diag, path, kind, &inputs);
}

static const char *weights_path(Importer *im, const char *text) {
    const char *stem = without_ending(im, text, ".mt");
    return arena_printf(im->arena, "%s.safetensors", stem ? stem : text);
}

/* The text is written under another name before the weights get theirs: where there is no room for both, there is neither. */
static int write_both(Importer *im, const Text *text, const char *path, const char *weights) {
    Writing writing = {.im = im};
    MtcFault *fault = &writing.fault;
    MtcOutput *output = NULL;
    int code = mtc_output_open(fault, path, &output);
    if (!code)
        code = mtc_output_write(fault, output, text->at, text->length);
    if (!code)
        code = write_weights(&writing, weights);
    if (!code)
        code = mtc_output_place(fault, output);
    else if (output)
        mtc_output_discard(output);
    if (code)
        diag_error(im->diag, nowhere, "%s", fault->text);
    return code;
}

int write_import(Importer *im) {
    const char *path = im->request->output, *weights = weights_path(im, path);
    Text out = TEXT(im->arena);
    const Goal goal = goal_of(im, im->outputs.at[0]);
    put_banner(im, &out, path_base(weights));
    put_data(im, &out, &goal);
    put_functions(im, &out);
    put_model(im, &out);
    put_train(im, &out, &goal);
    if (!may_write(im, path, OUTPUT_TEXT) || (im->weights.count && !may_write(im, weights, OUTPUT_WEIGHTS)))
        return EXIT_CANT_CREATE;
    return write_both(im, &out, path, weights);
}
