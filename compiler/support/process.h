/* Other programs, run without a shell. */
#ifndef MTC_PROCESS_H
#define MTC_PROCESS_H

#include "support/text.h"

#include <stdbool.h>

/* Runs argv (NULL-terminated; argv[0] is a path), appends what it writes on stdout and stderr to `output`, and waits.
 * Returns its exit status, 128 + the signal that ended it, or 127 when it could not be started. */
int process_run(const char *const *argv, Text *output);
/* Runs the file `program` with our own input and outputs, calling it argv[0]. An interrupt from the terminal is for it,
 * not for us. */
int process_pass(const char *program, const char *const *argv);

/* The first executable file called `name` in the folders of $PATH, or NULL; a name with a slash is tried as it is. */
const char *process_find(Arena *arena, const char *name);

/* The command as one would type it, for people to read. */
const char *process_text(Arena *arena, const char *const *argv);

#endif
