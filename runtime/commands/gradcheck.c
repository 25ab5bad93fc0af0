/* gradcheck: the gradients that the compiler made against finite differences of the loss, in a program that computes in
 * double and whose steps store gradients instead of training.
 *
 * For an element w of a weight, with the loss L of one batch (the same examples, the same dropout masks):
 *
 *     numeric = (L(w + h) - L(w - h)) / 2h        error = |analytic - numeric| / scale
 *
 * Truncation is some h^2 |L'''|, and rounding of L some 1e-16 |L| / h: 1e-11 or so at h = 1e-5. `scale` is the larger of
 * both slopes, but no less than a thousandth of the tensor's largest gradient, since a gradient that cancels to nearly
 * nothing has no digits of its own, and so large that rounding alone is no error. Where relu or max changes branch
 * between w - h and w + h, the mean of the slopes to both sides means nothing, and a smaller h is tried. A kink that is
 * nearer still, such as relu at 0, leaves the two slopes apart: then any value between them is a gradient. (Without a
 * kink they differ by h L'', so that a wrong gradient does not get through.) */
#include "base/line.h"
#include "commands/bench.h"
#include "random.h"
#include "session/finite.h"
#include "session/library.h"
#include "session/order.h"
#include "session/run.h"
#include "session/train.h"
#include "session/weights.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const double TOLERANCE = 1e-5, LEAST_SCALE = 1e-3;
static const double STEP[] = {1e-5, 1e-6}; /* times max(1, |w|) */
enum { STEP_SIZES = sizeof STEP / sizeof STEP[0] };

typedef struct Checker {
    MtcSession *session;
    MtcRun run;
    double loss; /* at the weights as they are */
    int64_t samples;
    int64_t checked, elements; /* so far, and of all tensors */
    int kinks;                 /* elements that lie on one */
} Checker;

/* What became of one element, or of the worst of a tensor. */
typedef struct Finding {
    int64_t element;
    double analytic, numeric, error;
    bool kink;
} Finding;

/* ---- the loss ---- */

/* The clock stands, so that each step sees the same batch and the same random numbers. */
static int read_loss(Checker *c, double *loss) {
    const MtcModel *model = c->session->model;
    double row[MTC_MAX_REPORTS + 1];
    const char *error = mtc_model_train_until(model, &c->run, model->train_phases - 1);
    error = error ? error : mtc_download(row, c->run.reports, (size_t)mtc_report_columns(model) * sizeof *row);
    error = error ? error : mtc_synchronize();
    if (!error)
        mtc_finish_row(model, row);
    *loss = error ? NAN : *row;
    return mtc_device_fault(c->session, error, "a step");
}

static int set_element(Checker *c, const MtcTensor *tensor, int64_t element, double value) {
    char *to = c->session->arena + tensor->offset + (size_t)element * sizeof value;
    return mtc_device_fault(c->session, mtc_upload(to, &value, sizeof value), tensor->name);
}

static int loss_at(Checker *c, const MtcTensor *tensor, int64_t element, double value, double *loss) {
    int code = set_element(c, tensor, element, value);
    return code ? code : read_loss(c, loss);
}

/* ---- one element ---- */

/* Slopes to both sides of w; the numeric gradient is their mean. */
typedef struct Slopes {
    double left, right, rounding;
} Slopes;

static int measure_slopes(Checker *c, const MtcTensor *tensor, int64_t element, double w, double h, Slopes *slopes) {
    double below = 0, above = 0;
    volatile double low = w - h, high = w + h; /* as stored: their distance is not quite 2h */
    int code = loss_at(c, tensor, element, low, &below);
    if (!code)
        code = loss_at(c, tensor, element, high, &above);
    slopes->left = (c->loss - below) / (w - low);
    slopes->right = (above - c->loss) / (high - w);
    slopes->rounding = 16 * DBL_EPSILON * fmax(1, fabs(c->loss)) / h;
    int restored = set_element(c, tensor, element, w);
    return code ? code : restored;
}

/* What errors are relative to; `least`: it is no less. */
static double scale_of(const Slopes *slopes, double analytic, double least) {
    double numeric = (slopes->left + slopes->right) / 2;
    return fmax(fmax(fabs(analytic), fabs(numeric)), fmax(least, slopes->rounding / TOLERANCE));
}

