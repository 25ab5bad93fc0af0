#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

char *mtc_folder_of(const char *path) {
    const char *slash = strrchr(path, '/');
    MtcText text = {NULL, 0, 0};
    if (!slash)
        mtc_text_add(&text, ".");
    else
        mtc_text_add(&text, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    return text.at;
}

/* The number of the descriptor that a path names; -1: it names none. */
static int descriptor_of(const char *path) {
    static const char *const standard[] = {"/dev/stdin", "/dev/stdout", "/dev/stderr"};
    static const char *const folder[] = {"/dev/fd/", "/proc/self/fd/"};
    for (int i = 0; i < 3; i++)
        if (strcmp(path, standard[i]) == 0)
            return i;
    for (int i = 0; i < 2; i++) {
        size_t length = strlen(folder[i]), digits = 0;
        if (strncmp(path, folder[i], length) == 0)
            digits = strspn(path + length, "0123456789");
        if (digits > 0 && digits < 7 && !path[length + digits])
            return atoi(path + length);
    }
    return -1;
}

/* Opened so that their use stays the fault that it was. */
void mtc_hold_standard_files(void) {
    for (int file = STDIN_FILENO; file <= STDERR_FILENO; file++)
        if (fcntl(file, F_GETFD) < 0 && open("/dev/null", file == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0)
            return;
}

/* ---- reading ---- */

/* NULL: a plain file. */
static const char *other_kind(mode_t mode) {
    return S_ISREG(mode)    ? NULL
           : S_ISDIR(mode)  ? "it is a folder"
           : S_ISFIFO(mode) ? "it is a pipe (FIFO), not a file"
           : S_ISSOCK(mode) ? "it is a socket, not a file"
                            : "it is a device, not a file";
}

/* Opened without waiting, which a pipe that nobody writes would make us do. */
static int open_kind(const char *path, bool pipes, const char **why) {
    struct stat status;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    *why = NULL;
    if (file < 0 || fstat(file, &status) != 0)
        *why = strerror(errno);
    else if (!pipes || S_ISDIR(status.st_mode))
        *why = other_kind(status.st_mode);
    else if (fcntl(file, F_SETFL, 0) != 0)
        *why = strerror(errno);
    if (file >= 0 && *why) {
        close(file);
        file = -1;
    }
    return file;
}

int mtc_open_file(const char *path, const char **why) {
    return open_kind(path, false, why);
}

int mtc_open_stream(const char *path, const char **why) {
    return open_kind(path, descriptor_of(path) >= 0, why);
}

/* ---- writing ---- */

/* Written as `temporary`, "<path>.<number of the process>.tmp", under a lock as long as its process lives: what a killed
 * program left is told apart by having none. NULL: written in place. */
struct MtcOutput {
    char *path, *temporary, *folder;
    int file;
};

const char *mtc_why_unwritten(const char *path) {
    static __thread char why[4200];
    const int reason = errno;
    struct stat status;
    char *folder = mtc_folder_of(path);
    bool lacks_folder = reason == ENOENT && stat(folder, &status) != 0 && errno == ENOENT;
    if (lacks_folder)
        snprintf(why, sizeof why, "there is no folder '%s'", folder);
    free(folder);
    errno = reason;
    return lacks_folder ? why : reason == ENXIO ? "nobody reads this pipe" : strerror(reason);
}

static int cannot_write(MtcFault *fault, const char *path, int code) {
    const int reason = errno;
    mtc_fail(fault, code, "%s: cannot write: %s", path, mtc_why_unwritten(path));
    if (reason == EACCES && mtc_is_read_only(path))
        mtc_note(fault, "it is read-only; chmod u+w makes it writable");
    errno = reason;
    return code;
}

bool mtc_written_in_place(const char *path) {
    struct stat status;
    return descriptor_of(path) >= 0 || (stat(path, &status) == 0 && !S_ISREG(status.st_mode));
}

bool mtc_is_read_only(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode) &&
           ((status.st_mode & 0222) == 0 || access(path, W_OK) != 0);
}

/* What the link `path` says, seen from here; NULL: it is no link. */
static char *link_target(const char *path) {
    char target[4096];
    ssize_t length = readlink(path, target, sizeof target - 1);
    if (length <= 0)
        return NULL;
    target[length] = 0;
    MtcText text = {NULL, 0, 0};
    char *folder = mtc_folder_of(path);
    mtc_text_add(&text, "%s%s%s", target[0] == '/' ? "" : folder, target[0] == '/' ? "" : "/", target);
    free(folder);
    return text.at;
}

char *mtc_resolved(const char *path) {
    enum { MOST_LINKS = 40 }; /* as the system */
    char *target = descriptor_of(path) >= 0 ? NULL : realpath(path, NULL);
    if (target)
        return target;
    target = strdup(path);
    for (int i = 0; i < MOST_LINKS && descriptor_of(target) < 0; i++) {
        char *next = link_target(target);
        if (!next)
            break;
        free(target);
        target = next;
    }
    return target;
}

static char *temporary_name(const char *base) {
    MtcText text = {NULL, 0, 0};
    mtc_text_add(&text, "%s.%ld.tmp", base, (long)getpid());
    return text.at;
}

static bool is_link(const char *path) {
    struct stat status;
    return lstat(path, &status) == 0 && S_ISLNK(status.st_mode);
}

/* What a link leads to may lie in another folder than `base`, from which nothing could be moved there. */
static MtcOutput *output_new(const char *path, const char *base) {
    MtcOutput *output = (MtcOutput *)mtc_zeroed(sizeof *output);
    const bool in_place = mtc_written_in_place(path);
    output->path = in_place ? strdup(path) : mtc_resolved(path);
    output->temporary = in_place ? NULL : temporary_name(base && !is_link(path) ? base : output->path);
    output->folder = mtc_folder_of(output->path);
    return output;
}

/* Removes a temporary file unless a program that runs holds its lock. */
static void remove_leftover(const char *path) {
    struct stat status;
    int file = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC); /* a pipe of that name is not waited for */
    if (file < 0)
        return;
    if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && flock(file, LOCK_EX | LOCK_NB) == 0)
        unlink(path);
    close(file);
}

