/* Files and paths. Functions that fail leave errno. */
#ifndef MTC_FILE_H
#define MTC_FILE_H

#include "support/arena.h"

#include <stdbool.h>

/* The whole file, terminated by a NUL that *size does not count; NULL on failure. */
char *file_read(Arena *arena, const char *path, size_t *size);

/* Writes under another name in the same folder, then renames: a reader sees the old file or the whole new one. */
bool file_write(Arena *arena, const char *path, const void *bytes, size_t size);
bool file_copy(Arena *arena, const char *from, const char *to, bool executable);

/* An empty file beside `path`, to be renamed to it or removed; NULL on failure. */
const char *file_temporary(Arena *arena, const char *path);

bool file_exists(const char *path);
bool folder_make(Arena *arena, const char *path); /* with its parents; true when it is there already */
/* A new folder in $TMPDIR or /tmp; NULL on failure. */
const char *folder_temporary(Arena *arena);
void folder_remove(Arena *arena, const char *path); /* with the files in it */

const char *path_folder(Arena *arena, const char *path); /* "a/b" of "a/b/c", "." of "c" */
const char *path_base(const char *path);                 /* "c" */
const char *path_in(Arena *arena, const char *folder, const char *name);
/* "gpt.mt" of "models/gpt.mt" beside "models/gpt2.mt": without the folder of the other file, where it lies in there. */
const char *path_beside(const char *path, const char *other);
bool path_same(const char *a, const char *b); /* both exist and are one file */

#endif