static bool is_between(const Slopes *slopes, double analytic, double margin) {
    return analytic >= fmin(slopes->left, slopes->right) - margin &&
           analytic <= fmax(slopes->left, slopes->right) + margin;
}

/* Takes what these slopes say into the finding, where it is nearer than what is there. */
static void consider(const Slopes *slopes, double least, Finding *finding) {
    double numeric = (slopes->left + slopes->right) / 2, scale = scale_of(slopes, finding->analytic, least);
    double error = fabs(finding->analytic - numeric) / scale;
    finding->kink = error > TOLERANCE && is_between(slopes, finding->analytic, TOLERANCE * scale);
    if (finding->kink || error < finding->error) { /* no NaN is */
        finding->numeric = numeric;
        finding->error = finding->kink ? 0 : error;
    }
}

/* `least`: the scale that errors are measured by at least. */
static int check_element(Checker *c, const MtcTensor *tensor, double least, Finding *finding) {
    double w;
    size_t at = tensor->offset + (size_t)finding->element * sizeof w;
    const char *error = mtc_download(&w, c->session->arena + at, sizeof w);
    int code = mtc_device_fault(c->session, error ? error : mtc_synchronize(), tensor->name);
    for (int i = 0; i < STEP_SIZES && !code && finding->error > TOLERANCE; i++) {
        Slopes slopes;
        code = measure_slopes(c, tensor, finding->element, w, STEP[i] * fmax(1, fabs(w)), &slopes);
        consider(&slopes, least, finding);
    }
    c->kinks += finding->kink;
    return code;
}

/* ---- one tensor ---- */

/* Its state has another name where a weight has that one (compiler/ir/module.c). */
static const MtcTensor *gradient_of(const MtcModel *model, const MtcTensor *weight) {
    MtcText name = {NULL, 0, 0};
    if (weight->role != MTC_WEIGHT)
        return NULL;
    mtc_text_add(&name, "%s.gradient", weight->name);
    const MtcTensor *found = mtc_find_tensor(model, name.at);
    while (found && found->role != MTC_STATE) {
        mtc_text_add(&name, ".state");
        found = mtc_find_tensor(model, name.at);
    }
    free(name.at);
    return found;
}

static int64_t samples_of(const Checker *c, const MtcTensor *tensor) {
    int64_t elements = mtc_elements(tensor->rank, tensor->dim);
    return elements < c->samples ? elements : c->samples;
}

/* All elements, or some that the seed chooses, each once. */
static int64_t sample(const Checker *c, const MtcTensor *tensor, int row, int64_t i) {
    int64_t elements = mtc_elements(tensor->rank, tensor->dim);
    return elements <= c->samples
               ? i
               : mtc_permute(mtc_shuffle_key(c->session->seed, (uint64_t)row), (uint32_t)elements, (uint32_t)i);
}

static double largest(const double *values, int64_t count) {
    double most = 0;
    for (int64_t i = 0; i < count; i++)
        most = fmax(most, fabs(values[i]));
    return most;
}

/* The worst of the tensor's elements. */
static int check_samples(Checker *c, const MtcTensor *tensor, int row, const double *gradients, Finding *worst) {
    double least = LEAST_SCALE * largest(gradients, mtc_elements(tensor->rank, tensor->dim));
    int code = 0;
    for (int64_t i = 0; i < samples_of(c, tensor) && !code; i++) {
        int64_t element = sample(c, tensor, row, i);
        Finding finding = {element, gradients[element], 0, INFINITY, false};
        mtc_meter_part(&c->session->meter, "checking elements", c->checked++, c->elements);
        code = check_element(c, tensor, least, &finding);
        if (!(finding.error <= worst->error))
            *worst = finding;
    }
    return code;
}

/* A step adds the gradient to its state. */
static int read_gradient(Checker *c, const MtcTensor *gradient, double *values) {
    const char *error = mtc_zero(c->session->arena + gradient->offset, mtc_tensor_bytes(gradient));
    int code = mtc_device_fault(c->session, error, gradient->name);
    if (!code)
        code = read_loss(c, &c->loss);
    return code ? code : mtc_read_tensor(c->session, gradient, values);
}