/* Whoever cleans the folder may have seen the new file before it was locked, and removed it: then again. */
static int create_temporary(const char *path, mode_t mode) {
    struct stat status;
    for (;;) {
        remove_leftover(
            path); /* of a program that had our number; another machine or container may have one that runs */
        int file = open(path, O_WRONLY | O_CLOEXEC | O_CREAT | O_EXCL, mode);
        if (file < 0 || flock(file, LOCK_EX) != 0 || fstat(file, &status) != 0 || status.st_nlink > 0)
            return file;
        close(file);
    }
}

static volatile sig_atomic_t hurried;

void mtc_hurry_outputs(void) {
    hurried = 1;
}

/* Waits for a reader of a pipe, once the program is to end only a second longer. */
static int open_pipe(const char *path) {
    const struct timespec pause = {0, 20000000};
    enum { LAST_TRIES = 50 };
    for (int last = 0;; last += hurried) {
        int file = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK);
        if (file >= 0 && fcntl(file, F_SETFL, 0) == 0)
            return file;
        if (file >= 0 || errno != ENXIO || last == LAST_TRIES)
            return -1;
        nanosleep(&pause, NULL);
    }
}

/* A descriptor is used where it stands, for it may have written already; opening it again would begin at the file's start. */
static int open_in_place(const char *path) {
    const int descriptor = descriptor_of(path);
    struct stat status;
    if (descriptor < 0 && stat(path, &status) == 0 && S_ISFIFO(status.st_mode))
        return open_pipe(path);
    return descriptor >= 0 ? fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
                           : open(path, O_WRONLY | O_CLOEXEC | O_TRUNC | O_NOCTTY);
}

