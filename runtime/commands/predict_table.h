/* Predictions as a table, CSV or TSV: what was predicted from, the class, all probabilities. */
#ifndef MTC_PREDICT_TABLE_H
#define MTC_PREDICT_TABLE_H

#include "data/dataset.h"
#include "session/session.h"

bool mtc_is_table_name(const char *path); /* by its ending */
/* Is it the first line of such a table? By the columns of predictions, which stand behind the others. */
bool mtc_is_prediction_header(const char *line);

/* Of `rows` predictions one behind the other, NaN where there is none. First come the columns of `source`, the table that they
 * are of (NULL: none), the file of each image (`file`, or NULL), else the number of the example; then, of classes, "class" and the
 * probability of each, named as `words` says (NULL: by number); of anything else its numbers. */
int mtc_write_prediction_table(MtcFault *fault, const MtcSession *session, const char *path, const float *values,
                               int64_t rows, const MtcMeaning *words, const struct MtcTableRows *source,
                               char *const *file);

#endif
