/* Says which digit images show, with the library of models/mnist.mt:
 *
 *     mtc models/mnist.mt --batch 1 --shared --predict-only -o libnet.so
 *     cc classify.c -I MTC/runtime/embed -L. -lnet -Wl,-rpath,. -o classify
 *     ./classify mnist.safetensors digit.pgm
 *
 * where MTC is mtc's folder; where it is installed, its header is in PREFIX/include. */
#include "mtc_net.h"

#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 28, COLUMNS = 28, CLASSES = 10 };

/* A binary PGM of 28 x 28 grey values. */
static int read_image(const char *path, unsigned char image[ROWS * COLUMNS]) {
    int columns = 0, rows = 0, most = 0;
    FILE *file = fopen(path, "rb");
    int good = file && fscanf(file, "P5 %d %d %d", &columns, &rows, &most) == 3 && fgetc(file) != EOF &&
               columns == COLUMNS && rows == ROWS && most == 255 &&
               fread(image, 1, ROWS * COLUMNS, file) == ROWS * COLUMNS;
    if (file)
        fclose(file);
    if (!good)
        fprintf(stderr, "%s: is no PGM of %d x %d\n", path, COLUMNS, ROWS);
    return good;
}

static int fail(MtcNet *net) {
    fprintf(stderr, "%s\n", mtc_net_error());
    mtc_net_close(net);
    return EXIT_FAILURE;
}

int main(int argc, char **argv) {
    unsigned char image[ROWS * COLUMNS];
    float scores[CLASSES];
    MtcNet *net;
    if (argc < 3) {
        fprintf(stderr, "usage: classify WEIGHTS IMAGE...\n");
        return EXIT_FAILURE;
    }
    if (mtc_net_open(argv[1], &net))
        return fail(NULL);
    if (mtc_net_inputs(net) != 1 || mtc_net_input(net, 0)->elements != ROWS * COLUMNS ||
        mtc_net_output(net)->elements != CLASSES) {
        fprintf(stderr, "the library is of another model\n");
        mtc_net_close(net);
        return EXIT_FAILURE;
    }
    for (int i = 2; i < argc; i++) {
        const void *inputs[] = {image};
        int best = 0;
        if (!read_image(argv[i], image) || mtc_net_run(net, 1, inputs, scores))
            return fail(net);
        for (int k = 1; k < CLASSES; k++)
            best = scores[k] > scores[best] ? k : best;
        printf("%s: %d (%.3f)\n", argv[i], best, (double)scores[best]);
    }
    mtc_net_close(net);
    return EXIT_SUCCESS;
}
