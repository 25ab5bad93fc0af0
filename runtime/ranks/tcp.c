/* Sockets, where a program was started by something that says which process of how many it is, and where the first one is: torchrun,
 * srun, or whoever sets the same environment. No library is needed.
 *
 * Rank 0 listens where all know, MASTER_ADDR and MASTER_PORT; the others tell it where each of them listens, get the list, and
 * connect in pairs. Then nobody listens any more. What a pair sends has a head, which says how long it is, or that the sender ends
 * all. */
#include "ranks/environment.h"
#include "ranks/ranks.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

typedef struct TcpHead {
    uint32_t word, from; /* rank */
    uint64_t bytes;
} TcpHead;

/* Where a rank listens. */
typedef struct TcpPlace {
    uint32_t bytes;
    struct sockaddr_storage at;
} TcpPlace;

/* A rank's first word to another one. */
typedef struct TcpHello {
    uint32_t word, rank;
    uint64_t count, job;
} TcpHello;

enum {
    TCP_HELLO = 0x4d544331,
    TCP_DATA,
    TCP_END,
    TCP_WELCOME,
    TCP_REFUSED
}; /* "MTC1"; the last two: rank 0's answers */

static __thread struct {
    int rank, count;
    uint64_t job; /* told from others by it */
    int *peer;    /* sockets; -1: none */
    char fault[768];
} tcp;

/* ---- sockets ---- */

static void tcp_pause(void) {
    const struct timespec moment = {0, 50000000};
    nanosleep(&moment, NULL);
}

/* A machine that is gone says nothing, and nobody would notice while all wait patiently: the system asks it. */
static void tcp_keep_asking(int socket) {
    const int yes = 1, idle = 20, apart = 5, times = 4; /* seconds */
    setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
    setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &apart, sizeof apart);
    setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof times);
}

static int tcp_ready(int socket) {
    const int yes = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    tcp_keep_asking(socket);
    fcntl(socket, F_SETFD, FD_CLOEXEC);
    fcntl(socket, F_SETFL, O_NONBLOCK);
    return socket;
}

static int tcp_listen(const struct sockaddr *at, socklen_t bytes) {
    const int yes = 1, listener = socket(at->sa_family, SOCK_STREAM, 0);
    if (listener < 0)
        return -1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(listener, at, bytes) == 0 && listen(listener, tcp.count) == 0)
        return tcp_ready(listener);
    close(listener);
    return -1;
}

/* Who looks for a port of its own machine may be given that one, and answers itself. */
static bool tcp_is_itself(int socket) {
    struct sockaddr_storage own, other;
    socklen_t own_bytes = sizeof own, other_bytes = sizeof other;
    return getsockname(socket, (struct sockaddr *)&own, &own_bytes) == 0 &&
           getpeername(socket, (struct sockaddr *)&other, &other_bytes) == 0 && own_bytes == other_bytes &&
           memcmp(&own, &other, own_bytes) == 0;
}

/* Waits for a connection that has begun, so long: who does not answer is not waited for as long as the system would. */
static bool tcp_connects(int socket) {
    enum { PATIENCE_MS = 2000 };
    struct pollfd wait = {socket, POLLOUT, 0};
    int error = errno;
    socklen_t bytes = sizeof error;
    return error == EINPROGRESS && poll(&wait, 1, PATIENCE_MS) > 0 &&
           getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &bytes) == 0 && !error;
}

/* -1 where nobody listens (yet). */
static int tcp_connect(const struct sockaddr *to, socklen_t bytes) {
    const struct linger at_once = {1, 0};
    const int other = socket(to->sa_family, SOCK_STREAM, 0);
    if (other < 0)
        return -1;
    tcp_ready(other);
    if (connect(other, to, bytes) == 0 || tcp_connects(other)) {
        if (!tcp_is_itself(other))
            return other;
        setsockopt(other, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once); /* rank 0 may need the port now */
    }
    close(other);
    return -1;
}

