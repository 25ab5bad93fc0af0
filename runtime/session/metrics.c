/* Metrics over a set of examples, as scikit-learn defines them: in float64, and in the order of the examples. */
#include "session/set_values.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

/* ---- classes: counts of each ---- */

/* Of a class, or of a column of conditions: how many examples were predicted to be it and are, were predicted, are. */
typedef struct ClassCounts {
    double right, predicted, actual;
} ClassCounts;

static double precision_of(const ClassCounts *c) {
    return c->predicted > 0 ? c->right / c->predicted : 0;
}

static double recall_of(const ClassCounts *c) {
    return c->actual > 0 ? c->right / c->actual : 0;
}

/* 2 p r / (p + r) with p = right / predicted, r = right / actual */
static double f1_of(const ClassCounts *c) {
    return c->predicted + c->actual > 0 ? 2 * c->right / (c->predicted + c->actual) : 0;
}

/* Labels of the data are; a label that the model computes may be none, and scores that are NaN have no highest. */
static bool is_class(double label, int classes) {
    return label >= 0 && label < classes;
}

static void count_classes(const MtcSetMetric *metric, const MtcSetValues *values, ClassCounts *counts) {
    const int64_t columns = values->elements[1];
    for (int64_t i = 0; i < values->examples * columns; i++) {
        const double predicted = values->value[0][i], actual = values->value[1][i];
        if (metric->classes) {
            const bool is_of_class = is_class(actual, metric->classes);
            if (is_class(predicted, metric->classes))
                counts[(int64_t)predicted].predicted++;
            if (is_of_class)
                counts[(int64_t)actual].actual++;
            if (is_of_class && predicted == actual)
                counts[(int64_t)actual].right++;
        } else {
            counts[i % columns].predicted += predicted;
            counts[i % columns].actual += actual;
            counts[i % columns].right += predicted * actual;
        }
    }
}

/* The mean over classes: a class that there is no example of, and that none was taken for, does not count; a column does. */
static double mean_of_classes(const MtcSetMetric *metric, const ClassCounts *counts, int64_t classes,
                              double (*score)(const ClassCounts *c)) {
    double sum = 0, all = 0;
    for (int64_t k = 0; k < classes; k++) {
        const bool occurs = !metric->classes || counts[k].predicted + counts[k].actual > 0;
        const double weight = metric->average == MTC_AVERAGE_WEIGHTED ? counts[k].actual : (double)occurs;
        sum += weight * score(&counts[k]);
        all += weight;
    }
    return all > 0 ? sum / all : 0;
}

static double score_of_all(const ClassCounts *counts, int64_t classes, double (*score)(const ClassCounts *c)) {
    ClassCounts all = {0, 0, 0};
    for (int64_t k = 0; k < classes; k++) {
        all.right += counts[k].right;
        all.predicted += counts[k].predicted;
        all.actual += counts[k].actual;
    }
    return score(&all);
}

static double score_of_classes(const MtcSetMetric *metric, const MtcSetValues *values,
                               double (*score)(const ClassCounts *c)) {
    const int64_t classes = metric->classes ? metric->classes : values->elements[1];
    ClassCounts *counts = (ClassCounts *)calloc((size_t)classes, sizeof *counts);
    double result = NAN;
    if (!counts)
        return result;
    count_classes(metric, values, counts);
    switch (metric->average) {
    case MTC_AVERAGE_BINARY: result = score(&counts[1]); break;
    case MTC_AVERAGE_MICRO: result = score_of_all(counts, classes, score); break;
    case MTC_AVERAGE_MACRO:
    case MTC_AVERAGE_WEIGHTED: result = mean_of_classes(metric, counts, classes, score); break;
    }
    free(counts);
    return result;
}

void mtc_count_confusion(const MtcSetMetric *metric, const MtcSetValues *values, int64_t *counts) {
    const int64_t classes = metric->classes;
    memset(counts, 0, (size_t)(classes * classes) * sizeof *counts);
    for (int64_t i = 0; i < values->examples * values->elements[1]; i++) {
        const double predicted = values->value[0][i], actual = values->value[1][i];
        if (is_class(actual, metric->classes) && is_class(predicted, metric->classes))
            counts[(int64_t)actual * classes + (int64_t)predicted]++;
    }
}

double mtc_metric_precision(const MtcSetMetric *metric, const MtcSetValues *values) {
    return score_of_classes(metric, values, precision_of);
}

