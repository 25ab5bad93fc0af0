/* Metrics over a set of examples, as scikit-learn defines them: in float64, and in the order of the examples. */
#include "session/session.h"

#include <float.h>
#include <math.h>

/* ---- predictions and targets that are numbers: the mean of the columns' ---- */

typedef struct MetricColumn {
    int64_t examples, stride;
    const double *prediction, *target;
} MetricColumn;

static double metric_of_columns(const MtcSetValues *values, double (*of_column)(const MetricColumn *column)) {
    const int64_t columns = values->elements[0];
    double sum = 0;
    for (int64_t j = 0; j < columns; j++) {
        const MetricColumn column = {values->examples, columns, values->value[0] + j, values->value[1] + j};
        sum += of_column(&column);
    }
    return sum / (double)columns;
}

static double squared_residuals(const MetricColumn *column) {
    double sum = 0;
    for (int64_t i = 0; i < column->examples; i++) {
        const double residual = column->prediction[i * column->stride] - column->target[i * column->stride];
        sum += residual * residual;
    }
    return sum;
}

static double rmse_of_column(const MetricColumn *column) {
    return sqrt(squared_residuals(column) / (double)column->examples);
}

/* In two passes: the mean, then the squares of what is left of it. */
static double squares_about_mean(const MetricColumn *column) {
    double mean = 0, sum = 0;
    for (int64_t i = 0; i < column->examples; i++)
        mean += column->target[i * column->stride] / (double)column->examples;
    for (int64_t i = 0; i < column->examples; i++)
        sum += (column->target[i * column->stride] - mean) * (column->target[i * column->stride] - mean);
    return sum;
}

static bool target_varies(const MetricColumn *column) {
    for (int64_t i = 1; i < column->examples; i++)
        if (column->target[i * column->stride] != column->target[0])
            return true;
    return false;
}

static double r2_of_column(const MetricColumn *column) {
    const double left = squared_residuals(column);
    if (target_varies(column) || isnan(left))
        return 1 - left / squares_about_mean(column);
    return left == 0 ? 1 : 0;
}

static double mape_of_column(const MetricColumn *column) {
    double sum = 0;
    for (int64_t i = 0; i < column->examples; i++) {
        const double target = column->target[i * column->stride];
        sum += fabs(column->prediction[i * column->stride] - target) / fmax(fabs(target), DBL_EPSILON);
    }
    return sum / (double)column->examples;
}

double mtc_metric_rmse(const MtcSetMetric *metric, const MtcSetValues *values) {
    (void)metric;
    return metric_of_columns(values, rmse_of_column);
}

double mtc_metric_r2(const MtcSetMetric *metric, const MtcSetValues *values) {
    (void)metric;
    return metric_of_columns(values, r2_of_column);
}

double mtc_metric_mape(const MtcSetMetric *metric, const MtcSetValues *values) {
    (void)metric;
    return metric_of_columns(values, mape_of_column);
}

double mtc_metric_perplexity(const MtcSetMetric *metric, const MtcSetValues *values) {
    double sum = 0;
    (void)metric;
    for (int64_t i = 0; i < values->examples; i++)
        sum += values->value[0][i];
    return exp(sum / (double)values->examples);
}