/* All of it, until `until`. */
static bool tcp_move(int socket, void *data, size_t bytes, bool out, double until) {
    char *at = (char *)data;
    while (bytes) {
        struct pollfd wait = {socket, (short)(out ? POLLOUT : POLLIN), 0};
        if (mtc_seconds() > until)
            return false;
        if (poll(&wait, 1, 100) <= 0)
            continue;
        const ssize_t moved = out ? send(socket, at, bytes, MSG_NOSIGNAL) : recv(socket, at, bytes, 0);
        if (moved == 0 || (moved < 0 && errno != EAGAIN && errno != EINTR))
            return false;
        at += moved > 0 ? moved : 0;
        bytes -= moved > 0 ? (size_t)moved : 0;
    }
    return true;
}

static bool tcp_say_hello(int socket, double until) {
    TcpHello hello = {TCP_HELLO, (uint32_t)tcp.rank, (uint64_t)tcp.count, tcp.job};
    return tcp_move(socket, &hello, sizeof hello, true, until);
}

typedef enum TcpRefusal { TCP_TAKEN, TCP_OTHER_COUNT, TCP_OTHER_JOB } TcpRefusal;

/* Is it a rank that is waited for? If not, rank 0 tells it why; others are asked by ranks only that rank 0 knows. */
static bool tcp_answer(int socket, const TcpHello *hello, double until) {
    const bool same = hello->count == (uint64_t)tcp.count && hello->job == tcp.job;
    const bool known =
        same && hello->rank > (uint32_t)tcp.rank && hello->rank < (uint32_t)tcp.count && tcp.peer[hello->rank] < 0;
    const uint32_t word = known ? TCP_WELCOME : TCP_REFUSED;
    const uint32_t why = same ? TCP_TAKEN : hello->job == tcp.job ? TCP_OTHER_COUNT : TCP_OTHER_JOB;
    TcpHead answer = {word, why, (uint64_t)tcp.count};
    return (tcp.rank || tcp_move(socket, &answer, sizeof answer, true, until)) && known;
}

/* Someone who is no rank is not listened to. */
static bool tcp_accept(int listener, double until) {
    enum { PATIENCE = 2 };
    struct pollfd wait = {listener, POLLIN, 0};
    TcpHello hello;
    const int other = poll(&wait, 1, 100) > 0 ? accept(listener, NULL, NULL) : -1;
    if (other < 0)
        return false;
    const double now = mtc_seconds(), soon = now + PATIENCE < until ? now + PATIENCE : until;
    const bool known = tcp_move(tcp_ready(other), &hello, sizeof hello, false, soon) && hello.word == TCP_HELLO &&
                       tcp_answer(other, &hello, soon);
    if (known)
        tcp.peer[hello.rank] = other;
    else
        close(other);
    return known;
}

static bool tcp_accept_from(int listener, int first, double until) {
    int missing = 0;
    for (int other = first; other < tcp.count; other++)
        missing += tcp.peer[other] < 0;
    while (missing && mtc_seconds() < until)
        missing -= tcp_accept(listener, until);
    return !missing;
}

/* ---- joining ---- */

/* Who has come, where not all have. */
static const char *tcp_missing(const char *host, const char *port, int seconds) {
    MtcText who = {NULL, 0, 0};
    for (int other = 0; other < tcp.count; other++)
        if (other != tcp.rank && tcp.peer[other] < 0 && (!tcp.rank || tcp.peer[0] >= 0))
            mtc_text_add(&who, "%s%d", who.at ? ", " : "", other);
    snprintf(tcp.fault, sizeof tcp.fault,
             "rank %d of %d waited %d s at %.255s, port %.15s, for rank %.80s; MASTER_ADDR and MASTER_PORT are the "
             "same for all, "
             "and a host that each reaches",
             tcp.rank, tcp.count, seconds, host, port, who.at ? who.at : "0");
    free(who.at);
    return tcp.fault;
}

/* Before the time is over: a connection ended, or none could be made. */
static const char *tcp_broken_off(const char *host, const char *port) {
    snprintf(tcp.fault, sizeof tcp.fault,
             "rank %d of %d lost another rank, or cannot reach it, while all met at %.255s, port %.15s; each rank must "
             "reach each other one at the address by which that one reaches rank 0",
             tcp.rank, tcp.count, host, port);
    return tcp.fault;
}

