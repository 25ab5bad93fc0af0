/* Numbers that are NaN or infinite: in tensors, in the data, in the reports of an evaluation. */
#ifndef MTC_FINITE_H
#define MTC_FINITE_H

#include "session/session.h"

typedef struct MtcBadNumber {
    bool found;
    int64_t element;
    double value;
} MtcBadNumber;

MtcBadNumber mtc_find_bad(MtcType type, const void *values, int64_t count);      /* the first one */
const char *mtc_bad_text(const MtcBadNumber *bad, int rank, const int64_t *dim); /* "element [3, 17] is NaN" */
/* The same of a tensor's element in memory, shown with the axes that it has in files. */
const char *mtc_tensor_index(const MtcTensor *tensor, int64_t element);
const char *mtc_bad_element_text(const MtcBadNumber *bad, const MtcTensor *tensor);

int mtc_examine_tensor(MtcSession *session, const MtcTensor *tensor, MtcBadNumber *bad);
/* "  14: h = relu(x)", "  gpt.mt:31: ...": the line that a tensor or kernel comes from; nothing for statement -1. */
void mtc_add_statement(MtcText *text, const MtcModel *model, int statement);
/* A note with that line. */
void mtc_note_statement(MtcFault *fault, const MtcModel *model, int statement);
/* An example's values of a field, as they lie on the device or in the host's memory. */
int mtc_read_back(MtcSession *session, const MtcData *data, int field, int64_t example, void *values);
/* Notes the first bad number among the examples of a split; `example` lists them, NULL: all, from 0 on. */
int mtc_note_bad_data(MtcSession *session, const MtcData *data, const char *split, const int *example, int64_t count,
                      bool *found);
/* The means over a split, which is data set `which`, after so many steps (0: of loaded weights); a fault when one of them is bad, and why. */
int mtc_check_means(MtcSession *session, int which, const char *split, int64_t step, const double *means);

#endif
