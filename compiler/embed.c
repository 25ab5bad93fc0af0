#include "embed.h"

#include "runtime/base/safetensors.h"
#include "support/file.h"
#include "support/sha256.h"

#include <stdlib.h>
#include <unistd.h>

static const Span nowhere = {0};

typedef struct Embedding {
    Arena *arena;
    MtcFault fault;
    const char *path;
    MtcArchive archive;
    VEC(MtcBlob) blobs;
} Embedding;

/* That another network was meant is known now; numbers are looked at when the library takes them. */
static int check_blob(Embedding *e, const Weight *tensor, const MtcBlob *blob) {
    if (!blob)
        return mtc_fail(&e->fault, MTC_BAD_DATA, "%s: has no tensor '%s', which the network needs", e->path,
                        tensor->name);
    const Type type = weight_type_in_files(tensor);
    const bool whole = type.dtype == DT_I8;
    if (blob->rank == type.rank && memcmp(blob->dim, type.dim, (size_t)type.rank * sizeof *type.dim) == 0 &&
        (whole ? strcmp(blob->dtype, mtc_dtype(MTC_I8)) == 0 : mtc_has_floats(blob)))
        return 0;
    return mtc_fail(&e->fault, MTC_BAD_DATA, "%s: tensor '%s': expected %s of shape %s, found %s of type %s", e->path,
                    blob->name, whole ? "integers of 8 bits" : "floats", mtc_shape(type.rank, type.dim),
                    mtc_shape(blob->rank, blob->dim), blob->dtype);
}

typedef const MtcBlob *Find(const MtcArchive *archive, const char *name);

static int take(Embedding *e, const Weight *tensors, int count, Find *find) {
    for (int i = 0; i < count; i++) {
        const MtcBlob *blob = find(&e->archive, tensors[i].name);
        const int code = check_blob(e, &tensors[i], blob);
        if (code)
            return code;
        VEC_PUSH(e->arena, &e->blobs, *blob);
    }
    return 0;
}

static bool is_of_prediction(const char *key) {
    static const char param[] = "mtc.param.";
    return strncmp(key, param, strlen(param)) == 0 || strcmp(key, "mtc.encoding") == 0;
}

static char *make_metadata(const Embedding *e) {
    MtcText text = {NULL, 0, 0};
    const MtcJson *metadata = mtc_json_member(mtc_json_root(e->archive.header), "__metadata__");
    mtc_text_add(&text, "{\"format\":\"pt\"");
    for (const MtcJson *item = metadata ? metadata->first : NULL; item; item = item->next)
        if (item->kind == MTC_JSON_STRING && is_of_prediction(item->key)) {
            mtc_text_add(&text, ",");
            mtc_text_json(&text, item->key);
            mtc_text_add(&text, ":");
            mtc_text_json(&text, item->string);
        }
    mtc_text_add(&text, "}");
    return text.at;
}

static int fill(void *user, MtcArchiveWriter *writer) {
    Embedding *e = user;
    int code = 0;
    for (int i = 0; i < e->blobs.count && !code; i++)
        code = mtc_archive_add(&e->fault, writer, e->blobs.at[i].bytes, e->blobs.at[i].size);
    return code;
}

static const char *hash_of(const Embedding *e, const char *metadata) {
    Sha256 hash;
    sha256_begin(&hash);
    sha256_add_string(&hash, metadata);
    for (int i = 0; i < e->blobs.count; i++) {
        const MtcBlob *blob = &e->blobs.at[i];
        sha256_add_string(
            &hash, arena_printf(e->arena, "%s %s %s", blob->name, blob->dtype, mtc_shape(blob->rank, blob->dim)));
        sha256_add(&hash, blob->bytes, blob->size);
    }
    return sha256_hex(&hash, e->arena);
}

/* Its name has the hash: compilations that run at once do not meet. */
static int write_part(Embedding *e, const char *name, const char *folder, const char **hash, const char **written) {
    char *metadata = make_metadata(e);
    *hash = hash_of(e, metadata);
    *written = path_in(e->arena, folder, arena_printf(e->arena, "%s-%.16s.safetensors", name, *hash));
    int code = 0;
    if (!folder_make(e->arena, folder))
        code = mtc_fail(&e->fault, MTC_CANT_CREATE, "cannot make the folder '%s'", folder);
    if (!code)
        code = mtc_archive_write(&e->fault, *written, NULL, metadata, e->blobs.at, e->blobs.count, fill, e);
    free(metadata);
    return code;
}

static const char *absolute(Arena *arena, const char *path) {
    char folder[4096];
    return path[0] == '/' || !getcwd(folder, sizeof folder) ? path : path_in(arena, folder, path);
}

const char *embed_weights(Diag *diag, const Module *module, const char *path, const char *folder, const char **hash) {
    Embedding e = {.arena = diag_arena(diag), .path = path};
    const char *written = NULL;
    int code = mtc_archive_read(&e.fault, path, &e.archive);
    if (!code) {
        code = take(&e, module->weights.at, module->weights.count, mtc_archive_find);
        if (!code)
            code = take(&e, module->states.at, module->states.count, mtc_archive_find_average);
        if (!code)
            code = write_part(&e, module->name, folder, hash, &written);
        if (!code)
            code = mtc_archive_unchanged(&e.fault, path, &e.archive);
        mtc_archive_free(&e.archive);
    }
    if (code)
        diag_error(diag, nowhere, "%s", e.fault.text);
    return code ? NULL : absolute(e.arena, written);
}