double mtc_metric_recall(const MtcSetMetric *metric, const MtcSetValues *values) {
    return score_of_classes(metric, values, recall_of);
}

double mtc_metric_f1(const MtcSetMetric *metric, const MtcSetValues *values) {
    return score_of_classes(metric, values, f1_of);
}

/* ---- ranks ---- */

typedef struct Ranked {
    double score;
    bool found; /* it is one of those that should have high scores */
} Ranked;

static int by_score(const void *a, const void *b) {
    const double left = ((const Ranked *)a)->score, right = ((const Ranked *)b)->score;
    return (left < right) - (left > right);
}

/* Of the class, or of the column. False where a score is NaN, which has no rank. */
static bool rank_examples(const MtcSetMetric *metric, const MtcSetValues *values, int64_t which, Ranked *ranked) {
    const int64_t labels = values->elements[1], count = values->examples * labels, classes = metric->classes;
    const double *score = values->value[0], *target = values->value[1];
    int64_t ranks = 0;
    for (int64_t i = 0; i < count; i++) {
        if (!classes && i % labels != which)
            continue;
        Ranked *next = &ranked[ranks++];
        next->score = classes == 2 ? score[2 * i + 1] - score[2 * i] : classes ? score[classes * i + which] : score[i];
        next->found = target[i] == (classes ? (double)which : 1);
        if (isnan(next->score))
            return false;
    }
    qsort(ranked, (size_t)ranks, sizeof *ranked, by_score);
    return true;
}

/* From high scores to low: those of one score come at once. */
typedef struct Ranks {
    int64_t count, positives;
    const Ranked *at;
} Ranks;

/* How many of them are found among those of the next score; *next moves behind these. */
static int64_t next_found(const Ranks *ranks, int64_t *next) {
    const double score = ranks->at[*next].score;
    int64_t found = 0;
    for (; *next < ranks->count && ranks->at[*next].score == score; ++*next)
        found += ranks->at[*next].found;
    return found;
}

/* By trapezia; NaN where there are none of one sort. */
static double area_of(const Ranks *ranks) {
    const double negatives = (double)(ranks->count - ranks->positives), positives = (double)ranks->positives;
    double area = 0, above = 0;
    for (int64_t next = 0, before = 0; next < ranks->count; before = next) {
        const double found = (double)next_found(ranks, &next);
        area += ((double)(next - before) - found) * (above + found / 2);
        above += found;
    }
    return negatives > 0 && positives > 0 ? area / (negatives * positives) : NAN;
}

static double precision_by_recall(const Ranks *ranks) {
    double sum = 0, above = 0;
    for (int64_t next = 0; next < ranks->count;) {
        const double found = (double)next_found(ranks, &next);
        above += found;
        sum += found * above / (double)next;
    }
    return ranks->positives ? sum / (double)ranks->positives : 0;
}

/* The mean over classes that there are examples of, and others, so that the score is a number; without any, the score of no
 * examples. */
static double mean_of_ranks(const MtcSetMetric *metric, const MtcSetValues *values,
                            double (*score)(const Ranks *ranks)) {
    const int64_t labels = values->elements[1], count = values->examples * (metric->classes ? labels : 1);
    const int64_t first = metric->classes == 2, last = metric->classes ? metric->classes : labels;
    Ranked *ranked = (Ranked *)malloc((size_t)count * sizeof *ranked);
    const Ranks none = {0, 0, NULL};
    double sum = 0, all = 0;
    bool ordered = ranked;
    for (int64_t k = first; k < last && ordered; k++) {
        Ranks ranks = {count, 0, ranked};
        ordered = rank_examples(metric, values, k, ranked);
        for (int64_t i = 0; i < count && ordered; i++)
            ranks.positives += ranked[i].found;
        const double one = ordered && (ranks.positives || last - first == 1) ? score(&ranks) : NAN;
        sum += isnan(one) ? 0 : one;
        all += !isnan(one);
    }
    free(ranked);
    if (!ordered)
        return NAN;
    return all > 0 ? sum / all : score(&none);
}

double mtc_metric_roc_auc(const MtcSetMetric *metric, const MtcSetValues *values) {
    return mean_of_ranks(metric, values, area_of);
}

double mtc_metric_average_precision(const MtcSetMetric *metric, const MtcSetValues *values) {
    return mean_of_ranks(metric, values, precision_by_recall);
}
