/* The C ABI on the model of fake.c, for what a language that embeds it does not show: run under sanitizers, or with an
 * allocation that fails.
 *
 *     embed sessions FOLDER    two threads, each with sessions of its own
 *     embed short FOLDER       the same steps again and again, with one more allocation each time before one fails;
 *                              linked with --wrap */
#include "mtc.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXAMPLES = 43, IMAGE = 16, CLASSES = 3, EPOCHS = 3 };

static unsigned char image[EXAMPLES][IMAGE], label[EXAMPLES];

static void make_examples(void) {
    for (int i = 0; i < EXAMPLES; i++) {
        label[i] = (unsigned char)(i * 7 % CLASSES);
        for (int k = 0; k < IMAGE; k++)
            image[i][k] = (unsigned char)((i * 31 + k * 17) % 100 + (k / 4 == label[i] ? 120 : 0));
    }
}

/* ---- what a caller does; the first code that is not 0 ends it ---- */

typedef struct Told {
    int epochs, steps;
    double loss;
} Told;

static bool on_steps(void *user, int64_t step, const double *means) {
    ((Told *)user)->steps = (int)step;
    ((Told *)user)->loss = means[0];
    return false;
}

static bool on_epoch(void *user, int64_t epoch, const double *means, const double *watched) {
    ((Told *)user)->epochs = (int)epoch;
    return means[0] != means[0] || !watched || epoch == 2;
}

static int train(MtcSession *session) {
    const void *fields[] = {image, label};
    const bool lent[] = {true, false};
    Told told = {0, 0, 0};
    const MtcFitting fitting = {EPOCHS, 1, true, &told, on_steps, on_epoch, NULL};
    void *memory = NULL;
    int code = mtc_memory_new(session, sizeof image, &memory);
    if (!code)
        code = mtc_memory_write(session, memory, image, sizeof image);
    fields[0] = memory;
    if (!code)
        code = mtc_lend_data(session, 0, EXAMPLES, fields, lent);
    fields[0] = image;
    if (!code)
        code = mtc_set_data(session, 1, EXAMPLES, fields);
    for (int i = 0; i < 2 && !code; i++) /* until the second epoch, then the rest */
        code = mtc_fit(session, &fitting);
    if (!code && (told.epochs != EPOCHS || told.steps != EPOCHS * ((EXAMPLES + 7) / 8)))
        code = -1;
    if (!code)
        code = mtc_drop_data(session, 0);
    if (memory)
        mtc_memory_free(session, memory);
    return code;
}

static int answer(MtcSession *session) {
    const void *fields[] = {image, NULL};
    float out[EXAMPLES][CLASSES], weight[CLASSES][IMAGE];
    double reports[MTC_MAX_REPORTS];
    void *at;
    int code = mtc_predict(session, EXAMPLES, fields, &out[0][0]);
    if (!code)
        code = mtc_evaluate(session, 1, reports);
    if (!code)
        code = mtc_get(session, "logits.weight", weight, sizeof weight);
    if (!code)
        code = mtc_locate(session, "logits.weight", &at);
    if (!code && memcmp(at, weight, sizeof weight) != 0)
        code = -1;
    return code;
}

static int keep(MtcSession *session, const char *folder, const char *name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int code = mtc_load_data(session, 0, folder);
    if (!code)
        code = mtc_train(session, 3, NULL);
    if (!code)
        code = mtc_save(session, path);
    if (!code)
        code = mtc_load(session, path);
    return code ? code : mtc_resume(session, path);
}

static int tell(MtcSession *session) {
    char *model = mtc_describe(&mtc_model), *status = mtc_status(session);
    int code = model && status ? 0 : 69;
    mtc_free(model);
    mtc_free(status);
    return code;
}

static int everything(const char *folder, const char *name, uint64_t seed, char *message, size_t size) {
    MtcSession *session;
    int code = mtc_create(&mtc_model, seed, 0, &session);
    if (!code)
        code = train(session);
    if (!code)
        code = answer(session);
    if (!code)
        code = keep(session, folder, name);
    if (!code)
        code = tell(session);
    snprintf(message, size, "%s", mtc_error(session));
    mtc_destroy(session);
    return code;
}

/* ---- threads ---- */

typedef struct Worker {
    const char *folder, *name;
    uint64_t seed;
    int code;
    char message[256];
} Worker;

static void *work(void *argument) {
    Worker *worker = (Worker *)argument;
    for (int i = 0; i < 20 && !worker->code; i++)
        worker->code = everything(worker->folder, worker->name, worker->seed, worker->message, sizeof worker->message);
    return NULL;
}

static int sessions(const char *folder) {
    Worker worker[] = {{folder, "one", 1, 0, ""}, {folder, "two", 2, 0, ""}};
    pthread_t thread[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&thread[i], NULL, work, &worker[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < 2; i++)
        if (worker[i].code)
            printf("%d: %s\n", worker[i].code, worker[i].message);
    return worker[0].code || worker[1].code;
}

/* ---- without memory ---- */

#ifdef SHORT
static long left = -1; /* allocations until one fails; negative: none does */

static bool fails(void) {
    return __atomic_load_n(&left, __ATOMIC_RELAXED) >= 0 && __atomic_fetch_sub(&left, 1, __ATOMIC_RELAXED) == 0;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
int __real_posix_memalign(void **memory, size_t alignment, size_t size);

void *__wrap_malloc(size_t size) {
    return fails() ? NULL : __real_malloc(size);
}
void *__wrap_calloc(size_t count, size_t size) {
    return fails() ? NULL : __real_calloc(count, size);
}
void *__wrap_realloc(void *old, size_t size) {
    return fails() ? NULL : __real_realloc(old, size);
}
int __wrap_posix_memalign(void **memory, size_t alignment, size_t size) {
    return fails() ? 12 : __real_posix_memalign(memory, alignment, size);
}

static int short_of_memory(const char *folder) {
    char message[256];
    for (long allocations = 0;; allocations++) {
        __atomic_store_n(&left, allocations, __ATOMIC_RELAXED);
        int code = everything(folder, "w", 1, message, sizeof message);
        bool failed = __atomic_exchange_n(&left, -1, __ATOMIC_RELAXED) < 0;
        if (!failed) {
            printf("%ld allocations\n", allocations);
            return code;
        }
        if (code && code != 69 && !strstr(message, "out of memory")) {
            printf("allocation %ld: %d: %s\n", allocations, code, message);
            return 1;
        }
    }
}
#else
static int short_of_memory(const char *folder) {
    (void)folder;
    return 1;
}
#endif

int main(int argc, char **argv) {
    make_examples();
    return argc == 3 && strcmp(argv[1], "short") == 0 ? short_of_memory(argv[2]) : sessions(argv[2]);
}
