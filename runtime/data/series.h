/* Examples that are windows of rows, which lie in the order of time. Sources read the rows, as examples of a model of its own; here
 * they become windows, one behind the other in arrays.
 *
 *     file -> a part of the rows -> windows, which begin every `stride` rows; a field has `steps` rows of one, `from` on */
#ifndef MTC_SERIES_H
#define MTC_SERIES_H

#include "data/dataset.h"

bool mtc_is_series(const MtcModel *model);

/* The model whose examples are the rows. */
typedef struct MtcRowModel {
    MtcModel model;
    MtcField field[MTC_MAX_FIELDS];
} MtcRowModel;
/* It, or `model`, where that is no series. `rows` must outlive it. */
const MtcModel *mtc_row_model(const MtcModel *model, MtcRowModel *rows);

/* A fault: rows may be left out, and windows would tear. */
int mtc_check_series(MtcFault *fault, const MtcModel *model, const MtcReading *reading);
/* Makes windows of the rows that the split has, all that lie within them; where the model is no series, nothing. */
int mtc_make_windows(MtcFault *fault, const MtcModel *model, const MtcSplit *split, MtcExamples *examples);
/* The same of rows to predict, which have the fields that the prediction needs: the window that ends with the last row. */
int mtc_newest_window(MtcFault *fault, const MtcModel *model, const char *path, MtcExamples *examples);

#endif
