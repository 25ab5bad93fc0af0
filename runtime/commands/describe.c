/* What a model is, and where a session stands, as JSON: for languages that do not read C structs. */
#include "commands/cli.h"
#include "commands/members.h"
#include "session/weights.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- parts of objects; each begins with its comma, which add_part takes away ---- */

/* With the digits that give the number back as it was written in the model file. */
static void add_exact(MtcText *text, const char *key, double value) {
    mtc_text_add(text, ",");
    mtc_text_json(text, key);
    char digits[32];
    snprintf(digits, sizeof digits, "%.15g", value);
    if (strtod(digits, NULL) != value)
        snprintf(digits, sizeof digits, "%.17g", value);
    mtc_text_add(text, ":%s", isfinite(value) ? digits : "null");
}

static void add_unsigned(MtcText *text, const char *key, unsigned long long value) {
    mtc_text_add(text, ",\"%s\":%llu", key, value);
}

static void add_flag(MtcText *text, const char *key, bool value) {
    mtc_text_add(text, ",\"%s\":%s", key, value ? "true" : "false");
}

static void add_optional(MtcText *text, const char *key, const char *value) {
    if (value)
        mtc_add_field(text, key, value);
    else
        mtc_text_add(text, ",\"%s\":null", key);
}

static void add_counts(MtcText *text, const char *key, int count, const int64_t *number) {
    mtc_text_add(text, ",\"%s\":[", key);
    for (int i = 0; i < count; i++)
        mtc_text_add(text, i ? ",%lld" : "%lld", (long long)number[i]);
    mtc_text_add(text, "]");
}

/* Puts `part`, which begins with a comma where there is any of it, between two brackets, and frees it. */
static void add_part(MtcText *text, const char *open, MtcText *part, const char *close) {
    mtc_text_add(text, "%s%s%s", open, part->at ? part->at + 1 : "", close);
    free(part->at);
}

/* ---- the model ---- */

static void add_build(MtcText *text, const MtcModel *model) {
    mtc_add_count(text, "abi", model->abi);
    mtc_add_field(text, "name", model->name);
    mtc_add_field(text, "source", model->source);
    mtc_add_field(text, "target", model->target);
    mtc_add_field(text, "architectures", model->architectures);
    mtc_add_field(text, "schedule", model->schedule);
    mtc_add_field(text, "model_hash", model->model_hash);
    mtc_add_count(text, "batch", mtc_step_examples(model));
    mtc_add_count(text, "epochs", model->epochs);
    add_unsigned(text, "seed", model->seed);
    mtc_add_count(text, "parameters", model->parameters);
    add_exact(text, "flops_per_step", model->flops_per_step);
    mtc_add_count(text, "arena_bytes", (int64_t)model->arena_bytes);
    mtc_add_count(text, "unshared_bytes", (int64_t)model->unshared_bytes);
    mtc_add_field(text, "monitor", model->report[model->monitor]);
    mtc_add_count(text, "patience", model->patience);
}

static void add_fields(MtcText *text, const MtcModel *model) {
    MtcText all = {NULL, 0, 0};
    for (int i = 0; i < model->fields; i++) {
        const MtcField *field = &model->field[i];
        MtcText one = {NULL, 0, 0};
        mtc_add_field(&one, "name", field->name);
        mtc_add_field(&one, "type", mtc_type_name(field->type));
        add_counts(&one, "shape", field->rank, field->dim);
        mtc_add_count(&one, "classes", field->classes);
        add_flag(&one, "predicts", field->predicts);
        add_flag(&one, "windows", field->windows);
        add_flag(&one, "weighs", field->weighs);
        add_part(&all, ",{", &one, "}");
    }
    add_part(text, ",\"fields\":[", &all, "]");
}

