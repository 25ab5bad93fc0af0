#include "base/lock.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct MtcLock {
    char *path;
    int file;
};

enum { HOLDER = 256 };

static char *lock_path(const char *path) {
    char *target = mtc_resolved(path), *folder = mtc_folder_of(target);
    const char *slash = strrchr(target, '/');
    MtcText text = {NULL, 0, 0};
    mtc_text_add(&text, "%s/.%s.mtc-lock", folder, slash ? slash + 1 : target);
    free(folder);
    free(target);
    return text.at;
}

/* A file of another user can be locked too, though not written. */
static int open_unlocked(const char *path) {
    struct stat status;
    const int flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
    int file = open(path, O_RDWR | O_CREAT | flags, 0666);
    if (file < 0 && errno == EACCES)
        file = open(path, O_RDONLY | flags);
    if (file < 0 || (fstat(file, &status) == 0 && S_ISREG(status.st_mode)))
        return file;
    close(file);
    return -1;
}

static bool is_still(const char *path, int file) {
    struct stat opened, named;
    return fstat(file, &opened) == 0 && lstat(path, &named) == 0 && opened.st_dev == named.st_dev &&
           opened.st_ino == named.st_ino;
}

/* The file that was locked may be one that its holder has removed meanwhile: then again. -1: there is no lock to be had.
 * *held: another process has it, and the file is open to be read. */
static int open_locked(const char *path, bool *held) {
    enum { MOST_TRIES = 100 };
    *held = false;
    for (int i = 0; i < MOST_TRIES; i++) {
        int file = open_unlocked(path);
        if (file < 0)
            return -1;
        bool locked = flock(file, LOCK_EX | LOCK_NB) == 0;
        *held = !locked && errno == EWOULDBLOCK;
        if (*held || (locked && is_still(path, file)))
            return file;
        close(file);
        if (!locked)
            return -1;
    }
    return -1;
}

static int signature(char text[HOLDER]) {
    char host[128] = "";
    if (gethostname(host, sizeof host - 1) != 0)
        host[0] = 0;
    return snprintf(text, HOLDER, "process %ld of %s\n", (long)getpid(), host);
}

static void sign_lock(int file) {
    char text[HOLDER];
    const int length = signature(text);
    if (ftruncate(file, 0) != 0 || pwrite(file, text, (size_t)length, 0) != length)
        return; /* a full disk: whoever asks is told that there is a process, but not which */
}

static int refuse_lock(MtcFault *fault, int file, const char *flag, const char *path) {
    char holder[HOLDER], ours[HOLDER];
    ssize_t bytes = pread(file, holder, sizeof holder - 1, 0);
    if (bytes <= 0)
        bytes = snprintf(holder, sizeof holder, "a process of unknown number");
    holder[bytes] = 0;
    signature(ours);
    if (strcmp(holder, ours) == 0)
        mtc_fail(fault, MTC_CANT_CREATE, "%s %s: another training of this process writes it", flag, path);
    else
        mtc_fail(fault, MTC_CANT_CREATE, "%s %s: another training writes it: %.*s", flag, path,
                 (int)strcspn(holder, "\n"), holder);
    mtc_note(fault, "choose another name, or wait until that one has ended");
    return fault->code;
}

int mtc_lock_open(MtcFault *fault, const char *flag, const char *path, MtcLock **lock) {
    bool held;
    *lock = NULL;
    if (!path || mtc_written_in_place(path))
        return 0;
    char *beside = lock_path(path);
    int file = open_locked(beside, &held), code = held ? refuse_lock(fault, file, flag, path) : 0;
    if (file < 0 || held) {
        if (file >= 0)
            close(file);
        free(beside);
        return code;
    }
    sign_lock(file);
    *lock = (MtcLock *)mtc_zeroed(sizeof **lock);
    **lock = (MtcLock){beside, file};
    return 0;
}

void mtc_lock_close(MtcLock *lock) {
    if (!lock)
        return;
    unlink(lock->path); /* while it is locked: nobody else has this file */
    close(lock->file);
    free(lock->path);
    free(lock);
}

/* ---- for programs that embed a model ---- */

typedef struct Locking {
    const char *what, *path;
    MtcLock *lock;
    char *refusal;
} Locking;

static int lock_for_caller(void *context) {
    Locking *locking = (Locking *)context;
    MtcFault fault;
    MtcText text = {NULL, 0, 0};
    const int code = mtc_lock_open(&fault, locking->what, locking->path, &locking->lock);
    if (code)
        mtc_text_add(&text, "%s", fault.text);
    else
        mtc_output_clean(locking->path); /* as a program does that begins to train */
    locking->refusal = text.at;
    return code;
}

char *mtc_lock_file(const char *what, const char *path, MtcLock **lock) {
    Locking locking = {what, path, NULL, NULL};
    mtc_guard(NULL, lock_for_caller, &locking);
    *lock = locking.lock;
    return locking.refusal;
}

void mtc_unlock_file(MtcLock *lock) {
    mtc_lock_close(lock);
}
