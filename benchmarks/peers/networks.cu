// A network as CUDA Graphs of the same kernels: networks.inc has kernels_cl/networks.cl, translated.
// In: a file of words with buffers, launches and their upstream, as cuda_networks.py writes it; then
// lines on the standard input: 0 launches the graph of one chain, 1 that with branches.
// Out: a line with the words of the result of each graph, then for each line the microseconds of a
// launch of the graph and the wait for its end.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>
#include <cuda_runtime.h>
#include "networks.inc"

typedef unsigned int Word;

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { \
    fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(e)); exit(1); } } while (0)

static std::vector<Word> words;
static size_t at;
static Word next() { return words.at(at++); }

struct Launch {
    const void *kernel;
    Word groups;
    std::vector<std::vector<char>> values;
    std::vector<int> upstream;
};

template <class T> static std::vector<char> bytes_of(T value) {
    const char *from = (const char *)&value;
    return std::vector<char>(from, from + sizeof value);
}

static cudaGraphExec_t made(std::vector<Launch> &launches, bool branches) {
    cudaGraph_t graph;
    CHECK(cudaGraphCreate(&graph, 0));
    std::vector<cudaGraphNode_t> nodes;
    for (Launch &one : launches) {
        std::vector<void *> arguments;
        for (auto &value : one.values) arguments.push_back(value.data());
        std::vector<cudaGraphNode_t> behind;
        if (branches) for (int number : one.upstream) behind.push_back(nodes[number]);
        else if (!nodes.empty()) behind.push_back(nodes.back());
        cudaKernelNodeParams how = {};
        how.func = const_cast<void *>(one.kernel);
        how.gridDim = dim3(one.groups);
        how.blockDim = dim3(GROUP);
        how.kernelParams = arguments.data();
        cudaGraphNode_t node;
        CHECK(cudaGraphAddKernelNode(&node, graph, behind.data(), behind.size(), &how));
        nodes.push_back(node);
    }
    cudaGraphExec_t found;
    CHECK(cudaGraphInstantiate(&found, graph, 0));
    return found;
}

int main(int, char **argv) {
    FILE *file = fopen(argv[1], "rb");
    if (!file) return 2;
    fseek(file, 0, SEEK_END);
    words.resize(ftell(file) / sizeof(Word));
    rewind(file);
    if (fread(words.data(), sizeof(Word), words.size(), file) != words.size()) return 2;
    std::vector<Word *> buffers(next());
    for (Word *&buffer : buffers) {
        Word many = next(), filled = next();
        CHECK(cudaMalloc(&buffer, many * sizeof(Word)));
        CHECK(cudaMemset(buffer, 0, many * sizeof(Word)));
        if (!filled) continue;
        CHECK(cudaMemcpy(buffer, &words.at(at), many * sizeof(Word), cudaMemcpyHostToDevice));
        at += many;
    }
    std::vector<Launch> launches(next());
    for (Launch &one : launches) {
        one.kernel = KERNELS[next()];
        one.groups = next();
        for (Word left = next(); left; --left) {
            if (!next()) { one.values.push_back(bytes_of(next())); continue; }
            Word *base = buffers.at(next());
            one.values.push_back(bytes_of(base + next()));
        }
        for (Word left = next(); left; --left) one.upstream.push_back(next());
    }
    Word *result = buffers.at(next());
    std::vector<Word> found(next());
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    cudaGraphExec_t graphs[] = {made(launches, false), made(launches, true)};
    for (cudaGraphExec_t graph : graphs) {
        CHECK(cudaMemset(result, 0, found.size() * sizeof(Word)));
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaGraphLaunch(graph, stream));
        CHECK(cudaStreamSynchronize(stream));
        CHECK(cudaMemcpy(found.data(), result, found.size() * sizeof(Word), cudaMemcpyDeviceToHost));
        for (Word word : found) printf("%u ", word);
        printf("\n");
    }
    fflush(stdout);
    for (int which; scanf("%d", &which) == 1;) {
        auto start = std::chrono::steady_clock::now();
        CHECK(cudaGraphLaunch(graphs[which != 0], stream));
        CHECK(cudaStreamSynchronize(stream));
        std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
        printf("%.3f\n", took.count());
        fflush(stdout);
    }
    return 0;
}