static void add_splits_and_reports(MtcText *text, const MtcModel *model) {
    MtcText splits = {NULL, 0, 0}, reports = {NULL, 0, 0};
    for (int i = 0; i < model->splits; i++) {
        mtc_text_add(&splits, ",");
        mtc_text_json(&splits, model->split[i].name);
    }
    add_part(text, ",\"splits\":[", &splits, "]");
    for (int r = 0; r < mtc_evaluated(model); r++) {
        MtcText one = {NULL, 0, 0};
        mtc_add_field(&one, "name", model->report[r]);
        add_flag(&one, "rises", model->report_rises[r]);
        add_flag(&one, "over_set", r >= model->reports);
        add_part(&reports, ",{", &one, "}");
    }
    add_part(text, ",\"reports\":[", &reports, "]");
    mtc_add_count(text, "confusion", model->confusion ? model->confusion->classes : 0);
}

static void add_knobs(MtcText *text, const MtcModel *model) {
    MtcText all = {NULL, 0, 0};
    for (int i = 0; i < model->knobs; i++) {
        const MtcKnob *knob = &model->knob[i];
        MtcText one = {NULL, 0, 0};
        mtc_add_field(&one, "name", knob->name);
        add_exact(&one, "value", knob->value);
        add_optional(&one, "help", knob->help);
        add_flag(&one, "integer", knob->integer);
        if (knob->has_range) {
            add_exact(&one, "low", knob->low);
            add_exact(&one, "high", knob->high);
        }
        if (knob->bound)
            mtc_add_field(&one, "bound", knob->bound);
        add_part(&all, ",{", &one, "}");
    }
    add_part(text, ",\"params\":[", &all, "]");
}

static void add_fixed(MtcText *text, const MtcModel *model) {
    MtcText all = {NULL, 0, 0};
    for (int i = 0; i < model->fixed; i++) {
        MtcText one = {NULL, 0, 0};
        mtc_add_field(&one, "name", model->fixed_param[i].name);
        add_exact(&one, "value", model->fixed_param[i].value);
        add_part(&all, ",{", &one, "}");
    }
    add_part(text, ",\"fixed\":[", &all, "]");
}

/* A line of the model file, or of the file that it includes. */
static void add_place(MtcText *text, const MtcStatement *statement) {
    mtc_add_count(text, "line", statement ? statement->line : 0);
    if (statement && statement->file)
        mtc_add_field(text, "file", statement->file);
}

static void add_tensor(MtcText *all, const MtcModel *model, const MtcTensor *tensor) {
    static const char *const role[] = {"weight", "buffer", "state", "value"};
    MtcText one = {NULL, 0, 0};
    int64_t dim[8], stride[8];
    mtc_file_dim(tensor, dim);
    mtc_file_strides(tensor, stride);
    mtc_add_field(&one, "name", tensor->name);
    mtc_add_field(&one, "role", role[tensor->role]);
    mtc_add_field(&one, "type", mtc_type_name(tensor->type));
    add_counts(&one, "shape", tensor->rank, dim);
    add_counts(&one, "strides", tensor->rank, stride);
    mtc_add_count(&one, "offset", (int64_t)tensor->offset);
    add_place(&one, tensor->statement < 0 ? NULL : &model->statement[tensor->statement]);
    mtc_add_count(&one, "phase", tensor->role == MTC_VALUE ? tensor->phase : -1);
    add_part(all, ",{", &one, "}");
}

static void add_tensors(MtcText *text, const MtcModel *model) {
    MtcText all = {NULL, 0, 0};
    for (int i = 0; i < model->tensors; i++)
        add_tensor(&all, model, &model->tensor[i]);
    add_part(text, ",\"tensors\":[", &all, "]");
}

static void add_answers(MtcText *text, const MtcModel *model) {
    MtcText prediction = {NULL, 0, 0};
    add_counts(&prediction, "shape", model->prediction_rank, model->prediction_dim);
    add_flag(&prediction, "classes", model->prediction_is_classes);
    add_flag(&prediction, "yes", model->prediction_is_yes);
    add_part(text, ",\"prediction\":{", &prediction, "}");
    mtc_add_count(text, "context", model->context);
    mtc_add_count(text, "vocabulary", model->vocabulary);
    add_optional(text, "no_decode", model->no_decode);
}

