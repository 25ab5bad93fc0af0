/* Files of data: reading plain or gzip, finding data sets. */
#ifndef MTC_FILES_H
#define MTC_FILES_H

#include "base/file.h"

#include <time.h>

/* A file (gzip is recognised by its first bytes, not by its name) or bytes in memory, read from front to back. */
typedef struct MtcInput MtcInput;
int mtc_input_open(MtcFault *fault, const char *path, MtcInput **input);
MtcInput *mtc_input_memory(const char *path, const void *bytes, size_t size);
void mtc_input_close(MtcInput *input);
const char *mtc_input_path(const MtcInput *input);
/* Reads up to `size` bytes; *got is smaller only at the end of the file. A fault: unreadable or corrupt. */
int mtc_input_read(MtcFault *fault, MtcInput *input, void *bytes, size_t size, size_t *got);
bool mtc_is_gzip(const uint8_t *bytes, size_t size); /* the first bytes of a file */
/* The most bytes that the input can still give, or exactly so many: a bound that no header may exceed. */
size_t mtc_input_bound(const MtcInput *input, bool *exact);
/* All of it; free *bytes. */
int mtc_read_file(MtcFault *fault, const char *path, uint8_t **bytes, size_t *size);

/* The bytes of a file where they lie: mapped, so that only what is read takes memory, which the system may take back; or in
 * memory, unpacked, where the file is of gzip. After a fault there is nothing to unmap. */
typedef struct MtcMapped {
    const uint8_t *bytes; /* NULL: the file is empty */
    size_t size;
    uint8_t *memory; /* NULL: they are mapped */
    int file;        /* -1: it is closed */
    struct timespec changed;
} MtcMapped;
/* A fault: there is no such file, or no address space for it. */
int mtc_map_file(MtcFault *fault, const char *path, MtcMapped *mapped);
void mtc_unmap_file(MtcMapped *mapped);
/* No other program has changed the file since. If one has, bytes that were read may be neither the old nor the new ones; if
 * it has made the file shorter, reading those behind its end stops the program (SIGBUS). */
bool mtc_mapped_is_same(const MtcMapped *mapped);

/* The path of the model file, of that which the program knows it by: from where the program is started, or absolute. Free it. */
extern const char *mtc_model_folder;
char *mtc_model_path(const char *source);

/* Finds a data file that the model names by `path`: in `folder` when it is given, else beside the model file, in
 * $MTC_DATA_DIR and in the user's cache; with or without ".gz". The fault lists every place tried. Free *found. */
int mtc_find_data(MtcFault *fault, const char *source, const char *folder, const char *path, char **found);
int mtc_find_folder(MtcFault *fault, const char *source, const char *folder, const char *path, char **found);

/* The folders that `path` lies in; where one cannot be made, opening the file fails. */
void mtc_make_folders(const char *path);

#endif
