/* What `train --dry-run` shows. */
#ifndef MTC_DRY_RUN_H
#define MTC_DRY_RUN_H

#include "session/session.h"

void mtc_print_dry_reports(const MtcModel *model, const char *title, int count, const double *reports);
/* The sets, and what memory they and the model take. */
void mtc_print_dry_data(const MtcSession *session);
/* Its seconds, and those of its parts. */
void mtc_print_dry_start(const MtcStart *start);
/* A checkpoint's bytes, and where there is room for how many; save NULL: nothing. */
int mtc_print_dry_saving(MtcFault *fault, const MtcModel *model, const char *save);

#endif
