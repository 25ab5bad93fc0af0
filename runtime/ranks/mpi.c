/* Open MPI, whose functions and handles are taken from its library when a program was started by mpirun: no program needs it to be
 * compiled or to run alone. Other libraries have other handles under the same names, and are not taken for it. */
#include "ranks/ranks.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>

typedef struct MpiFunctions {
    int (*init)(int *argc, char ***argv, int required, int *provided);
    int (*rank)(void *comm, int *rank);
    int (*size)(void *comm, int *size);
    int (*isend)(const void *from, int count, void *type, int to, int tag, void *comm, void **request);
    int (*irecv)(void *to, int count, void *type, int from, int tag, void *comm, void **request);
    int (*test)(void **request, int *done, void *status);
    int (*abort)(void *comm, int code);
    int (*finalize)(void);
    void *world, *byte;
} MpiFunctions;

static MpiFunctions mpi;

static bool mpi_started(int *rank) {
    const char *count = getenv("OMPI_COMM_WORLD_SIZE"), *own = getenv("OMPI_COMM_WORLD_RANK");
    *rank = own ? atoi(own) : 0;
    return own && count && atoi(count) > 1;
}

static void *mpi_symbol(void *library, const char *name, const char **missing) {
    void *symbol = dlsym(library, name);
    if (!symbol)
        *missing = name;
    return symbol;
}

#define TAKE(member, name) *(void **)&mpi.member = mpi_symbol(library, name, &missing)

static const char *mpi_load(void) {
    void *library = dlopen("libmpi.so.40", RTLD_NOW | RTLD_GLOBAL); /* its plugins look for its symbols */
    const char *missing = NULL;
    if (!library)
        return "libmpi.so.40 of Open MPI cannot be loaded; Debian has it in libopenmpi3";
    TAKE(init, "MPI_Init_thread");
    TAKE(rank, "MPI_Comm_rank");
    TAKE(size, "MPI_Comm_size");
    TAKE(isend, "MPI_Isend");
    TAKE(irecv, "MPI_Irecv");
    TAKE(test, "MPI_Test");
    TAKE(abort, "MPI_Abort");
    TAKE(finalize, "MPI_Finalize");
    TAKE(world, "ompi_mpi_comm_world");
    TAKE(byte, "ompi_mpi_byte");
    return missing;
}

/* Processes of one machine, and mpirun, have files of 4 MiB in memory. Where those cannot be, mpirun waits for its own lock as soon
 * as a process has called MPI_Init: nobody could end that. */
static bool mpi_files_fit(void) {
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= (5 << 20);
}

static const char *mpi_open(int *rank, int *count) {
    enum { FUNNELED = 1 }; /* one thread calls it */
    int provided;
    if (!mpi_files_fit())
        return "Open MPI needs files of 5 MiB, and this process may write smaller ones only; before mpirun: ulimit -f "
               "unlimited";
    const char *missing = mpi_load();
    if (missing)
        return missing;
    if (mpi.init(NULL, NULL, FUNNELED, &provided) || mpi.rank(mpi.world, rank) || mpi.size(mpi.world, count))
        return "MPI_Init_thread failed";
    return NULL;
}

static const size_t MPI_PIECE = (size_t)1 << 30; /* MPI counts with int */

static size_t mpi_piece(size_t bytes, size_t at) {
    return at >= bytes ? 0 : bytes - at < MPI_PIECE ? bytes - at : MPI_PIECE;
}

static MtcArrival mpi_complete(void **request, bool (*expired)(void)) {
    int done = 0;
    while (mpi.test(request, &done, NULL) == 0 && !done) {
        if (expired())
            return MTC_EXPIRED;
        sched_yield();
    }
    return done ? MTC_ARRIVED : MTC_CLOSED;
}

static MtcArrival mpi_exchange(int to, const void *send, size_t send_bytes, int from, void *receive,
                               size_t receive_bytes, bool (*expired)(void)) {
    MtcArrival arrival = MTC_ARRIVED;
    for (size_t at = 0; (at < send_bytes || at < receive_bytes) && !arrival; at += MPI_PIECE) {
        const size_t out = mpi_piece(send_bytes, at), in = mpi_piece(receive_bytes, at);
        void *sending = NULL, *receiving = NULL;
        if (in && mpi.irecv((char *)receive + at, (int)in, mpi.byte, from, 0, mpi.world, &receiving))
            return MTC_CLOSED;
        if (out && mpi.isend((const char *)send + at, (int)out, mpi.byte, to, 0, mpi.world, &sending))
            return MTC_CLOSED;
        if (in)
            arrival = mpi_complete(&receiving, expired);
        if (out && !arrival)
            arrival = mpi_complete(&sending, expired);
    }
    return arrival;
}

static void mpi_close(void) {
    mpi.finalize();
}

static void mpi_abort(int code) {
    mpi.abort(mpi.world, code);
}

const MtcTransport mtc_transport_mpi = {
    .name = "MPI",
    .started = mpi_started,
    .open = mpi_open,
    .exchange = mpi_exchange,
    .close = mpi_close,
    .abort = mpi_abort,
};