static const char *tcp_unreachable(const char *what, const char *host, const char *port, const char *why) {
    snprintf(tcp.fault, sizeof tcp.fault, "rank %d cannot %s %.255s, port %.15s: %.200s", tcp.rank, what, host, port,
             why);
    return tcp.fault;
}

/* What rank 0 said in place of a welcome. */
static const char *tcp_refused(const TcpHead *answer, const char *host, const char *port) {
    char why[80] = "something that is no program of mtc";
    if (answer->word == TCP_REFUSED && answer->from == TCP_TAKEN)
        snprintf(why, sizeof why, "rank 0 of processes that have another rank %d already", tcp.rank);
    else if (answer->word == TCP_REFUSED && answer->from == TCP_OTHER_COUNT)
        snprintf(why, sizeof why, "rank 0 of %llu other processes", (unsigned long long)answer->bytes);
    else if (answer->word == TCP_REFUSED)
        snprintf(why, sizeof why, "rank 0 of another job");
    snprintf(
        tcp.fault, sizeof tcp.fault,
        "rank %d of %d met, at %.255s, port %.15s, %s: two trainings at a time need two ports; MASTER_PORT chooses one",
        tcp.rank, tcp.count, host, port, why);
    return tcp.fault;
}

/* ---- addresses ---- */

static bool tcp_is_of_this_machine(const struct sockaddr_storage *at) {
    const struct sockaddr_in *four = (const struct sockaddr_in *)(const void *)at;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)at;
    return at->ss_family == AF_INET ? ntohl(four->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET
                                    : memcmp(&six->sin6_addr, &in6addr_loopback, sizeof six->sin6_addr) == 0;
}

static void tcp_without_port(TcpPlace *place) {
    if (place->at.ss_family == AF_INET)
        ((struct sockaddr_in *)(void *)&place->at)->sin_port = 0;
    else
        ((struct sockaddr_in6 *)(void *)&place->at)->sin6_port = 0;
}

/* Of one end of a connection. */
static TcpPlace tcp_end_of(int socket, int (*end)(int, struct sockaddr *, socklen_t *)) {
    TcpPlace place;
    memset(&place, 0, sizeof place);
    socklen_t bytes = sizeof place.at;
    place.bytes = end(socket, (struct sockaddr *)&place.at, &bytes) == 0 ? bytes : 0;
    tcp_without_port(&place);
    return place;
}

/* Where rank 0 listens. An address is what it says, unless it is another machine's, which leads here. A name may be known elsewhere by
 * another address than here, where Debian has 127.0.1.1 for it. */
static int tcp_listen_for_all(const struct addrinfo *found, const char *host) {
    struct sockaddr_storage own = {0};
    unsigned char number[sizeof(struct in6_addr)];
    struct sockaddr_in *four = (struct sockaddr_in *)(void *)&own;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)(void *)&own;
    memcpy(&own, found->ai_addr, found->ai_addrlen);
    const bool itself =
        found->ai_family == AF_INET ? four->sin_addr.s_addr == htonl(INADDR_LOOPBACK) : tcp_is_of_this_machine(&own);
    const int listener =
        itself || inet_pton(found->ai_family, host, number) == 1 ? tcp_listen(found->ai_addr, found->ai_addrlen) : -1;
    if (listener >= 0 || itself)
        return listener;
    if (found->ai_family == AF_INET)
        four->sin_addr.s_addr = htonl(INADDR_ANY);
    else
        six->sin6_addr = in6addr_any;
    return tcp_listen((const struct sockaddr *)&own, found->ai_addrlen);
}

/* Each listens by the address that rank 0 sees it at; those of rank 0's machine, which may have come by 127.0.0.1, by the one at which others
 * see rank 0, if there are others. */
