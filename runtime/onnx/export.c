#include "onnx/export.h"

#include "base/file.h"
#include "session/finite.h"
#include "session/weights.h"

#include <stdlib.h>
#include <string.h>

/* A program that was compiled from its source alone, or of one source, has no network. */
__attribute__((weak)) const char *mtc_network = NULL, *mtc_no_network = NULL;
__attribute__((weak)) unsigned long mtc_network_size = 0;

#if __has_include(<onnx.pb-c.h>)
#include <dlfcn.h>
#include <onnx.pb-c.h>
#include <pthread.h>

/* ---- the library ---- */

typedef struct Protobuf {
    __typeof__(&protobuf_c_message_unpack) unpack;
    __typeof__(&protobuf_c_message_free_unpacked) free;
    __typeof__(&protobuf_c_message_get_packed_size) size;
    __typeof__(&protobuf_c_message_pack) pack;
    bool loaded;
} Protobuf;

static Protobuf protobuf;
static pthread_once_t protobuf_once = PTHREAD_ONCE_INIT;
static const char protobuf_name[] = "libprotobuf-c.so.1";

static void load_protobuf(void) {
    static const struct {
        void *function;
        const char *name;
    } wanted[] = {{&protobuf.unpack, "protobuf_c_message_unpack"},
                  {&protobuf.free, "protobuf_c_message_free_unpacked"},
                  {&protobuf.size, "protobuf_c_message_get_packed_size"},
                  {&protobuf.pack, "protobuf_c_message_pack"}};
    void *library = dlopen(protobuf_name, RTLD_NOW);
    protobuf.loaded = library;
    for (size_t i = 0; protobuf.loaded && i < sizeof wanted / sizeof *wanted; i++) {
        *(void **)wanted[i].function = dlsym(library, wanted[i].name);
        protobuf.loaded = *(void **)wanted[i].function;
    }
}

int mtc_export_check(MtcFault *fault, const MtcModel *model) {
    if (mtc_no_network)
        return mtc_fail(fault, MTC_USAGE, "%s cannot be exported: %s", model->name, mtc_harmless(mtc_no_network));
    if (!mtc_network)
        return mtc_fail(fault, MTC_USAGE,
                        "%s was not linked by mtc, which adds the network: mtc %s -o PROGRAM makes a "
                        "program that exports it",
                        model->name, model->source);
    pthread_once(&protobuf_once, load_protobuf);
    return protobuf.loaded ? 0
                           : mtc_fail(fault, MTC_UNAVAILABLE,
                                      "writing ONNX needs %s, which is not installed here (Debian: "
                                      "apt-get install libprotobuf-c1)",
                                      protobuf_name);
}

/* ---- numbers ---- */

/* Which evaluation reads in place of a weight: its moving average, which began as a copy of it; else itself. */
static const MtcTensor *evaluated(const MtcModel *model, const MtcTensor *weight) {
    for (int i = 0; i < model->tensors; i++) {
        const MtcTensor *tensor = &model->tensor[i];
        if (tensor->role == MTC_STATE && tensor->init == MTC_COPY && &model->tensor[(int)tensor->a] == weight)
            return tensor;
    }
    return weight;
}

static int check_finite(MtcSession *session, const MtcTensor *tensor, const void *values) {
    const MtcBadNumber bad = mtc_find_bad(tensor->type, values, mtc_elements(tensor->rank, tensor->dim));
    if (!bad.found)
        return 0;
    mtc_fail(&session->fault, MTC_BAD_DATA, "the network is not exported, for '%s' is not finite: %s", tensor->name,
             mtc_bad_element_text(&bad, tensor));
    mtc_note_statement(&session->fault, session->model, tensor->statement);
    return session->fault.code;
}

/* In place: numbers of `mtc --real f64` as those of the file. */
static void narrow(const MtcTensor *tensor, void *values) {
    for (int64_t i = 0, count = mtc_elements(tensor->rank, tensor->dim); tensor->type == MTC_F64 && i < count; i++) {
        double number;
        memcpy(&number, (const char *)values + (size_t)i * sizeof number, sizeof number);
        ((float *)values)[i] = (float)number;
    }
}

/* `to` is freed with the message. */
static int set_tensor(MtcSession *session, const MtcTensor *tensor, ProtobufCBinaryData *to) {
    const size_t bytes = mtc_tensor_bytes(tensor);
    void *stored = malloc(bytes), *values = malloc(bytes);
    int code = stored && values ? mtc_read_tensor(session, tensor, stored)
                                : mtc_no_memory(&session->fault, 2 * bytes, tensor->name);
    if (!code)
        code = check_finite(session, tensor, stored);
    if (!code) {
        mtc_to_file(tensor, stored, values);
        narrow(tensor, values);
        to->data = (uint8_t *)values;
        to->len = bytes / mtc_type_size(tensor->type) * sizeof(float);
        values = NULL;
    }
    free(stored);
    free(values);
    return code;
}

static int set_param(MtcSession *session, const char *name, ProtobufCBinaryData *to) {
    int index = 0;
    while (strcmp(session->model->knob[index].name, name) != 0)
        index++;
    const float number = (float)session->knob[index];
    to->data = (uint8_t *)mtc_memory(NULL, sizeof number);
    to->len = sizeof number;
    memcpy(to->data, &number, sizeof number);
    return 0;
}

