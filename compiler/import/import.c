#include "import/importer.h"
#include "runtime/base/common.h"
#include "runtime/base/ending.h"
#include "support/file.h"

#include <stdio.h>

static const Span nowhere = {0};

const char *import_output(Arena *arena, const char *input) {
    const char *base = path_base(input);
    const size_t length = strlen(base), stem = mtc_ends_with(base, ".onnx") && length > 5 ? length - 5 : length;
    return arena_printf(arena, "%.*s.mt", (int)stem, base);
}

static void warn(Importer *im) {
    for (int i = 0; i < im->warnings.count; i++)
        diag_warning(im->diag, nowhere, "%s: %s", im->request->input, im->warnings.at[i]);
    if (!im->weights.count)
        diag_warning(im->diag, nowhere, "%s: it has no weights, so that there is nothing to train", im->request->input);
    if (im->outputs.count > 1)
        diag_warning(im->diag, nowhere,
                     "%s: it has %d outputs; the text predicts the first, '%s', and names the others",
                     im->request->input, im->outputs.count, shown(im, im->outputs.at[0]->name));
}

static int import_model(Importer *im) {
    if (!import_graph(im)) {
        diag_error(im->diag, nowhere, "%s: %s", im->request->input, im->why);
        return EXIT_MODEL;
    }
    if (setjmp(im->refused)) { /* what the text is made of may still be refused */
        diag_error(im->diag, nowhere, "%s: %s", im->request->input, im->why);
        return EXIT_MODEL;
    }
    const int code = write_import(im);
    if (!code)
        warn(im);
    return code;
}

int import_onnx(Diag *diag, const ImportRequest *request) {
    Importer *im = NEW(diag_arena(diag), Importer);
    im->diag = diag;
    im->arena = diag_arena(diag);
    im->request = request;
    im->model = read_model(im, request->input);
    if (!im->model)
        return file_exists(request->input) ? EXIT_MODEL : EXIT_NO_INPUT;
    ModelProto *model = im->model;
    const int code = import_model(im);
    onnx__model_proto__free_unpacked(model, NULL);
    return code;
}
