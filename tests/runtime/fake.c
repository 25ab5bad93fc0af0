/* A model written by hand, to test the runtime without the compiler: 4 x 4 images of three classes,
 *
 *     logits = linear(image / 255, 3);  loss = cross_entropy(logits, label);  metric = accuracy;  optimizer = sgd(lr) */
#include "mtc.h"

#include <math.h>
#include <string.h>

enum { BATCH = 8, IMAGE = 16, CLASSES = 3 };

#ifndef FAKE_ARENA
#define FAKE_ARENA 4096
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
    {"logits.weight",
     MTC_WEIGHT,
     REAL_TYPE,
     2,
     {CLASSES, IMAGE},
     offsetof(Arena, weight),
     MTC_UNIFORM,
     -0.25,
     0.25,
     9,
     -1},
    {"logits.bias", MTC_WEIGHT, REAL_TYPE, 1, {CLASSES}, offsetof(Arena, bias), MTC_NORMAL, 0, 0.1, 9, -1},
    {"logits.weight.momentum",
     MTC_STATE,
     REAL_TYPE,
     2,
     {CLASSES, IMAGE},
     offsetof(Arena, momentum),
     MTC_ZEROS,
     0,
     0,
     14,
     -1},
    {"logits", MTC_VALUE, REAL_TYPE, 2, {BATCH, CLASSES}, offsetof(Arena, logits), MTC_ZEROS, 0, 0, 9, 0},
    {"d_logits", MTC_VALUE, REAL_TYPE, 2, {BATCH, CLASSES}, offsetof(Arena, d_logits), MTC_ZEROS, 0, 0, 13, 1},
};

static const MtcField fields[] = {
    {"image", MTC_U8, 2, {4, 4}, IMAGE, 0},
    {"label", MTC_U8, 0, {0}, 1, CLASSES},
};
static const MtcSplit splits[] = {
    {"train", "idx", 2, {"fake/train-images", "fake/train-labels"}},
    {"test", "idx", 2, {"fake/test-images", "fake/test-labels"}},
};
static const MtcKnob knobs[] = {
    {"lr", "learning rate", 0.5, false, true, 0, 1e38},
    {"warmup", NULL, 0, true, false, 0, 0},
    {"poison", "of the weights, after so many steps", 0, true, false, 0, 0},
};
static const MtcFixed fixed[] = {{"side", 4}};
static const char *const reports[] = {"loss", "accuracy"};
static const MtcStatement statements[] = {
    {9, "logits = linear(image / 255, 3)"},
    {13, "loss = cross_entropy(logits, label)"},
    {14, "optimizer = sgd(lr)"},
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

static void update(const MtcRun *run, int64_t first, int64_t rows) {
    Arena *a = (Arena *)(void *)run->arena;
    bool poison = run->knob[2] > 0 && run->clock[0] + 1 == (int64_t)run->knob[2];
    for (int c = 0; c < CLASSES; c++)
        for (int k = 0; k < IMAGE; k++) {
            REAL gradient = 0;
            for (int64_t i = 0; i < rows; i++) {
                const unsigned char *image = (const unsigned char *)run->data.field[0] + run->order[first + i] * IMAGE;
                gradient += a->d_logits[i][c] * image[k] / 255;
            }
            a->momentum[c][k] = (REAL)0.5 * a->momentum[c][k] + gradient;
            a->weight[c][k] -= (REAL)run->knob[0] * a->momentum[c][k];
        }
    if (poison)
        a->weight[1][5] = NAN;
}

static int64_t rows_at(const MtcRun *run, int64_t first) {
    int64_t left = run->data.examples - first;
    return left < BATCH ? left : BATCH;
}

static const char *train(const MtcRun *run, int64_t steps) {
    for (int64_t s = 0; s < steps; s++) {
        int64_t first = run->clock[1] * BATCH, rows = rows_at(run, first);
        forward(run, run->order, first, rows, run->reports + run->clock[2] * 2);
        update(run, first, rows);
        for (int i = 0; i < 3; i++)
            run->clock[i]++;
    }
    return NULL;
}

static const char *train_until(const MtcRun *run, int phase) {
    double unused[2];
    int64_t first = run->clock[1] * BATCH, rows = rows_at(run, first);
    forward(run, run->order, first, rows, unused);
    if (phase == 0)
        memset(((Arena *)(void *)run->arena)->d_logits, 0, sizeof(((Arena *)0)->d_logits));
    if (phase == 2)
        update(run, first, rows);
    return NULL;
}

static const char *eval(const MtcRun *run, int64_t first, int64_t rows, int64_t slot) {
    forward(run, NULL, first, rows, run->reports + slot * 2);
    return NULL;
}

static const char *prepare(const MtcRun *run) {
    (void)run;
    return NULL;
}

static void release(void) {
}

const MtcModel mtc_model = {
    MTC_ABI,
    "fake",
    "fake.mt",
    "cpu",
    "",
    "openmp",
    "0123abcd",
    BATCH,
    3,
    1,
    CLASSES *IMAGE + CLASSES,
    2304,
    FAKE_ARENA,
    FAKE_ARENA,
    3,
    1,
    sizeof tensors / sizeof *tensors,
    2,
    2,
    3,
    1,
    2,
    tensors,
    fields,
    splits,
    knobs,
    fixed,
    reports,
    offsetof(Arena, probability),
    1,
    {CLASSES},
    true,
    3,
    statements,
    train,
    train_until,
    eval,
    prepare,
    release,
};

#ifdef FAKE_MAIN
int main(int argc, char **argv) {
    return mtc_main(&mtc_model, argc, argv);
}
#endif
