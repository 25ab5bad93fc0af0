/* How the compiler and its programs open files: to read, never waiting for one that is no file; to write, whole and into place. */
#ifndef MTC_FILE_H_RUNTIME
#define MTC_FILE_H_RUNTIME

#include "base/common.h"

/* Called first: a program that was begun without stdin, stdout or stderr gives their numbers to no file, into which it would
 * then print. */
void mtc_hold_standard_files(void);

/* ---- reading ---- */

/* A descriptor of a plain file, to be closed. -1: there is none, or it is a folder, a pipe or a device, on which a program
 * could wait for ever; *why, which stays valid until the thread's next call, says which. */
int mtc_open_file(const char *path, const char **why);
/* The same; but what the caller was given as a descriptor (/dev/stdin, /dev/fd/63: a pipe of the shell) is read whatever it is. */
int mtc_open_stream(const char *path, const char **why);

/* ---- writing ----
 *
 * A file that is there is replaced by one of the same mode and, where the system lets us, owner; a new one has the usual mode.
 * A link stays: what it leads to is written, whether that exists or not. What nobody may write is not written, not even by
 * root. A device, a pipe or a descriptor (/dev/stdout) that somebody
 * names is written through, as far as the writing comes. A failure leaves
 * errno. */

/* Writes beside `path` under another name, "<path>.<process>.tmp"; commit makes it `path` in one move, durably, and
 * discard removes it. */
typedef struct MtcOutput MtcOutput;
int mtc_output_open(MtcFault *fault, const char *path, MtcOutput **output);
/* The other name is made of `base`, a path in the same folder, NULL, or where `path` is a link: of what is written. Its mode is that of `base` where `path` is new. */
int mtc_output_open_as(MtcFault *fault, const char *path, const char *base, MtcOutput **output);
/* The same for a file that nobody has named: a pipe or a device there is none of ours, and is not written. */
int mtc_output_open_own(MtcFault *fault, const char *path, const char *base, MtcOutput **output);
/* The program is to end: for the reader of a pipe it waits no longer than a second from now on. A signal's handler may call it. */
void mtc_hurry_outputs(void);
int mtc_output_write(MtcFault *fault, MtcOutput *output, const void *bytes, size_t size);
/* Other bytes at the beginning, which was written. Not of what is written in place, which may be a pipe. */
int mtc_output_rewrite(MtcFault *fault, MtcOutput *output, const void *bytes, size_t size);
int mtc_output_executable(MtcFault *fault, MtcOutput *output); /* for whoever may read it */
int mtc_output_private(MtcFault *fault, MtcOutput *output);    /* for its owner alone */
int mtc_output_commit(MtcFault *fault, MtcOutput *output);
int mtc_output_place(MtcFault *fault, MtcOutput *output); /* the same, but not durably: what can be made again */
void mtc_output_discard(MtcOutput *output);
/* Makes `path`, or what the link leads to, another name of the file `existing`, in one move; the fault of a file system without links is like any. */
int mtc_output_link(MtcFault *fault, const char *existing, const char *path);
/* Removes what killed programs left of writing `path`; files that a running program writes stay. */
void mtc_output_clean(const char *path);
/* Is it no plain file, or a descriptor? */
bool mtc_written_in_place(const char *path);
/* A plain file that may not be written. */
bool mtc_is_read_only(const char *path);
/* The file that a link leads to, also where that does not exist; else `path`. Free it. */
char *mtc_resolved(const char *path);
/* Could mtc_output_open write there? Asked before hours of training. */
int mtc_output_check(MtcFault *fault, const char *path);

/* "models" of "models/mnist.mt", "." of "mnist.mt". Free it. */
char *mtc_folder_of(const char *path);
/* What errno says of writing a file; where its folder is not there, that. Good until the next call. */
const char *mtc_why_unwritten(const char *path);

#endif
