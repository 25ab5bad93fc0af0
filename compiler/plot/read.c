/* A log: a JSON object on each line, told apart by "event" (docs/program.md). */
#include "plot/matrix.h"
#include "runtime/base/json.h"
#include "support/file.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

static const Span nowhere = {0};

typedef struct Reader {
    Diag *diag;
    Arena *arena;
    PlotRun *run;
    int line;
    double steps_per_epoch;         /* NaN: unknown */
    double seconds, seconds_before; /* as last seen; of the trainings that this one goes on from */
} Reader;

static double number_of(const MtcJson *object, const char *key) {
    const MtcJson *item = mtc_json_member(object, key);
    return item && item->kind == MTC_JSON_NUMBER ? item->number : NAN;
}

static const char *string_of(const Reader *r, const MtcJson *object, const char *key) {
    const MtcJson *item = mtc_json_member(object, key);
    return item && item->kind == MTC_JSON_STRING ? arena_strdup(r->arena, item->string) : NULL;
}

/* ---- the config line ---- */

static void add_param(Reader *r, const MtcJson *item) {
    PlotParam param = {arena_strdup(r->arena, item->key), NULL};
    if (item->kind == MTC_JSON_NUMBER)
        param.value = arena_printf(r->arena, "%.6g", item->number);
    else if (item->kind == MTC_JSON_STRING)
        param.value = arena_strdup(r->arena, item->string);
    if (param.value)
        VEC_PUSH(r->arena, &r->run->params, param);
}

/* What two trainings may differ in, beside the params of their models. */
static void add_settings(Reader *r, const MtcJson *config) {
    static const char *const names[] = {"batch", "epochs", "seed", "target", "device", "model"};
    const MtcJson *train = mtc_json_member(config, "train"),
                  *optimizer = train ? mtc_json_member(train, "optimizer") : NULL;
    if (optimizer)
        add_param(r, optimizer);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const MtcJson *item = mtc_json_member(config, names[i]);
        if (item)
            add_param(r, item);
    }
    for (const MtcJson *item = train ? train->first : NULL; item; item = item->next)
        if (item != optimizer && strcmp(item->key, "batch") != 0 && strcmp(item->key, "epochs") != 0)
            add_param(r, item);
}

static double steps_per_epoch(const MtcJson *config) {
    double given = number_of(config, "steps_per_epoch");
    return isnan(given) ? ceil(number_of(config, "train_examples") / number_of(config, "batch")) : given;
}

/* A second one begins a training that goes on where the one before stopped. */
static void read_config(Reader *r, const MtcJson *config) {
    const MtcJson *params = mtc_json_member(config, "params");
    r->seconds_before = r->seconds;
    if (r->run->model)
        return;
    r->run->model = string_of(r, config, "model");
    r->steps_per_epoch = steps_per_epoch(config);
    for (const MtcJson *item = params ? params->first : NULL; item; item = item->next)
        add_param(r, item);
    add_settings(r, config);
}

/* ---- lines of numbers ---- */

static bool has_metric(const PlotRun *run, const char *metric) {
    for (int i = 0; i < run->curves.count; i++)
        if (strcmp(run->curves.at[i].metric, metric) == 0)
            return true;
    return false;
}

/* "test_accuracy" is the accuracy of the test data, where there is an accuracy. */
static const char *split_of(const PlotRun *run, const char *key, const char **metric) {
    static const char *const splits[] = {"train", "validation", "test", "batch"};
    *metric = key;
    for (size_t i = 0; i < sizeof splits / sizeof *splits; i++) {
        size_t length = strlen(splits[i]);
        if (strncmp(key, splits[i], length) == 0 && key[length] == '_' && has_metric(run, key + length + 1)) {
            *metric = key + length + 1;
            return splits[i];
        }
    }
    return splits[0];
}

static PlotCurve *curve_of(Reader *r, const char *key, bool interval) {
    const char *metric, *split = split_of(r->run, key, &metric);
    for (int i = 0; i < r->run->curves.count; i++) {
        PlotCurve *curve = &r->run->curves.at[i];
        if (strcmp(curve->metric, metric) == 0 && strcmp(curve->split, split) == 0 && curve->interval == interval)
            return curve;
    }
    PlotCurve curve = {.metric = arena_strdup(r->arena, metric), .split = split, .interval = interval};
    VEC_PUSH(r->arena, &r->run->curves, curve);
    return &r->run->curves.at[r->run->curves.count - 1];
}

/* Steps that a resumed training does again replace those that were lost. */
static void add_point(Reader *r, PlotCurve *curve, PlotPoint point) {
    while (curve->points.count && curve->points.at[curve->points.count - 1].x[AXIS_STEP] >= point.x[AXIS_STEP])
        curve->points.count--;
    VEC_PUSH(r->arena, &curve->points, point);
}