static int check_tensor(Checker *c, int row, Finding *worst) {
    const MtcTensor *tensor = &c->session->model->tensor[row];
    double *gradients = (double *)malloc(mtc_tensor_bytes(tensor));
    if (!gradients)
        return mtc_no_memory(&c->session->fault, mtc_tensor_bytes(tensor), tensor->name);
    int code = read_gradient(c, gradient_of(c->session->model, tensor), gradients);
    if (!code)
        code = check_samples(c, tensor, row, gradients, worst);
    free(gradients);
    return code;
}

/* ---- the table ---- */

/* Which columns stay on a narrow terminal. */
enum { CHECK_TENSOR, CHECK_ERROR, CHECK_VALUES, CHECK_LINE, CHECK_COUNT, CHECK_SHAPE, CHECK_ELEMENT };
enum { ERROR_WIDTH = 10 };

static size_t longest_tensor(const MtcModel *model) {
    size_t width = strlen("tensor");
    for (int i = 0; i < model->tensors; i++)
        if (gradient_of(model, &model->tensor[i]))
            width = strlen(model->tensor[i].name) > width ? strlen(model->tensor[i].name) : width;
    return width;
}

static void print_loss(const Checker *c, bool real_data) {
    const MtcSession *session = c->session;
    MtcText text = {NULL, 0, 0};
    MtcLine line = {0};
    mtc_line_add(&line, 0, "loss %s in f64", mtc_number(c->loss));
    mtc_line_add(&line, 1, "; a batch of %lld, %s data", (long long)session->model->batch,
                 real_data ? "real" : "random");
    mtc_line_add(&line, 2, ", seed %llu", (unsigned long long)session->seed);
    mtc_line_put(&text, &line, mtc_columns(STDOUT_FILENO));
    printf("%s\n\n", text.at ? text.at : "");
    free(text.at);
}

static void print_check_titles(MtcGrid *grid) {
    MtcLine line = {0};
    mtc_grid_name(grid, &line, "tensor");
    mtc_line_add(&line, CHECK_SHAPE, "  %-16s", "shape");
    mtc_line_add(&line, CHECK_COUNT, " %7s", "checked");
    mtc_line_add(&line, CHECK_ERROR, "%*s", ERROR_WIDTH, "error");
    mtc_line_add(&line, CHECK_ELEMENT, "  %-16s", "worst element");
    mtc_line_add(&line, CHECK_VALUES, " %13s %13s", "gradient", "difference");
    mtc_grid_rest(grid, &line, CHECK_LINE, "  line");
    mtc_grid_titles(grid, &line);
}

static void print_finding(const Checker *c, const MtcTensor *tensor, const Finding *worst, const MtcGrid *grid) {
    MtcText statement = {NULL, 0, 0};
    MtcLine line = {0};
    mtc_meter_clear(&c->session->meter);
    mtc_grid_name(grid, &line, tensor->name);
    mtc_line_add(&line, CHECK_SHAPE, "  %-16s", mtc_tensor_shape(tensor));
    mtc_line_add(&line, CHECK_COUNT, " %7lld", (long long)samples_of(c, tensor));
    mtc_line_add(&line, CHECK_ERROR, "%*.1e", ERROR_WIDTH, worst->error);
    mtc_line_add(&line, CHECK_ELEMENT, "  %-16s", mtc_tensor_index(tensor, worst->element));
    mtc_line_add(&line, CHECK_VALUES, " %13.6g %13.6g", worst->analytic, worst->numeric);
    if (grid->last >= CHECK_LINE)
        mtc_add_statement(&statement, c->session->model, tensor->statement);
    mtc_grid_row(grid, &line, statement.at);
    free(statement.at);
}

static void print_skipped(const MtcModel *model) {
    static const char *const why[] = {"is frozen", "is a buffer"};
    for (int i = 0; i < model->tensors; i++) {
        const MtcTensor *tensor = &model->tensor[i];
        if (tensor->role <= MTC_BUFFER && !gradient_of(model, tensor))
            printf("'%s' %s: not checked\n", tensor->name, why[tensor->role == MTC_BUFFER]);
    }
}

