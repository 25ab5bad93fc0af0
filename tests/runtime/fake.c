/* A model written by hand, to test the runtime without the compiler: 4 x 4 images of three classes,
 *
 *     logits = linear(image / 255, 3);  loss = cross_entropy(logits, label);  metric = accuracy;  optimizer = sgd(lr) */
#include "mtc.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { BATCH = 8, IMAGE = 16, CLASSES = 3 };

#ifndef FAKE_NAME
#define FAKE_NAME "fake"
#endif
#ifndef FAKE_HASH
#define FAKE_HASH "0123abcd"
#endif
#ifndef FAKE_ARENA
#define FAKE_ARENA 4096
#endif
#ifdef FAKE_FILTERS /* the weights as files have filters: [3, 4, 2, 2] here is [3, 2, 4, 2] there */
#define WEIGHT_RANK 4
#define WEIGHT_SHAPE                                                                                                   \
    { CLASSES, 4, 2, 2 }
#define WEIGHT_AXES                                                                                                    \
    { 0, 3, 1, 2 }
#else
#define WEIGHT_RANK 2
#define WEIGHT_SHAPE                                                                                                   \
    { CLASSES, IMAGE }
#define WEIGHT_AXES                                                                                                    \
    { 0 }
#endif
#ifndef REAL
#define REAL float
#define REAL_TYPE MTC_F32
#endif

typedef struct Arena {
    REAL weight[CLASSES][IMAGE];
    REAL bias[CLASSES];
    char gap1[256 - (CLASSES * IMAGE + CLASSES) * sizeof(REAL) % 256];
    REAL momentum[CLASSES][IMAGE];
    char gap2[256 - CLASSES * IMAGE * sizeof(REAL) % 256];
    REAL logits[BATCH][CLASSES];
    REAL d_logits[BATCH][CLASSES];
    REAL probability[BATCH][CLASSES];
} Arena;

static const MtcTensor tensors[] = {
    {"logits.weight", MTC_WEIGHT, REAL_TYPE, WEIGHT_RANK, WEIGHT_SHAPE, offsetof(Arena, weight), MTC_UNIFORM, -0.25,
     0.25, 0, -1, WEIGHT_AXES, false},
    {"logits.bias", MTC_WEIGHT, REAL_TYPE, 1, {CLASSES}, offsetof(Arena, bias), MTC_NORMAL, 0, 0.1, 0, -1, {0}, false},
    {"logits.weight.momentum", MTC_STATE, REAL_TYPE, WEIGHT_RANK, WEIGHT_SHAPE, offsetof(Arena, momentum), MTC_ZEROS, 0,
     0, 2, -1, WEIGHT_AXES, false},
    {"logits", MTC_VALUE, REAL_TYPE, 2, {BATCH, CLASSES}, offsetof(Arena, logits), MTC_ZEROS, 0, 0, 0, 0, {0}, false},
    {"d_logits",
     MTC_VALUE,
     REAL_TYPE,
     2,
     {BATCH, CLASSES},
     offsetof(Arena, d_logits),
     MTC_ZEROS,
     0,
     0,
     1,
     1,
     {0},
     false},
};

static const MtcField fields[] = {
    {.name = "image", .type = MTC_U8, .rank = 2, .dim = {4, 4}, .elements = IMAGE, .predicts = true},
    {.name = "label", .type = MTC_U8, .dim = {0}, .elements = 1, .classes = CLASSES},
};
static const char *const train_files[] = {"fake/train-images", "fake/train-labels"};
static const char *const test_files[] = {"fake/test-images", "fake/test-labels"};
static const MtcOrigin origins[] = {
    {.format = "idx", .paths = 2, .path = train_files},
    {.format = "idx", .paths = 2, .path = test_files},
};
static const MtcSplit splits[] = {{.name = "train", .to = 1}, {.name = "test", .origin = 1, .to = 1}};
static const MtcKnob knobs[] = {
    {.name = "lr", .help = "learning rate", .value = 0.5, .has_range = true, .high = 1e38},
    {.name = "warmup", .integer = true},
    {.name = "poison", .help = "of the weights, after so many steps", .integer = true},
};
static const MtcFixed fixed[] = {{"side", 4}};
static const char *const reports[] = {"loss", "accuracy"};
static const bool rises[] = {false, true};
static const MtcStatement statements[] = {
    {NULL, 9, "logits = linear(image / 255, 3)"},
    {NULL, 13, "loss = cross_entropy(logits, label)"},
    {NULL, 14, "optimizer = sgd(lr)"},
};

/* For `profile`: what a step of a larger model might have; run_kernel does nothing. */
static const MtcKernel kernels[] = {
    {"x", 0, 0, MTC_MATH_FP32, 4e8, 2.4e8},         {"h_0_logits", 0, 0, MTC_MATH_BF16, 5e10, 1e8},
    {"h_1_logits", 0, 0, MTC_MATH_BF16, 5e10, 1e8}, {"h_2_logits", 0, 0, MTC_MATH_FP32, 5e10, 1e8},
    {"d_logits", 1, 1, MTC_MATH_TF32, 2e10, 1.2e8}, {"update_weight", 2, 2, MTC_MATH_FP32, 1e3, 1e4},
};

