#include "session/feed.h"

#include "base/parallel.h"
#include "random.h"
#include "ranks/ranks.h"
#include "session/memory.h"
#include "session/shards.h"

#include <stdlib.h>
#include <string.h>

enum { WINDOWS = 2, IN_ORDER = -1, ROWS_PER_TASK = 256 };
static const size_t WINDOW_BYTES = (size_t)64 << 20;

typedef struct FeedWindow {
    bool filled;
    uint64_t seed; /* what is in it */
    int64_t epoch, index;
    MtcData data; /* on the device */
    char *host;   /* the arrays, one after the other */
    int *number;  /* in host memory, as data.number on the device: which examples these are */
    MtcEvent *copied, *used;
} FeedWindow;

/* Of a step's examples, those that this rank has in its shards. */
typedef struct FeedShare {
    int64_t first, rows;
} FeedShare;

struct MtcFeed {
    MtcExamples examples;
    size_t example_bytes;
    int64_t rows, steps; /* room of a window; steps of an epoch */
    FeedShare share;     /* that windows of an epoch have */
    MtcStream *stream;
    int current;
    FeedWindow window[WINDOWS];
};

static FeedShare own_share(const MtcModel *model) {
    const int64_t step = mtc_step_examples(model), rows = model->shards ? mtc_report_rows(model) * model->batch : step;
    const int64_t first = mtc_rank() * rows, left = step - first;
    return (FeedShare){first, left < rows ? left : rows};
}

/* A pass in the order of the data has all examples. */
static FeedShare share_of(const MtcSession *session, int64_t epoch) {
    return epoch == IN_ORDER ? (FeedShare){0, mtc_step_examples(session->model)} : session->feed->share;
}

static int64_t window_steps(const MtcSession *session, int64_t epoch) {
    return session->feed->rows / share_of(session, epoch).rows;
}

/* Rows of a window that begins with that step: those of the last step of an epoch may be fewer. */
static int64_t rows_of_window(const MtcSession *session, int64_t epoch, int64_t step) {
    const MtcFeed *feed = session->feed;
    const FeedShare share = share_of(session, epoch);
    const int64_t most = window_steps(session, epoch), left = feed->steps - step;
    if (most < left)
        return most * share.rows;
    const int64_t last = feed->examples.count - (feed->steps - 1) * mtc_step_examples(session->model) - share.first;
    return (left - 1) * share.rows + (last < 0 ? 0 : last < share.rows ? last : share.rows);
}

/* ---- filling a window ---- */

typedef struct GatherJob {
    MtcSession *session;
    const FeedWindow *window;
    FeedShare share;
    int64_t first, rows; /* the step that it begins with; examples of it and those behind */
    uint64_t key;
    bool failed; /* the first that did has left its fault in the session */
} GatherJob;

static void gather_example(GatherJob *job, int field, int64_t example, char *values) {
    MtcFault fault;
    if (mtc_read_example(&fault, job->session->model, &job->session->feed->examples, field, example, values) &&
        !__atomic_exchange_n(&job->failed, true, __ATOMIC_RELAXED))
        job->session->fault = fault;
}

/* Where row i of the window stands in the order of the epoch. */
static uint32_t position_of(const GatherJob *job, int64_t i) {
    const int64_t step = job->first + i / job->share.rows;
    return (uint32_t)(step * mtc_step_examples(job->session->model) + job->share.first + i % job->share.rows);
}

static void gather_task(void *context, int64_t task) {
    GatherJob *job = (GatherJob *)context;
    const MtcModel *model = job->session->model;
    const MtcFeed *feed = job->session->feed;
    const int64_t end = (task + 1) * ROWS_PER_TASK < job->rows ? (task + 1) * ROWS_PER_TASK : job->rows;
    const uint32_t count = (uint32_t)feed->examples.count;
    for (int64_t i = task * ROWS_PER_TASK; i < end; i++) {
        const uint32_t position = position_of(job, i);
        const size_t from = job->window->epoch == IN_ORDER ? position : mtc_permute(job->key, count, position);
        char *array = job->window->host;
        job->window->number[i] = (int)from;
        for (int f = 0; f < model->fields; f++) {
            const size_t size = mtc_example_bytes(&model->field[f]);
            gather_example(job, f, (int64_t)from, array + (size_t)i * size);
            array += (size_t)job->rows * size;
        }
    }
}

