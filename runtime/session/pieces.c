#include "session/pieces.h"

#include "base/parallel.h"

#include <stdlib.h>

enum { AHEAD = 2 };

struct MtcPieces {
    char *host[AHEAD];
    MtcEvent *copied[AHEAD];
};

void mtc_pieces_free(MtcSession *session) {
    for (int i = 0; i < AHEAD && session->pieces; i++) {
        mtc_host_free(session->pieces->host[i]);
        mtc_event_free(session->pieces->copied[i]);
    }
    free(session->pieces);
    session->pieces = NULL;
}

/* Kept until the session ends: memory that copies reach takes longer to get than to fill. */
static int need_pieces(MtcSession *session) {
    const char *error = NULL;
    if (session->pieces)
        return 0;
    session->pieces = (MtcPieces *)calloc(1, sizeof *session->pieces);
    if (!session->pieces)
        return mtc_no_memory(&session->fault, sizeof *session->pieces, "copies of the device's memory");
    for (int i = 0; i < AHEAD && !error; i++) {
        error = mtc_host_alloc((void **)&session->pieces->host[i], MTC_PIECE);
        error = error ? error : mtc_event_new(&session->pieces->copied[i]);
    }
    if (error)
        mtc_pieces_free(session);
    return mtc_device_fault(session, error, "host memory for copies");
}

static size_t size_at(size_t from, size_t bytes) {
    return bytes - from < MTC_PIECE ? bytes - from : MTC_PIECE;
}

static const char *ask_for(const MtcPieces *pieces, const char *memory, size_t from, size_t bytes) {
    const size_t i = from / MTC_PIECE % AHEAD;
    const char *error = NULL;
    if (from < bytes)
        error = mtc_download(pieces->host[i], memory + from, size_at(from, bytes));
    return error || from >= bytes ? error : mtc_event_record(pieces->copied[i]);
}

int mtc_visit_memory(MtcSession *session, const void *memory, size_t bytes, MtcVisitBytes *visit, void *user) {
    int code = need_pieces(session);
    const char *error = code ? NULL : ask_for(session->pieces, (const char *)memory, 0, bytes);
    for (size_t from = 0; from < bytes && !code; from += MTC_PIECE) {
        const MtcPieces *pieces = session->pieces;
        const size_t i = from / MTC_PIECE % AHEAD;
        error = error ? error : ask_for(pieces, (const char *)memory, from + MTC_PIECE, bytes);
        error = error ? error : mtc_event_wait(pieces->copied[i]);
        code = mtc_device_fault(session, error, "reading memory");
        if (!code)
            code = visit(session, user, pieces->host[i], from, size_at(from, bytes));
    }
    return code;
}

int mtc_fill_memory(MtcSession *session, void *memory, size_t bytes, MtcFillBytes *fill, void *user) {
    int code = need_pieces(session);
    for (size_t from = 0; from < bytes && !code; from += MTC_PIECE) {
        const MtcPieces *pieces = session->pieces;
        const size_t i = from / MTC_PIECE % AHEAD, size = size_at(from, bytes);
        code = mtc_device_fault(session, mtc_event_wait(pieces->copied[i]), "writing memory");
        if (!code)
            code = fill(session, user, pieces->host[i], from, size);
        const char *error = code ? NULL : mtc_upload((char *)memory + from, pieces->host[i], size);
        error = error || code ? error : mtc_event_record(pieces->copied[i]);
        code = code ? code : mtc_device_fault(session, error, "writing memory");
    }
    return code;
}

static int copy_values(MtcSession *session, void *user, void *bytes, size_t from, size_t size) {
    (void)session;
    mtc_copy_memory(bytes, (const char *)user + from, size);
    return 0;
}

int mtc_write_memory(MtcSession *session, void *memory, const void *values, size_t bytes) {
    if (bytes < MTC_PIECE / 16)
        return mtc_device_fault(session, mtc_upload(memory, values, bytes), "writing memory");
    return mtc_fill_memory(session, memory, bytes, copy_values, (void *)values);
}
