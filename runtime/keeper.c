#include "keeper.h"

#include "checkpoint.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- how often ---- */

int mtc_parse_interval(MtcFault *fault, const char *text, MtcInterval *interval) {
    static const struct {
        const char *unit;
        double seconds;
    } units[] = {{"s", 1}, {"m", 60}, {"h", 3600}};
    char *end;
    double number = strtod(text, &end);
    memset(interval, 0, sizeof *interval);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (end != text && strcmp(end, units[i].unit) == 0)
            interval->seconds = number * units[i].seconds;
    if (end != text && !*end && number == floor(number) && number < 1e15)
        interval->steps = (int64_t)number;
    if (interval->steps >= 1 || (interval->seconds > 0 && isfinite(interval->seconds)))
        return 0;
    mtc_fail(fault, MTC_USAGE, "--save-every needs a number of steps, or a time: 500, 30s, 10m, 1h; not '%s'", text);
    return fault->code;
}

/* ---- names ---- */

/* "run.safetensors" -> "run"; other endings belong to the name. */
static MtcText stem_of(const char *path) {
    static const char ending[] = ".safetensors";
    size_t length = strlen(path), end = sizeof ending - 1;
    MtcText stem = {NULL, 0, 0};
    if (length > end && strcmp(path + length - end, ending) == 0)
        length -= end;
    mtc_text_add(&stem, "%.*s", (int)length, path);
    return stem;
}

char *mtc_best_path(const char *path) {
    MtcText text = stem_of(path);
    mtc_text_add(&text, "-best.safetensors");
    return text.at;
}

static char *numbered_path(const char *path, int64_t step) {
    MtcText text = stem_of(path);
    mtc_text_add(&text, "-%lld.safetensors", (long long)step);
    return text.at;
}

/* The step in the name of a numbered checkpoint of `stem`, which has no folder; -1: it is none. */
static int64_t step_of(const char *name, const char *stem) {
    size_t length = strlen(stem);
    char *end;
    if (strncmp(name, stem, length) != 0 || name[length] != '-' || !isdigit((unsigned char)name[length + 1]))
        return -1;
    errno = 0;
    long long step = strtoll(name + length + 1, &end, 10);
    bool written_so = name[length + 1] != '0' || end == name + length + 2; /* no zeros in front */
    return written_so && strcmp(end, ".safetensors") == 0 && !errno ? step : -1;
}

bool mtc_is_numbered(const char *save, const char *path) {
    const char *slash = strrchr(path, '/'), *folder = strrchr(save, '/');
    MtcText stem = stem_of(folder ? folder + 1 : save);
    bool numbered = step_of(slash ? slash + 1 : path, stem.at) >= 0;
    free(stem.at);
    return numbered;
}

/* ---- the keeper ---- */

typedef enum CopyState { COPY_FREE, COPY_FILLING, COPY_READY, COPY_WRITING } CopyState;

typedef struct KeeperCopy {
    CopyState state;
    bool best;
    int64_t step;
    MtcText metadata;
    void *bytes; /* host memory, from its first use on */
} KeeperCopy;

/* One being written, one regular and one best that wait. */
enum { KEEPER_COPIES = 3 };

struct MtcKeeper {
    const MtcModel *model;
    const char *program;
    char *path, *best; /* best NULL: none is kept */
    bool in_place;     /* `path` is a device or a pipe: written once, at the end */
    MtcInterval interval;
    int64_t keep, numbers, *number; /* steps of the numbered checkpoints there are, in order; room for keep + 1 */
    double saved;                   /* when a regular copy was last taken */
    MtcKept kept;

    pthread_t thread;
    bool threaded, ending;
    pthread_mutex_t lock; /* of everything below */
    pthread_cond_t changed;
    KeeperCopy copy[KEEPER_COPIES];
    MtcFault regular_fault, best_fault; /* of the last of its kind; code 0: it is in its place */
    bool warned;                        /* of this row of failures */
    int64_t newest;                     /* step of the last regular one in its place; -1: none */
};

/* ---- the writer ---- */

static int write_copy(MtcFault *fault, MtcKeeper *keeper, const KeeperCopy *copy, const char *path) {
    return mtc_checkpoint_write(fault, keeper->model, path, keeper->in_place ? NULL : keeper->path, copy->metadata.at,
                                &keeper->kept, (const char *)copy->bytes);
}

