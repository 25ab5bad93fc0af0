/* Files and paths. Functions that fail leave errno. */
#ifndef MTC_FILE_H
#define MTC_FILE_H

#include "support/arena.h"

#include <stdbool.h>

/* The whole file, terminated by a NUL that *size does not count; NULL on failure, and *why says why (`why` may be NULL). A
 * pipe or a device is not read, unless the path names a descriptor: /dev/stdin, /dev/fd/63. */
char *file_read(Arena *arena, const char *path, size_t *size, const char **why);
/* A descriptor for reading the same; -1 on failure. */
int file_open(const char *path, const char **why);

/* Writes whole and into place, as runtime/base/file.h says: a reader sees the old file or the whole new one. */
bool file_write(const char *path, const void *bytes, size_t size);
bool file_write_program(const char *path, const void *bytes, size_t size); /* that may be run */
bool file_write_private(const char *path, const void *bytes, size_t size); /* for its owner alone */

bool file_exists(const char *path);
/* The file of data that a program finds for a path in its model, where --data does not say where; NULL: there is none. */
const char *data_file(Arena *arena, const char *model, const char *path);
const char *file_why(const char *path); /* what errno says of a file that cannot be written; good until the next call */
bool folder_make(Arena *arena, const char *path); /* with its parents; true when it is there already */
/* A new folder in $TMPDIR or /tmp; NULL on failure. */
const char *folder_temporary(Arena *arena);
const char *folder_temporary_as(Arena *arena, const char *path); /* beside `path`, called like it with an ending */
/* The same for `files`, locked while this process lives; what killed ones left, which hold nothing but such files, goes. */
const char *folder_to_work_in(Arena *arena, const char *path, const char *const *files, int count);
void folder_remove(Arena *arena, const char *path); /* with the files in it */

const char *path_folder(Arena *arena, const char *path); /* "a/b" of "a/b/c", "." of "c" */
const char *path_base(const char *path);                 /* "c" */
const char *path_in(Arena *arena, const char *folder, const char *name);
/* "gpt.mt" of "models/gpt.mt" beside "models/gpt2.mt": without the folder of the other file, where it lies in there. */
const char *path_beside(const char *path, const char *other);
bool path_same(const char *a, const char *b); /* both exist and are one file */

#endif