static void tcp_deal_addresses(TcpPlace *place) {
    TcpPlace own = {0};
    for (int other = 1; other < tcp.count; other++) {
        place[other] = tcp_end_of(tcp.peer[other], getpeername);
        if (!own.bytes && !tcp_is_of_this_machine(&place[other].at))
            own = tcp_end_of(tcp.peer[other], getsockname);
    }
    for (int other = 1; other < tcp.count; other++)
        if (own.bytes && tcp_is_of_this_machine(&place[other].at))
            place[other] = own;
}

/* Rank 0 hears from all, says where each is to listen, hears at which port, and tells all. */
static bool tcp_gather_places(int listener, TcpPlace *place, double until) {
    bool all = tcp_accept_from(listener, 1, until);
    close(listener);
    if (all)
        tcp_deal_addresses(place);
    for (int other = 1; other < tcp.count && all; other++)
        all = tcp_move(tcp.peer[other], &place[other], sizeof *place, true, until);
    for (int other = 1; other < tcp.count && all; other++)
        all = tcp_move(tcp.peer[other], &place[other], sizeof *place, false, until);
    for (int other = 1; other < tcp.count && all; other++)
        all = tcp_move(tcp.peer[other], place, (size_t)tcp.count * sizeof *place, true, until);
    return all;
}

/* Where rank 0 says; else, behind a translation of addresses, by the one that leads there. The last rank is asked by nobody. */
static bool tcp_listen_beside(TcpPlace *own, int *listener) {
    socklen_t bytes = sizeof own->at;
    *listener = -1;
    if (tcp.rank + 1 == tcp.count)
        return true;
    *listener = tcp_listen((const struct sockaddr *)&own->at, own->bytes);
    if (*listener < 0) {
        *own = tcp_end_of(tcp.peer[0], getsockname);
        *listener = tcp_listen((const struct sockaddr *)&own->at, own->bytes);
    }
    return *listener >= 0 && getsockname(*listener, (struct sockaddr *)&own->at, &bytes) == 0;
}

/* By the first address that leads there. */
static bool tcp_reach_first(const struct addrinfo *found, double until) {
    for (;;) {
        for (const struct addrinfo *at = found; at; at = at->ai_next)
            if ((tcp.peer[0] = tcp_connect(at->ai_addr, at->ai_addrlen)) >= 0)
                return true;
        if (mtc_seconds() > until)
            return false;
        tcp_pause();
    }
}

static bool tcp_connect_others(int listener, const TcpPlace *place, double until) {
    bool good = true;
    for (int other = 1; other < tcp.rank && good; other++) {
        tcp.peer[other] = tcp_connect((const struct sockaddr *)&place[other].at, place[other].bytes);
        good = tcp.peer[other] >= 0 && tcp_say_hello(tcp.peer[other], until);
    }
    good = good && tcp_accept_from(listener, tcp.rank + 1, until);
    if (listener >= 0)
        close(listener);
    return good;
}

/* `answer`: rank 0's, where it came. */
static bool tcp_find_places(const struct addrinfo *found, TcpPlace *place, TcpHead *answer, double until) {
    TcpPlace own;
    int listener;
    answer->word = TCP_WELCOME;
    if (!tcp_reach_first(found, until) || !tcp_say_hello(tcp.peer[0], until))
        return false;
    TcpHead heard;
    if (!tcp_move(tcp.peer[0], &heard, sizeof heard, false, until))
        return false;
    *answer = heard;
    return heard.word == TCP_WELCOME && tcp_move(tcp.peer[0], &own, sizeof own, false, until) &&
           tcp_listen_beside(&own, &listener) && tcp_move(tcp.peer[0], &own, sizeof own, true, until) &&
           tcp_move(tcp.peer[0], place, (size_t)tcp.count * sizeof *place, false, until) &&
           tcp_connect_others(listener, place, until);
}

