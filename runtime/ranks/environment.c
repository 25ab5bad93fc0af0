#include "ranks/environment.h"

#include "base/hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Launcher {
    const char *name, *rank, *count;
    const char *also;   /* without it, the others may mean something else; NULL: they do not */
    const char *job[2]; /* what tells its runs from each other; NULL: nothing does */
} Launcher;

/* SLURM_NTASKS is there in a script of sbatch too, which is one process. */
static const Launcher launchers[] = {
    {"torchrun", "RANK", "WORLD_SIZE", "MASTER_ADDR", {"TORCHELASTIC_RUN_ID", NULL}},
    {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NODELIST", {"SLURM_JOB_ID", "SLURM_STEP_ID"}},
    {"mpiexec", "PMI_RANK", "PMI_SIZE", NULL, {"PMI_JOBID", NULL}},
};

/* A whole number from 0 on; -1: not set, or something else. */
static int number_in(const char *name) {
    const char *text = getenv(name);
    char *end;
    if (!text || *text < '0' || *text > '9')
        return -1;
    const long number = strtol(text, &end, 10);
    return *end || number > INT32_MAX ? -1 : (int)number;
}

static const Launcher *find_launcher(void) {
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        const Launcher *l = &launchers[i];
        const int rank = number_in(l->rank), count = number_in(l->count);
        if (count > 1 && rank >= 0 && rank < count && (!l->also || getenv(l->also)))
            return l;
    }
    return NULL;
}

/* Two of what a launcher says, of more than one process, and not all of it, or a rank that there is not: each would train alone. NULL:
 * none does. */
static const Launcher *find_half(void) {
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        const Launcher *l = &launchers[i];
        const int said = (getenv(l->rank) != NULL) + (getenv(l->count) != NULL) + (l->also && getenv(l->also));
        if (said > 1 && number_in(l->count) != 1)
            return l;
    }
    return NULL;
}

bool mtc_environment_started(int *rank) {
    const Launcher *launcher = find_launcher();
    *rank = launcher ? number_in(launcher->rank) : 0;
    return launcher || find_half();
}

/* ---- what is missing ---- */

static char environment_fault[768];

static const char *said(const char *name) {
    const char *text = getenv(name);
    return text ? text : "nothing";
}

static const char *half_is_said(const Launcher *half) {
    snprintf(environment_fault, sizeof environment_fault,
             "%s says %.40s, %s %.40s%s%s%s%.80s: of several processes each has a %s of its own, from 0 to %s - 1%s%s; "
             "without %s a program trains alone",
             half->rank, said(half->rank), half->count, said(half->count), half->also ? ", " : "",
             half->also ? half->also : "", half->also ? " " : "", half->also ? said(half->also) : "", half->rank,
             half->count, half->also ? ", and all have " : "", half->also ? half->also : "", half->count);
    return environment_fault;
}

/* ---- where all meet ---- */

/* "node[03-05,9],other" begins with node03. */
static void first_host(const char *list, char *host, size_t size) {
    const size_t name = strcspn(list, "[,");
    const char *number = list[name] == '[' ? list + name + 1 : "";
    snprintf(host, size, "%.*s%.*s", (int)name, list, (int)strcspn(number, "-,]"), number);
}

/* MASTER_ADDR and MASTER_PORT; srun's, where it is not told, are the first host of the step, where its process 0 is, and a port made of the
 * job's number. SLURM_LAUNCH_NODE_IPADDR is where srun itself runs, which may be a machine that has no process. */
static bool find_meeting(MtcMeeting *meeting) {
    const char *address = getenv("MASTER_ADDR"), *given = getenv("MASTER_PORT"), *nodes = getenv("SLURM_STEP_NODELIST");
    const char *agent = getenv("TORCHELASTIC_USE_AGENT_STORE");
    const int job = number_in("SLURM_JOB_ID"), step = number_in("SLURM_STEP_ID");
    int port = given     ? number_in("MASTER_PORT")
               : job < 0 ? 0
                         : 20000 + (job % 10000 * 16 + (step < 0 ? 0 : step % 10000)) % 10000;
    if (address)
        snprintf(meeting->host, sizeof meeting->host, "%s", address);
    else if (nodes)
        first_host(nodes, meeting->host, sizeof meeting->host);
    if ((!address && !nodes) || port < 1 || port > 65534)
        return false;
    if (agent && strcmp(agent, "True") == 0)
        port++; /* torchrun itself listens at that one */
    snprintf(meeting->port, sizeof meeting->port, "%d", port);
    return true;
}

static uint64_t job_of(const Launcher *launcher) {
    MtcHash hash;
    bool any = false;
    mtc_hash_begin(&hash);
    for (int i = 0; i < 2; i++)
        if (launcher->job[i] && getenv(launcher->job[i])) {
            const char *text = getenv(launcher->job[i]);
            mtc_hash_add(&hash, text, strlen(text) + 1);
            any = true;
        }
    return any ? mtc_hash_end(&hash) : 0;
}

const char *mtc_environment_read(MtcMeeting *meeting) {
    const Launcher *launcher = find_launcher();
    memset(meeting, 0, sizeof *meeting);
    if (!launcher)
        return half_is_said(find_half());
    meeting->rank = number_in(launcher->rank);
    meeting->count = number_in(launcher->count);
    meeting->job = job_of(launcher);
    if (find_meeting(meeting))
        return NULL;
    snprintf(environment_fault, sizeof environment_fault,
             "started by %s as rank %d of %d: MASTER_ADDR and MASTER_PORT must say where rank 0 is, a host and a port "
             "that is free there",
             launcher->name, meeting->rank, meeting->count);
    return environment_fault;
}
