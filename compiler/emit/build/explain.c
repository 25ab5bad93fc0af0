#include "emit/build/explain.h"

#include <errno.h>
#include <stdlib.h>

enum { MAX_SHOWN = 3, MAX_RAW_LINES = 12 };

static const Span nowhere = {0};

/* "file.cu(12): error: message" of nvcc, "file.c:12:5: error: message" of cc. */
typedef struct Complaint {
    long line;
    const char *message;
    int length;
} Complaint;

static bool read_complaint(const char *text, size_t length, const char *path, Complaint *complaint) {
    size_t skip = strlen(path);
    if (length <= skip + 1 || strncmp(text, path, skip) != 0 || !strchr("(:", text[skip]))
        return false;
    complaint->line = strtol(text + skip + 1, NULL, 10);
    const char *error = strstr(text + skip, "error"), *end = text + length;
    const char *colon = error && error < end ? memchr(error, ':', (size_t)(end - error)) : NULL;
    if (!colon)
        return false;
    complaint->message = colon + 1 + strspn(colon + 1, " ");
    complaint->length = (int)(end - complaint->message);
    return complaint->line > 0;
}

static void show(Diag *diag, const char *tool, const char *path, const Emission *source, const Complaint *complaint) {
    Span from = complaint->line <= source->lines.count ? source->lines.at[complaint->line - 1] : nowhere;
    diag_error(diag, from, "%s: %.*s", tool, complaint->length, complaint->message);
    diag_note(diag, nowhere, "in the generated code, at %s:%ld", path, complaint->line);
}

static void show_raw(Diag *diag, const char *log) {
    for (int i = 0; i < MAX_RAW_LINES && *log; i++) {
        int length = (int)strcspn(log, "\n");
        diag_note(diag, nowhere, "%.*s", length, log);
        log += length + (log[length] == '\n');
    }
}

/* What a compiler lacked, in the words of the system, and what gives it that. NULL: nothing is known. */
static const char *what_lacked(const char *log, const char **cure) {
    static const char room[] =
        "it writes to $TMPDIR, else /tmp, and to the folder of --keep: make room there, or name others";
    static const struct {
        int reason;
        const char *cure;
    } lacks[] = {{ENOSPC, room},
                 {EDQUOT, room},
                 {EFBIG, "files may not grow so large: ulimit -f says how large"},
                 {ENOMEM, "memory ran out: end other programs, or see what ulimit -v says"}};
    for (size_t i = 0; i < sizeof lacks / sizeof *lacks; i++) {
        *cure = lacks[i].cure;
        if (strstr(log, strerror(lacks[i].reason)))
            return strerror(lacks[i].reason);
    }
    *cure = "compilers are ended so where memory runs out: end other programs";
    return strstr(log, "Killed signal terminated") ? "it was killed" : NULL;
}

static int show_complaints(Diag *diag, const char *tool, const char *path, const Emission *source, const char *log) {
    int shown = 0;
    for (const char *at = log; *at && shown < MAX_SHOWN;) {
        size_t length = strcspn(at, "\n");
        Complaint complaint;
        if (read_complaint(at, length, path, &complaint)) {
            show(diag, tool, path, source, &complaint);
            shown++;
        }
        at += length + (at[length] == '\n');
    }
    return shown;
}

void explain_failure(Diag *diag, const char *tool, const char *path, const Emission *source, const char *log,
                     const char *log_path) {
    const char *cure, *lacked = what_lacked(log, &cure);
    int shown = lacked ? 0 : show_complaints(diag, tool, path, source, log);
    diag_error(diag, nowhere, "%s could not compile the generated program%s%s", tool, lacked ? ": " : "",
               lacked  ? lacked
               : shown ? "; this is a fault of mtc, not of the model"
                       : "");
    if (lacked)
        diag_note(diag, nowhere, "%s", cure);
    else if (!shown)
        show_raw(diag, log);
    if (log_path)
        diag_note(diag, nowhere, "all that %s said is in %s", tool, log_path);
}
