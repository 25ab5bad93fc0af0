/* The first line of a log: everything that made the run what it is, as resolved. */
#include "commands/cli.h"
#include "commands/members.h"
#include "session/weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void mtc_add_params(MtcText *text, const MtcModel *model, const MtcSession *session) {
    for (int i = 0; i < model->fixed; i++)
        mtc_add_number(text, model->fixed_param[i].name, model->fixed_param[i].value);
    for (int i = 0; i < model->knobs; i++)
        mtc_add_number(text, model->knob[i].name, mtc_shortest_knob(session, i));
}

/* ,"params":{"hidden":128,"lr":0.001} */
static void add_param_object(MtcText *text, const MtcModel *model, const MtcSession *session) {
    MtcText params = {NULL, 0, 0};
    mtc_add_params(&params, model, session);
    mtc_text_add(text, ",\"params\":{%s}", params.at ? params.at + 1 : "");
    free(params.at);
}

void mtc_add_training(MtcText *text, const MtcModel *model) {
    char *lines = strdup(model->training ? model->training : ""), *rest = lines;
    const char *comma = "";
    mtc_text_add(text, ",\"train\":{");
    for (char *line; lines && (line = strtok_r(rest, "\n", &rest)); comma = ",") {
        char *value = strstr(line, " = ");
        if (!value)
            continue;
        *value = '\0';
        mtc_text_add(text, "%s", comma);
        mtc_text_json(text, line);
        mtc_text_add(text, ":");
        mtc_text_json(text, value + 3);
    }
    mtc_text_add(text, "}");
    free(lines);
}

/* {"format":"tsv","files":["sales.tsv"],"part":[0,0.8],"in_order":true} */
static void add_origin(MtcText *text, const MtcModel *model, const MtcSplit *split) {
    const MtcOrigin *origin = &model->origin[split->origin];
    mtc_text_json(text, split->name);
    mtc_text_add(text, ":{\"format\":\"%s\",\"files\":[", origin->format);
    for (int i = 0; i < origin->paths; i++) {
        mtc_text_add(text, i ? "," : "");
        mtc_text_json(text, origin->path[i]);
    }
    mtc_text_add(text, "],\"part\":[%.6g,%.6g]%s}", split->from, split->to,
                 split->in_order ? ",\"in_order\":true" : "");
}

static void add_data(MtcText *text, const MtcSession *session, const char *folder) {
    const MtcModel *model = session->model;
    char key[64];
    for (int which = 0; which < MTC_SPLITS; which++)
        if (session->data[which].examples) {
            snprintf(key, sizeof key, "%s_examples", mtc_split_name(which));
            mtc_add_count(text, key, session->data[which].examples);
        }
    mtc_text_add(text, ",\"data\":{");
    for (int i = 0; i < model->splits; i++) {
        mtc_text_add(text, i ? "," : "");
        add_origin(text, model, &model->split[i]);
    }
    mtc_text_add(text, "}");
    if (folder)
        mtc_add_field(text, "data_folder", folder);
}

static void add_what(MtcText *text, const MtcSession *session) {
    const MtcModel *model = session->model;
    mtc_add_field(text, "model", model->name);
    mtc_add_field(text, "source", model->source);
    mtc_add_field(text, "model_hash", model->model_hash);
    mtc_add_field(text, "target", model->target);
    mtc_add_field(text, "schedule", model->schedule);
    mtc_add_field(text, "device", session->device.name);
    mtc_add_count(text, "parameters", model->parameters);
}

/* How far the training goes, and what else the command line decides. */
static void add_course(MtcText *text, const MtcSession *session, const MtcOptions *options, int64_t last_step,
                       int64_t log_every) {
    const MtcModel *model = session->model;
    int64_t patience = options->patience ? options->patience : model->patience;
    mtc_text_add(text, ",\"seed\":%llu", (unsigned long long)session->seed);
    mtc_add_count(text, "epochs", options->epochs);
    mtc_add_count(text, "steps", last_step);
    mtc_add_count(text, "steps_per_epoch", mtc_steps_per_epoch(session));
    mtc_add_count(text, "batch", mtc_step_examples(model));
    mtc_add_count(text, "log_every", log_every);
    mtc_add_field(text, "monitor", options->monitor ? options->monitor : model->report[model->monitor]);
    if (patience)
        mtc_add_count(text, "patience", patience);
    if (session->at.step)
        mtc_add_count(text, "first_step", session->at.step);
    if (options->resume)
        mtc_add_field(text, "resume", options->resume);
    if (options->init_from)
        mtc_add_field(text, "init_from", options->init_from);
    if (options->save)
        mtc_add_field(text, "save", options->save);
}

void mtc_add_config(MtcText *text, const MtcSession *session, const MtcOptions *options, int64_t last_step,
                    int64_t log_every) {
    mtc_text_add(text, "{\"event\":\"config\"");
    add_what(text, session);
    add_course(text, session, options, last_step, log_every);
    add_data(text, session, options->data);
    mtc_add_training(text, session->model);
    add_param_object(text, session->model, session);
}