static const char *tcp_meet(const char *host, const char *port) {
    enum { JOIN_SECONDS = 60 }; /* processes of a cluster begin at different times */
    struct addrinfo wanted, *found = NULL;
    TcpHead answer = {TCP_WELCOME, 0, 0};
    memset(&wanted, 0, sizeof wanted);
    wanted.ai_socktype = SOCK_STREAM;
    const int error = getaddrinfo(host, port, &wanted, &found);
    if (error)
        return tcp_unreachable("find", host, port, gai_strerror(error));
    const int listener = tcp.rank ? -1 : tcp_listen_for_all(found, host), refused = errno;
    TcpPlace *place = (TcpPlace *)mtc_zeroed((size_t)tcp.count * sizeof *place);
    const double until = mtc_seconds() + JOIN_SECONDS;
    const bool all = tcp.rank ? tcp_find_places(found, place, &answer, until)
                              : listener >= 0 && tcp_gather_places(listener, place, until);
    freeaddrinfo(found);
    free(place);
    if (!tcp.rank && listener < 0)
        return tcp_unreachable("listen at", host, port, strerror(refused));
    if (all)
        return NULL;
    return answer.word != TCP_WELCOME ? tcp_refused(&answer, host, port)
           : mtc_seconds() < until    ? tcp_broken_off(host, port)
                                      : tcp_missing(host, port, JOIN_SECONDS);
}

static void tcp_begin(int rank, int count, uint64_t job) {
    tcp.rank = rank;
    tcp.count = count;
    tcp.job = job;
    tcp.peer = (int *)mtc_zeroed((size_t)count * sizeof *tcp.peer);
    for (int other = 0; other < count; other++)
        tcp.peer[other] = -1;
}

void mtc_sockets_take(int rank, int count, const int *socket) {
    tcp_begin(rank, count, 0);
    for (int other = 0; other < count; other++)
        if (other != rank)
            tcp.peer[other] = tcp_ready(socket[other]);
}

static const char *tcp_open(int *rank, int *count) {
    static MtcMeeting meeting;
    const char *fault = mtc_environment_read(&meeting);
    if (fault)
        return fault;
    tcp_begin(*rank = meeting.rank, meeting.count, meeting.job);
    *count = tcp.count;
    return tcp_meet(meeting.host, meeting.port);
}

/* ---- sending and receiving ---- */

/* Of a head and what follows it. */
typedef struct TcpTransfer {
    int socket;
    TcpHead head;
    char *data;
    size_t bytes, done; /* done: with the head */
} TcpTransfer;

static TcpTransfer tcp_transfer(int other, const void *data, size_t bytes) {
    return (TcpTransfer){tcp.peer[other], {TCP_DATA, (uint32_t)tcp.rank, bytes}, (char *)data, bytes, 0};
}

static bool tcp_unfinished(const TcpTransfer *t) {
    return t->bytes && t->done < sizeof t->head + t->bytes;
}

/* As much as goes. */
static MtcArrival tcp_advance(TcpTransfer *t, bool out) {
    while (tcp_unfinished(t)) {
        const bool heading = t->done < sizeof t->head;
        char *at = heading ? (char *)&t->head + t->done : t->data + (t->done - sizeof t->head);
        const size_t left = heading ? sizeof t->head - t->done : sizeof t->head + t->bytes - t->done;
        const ssize_t moved = out ? send(t->socket, at, left, MSG_NOSIGNAL) : recv(t->socket, at, left, 0);
        if (moved < 0 && (errno == EAGAIN || errno == EINTR))
            return MTC_ARRIVED;
        if (moved <= 0)
            return MTC_CLOSED;
        t->done += (size_t)moved;
        if (!out && t->done == sizeof t->head && (t->head.word != TCP_DATA || t->head.bytes != t->bytes))
            return t->head.word == TCP_END ? MTC_ENDED : MTC_CLOSED;
    }
    return MTC_ARRIVED;
}

/* Behind the last of its words, who ends all says so. */
static bool tcp_says_end(int socket, TcpHead *head) {
    return socket >= 0 && recv(socket, head, sizeof *head, MSG_PEEK | MSG_DONTWAIT) == (ssize_t)sizeof *head &&
           head->word == TCP_END;
}

