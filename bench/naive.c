/* The textbook's product of matrices on one core, as bench/figures measures it: three loops, a sum for each output.
 *
 *     naive N ROWS        prints the seconds of ROWS rows of a product of N x N matrices, the least of three runs
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void) {
    struct timespec time;
    timespec_get(&time, TIME_UTC);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void multiply(size_t n, size_t rows, const float *a, const float *b, float *c) {
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < n; j++) {
            float sum = 0;
            for (size_t k = 0; k < n; k++)
                sum += a[i * n + k] * b[k * n + j];
            c[i * n + j] = sum;
        }
}

static float *random_matrix(size_t count) {
    float *values = malloc(count * sizeof *values);
    for (size_t i = 0; values && i < count; i++)
        values[i] = (float)rand() / (float)RAND_MAX - 0.5f;
    return values;
}

int main(int count, char **words) {
    size_t n = count == 3 ? strtoul(words[1], NULL, 10) : 0, rows = n ? strtoul(words[2], NULL, 10) : 0;
    if (!rows || rows > n)
        return fprintf(stderr, "usage: naive N ROWS, ROWS from 1 to N\n"), 64;
    float *a = random_matrix(rows * n), *b = random_matrix(n * n), *c = malloc(rows * n * sizeof *c);
    if (!a || !b || !c)
        return fprintf(stderr, "naive: no memory for %zu x %zu\n", n, n), 71;
    double least = 0;
    for (int run = 0; run < 3; run++) {
        double began = now();
        multiply(n, rows, a, b, c);
        double seconds = now() - began;
        least = run == 0 || seconds < least ? seconds : least;
    }
    printf("{\"seconds\": %.9g, \"last\": %.9g}\n", least, (double)c[rows * n - 1]);
    free(a);
    free(b);
    free(c);
    return 0;
}