static int set_numbers(MtcSession *session, const Onnx__GraphProto *graph) {
    static const char param[] = "param ";
    int code = 0;
    for (size_t i = 0; i < graph->n_initializer && !code; i++) {
        Onnx__TensorProto *to = graph->initializer[i];
        const char *text = to->doc_string ? to->doc_string : "";
        if (to->has_raw_data)
            continue;
        code = strncmp(text, param, sizeof param - 1) == 0
                   ? set_param(session, text + sizeof param - 1, &to->raw_data)
                   : set_tensor(session, evaluated(session->model, mtc_find_tensor(session->model, to->name)),
                                &to->raw_data);
        to->has_raw_data = !code;
    }
    return code;
}

/* ---- what the numbers mean ---- */

typedef struct Entries {
    Onnx__ModelProto *model;
    size_t room;
} Entries;

/* Copies, which are freed with the message. */
static void add_entry(Entries *entries, const char *key, const char *value) {
    Onnx__ModelProto *model = entries->model;
    if (model->n_metadata_props == entries->room) {
        entries->room = 2 * entries->room + 16;
        model->metadata_props = (Onnx__StringStringEntryProto **)mtc_memory(
            model->metadata_props, entries->room * sizeof *model->metadata_props);
    }
    Onnx__StringStringEntryProto *entry = (Onnx__StringStringEntryProto *)mtc_memory(NULL, sizeof *entry);
    onnx__string_string_entry_proto__init(entry);
    entry->key = strdup(key);
    entry->value = strdup(value);
    model->metadata_props[model->n_metadata_props++] = entry;
}

static void add_words(Entries *entries, const char *kind, const char *of, const MtcMeaning *meaning) {
    MtcText key = {NULL, 0, 0}, json = {NULL, 0, 0};
    mtc_text_add(&key, "%s%s", kind, of);
    for (int k = 0; k < meaning->words; k++) {
        mtc_text_add(&json, k ? ", " : "[");
        mtc_text_json(&json, meaning->word[k]);
    }
    mtc_text_add(&json, "]");
    add_entry(entries, key.at, json.at);
    free(key.at);
    free(json.at);
}

static void add_number(Entries *entries, const char *kind, const char *of, double number) {
    MtcText key = {NULL, 0, 0}, text = {NULL, 0, 0};
    mtc_text_add(&key, "%s%s", kind, of);
    mtc_text_add(&text, "%.9g", number);
    add_entry(entries, key.at, text.at);
    free(key.at);
    free(text.at);
}

static void add_metadata(const MtcSession *session, Onnx__ModelProto *network) {
    const MtcModel *model = session->model;
    Entries entries = {network, 0};
    const MtcMeaning *classes = mtc_predicted_words(session);
    add_entry(&entries, "mtc.model", model->source);
    add_entry(&entries, "mtc.model_hash", model->model_hash);
    add_number(&entries, "mtc.step", "", (double)(session->at.step ? session->at.step : session->learned_steps));
    for (int i = 0; i < model->fixed; i++)
        add_number(&entries, "mtc.param.", model->fixed_param[i].name, model->fixed_param[i].value);
    for (int i = 0; i < model->knobs; i++)
        add_number(&entries, "mtc.param.", model->knob[i].name, mtc_shortest_knob(session, i));
    if (classes)
        add_words(&entries, "classes", "", classes);
    for (int i = 0; i < model->fields; i++)
        if (model->field[i].predicts && session->encoding.field[i].words)
            add_words(&entries, "vocabulary.", model->field[i].name, &session->encoding.field[i]);
}

/* ---- the file ---- */

static int write_network(MtcFault *fault, const char *path, const Onnx__ModelProto *network) {
    const size_t most = INT32_MAX, size = protobuf.size(&network->base);
    MtcOutput *output = NULL;
    if (size > most)
        return mtc_fail(fault, MTC_BAD_DATA, "%s would have %s: a file of ONNX has at most 2 GB", path,
                        mtc_bytes((double)size));
    uint8_t *bytes = (uint8_t *)malloc(size);
    if (!bytes)
        return mtc_no_memory(fault, size, path);
    protobuf.pack(&network->base, bytes);
    int code = mtc_output_open(fault, path, &output);
    if (!code)
        code = mtc_output_write(fault, output, bytes, size);
    if (!code)
        code = mtc_output_commit(fault, output);
    else if (output)
        mtc_output_discard(output);
    free(bytes);
    return code;
}

typedef struct Exporting {
    MtcSession *session;
    const char *path;
} Exporting;

static int export_network(void *context) {
    MtcSession *session = ((const Exporting *)context)->session;
    Onnx__ModelProto *network = (Onnx__ModelProto *)protobuf.unpack(&onnx__model_proto__descriptor, NULL,
                                                                    mtc_network_size, (const uint8_t *)mtc_network);
    if (!network)
        return mtc_no_memory(&session->fault, mtc_network_size, "the network");
    int code = set_numbers(session, network->graph);
    if (!code) {
        add_metadata(session, network);
        code = write_network(&session->fault, ((const Exporting *)context)->path, network);
    }
    protobuf.free(&network->base, NULL);
    return code;
}

int mtc_export(MtcSession *session, const char *path) {
    Exporting exporting = {session, path};
    int code = mtc_enter(session);
    if (!code)
        code = mtc_export_check(&session->fault, session->model);
    return code ? code : mtc_guard(&session->fault, export_network, &exporting);
}

#else

int mtc_export_check(MtcFault *fault, const MtcModel *model) {
    return mtc_fail(fault, MTC_USAGE,
                    "%s was compiled of one source, which has nothing that writes ONNX: mtc %s -o PROGRAM "
                    "makes a program that does",
                    model->name, model->source);
}

int mtc_export(MtcSession *session, const char *path) {
    (void)path;
    return mtc_export_check(&session->fault, session->model);
}
#endif
