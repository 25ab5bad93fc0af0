#include "session/advice.h"

#include "ranks/ranks.h"
#include "session/finite.h"
#include "session/weights.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void warn(const MtcAdvice *advice, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void warn(const MtcAdvice *advice, const char *format, ...) {
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    advice->warn(advice->user, text);
}

static void warn_of_batch(const MtcAdvice *advice) {
    const MtcSession *session = advice->session;
    const int64_t examples = session->data[MTC_TRAIN].examples, batch = mtc_step_examples(session->model);
    if (batch <= examples || advice->one_batch)
        return;
    warn(advice,
         "a batch has %lld examples and the training data only %lld: an epoch is a single step; mtc --batch N makes a "
         "program of smaller ones",
         (long long)batch, (long long)examples);
}

/* Metrics over a set are those of data that are evaluated. */
static void warn_of_metrics(const MtcAdvice *advice) {
    const MtcSession *session = advice->session;
    const MtcModel *model = session->model;
    if (session->data[mtc_watched(session)].examples || (!model->set_metrics && !model->confusion))
        return;
    warn(advice,
         "%s is a metric over a set, and there are neither validation nor test data to evaluate: the training does "
         "not report it; eval --split train does",
         model->set_metrics ? model->report[model->reports] : "confusion");
}

/* The flag is refused then; what the text says may serve other data. */
static void warn_of_patience(const MtcAdvice *advice) {
    const MtcSession *session = advice->session;
    if (session->data[mtc_watched(session)].examples || !session->model->patience || advice->watching)
        return;
    warn(advice,
         "patience = %d ends nothing: there are neither validation nor test data to evaluate, and the training has "
         "all of its epochs",
         session->model->patience);
}

/* Of several optimizers, of accumulated gradients. */
static void warn_of_updates(const MtcAdvice *advice) {
    const MtcSession *session = advice->session;
    const int64_t first = session->model->first_update;
    if (first <= session->last_step || !session->last_step)
        return;
    warn(advice,
         "the training ends with step %lld, and some weights would have their first update in step %lld, as the "
         "optimizer's every and accumulate say: they stay as they are",
         (long long)session->last_step, (long long)first);
}

void mtc_advice_open(MtcAdvice *advice, MtcSession *session) {
    advice->session = session;
    advice->course = mtc_course(session);
    advice->watched = session->at.step == 0 && !session->learned && !mtc_rank() && !session->model->own_losses;
    advice->before = NAN;
    if (mtc_rank())
        return; /* rank 0 has the same data */
    warn_of_batch(advice);
    warn_of_metrics(advice);
    warn_of_patience(advice);
    warn_of_updates(advice);
}

/* ---- numbers that are far from 0 ---- */

/* The loss of weights that know nothing is some units; much more comes of numbers that are not what weights begin for. */
static const double CLASSES_LOSS = 100, OTHER_LOSS = 1000, FAR_INPUT = 100;
enum { LOOKED_AT = 64 };

/* Of the numbers of some examples, without their signs. */
typedef struct Magnitudes {
    double largest, mean, square; /* the mean of their squares */
} Magnitudes;

static void weigh_number(Magnitudes *numbers, double value, double share) {
    numbers->largest = fmax(numbers->largest, fabs(value));
    numbers->mean += fabs(value) * share;
    numbers->square += value * value * share;
}

static double number_of_field(const MtcField *field, const void *values, int64_t place) {
    return field->type == MTC_U8 ? (double)((const uint8_t *)values)[place] : (double)((const float *)values)[place];
}

/* Of examples from the first to the last: where they are sorted, those at the beginning are the smallest. */
static int look_at_numbers(MtcSession *session, int index, Magnitudes *numbers) {
    const MtcField *field = &session->model->field[index];
    const MtcData *data = &session->data[MTC_TRAIN];
    const int64_t looked_at = data->examples < LOOKED_AT ? data->examples : LOOKED_AT;
    const double share = 1 / (double)(looked_at * field->elements);
    void *values = malloc(mtc_example_bytes(field));
    int code = values ? 0 : mtc_no_memory(&session->fault, mtc_example_bytes(field), field->name);
    memset(numbers, 0, sizeof *numbers);
    for (int64_t i = 0; i < looked_at && !code; i++) {
        code =
            mtc_read_back(session, data, index, looked_at > 1 ? i * (data->examples - 1) / (looked_at - 1) : 0, values);
        for (int64_t e = 0; e < field->elements && !code; e++)
            weigh_number(numbers, number_of_field(field, values, e), share);
    }
    free(values);
    return code;
}

/* Of a field that the model takes as it is. */
static bool may_be_far(const MtcModel *model, const MtcField *field) {
    char name[256];
    snprintf(name, sizeof name, "%s.mean", field->name);
    return field->type == MTC_F32 && !field->classes && !field->scaled && !mtc_find_tensor(model, name);
}