static void note_wrong(Checker *c, const MtcTensor *tensor, const Finding *worst, int wrong) {
    MtcFault *fault = &c->session->fault;
    if (wrong == 0)
        mtc_fail(fault, MTC_BAD_DATA, "gradients differ from finite differences by more than %g", TOLERANCE);
    mtc_note(fault, "'%s' at %s: the gradient is %.6g, the difference %.6g", tensor->name,
             mtc_tensor_index(tensor, worst->element), worst->analytic, worst->numeric);
    mtc_note_statement(fault, c->session->model, tensor->statement);
}

static int check_all(Checker *c) {
    const MtcModel *model = c->session->model;
    int code = 0, wrong = 0, right = 0;
    MtcGrid grid;
    for (int i = 0; i < model->tensors; i++)
        c->elements += gradient_of(model, &model->tensor[i]) ? samples_of(c, &model->tensor[i]) : 0;
    mtc_grid_open(&grid, longest_tensor(model), ERROR_WIDTH);
    print_check_titles(&grid);
    for (int i = 0; i < model->tensors && !code; i++) {
        Finding worst = {0, 0, 0, -1, false}; /* than which every other is worse */
        if (!gradient_of(model, &model->tensor[i]))
            continue;
        code = check_tensor(c, i, &worst);
        if (code)
            break;
        print_finding(c, &model->tensor[i], &worst, &grid);
        if (worst.error <= TOLERANCE)
            right++;
        else
            note_wrong(c, &model->tensor[i], &worst, wrong++);
    }
    if (code)
        return code;
    print_skipped(model);
    if (c->kinks)
        printf("%d element%s on a kink of the loss, where any gradient between the slopes to both sides is right\n",
               c->kinks, c->kinks == 1 ? " lies" : "s lie");
    if (!wrong)
        printf("gradients agree with finite differences: %d tensor%s, errors up to %g allowed\n", right,
               right == 1 ? "" : "s", TOLERANCE);
    else
        mtc_note(&c->session->fault, "where the model has stop_gradient: differences see what it keeps from gradients");
    return wrong ? MTC_BAD_DATA : 0;
}

/* ---- the command ---- */

/* The first batch of the first epoch. */
static int choose_batch(Checker *c) {
    MtcSession *session = c->session;
    const int64_t clock[3] = {0, 0, 0};
    size_t bytes = (size_t)session->data[MTC_TRAIN].examples * sizeof *session->order;
    int *order = (int *)malloc(bytes);
    if (!order)
        return mtc_no_memory(&session->fault, bytes, "the order");
    mtc_fill_order(session, 0, order);
    const char *error = mtc_upload(session->order, order, bytes);
    error = error ? error : mtc_upload(session->clock, clock, sizeof clock);
    free(order);
    c->run = mtc_run(session, &session->data[MTC_TRAIN], session->evaluation);
    return mtc_device_fault(session, error, "the batch");
}

static int check(MtcSession *session, const MtcOptions *options, bool real_data) {
    Checker c;
    memset(&c, 0, sizeof c);
    c.session = session;
    c.samples = options->samples;
    int code = choose_batch(&c);
    if (!code)
        code = read_loss(&c, &c.loss);
    if (code)
        return code;
    if (!isfinite(c.loss))
        return mtc_fail(&session->fault, MTC_BAD_DATA, "the loss is %s with the initial weights: there is no slope",
                        mtc_number(c.loss));
    print_loss(&c, real_data);
    return check_all(&c);
}

int mtc_command_gradcheck(MtcFault *fault, const MtcModel *model, const MtcOptions *options) {
    MtcSession *session;
    bool real_data;
    if (!model->stores_gradients)
        return mtc_fail(
            fault, MTC_USAGE,
            "this program trains, and keeps no gradients: 'mtc gradcheck %s' makes one that does, and runs it",
            model->source);
    int code = mtc_open_trial(fault, model, options, &session, &real_data);
    if (!code) {
        code = mtc_needs_device_data(session);
        if (!code)
            code = check(session, options, real_data);
        if (code)
            *fault = session->fault;
    }
    mtc_destroy(session);
    return code;
}