/* Mode and owner of the file that is replaced. Whoever may not give files away keeps the mode all the same. */
static bool make_like(int file, const struct stat *replaced) {
    if (fchown(file, replaced->st_uid, replaced->st_gid) != 0 && fchown(file, (uid_t)-1, replaced->st_gid) != 0)
        errno = 0;
    return fchmod(file, replaced->st_mode & 0777) == 0;
}

/* `like` NULL: a new file. Nobody else can open what replaces a private file, not even before it has its mode. */
static int open_beside(const MtcOutput *output, const struct stat *like) {
    int file = create_temporary(output->temporary, like ? 0600 : 0666);
    if (file < 0 || !like || make_like(file, like))
        return file;
    const int reason = errno;
    unlink(output->temporary);
    close(file);
    errno = reason;
    return -1;
}

static int open_output(const MtcOutput *output, const char *base) {
    struct stat like;
    if (!output->temporary)
        return open_in_place(output->path);
    if (mtc_is_read_only(output->path)) {
        errno = EACCES;
        return -1;
    }
    const bool found = stat(output->path, &like) == 0 || (base && stat(base, &like) == 0);
    return open_beside(output, found ? &like : NULL);
}

int mtc_output_open_as(MtcFault *fault, const char *path, const char *base, MtcOutput **result) {
    MtcOutput *output = output_new(path, base);
    output->file = open_output(output, base);
    *result = output;
    if (output->file >= 0)
        return 0;
    cannot_write(fault, path, MTC_CANT_CREATE);
    mtc_output_discard(output);
    *result = NULL;
    return fault->code;
}

int mtc_output_open(MtcFault *fault, const char *path, MtcOutput **result) {
    return mtc_output_open_as(fault, path, NULL, result);
}

int mtc_output_open_own(MtcFault *fault, const char *path, const char *base, MtcOutput **result) {
    struct stat status;
    if (stat(path, &status) != 0 || !other_kind(status.st_mode))
        return mtc_output_open_as(fault, path, base, result);
    return mtc_fail(fault, MTC_CANT_CREATE, "%s: cannot write: %s", path, other_kind(status.st_mode));
}

int mtc_output_write(MtcFault *fault, MtcOutput *output, const void *bytes, size_t size) {
    const char *at = (const char *)bytes;
    while (size > 0) {
        ssize_t n = write(output->file, at, size < 1u << 30 ? size : 1u << 30);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return cannot_write(fault, output->path, MTC_IO);
        at += n;
        size -= (size_t)n;
    }
    return 0;
}

