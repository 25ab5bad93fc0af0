#include "session/init.h"
#include "session/parts.h"

#include "base/parallel.h"
#include "random.h"
#include "session/library.h"
#include "session/pieces.h"
#include "session/weights.h"

static void store_drawn(const MtcTensor *tensor, void *values, int64_t i, double value) {
    switch (tensor->type) {
    case MTC_F32: ((float *)values)[i] = (float)value; break;
    case MTC_F64: ((double *)values)[i] = value; break;
    case MTC_I32: ((int32_t *)values)[i] = (int32_t)value; break;
    default: ((uint8_t *)values)[i] = (uint8_t)value;
    }
}

/* A piece of a tensor: its elements from `first` on. */
typedef struct Drawing {
    const MtcTensor *tensor;
    uint64_t seed;
    uint32_t stream;
    void *values;
    int64_t first, count;
    MtcPassing passing;
} Drawing;

enum { DRAWN_AT_ONCE = 1 << 14 };

static double drawn_element(const Drawing *piece, int64_t i) {
    const MtcTensor *tensor = piece->tensor;
    const bool normal = tensor->init == MTC_NORMAL, constant = tensor->init == MTC_CONSTANT;
    const double span = normal ? tensor->b : constant ? 0 : tensor->b - tensor->a;
    const uint64_t element = (uint64_t)(piece->first + i);
    if (element < piece->passing.passed)
        return mtc_passed(piece->passing, element);
    return mtc_initial(normal, tensor->a, span, piece->seed, piece->stream, element);
}

static void draw_task(void *context, int64_t task) {
    const Drawing *piece = (const Drawing *)context;
    const int64_t from = task * DRAWN_AT_ONCE, left = piece->count - from;
    const int64_t to = from + (left < DRAWN_AT_ONCE ? left : DRAWN_AT_ONCE);
    for (int64_t i = from; i < to; i++)
        store_drawn(piece->tensor, piece->values, i, drawn_element(piece, i));
}

static int draw_piece(MtcSession *session, void *user, void *bytes, size_t from, size_t size) {
    Drawing piece = *(const Drawing *)user;
    const size_t width = mtc_type_size(piece.tensor->type);
    (void)session;
    piece.values = bytes;
    piece.first = (int64_t)(from / width);
    piece.count = (int64_t)(size / width);
    mtc_parallel((piece.count + DRAWN_AT_ONCE - 1) / DRAWN_AT_ONCE, draw_task, &piece);
    return 0;
}

/* Memory is clear already; copies are made when all others are there. */
static int draw_tensor(MtcSession *session, const MtcTensor *tensor, uint32_t stream) {
    const MtcModel *model = session->model;
    Drawing drawing = {tensor, session->seed, stream, NULL, 0, 0, {0, 1, 0}};
    if (!mtc_is_drawn(tensor))
        return 0;
    if (tensor->init == MTC_DIRAC)
        drawing.passing = mtc_passing(tensor->rank, tensor->dim);
    if (model->draw)
        return mtc_device_fault(session, mtc_model_draw(model, session->arena, tensor, session->seed, stream),
                                tensor->name);
    return mtc_fill_memory(session, session->arena + tensor->offset, mtc_tensor_bytes(tensor), draw_piece, &drawing);
}

int mtc_clear_weights(MtcSession *session) {
    session->writes = 1;
    return mtc_device_fault(session, mtc_zero(session->arena, mtc_arena_bytes(session->model)), "clearing memory");
}

bool mtc_is_drawn(const MtcTensor *tensor) {
    return tensor->role != MTC_VALUE && tensor->init != MTC_ZEROS && tensor->init != MTC_COPY &&
           tensor->init != MTC_WHITE;
}

/* Buffers take no random numbers: weights begin as they would without them. */
int mtc_draw_weights(MtcSession *session) {
    uint32_t stream = MTC_WEIGHT_STREAM;
    int code = mtc_clear_weights(session);
    for (int i = 0; i < session->model->tensors && !code; i++) {
        const MtcTensor *tensor = &session->model->tensor[i];
        code = draw_tensor(session, tensor, stream);
        stream += tensor->role != MTC_BUFFER;
    }
    if (!code)
        code = mtc_copy_states(session);
    session->writes = 0;
    session->drawn_seed = session->seed;
    return code;
}
