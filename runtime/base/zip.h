/* Zip archives, as far as npz files and those of torch.save are: members that are stored or deflated. */
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
const char *mtc_zip_name(const MtcZip *zip,
                         int member); /* in the order of the directory, from 0; NULL: there are no more */
/* How many bytes a member has, as the directory says: reading it checks that. False: there is none of that name. */
bool mtc_zip_size(const MtcZip *zip, const char *name, size_t *size);
/* A member's bytes, unpacked and checked; free *bytes. The fault lists members when there is none of that name. */
int mtc_zip_read(MtcFault *fault, const MtcZip *zip, const char *name, uint8_t **bytes, size_t *size);

#endif
