#include "support/text.h"
#include "weights/rename.h"
#include "weights/torch.h"
#include "weights/weights.h"

#include <stdio.h>
#include <stdlib.h>

static const Span nowhere = {0};

typedef struct Conversion {
    const WeightsRequest *request;
    Diag *diag;
    Arena *arena;
    MtcFault fault;
    TorchFile file;
    Rules rules;
    VEC(MtcBlob) blobs; /* in the order of the file's tensors */
    int left_out;       /* tensors, by rules */
} Conversion;

/* ---- names ---- */

typedef struct Named {
    const char *name, *before;
} Named;

static int by_name(const void *a, const void *b) {
    const Named *x = a, *y = b;
    const int order = strcmp(x->name, y->name);
    return order ? order : strcmp(x->before, y->before);
}

/* Rules may give two tensors one name. */
static int check_names(Conversion *c, Named *named, int count) {
    if (count)
        qsort(named, (size_t)count, sizeof *named, by_name);
    for (int i = 1; i < count; i++)
        if (strcmp(named[i].name, named[i - 1].name) == 0) {
            const char *before = mtc_harmless(named[i - 1].before);
            return mtc_fail(&c->fault, MTC_BAD_DATA, "%s: '%s' and '%s' would both be called '%s'", c->request->input,
                            before, mtc_harmless(named[i].before), mtc_harmless(named[i].name));
        }
    return 0;
}

/* The key under which the format has what belongs to no tensor. */
static bool is_reserved(const char *name) {
    return strcmp(name, "__metadata__") == 0;
}

static MtcBlob blob_of(const TorchTensor *tensor) {
    MtcBlob blob = {.name = tensor->name, .dtype = tensor->dtype, .rank = tensor->rank, .size = tensor->size};
    memcpy(blob.dim, tensor->dim, sizeof blob.dim);
    return blob;
}

/* Tensors get their names, and those that have none leave the file. */
static int name_tensors(Conversion *c) {
    Named *named = NEW_ARRAY(c->arena, Named, c->file.tensors.count + 1);
    int count = 0;
    for (int i = 0; i < c->file.tensors.count; i++) {
        TorchTensor tensor = c->file.tensors.at[i];
        const char *before = tensor.name;
        tensor.name = rules_apply(c->arena, &c->rules, before);
        c->left_out += !tensor.name;
        if (!tensor.name)
            continue;
        if (is_reserved(tensor.name))
            return mtc_fail(&c->fault, MTC_BAD_DATA, "%s: no tensor of safetensors can be called '%s'",
                            c->request->input, tensor.name);
        named[count] = (Named){tensor.name, before};
        c->file.tensors.at[count++] = tensor;
        VEC_PUSH(c->arena, &c->blobs, blob_of(&tensor));
    }
    c->file.tensors.count = count;
    rules_report(c->diag, &c->rules);
    return count ? check_names(c, named, count)
                 : mtc_fail(&c->fault, MTC_BAD_DATA, "%s: the rules leave every tensor out", c->request->input);
}

/* ---- the file ---- */

/* What was read of a file that others have written to meanwhile does not become the output. */
static int fill(void *user, MtcArchiveWriter *writer) {
    Conversion *c = user;
    int code = torch_write(&c->fault, &c->file, writer);
    if (!code && !mtc_mapped_is_same(&c->file.file))
        code = mtc_fail(&c->fault, MTC_NO_INPUT, "%s: was changed while it was read", c->request->input);
    return code;
}

static int write_file(Conversion *c) {
    return mtc_archive_write(&c->fault, c->request->output, NULL, "{\"format\":\"pt\"}", c->blobs.at, c->blobs.count,
                             fill, c);
}

static void say_others(const Conversion *c) {
    const int most = TORCH_MOST_OTHERS, count = c->file.others.count;
    for (int i = 0; i < count && i < most; i++)
        fprintf(stderr, "%s%s",
                i ? ", " : "  not among them, since they are no tensors: ", mtc_harmless(c->file.others.at[i]));
    if (count)
        fprintf(stderr, "%s\n", count > most ? " and more" : "");
}

static void say_written(const Conversion *c) {
    size_t size = 0;
    for (int i = 0; i < c->blobs.count; i++)
        size += c->blobs.at[i].size;
    fprintf(stderr, "%s: %d tensors, %s", mtc_harmless(c->request->output), c->blobs.count, mtc_bytes((double)size));
    if (c->file.key)
        fprintf(stderr, ", of '%s'", mtc_harmless(c->file.key));
    if (c->left_out)
        fprintf(stderr, "; %d left out", c->left_out);
    fprintf(stderr, "\n");
    say_others(c);
}

static int convert(Conversion *c) {
    int code = torch_open(&c->fault, c->arena, c->request->input, c->request->key, &c->file);
    if (!code)
        code = name_tensors(c);
    if (!code)
        code = write_file(c);
    if (!code)
        say_written(c);
    torch_close(&c->file);
    return code;
}

int weights_convert(Diag *diag, const WeightsRequest *request) {
    Conversion c = {.request = request, .diag = diag, .arena = diag_arena(diag)};
    if (request->rename && !rules_read(diag, request->rename, &c.rules))
        return EXIT_MODEL;
    int code = convert(&c);
    if (code)
        diag_error(diag, nowhere, "%s", c.fault.text);
    return code;
}
