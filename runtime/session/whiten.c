/* The filters of a whitening layer:
 *
 *     W = V^T / sqrt(v + eps mean(v)), and below it -W;   shift = -W mean, and below it W mean
 *
 * where V and v are eigenvectors and eigenvalues of the covariance of the patches. Sums are whole numbers, which come in two digits
 * and are exact; what is made of them is computed here in float64, the same for each device. */
#include "session/whiten.h"

#include "session/weights.h"

#include <math.h>
#include <stdlib.h>

struct MtcPatchSums {
    const MtcTensor *filters, *shift;
    int64_t elements;      /* of a patch: K */
    int64_t *moment, *sum; /* [K, K] of products, [K] */
    double *values;        /* of a tensor, and matrices of what is made: 6 K^2 + 2 K numbers */
};

/* ---- sums ---- */

static int begin_layer(MtcSession *session, MtcPatchSums *layer, const MtcTensor *filters) {
    const size_t k = (size_t)filters->dim[0] / 2;
    *layer = (MtcPatchSums){filters, filters + 1, (int64_t)k, NULL, NULL, NULL};
    layer->moment = (int64_t *)calloc(k * k + k, sizeof *layer->moment);
    layer->values = (double *)calloc(6 * k * k + 2 * k, sizeof *layer->values);
    layer->sum = layer->moment ? layer->moment + k * k : NULL;
    return layer->moment && layer->values ? 0
                                          : mtc_no_memory(&session->fault, 8 * k * k * sizeof(double), filters->name);
}

static bool begins_layer(const MtcTensor *tensor) {
    return tensor->init == MTC_WHITE && tensor->rank > 1;
}

int mtc_begin_whitening(MtcSession *session, MtcWhitening *whitening) {
    const MtcModel *model = session->model;
    int code = 0, layers = 0;
    *whitening = (MtcWhitening){0, NULL, 0, 0};
    for (int i = 0; i < model->tensors; i++)
        layers += begins_layer(&model->tensor[i]);
    if (!layers)
        return 0;
    whitening->layer = (MtcPatchSums *)calloc((size_t)layers, sizeof *whitening->layer);
    if (!whitening->layer)
        return mtc_no_memory(&session->fault, (size_t)layers * sizeof *whitening->layer, "whitening");
    for (int i = 0; i < model->tensors && !code; i++) {
        if (!begins_layer(&model->tensor[i]))
            continue;
        const int64_t most = (int64_t)model->tensor[i + 1].b;
        code = begin_layer(session, &whitening->layer[whitening->layers++], &model->tensor[i]);
        whitening->most = whitening->most && whitening->most < most ? whitening->most : most;
    }
    return code;
}

void mtc_end_whitening(MtcWhitening *whitening) {
    for (int i = 0; i < whitening->layers; i++) {
        free(whitening->layer[i].moment);
        free(whitening->layer[i].values);
    }
    free(whitening->layer);
    *whitening = (MtcWhitening){0, NULL, 0, 0};
}

static double digit_at(const MtcTensor *tensor, const void *values, int64_t i) {
    return tensor->type == MTC_F64 ? ((const double *)values)[i] : (double)((const float *)values)[i];
}

/* The tensor has two digits of each of `count` numbers: those above come first. */
static int add_digits(MtcSession *session, const MtcTensor *tensor, int64_t base, void *values, int64_t *sum,
                      int64_t count) {
    const int code = mtc_read_tensor(session, tensor, values);
    for (int64_t i = 0; i < count && !code; i++)
        sum[i] += (int64_t)digit_at(tensor, values, i) * base + (int64_t)digit_at(tensor, values, count + i);
    return code;
}

const char *mtc_add_sums(MtcWhitening *whitening, MtcSession *session, int64_t examples) {
    int code = 0;
    for (int i = 0; i < whitening->layers && !code; i++) {
        const MtcPatchSums *layer = &whitening->layer[i];
        const int64_t base = (int64_t)layer->shift->a, k = layer->elements;
        code = add_digits(session, layer->filters, base, layer->values, layer->moment, k * k);
        code = code ? code : add_digits(session, layer->shift, base, layer->values, layer->sum, k);
    }
    whitening->examples += examples;
    return code ? session->fault.text : NULL;
}

/* ---- eigenvectors ---- */

/* Of a symmetric matrix of k rows: rows p and q of `a`, and of the vectors `v`, are turned so that a[p, q] is 0 (Jacobi). */
static void turn_rows(double *a, double *v, int64_t k, int64_t p, int64_t q) {
    const double far = (a[q * k + q] - a[p * k + p]) / (2 * a[p * k + q]);
    const double t = (far < 0 ? -1 : 1) / (fabs(far) + sqrt(far * far + 1)), c = 1 / sqrt(t * t + 1), s = t * c;
    for (int64_t i = 0; i < k; i++) { /* columns */
        const double x = a[i * k + p], y = a[i * k + q];
        a[i * k + p] = c * x - s * y;
        a[i * k + q] = s * x + c * y;
    }
    for (int64_t i = 0; i < k; i++) {
        const double x = a[p * k + i], y = a[q * k + i], vx = v[p * k + i], vy = v[q * k + i];
        a[p * k + i] = c * x - s * y;
        a[q * k + i] = s * x + c * y;
        v[p * k + i] = c * vx - s * vy;
        v[q * k + i] = s * vx + c * vy;
    }
}

