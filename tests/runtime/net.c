/* A library of the prediction alone, called as no caller should, and by threads; under sanitizers.   net WEIGHTS */
#include "embed/mtc_net.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXAMPLES = 21, IMAGE = 2 * 6 * 6, SCORES = 5, THREADS = 4, TIMES = 50 };

#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            printf("%d: %s: %s\n", __LINE__, #condition, mtc_net_error());                                             \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static float image[EXAMPLES * IMAGE], expected[EXAMPLES * SCORES];
static unsigned char kind[EXAMPLES];
static const void *const inputs[] = {image, kind};

static void check_faults(MtcNet *net) {
    float out[EXAMPLES * SCORES];
    const void *wrong[] = {image, NULL}, *crooked[] = {(const char *)image + 1, kind};
    MtcNet *none = net;
    EXPECT(mtc_net_open("/none/such", &none) != 0 && !none && strstr(mtc_net_error(), "/none/such"));
    EXPECT(mtc_net_open(NULL, &none) != 0 && strstr(mtc_net_error(), "carries no weights"));
    EXPECT(mtc_net_open("/none/such", NULL) != 0 && mtc_net_share(NULL, &none) != 0 && mtc_net_share(net, NULL) != 0);
    EXPECT(mtc_net_run(NULL, 1, inputs, out) != 0 && strstr(mtc_net_error(), "NULL"));
    EXPECT(mtc_net_run(net, 1, NULL, out) != 0 && mtc_net_run(net, 1, inputs, NULL) != 0);
    EXPECT(mtc_net_run(net, 1, wrong, out) != 0 && strstr(mtc_net_error(), "input 'kind' is NULL"));
    EXPECT(mtc_net_run(net, 1, crooked, out) != 0 && strstr(mtc_net_error(), "input 'image' is at"));
    EXPECT(mtc_net_run(net, -1, inputs, out) != 0 && strstr(mtc_net_error(), "-1 examples"));
    kind[3] = 7;
    EXPECT(mtc_net_run(net, EXAMPLES, inputs, out) != 0 &&
           strstr(mtc_net_error(), "input 'kind', example 3: 7 is none of the classes 0 to 2"));
    kind[3] = 0;
    EXPECT(mtc_net_run(net, 0, inputs, out) == 0 && *mtc_net_error() == 0);
    EXPECT(!mtc_net_input(net, -1) && !mtc_net_input(net, 2) && !mtc_net_input(NULL, 0) && !mtc_net_output(NULL));
    EXPECT(mtc_net_inputs(NULL) == 0 && !mtc_net_class(net, 9, 0) && !mtc_net_class(net, -1, 99) &&
           !mtc_net_class(NULL, 0, 0));
    mtc_net_close(NULL);
}

/* ---- each thread with a net of its own ---- */

static void *run_own(void *net) {
    float out[EXAMPLES * SCORES];
    for (int i = 0; i < TIMES; i++) {
        memset(out, 0, sizeof out);
        EXPECT(mtc_net_run(net, EXAMPLES, inputs, out) == 0 && memcmp(out, expected, sizeof out) == 0);
    }
    mtc_net_close(net);
    return NULL;
}

static void check_threads(MtcNet *net) {
    pthread_t thread[THREADS];
    for (int i = 0; i < THREADS; i++) {
        MtcNet *own;
        EXPECT(mtc_net_share(net, &own) == 0);
        EXPECT(pthread_create(&thread[i], NULL, run_own, own) == 0);
    }
    mtc_net_close(net); /* the weights stay for the others */
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
}

/* ---- all with one net: each call is right, or refused ---- */

static void *run_same(void *net) {
    float out[EXAMPLES * SCORES];
    for (int i = 0; i < TIMES; i++)
        if (mtc_net_run(net, EXAMPLES, inputs, out) == 0)
            EXPECT(memcmp(out, expected, sizeof out) == 0);
        else
            EXPECT(strstr(mtc_net_error(), "another thread is running this net"));
    return NULL;
}

static void check_one_net(MtcNet *net) {
    pthread_t thread[THREADS];
    for (int i = 0; i < THREADS; i++)
        EXPECT(pthread_create(&thread[i], NULL, run_same, net) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
}

int main(int argc, char **argv) {
    MtcNet *net;
    for (int i = 0; i < EXAMPLES * IMAGE; i++)
        image[i] = (float)(i * 37 % 101) / 50 - 1;
    for (int i = 0; i < EXAMPLES; i++)
        kind[i] = (unsigned char)(i % 3);
    if (argc != 2)
        return 2;
    EXPECT(mtc_net_open(argv[1], &net) == 0 && mtc_net_inputs(net) == 2);
    EXPECT(mtc_net_input(net, 0)->elements == IMAGE && mtc_net_output(net)->elements == SCORES);
    EXPECT(mtc_net_run(net, EXAMPLES, inputs, expected) == 0);
    check_faults(net);
    check_one_net(net);
    check_threads(net);
    return 0;
}
