#ifndef MTC_TABLE_SOURCE_H
#define MTC_TABLE_SOURCE_H

#include "data/dataset.h"

/* A table to predict, read as the origin says; wanted[f]: is field f? */
int mtc_read_table_input(MtcFault *fault, const MtcModel *model, const MtcOrigin *origin, MtcReading *reading,
                         const MtcEncoding *encoding, const char *path, const bool *wanted, MtcExamples *examples);

#endif
