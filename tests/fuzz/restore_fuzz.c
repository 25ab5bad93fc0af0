/* libFuzzer harness: checkpoints become the state of a session of a small model, tests/runtime/fake.c. The first byte of an input
 * says what is taken: weights, or everything; in part or not; once the data are there, or before. A file is refused with a message,
 * and the session is what it was; or what was taken is finite, and the session trains on; anything else is a find. */
#include "checkpoint/checkpoint.h"
#include "sealed.h"

#include "../runtime/fake.c"

#include <stdlib.h>

enum { EXAMPLES = 20, KEPT_BYTES = offsetof(Arena, logits) };

static uint8_t images[EXAMPLES][IMAGE], labels[EXAMPLES];

/* What a file may change. */
typedef struct State {
    char arena[KEPT_BYTES];
    double knob[MTC_MAX_KNOBS];
    MtcPosition at;
    MtcRecord record;
    uint64_t seed, split_seed;
    int words[2];
    bool resumed, measured;
} State;

static void look(const MtcSession *session, State *state) {
    memset(state, 0, sizeof *state);
    memcpy(state->arena, session->arena, KEPT_BYTES);
    memcpy(state->knob, session->knob, sizeof state->knob);
    state->at = session->at;
    memcpy(&state->record, &session->record, sizeof state->record); /* with what lies between its parts */
    state->seed = session->seed;
    state->split_seed = session->split_seed;
    for (int f = 0; f < 2; f++)
        state->words[f] = session->encoding.field[f].words;
    state->resumed = session->resumed;
    state->measured = session->measured;
}

static void check_fault(const MtcSession *session) {
    if (!session->fault.code || !session->fault.text[0])
        abort();
}

static void check_finite(const MtcSession *session) {
    const Arena *arena = (const Arena *)(void *)session->arena;
    for (int c = 0; c < CLASSES; c++)
        for (int k = 0; k < IMAGE; k++)
            if (!isfinite((double)arena->weight[c][k]))
                abort();
}

static void set_data(MtcSession *session) {
    const void *const arrays[] = {images, labels};
    if (mtc_set_data(session, MTC_TRAIN, EXAMPLES, arrays))
        abort();
}

/* Training may diverge from there: a message. */
static void go_on(MtcSession *session, bool partial) {
    MtcText text = {NULL, 0, 0};
    double reports[4 * 2];
    char *status = mtc_status(session);
    if (!status)
        abort();
    mtc_free(status);
    if (mtc_check_resumed(session, partial, &text))
        check_fault(session);
    else if (mtc_train(session, 4, reports))
        check_fault(session);
    else
        mtc_checkpoint_metadata(&text, session);
    free(text.at);
}

static void restore(MtcSession *session, const MtcCheckpoint *checkpoint, uint8_t kind) {
    static State before, after;
    MtcText notes = {NULL, 0, 0};
    const MtcTake take = (MtcTake)(kind % 4 % 3);
    const bool partial = kind & 4;
    if (kind & 8)
        set_data(session);
    look(session, &before);
    if (mtc_checkpoint_apply(session, checkpoint, take, partial, kind & 16 ? NULL : &notes)) {
        check_fault(session);
        look(session, &after);
        if (memcmp(&before, &after, sizeof before) != 0)
            abort();
    } else {
        check_finite(session);
        if (!(kind & 8))
            set_data(session);
        go_on(session, partial);
    }
    free(notes.at);
}

static void parse(uint8_t kind, const uint8_t *data, size_t size, bool fitting) {
    MtcCheckpoint checkpoint;
    MtcSession *session;
    MtcFault fault;
    uint8_t *bytes = (uint8_t *)malloc(size ? size : 1);
    memcpy(bytes, data, size);
    if (fitting)
        make_fit(bytes, size);
    memset(&fault, 0, sizeof fault);
    if (mtc_checkpoint_parse(&fault, "input", bytes, size, &checkpoint) == 0) {
        if (mtc_create(&mtc_model, 1, 0, &session))
            abort();
        restore(session, &checkpoint, kind);
        mtc_destroy(session);
    }
    mtc_checkpoint_close(&checkpoint);
    free(bytes);
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc;
    (void)argv;
    for (int i = 0; i < EXAMPLES; i++) {
        labels[i] = (uint8_t)(i % CLASSES);
        memset(images[i], 20 * i % 256, IMAGE);
    }
    return setenv("OMP_NUM_THREADS", "1", 1);
}

/* Once as it is; once with a header length that fits and its own checksum. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0)
        return 0;
    parse(data[0], data + 1, size - 1, false);
    if (size > 8)
        parse(data[0], data + 1, size - 1, true);
    return 0;
}