/* A prediction near 0 has a loss of about these numbers, or of their squares. */
static bool explains(const Magnitudes *target, double loss) {
    const double about = 4;
    const double least = fmin(target->mean, target->square), most = fmax(target->mean, target->square);
    return (loss > least / about && loss < least * about) || (loss > most / about && loss < most * about);
}

/* A target of bytes, which may be what the prediction is computed from, too: / 255 is right for both. */
static bool may_be_bytes(const MtcModel *model, const MtcField *field) {
    return field->type == MTC_U8 && !field->classes && !model->prediction_is_classes;
}

static void warn_of_target(const MtcAdvice *advice, const MtcField *field, const Magnitudes *numbers) {
    const char *name = field->name;
    if (field->type == MTC_U8)
        warn(advice,
             "the first loss is %s: the numbers of '%s', bytes, are some %s, and networks learn and predict numbers "
             "near 0; in "
             "the model, %s / 255 is from 0 to 1, where it is read and where it is compared",
             mtc_number(advice->first), name, mtc_number(numbers->mean), name);
    else
        warn(advice,
             "the first loss is %s: the numbers of '%s', which is to be predicted, are some %s, and what networks "
             "predict "
             "begins near 0; in the model, normalize(%s) is a target near 0, and denormalize(y, %s) brings the "
             "prediction y "
             "back",
             mtc_number(advice->first), name, mtc_number(numbers->mean), name, name);
}

/* *found: the loss is that of one of these fields as it is: numbers that are only predicted; or bytes. */
static int look_at_targets(const MtcAdvice *advice, bool bytes, bool *found) {
    MtcSession *session = advice->session;
    const MtcModel *model = session->model;
    int code = 0;
    for (int i = 0; i < model->fields && !code && !*found; i++) {
        const MtcField *field = &model->field[i];
        Magnitudes numbers;
        if (bytes ? !may_be_bytes(model, field) : field->predicts || !may_be_far(model, field))
            continue;
        code = look_at_numbers(session, i, &numbers);
        *found = !code && explains(&numbers, advice->first);
        if (*found)
            warn_of_target(advice, field, &numbers);
    }
    return code;
}

/* Bytes may be scaled where they are read, and are what explains a loss only where no target does. */
static int look_at_fields(const MtcAdvice *advice) {
    MtcSession *session = advice->session;
    const MtcModel *model = session->model;
    bool found = false;
    int code = look_at_targets(advice, false, &found);
    if (!code && !found)
        code = look_at_targets(advice, true, &found);
    for (int i = 0; i < model->fields && !code && !found; i++) {
        Magnitudes numbers;
        if (!model->field[i].predicts || !may_be_far(model, &model->field[i]))
            continue;
        code = look_at_numbers(session, i, &numbers);
        if (code || numbers.largest <= FAR_INPUT)
            continue;
        warn(advice,
             "the first loss is %s: field '%s' has numbers up to %s, and networks learn from numbers near 0; in the "
             "model, normalize(%s) brings them there",
             mtc_number(advice->first), model->field[i].name, mtc_number(numbers.largest), model->field[i].name);
        return 0;
    }
    return code;
}

/* ---- targets that are no distributions ---- */

/* The first example of those that are looked at whose numbers along the last axis do not sum to 1, or are below 0; -1: none. `sum`: theirs. */
static int64_t find_other_sum(const MtcField *field, const void *values, double *sum) {
    const double rounding = 1e-2;
    const int64_t classes = field->rank ? field->dim[field->rank - 1] : 1;
    for (int64_t row = 0; row < field->elements / classes; row++) {
        double least = 0;
        *sum = 0;
        for (int64_t k = 0; k < classes; k++) {
            const double value = number_of_field(field, values, row * classes + k);
            *sum += value;
            least = fmin(least, value);
        }
        if (fabs(*sum - 1) > rounding || least < 0)
            return row;
    }
    return -1;
}

static void warn_of_sum(const MtcAdvice *advice, const MtcField *field, int64_t example, double sum) {
    warn(
        advice,
        "cross_entropy takes labels or a distribution, from 0 on and 1 in sum, and the numbers of '%s' in example %lld "
        "sum to %s%s: several labels at once are learned with bce(x, %s, from_logits = true), numbers with mse",
        field->name, (long long)example, mtc_number(sum), fabs(sum - 1) > 1e-2 ? "" : ", some below 0", field->name);
}

static int look_at_distribution(const MtcAdvice *advice, int index) {
    MtcSession *session = advice->session;
    const MtcField *field = &session->model->field[index];
    const MtcData *data = &session->data[MTC_TRAIN];
    void *values = malloc(mtc_example_bytes(field));
    int code = values ? 0 : mtc_no_memory(&session->fault, mtc_example_bytes(field), field->name);
    for (int64_t i = 0; i < data->examples && i < LOOKED_AT && !code; i++) {
        double sum;
        code = mtc_read_back(session, data, index, i, values);
        if (!code && find_other_sum(field, values, &sum) >= 0) {
            warn_of_sum(advice, field, i, sum);
            break;
        }
    }
    free(values);
    return code;
}

