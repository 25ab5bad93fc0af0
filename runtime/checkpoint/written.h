/* A checkpoint's file as this program has written it: the same bytes once more are another name of it. */
#ifndef MTC_WRITTEN_H
#define MTC_WRITTEN_H

#include "session/session.h"

#include <sys/stat.h>

/* What a file's bytes follow from. Metadata tell the step, and what it was reached with: with them the tensors are the same, if
 * nobody but steps has written to any. */
typedef struct MtcContent {
    const char *metadata;
    int64_t writes; /* MtcSession.writes */
} MtcContent;

typedef struct MtcWritten {
    char *path; /* NULL: there is none */
    MtcText metadata;
    int64_t writes;
    struct stat status;
} MtcWritten;

void mtc_written_note(MtcWritten *written, const char *path, const MtcContent *content);
/* False: the bytes are others, another program has changed the file, a new file at `path` would be another's or have another mode,
 * or the file system has no links. */
bool mtc_written_link(const MtcWritten *written, const char *path, const MtcContent *content);
void mtc_written_free(MtcWritten *written);

#endif
