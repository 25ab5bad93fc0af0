/* Values of a field: how many bytes they take, and classes, in whichever type the field has them. */
#ifndef MTC_FIELD_H
#define MTC_FIELD_H

#include "base/common.h"

/* Elements from one example of the field to the next, and the bytes of so many examples; `stride` as in MtcExamples. */
int64_t mtc_field_stride(const MtcField *field, int64_t stride);
size_t mtc_field_bytes(const MtcField *field, int64_t examples, int64_t stride);
size_t mtc_example_bytes(const MtcField *field);
/* Elements that a row of the data has of the field: all, or of windows of rows its part. */
int64_t mtc_row_elements(const MtcField *field);
/* A class of the field, in the field's type. */
void mtc_put_class(const MtcField *field, void *values, int64_t at, int64_t class_);
int64_t mtc_class_at(const MtcField *field, const void *values, int64_t at);
/* The first of `count` values that is no class of the field; `count`: all are. */
int64_t mtc_find_bad_class(const MtcField *field, const void *values, int64_t count);
/* Weights of examples: 0, or so far from the ends of f32 that a batch's sum and what is divided by it are numbers of full precision; a
 * field that has them, one for each example; the first of `count` that is none. */
#define MTC_A_WEIGHT "0 or a number from 1e-30 to 1e30"
bool mtc_is_weight(double value);
double mtc_weight_at(const MtcField *field, const void *values, int64_t at);
int64_t mtc_find_bad_weight(const MtcField *field, const void *values, int64_t count);

bool mtc_host_is_big_endian(void);

#endif