int mtc_output_rewrite(MtcFault *fault, MtcOutput *output, const void *bytes, size_t size) {
    const char *at = (const char *)bytes;
    for (size_t done = 0; done < size;) {
        const ssize_t n = pwrite(output->file, at + done, size - done, (off_t)done);
        if (n < 0 && errno != EINTR)
            return cannot_write(fault, output->path, MTC_IO);
        done += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

/* Makes a move durable: a directory is synchronised like a file, where it may be read and the file system can. */
static int synchronise_folder(MtcFault *fault, const char *path, const char *folder) {
    int directory = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool bad = directory < 0 ? errno != EACCES : fsync(directory) != 0 && errno != EINVAL;
    int code = bad ? cannot_write(fault, path, MTC_IO) : 0;
    if (directory >= 0)
        close(directory);
    return code;
}

/* Changes the mode by the bits that `change` makes of it. */
static int permit(MtcFault *fault, MtcOutput *output, mode_t (*change)(mode_t mode)) {
    struct stat status;
    if (!output->temporary)
        return 0;
    const bool good = fstat(output->file, &status) == 0 && fchmod(output->file, change(status.st_mode & 0777)) == 0;
    return good ? 0 : cannot_write(fault, output->path, MTC_IO);
}

static mode_t executable(mode_t mode) {
    return mode | (mode & 0444) >> 2;
}

static mode_t private_to_owner(mode_t mode) {
    return mode & 0700;
}

int mtc_output_executable(MtcFault *fault, MtcOutput *output) {
    return permit(fault, output, executable);
}

int mtc_output_private(MtcFault *fault, MtcOutput *output) {
    return permit(fault, output, private_to_owner);
}

static int close_in_place(MtcFault *fault, MtcOutput *output) {
    bool failed = close(output->file) != 0;
    output->file = -1;
    return failed ? cannot_write(fault, output->path, MTC_IO) : 0;
}

static int place_output(MtcFault *fault, MtcOutput *output, bool durable) {
    int code;
    if (!output->temporary)
        code = close_in_place(fault, output);
    else if ((durable && fsync(output->file) != 0) || rename(output->temporary, output->path) != 0)
        code = cannot_write(fault, output->path, MTC_IO);
    else
        code = durable ? synchronise_folder(fault, output->path, output->folder) : 0;
    mtc_output_discard(output);
    return code;
}

int mtc_output_commit(MtcFault *fault, MtcOutput *output) {
    return place_output(fault, output, true);
}

int mtc_output_place(MtcFault *fault, MtcOutput *output) {
    return place_output(fault, output, false);
}

void mtc_output_discard(MtcOutput *output) {
    const int reason = errno;
    if (output->file >= 0) {
        if (output->temporary)
            unlink(output->temporary); /* after a commit there is none */
        close(output->file);
    }
    free(output->path);
    free(output->temporary);
    free(output->folder);
    free(output);
    errno = reason;
}

int mtc_output_link(MtcFault *fault, const char *existing, const char *path) {
    char *resolved = mtc_resolved(path), *temporary = temporary_name(resolved), *folder = mtc_folder_of(resolved);
    unlink(temporary);
    bool linked = linkat(AT_FDCWD, existing, AT_FDCWD, temporary, AT_SYMLINK_FOLLOW) == 0;
    bool moved = linked && rename(temporary, resolved) == 0;
    int code = moved ? synchronise_folder(fault, path, folder) : cannot_write(fault, path, MTC_IO);
    if (linked)
        unlink(temporary); /* still there when `path` was that file already */
    free(resolved);
    free(folder);
    free(temporary);
    return code;
}

/* Is `name` "<base>.<digits>.tmp"? */
static bool is_temporary_of(const char *name, const char *base) {
    size_t length = strlen(base), digits;
    if (strncmp(name, base, length) != 0 || name[length] != '.')
        return false;
    digits = strspn(name + length + 1, "0123456789");
    return digits > 0 && strcmp(name + length + 1 + digits, ".tmp") == 0;
}

void mtc_output_clean(const char *path) {
    char *target = mtc_resolved(path), *folder = mtc_folder_of(target);
    const char *slash = strrchr(target, '/'), *base = slash ? slash + 1 : target;
    DIR *listing = opendir(folder);
    for (struct dirent *item; listing && (item = readdir(listing));)
        if (is_temporary_of(item->d_name, base)) {
            MtcText leftover = {NULL, 0, 0};
            mtc_text_add(&leftover, "%s/%s", folder, item->d_name);
            remove_leftover(leftover.at);
            free(leftover.at);
        }
    if (listing)
        closedir(listing);
    free(target);
    free(folder);
}

int mtc_output_check(MtcFault *fault, const char *path) {
    MtcOutput *output;
    struct stat status;
    if (stat(path, &status) == 0 && S_ISDIR(status.st_mode)) {
        errno = EISDIR;
        return cannot_write(fault, path, MTC_CANT_CREATE);
    }
    if (mtc_written_in_place(path)) /* opening would empty it */
        return access(path, W_OK) == 0 ? 0 : cannot_write(fault, path, MTC_CANT_CREATE);
    mtc_output_clean(path);
    int code = mtc_output_open(fault, path, &output);
    if (!code)
        mtc_output_discard(output);
    return code;
}
