/* What the program that wrote a checkpoint had otherwise than this one. */
#include "checkpoint/checkpoint.h"
#include "session/weights.h"

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

/* A name of the file that is the tensor's behind a prefix "model."; the length of that, 0: none. */
static size_t prefix_before(const char *name, const MtcTensor *tensor) {
    const size_t length = strlen(name), end = strlen(tensor->name);
    return length > end + 1 && name[length - end - 1] == '.' && strcmp(name + length - end, tensor->name) == 0
               ? length - end
               : 0;
}

/* How many weights and buffers the file has behind a prefix. */
static int fit_behind(const MtcArchive *archive, const MtcModel *model, const char *prefix, size_t length) {
    int fit = 0;
    for (int i = 0; i < model->tensors; i++)
        for (int j = 0; j < archive->count && mtc_is_kept(&model->tensor[i]); j++)
            fit += prefix_before(archive->blob[j].name, &model->tensor[i]) == length &&
                   strncmp(archive->blob[j].name, prefix, length) == 0 &&
                   mtc_blob_fits(&model->tensor[i], &archive->blob[j]);
    return fit;
}

void mtc_note_prefix(MtcFault *fault, const MtcCheckpoint *checkpoint, const MtcModel *model) {
    const MtcArchive *archive = &checkpoint->archive;
    for (int i = 0; i < model->tensors; i++)
        for (int j = 0; j < archive->count && mtc_is_kept(&model->tensor[i]); j++) {
            const char *name = archive->blob[j].name;
            const int length = (int)prefix_before(name, &model->tensor[i]);
            if (!length || mtc_find_tensor(model, name) || mtc_archive_find(archive, model->tensor[i].name) ||
                !mtc_blob_fits(&model->tensor[i], &archive->blob[j]))
                continue;
            mtc_note(fault, "the file's names begin with '%.*s': without it, %d of them fit", length, name,
                     fit_behind(archive, model, name, (size_t)length));
            mtc_note(fault, "in Python: {name.removeprefix(\"%.*s\"): value for name, value in weights.items()}",
                     length, name);
            return;
        }
}

/* The scale of a loss is kept where there is one: in fp16 (compiler/pass/loss_scale.c). */
void mtc_note_precision(MtcFault *fault, const MtcCheckpoint *checkpoint, const MtcModel *model) {
    static const char scale[] = "update.loss_scale";
    const bool of_file = mtc_archive_find(&checkpoint->archive, scale), of_model = mtc_find_tensor(model, scale);
    if (checkpoint->ours && of_file != of_model)
        mtc_note(fault, "it was trained %s, this program %s: a training goes on in the precision that it began in",
                 of_file ? "in fp16, with a loss that is scaled" : "in another precision than fp16",
                 of_model ? "is compiled for fp16" : "is compiled for another precision");
}
