#include "checkpoint/diverged.h"

#include "session/pieces.h"
#include "session/weights.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* The loss is far above that of weights that had learned nothing; or it is above that, and a weight has left the size of all
 * that there were; or the square of a weight, which norms and moments of gradients have, is about to leave f32. None of these
 * is the noise of a training. */
static const double FAR_LOSS = 100, FAR_WEIGHT = 1000, LARGEST_WEIGHT = 1e18;

bool mtc_has_diverged(const MtcRecord *record, double largest) {
    const bool far_loss = record->losses && record->loss > FAR_LOSS * fmax(fabs(record->first_loss), 1);
    const bool worse = record->losses && record->loss > record->first_loss && record->first_weight > 0;
    return far_loss || largest > LARGEST_WEIGHT || (worse && largest > FAR_WEIGHT * fmax(record->first_weight, 1));
}

static bool is_measured(const MtcTensor *tensor) {
    return tensor->role == MTC_WEIGHT && (tensor->type == MTC_F32 || tensor->type == MTC_F64);
}

/* The magnitudes of floats are in the order of their bits, which the compiler compares many at a time. NaN has none. */
static double largest_float(const float *values, int64_t count) {
    const uint32_t infinite = 0x7F800000u;
    uint32_t most = 0;
    float largest;
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        bits &= 0x7FFFFFFFu;
        bits = bits > infinite ? 0 : bits;
        most = bits > most ? bits : most;
    }
    memcpy(&largest, &most, sizeof largest);
    return (double)largest;
}

static double largest_number(MtcType type, const void *values, int64_t count) {
    double most = 0;
    if (type == MTC_F32)
        return largest_float((const float *)values, count);
    for (int64_t i = 0; i < count; i++)
        most = fmax(most, fabs(((const double *)values)[i]));
    return most;
}

typedef struct Measure {
    MtcType type;
    double most;
} Measure;

static int measure_piece(MtcSession *session, void *user, const void *bytes, size_t from, size_t size) {
    Measure *measure = (Measure *)user;
    (void)session, (void)from;
    measure->most =
        fmax(measure->most, largest_number(measure->type, bytes, (int64_t)(size / mtc_type_size(measure->type))));
    return 0;
}

int mtc_largest_weight(const MtcState *state, double *largest) {
    const MtcModel *model = state->session->model;
    Measure measure = {MTC_F32, 0};
    int code = 0;
    for (int i = 0; i < model->tensors && !code; i++) {
        measure.type = model->tensor[i].type;
        if (is_measured(&model->tensor[i]))
            code = mtc_visit_state(state, &model->tensor[i], measure_piece, &measure);
    }
    *largest = measure.most;
    return code;
}

int mtc_measure_weights(MtcSession *session) {
    const MtcState state = {session, NULL, NULL};
    return mtc_largest_weight(&state, &session->record.first_weight);
}
