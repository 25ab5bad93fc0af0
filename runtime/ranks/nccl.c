/* Functions of libnccl.so.2, which is loaded when a training asks for it: no program needs it to be compiled or to run otherwise. Its
 * types are pointers and numbers that its versions have had from the first on. */
#include "ranks/nccl.h"

#include "ranks/ranks.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

typedef struct NcclId {
    char bytes[128];
} NcclId;

enum { NCCL_UINT8 = 1, NCCL_SUCCESS = 0, NCCL_IN_PROGRESS = 7 };

static struct {
    int (*id)(NcclId *id);
    int (*init)(void **comm, int count, NcclId id, int rank);
    int (*send)(const void *from, size_t count, int type, int peer, void *comm, void *stream);
    int (*receive)(void *to, size_t count, int type, int peer, void *comm, void *stream);
    int (*begin)(void);
    int (*end)(void);
    int (*state)(void *comm, int *state);
    int (*abort)(void *comm);
    int (*destroy)(void *comm);
    const char *(*text)(int error);
    void *comm;
    bool lost;
    double gone; /* when the end of another rank's connection was first seen; 0: never */
} nccl;

/* ---- the library ---- */

static const char nccl_help[] =
    "it is libnccl2 of NVIDIA's packages, or the wheel nvidia-nccl-cu13; MTC_NCCL=FILE says where it lies, and --sums "
    "host needs none";

/* Wheels lie in folders of a Python that nobody may have started. */
static void *nccl_open_wheel(void) {
    static const char *const patterns[] = {"%s/lib/python3*/site-packages/nvidia/nccl/lib/libnccl.so.2",
                                           "%s/.local/lib/python3*/site-packages/nvidia/nccl/lib/libnccl.so.2"};
    const char *const roots[] = {getenv("VIRTUAL_ENV"), getenv("HOME")};
    void *library = NULL;
    for (int i = 0; i < 2 && !library; i++) {
        MtcText pattern = {NULL, 0, 0};
        glob_t found;
        if (!roots[i])
            continue;
        mtc_text_add(&pattern, patterns[i], roots[i]);
        if (glob(pattern.at, 0, NULL, &found) == 0) {
            for (size_t k = 0; k < found.gl_pathc && !library; k++)
                library = dlopen(found.gl_pathv[k], RTLD_NOW | RTLD_LOCAL);
            globfree(&found);
        }
        free(pattern.at);
    }
    return library;
}

