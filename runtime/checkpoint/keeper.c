/* When checkpoints are written while training goes on, under which names, and which older ones stay: fit.c asks whether one is due,
 * a thread writes the copy (mtc_checkpoint_write in checkpoint.c). */
#include "checkpoint/keeper.h"

#include "checkpoint/checkpoint.h"
#include "checkpoint/diverged.h"
#include "checkpoint/written.h"
#include "session/parts.h"

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

char *mtc_last_good_path(const char *path) {
    MtcText text = stem_of(path);
    mtc_text_add(&text, "-last-good.safetensors");
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
    MtcRecord record;
    MtcText metadata;
    void *bytes;      /* host memory, from its first use on */
    MtcState written; /* what is written: the bytes, or the session itself */
    int64_t writes;   /* the session's then */
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
    MtcWritten last_best; /* the writer's */
    MtcMeter *meter;      /* the session's: a warning begins a line */
    bool spoiled;         /* FILE is of a training that has diverged */
    bool warned;          /* of this one, since it was last good */

    pthread_t thread;
    bool threaded, ending;
    pthread_mutex_t lock; /* of everything below */
    pthread_cond_t changed;
    KeeperCopy copy[KEEPER_COPIES];
    MtcFault regular_fault, best_fault; /* of the last of its kind; code 0: it is in its place */
    bool failing;                       /* the last one of all failed: it belongs to a row of failures, told once */
    MtcFault untold;                    /* the first of a row; code 0: there is nothing to tell */
    MtcFault diverged;                  /* a warning likewise */
    int64_t newest;                     /* step of the last regular one in its place; -1: none */
};

/* ---- the writer ---- */

static int write_copy(MtcFault *fault, MtcKeeper *keeper, const KeeperCopy *copy, const char *path) {
    return mtc_checkpoint_write(fault, &copy->written, path, keeper->in_place ? NULL : keeper->path, copy->metadata.at);
}

static MtcContent content_of(const KeeperCopy *copy) {
    return (MtcContent){copy->metadata.at, copy->writes};
}

/* What the best weights' file holds gets another name. */
static int write_or_link(MtcFault *fault, MtcKeeper *keeper, const KeeperCopy *copy, const char *path) {
    const MtcContent content = content_of(copy);
    return mtc_written_link(&keeper->last_best, path, &content) ? 0 : write_copy(fault, keeper, copy, path);
}

static int write_best(MtcFault *fault, MtcKeeper *keeper, const KeeperCopy *copy) {
    const MtcContent content = content_of(copy);
    int code = write_copy(fault, keeper, copy, keeper->best);
    if (!code)
        mtc_written_note(&keeper->last_best, keeper->best, &content);
    return code;
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
    int code = write_or_link(fault, keeper, copy, numbered);
    if (!code && mtc_output_link(&unlinked, numbered, keeper->path))
        code = write_copy(fault, keeper, copy, keeper->path);
    if (!code)
        add_number(keeper, copy->step);
    free(numbered);
    return code;
}

/* ---- a training that has diverged ---- */

/* What FILE is until now becomes another file. */
static bool keep_last_good(MtcKeeper *keeper, const char *last_good) {
    MtcFault unlinked; /* the file system has no links */
    return access(keeper->path, F_OK) == 0 &&
           (mtc_output_link(&unlinked, keeper->path, last_good) == 0 || rename(keeper->path, last_good) == 0);
}

static void mark_diverged(KeeperCopy *copy) {
    MtcText marked = {NULL, 0, 0};
    mtc_text_add(&marked, "{\"mtc.diverged\":\"1\",%s", copy->metadata.at + 1);
    free(copy->metadata.at);
    copy->metadata = marked;
}

static void warn_diverged(MtcFault *warning, const KeeperCopy *copy, double largest) {
    const MtcRecord *record = &copy->record;
    mtc_fail(warning, MTC_BAD_DATA,
             "training seems to have diverged: after step %lld the loss is %s, %s in the first step, and the largest "
             "weight %s, %s at first",
             (long long)copy->step, mtc_number(record->loss), mtc_number(record->first_loss), mtc_number(largest),
             mtc_number(record->first_weight));
}

/* The file is marked so that the next program knows which one is good. Where FILE was spoiled before this program began, it
 * is warned of all the same, and what is good stays where it is. */
static void look_at_copy(MtcKeeper *keeper, KeeperCopy *copy, MtcFault *warning) {
    double largest;
    if (mtc_largest_weight(&copy->written, &largest))
        return; /* nor can it be written */
    if (!mtc_has_diverged(&copy->record, largest)) {
        keeper->spoiled = keeper->warned = false;
        return;
    }
    char *last_good = mtc_last_good_path(keeper->path);
    mark_diverged(copy);
    if (!keeper->warned)
        warn_diverged(warning, copy, largest);
    if (!keeper->spoiled && keep_last_good(keeper, last_good))
        mtc_note(warning, "what %s was until now is %s", keeper->path, last_good);
    keeper->spoiled = keeper->warned = true;
    free(last_good);
}