static const char *upload_window(MtcSession *session, FeedWindow *window, int64_t rows) {
    const MtcModel *model = session->model;
    const char *array = window->host, *error = mtc_stream_wait(session->feed->stream, window->used);
    for (int f = 0; f < model->fields && !error; f++) {
        const size_t size = (size_t)rows * mtc_example_bytes(&model->field[f]);
        error = mtc_stream_upload(session->feed->stream, (void *)window->data.field[f], array, size);
        array += size;
    }
    error = error ? error
                  : mtc_stream_upload(session->feed->stream, (void *)window->data.number, window->number,
                                      (size_t)rows * sizeof *window->number);
    return error ? error : mtc_stream_record(session->feed->stream, window->copied);
}

static const char *fill_window(MtcSession *session, FeedWindow *window, int64_t epoch, int64_t index) {
    const int64_t first = index * window_steps(session, epoch);
    GatherJob job = {session, window, share_of(session, epoch), first, rows_of_window(session, epoch, first), 0, false};
    const char *error = mtc_event_wait(window->copied); /* its host memory is free */
    if (epoch != IN_ORDER)
        job.key = mtc_shuffle_key(session->seed, (uint64_t)epoch);
    window->epoch = epoch;
    window->index = index;
    window->seed = session->seed;
    window->filled = !error;
    if (error)
        return error;
    mtc_range_begin("gather examples");
    mtc_parallel((job.rows + ROWS_PER_TASK - 1) / ROWS_PER_TASK, gather_task, &job);
    mtc_range_end();
    window->filled = !job.failed;
    return job.failed ? session->fault.text : upload_window(session, window, job.rows);
}

static bool holds_window(const MtcSession *session, const FeedWindow *window, int64_t epoch, int64_t index) {
    return window->filled && window->epoch == epoch && window->index == index && window->seed == session->seed;
}

static const char *make_ready(MtcSession *session, int64_t epoch, int64_t epoch_step, int64_t *steps) {
    MtcFeed *feed = session->feed;
    const int64_t most = window_steps(session, epoch), index = epoch_step / most, end = (index + 1) * most;
    const char *error = NULL;
    *steps = (end < feed->steps ? end : feed->steps) - epoch_step;
    if (!holds_window(session, &feed->window[feed->current], epoch, index)) {
        feed->current = (feed->current + 1) % WINDOWS;
        if (!holds_window(session, &feed->window[feed->current], epoch, index))
            error = fill_window(session, &feed->window[feed->current], epoch, index);
    }
    return error ? error : mtc_event_before_work(feed->window[feed->current].copied);
}

/* Where each example of an epoch's order lies in its window, the same in every epoch; of those that others have, anywhere: row 0. */
static void fill_positions(const MtcSession *session, int *position) {
    const FeedShare share = session->feed->share;
    const int64_t step = mtc_step_examples(session->model), most = window_steps(session, 0);
    for (int64_t i = 0; i < session->feed->examples.count; i++) {
        const int64_t row = i % step - share.first;
        position[i] = row < 0 || row >= share.rows ? 0 : (int)(i / step % most * share.rows + row);
    }
}

/* Windows of an epoch have what this process needs, alone or as one of several. */
static const char *choose_share(MtcSession *session) {
    const size_t bytes = (size_t)session->feed->examples.count * sizeof(int);
    int *position = (int *)malloc(bytes);
    if (!position) {
        mtc_no_memory(&session->fault, bytes, "the order");
        return session->fault.text;
    }
    session->feed->share = own_share(session->model);
    for (int i = 0; i < WINDOWS; i++)
        session->feed->window[i].filled = false;
    fill_positions(session, position);
    const char *error = mtc_upload(session->order, position, bytes);
    error = error ? error : mtc_synchronize();
    free(position);
    return error;
}

const char *mtc_feed_ready(MtcSession *session, int64_t epoch, int64_t epoch_step, int64_t *steps) {
    const FeedShare now = own_share(session->model), *then = &session->feed->share;
    const char *error = now.first == then->first && now.rows == then->rows ? NULL : choose_share(session);
    return error ? error : make_ready(session, epoch, epoch_step, steps);
}

const char *mtc_feed_ahead(MtcSession *session) {
    MtcFeed *feed = session->feed;
    const FeedWindow *window = &feed->window[feed->current];
    FeedWindow *next = &feed->window[(feed->current + 1) % WINDOWS];
    const bool last = (window->index + 1) * window_steps(session, window->epoch) >= feed->steps;
    const int64_t epoch = last && window->epoch != IN_ORDER ? window->epoch + 1 : window->epoch;
    const int64_t index = last ? 0 : window->index + 1;
    const char *error = mtc_event_record(window->used);
    if (!error && !holds_window(session, next, epoch, index))
        error = fill_window(session, next, epoch, index);
    return error;
}

MtcData mtc_feed_data(const MtcSession *session) {
    MtcData data = session->feed->window[session->feed->current].data;
    data.examples = session->feed->examples.count;
    return data;
}

