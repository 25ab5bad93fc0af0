/* The weights of nets: one copy in memory, which all nets that share it map. */
#ifndef MTC_NET_WEIGHTS_H
#define MTC_NET_WEIGHTS_H

#include "base/common.h"
#include "base/json.h"
#include "embed/net_model.h"

/* A file in memory as large as an arena, with weights and buffers in their places. A net maps it for itself: pages that it never writes are
 * the same memory for all; what it computes goes to pages of its own. */
typedef struct MtcNetWeights {
    int nets; /* that have it */
    int file;
    size_t bytes;
    float knob[MTC_MAX_KNOBS];
    char *text;             /* of the words of classes, which `words` points into */
    MtcJsonDocument *words; /* by field; NULL: none are known */
} MtcNetWeights;

/* path NULL: those that the library carries. */
int mtc_net_weights_read(MtcFault *fault, const MtcNetModel *net, const char *path, MtcNetWeights **weights);
void mtc_net_weights_free(MtcNetWeights *weights);
/* An arena of these weights, of weights->bytes; NULL: no address space. */
char *mtc_net_arena(const MtcNetWeights *weights);

#endif
