// Work that creates work in CUDA C++: kernels that launch kernels (dynamic parallelism).
// In: how many launches may be pending, and "children runs launches parents..." or "program runs file
// least...": with children of so many items at least, 0: none. KERNELS names a file that holds the
// kernels, written in OpenCL C, and a line ENTRY(name) for each. Out: lines of JSON with microseconds,
// a sample for each run. "wrong" counts words that differ; a way that took too long has fewer samples.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { \
    fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(e)); exit(1); } } while (0)

typedef uint32_t Word;
const Word ITEMS = 256, BLOCK = 128;
const double LONGEST_US = 0.5e6;

namespace device {
typedef unsigned char uchar;
typedef unsigned int uint;
__device__ uint least;   // items of a child; fewer run in a loop

template <auto F, typename... A> __global__ void items(uint n, A... a) {
    const uint item = blockIdx.x * blockDim.x + threadIdx.x;
    if (item < n) F(item, a...);
}
#define get_global_id(dimension) (blockIdx.x * blockDim.x + threadIdx.x)
#define atomic_add atomicAdd
#define atomic_inc(p) atomicAdd(p, 1)
#define atomic_dec(p) atomicSub(p, 1)
#define atomic_min atomicMin
#define atomic_max atomicMax
#define atomic_cmpxchg atomicCAS
#define ACS_SPAWN(function, n, ...) do { \
    const uint acs_n = (n), acs_block = min(acs_n, BLOCK); \
    if (acs_n >= least) { \
        if (acs_n) items<function><<<(acs_n - 1) / acs_block + 1, acs_block, 0, cudaStreamFireAndForget>>>(acs_n, __VA_ARGS__); \
    } else for (uint acs_i = 0; acs_i < acs_n; ++acs_i) function(acs_i, __VA_ARGS__); } while (0)

__device__ void fill(uint item, uint *out, uint at) { out[ITEMS * at + item] = item; }
__global__ void give(uint *out, uint n) {
    const uint at = get_global_id(0);
    ACS_SPAWN(fill, n, out, at);
}
#include KERNELS
struct Entry { const char *name; const void *function; };
#define ENTRY(name) {#name, (const void *)name},
const Entry ENTRIES[] = {
#include ENTRIES_FILE
};
}

static double now_us() {
    using namespace std::chrono;
    return duration<double, std::micro>(steady_clock::now().time_since_epoch()).count();
}

static void set_least(Word least) { CHECK(cudaMemcpyToSymbol(device::least, &least, sizeof least)); }

template <typename F> static std::vector<double> timed(int runs, double per, F run) {
    std::vector<double> samples;
    double spent = 0;
    for (int at = -1; at < runs && (at < 1 || spent < LONGEST_US); ++at) {  // the first is thrown away
        CHECK(cudaDeviceSynchronize());
        const double start = now_us();
        run();
        CHECK(cudaGetLastError());
        CHECK(cudaDeviceSynchronize());
        const double took = now_us() - start;
        spent += took;
        if (at >= 0) samples.push_back(took / per);
    }
    return samples;
}

static void print(const std::vector<double> &samples) {
    for (size_t n = 0; n < samples.size(); ++n) printf("%s%.4f", n ? ", " : "", samples[n]);
}

static void children(int runs, int most, Word parents) {
    Word *out;
    CHECK(cudaMalloc(&out, ITEMS * parents * sizeof(Word)));
    CHECK(cudaMemset(out, 0xFF, ITEMS * parents * sizeof(Word)));
    set_least(1);
    const int launches = std::max(1, std::min(most, 2048 / (int)parents));
    const Word block = std::min(parents, BLOCK), grid = parents / block;
    auto some = [&](Word n) {
        return timed(runs, launches, [&] {
            for (int i = 0; i < launches; ++i) device::give<<<grid, block>>>(out, n);
        });
    };
    const std::vector<double> spawning = some(ITEMS), nothing = some(0);
    std::vector<Word> found(ITEMS * parents);
    CHECK(cudaMemcpy(found.data(), out, found.size() * sizeof(Word), cudaMemcpyDeviceToHost));
    size_t wrong = 0;
    for (size_t i = 0; i < found.size(); ++i) wrong += found[i] != i % ITEMS;
    printf("{\"parents\": %u, \"wrong\": %zu, \"us\": {\"spawning\": [", parents, wrong);
    print(spawning);
    printf("], \"nothing\": [");
    print(nothing);
    printf("]}}\n");
    fflush(stdout);
    CHECK(cudaFree(out));
}

