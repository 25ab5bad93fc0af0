/* When each kernel and each copy of a process begins and ends, by CUPTI: a line each in the file $MTC_TRACE.<process>. CUDA loads this where
 * CUDA_INJECTION64_PATH names it; bench/overlap does that, and draws what came of it. */
#include <cupti.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BUFFER = 1 << 18, FLUSH_MS = 300 };
static FILE *trace;

static void CUPTIAPI give_buffer(uint8_t **buffer, size_t *size, size_t *records) {
    *buffer = (uint8_t *)aligned_alloc(8, BUFFER);
    *size = BUFFER;
    *records = 0;
}

static void write_kernel(const CUpti_ActivityKernel10 *kernel) {
    fprintf(trace, "kernel %u %llu %llu %s\n", kernel->streamId, (unsigned long long)kernel->start,
            (unsigned long long)kernel->end, kernel->name);
}

static void write_copy(unsigned stream, uint64_t start, uint64_t end, uint64_t bytes) {
    fprintf(trace, "copy %u %llu %llu %llu\n", stream, (unsigned long long)start, (unsigned long long)end,
            (unsigned long long)bytes);
}

static void write_record(const CUpti_Activity *record) {
    const CUpti_ActivityMemcpy6 *copy = (const CUpti_ActivityMemcpy6 *)record;
    const CUpti_ActivityMemcpyPtoP4 *between = (const CUpti_ActivityMemcpyPtoP4 *)record;
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
        write_kernel((const CUpti_ActivityKernel10 *)record);
    else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY)
        write_copy(copy->streamId, copy->start, copy->end, copy->bytes);
    else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY2)
        write_copy(between->streamId, between->start, between->end, between->bytes);
}

static void CUPTIAPI take_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    CUpti_Activity *record = NULL;
    (void)context, (void)stream, (void)size;
    while (valid && cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
        write_record(record);
    fflush(trace);
    free(buffer);
}

static void finish(void) {
    cuptiActivityFlushAll(1);
}

int InitializeInjection(void) {
    char name[4096];
    snprintf(name, sizeof name, "%s.%d", getenv("MTC_TRACE"), (int)getpid());
    trace = fopen(name, "w");
    if (trace && cuptiActivityRegisterCallbacks(give_buffer, take_buffer) == CUPTI_SUCCESS) {
        cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
        cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY);
        cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY2);
        cuptiActivityFlushPeriod(FLUSH_MS);
        atexit(finish);
    }
    return 1;
}
