// What CUDA Graphs cost on the same card: building a graph of small kernels, and replaying it.
// In: triples "chains length groups" as arguments. Out: one line of JSON for each.
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <algorithm>
#include <chrono>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { \
    fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void tick(unsigned *x, unsigned a) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] = x[i] * 3u + a;
}

static double now_us() {
    using namespace std::chrono;
    return duration<double, std::micro>(steady_clock::now().time_since_epoch()).count();
}

static double median(std::vector<double> v) { std::sort(v.begin(), v.end()); return v[v.size() / 2]; }

int main(int argc, char **argv) {
    for (int at = 1; at + 2 < argc; at += 3) {
        int chains = atoi(argv[at]), length = atoi(argv[at + 1]), groups = atoi(argv[at + 2]);
        int tasks = chains * length, items = 256 * groups;
        unsigned *memory;
        CHECK(cudaMalloc(&memory, sizeof(unsigned) * chains * (size_t)items));
        CHECK(cudaMemset(memory, 0, sizeof(unsigned) * chains * (size_t)items));
        cudaStream_t stream;
        CHECK(cudaStreamCreate(&stream));
        std::vector<double> build, replay, end_to_end;
        for (int round = 0; round < 5; ++round) {
            double start = now_us();
            cudaGraph_t graph;
            CHECK(cudaGraphCreate(&graph, 0));
            std::vector<cudaGraphNode_t> last(chains);
            for (int link = 0; link < length; ++link)
                for (int chain = 0; chain < chains; ++chain) {
                    unsigned *x = memory + (size_t)chain * items, a = link;
                    void *arguments[] = {&x, &a};
                    cudaKernelNodeParams params = {};
                    params.func = (void *)tick;
                    params.gridDim = dim3(groups);
                    params.blockDim = dim3(256);
                    params.kernelParams = arguments;
                    cudaGraphNode_t node;
                    CHECK(cudaGraphAddKernelNode(&node, graph, link ? &last[chain] : nullptr, link ? 1 : 0, &params));
                    last[chain] = node;
                }
            cudaGraphExec_t ready;
            CHECK(cudaGraphInstantiate(&ready, graph, 0));
            CHECK(cudaGraphLaunch(ready, stream));
            CHECK(cudaStreamSynchronize(stream));
            double first = now_us();
            for (int again = 0; again < 4; ++again) {
                double begin = now_us();
                CHECK(cudaGraphLaunch(ready, stream));
                CHECK(cudaStreamSynchronize(stream));
                replay.push_back((now_us() - begin) / tasks);
            }
            build.push_back((first - start) / tasks);
            CHECK(cudaGraphExecDestroy(ready));
            CHECK(cudaGraphDestroy(graph));
        }
        // the same as stream launches, one stream per chain up to 64
        int streams = std::min(chains, 64);
        std::vector<cudaStream_t> pool(streams);
        for (auto &one : pool) CHECK(cudaStreamCreate(&one));
        for (int round = 0; round < 3; ++round) {
            double start = now_us();
            for (int link = 0; link < length; ++link)
                for (int chain = 0; chain < chains; ++chain)
                    tick<<<groups, 256, 0, pool[chain % streams]>>>(memory + (size_t)chain * items, link);
            CHECK(cudaDeviceSynchronize());
            end_to_end.push_back((now_us() - start) / tasks);
        }
        for (auto &one : pool) CHECK(cudaStreamDestroy(one));
        CHECK(cudaStreamDestroy(stream));
        CHECK(cudaFree(memory));
        printf("{\"chains\": %d, \"length\": %d, \"groups\": %d, \"replay_us\": %.4f, "
               "\"new_graph_us\": %.4f, \"stream_us\": %.4f}\n",
               chains, length, groups, median(replay), median(build), median(end_to_end));
        fflush(stdout);
    }
    return 0;
}
