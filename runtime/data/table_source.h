#ifndef MTC_TABLE_SOURCE_H
#define MTC_TABLE_SOURCE_H

#include "data/source.h"

/* A table to predict, read as the origin says. */
int mtc_read_table(MtcFault *fault, const MtcAsked *asked, const MtcEncoding *encoding, MtcReading *reading,
                   MtcExamples *examples);

#endif
