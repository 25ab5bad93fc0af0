/* predict: the model's answer for each example of a data set or of files. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- files of examples ---- */

/* Fields listed in a message: "'image', 'label'". */
static void add_name(MtcText *text, const MtcField *field) {
    mtc_text_add(text, "%s'%s'", text->length ? ", " : "", field->name);
}

static int wrong_number_of_inputs(MtcFault *fault, const MtcModel *model, int given) {
    MtcText all = {NULL, 0, 0}, missing = {NULL, 0, 0};
    for (int i = 0; i < model->fields; i++) {
        add_name(&all, &model->field[i]);
        if (!model->field[i].classes && given-- <= 0)
            add_name(&missing, &model->field[i]);
    }
    if (missing.at)
        mtc_fail(fault, MTC_USAGE, "no --input for %s", missing.at);
    else
        mtc_fail(fault, MTC_USAGE, "more --input files than fields");
    mtc_note(fault, "give a file for each of the fields, in this order: %s; class labels may be left out", all.at);
    free(all.at);
    free(missing.at);
    return fault->code;
}

/* file[f] for field f. With fewer files than fields, class labels get none, the last ones first. */
static int assign_inputs(MtcFault *fault, const MtcModel *model, const MtcList *input, const char **file) {
    int others = 0, next = 0;
    for (int i = 0; i < model->fields; i++)
        others += !model->field[i].classes;
    int labels = input->count - others;
    if (labels < 0 || input->count > model->fields)
        return wrong_number_of_inputs(fault, model, input->count);
    for (int i = 0; i < model->fields; i++)
        if (!model->field[i].classes || labels-- > 0)
            file[i] = input->at[next++];
    return 0;
}

static int read_input(MtcFault *fault, const char *path, const MtcField *field, int64_t *count, void **values) {
    MtcInput *input;
    uint8_t first = 0;
    size_t got;
    int code = mtc_input_open(fault, path, &input);
    if (code)
        return code;
    code = mtc_input_read(fault, input, &first, 1, &got); /* which of the two formats? */
    mtc_input_close(input);
    if (!code)
        code = mtc_input_open(fault, path, &input);
    if (code)
        return code;
    code = mtc_read_field(fault, input, first == 0x93 ? "npy" : "idx", field, count, values);
    mtc_input_close(input);
    return code;
}

static int read_inputs(MtcFault *fault, const MtcModel *model, const MtcList *input, MtcExamples *examples) {
    const char *file[MTC_MAX_FIELDS] = {NULL};
    int64_t count = 0;
    int code = assign_inputs(fault, model, input, file);
    for (int i = 0; i < model->fields && !code; i++) {
        if (!file[i])
            continue;
        code = read_input(fault, file[i], &model->field[i], &count, &examples->field[i]);
        if (!code && examples->count && count != examples->count)
            code = mtc_fail(fault, MTC_BAD_DATA, "%s: holds %lld examples, but %s holds %lld", file[i],
                            (long long)count, input->at[0], (long long)examples->count);
        examples->count = count;
    }
    return code;
}

/* ---- fields without a file ---- */

static void *last_labels(const MtcField *field, int64_t rows) {
    void *labels = malloc((size_t)rows * mtc_type_size(field->type));
    for (int64_t i = 0; i < rows && labels; i++)
        if (field->type == MTC_U8)
            ((uint8_t *)labels)[i] = (uint8_t)(field->classes - 1);
        else
            ((int32_t *)labels)[i] = field->classes - 1;
    return labels;
}

/* Is the prediction another one when every label of a field that has no file is the last class instead of 0? */
static int depends_on_label(MtcSession *session, const MtcExamples *examples, int index, const float *values,
                            bool *depends) {
    const MtcModel *model = session->model;
    int64_t rows = examples->count < model->batch ? examples->count : model->batch;
    size_t size = (size_t)(rows * mtc_prediction_elements(model)) * sizeof(float);
    void *labels = last_labels(&model->field[index], rows);
    float *others = (float *)malloc(size);
    const void *fields[MTC_MAX_FIELDS];
    memcpy(fields, examples->field, sizeof fields);
    fields[index] = labels;
    int code = labels && others ? mtc_predict(session, rows, fields, others)
                                : mtc_no_memory(&session->fault, size, "predictions");
    *depends = !code && memcmp(others, values, size) != 0;
    free(labels);
    free(others);
    return code;
}

/* A label that has no file counts as 0, which must not matter. */
static int check_labels(MtcSession *session, const MtcExamples *examples, const float *values) {
    const MtcModel *model = session->model;
    bool depends = false;
    int code = 0;
    for (int i = 0; i < model->fields && !code; i++) {
        if (!examples->field[i])
            code = depends_on_label(session, examples, i, values, &depends);
        if (depends)
            return mtc_fail(&session->fault, MTC_USAGE, "the prediction depends on the field '%s': give --input for it",
                            model->field[i].name);
    }
    return code;
}

/* ---- predictions ---- */

static void print_classes(const float *row, int64_t classes) {
    int64_t best = 0;
    for (int64_t j = 1; j < classes; j++)
        if (row[j] > row[best])
            best = j;
    printf("%lld\t%.6g\n", (long long)best, (double)row[best]);
}

static void print_predictions(const MtcModel *model, const float *values, int64_t count) {
    int64_t elements = mtc_prediction_elements(model);
    if (model->prediction_is_classes)
        printf("class\tprobability\n");
    for (int64_t i = 0; i < count; i++, values += elements)
        if (model->prediction_is_classes)
            print_classes(values, elements);
        else
            for (int64_t j = 0; j < elements; j++)
                printf("%.9g%c", (double)values[j], j + 1 < elements ? '\t' : '\n');
}

static int write_predictions(MtcFault *fault, const MtcModel *model, const char *path, const float *values,
                             int64_t count) {
    int64_t dim[8] = {count};
    memcpy(dim + 1, model->prediction_dim, (size_t)model->prediction_rank * sizeof *dim);
    return mtc_write_npy(fault, path, model->prediction_rank + 1, dim, values);
}

static int predict_examples(MtcFault *fault, MtcSession *session, const MtcOptions *options, const MtcExamples *input) {
    const MtcModel *model = session->model;
    int64_t count = input->count ? input->count : session->data[MTC_TEST].examples;
    size_t bytes = (size_t)(count * mtc_prediction_elements(model)) * sizeof(float);
    float *values = (float *)malloc(bytes);
    if (!values)
        return mtc_no_memory(fault, bytes, "predictions");
    int code = input->count ? mtc_predict(session, count, (const void *const *)input->field, values)
                            : mtc_predict_data(session, &session->data[MTC_TEST], values);
    if (!code && input->count)
        code = check_labels(session, input, values);
    if (code)
        *fault = session->fault;
    else if (options->output)
        code = write_predictions(fault, model, options->output, values, count);
    else
        print_predictions(model, values, count);
    free(values);
    return code;
}

int mtc_command_predict(MtcFault *fault, const MtcModel *model, const MtcOptions *options) {
    MtcSession *session = NULL;
    MtcExamples input;
    memset(&input, 0, sizeof input);
    int code = options->input.count ? read_inputs(fault, model, &options->input, &input) : 0;
    if (!code && options->output)
        code = mtc_output_check(fault, options->output);
    if (!code)
        code = mtc_open_session(fault, model, options, NULL, input.count ? NULL : options->split, &session);
    if (!code)
        code = predict_examples(fault, session, options, &input);
    mtc_destroy(session);
    mtc_examples_free(&input);
    return code;
}