static void tcp_say_end(int waited_for) {
    TcpHead end = {TCP_END, (uint32_t)tcp.rank, (uint64_t)waited_for};
    for (int other = 0; tcp.peer && other < tcp.count; other++)
        if (tcp.peer[other] >= 0)
            send(tcp.peer[other], &end, sizeof end, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Where one hangs, others wait for each other as long as for it. Who is waited for, and says that it gives up too, is not the one that
 * hangs, and knows better. */
static MtcArrival tcp_give_up(int other) {
    const double until = mtc_seconds() + 1;
    TcpHead head;
    tcp_say_end(other);
    for (; mtc_seconds() < until; tcp_pause())
        if (tcp_says_end(tcp.peer[other], &head))
            return head.bytes == (uint64_t)tcp.rank && tcp.rank < other ? MTC_EXPIRED : MTC_ENDED;
    return MTC_EXPIRED;
}

static MtcArrival tcp_exchange(int to, const void *from_here, size_t send_bytes, int from, void *receive,
                               size_t receive_bytes, bool (*expired)(void)) {
    TcpTransfer out = tcp_transfer(to, from_here, send_bytes), in = tcp_transfer(from, receive, receive_bytes);
    MtcArrival arrival = MTC_ARRIVED;
    for (;;) {
        MtcArrival sent = tcp_advance(&out, true);
        arrival = tcp_advance(&in, false);
        arrival = arrival ? arrival : sent;
        if (arrival || (!tcp_unfinished(&out) && !tcp_unfinished(&in)))
            break;
        if (expired())
            return tcp_give_up(tcp_unfinished(&in) ? from : to);
        struct pollfd wait[2] = {{tcp_unfinished(&out) ? out.socket : -1, POLLOUT, 0},
                                 {tcp_unfinished(&in) ? in.socket : -1, POLLIN, 0}};
        poll(wait, 2, 100);
    }
    TcpHead end;
    return arrival == MTC_CLOSED && tcp_says_end(tcp.peer[receive_bytes ? from : to], &end) ? MTC_ENDED : arrival;
}

/* ---- the end ---- */

static bool tcp_ended(void) {
    TcpHead end;
    for (int other = 0; tcp.peer && other < tcp.count; other++)
        if (tcp_says_end(tcp.peer[other], &end))
            return true;
    return false;
}

/* Behind the words that it sent. */
static bool tcp_is_closed(int socket) {
    char word;
    const ssize_t got = socket >= 0 ? recv(socket, &word, 1, MSG_PEEK | MSG_DONTWAIT) : 1;
    return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

static int tcp_gone(void) {
    TcpHead end;
    for (int other = 0; tcp.peer && other < tcp.count; other++)
        if (tcp_is_closed(tcp.peer[other]) || tcp_says_end(tcp.peer[other], &end))
            return other;
    return -1;
}

static void tcp_close(void) {
    for (int other = 0; tcp.peer && other < tcp.count; other++)
        if (tcp.peer[other] >= 0)
            close(tcp.peer[other]);
    free(tcp.peer);
    tcp.peer = NULL;
}

/* Until the other one has closed: what it has not read yet would be lost with the connection. */
static void tcp_drain(int socket, double until) {
    char rest[4096];
    while (mtc_seconds() < until) {
        struct pollfd wait = {socket, POLLIN, 0};
        const ssize_t got = poll(&wait, 1, 100) > 0 ? recv(socket, rest, sizeof rest, 0) : 1;
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
            return;
    }
}

static void tcp_abort(int code) {
    (void)code; /* each ends with its own */
    const double until = mtc_seconds() + 1;
    tcp_say_end(tcp.count);
    for (int other = 0; tcp.peer && other < tcp.count; other++)
        if (tcp.peer[other] >= 0)
            shutdown(tcp.peer[other], SHUT_WR);
    for (int other = 0; tcp.peer && other < tcp.count; other++)
        if (tcp.peer[other] >= 0)
            tcp_drain(tcp.peer[other], until);
}

const MtcTransport mtc_transport_tcp = {
    .name = "TCP",
    .started = mtc_environment_started,
    .open = tcp_open,
    .exchange = tcp_exchange,
    .ended = tcp_ended,
    .gone = tcp_gone,
    .close = tcp_close,
    .abort = tcp_abort,
};
