/* What a split gets of an origin: a part of its examples. */
#ifndef MTC_PART_H
#define MTC_PART_H

#include "data/dataset.h"

typedef struct MtcSplitPart {
    const MtcSplit *split;
    uint64_t seed; /* decides which examples it gets */
    bool last;     /* nobody else needs the origin: what was read may be taken */
} MtcSplitPart;

/* Which of `count` examples the part has, in their order; free *row. A fault, where there are none, has the file's name. */
int mtc_part_rows(MtcFault *fault, const MtcSplitPart *part, const char *name, int64_t count, int64_t **row,
                  int64_t *rows);
/* The part of examples that were read whole. */
int mtc_part_arrays(MtcFault *fault, const MtcModel *model, const MtcSplitPart *part, const char *name,
                    MtcExamples *arrays, MtcExamples *examples);

#endif
