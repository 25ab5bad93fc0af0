/* predict: the model's answer for each example of a data set or of files. */
#include "commands/cli.h"
#include "commands/predict_table.h"
#include "data/stored.h"
#include "data/vocabulary.h"
#include "session/evaluate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- predictions ---- */

static int64_t likeliest(const float *row, int64_t classes) {
    int64_t best = 0;
    for (int64_t j = 1; j < classes; j++)
        if (row[j] > row[best])
            best = j;
    return best;
}

static void print_class(const MtcMeaning *words, int64_t class_) {
    if (!words)
        printf("%lld", (long long)class_);
    else /* a class without a word is the one of words that training does not have */
        printf("%s", class_ < words->words ? mtc_visible(words->word[class_]) : "other");
}

static void print_likeliest(const MtcMeaning *words, const float *row, int64_t classes) {
    const int64_t best = likeliest(row, classes);
    if (isnan(row[best])) {
        printf("nan\tnan");
        return;
    }
    print_class(words, best);
    printf("\t%.6g", (double)row[best]);
}

/* Of an example that has several: the class of each position. */
static void print_sequence(const MtcMeaning *words, const float *row, int64_t positions, int64_t classes) {
    for (int64_t i = 0; i < positions; i++, row += classes) {
        const int64_t best = likeliest(row, classes);
        printf(i ? "\t" : "");
        if (isnan(row[best]))
            printf("nan");
        else
            print_class(words, best);
    }
}

static void print_numbers(const float *row, int64_t elements) {
    for (int64_t j = 0; j < elements; j++)
        printf(j ? "\t%.9g" : "%.9g", (double)row[j]);
}

/* With `path`, the file of each example comes last. */
static void print_predictions(const MtcSession *session, const float *values, int64_t count, char *const *path) {
    const MtcModel *model = session->model;
    int64_t elements = mtc_prediction_elements(model);
    const MtcMeaning *words = mtc_predicted_words(session);
    const int64_t classes = mtc_predicted_classes(model);
    if (model->prediction_is_classes && classes == elements)
        printf("class\tprobability%s\n", path ? "\tfile" : "");
    for (int64_t i = 0; i < count; i++, values += elements) {
        if (model->prediction_is_classes && classes == elements)
            print_likeliest(words, values, classes);
        else if (model->prediction_is_classes)
            print_sequence(words, values, elements / classes, classes);
        else
            print_numbers(values, elements);
        printf(path ? "\t%s\n" : "%s\n", path ? mtc_harmless(path[i]) : "");
    }
}

static int write_predictions(MtcFault *fault, const MtcModel *model, const char *path, const float *values,
                             int64_t count) {
    int64_t dim[8] = {count};
    memcpy(dim + 1, model->prediction_dim, (size_t)model->prediction_rank * sizeof *dim);
    return mtc_write_npy(fault, path, model->prediction_rank + 1, dim, values);
}

/* The predictions of rows, NaN for those that are no example: a row keeps its place. Moves up from the end, in place. */
static void place_predictions(const MtcExamples *input, int64_t elements, float *values) {
    int64_t i = input->count;
    for (int64_t row = input->rows; row-- > 0;) {
        bool predicted = i > 0 && input->row[i - 1] == row;
        i -= predicted;
        for (int64_t j = 0; j < elements; j++)
            values[row * elements + j] = predicted ? values[i * elements + j] : NAN;
    }
}

/* Beside the predictions, which go to stdout. */
static void print_speed(int64_t images, double seconds) {
    fprintf(stderr, "%lld image%s predicted in %.3g s: %.4g a second\n", (long long)images, images == 1 ? "" : "s",
            seconds, (double)images / fmax(seconds, 1e-9));
}

/* `path`: of a data set of images, the file of each; NULL: the input says. */
static int predict_examples(MtcFault *fault, MtcSession *session, const MtcOptions *options, const MtcExamples *input,
                            char *const *path) {
    const MtcModel *model = session->model;
    int64_t count = input->count ? input->count : session->data[MTC_TEST].examples;
    int64_t rows = input->row ? input->rows : count;
    size_t bytes = (size_t)(rows * mtc_prediction_elements(model)) * sizeof(float);
    float *values = (float *)malloc(bytes);
    if (!values)
        return mtc_no_memory(fault, bytes, "predictions");
    const double start = mtc_seconds();
    int code = input->count ? mtc_predict(session, count, (const void *const *)input->field, values)
                            : mtc_predict_data(session, &session->data[MTC_TEST], values);
    if (input->row && !code)
        place_predictions(input, mtc_prediction_elements(model), values);
    if (input->path && !code)
        print_speed(count, mtc_seconds() - start);
    if (code)
        *fault = session->fault;
    else if (options->output && mtc_is_table_name(options->output))
        code = mtc_write_prediction_table(fault, session, options->output, values, rows, mtc_predicted_words(session),
                                          input->source, input->count ? input->path : path);
    else if (options->output)
        code = write_predictions(fault, model, options->output, values, rows);
    else
        print_predictions(session, values, rows, input->count ? input->path : path);
    free(values);
    return code;
}

static int read_input(MtcFault *fault, const MtcSession *session, const MtcOptions *options, MtcExamples *input) {
    MtcReading reading;
    int code = mtc_reading_of(fault, options, &reading);
    reading.source = options->output && mtc_is_table_name(options->output);
    if (!code)
        code = mtc_read_input(fault, session->model, &reading, &session->encoding, options->input.at,
                              options->input.count, input);
    if (!code)
        mtc_warn_of_reading(options, &reading);
    return code;
}

int mtc_command_predict(MtcFault *fault, const MtcModel *model, const MtcOptions *options) {
    MtcSession *session = NULL;
    MtcExamples input;
    MtcOpening opening;
    memset(&input, 0, sizeof input);
    memset(&opening, 0, sizeof opening);
    opening.split[MTC_TEST] = options->input.count ? NULL : options->split;
    int code = mtc_check_inputs(fault, model, options->input.at, options->input.count);
    if (!code && options->output)
        code = mtc_output_check(fault, options->output);
    if (!code)
        code = mtc_open_splits(fault, model, options, &opening, &session);
    if (!code && options->input.count)
        code = read_input(fault, session, options, &input);
    if (!code)
        code = predict_examples(fault, session, options, &input, opening.path);
    mtc_destroy(session);
    mtc_examples_free(&input);
    mtc_opening_free(&opening);
    return code;
}
