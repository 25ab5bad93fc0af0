/* What every part of the runtime uses: faults, time, a growable text. */
#ifndef MTC_COMMON_H
#define MTC_COMMON_H

#include "mtc.h"

/* Exit codes, after sysexits.h. */
enum {
    MTC_USAGE = 64,
    MTC_BAD_DATA = 65, /* a file's content, a checkpoint, a training that diverged */
    MTC_NO_INPUT = 66,
    MTC_UNAVAILABLE = 69, /* no such device, too little memory */
    MTC_INTERNAL = 70,
    MTC_CANT_CREATE = 73,
    MTC_IO = 74,
    MTC_RANK_LOST = 80 /* of a training in several processes */
};

/* Why something failed: the code to exit with and the message. Each function that can fail takes one and returns the
 * code, or 0. The message names the file, what was expected and what was found; further lines are indented notes. */
typedef struct MtcFault {
    int code;
    char text[8192];
} MtcFault;

int mtc_fail(MtcFault *fault, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
void mtc_note(MtcFault *fault, const char *format, ...) __attribute__((format(printf, 2, 3)));
int mtc_no_memory(MtcFault *fault, size_t bytes, const char *what);

/* Memory of another size, or no return: for what has no way on without it. */
void *mtc_memory(void *old, size_t bytes);
void *mtc_zeroed(size_t bytes);
/* What `call` returns. Where it finds no memory, it is left right there, with what it held lost, and the fault (which may be
 * NULL) says so: no library ends the program that it is in. Elsewhere the program ends. And files and JSON have their numbers
 * with a point, whatever that program's locale says. */
int mtc_guard(MtcFault *fault, int (*call)(void *context), void *context);
void mtc_out_of_memory(void);
void mtc_free_strings(char **string, int count); /* each, and the array */

double mtc_seconds(void); /* monotonic */

/* "1.3 MB", in one of a few static buffers: good for one message. */
const char *mtc_bytes(double bytes);
/* "[60000, 28, 28]", likewise. */
const char *mtc_shape(int rank, const int64_t *dim);
const char *mtc_index(int64_t element, int rank, const int64_t *dim); /* "[3, 17]" of an element */
const char *mtc_number(double value);                                 /* "0.25", "-inf", "NaN" */

double
mtc_shortest(float value); /* the number of fewest digits that reads back as the float: 0.001, not 0.00100000005 */

size_t mtc_type_size(MtcType type);
bool mtc_is_real(MtcType type); /* of any width: numbers that can be infinite, or none */
const char *mtc_type_name(MtcType type);
/* INT64_MAX where they are more: a file may say any shape. */
int64_t mtc_elements(int rank, const int64_t *dim);

/* A text that grows; `at` is always terminated once something was added. Free `at`. */
typedef struct MtcText {
    char *at;
    size_t length, capacity;
} MtcText;
void mtc_text_add(MtcText *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void mtc_text_json(MtcText *text, const char *string); /* quoted and escaped */

/* "mtc models/mnist.mt --target cpu --batch 32 -o mnist_train": how mtc makes the program again, as it was compiled but for the
 * flag, whose value may be "". program NULL: the library that it is part of. */
void mtc_remake(MtcText *text, const MtcModel *model, const char *flag, const char *value, const char *program);

/* Bytes of a file on their way to a terminal, which obeys some: control characters, and those that turn the direction of
 * writing, become "\x1b" and "\u202e"; of the controls, those in `kept` stay. */
void mtc_text_harmless(MtcText *text, const char *bytes, size_t size, const char *kept);
/* The whole string so: itself where nothing changes, else one of a few buffers of this thread, good for one message. */
const char *mtc_harmless(const char *string);
const char *mtc_harmless_lines(const char *string); /* new lines and tabs stay */
int mtc_characters(const char *text);               /* of UTF-8 */

/* The candidate nearest to `name` by edit distance, or NULL when none is near enough to be a misspelling. */
const char *mtc_nearest(const char *name, const char *const *candidates, int count);

#endif
