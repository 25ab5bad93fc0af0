/* Files: reading plain or gzip, finding data sets, writing so that a file is either the old one or the whole new one. */
#ifndef MTC_FILES_H
#define MTC_FILES_H

#include "common.h"

/* A file (gzip is recognised by its first bytes, not by its name) or bytes in memory, read from front to back. */
typedef struct MtcInput MtcInput;
int mtc_input_open(MtcFault *fault, const char *path, MtcInput **input);
MtcInput *mtc_input_memory(const char *path, const void *bytes, size_t size);
void mtc_input_close(MtcInput *input);
const char *mtc_input_path(const MtcInput *input);
/* Reads up to `size` bytes; *got is smaller only at the end of the file. A fault: unreadable or corrupt. */
int mtc_input_read(MtcFault *fault, MtcInput *input, void *bytes, size_t size, size_t *got);
/* The most bytes that the input can still give, or exactly so many: a bound that no header may exceed. */
size_t mtc_input_bound(const MtcInput *input, bool *exact);
/* All of it; free *bytes. */
int mtc_read_file(MtcFault *fault, const char *path, uint8_t **bytes, size_t *size);

/* Finds a data file that the model names by `path`: in `folder` when it is given, else beside the model file, in
 * $MTC_DATA_DIR and in the user's cache; with or without ".gz". The fault lists every place tried. Free *found. */
int mtc_find_data(MtcFault *fault, const char *source, const char *folder, const char *path, char **found);

/* Writes beside `path` under another name; commit makes it `path` in one move, discard removes it. */
typedef struct MtcOutput MtcOutput;
int mtc_output_open(MtcFault *fault, const char *path, MtcOutput **output);
int mtc_output_write(MtcFault *fault, MtcOutput *output, const void *bytes, size_t size);
int mtc_output_commit(MtcFault *fault, MtcOutput *output);
void mtc_output_discard(MtcOutput *output);
/* Could mtc_output_open write there? Asked before hours of training. */
int mtc_output_check(MtcFault *fault, const char *path);

#endif
