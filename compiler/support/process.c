#include "support/process.h"

#include "support/file.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static _Noreturn void become(const char *program, const char *const *argv) {
    execv(program, (char *const *)argv); /* which does not write to them */
    dprintf(STDERR_FILENO, "%s: %s\n", program, strerror(errno));
    _exit(127);
}

static void drain(int from, Text *output) {
    char chunk[4096];
    for (ssize_t got; (got = read(from, chunk, sizeof chunk)) != 0;) {
        if (got < 0 && errno != EINTR)
            return;
        if (got > 0)
            text_append(output, chunk, (size_t)got);
    }
}

static int wait_for(pid_t child) {
    int status;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return 127;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int process_run(const char *const *argv, Text *output) {
    int ends[2];
    if (pipe(ends) != 0)
        return 127;
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        become(argv[0], argv);
    }
    close(ends[1]);
    if (child > 0)
        drain(ends[0], output);
    close(ends[0]);
    return child > 0 ? wait_for(child) : 127;
}

int process_pass(const char *program, const char *const *argv) {
    void (*before)(int) = signal(SIGINT, SIG_IGN);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGINT, before);
        become(program, argv);
    }
    int status = child > 0 ? wait_for(child) : 127;
    signal(SIGINT, before);
    return status;
}

static bool is_executable(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

const char *process_find(Arena *arena, const char *name) {
    if (strchr(name, '/'))
        return is_executable(name) ? name : NULL;
    const char *folders = getenv("PATH");
    while (folders && *folders) {
        size_t length = strcspn(folders, ":");
        const char *path = arena_printf(arena, "%.*s/%s", (int)length, folders, name);
        if (length && is_executable(path))
            return path;
        folders += length + (folders[length] == ':');
    }
    return NULL;
}

const char *process_text(Arena *arena, const char *const *argv) {
    Text text = TEXT(arena);
    for (int i = 0; argv[i]; i++) {
        bool plain = argv[i][0] && argv[i][strcspn(argv[i], " \t\n'\"\\$*?;&|<>()")] == '\0';
        text_printf(&text, plain ? "%s%s" : "%s'%s'", i ? " " : "", argv[i]);
    }
    return text_string(&text);
}
