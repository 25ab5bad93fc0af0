/* kernels_lib/cuda/float8.cuh, or cpu/float8.h where OF_CPU is defined: bits of floats from standard input; of each, the byte that it is rounded to, and the bits of the float that
 * the byte stands for. Compiled by nvcc, it runs on a GPU. */
#include <cstdio>
#include <cstring>
#include <vector>

#ifndef __CUDACC__
#define __device__
static float __int_as_float(int bits) {
    float number;
    memcpy(&number, &bits, sizeof number);
    return number;
}
static int __float_as_int(float number) {
    int bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}
#endif
#ifdef OF_CPU
#include "cpu/float8.h"
#define to_float e4m3_to_float
#else
#include "cuda/float8.cuh"
#endif

struct Rounded {
    int byte;
    float value;
};

static __device__ Rounded round_trip(float x) {
    e4m3 rounded = to_e4m3(x);
    return {rounded.bits, to_float(rounded)};
}

#ifdef __CUDACC__
static __global__ void round_all(const float *from, Rounded *to, int count) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        to[i] = round_trip(from[i]);
}
static void round_numbers(const std::vector<float> &from, std::vector<Rounded> &to) {
    float *numbers;
    Rounded *rounded;
    cudaMalloc(&numbers, from.size() * sizeof(float));
    cudaMalloc(&rounded, to.size() * sizeof(Rounded));
    cudaMemcpy(numbers, from.data(), from.size() * sizeof(float), cudaMemcpyHostToDevice);
    round_all<<<256, 256>>>(numbers, rounded, (int)from.size());
    cudaMemcpy(to.data(), rounded, to.size() * sizeof(Rounded), cudaMemcpyDeviceToHost);
}
#else
static void round_numbers(const std::vector<float> &from, std::vector<Rounded> &to) {
    for (size_t i = 0; i < from.size(); i++)
        to[i] = round_trip(from[i]);
}
#endif

int main() {
    std::vector<float> numbers;
    for (float number; fread(&number, sizeof number, 1, stdin) == 1;)
        numbers.push_back(number);
    std::vector<Rounded> rounded(numbers.size());
    round_numbers(numbers, rounded);
    return fwrite(rounded.data(), sizeof(Rounded), rounded.size(), stdout) != rounded.size();
}
