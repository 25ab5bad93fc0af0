/* Memory of the device in the host's, piece by piece: while one is looked at, the next is on its way.
 *
 *     copies   | piece 0 | piece 1 | piece 2 | ...
 *     host               | visit 0 | visit 1 | ...
 *
 * and the other way, while one is filled. */
#ifndef MTC_PIECES_H
#define MTC_PIECES_H

#include "session/session.h"

enum { MTC_PIECE = 1 << 24 }; /* bytes of each, but the last */
/* The bytes [from, from + size) of what is visited. A code that is not 0 ends the visits, and is their result. */
typedef int MtcVisitBytes(MtcSession *session, void *user, const void *bytes, size_t from, size_t size);
/* A visit may use the device, but must not visit memory itself. */
int mtc_visit_memory(MtcSession *session, const void *memory, size_t bytes, MtcVisitBytes *visit, void *user);
/* The other way: `fill` writes the bytes [from, from + size), while those before are on their way to the device. */
typedef int MtcFillBytes(MtcSession *session, void *user, void *bytes, size_t from, size_t size);
int mtc_fill_memory(MtcSession *session, void *memory, size_t bytes, MtcFillBytes *fill, void *user);
/* From memory of the host that copies do not reach. */
int mtc_write_memory(MtcSession *session, void *memory, const void *values, size_t bytes);
void mtc_pieces_free(MtcSession *session);

#endif