/* The oldest go once there are more than are to be kept. */
static void add_number(MtcKeeper *keeper, int64_t step) {
    int64_t at = keeper->numbers;
    while (at > 0 && keeper->number[at - 1] >= step)
        at--;
    if (at < keeper->numbers && keeper->number[at] == step)
        return;
    memmove(keeper->number + at + 1, keeper->number + at, (size_t)(keeper->numbers - at) * sizeof *keeper->number);
    keeper->number[at] = step;
    keeper->numbers++;
    int64_t extra = keeper->numbers > keeper->keep ? keeper->numbers - keeper->keep : 0;
    for (int64_t i = 0; i < extra; i++) {
        char *old = numbered_path(keeper->path, keeper->number[i]);
        unlink(old);
        free(old);
    }
    keeper->numbers -= extra;
    memmove(keeper->number, keeper->number + extra, (size_t)keeper->numbers * sizeof *keeper->number);
}

/* The numbered file first; `path` becomes another name of it, or a copy where the file system has no links. */
static int write_numbered(MtcFault *fault, MtcKeeper *keeper, const KeeperCopy *copy) {
    char *numbered = numbered_path(keeper->path, copy->step);
    MtcFault unlinked; /* the file system has no links */
    int code = write_copy(fault, keeper, copy, numbered);
    if (!code && mtc_output_link(&unlinked, numbered, keeper->path))
        code = write_copy(fault, keeper, copy, keeper->path);
    if (!code)
        add_number(keeper, copy->step);
    free(numbered);
    return code;
}

static int write_any(MtcFault *fault, MtcKeeper *keeper, const KeeperCopy *copy) {
    memset(fault, 0, sizeof *fault);
    if (copy->best)
        return write_copy(fault, keeper, copy, keeper->best);
    return keeper->keep ? write_numbered(fault, keeper, copy) : write_copy(fault, keeper, copy, keeper->path);
}

/* The best first: a checkpoint that knows of a best one is never there without it. */
static KeeperCopy *next_copy(MtcKeeper *keeper) {
    KeeperCopy *next = NULL;
    for (int i = 0; i < KEEPER_COPIES; i++)
        if (keeper->copy[i].state == COPY_READY && (!next || keeper->copy[i].best))
            next = &keeper->copy[i];
    return next;
}

/* Called and left with the lock. */
static void write_next(MtcKeeper *keeper, KeeperCopy *copy) {
    MtcFault fault, *last = copy->best ? &keeper->best_fault : &keeper->regular_fault;
    copy->state = COPY_WRITING;
    pthread_mutex_unlock(&keeper->lock);
    int code = write_any(&fault, keeper, copy);
    pthread_mutex_lock(&keeper->lock);
    *last = fault;
    if (!code && !copy->best)
        keeper->newest = copy->step;
    copy->state = COPY_FREE;
    pthread_cond_broadcast(&keeper->changed);
}

static void *run_writer(void *argument) {
    MtcKeeper *keeper = (MtcKeeper *)argument;
    KeeperCopy *copy;
    pthread_mutex_lock(&keeper->lock);
    for (;;) {
        copy = next_copy(keeper);
        if (copy)
            write_next(keeper, copy);
        else if (keeper->ending)
            break;
        else
            pthread_cond_wait(&keeper->changed, &keeper->lock);
    }
    pthread_mutex_unlock(&keeper->lock);
    return NULL;
}

/* ---- opening ---- */

int mtc_keeper_check(MtcFault *fault, const MtcOptions *options) {
    MtcInterval interval;
    int code = options->save_every ? mtc_parse_interval(fault, options->save_every, &interval) : 0;
    if (!code && !options->save && (options->save_every || options->keep))
        code = mtc_fail(fault, MTC_USAGE, "--%s says how to save, but not where: --save FILE",
                        options->keep ? "keep" : "save-every");
    if (!code && options->save && options->keep && mtc_written_in_place(options->save))
        code = mtc_fail(fault, MTC_USAGE, "%s is no file that --keep could number", options->save);
    return code || !options->save ? code : mtc_output_check(fault, options->save);
}

