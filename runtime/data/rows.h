#ifndef MTC_ROWS_H
#define MTC_ROWS_H

#include "data/dataset.h"

int mtc_read_rows(const MtcModel *model, const MtcOrigin *origin, MtcExamples *examples);
/* Of such a model, a table to predict: without a header, a column for each element of each field. */
int mtc_read_rows_input(MtcFault *fault, const MtcModel *model, MtcReading *reading, const MtcEncoding *encoding,
                        const char *path, const bool *wanted, MtcExamples *examples);

#endif