static bool is_metric(const MtcJson *item) {
    static const char *const others[] = {"step", "epoch", "seconds"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(item->key, others[i]) == 0)
            return false;
    return item->kind == MTC_JSON_NUMBER || item->kind == MTC_JSON_NULL;
}

static int bad_line(Reader *r, const char *what) {
    diag_error(r->diag, nowhere, "%s:%d: %s", r->run->path, r->line, what);
    return EXIT_MODEL;
}

/* "test_confusion", with "test_classes" where classes have names. */
static int read_matrix(Reader *r, const MtcJson *line) {
    static const char ending[] = "_confusion";
    for (const MtcJson *item = line->first; item; item = item->next) {
        const size_t length = strlen(item->key), before = length - strlen(ending);
        if (length <= strlen(ending) || strcmp(item->key + before, ending) != 0)
            continue;
        const char *split = arena_strndup(r->arena, item->key, before);
        const MtcJson *names = mtc_json_member(line, arena_printf(r->arena, "%s_classes", split));
        const char *wrong = matrix_read(r->arena, item, &r->run->matrix);
        r->run->matrix.split = split;
        if (!wrong && names)
            wrong = matrix_read_names(r->arena, names, &r->run->matrix);
        if (wrong)
            return bad_line(r, wrong);
    }
    return EXIT_SUCCESS;
}

static void read_numbers(Reader *r, const MtcJson *line, bool interval) {
    double step = number_of(line, "step");
    double epoch = isnan(r->steps_per_epoch) ? number_of(line, "epoch") : step / r->steps_per_epoch;
    r->seconds = r->seconds_before + number_of(line, "seconds");
    for (const MtcJson *item = line->first; item; item = item->next)
        if (is_metric(item)) {
            double value = item->kind == MTC_JSON_NUMBER ? item->number : NAN;
            add_point(r, curve_of(r, item->key, interval), (PlotPoint){{step, epoch, r->seconds}, value});
        }
}

/* ---- the file ---- */

static int read_object(Reader *r, const MtcJson *line) {
    const MtcJson *event = mtc_json_member(line, "event");
    if (!event || event->kind != MTC_JSON_STRING)
        return bad_line(r,
                        "this is no log of a training, whose lines have an \"event\"; ./program --log FILE writes one");
    if (strcmp(event->string, "config") == 0)
        read_config(r, line);
    else if (strcmp(event->string, "train") == 0)
        read_numbers(r, line, true);
    else if (strcmp(event->string, "epoch") == 0 || strcmp(event->string, "test") == 0) {
        read_numbers(r, line, false);
        return read_matrix(r, line);
    }
    return EXIT_SUCCESS;
}

/* `last`: no line end follows, so that a program may have been killed while it wrote. */
static int read_line(Reader *r, char *text, size_t size, bool last) {
    MtcFault fault;
    MtcJsonDocument *document;
    const char *where = arena_printf(r->arena, "%s:%d", r->run->path, r->line);
    if (mtc_json_read(&fault, where, text, size, &document)) {
        if (last && r->line > 1)
            diag_warning(r->diag, nowhere, "%s: the last line is cut off, and left out", where);
        else if (r->line == 1)
            diag_error(r->diag, nowhere,
                       "%s: this is no log of a training, whose lines are JSON; ./program --log FILE writes one",
                       where);
        else
            diag_error(r->diag, nowhere, "%s", fault.text);
        return last && r->line > 1 ? EXIT_SUCCESS : EXIT_MODEL;
    }
    int code = read_object(r, mtc_json_root(document));
    mtc_json_free(document);
    return code;
}

static int read_lines(Reader *r, char *text, size_t size) {
    int code = EXIT_SUCCESS;
    for (char *end = text + size; text < end && !code;) {
        char *stop = memchr(text, '\n', (size_t)(end - text));
        r->line++;
        code = read_line(r, text, (size_t)((stop ? stop : end) - text), !stop);
        text = stop ? stop + 1 : end;
    }
    return code;
}

int plot_read(Diag *diag, const char *path, PlotRun *run) {
    Reader r = {.diag = diag, .arena = diag_arena(diag), .run = run, .steps_per_epoch = NAN};
    size_t size;
    const char *why;
    char *text = file_read(r.arena, path, &size, &why);
    *run = (PlotRun){.path = path};
    if (!text) {
        diag_error(diag, nowhere, "cannot read '%s': %s", path, why);
        return EXIT_NO_INPUT;
    }
    if (!size) {
        diag_error(diag, nowhere, "%s: is empty, no log of a training", path);
        return EXIT_MODEL;
    }
    return read_lines(&r, text, size);
}
