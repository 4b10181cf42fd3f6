// A loop on the device in CUDA C++: a conditional WHILE node whose body is a chain of small kernels.
// In: arguments "rounds runs kernels...". Out: a line of JSON for each number of kernels, with
// microseconds of a round, a sample for each run. "wrong" counts words that differ.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

typedef unsigned int Word;
const Word ITEMS = 256;

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { \
    fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void step(Word *x) { x[threadIdx.x] += 1; }

__global__ void last(Word *x, Word most, cudaGraphConditionalHandle handle) {
    Word v = x[threadIdx.x] + 1;
    x[threadIdx.x] = v;
    if (threadIdx.x == 0) cudaGraphSetConditional(handle, v < most);
}

static double now_us() {
    using namespace std::chrono;
    return duration<double, std::micro>(steady_clock::now().time_since_epoch()).count();
}

static void measure(Word rounds, int runs, Word kernels) {
    Word *x, most = rounds * kernels;
    CHECK(cudaMalloc(&x, ITEMS * sizeof(Word)));
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    cudaGraph_t graph;
    CHECK(cudaGraphCreate(&graph, 0));
    cudaGraphConditionalHandle handle;
    CHECK(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
    cudaGraphNodeParams loop = {};
    loop.type = cudaGraphNodeTypeConditional;
    loop.conditional.handle = handle;
    loop.conditional.type = cudaGraphCondTypeWhile;
    loop.conditional.size = 1;
    cudaGraphNode_t node;
#if CUDART_VERSION >= 13000
    CHECK(cudaGraphAddNode(&node, graph, NULL, NULL, 0, &loop));
#else
    CHECK(cudaGraphAddNode(&node, graph, NULL, 0, &loop));
#endif
    cudaGraph_t body = loop.conditional.phGraph_out[0];
    cudaGraphNode_t before = NULL;
    for (Word k = 0; k < kernels; ++k) {
        cudaKernelNodeParams params = {};
        void *steps[] = {&x};
        void *lasts[] = {&x, &most, &handle};
        bool is_last = k + 1 == kernels;
        params.func = is_last ? (void *)last : (void *)step;
        params.gridDim = dim3(1);
        params.blockDim = dim3(ITEMS);
        params.kernelParams = is_last ? lasts : steps;
        cudaGraphNode_t made;
        CHECK(cudaGraphAddKernelNode(&made, body, before ? &before : NULL, before ? 1 : 0, &params));
        before = made;
    }
    cudaGraphExec_t ready;
    CHECK(cudaGraphInstantiate(&ready, graph, 0));
    std::vector<double> samples;
    std::vector<Word> found(ITEMS);
    size_t wrong = 0;
    for (int run = -1; run < runs; ++run) {  // the first one is thrown away
        CHECK(cudaMemset(x, 0, ITEMS * sizeof(Word)));
        CHECK(cudaDeviceSynchronize());
        double start = now_us();
        CHECK(cudaGraphLaunch(ready, stream));
        CHECK(cudaStreamSynchronize(stream));
        if (run >= 0) samples.push_back((now_us() - start) / rounds);
        CHECK(cudaMemcpy(found.data(), x, ITEMS * sizeof(Word), cudaMemcpyDeviceToHost));
        for (Word v : found) wrong += v != most;
    }
    printf("{\"kernels\": %u, \"wrong\": %zu, \"us_per_round\": [", kernels, wrong);
    for (size_t n = 0; n < samples.size(); ++n) printf("%s%.5f", n ? ", " : "", samples[n]);
    printf("]}\n");
    fflush(stdout);
    CHECK(cudaGraphExecDestroy(ready));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaFree(x));
}

int main(int argc, char **argv) {
    int rounds = argc > 3 ? atoi(argv[1]) : 0, runs = argc > 3 ? atoi(argv[2]) : 0;
    if (rounds < 1 || runs < 1) {
        fprintf(stderr, "usage: %s rounds runs kernels...\n", argv[0]);
        return 2;
    }
    for (int n = 3; n < argc; ++n) measure((Word)rounds, runs, (Word)atoi(argv[n]));
    return 0;
}