static void add_statements(MtcText *text, const MtcModel *model) {
    MtcText all = {NULL, 0, 0};
    for (int i = 0; i < model->statements; i++) {
        MtcText one = {NULL, 0, 0};
        add_place(&one, &model->statement[i]);
        mtc_add_field(&one, "text", model->statement[i].text);
        add_part(&all, ",{", &one, "}");
    }
    add_part(text, ",\"statements\":[", &all, "]");
}

static void describe(MtcText *text, const MtcModel *model) {
    MtcText all = {NULL, 0, 0};
    add_build(&all, model);
    add_fields(&all, model);
    add_splits_and_reports(&all, model);
    add_knobs(&all, model);
    add_fixed(&all, model);
    add_tensors(&all, model);
    add_answers(&all, model);
    mtc_add_training(&all, model);
    add_statements(&all, model);
    add_part(text, "{", &all, "}");
}

/* ---- the session ---- */

static void add_values(MtcText *text, const MtcSession *session) {
    MtcText all = {NULL, 0, 0};
    for (int i = 0; i < session->model->knobs; i++)
        add_exact(&all, session->model->knob[i].name, mtc_shortest_knob(session, i));
    add_part(text, ",\"params\":{", &all, "}");
}

static void add_words(MtcText *text, const MtcSession *session) {
    MtcText all = {NULL, 0, 0};
    for (int i = 0; i < session->model->fields; i++) {
        const MtcMeaning *meaning = &session->encoding.field[i];
        MtcText words = {NULL, 0, 0};
        if (!meaning->words)
            continue;
        for (int k = 0; k < meaning->words; k++) {
            mtc_text_add(&words, ",");
            mtc_text_json(&words, meaning->word[k]);
        }
        mtc_text_add(&all, ",");
        mtc_text_json(&all, session->model->field[i].name);
        add_part(&all, ":[", &words, "]");
    }
    add_part(text, ",\"words\":{", &all, "}");
}

/* Of each data set that is there. */
static void add_examples(MtcText *text, const MtcSession *session) {
    MtcText all = {NULL, 0, 0};
    for (int which = 0; which < MTC_SPLITS; which++)
        mtc_add_count(&all, mtc_split_name(which), session->data[which].examples);
    add_part(text, ",\"examples\":{", &all, "}");
}

static void stand(MtcText *text, const MtcSession *session) {
    MtcText all = {NULL, 0, 0};
    mtc_add_field(&all, "device", session->device.name);
    add_unsigned(&all, "seed", session->seed);
    mtc_add_count(&all, "step", session->at.step);
    mtc_add_count(&all, "epoch", session->at.epoch);
    mtc_add_count(&all, "epoch_step", session->at.epoch_step);
    mtc_add_count(&all, "epochs", session->record.epochs);
    add_values(&all, session);
    mtc_add_count(&all, "bytes", (int64_t)session->bytes);
    add_words(&all, session);
    add_examples(&all, session);
    add_unsigned(&all, "arena", (unsigned long long)(uintptr_t)session->arena);
    add_part(text, "{", &all, "}");
}

/* ---- the C ABI ---- */

typedef struct Telling {
    MtcText text;
    const MtcModel *model;
    const MtcSession *session;
} Telling;

static int tell(void *context) {
    Telling *telling = (Telling *)context;
    if (telling->session)
        stand(&telling->text, telling->session);
    else
        describe(&telling->text, telling->model);
    return 0;
}

char *mtc_describe(const MtcModel *model) {
    Telling telling = {{NULL, 0, 0}, model, NULL};
    return mtc_guard(NULL, tell, &telling) ? NULL : telling.text.at;
}

char *mtc_status(const MtcSession *session) {
    Telling telling = {{NULL, 0, 0}, NULL, session};
    return !session || mtc_guard(NULL, tell, &telling) ? NULL : telling.text.at;
}

void mtc_free(void *text) {
    free(text);
}