/* Rows of v become eigenvectors of a, whose diagonal becomes their eigenvalues. */
static void diagonalise(double *a, double *v, int64_t k) {
    enum { MOST_SWEEPS = 60 };
    bool turned = true;
    for (int64_t i = 0; i < k * k; i++)
        v[i] = i % (k + 1) == 0;
    for (int sweep = 0; sweep < MOST_SWEEPS && turned; sweep++) {
        turned = false;
        for (int64_t p = 0; p < k; p++)
            for (int64_t q = p + 1; q < k; q++)
                if (fabs(a[p * k + q]) > 1e-17 * (fabs(a[p * k + p]) + fabs(a[q * k + q]))) {
                    turn_rows(a, v, k, p, q);
                    turned = true;
                }
    }
}

/* ---- filters ---- */

/* The row of the largest eigenvalue that was not taken yet; taken[i] becomes true. */
static int64_t take_largest(const double *a, int64_t k, double *taken) {
    int64_t found = -1;
    for (int64_t i = 0; i < k; i++)
        if (taken[i] == 0 && (found < 0 || a[i * k + i] > a[found * k + found]))
            found = i;
    taken[found] = 1;
    return found;
}

/* An eigenvector may point either way: its largest element is positive. */
static double sign_of_vector(const double *vector, int64_t k) {
    int64_t largest = 0;
    for (int64_t i = 1; i < k; i++)
        if (fabs(vector[i]) > fabs(vector[largest]))
            largest = i;
    return vector[largest] < 0 ? -1 : 1;
}

static void store_filter(const MtcTensor *tensor, void *values, int64_t i, double value) {
    if (tensor->type == MTC_F64)
        ((double *)values)[i] = value;
    else
        ((float *)values)[i] = (float)value;
}

static void make_layer(const MtcPatchSums *layer, double patches, void *filters, void *shift) {
    const int64_t k = layer->elements;
    double *a = layer->values, *v = a + k * k, *taken = v + k * k, mean = 0;
    for (int64_t i = 0; i < k * k; i++) {
        const int64_t row = i / k, column = i % k;
        const double product = ((double)layer->sum[row] / patches) * ((double)layer->sum[column] / patches);
        a[i] = (double)layer->moment[i] / patches - product;
        mean += i % (k + 1) == 0 ? a[i] / (double)k : 0;
    }
    diagonalise(a, v, k);
    for (int64_t i = 0; i < k; i++)
        taken[i] = 0;
    for (int64_t row = 0; row < k; row++) {
        const int64_t from = take_largest(a, k, taken);
        const double variance = a[from * k + from] > 0 ? a[from * k + from] : 0, *vector = v + from * k;
        const double scale = sign_of_vector(vector, k) / sqrt(variance + layer->filters->a * mean);
        double moved = 0;
        for (int64_t i = 0; i < k; i++) {
            store_filter(layer->filters, filters, row * k + i, scale * vector[i]);
            store_filter(layer->filters, filters, (k + row) * k + i, -scale * vector[i]);
            moved += scale * vector[i] * ((double)layer->sum[i] / patches);
        }
        store_filter(layer->shift, shift, row, -moved);
        store_filter(layer->shift, shift, k + row, moved);
    }
}

/* All patches are alike: nothing could be divided by their variance. */
static bool is_constant(const MtcPatchSums *layer, int64_t patches) {
    const int64_t k = layer->elements;
    for (int64_t i = 0; i < k; i++)
        if ((double)layer->moment[i * k + i] * (double)patches != (double)layer->sum[i] * (double)layer->sum[i])
            return false;
    return true;
}

int mtc_make_filters(MtcSession *session, const MtcWhitening *whitening) {
    int code = 0;
    for (int i = 0; i < whitening->layers && !code; i++) {
        const MtcPatchSums *layer = &whitening->layer[i];
        const int64_t k = layer->elements, patches = whitening->examples * (int64_t)layer->filters->b;
        double *filters = layer->values + 3 * k * k, *shift = filters + 2 * k * k;
        if (is_constant(layer, patches))
            return mtc_fail(&session->fault, MTC_BAD_DATA,
                            "'%s': the patches of the training images are all the same, of one colour or a single one: "
                            "nothing whitens them",
                            layer->filters->name);
        make_layer(layer, (double)patches, filters, shift);
        code = mtc_write_tensor(session, layer->filters, filters);
        code = code ? code : mtc_write_tensor(session, layer->shift, shift);
    }
    return code;
}