static void *nccl_open(void) {
    const char *file = getenv("MTC_NCCL");
    void *library = dlopen(file ? file : "libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!library && !file)
        library = dlopen("/usr/local/cuda/lib64/libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    return library || file ? library : nccl_open_wheel();
}

static int nccl_load(MtcFault *fault) {
    const struct {
        const char *name;
        void **function;
    } taken[] = {{"ncclGetUniqueId", (void **)&nccl.id},
                 {"ncclCommInitRank", (void **)&nccl.init},
                 {"ncclSend", (void **)&nccl.send},
                 {"ncclRecv", (void **)&nccl.receive},
                 {"ncclGroupStart", (void **)&nccl.begin},
                 {"ncclGroupEnd", (void **)&nccl.end},
                 {"ncclCommGetAsyncError", (void **)&nccl.state},
                 {"ncclCommAbort", (void **)&nccl.abort},
                 {"ncclCommDestroy", (void **)&nccl.destroy},
                 {"ncclGetErrorString", (void **)&nccl.text}};
    void *library = nccl_open();
    if (!library) {
        mtc_fail(fault, MTC_UNAVAILABLE, "NCCL cannot be loaded: %s", dlerror());
        mtc_note(fault, "%s", nccl_help);
        return fault->code;
    }
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        if (!(*taken[i].function = dlsym(library, taken[i].name)))
            return mtc_fail(fault, MTC_UNAVAILABLE, "NCCL has no %s: it is older than 2.7", taken[i].name);
    return 0;
}

static int nccl_fault(MtcFault *fault, int error, const char *what) {
    if (error == NCCL_SUCCESS)
        return 0;
    mtc_fail(fault, MTC_RANK_LOST, "rank %d of %d: NCCL cannot %s: %s", mtc_rank(), mtc_rank_count(), what,
             nccl.text(error));
    mtc_note(fault, "NCCL_DEBUG=WARN says more; NCCL_SOCKET_IFNAME chooses the network; each rank needs a GPU of its "
                    "own; --sums host goes without NCCL");
    return fault->code;
}

void mtc_nccl_leave(bool failed) {
    if (nccl.comm)
        (failed ? nccl.abort : nccl.destroy)(nccl.comm);
    nccl.comm = NULL;
    nccl.lost = false;
    nccl.gone = 0;
}

bool mtc_nccl_lost(void) {
    return nccl.lost;
}

static int nccl_give_up(int code) {
    nccl.lost = code == MTC_RANK_LOST;
    return code;
}

/* ---- joining ---- */

/* Nobody waits in NCCL for one that does not come. */
int mtc_nccl_join(MtcFault *fault) {
    NcclId id;
    memset(&id, 0, sizeof id);
    int code = nccl_load(fault);
    if (!code && mtc_rank() == 0)
        code = nccl_fault(fault, nccl.id(&id), "begin");
    code = mtc_ranks_ready(fault, code);
    code = code ? code : mtc_ranks_share(fault, &id, sizeof id, true);
    return code ? code : nccl_fault(fault, nccl.init(&nccl.comm, mtc_rank_count(), id, mtc_rank()), "join the ranks");
}

int mtc_nccl_found(MtcFault *fault, bool *all) {
    MtcFault missing;
    return mtc_ranks_all(fault, nccl_load(&missing) == 0, all);
}

bool mtc_nccl_joined(void) {
    return nccl.comm != NULL;
}

int mtc_nccl_exchange(MtcFault *fault, int to, const void *send, size_t send_bytes, int from, void *receive,
                      size_t receive_bytes) {
    int error = nccl.begin();
    if (!error && send_bytes)
        error = nccl.send(send, send_bytes, NCCL_UINT8, to, nccl.comm, NULL);
    if (!error && receive_bytes)
        error = nccl.receive(receive, receive_bytes, NCCL_UINT8, from, nccl.comm, NULL);
    const int ended = nccl.end();
    const int code = nccl_fault(fault, error ? error : ended, "send and receive");
    return code ? nccl_give_up(code) : 0;
}

/* Who is done may close before the last sum has arrived here, which takes no time; what a killed rank owes never comes. */
static int nccl_look_for_others(MtcFault *fault, double seconds) {
    const double moment = 0.1, patience = 0.5;
    MtcFault lost;
    const int code = seconds < moment ? 0 : mtc_ranks_look(&lost);
    nccl.gone = !code ? 0 : nccl.gone > 0 ? nccl.gone : mtc_seconds();
    if (!code || mtc_seconds() - nccl.gone < patience)
        return 0;
    *fault = lost;
    return nccl_give_up(code);
}

int mtc_nccl_look(MtcFault *fault, double seconds) {
    int state = NCCL_SUCCESS;
    const int error = nccl.state(nccl.comm, &state), worst = error ? error : state == NCCL_IN_PROGRESS ? 0 : state;
    if (worst)
        return nccl_give_up(nccl_fault(fault, worst, "go on"));
    if (seconds < mtc_ranks_patience())
        return nccl_look_for_others(fault, seconds);
    mtc_fail(fault, MTC_RANK_LOST, "rank %d of %d waits for the others' sums: nothing came by NCCL for %.3g s",
             mtc_rank(), mtc_rank_count(), seconds);
    mtc_note(fault, "another rank hangs, was stopped, or has ended; --rank-timeout SECONDS waits longer, --resume goes "
                    "on from the last checkpoint");
    return nccl_give_up(fault->code);
}
