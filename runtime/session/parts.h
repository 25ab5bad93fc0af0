/* Of several processes that train together, each updates a part of the weights, and has the states of that alone: of a program of
 * mtc --shard-optimizer, whose states lie so at the arena's end (MtcModel.parted_offset). One process has all. */
#ifndef MTC_PARTS_H
#define MTC_PARTS_H

#include "session/session.h"

/* Bytes of the model's flat weights, from `begin` to `end`: this process's. */
typedef struct MtcOwnPart {
    size_t begin, end;
} MtcOwnPart;
MtcOwnPart mtc_own_part(const MtcModel *model);

/* Each of several processes has its part of the tensor. */
bool mtc_is_apart(const MtcTensor *tensor);
/* Bytes of the arena that this process has, and of states that others have instead. */
size_t mtc_arena_bytes(const MtcModel *model);
size_t mtc_bytes_elsewhere(const MtcModel *model);

/* What is here of a tensor: `bytes` from its byte `from` on, and where they lie. */
typedef struct MtcOwnBytes {
    char *memory;
    size_t from, bytes;
} MtcOwnBytes;
MtcOwnBytes mtc_piece_here(const MtcSession *session, const MtcTensor *tensor);

/* Called by all ranks, with no step under way: rank 0 has the states of all in its host memory then, which is what checkpoints are
 * written of. Else nothing. */
int mtc_collect_states(MtcSession *session);
/* On rank 0, before: the memory for it. */
int mtc_reserve_collected(MtcSession *session);
/* Of a tensor that is apart, on rank 0: its bytes as they were collected, or read from a file since. */
char *mtc_collected(const MtcSession *session, const MtcTensor *tensor);
void mtc_parts_free(MtcSession *session);

#endif
