// A wavefront of tiles and a tiled Cholesky factorisation in CUDA C++: the kernels of
// kernels_cl/tiles.cl, launched in one stream, and as CUDA Graphs with the edges that an expert knows.
// In: arguments "rounds which tiles passes", `which` "wavefront" or "cholesky".
// Out: a line of JSON: launches, samples of microseconds of `stream`, `new_graph` (nodes, instantiation,
// first launch and wait) and `replay` (launch and wait), and a sum of the result to compare with.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>
#include <cuda_runtime.h>

typedef unsigned int Word;

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { \
    fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(e)); exit(1); } } while (0)

const int WAVE = 64, EDGE = 32, GROUP = 256;

__global__ void wave(int *tile, const int *above, const int *left, const int *corner, Word pitch,
                     Word passes, Word seed) {
    const int row = threadIdx.x;
    for (Word pass = 0; pass < passes; ++pass)
        for (int diagonal = 0; diagonal < 2 * WAVE - 1; ++diagonal) {
            const int column = diagonal - row;
            if (column >= 0 && column < WAVE) {
                int *cell = tile + row * pitch + column;
                const int up = row ? cell[-(int)pitch] : above[column];
                const int before = column ? cell[-1] : left[row * pitch];
                const int across = row && column ? cell[-(int)pitch - 1]
                                   : row ? left[(row - 1) * pitch] : column ? above[column - 1] : *corner;
                const Word mixed = (seed + row * 31u + column) * 2654435761u;
                *cell = max(max(up, before) - 1, across + (int)(mixed >> 29));
            }
            __syncthreads();
        }
}

#define EACH(n) for (int n = threadIdx.x; n < EDGE * EDGE; n += GROUP)

__global__ void factor(float *a) {
    __shared__ float t[EDGE][EDGE + 1];
    EACH(n) t[n / EDGE][n % EDGE] = a[n];
    for (int k = 0; k < EDGE; ++k) {
        __syncthreads();
        const float root = sqrtf(t[k][k]);
        __syncthreads();
        const int i = threadIdx.x;
        if (i >= k && i < EDGE) t[i][k] = i == k ? root : t[i][k] / root;
        __syncthreads();
        EACH(n) {
            const int r = n / EDGE, c = n % EDGE;
            if (c > k && r >= c) t[r][c] -= t[r][k] * t[c][k];
        }
    }
    __syncthreads();
    EACH(n) a[n] = n % EDGE <= n / EDGE ? t[n / EDGE][n % EDGE] : 0.0f;
}

__global__ void solve(const float *l, float *a) {
    __shared__ float f[EDGE][EDGE + 1], t[EDGE][EDGE + 1];
    EACH(n) { f[n / EDGE][n % EDGE] = l[n]; t[n / EDGE][n % EDGE] = a[n]; }
    for (int k = 0; k < EDGE; ++k) {
        __syncthreads();
        const int r = threadIdx.x;
        if (r < EDGE) t[r][k] /= f[k][k];
        __syncthreads();
        EACH(n) {
            const int i = n / EDGE, c = n % EDGE;
            if (c > k) t[i][c] -= t[i][k] * f[c][k];
        }
    }
    __syncthreads();
    EACH(n) a[n] = t[n / EDGE][n % EDGE];
}

__global__ void update(const float *x, const float *y, float *a) {
    __shared__ float f[EDGE][EDGE + 1], t[EDGE][EDGE + 1];
    EACH(n) { f[n / EDGE][n % EDGE] = x[n]; t[n / EDGE][n % EDGE] = y[n]; }
    __syncthreads();
    EACH(n) {
        const int r = n / EDGE, c = n % EDGE;
        float sum = a[n];
        for (int k = 0; k < EDGE; ++k) sum -= f[r][k] * t[c][k];
        a[n] = sum;
    }
}

struct Launch {
    const void *kernel;
    int items, pointers;
    void *memory[4];
    Word values[3];
    std::vector<int> upstream;
    void arguments(void **into) {
        for (int n = 0; n < pointers; ++n) into[n] = &memory[n];
        for (int n = 0; n < 3; ++n) into[pointers + n] = &values[n];
    }
};

struct Program {
    std::vector<char> before;
    void *memory, *beginning;
    std::vector<Launch> launches;
};

static Program begun(size_t bytes) {
    Program p;
    p.before.resize(bytes);
    CHECK(cudaMalloc(&p.memory, bytes));
    CHECK(cudaMalloc(&p.beginning, bytes));
    return p;
}

static void filled(Program &p) {
    CHECK(cudaMemcpy(p.beginning, p.before.data(), p.before.size(), cudaMemcpyHostToDevice));
}

static Program wavefront(int tiles, Word passes) {
    Word pitch = tiles * WAVE + 1;
    Program p = begun(sizeof(int) * pitch * pitch);
    filled(p);
    int *matrix = (int *)p.memory;
    for (int i = 0; i < tiles; ++i)
        for (int j = 0; j < tiles; ++j) {
            int *tile = matrix + (i * WAVE + 1) * (size_t)pitch + j * WAVE + 1;
            Launch one = {(const void *)wave, WAVE, 4, {tile, tile - pitch, tile - 1, tile - pitch - 1},
                          {pitch, passes, Word(i * tiles + j)}, {}};
            if (i) one.upstream.push_back((i - 1) * tiles + j);
            if (j) one.upstream.push_back(i * tiles + j - 1);
            p.launches.push_back(one);
        }
    return p;
}

