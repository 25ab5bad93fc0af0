/* Zip archives, as far as npz files are: members that are stored or deflated. */
#ifndef MTC_ZIP_H
#define MTC_ZIP_H

#include "base/files.h"

typedef struct MtcZip MtcZip;
int mtc_zip_open(MtcFault *fault, const char *path, MtcZip **zip);
/* An archive in memory, which must stay. */
int mtc_zip_memory(MtcFault *fault, const char *path, const uint8_t *bytes, size_t size, MtcZip **zip);
void mtc_zip_close(MtcZip *zip);
const char *mtc_zip_path(const MtcZip *zip);
bool mtc_zip_has(const MtcZip *zip, const char *name);
/* A member's bytes, unpacked and checked; free *bytes. The fault lists members when there is none of that name. */
int mtc_zip_read(MtcFault *fault, const MtcZip *zip, const char *name, uint8_t **bytes, size_t *size);

#endif
