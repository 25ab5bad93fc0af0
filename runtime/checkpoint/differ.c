/* What the program that wrote a checkpoint had otherwise than this one. */
#include "checkpoint/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

double mtc_param_in_file(const MtcCheckpoint *checkpoint, const char *name, double unsaid) {
    char key[128], *end;
    snprintf(key, sizeof key, "param.%s", name);
    const char *text = mtc_checkpoint_text(checkpoint, key);
    const double value = text ? strtod(text, &end) : unsaid;
    return text && (end == text || *end) ? unsaid : value;
}

/* How a program with those params is made: the command, where they are one and a command line has this program. */
static void add_way(MtcText *text, const MtcSession *session, const char *settings, int count) {
    const char *setting = settings + strlen(" --set ");
    if (!session->program)
        return;
    mtc_text_add(text, ": ");
    if (count == 1)
        mtc_remake(text, session->model, "--set", setting, session->program);
    else
        mtc_text_add(text, "mtc%s makes a program of the same", settings);
}

void mtc_note_params(MtcSession *session, const MtcCheckpoint *checkpoint) {
    const MtcModel *model = session->model;
    MtcText were = {NULL, 0, 0}, are = {NULL, 0, 0}, settings = {NULL, 0, 0};
    int count = 0;
    for (int i = 0; i < model->fixed; i++) {
        const MtcFixed *param = &model->fixed_param[i];
        const double other = mtc_param_in_file(checkpoint, param->name, param->value);
        if (other == param->value)
            continue;
        mtc_text_add(&were, "%s%s = %.12g", count ? ", " : "", param->name, other);
        mtc_text_add(&are, "%s%.12g", count++ ? ", " : "", param->value);
        mtc_text_add(&settings, " --set %s=%.12g", param->name, other);
    }
    if (count) {
        mtc_text_add(&were, ", here %s %s", count == 1 ? "it is" : "they are", are.at);
        add_way(&were, session, settings.at, count);
        mtc_note(&session->fault, "it was written with %s", were.at);
    }
    free(were.at);
    free(are.at);
    free(settings.at);
}
