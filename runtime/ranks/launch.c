/* Processes that this one starts: each goes on as a rank of its own, which finds the others by the environment that torchrun would
 * give it; this one waits for all of them. */
#include "ranks/launch.h"

#include "ranks/ranks.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A port of this machine alone that nobody has now; 0: there is none. */
static int launch_port(void) {
    struct sockaddr_in at;
    socklen_t bytes = sizeof at;
    const int probe = socket(AF_INET, SOCK_STREAM, 0);
    memset(&at, 0, sizeof at);
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const bool found = probe >= 0 && bind(probe, (struct sockaddr *)&at, bytes) == 0 &&
                       getsockname(probe, (struct sockaddr *)&at, &bytes) == 0;
    if (probe >= 0)
        close(probe);
    return found ? ntohs(at.sin_port) : 0;
}

static void launch_say(const char *name, int number) {
    char text[16];
    snprintf(text, sizeof text, "%d", number);
    setenv(name, text, 1);
}

/* In the new process. It does not outlive the one that started it. */
static void launch_as_rank(int rank, int count, int port, pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(MTC_RANK_LOST);
    launch_say("RANK", rank);
    launch_say("WORLD_SIZE", count);
    launch_say("MASTER_PORT", port);
    setenv("MASTER_ADDR", "127.0.0.1", 1);
}

/* ---- waiting ---- */

static pid_t *launched;
static volatile sig_atomic_t launched_count;

static void launch_signal_all(int number) {
    for (int rank = 0; rank < launched_count; rank++)
        if (launched[rank] > 0)
            kill(launched[rank], number);
}

/* A terminal's Ctrl-C reaches all by itself, and what else comes, by this. */
static void launch_pass_on(void) {
    struct sigaction pass;
    memset(&pass, 0, sizeof pass);
    pass.sa_handler = launch_signal_all;
    sigaction(SIGTERM, &pass, NULL);
    signal(SIGINT, SIG_IGN);
}

static int launch_code(int status) {
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* The code of the first that failed; the others find that out by themselves, or are ended when they had the time for it. */
static int launch_wait(double grace) {
    const struct timespec moment = {0, 20000000};
    int left = launched_count, code = 0, status;
    double until = 0;
    while (left > 0) {
        const pid_t ended = waitpid(-1, &status, WNOHANG);
        if (ended < 0 && errno != EINTR)
            break;
        for (int rank = 0; ended > 0 && rank < launched_count; rank++)
            if (launched[rank] == ended) {
                launched[rank] = 0;
                left--;
                code = code ? code : launch_code(status);
                until = code && !until ? mtc_seconds() + grace : until;
            }
        if (until && mtc_seconds() > until)
            launch_signal_all(SIGKILL);
        if (ended <= 0)
            nanosleep(&moment, NULL);
    }
    return code;
}

/* ---- starting ---- */

static int launch_refused(MtcFault *fault, const char *why) {
    launch_signal_all(SIGKILL);
    return mtc_fail(fault, MTC_UNAVAILABLE, "cannot start processes: %s", why);
}

int mtc_ranks_launch(MtcFault *fault, int count, double timeout, bool *waited) {
    const int port = launch_port();
    const pid_t parent = getpid();
    *waited = true;
    if (!port)
        return launch_refused(fault, "no port of this machine is free");
    launched = (pid_t *)mtc_zeroed((size_t)count * sizeof *launched);
    fflush(NULL); /* what was printed is printed once */
    for (int rank = 0; rank < count; rank++) {
        const pid_t child = fork();
        if (child == 0) {
            launch_as_rank(rank, count, port, parent);
            free(launched);
            *waited = false;
            return 0;
        }
        if (child < 0)
            return launch_refused(fault, strerror(errno));
        launched[launched_count++] = child;
    }
    launch_pass_on();
    const int code = launch_wait(timeout + 2);
    free(launched);
    return code;
}
