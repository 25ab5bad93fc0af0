/* Help: of what a program has, what this model can do. */
#include "base/line.h"
#include "commands/cli.h"
#include "data/image.h"
#include "data/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- what the model can do ---- */

static bool has_parsed(const MtcModel *model) {
    for (int i = 0; i < model->origins; i++)
        if (mtc_source_of(&model->origin[i])->parsed)
            return true;
    return false;
}

static bool has_files(const MtcModel *model) {
    for (int i = 0; i < model->origins; i++)
        if (model->origin[i].paths)
            return true;
    return false;
}

int mtc_abilities(const MtcModel *model) {
    return (model->decode ? MTC_CAN_GENERATE : 0) | (mtc_test_split(model) ? MTC_CAN_WATCH : 0) |
           (mtc_predicts_from_image(model) ? MTC_CAN_SEE : 0) | (has_files(model) ? MTC_CAN_READ : 0) |
           (has_parsed(model) ? MTC_CAN_PARSE : 0) | (strcmp(model->target, "cuda") == 0 ? MTC_CAN_CHOOSE : 0) |
           (model->stores_gradients ? MTC_CAN_CHECK : MTC_CAN_EVALUATE) |
           (model->quantized           ? MTC_CAN_QUANTIZE
            : !model->stores_gradients ? MTC_CAN_TRAIN
                                       : 0);
}

/* What `predict --input` may be given. */
static const char *example_input(const MtcModel *model) {
    return mtc_predicts_from_image(model) ? "photo.png"
           : model->origins               ? mtc_source_of(&model->origin[0])->example
                                          : mtc_source_npz.example;
}

/* ---- lines ---- */

enum { COLUMN = 23, WIDEST = 110, NARROWEST = COLUMN + 17 };

static int width(void) {
    int columns = mtc_columns(STDOUT_FILENO);
    return !columns || columns > WIDEST ? WIDEST : columns < NARROWEST ? NARROWEST : columns;
}

void mtc_help_row(const char *name, const char *words) {
    int at = printf("  %-*s ", COLUMN - 3, name), right = width();
    for (const char *end; *words; words = end + strspn(end, " ")) {
        end = words + strcspn(words, " ");
        bool first = at <= COLUMN, wraps = !first && at + 1 + (int)(end - words) > right;
        if (wraps)
            at = printf("\n%*s", COLUMN, "") - 1;
        at += printf("%s%.*s", first || wraps ? "" : " ", (int)(end - words), words);
    }
    printf("\n");
}

void mtc_help_examples(const MtcModel *model, const char *program) {
    const char *knob = model->knobs ? model->knob[0].name : NULL;
    MtcText command = {NULL, 0, 0};
    printf("\nexamples\n");
    if (model->quantized)
        printf("  %s quantize --load floats.safetensors --save %s.safetensors\n", program, model->name);
    else
        printf("  %s --epochs 5 --save %s.safetensors\n", program, model->name);
    if (knob && !model->quantized)
        printf("  %s --%s %g --log run.jsonl\n", program, knob, model->knob[0].value);
    printf("  %s eval --load %s.safetensors\n", program, model->name);
    if (model->decode)
        printf("  %s generate --load %s.safetensors --tokens 200\n", program, model->name);
    else
        printf("  %s predict --load %s.safetensors --input %s\n", program, model->name, example_input(model));
    if (model->fixed) {
        char setting[160];
        snprintf(setting, sizeof setting, "%s=%g", model->fixed_param[0].name, model->fixed_param[0].value);
        mtc_remake(&command, model, "--set", setting, program);
        printf("\n%s'%s' is set when compiling:\n  %s\n", model->fixed > 1 ? "Like others, " : "",
               model->fixed_param[0].name, command.at);
        free(command.at);
    }
}