static int write_any(MtcFault *fault, MtcKeeper *keeper, const KeeperCopy *copy) {
    memset(fault, 0, sizeof *fault);
    return copy->best     ? write_best(fault, keeper, copy)
           : keeper->keep ? write_numbered(fault, keeper, copy)
                          : write_or_link(fault, keeper, copy, keeper->path);
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
    MtcFault fault, warning = {0, ""}, *last = copy->best ? &keeper->best_fault : &keeper->regular_fault;
    copy->state = COPY_WRITING;
    pthread_mutex_unlock(&keeper->lock);
    if (!copy->best && !keeper->in_place)
        look_at_copy(keeper, copy, &warning);
    int code = write_any(&fault, keeper, copy);
    pthread_mutex_lock(&keeper->lock);
    if (warning.code)
        keeper->diverged = warning;
    if (code && !keeper->failing && !keeper->untold.code)
        keeper->untold = fault;
    keeper->failing = code != 0;
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

int mtc_keeper_check(MtcFault *fault, const MtcKeeping *keeping) {
    MtcInterval interval;
    int code = keeping->save_every ? mtc_parse_interval(fault, keeping->save_every, &interval) : 0;
    if (!code && !keeping->save && (keeping->save_every || keeping->keep))
        code = mtc_fail(fault, MTC_USAGE, "--%s says how to save, but not where: --save FILE",
                        keeping->keep ? "keep" : "save-every");
    if (!code && keeping->save && keeping->keep && mtc_written_in_place(keeping->save))
        code = mtc_fail(fault, MTC_USAGE, "%s is no file that --keep could number", keeping->save);
    return code || !keeping->save ? code : mtc_output_check(fault, keeping->save);
}

static int compare_steps(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

bool mtc_is_named_after(const char *save, const char *resumed) {
    char *path = mtc_resolved(save);
    MtcText stem = stem_of(path);
    char *target = mtc_resolved(resumed);
    size_t length = strlen(stem.at);
    bool named = target && strncmp(target, stem.at, length) == 0 && strchr("-.", target[length]) != NULL;
    free(target);
    free(stem.at);
    free(path);
    return named;
}

/* The number that a checkpoint of ours has under a key that is among the first of its metadata, which come behind the eight
 * bytes of the header's length; -1: none. */
static int64_t early_number(const char *path, const char *key) {
    MtcFault unused;
    MtcInput *input;
    char begin[4096];
    size_t got = 0;
    if (mtc_input_open(&unused, path, &input) != 0)
        return -1;
    mtc_input_read(&unused, input, begin, sizeof begin - 1, &got);
    mtc_input_close(input);
    begin[got] = 0;
    const char *found = got > 8 ? strstr(begin + 8, key) : NULL;
    return found ? strtoll(found + strlen(key), NULL, 10) : -1;
}

int64_t mtc_step_of_file(const char *path) {
    return early_number(path, "\"mtc.step\":\"");
}

bool mtc_is_own_checkpoint(const char *path) {
    return early_number(path, "\"mtc.version\":\"") > 0;
}

/* "run-7.safetensors" may be a training's FILE as well as run's checkpoint of step 7, which says that it is of step 7. */
static bool is_of_step(const char *path, int64_t step) {
    return mtc_step_of_file(path) == step;
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

static void configure_keeper(MtcKeeper *keeper, const MtcSession *session, const MtcKeeping *keeping) {
    MtcFault unused; /* mtc_keeper_check has parsed it */
    keeper->model = session->model;
    keeper->program = keeping->program;
    keeper->path = mtc_resolved(keeping->save);
    keeper->in_place = mtc_written_in_place(keeping->save);
    keeper->best = keeper->in_place ? NULL : mtc_best_path(keeper->path);
    keeper->keep = keeping->keep;
    keeper->number = (int64_t *)mtc_memory(NULL, (size_t)(keeper->keep + 2) * sizeof *keeper->number);
    mtc_parse_interval(&unused, keeping->save_every ? keeping->save_every : "1m", &keeper->interval);
    if (keeper->keep && keeping->resume && mtc_is_named_after(keeping->save, keeping->resume))
        find_numbers(keeper, session->at.step);
    keeper->saved = mtc_seconds();
    keeper->newest = -1;
    keeper->spoiled = !keeper->in_place && early_number(keeper->path, "\"mtc.diverged\":\"") > 0;
}

int mtc_keeper_open(MtcSession *session, const MtcKeeping *keeping, MtcKeeper **result) {
    MtcKeeper *keeper = (MtcKeeper *)mtc_zeroed(sizeof *keeper);
    *result = keeper;
    configure_keeper(keeper, session, keeping);
    keeper->meter = &session->meter;
    pthread_mutex_init(&keeper->lock, NULL);
    pthread_cond_init(&keeper->changed, NULL);
    int code = mtc_kept_ranges(&session->fault, session->model, &keeper->kept);
    code = code ? code : mtc_reserve_collected(session);
    if (!code && session->record.first_weight <= 0)
        code = mtc_measure_weights(session);
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

/* To the writer; what is the session itself is written at once. */
static void hand_over(MtcKeeper *keeper, KeeperCopy *copy, CopyState state) {
    pthread_mutex_lock(&keeper->lock);
    copy->state = state;
    pthread_cond_broadcast(&keeper->changed);
    if (state == COPY_READY && (!keeper->threaded || !copy->written.copy))
        write_next(keeper, copy);
    pthread_mutex_unlock(&keeper->lock);
}

void mtc_keeper_settle(MtcKeeper *keeper) {
    bool pending = keeper->threaded;
    pthread_mutex_lock(&keeper->lock);
    while (pending) {
        pending = false;
        for (int i = 0; i < KEEPER_COPIES; i++)
            pending |= keeper->copy[i].state != COPY_FREE;
        if (pending)
            pthread_cond_wait(&keeper->changed, &keeper->lock);
    }
    pthread_mutex_unlock(&keeper->lock);
}

/* Nothing is being written, and no copy is needed. */
static KeeperCopy *take_idle(MtcKeeper *keeper) {
    mtc_keeper_settle(keeper);
    keeper->copy[0].state = COPY_FILLING; /* nobody else gives the writer work */
    return &keeper->copy[0];
}

static int save_copy(MtcKeeper *keeper, MtcSession *session, bool best, bool ends) {
    KeeperCopy *copy = ends ? take_idle(keeper) : reserve_copy(keeper, best);
    if (!copy)
        return mtc_no_memory(&session->fault, keeper->kept.bytes, "a copy of the weights, to save them,");
    copy->best = best;
    copy->step = session->at.step;
    copy->record = session->record;
    copy->writes = session->writes;
    copy->metadata.length = 0;
    copy->written = (MtcState){session, &keeper->kept, ends ? NULL : (const char *)copy->bytes};
    mtc_checkpoint_metadata(&copy->metadata, session);
    int code = ends ? 0 : mtc_download_kept(session, &keeper->kept, (char *)copy->bytes);
    hand_over(keeper, copy, code ? COPY_FREE : COPY_READY);
    return code;
}

int mtc_keeper_save(MtcKeeper *keeper, MtcSession *session, bool ends) {
    keeper->saved = mtc_seconds();
    return save_copy(keeper, session, false, ends);
}

int mtc_keeper_save_best(MtcKeeper *keeper, MtcSession *session, bool ends) {
    return keeper->best ? save_copy(keeper, session, true, ends) : 0;
}

/* ---- failures ---- */

/* Whatever was written since: a checkpoint that is missing may be the one that is missed. */
void mtc_keeper_warn(MtcKeeper *keeper) {
    pthread_mutex_lock(&keeper->lock);
    if (keeper->untold.code || keeper->diverged.code)
        mtc_meter_clear(keeper->meter);
    if (keeper->untold.code)
        fprintf(stderr, "%s: warning: a checkpoint was not written, training goes on: %s\n", keeper->program,
                keeper->untold.text);
    if (keeper->diverged.code)
        fprintf(stderr, "%s: warning: %s\n", keeper->program, keeper->diverged.text);
    keeper->untold.code = keeper->diverged.code = 0;
    pthread_mutex_unlock(&keeper->lock);
}

/* The caller tells of the last fault; of any other, nobody else does. */
static int end_failures(MtcFault *fault, MtcKeeper *keeper) {
    const MtcFault *last = keeper->regular_fault.code ? &keeper->regular_fault : &keeper->best_fault;
    if (last->code)
        *fault = *last;
    if (last->code && strcmp(last->text, keeper->untold.text) == 0)
        keeper->untold.code = 0;
    mtc_keeper_warn(keeper);
    return last->code == MTC_CANT_CREATE ? MTC_IO : last->code; /* it could be created when training began */
}

int mtc_keeper_close(MtcFault *fault, MtcKeeper *keeper, int64_t *newest) {
    pthread_mutex_lock(&keeper->lock);
    keeper->ending = true;
    pthread_cond_broadcast(&keeper->changed);
    pthread_mutex_unlock(&keeper->lock);
    if (keeper->threaded)
        pthread_join(keeper->thread, NULL);
    int code = end_failures(fault, keeper);
    *newest = keeper->newest;
    for (int i = 0; i < KEEPER_COPIES; i++) {
        mtc_host_free(keeper->copy[i].bytes);
        free(keeper->copy[i].metadata.at);
    }
    pthread_cond_destroy(&keeper->changed);
    pthread_mutex_destroy(&keeper->lock);
    mtc_written_free(&keeper->last_best);
    free(keeper->kept.range);
    free(keeper->number);
    free(keeper->best);
    free(keeper->path);
    free(keeper);
    return code;
}