static int compare_steps(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Is it FILE, or a file whose name is made of FILE's? */
static bool is_named_after(const char *path, const char *resumed) {
    MtcText stem = stem_of(path);
    char *target = mtc_resolved(resumed);
    size_t length = strlen(stem.at);
    bool named = target && strncmp(target, stem.at, length) == 0 && strchr("-.", target[length]) != NULL;
    free(target);
    free(stem.at);
    return named;
}

/* "run-7.safetensors" may be a training's FILE as well as run's checkpoint of step 7, which says that it is of step 7:
 * among the first of its metadata, behind the eight bytes of the header's length. */
static bool is_of_step(const char *path, int64_t step) {
    MtcFault unused;
    MtcInput *input;
    char begin[4096], expected[48];
    size_t got = 0;
    if (mtc_input_open(&unused, path, &input) != 0)
        return false;
    mtc_input_read(&unused, input, begin, sizeof begin - 1, &got);
    mtc_input_close(input);
    begin[got] = 0;
    snprintf(expected, sizeof expected, "\"mtc.step\":\"%lld\"", (long long)step);
    return got > 8 && strstr(begin + 8, expected) != NULL;
}

static void keep_own_numbers(MtcKeeper *keeper) {
    int64_t own = 0;
    for (int64_t i = 0; i < keeper->numbers; i++) {
        char *path = numbered_path(keeper->path, keeper->number[i]);
        if (is_of_step(path, keeper->number[i]))
            keeper->number[own++] = keeper->number[i];
        free(path);
    }
    keeper->numbers = own;
}

/* A training resumed from its own file goes on with the numbered checkpoints that it has, up to where it is. */
static void find_numbers(MtcKeeper *keeper, int64_t until) {
    MtcText stem = stem_of(keeper->path);
    char *slash = strrchr(stem.at, '/');
    const char *name = slash ? slash + 1 : stem.at;
    if (slash)
        *slash = 0;
    DIR *listing = opendir(!slash ? "." : *stem.at ? stem.at : "/");
    for (struct dirent *item; listing && (item = readdir(listing));) {
        int64_t step = step_of(item->d_name, name);
        if (step < 0 || step > until)
            continue;
        keeper->number = (int64_t *)mtc_memory(keeper->number,
                                               (size_t)(keeper->numbers + keeper->keep + 2) * sizeof *keeper->number);
        keeper->number[keeper->numbers++] = step;
    }
    if (listing)
        closedir(listing);
    free(stem.at);
    keep_own_numbers(keeper);
    qsort(keeper->number, (size_t)keeper->numbers, sizeof *keeper->number, compare_steps);
}

static void configure_keeper(MtcKeeper *keeper, const MtcSession *session, const MtcOptions *options) {
    MtcFault unused; /* mtc_keeper_check has parsed it */
    keeper->model = session->model;
    keeper->program = options->program;
    keeper->path = mtc_resolved(options->save);
    keeper->in_place = mtc_written_in_place(options->save);
    keeper->best = keeper->in_place ? NULL : mtc_best_path(keeper->path);
    keeper->keep = options->keep;
    keeper->number = (int64_t *)mtc_memory(NULL, (size_t)(keeper->keep + 2) * sizeof *keeper->number);
    mtc_parse_interval(&unused, options->save_every ? options->save_every : "1m", &keeper->interval);
    if (keeper->keep && options->resume && is_named_after(keeper->path, options->resume))
        find_numbers(keeper, session->at.step);
    keeper->saved = mtc_seconds();
    keeper->newest = -1;
}

int mtc_keeper_open(MtcSession *session, const MtcOptions *options, MtcKeeper **result) {
    MtcKeeper *keeper = (MtcKeeper *)mtc_zeroed(sizeof *keeper);
    *result = keeper;
    configure_keeper(keeper, session, options);
    pthread_mutex_init(&keeper->lock, NULL);
    pthread_cond_init(&keeper->changed, NULL);
    int code = mtc_kept_ranges(&session->fault, session->model, &keeper->kept);
    keeper->threaded = !code && pthread_create(&keeper->thread, NULL, run_writer, keeper) == 0;
    return code;
}

/* ---- saving ---- */

static bool regular_pending(const MtcKeeper *keeper) {
    bool pending = false;
    for (int i = 0; i < KEEPER_COPIES; i++)
        pending |= keeper->copy[i].state != COPY_FREE && !keeper->copy[i].best;
    return pending;
}

bool mtc_keeper_due(MtcKeeper *keeper) {
    if (keeper->in_place || keeper->interval.seconds <= 0 || mtc_seconds() - keeper->saved < keeper->interval.seconds)
        return false;
    pthread_mutex_lock(&keeper->lock);
    bool pending = regular_pending(keeper);
    pthread_mutex_unlock(&keeper->lock);
    return !pending;
}

/* A copy to fill: the best that still waits, which a better one replaces; a free one; a new one; else NULL. */
static KeeperCopy *take_copy(MtcKeeper *keeper, bool best) {
    KeeperCopy *fresh = NULL;
    for (int i = 0; i < KEEPER_COPIES; i++)
        if (best && keeper->copy[i].state == COPY_READY && keeper->copy[i].best)
            return &keeper->copy[i];
    for (int i = 0; i < KEEPER_COPIES; i++)
        if (keeper->copy[i].state == COPY_FREE && (keeper->copy[i].bytes || !fresh))
            fresh = &keeper->copy[i];
    if (fresh && !fresh->bytes && mtc_host_alloc(&fresh->bytes, keeper->kept.bytes) != NULL)
        fresh->bytes = NULL;
    return fresh && fresh->bytes ? fresh : NULL;
}

static bool has_memory(const MtcKeeper *keeper) {
    bool any = false;
    for (int i = 0; i < KEEPER_COPIES; i++)
        any |= keeper->copy[i].bytes != NULL;
    return any;
}

/* NULL: there is no host memory, not even for one copy. */
static KeeperCopy *reserve_copy(MtcKeeper *keeper, bool best) {
    KeeperCopy *copy = NULL;
    pthread_mutex_lock(&keeper->lock);
    while (!best && keeper->threaded && regular_pending(keeper))
        pthread_cond_wait(&keeper->changed, &keeper->lock);
    while (!(copy = take_copy(keeper, best)) && has_memory(keeper))
        pthread_cond_wait(&keeper->changed, &keeper->lock);
    if (copy)
        copy->state = COPY_FILLING;
    pthread_mutex_unlock(&keeper->lock);
    return copy;
}

static void hand_over(MtcKeeper *keeper, KeeperCopy *copy, CopyState state) {
    pthread_mutex_lock(&keeper->lock);
    copy->state = state;
    pthread_cond_broadcast(&keeper->changed);
    if (!keeper->threaded && state == COPY_READY)
        write_next(keeper, copy);
    pthread_mutex_unlock(&keeper->lock);
}

static int save_copy(MtcKeeper *keeper, MtcSession *session, bool best) {
    KeeperCopy *copy = reserve_copy(keeper, best);
    if (!copy)
        return mtc_no_memory(&session->fault, keeper->kept.bytes, "a copy of the weights, to save them,");
    copy->best = best;
    copy->step = session->at.step;
    copy->metadata.length = 0;
    mtc_checkpoint_metadata(&copy->metadata, session);
    int code = mtc_download_kept(session, &keeper->kept, (char *)copy->bytes);
    hand_over(keeper, copy, code ? COPY_FREE : COPY_READY);
    return code;
}

int mtc_keeper_save(MtcKeeper *keeper, MtcSession *session) {
    keeper->saved = mtc_seconds();
    return save_copy(keeper, session, false);
}

int mtc_keeper_save_best(MtcKeeper *keeper, MtcSession *session) {
    return keeper->best ? save_copy(keeper, session, true) : 0;
}

/* ---- failures ---- */

static const MtcFault *last_fault(const MtcKeeper *keeper) {
    return keeper->regular_fault.code ? &keeper->regular_fault : &keeper->best_fault;
}

void mtc_keeper_warn(MtcKeeper *keeper) {
    pthread_mutex_lock(&keeper->lock);
    const MtcFault *last = last_fault(keeper);
    if (last->code && !keeper->warned)
        fprintf(stderr, "%s: warning: a checkpoint was not written, training goes on: %s\n", keeper->program,
                last->text);
    keeper->warned = last->code != 0;
    pthread_mutex_unlock(&keeper->lock);
}

int mtc_keeper_close(MtcFault *fault, MtcKeeper *keeper, int64_t *newest) {
    pthread_mutex_lock(&keeper->lock);
    keeper->ending = true;
    pthread_cond_broadcast(&keeper->changed);
    pthread_mutex_unlock(&keeper->lock);
    if (keeper->threaded)
        pthread_join(keeper->thread, NULL);
    const MtcFault *last = last_fault(keeper);
    int code = last->code == MTC_CANT_CREATE ? MTC_IO : last->code; /* it could be created when training began */
    if (code)
        *fault = *last;
    *newest = keeper->newest;
    for (int i = 0; i < KEEPER_COPIES; i++) {
        mtc_host_free(keeper->copy[i].bytes);
        free(keeper->copy[i].metadata.at);
    }
    pthread_cond_destroy(&keeper->changed);
    pthread_mutex_destroy(&keeper->lock);
    free(keeper->kept.range);
    free(keeper->number);
    free(keeper->best);
    free(keeper->path);
    free(keeper);
    return code;
}
