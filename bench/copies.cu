// Copies of an N x N matrix of f32 to the device, from it and on it: one JSON line each, the median of eleven.
//
//     nvcc -std=c++17 -O3 -arch=sm_90 bench/copies.cu -o build/bench/copies && build/bench/copies 4096
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

static void check(cudaError_t error, int line) {
    if (error == cudaSuccess)
        return;
    printf("{\"error\": \"%s\", \"line\": %d}\n", cudaGetErrorString(error), line);
    exit(1);
}
#define CHECK(call) check(call, __LINE__)

static double median_us(void *to, const void *from, size_t bytes) {
    double times[11];
    CHECK(cudaMemcpy(to, from, bytes, cudaMemcpyDefault));
    for (double &time : times) {
        CHECK(cudaDeviceSynchronize());
        auto began = std::chrono::steady_clock::now();
        CHECK(cudaMemcpy(to, from, bytes, cudaMemcpyDefault));
        CHECK(cudaDeviceSynchronize());
        time = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - began).count();
    }
    std::sort(times, times + 11);
    return times[5];
}

int main(int count, char **words) {
    size_t n = count == 2 ? strtoul(words[1], nullptr, 10) : 0, bytes = n * n * sizeof(float);
    if (!n)
        return fprintf(stderr, "usage: copies N\n"), 64;
    char *device, *other, *pinned, *pageable = (char *)malloc(bytes);
    CHECK(cudaMalloc(&device, bytes));
    CHECK(cudaMalloc(&other, bytes));
    CHECK(cudaMallocHost(&pinned, bytes));
    if (!pageable)
        return fprintf(stderr, "copies: no memory\n"), 71;
    std::fill(pageable, pageable + bytes, 1);
    std::fill(pinned, pinned + bytes, 1);
    const struct {
        const char *way;
        void *to;
        const void *from;
    } ways[] = {{"to the device, pageable", device, pageable},
                {"to the device, pinned", device, pinned},
                {"from the device, pageable", pageable, device},
                {"from the device, pinned", pinned, device},
                {"on the device", other, device}};
    for (auto &way : ways)
        printf("{\"way\": \"%s\", \"us\": %.2f}\n", way.way, median_us(way.to, way.from, bytes));
    return 0;
}