static Program cholesky(int tiles) {
    const size_t cells = EDGE * EDGE;
    Program p = begun(sizeof(float) * cells * tiles * tiles);
    float *host = (float *)p.before.data();
    for (size_t tile = 0; tile < size_t(tiles) * tiles; ++tile)
        for (size_t n = 0; n < cells; ++n) {
            size_t r = tile / tiles * EDGE + n / EDGE, c = tile % tiles * EDGE + n % EDGE;
            host[tile * cells + n] = r == c ? 2.0f * tiles * EDGE : float((r * c) % 7) / 7.0f;
        }
    filled(p);
    float *matrix = (float *)p.memory;
    std::map<size_t, int> wrote;
    auto add = [&](const void *kernel, std::vector<size_t> used) {
        Launch one = {kernel, GROUP, int(used.size()), {}, {}, {}};
        for (size_t n = 0; n < used.size(); ++n) {
            one.memory[n] = matrix + used[n] * cells;
            if (wrote.count(used[n]) && (!n || used[n] != used[n - 1])) one.upstream.push_back(wrote[used[n]]);
        }
        wrote[used.back()] = int(p.launches.size());
        p.launches.push_back(one);
    };
    auto at = [&](int i, int j) { return size_t(i) * tiles + j; };
    for (int k = 0; k < tiles; ++k) {
        add((const void *)factor, {at(k, k)});
        for (int i = k + 1; i < tiles; ++i) add((const void *)solve, {at(k, k), at(i, k)});
        for (int i = k + 1; i < tiles; ++i)
            for (int j = k + 1; j <= i; ++j) add((const void *)update, {at(i, k), at(j, k), at(i, j)});
    }
    return p;
}

static double now_us() {
    using namespace std::chrono;
    return duration<double, std::micro>(steady_clock::now().time_since_epoch()).count();
}

static void restore(Program &p) {
    CHECK(cudaMemcpy(p.memory, p.beginning, p.before.size(), cudaMemcpyDeviceToDevice));
    CHECK(cudaDeviceSynchronize());
}

static double sum(Program &p, bool whole_numbers) {
    std::vector<char> found(p.before.size());
    CHECK(cudaMemcpy(found.data(), p.memory, found.size(), cudaMemcpyDeviceToHost));
    double total = 0;
    for (size_t n = 0; n < found.size() / 4; ++n)
        total += whole_numbers ? ((int *)found.data())[n] : ((float *)found.data())[n];
    return total;
}

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: %s rounds wavefront|cholesky tiles passes\n", argv[0]);
        return 2;
    }
    int rounds = atoi(argv[1]), tiles = atoi(argv[3]);
    bool is_wave = !strcmp(argv[2], "wavefront");
    Program p = is_wave ? wavefront(tiles, atoi(argv[4])) : cholesky(tiles);
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    std::map<std::string, std::vector<double>> samples;
    std::vector<double> sums;
    for (int round = -1; round < rounds; ++round) {
        void *arguments[8];
        restore(p);
        double start = now_us();
        for (Launch &one : p.launches) {
            one.arguments(arguments);
            CHECK(cudaLaunchKernel(one.kernel, dim3(1), dim3(one.items), arguments, 0, stream));
        }
        CHECK(cudaStreamSynchronize(stream));
        double streamed = now_us() - start;
        sums.push_back(sum(p, is_wave));
        restore(p);
        start = now_us();
        cudaGraph_t graph;
        CHECK(cudaGraphCreate(&graph, 0));
        std::vector<cudaGraphNode_t> nodes(p.launches.size()), behind;
        for (size_t n = 0; n < nodes.size(); ++n) {
            Launch &one = p.launches[n];
            behind.clear();
            for (int other : one.upstream) behind.push_back(nodes[other]);
            one.arguments(arguments);
            cudaKernelNodeParams params = {};
            params.func = const_cast<void *>(one.kernel);
            params.gridDim = dim3(1);
            params.blockDim = dim3(one.items);
            params.kernelParams = arguments;
            CHECK(cudaGraphAddKernelNode(&nodes[n], graph, behind.data(), behind.size(), &params));
        }
        cudaGraphExec_t ready;
        CHECK(cudaGraphInstantiate(&ready, graph, 0));
        CHECK(cudaGraphLaunch(ready, stream));
        CHECK(cudaStreamSynchronize(stream));
        double made = now_us() - start;
        sums.push_back(sum(p, is_wave));
        std::vector<double> again;
        for (int n = 0; n < 3; ++n) {
            restore(p);
            start = now_us();
            CHECK(cudaGraphLaunch(ready, stream));
            CHECK(cudaStreamSynchronize(stream));
            again.push_back(now_us() - start);
            sums.push_back(sum(p, is_wave));
        }
        CHECK(cudaGraphExecDestroy(ready));
        CHECK(cudaGraphDestroy(graph));
        if (round < 0) continue;
        samples["stream"].push_back(streamed);
        samples["new_graph"].push_back(made);
        for (double one : again) samples["replay"].push_back(one);
    }
    for (double one : sums)
        if (one != sums[0]) {
            fprintf(stderr, "runs differ: %.9g and %.9g\n", one, sums[0]);
            return 1;
        }
    printf("{\"launches\": %zu, \"sum\": %.17g, \"us\": {", p.launches.size(), sums[0]);
    const char *comma = "";
    for (const auto &one : samples) {
        printf("%s\"%s\": [", comma, one.first.c_str());
        for (size_t n = 0; n < one.second.size(); ++n) printf("%s%.3f", n ? ", " : "", one.second[n]);
        printf("]");
        comma = ", ";
    }
    printf("}}\n");
    return 0;
}
