#include "commands.h"

#include "import/import.h"
#include "runtime/base/common.h"
#include "runtime/base/ending.h"
#include "runtime/base/file.h"
#include "support/file.h"

#include <stdio.h>
#include <stdlib.h>

static const Span nowhere = {0};

/* ---- names ---- */

/* The flag that writes what a name promises; NULL: none does. */
static const char *maker_of(Arena *arena, const char *output) {
    for (const Target *target = targets; target < targets + TARGETS; target++)
        if (mtc_ends_with(output, arena_printf(arena, ".%s", target->ending)))
            return arena_printf(arena, "--emit=%s writes that", target->ending);
    return mtc_ends_with(output, ".so")    ? "--shared makes that"
           : mtc_ends_with(output, ".svg") ? "--emit=plan.svg draws the plan of memory"
                                           : NULL;
}

bool promises_else(Diag *diag, const char *output, const char *endings, const char *written, const char *cure) {
    const char *promised = mtc_promised(output, endings), *maker = maker_of(diag_arena(diag), output);
    cure = maker ? maker : cure;
    if (promised)
        diag_error(diag, nowhere, "'%s': the name promises %s; what can be written is %s%s%s", output, promised,
                   written, cure ? "; " : "", cure ? cure : "");
    return promised != NULL;
}

static int unwritten(Diag *diag, const char *path) {
    diag_error(diag, nowhere, "cannot write '%s': %s", path, file_why(path));
    return EXIT_CANT_CREATE;
}

/* ---- commands ---- */

int draw_curves(Diag *diag, const Options *o, const InputFiles *inputs) {
    static const char pictures[] = ".svg and .png";
    const char *output = o->output ? o->output : "curves.svg";
    bool png = mtc_ends_with(output, ".png");
    if (promises_else(diag, output, pictures, pictures, NULL))
        return EXIT_USAGE;
    PlotRequest request = {.logs = o->files.count,
                           .log = o->files.at,
                           .axis = (PlotAxis)o->axis,
                           .format = png ? PLOT_PNG : PLOT_SVG,
                           .title = o->title};
    Text out = TEXT(diag_arena(diag));
    int status = plot(diag, &request, &out);
    if (status)
        return status;
    if (!o->output && mtc_written_in_place(output)) {
        diag_error(diag, nowhere, "cannot write '%s': it is no plain file; choose another name with -o", output);
        return EXIT_CANT_CREATE;
    }
    if (!output_allowed(diag, output, png ? OUTPUT_PNG : OUTPUT_SVG, inputs))
        return EXIT_CANT_CREATE;
    if (!file_write(output, out.at, out.length))
        return unwritten(diag, output);
    if (!mtc_written_in_place(output))
        printf("drawn: %s\n", mtc_harmless(output));
    return EXIT_SUCCESS;
}

/* Other programs may mean other things by .bin; here it is what is written without --learn. */
static bool promises_tokens(Diag *diag, const char *output) {
    if (!mtc_ends_with(output, ".bin"))
        return false;
    diag_error(
        diag, nowhere,
        "'%s': the name promises tokens; what --learn writes is a tokenizer (.json): -o tokenizer.json, and then "
        "--tokenizer tokenizer.json -o %s",
        output, output);
    return true;
}

int make_tokens(Diag *diag, const Options *o, const InputFiles *inputs) {
    if (o->learn
            ? promises_tokens(diag, o->output) || promises_else(diag, o->output, ".json", "a tokenizer (.json)", NULL)
            : promises_else(diag, o->output, ".bin", "tokens (.bin)", NULL))
        return EXIT_USAGE;
    if (!o->learn && mtc_written_in_place(o->output)) {
        diag_error(diag, nowhere, "cannot write '%s': what stands first is known last; -o names a file", o->output);
        return EXIT_CANT_CREATE;
    }
    if (!output_allowed(diag, o->output, o->learn ? OUTPUT_TEXT : OUTPUT_TOKENS, inputs))
        return EXIT_CANT_CREATE;
    TokensRequest request = {.texts = o->files.count,
                             .text = o->files.at,
                             .tokenizer = o->tokenizer,
                             .learn = o->learn,
                             .output = o->output};
    return o->learn ? tokens_learn(diag, &request) : tokens_encode(diag, &request);
}

int convert_weights(Diag *diag, const Options *o, const InputFiles *inputs) {
    if (promises_else(diag, o->output, ".safetensors", "weights (.safetensors)", NULL))
        return EXIT_USAGE;
    if (!output_allowed(diag, o->output, OUTPUT_WEIGHTS, inputs))
        return EXIT_CANT_CREATE;
    WeightsRequest request = {.input = o->files.at[0], .key = o->key, .rename = o->rename, .output = o->output};
    return weights_convert(diag, &request);
}

int import_model(Diag *diag, const Options *o) {
    Arena *arena = diag_arena(diag);
    const char *output = o->output ? o->output : import_output(arena, o->input);
    VEC(AxisSize) sizes = {0};
    for (int i = 0; i < o->settings.count; i++)
        VEC_PUSH(arena, &sizes, ((AxisSize){o->settings.at[i].name, o->settings.at[i].value}));
    if (promises_else(diag, output, ".mt", "a model (.mt)", NULL))
        return EXIT_USAGE;
    ImportRequest request = {.input = o->input,
                             .output = output,
                             .sizes = sizes.at,
                             .size_count = sizes.count,
                             .force = o->force,
                             .flat = o->flat};
    return import_onnx(diag, &request);
}