struct File {
    std::vector<Word> words;
    size_t at = 0;
    explicit File(const char *path) {
        FILE *file = fopen(path, "rb");
        if (!file) { perror(path); exit(1); }
        Word word;
        std::vector<Word> part(1 << 16);
        for (size_t n; (n = fread(part.data(), sizeof word, part.size(), file)) > 0;)
            words.insert(words.end(), part.begin(), part.begin() + n);
        fclose(file);
    }
    Word take() { return words.at(at++); }
    const Word *take(size_t n) { const Word *here = words.data() + at; at += n; return here; }
};

struct Launch { const void *function; Word grid, block; std::vector<void *> arguments; };

static void program(int runs, const char *path, const std::vector<Word> &leasts) {
    File file(path);
    std::vector<void *> arrays(file.take());
    std::vector<std::pair<const Word *, Word>> contents;
    for (void *&array : arrays) {
        const Word n = file.take();
        contents.push_back({file.take(n), n});
        CHECK(cudaMalloc(&array, std::max(n, 1u) * sizeof(Word)));
    }
    std::vector<Launch> launches(file.take());
    for (Launch &one : launches) {
        one.function = device::ENTRIES[file.take()].function;
        const Word size = file.take();
        one.block = std::min(size, BLOCK);
        while (size % one.block) --one.block;   // no kernel looks whether it is behind the end
        one.grid = size / one.block;
        for (Word left = file.take(); left; --left) {
            const Word is_array = file.take(), value = file.take();
            if (is_array) one.arguments.push_back(&arrays[value]);
            else one.arguments.push_back(&file.words[file.at - 1]);
        }
    }
    const Word results = file.take();
    const size_t where = file.at;
    for (Word least : leasts) {
        set_least(least ? least : 0xFFFFFFFFu);
        for (size_t i = 0; i < arrays.size(); ++i)
            CHECK(cudaMemcpy(arrays[i], contents[i].first, contents[i].second * sizeof(Word), cudaMemcpyHostToDevice));
        const std::vector<double> samples = timed(runs, 1, [&] {
            for (Launch &one : launches)
                CHECK(cudaLaunchKernel(one.function, dim3(one.grid), dim3(one.block), one.arguments.data(), 0, 0));
        });
        size_t wrong = 0;
        file.at = where;
        for (Word i = 0; i < results; ++i) {
            const Word array = file.take(), n = file.take();
            const Word *wanted = file.take(n);
            std::vector<Word> found(n);
            CHECK(cudaMemcpy(found.data(), arrays[array], n * sizeof(Word), cudaMemcpyDeviceToHost));
            for (Word k = 0; k < n; ++k) wrong += found[k] != wanted[k];
        }
        const std::string way = least == 0u ? "flat" : "children of " + std::to_string(least);
        printf("{\"way\": \"%s\", \"wrong\": %zu, \"us\": [", way.c_str(), wrong);
        print(samples);
        printf("]}\n");
        fflush(stdout);
    }
}

int main(int argc, char **argv) {
    const std::string what = argc > 5 ? argv[2] : "";
    const int runs = argc > 5 ? atoi(argv[3]) : 0;
    if (runs < 1 || (what != "children" && what != "program")) {
        fprintf(stderr, "usage: %s pending children runs launches parents... | pending program runs file least...\n", argv[0]);
        return 2;
    }
    CHECK(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, atoi(argv[1])));
    std::vector<Word> numbers;
    for (int n = 5; n < argc; ++n) numbers.push_back((Word)atoi(argv[n]));
    if (what == "program") program(runs, argv[4], numbers);
    else for (Word parents : numbers) children(runs, atoi(argv[4]), parents);
    return 0;
}
