/* Metrics over a set of examples, as scikit-learn defines them: in float64, and in the order of the examples. */
#include "session/set_values.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static double metric_weight(const double *weight, int64_t example) {
    return weight ? weight[example] : 1;
}

/* What a mean over the examples is divided by: how many there are, or what they weigh. */
static double sum_of_weights(const double *weight, int64_t examples) {
    double sum = 0;
    for (int64_t i = 0; i < examples && weight; i++)
        sum += weight[i];
    return weight ? sum : (double)examples;
}

/* ---- predictions and targets that are numbers: the mean of the columns' ---- */

typedef struct MetricColumn {
    int64_t examples, stride;
    const double *prediction, *target, *weight;
    double weights; /* their sum */
} MetricColumn;

static double metric_of_columns(const MtcSetValues *values, double (*of_column)(const MetricColumn *column)) {
    const int64_t columns = values->elements[0];
    double sum = 0;
    for (int64_t j = 0; j < columns; j++) {
        const MetricColumn column = {values->examples,     columns,
                                     values->value[0] + j, values->value[1] + j,
                                     values->weight,       sum_of_weights(values->weight, values->examples)};
        sum += of_column(&column);
    }
    return sum / (double)columns;
}

static double squared_residuals(const MetricColumn *column) {
    double sum = 0;
    for (int64_t i = 0; i < column->examples; i++) {
        const double residual = column->prediction[i * column->stride] - column->target[i * column->stride];
        sum += metric_weight(column->weight, i) * residual * residual;
    }
    return sum;
}

static double rmse_of_column(const MetricColumn *column) {
    return sqrt(squared_residuals(column) / column->weights);
}

/* In two passes: the mean, then the squares of what is left of it. */
static double squares_about_mean(const MetricColumn *column) {
    double mean = 0, sum = 0;
    for (int64_t i = 0; i < column->examples; i++)
        mean += metric_weight(column->weight, i) * column->target[i * column->stride] / column->weights;
    for (int64_t i = 0; i < column->examples; i++) {
        const double distance = column->target[i * column->stride] - mean;
        sum += metric_weight(column->weight, i) * distance * distance;
    }
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
        const double error = fabs(column->prediction[i * column->stride] - target);
        sum += metric_weight(column->weight, i) * error / fmax(fabs(target), DBL_EPSILON);
    }
    return sum / column->weights;
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
        sum += metric_weight(values->weight, i) * values->value[0][i];
    return exp(sum / sum_of_weights(values->weight, values->examples));
}

/* ---- classes: counts of each ---- */

/* Of a class, or of a column of conditions: how many examples, or what weight of them, were predicted to be it and are, were predicted, are. */
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
        const double weight = metric_weight(values->weight, i / columns);
        if (metric->classes) {
            const bool is_of_class = is_class(actual, metric->classes);
            if (is_class(predicted, metric->classes))
                counts[(int64_t)predicted].predicted += weight;
            if (is_of_class)
                counts[(int64_t)actual].actual += weight;
            if (is_of_class && predicted == actual)
                counts[(int64_t)actual].right += weight;
        } else {
            counts[i % columns].predicted += weight * predicted;
            counts[i % columns].actual += weight * actual;
            counts[i % columns].right += weight * predicted * actual;
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

void mtc_count_confusion(const MtcSetMetric *metric, const MtcSetValues *values, double *counts) {
    const int64_t classes = metric->classes, labels = values->elements[1];
    memset(counts, 0, (size_t)(classes * classes) * sizeof *counts);
    for (int64_t i = 0; i < values->examples * labels; i++) {
        const double predicted = values->value[0][i], actual = values->value[1][i];
        if (is_class(actual, metric->classes) && is_class(predicted, metric->classes))
            counts[(int64_t)actual * classes + (int64_t)predicted] += metric_weight(values->weight, i / labels);
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
    double score, weight;
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
        next->weight = metric_weight(values->weight, i / labels);
        next->found = target[i] == (classes ? (double)which : 1);
        if (isnan(next->score))
            return false;
    }
    qsort(ranked, (size_t)ranks, sizeof *ranked, by_score);
    return true;
}

/* From high scores to low: those of one score come at once. What they weigh in all, and those to be found. */
typedef struct Ranks {
    int64_t count;
    double all, positives;
    const Ranked *at;
} Ranks;

/* What those of the next score weigh, and those to be found among them; *next moves behind these. */
static double next_weight(const Ranks *ranks, int64_t *next, double *found) {
    const double score = ranks->at[*next].score;
    double all = 0;
    for (*found = 0; *next < ranks->count && ranks->at[*next].score == score; ++*next) {
        all += ranks->at[*next].weight;
        *found += ranks->at[*next].found ? ranks->at[*next].weight : 0;
    }
    return all;
}

/* By trapezia; NaN where there are none of one sort. */
static double area_of(const Ranks *ranks) {
    const double negatives = ranks->all - ranks->positives, positives = ranks->positives;
    double area = 0, above = 0, found;
    for (int64_t next = 0; next < ranks->count; above += found) {
        const double all = next_weight(ranks, &next, &found);
        area += (all - found) * (above + found / 2);
    }
    return negatives > 0 && positives > 0 ? area / (negatives * positives) : NAN;
}

static double precision_by_recall(const Ranks *ranks) {
    double sum = 0, above = 0, passed = 0, found;
    for (int64_t next = 0; next < ranks->count;) {
        passed += next_weight(ranks, &next, &found);
        above += found;
        sum += found * above / passed;
    }
    return ranks->positives > 0 ? sum / ranks->positives : 0;
}

/* The mean over classes that there are examples of, and others, so that the score is a number; without any, the score of no
 * examples. */
static double mean_of_ranks(const MtcSetMetric *metric, const MtcSetValues *values,
                            double (*score)(const Ranks *ranks)) {
    const int64_t labels = values->elements[1], count = values->examples * (metric->classes ? labels : 1);
    const int64_t first = metric->classes == 2, last = metric->classes ? metric->classes : labels;
    Ranked *ranked = (Ranked *)malloc((size_t)count * sizeof *ranked);
    const Ranks none = {0, 0, 0, NULL};
    double sum = 0, all = 0;
    bool ordered = ranked;
    for (int64_t k = first; k < last && ordered; k++) {
        Ranks ranks = {count, 0, 0, ranked};
        ordered = rank_examples(metric, values, k, ranked);
        for (int64_t i = 0; i < count && ordered; i++) {
            ranks.all += ranked[i].weight;
            ranks.positives += ranked[i].found ? ranked[i].weight : 0;
        }
        const double one = ordered && (ranks.positives > 0 || last - first == 1) ? score(&ranks) : NAN;
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
