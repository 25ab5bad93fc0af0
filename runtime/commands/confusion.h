/* The confusion matrix of an evaluation: row i, column j is how many of class i were taken for class j. */
#ifndef MTC_CONFUSION_H
#define MTC_CONFUSION_H

#include "session/session.h"

/* Each does nothing where the model has none. A member of a line of the log, ,"test_confusion":[[5,0],[1,4]]: */
void mtc_add_confusion(MtcText *text, const MtcSession *session, const char *prefix);
/* A table on stdout; classes are words where they are in the data. */
void mtc_print_confusion(const MtcSession *session);

#endif
