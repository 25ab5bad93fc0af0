/* predict: the model's answer for each example of a data set or a file. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Examples of a file: the first field; the others count as zero. */
static int read_input(MtcFault *fault, const MtcModel *model, const MtcOptions *options, int64_t *count,
                      void **values) {
    MtcInput *input;
    uint8_t first = 0;
    size_t got;
    int code = mtc_input_open(fault, options->input, &input);
    if (code)
        return code;
    code = mtc_input_read(fault, input, &first, 1, &got); /* which of the two formats? */
    mtc_input_close(input);
    if (!code)
        code = mtc_input_open(fault, options->input, &input);
    if (code)
        return code;
    code = mtc_read_field(fault, input, first == 0x93 ? "npy" : "idx", &model->field[0], count, values);
    mtc_input_close(input);
    return code;
}

static void print_classes(const float *row, int64_t classes) {
    int64_t best = 0;
    for (int64_t j = 1; j < classes; j++)
        if (row[j] > row[best])
            best = j;
    printf("%lld\t%.6g\n", (long long)best, (double)row[best]);
}

static void print_predictions(const MtcModel *model, const float *values, int64_t count) {
    int64_t elements = mtc_prediction_elements(model);
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

static int predict_examples(MtcFault *fault, MtcSession *session, const MtcOptions *options, int64_t count,
                            const void *first_field) {
    const MtcModel *model = session->model;
    const void *fields[MTC_MAX_FIELDS] = {first_field};
    size_t bytes = (size_t)(count * mtc_prediction_elements(model)) * sizeof(float);
    float *values = (float *)malloc(bytes);
    if (!values)
        return mtc_no_memory(fault, bytes, "predictions");
    int code = first_field ? mtc_predict(session, count, fields, values)
                           : mtc_predict_data(session, &session->data[MTC_TEST], values);
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
    int64_t count = 0;
    void *input = NULL;
    int code = options->input ? read_input(fault, model, options, &count, &input) : 0;
    if (!code && options->output)
        code = mtc_output_check(fault, options->output);
    if (!code)
        code = mtc_open_session(fault, model, options, NULL, input ? NULL : options->split, &session);
    if (!code)
        code = predict_examples(fault, session, options, input ? count : session->data[MTC_TEST].examples, input);
    mtc_destroy(session);
    free(input);
    return code;
}