static int look_at_distributions(const MtcAdvice *advice) {
    const MtcModel *model = advice->session->model;
    int code = 0;
    for (int i = 0; i < model->fields && !code; i++)
        if (model->field[i].distribution && (model->field[i].type == MTC_F32 || model->field[i].type == MTC_U8))
            code = look_at_distribution(advice, i);
    return code;
}

/* ---- a loss that does not move ---- */

/* Two epochs see the same examples: their means differ by what was learned, not by chance. After an epoch of so few steps as
 * FEWEST that may be little in any training; and a loss that is less than NOT_BETTER of the first has learned before. Where
 * data say little it is not, and stands still in the end: a training that goes nowhere does so in its first epochs. */
static const double STILL = 1e-3, NOT_BETTER = 0.9;
enum { FEWEST = 20, FIRST_EPOCHS = 3 };

static void warn_still(const MtcAdvice *advice, double mean) {
    const MtcSession *session = advice->session;
    const MtcKnob *rate = mtc_find_rate(session->model);
    char now[128] = "";
    if (rate)
        snprintf(now, sizeof now, " (--%s is %g)", rate->name,
                 mtc_shortest(session->knob[rate - session->model->knob]));
    warn(advice,
         "the loss has not moved in an epoch: %s, and %s in the one before; unless the data say no more, the learning "
         "rate is too small, or so large that units died in the first steps%s, or no weight reaches the loss; "
         "--overfit-batch tries what the model can learn",
         mtc_number(mean), mtc_number(advice->before), now);
}

static void warn_weightless(const MtcAdvice *advice) {
    warn(advice,
         "all %lld examples of the epoch have the weight 0: nothing is learned from them; example_weight says how "
         "much each counts",
         (long long)advice->course.examples);
}

static void end_epoch(MtcAdvice *advice) {
    if (advice->examples == 0) {
        warn_weightless(advice);
        advice->watched = false;
        return;
    }
    const double mean = advice->sum / advice->examples;
    const bool still = fabs(mean - advice->before) <= STILL * fabs(mean);
    if (still && advice->course.steps_per_epoch >= FEWEST &&
        (advice->first <= 0 || mean >= NOT_BETTER * advice->first)) {
        warn_still(advice, mean);
        advice->watched = false;
    }
    advice->watched &= ++advice->epochs < FIRST_EPOCHS;
    advice->before = mean;
    advice->sum = advice->examples = 0;
}

int mtc_advice_steps(MtcAdvice *advice, int64_t first, int64_t count, const double *reports) {
    const MtcModel *model = advice->session->model;
    int code = 0;
    for (int64_t i = 0; i < count && advice->watched && !code; i++) {
        const double *row = reports + i * mtc_report_columns(model), loss = *row;
        const int64_t step = mtc_place_of_step(&advice->course, first + i).epoch_step;
        const double counts = mtc_row_weight(model, row, mtc_rows_of_step(&advice->course, step));
        if (first + i == 0) {
            advice->first = loss;
            code = look_at_distributions(advice);
            if (!code && loss > (model->prediction_is_classes ? CLASSES_LOSS : OTHER_LOSS))
                code = look_at_fields(advice);
        }
        advice->sum += loss * counts;
        advice->examples += counts;
        if (step + 1 == advice->course.steps_per_epoch)
            end_epoch(advice);
    }
    return code;
}

/* ---- updates that are left out ---- */

/* A number that the loss's scale keeps (compiler/pass/loss_scale.c): a state of one element. */
static int read_update_count(MtcSession *session, const char *name, double *count) {
    const MtcTensor *tensor = mtc_find_tensor(session->model, name);
    double exact = 0;
    float single = 0;
    const bool in_double = mtc_computes_in_double(session->model);
    const int code = tensor ? mtc_read_tensor(session, tensor, in_double ? (void *)&exact : (void *)&single) : 0;
    *count = in_double ? exact : (double)single;
    return code;
}

/* A scale that is still too large is halved with each: it finds its place in fewer of them. */
int mtc_advice_end(const MtcAdvice *advice) {
    enum { MOST_HALVINGS = 48 };
    double skipped, since;
    int code = read_update_count(advice->session, "update.skipped", &skipped);
    if (!code && skipped > MOST_HALVINGS)
        code = read_update_count(advice->session, "update.steps_since_scaled", &since);
    if (code || skipped <= MOST_HALVINGS || since > 0 || mtc_rank())
        return code;
    warn(advice,
         "%.0f updates were left out, the last one too: their gradients are not finite in fp16, with the smallest "
         "scale of "
         "the loss either; precision = bf16 has the range of fp32, and precision = fp32 tells where the number arises",
         skipped);
    return 0;
}