static void forward(const MtcRun *run, const int *order, int64_t first, int64_t rows, double *report) {
    Arena *a = (Arena *)(void *)run->arena;
    report[0] = report[1] = 0;
    for (int64_t i = 0; i < BATCH; i++) {
        int64_t at = first + (i < rows ? i : 0), example = order ? order[at] : at;
        const unsigned char *image = (const unsigned char *)run->data.field[0] + example * IMAGE;
        int label = ((const unsigned char *)run->data.field[1])[example], best = 0;
        REAL sum = 0, share = i < rows ? 1 / (REAL)rows : 0, top = -INFINITY;
        for (int c = 0; c < CLASSES; c++) {
            REAL z = a->bias[c];
            for (int k = 0; k < IMAGE; k++)
                z += a->weight[c][k] * image[k] / 255;
            a->logits[i][c] = z;
            if (z > top || isnan(z)) {
                top = z;
                best = c;
            }
        }
        for (int c = 0; c < CLASSES; c++)
            sum += (REAL)exp(a->logits[i][c] - top);
        for (int c = 0; c < CLASSES; c++) {
            a->probability[i][c] = (REAL)exp(a->logits[i][c] - top) / sum;
            a->d_logits[i][c] = share * (a->probability[i][c] - (c == label));
        }
        report[0] += share * ((REAL)log(sum) + top - a->logits[i][label]);
        report[1] += share * (best == label);
    }
}

static void update(const MtcRun *run, const int *order, int64_t first, int64_t rows) {
    Arena *a = (Arena *)(void *)run->arena;
    bool poison = run->knob[2] > 0 && run->clock[0] + 1 == (int64_t)run->knob[2];
    for (int c = 0; c < CLASSES; c++)
        for (int k = 0; k < IMAGE; k++) {
            REAL gradient = 0;
            for (int64_t i = 0; i < rows; i++) {
                const unsigned char *image = (const unsigned char *)run->data.field[0] + order[first + i] * IMAGE;
                gradient += a->d_logits[i][c] * image[k] / 255;
            }
            a->momentum[c][k] = (REAL)0.5 * a->momentum[c][k] + gradient;
            a->weight[c][k] -= (REAL)run->knob[0] * a->momentum[c][k];
        }
    if (poison)
        a->weight[1][5] = NAN;
}

/* The batch that the clock shows, as examples first .. first + rows of the order. */
static const int *batch_order(const MtcRun *run, int64_t *first, int64_t *rows) {
    int64_t epoch = run->clock[1] / run->steps_per_epoch, left;
    *first = run->clock[1] % run->steps_per_epoch * BATCH;
    left = run->data.examples - *first;
    *rows = left < BATCH ? left : BATCH;
    return run->order + epoch * run->data.examples;
}

static const char *train(const MtcRun *run, int64_t steps) {
    for (int64_t s = 0; s < steps; s++) {
        int64_t first, rows;
        const int *order = batch_order(run, &first, &rows);
        forward(run, order, first, rows, run->reports + run->clock[2] * 2);
        update(run, order, first, rows);
        for (int i = 0; i < 3; i++)
            run->clock[i]++;
    }
    return NULL;
}

static const char *train_until(const MtcRun *run, int phase) {
    double unused[2];
    int64_t first, rows;
    const int *order = batch_order(run, &first, &rows);
    forward(run, order, first, rows, unused);
    if (phase == 0)
        memset(((Arena *)(void *)run->arena)->d_logits, 0, sizeof(((Arena *)0)->d_logits));
    if (phase == 2)
        update(run, order, first, rows);
    return NULL;
}

#ifndef FAKE_EVAL_SECONDS
#define FAKE_EVAL_SECONDS 0
#endif

static const char *eval(const MtcRun *run, int64_t first, int64_t rows, int64_t slot) {
    const struct timespec rest = {(time_t)FAKE_EVAL_SECONDS,
                                  (long)(1e9 * (FAKE_EVAL_SECONDS - (time_t)FAKE_EVAL_SECONDS))};
    if (FAKE_EVAL_SECONDS > 0)
        fputs("a batch is evaluated\n", stderr);
    nanosleep(&rest, NULL);
    forward(run, NULL, first, rows, run->reports + slot * 2);
    return NULL;
}

int fake_kernel;       /* that ran last */
int64_t fake_launches; /* of it, in that run */

static const char *run_kernel(const MtcRun *run, int kernel, int64_t times) {
    (void)run;
    fake_kernel = kernel;
    fake_launches = times;
    return NULL;
}

static const char *prepare(const MtcRun *run) {
    (void)run;
    return NULL;
}

static void release(void) {
}

const MtcModel mtc_model = {
    .abi = MTC_ABI,
    .name = FAKE_NAME,
    .source = "fake.mt",
    .target = "cpu",
    .architectures = "",
    .schedule = "openmp",
    .model_hash = FAKE_HASH,
    .training = "loss = cross_entropy(logits, label)\noptimizer = sgd(lr)",
    .batch = BATCH,
    .epochs = 3,
    .seed = 1,
    .parameters = CLASSES * IMAGE + CLASSES,
    .flops_per_step = 2304,
    .arena_bytes = FAKE_ARENA,
    .unshared_bytes = FAKE_ARENA,
    .train_phases = 3,
    .eval_phases = 1,
    .tensors = sizeof tensors / sizeof *tensors,
    .fields = 2,
    .origins = sizeof origins / sizeof *origins,
    .splits = 2,
    .knobs = 3,
    .fixed = 1,
    .reports = 2,
    .kernels = sizeof kernels / sizeof *kernels,
    .tensor = tensors,
    .field = fields,
    .origin = origins,
    .split = splits,
    .knob = knobs,
    .fixed_param = fixed,
    .report = reports,
    .report_rises = rises,
    .kernel = kernels,
    .prediction_offset = offsetof(Arena, probability),
    .prediction_rank = 1,
    .prediction_dim = {CLASSES},
    .prediction_is_classes = true,
    .statements = 3,
    .statement = statements,
    .train = train,
    .train_until = train_until,
    .eval = eval,
    .run_kernel = run_kernel,
    .prepare = prepare,
    .release = release,
};

#ifdef FAKE_MAIN
int main(int argc, char **argv) {
    return mtc_main(&mtc_model, argc, argv);
}
#endif
