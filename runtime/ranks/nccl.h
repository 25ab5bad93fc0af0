/* NCCL: what moves between GPUs moves from the memory of one to that of another, in the order of the device's work. All ranks call the
 * same functions in the same order. */
#ifndef MTC_NCCL_H
#define MTC_NCCL_H

#include "base/common.h"

/* Joins the ranks of mtc_ranks_join, each with the device that the calling thread has chosen. */
int mtc_nccl_join(MtcFault *fault);
/* Is the library there for all ranks? */
int mtc_nccl_found(MtcFault *fault, bool *all);
bool mtc_nccl_joined(void);
/* Enqueues. As MtcAdding has it. */
int mtc_nccl_exchange(MtcFault *fault, int to, const void *send, size_t send_bytes, int from, void *receive,
                      size_t receive_bytes);
/* While its work is waited for, `seconds` so far: 0, or the code of what ended it. */
int mtc_nccl_look(MtcFault *fault, double seconds);
/* A rank was lost. The device may wait for it for ever, and so would who waits for the device, gives its memory back, or calls exit():
 * only mtc_nccl_leave, which has the others' GPUs to ask, and the end of this process end that. */
bool mtc_nccl_lost(void);
void mtc_nccl_leave(bool failed); /* before what it worked on is given back */

#endif