const char *mtc_feed_pass(MtcSession *session, int64_t epoch_step, int64_t *steps, MtcData *data) {
    const MtcModel *model = session->model;
    const char *error = make_ready(session, IN_ORDER, epoch_step, steps);
    const FeedWindow *window = &session->feed->window[session->feed->current];
    const int64_t first = window->index * window_steps(session, IN_ORDER) * mtc_step_examples(model);
    *data = mtc_feed_data(session);
    data->number = NULL;
    for (int f = 0; f < model->fields; f++) { /* where example 0 would lie */
        const size_t before = (size_t)first * mtc_example_bytes(&model->field[f]);
        data->field[f] = (const void *)((uintptr_t)data->field[f] - before);
    }
    return error;
}

int mtc_feed_example(MtcSession *session, int field, int64_t example, void *values) {
    return mtc_read_example(&session->fault, session->model, &session->feed->examples, field, example, values);
}

/* ---- beginning and end ---- */

/* $MTC_WINDOW: bytes of a window, for tests. */
static void choose_window(const MtcSession *session, MtcFeed *feed) {
    const MtcModel *model = session->model;
    const int64_t step = mtc_step_examples(model);
    const char *wanted = getenv("MTC_WINDOW");
    const size_t bytes = wanted ? (size_t)strtoull(wanted, NULL, 10) : WINDOW_BYTES;
    for (int f = 0; f < model->fields; f++)
        feed->example_bytes += mtc_example_bytes(&model->field[f]);
    feed->steps = (feed->examples.count + step - 1) / step;
    const int64_t most = (int64_t)(bytes / (feed->example_bytes * (size_t)step));
    feed->rows = step * (most < 1 ? 1 : most < feed->steps ? most : feed->steps);
}

/* Examples are gathered: in a window they lie one behind the other. */
static int new_window(MtcSession *session, FeedWindow *window) {
    const MtcModel *model = session->model;
    const int64_t rows = session->feed->rows;
    mtc_data_strides(model, 0, &window->data);
    const char *error = mtc_event_new(&window->copied);
    error = error ? error : mtc_event_new(&window->used);
    error = error ? error : mtc_host_alloc((void **)&window->host, (size_t)rows * session->feed->example_bytes);
    error = error ? error : mtc_host_alloc((void **)&window->number, (size_t)rows * sizeof *window->number);
    int code = mtc_device_fault(session, error, "host memory for examples");
    if (!code)
        code = mtc_session_alloc(session, (void **)&window->data.number, (size_t)rows * sizeof *window->number,
                                 "their numbers");
    for (int f = 0; f < model->fields && !code; f++) {
        const size_t bytes = (size_t)rows * mtc_example_bytes(&model->field[f]);
        code = mtc_session_alloc(session, (void **)&window->data.field[f], bytes, model->field[f].name);
        if (!code) /* rows that fill a shard without examples are numbers too */
            code = mtc_device_fault(session, mtc_zero((void *)window->data.field[f], bytes), model->field[f].name);
    }
    return code;
}

int mtc_feed_new(MtcSession *session, MtcExamples *examples) {
    MtcFeed *feed = session->feed = (MtcFeed *)calloc(1, sizeof *feed);
    if (!feed)
        return mtc_no_memory(&session->fault, sizeof *feed, "the training data");
    feed->examples = *examples;
    memset(examples->field, 0, sizeof examples->field);
    examples->tokens = NULL;
    feed->examples.row = NULL;
    feed->examples.path = NULL;
    choose_window(session, feed);
    int code = mtc_device_fault(session, mtc_stream_new(&feed->stream), "copies of examples");
    for (int i = 0; i < WINDOWS && !code; i++)
        code = new_window(session, &feed->window[i]);
    if (!code)
        code = mtc_device_fault(session, choose_share(session), "the order");
    return code;
}

void mtc_feed_free(MtcSession *session) {
    MtcFeed *feed = session->feed;
    if (!feed)
        return;
    mtc_stream_free(feed->stream);
    for (int i = 0; i < WINDOWS; i++) {
        FeedWindow *window = &feed->window[i];
        for (int f = 0; f < session->model->fields; f++)
            mtc_session_free(session, (void *)window->data.field[f],
                             (size_t)feed->rows * mtc_example_bytes(&session->model->field[f]));
        mtc_session_free(session, (void *)window->data.number, (size_t)feed->rows * sizeof *window->number);
        mtc_host_free(window->number);
        mtc_host_free(window->host);
        mtc_event_free(window->copied);
        mtc_event_free(window->used);
    }
    mtc_examples_free(&feed->examples);
    free(feed);
    session->feed = NULL;
}
