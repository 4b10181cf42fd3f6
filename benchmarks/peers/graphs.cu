// Synthetic graphs in CUDA C++: what its users would write for them, and what each way costs.
// In: arguments "rounds streams file...", each file a graph as `cuda_graphs.py` writes it: all words
// are uint32, tasks are in program order, and what each has to wait for is in the file.
// Out: a line of JSON for each file, with microseconds per task, a sample for each round:
//   stream     one stream, a launch for each task, then a wait for all
//   streams    several streams and an event wherever an edge crosses from one to another
//   construct, instantiate, first    a CUDA Graph, new each round: its nodes, cudaGraphInstantiate,
//              the first launch and a wait for it; new_graph is all three
//   replay     a launch of a graph that is there and has run, and a wait for it
// Ways take turns, and each run's arrays are compared with those of the reference, word by word:
// "wrong" counts words that differ.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>
#include <cuda_runtime.h>

typedef unsigned int Word;

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { \
    fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(e)); exit(1); } } while (0)

static void refuse(const char *file, const char *why) {
    fprintf(stderr, "%s: %s\n", file, why);
    exit(1);
}

// ---- kernels: those of kernels_cl/synthetic.cl ----------------------------------------------------

const int MOST_READS = 4;

template <int READS> struct Plain {
    Word task, rounds, span;
    Word *out;
    const Word *reads[READS];
};

template <> struct Plain<0> {
    Word task, rounds, span;
    Word *out;
};

struct Rectangle { Word lead, width, pitch; };

struct Placed {
    Word task, rounds, span;
    Word *out;
    const Word *read;
    Rectangle to, from;
};

__device__ static Word stir(Word x, Word rounds) {
    for (Word i = 0; i < rounds; ++i) { x ^= x << 13; x ^= x >> 17; x ^= x << 5; }
    return x;
}

__device__ static Word at(Rectangle r, Word n) { return r.lead + n / r.width * r.pitch + n % r.width; }

template <bool UPDATES> __global__ void plain0(Plain<0> p) {
    Word i = blockIdx.x * blockDim.x + threadIdx.x, v = p.task + i;
    if (UPDATES) v = v * 5u + p.out[i];
    p.out[i] = stir(v, p.rounds);
}

template <int READS, bool UPDATES> __global__ void plain(Plain<READS> p) {
    Word i = blockIdx.x * blockDim.x + threadIdx.x, v = p.task + i, m = p.span - 1 - i % p.span;
    if (UPDATES) v = v * 5u + p.out[i];
#pragma unroll
    for (int r = 0; r < READS; ++r) v = v * 5u + p.reads[r][m];
    p.out[i] = stir(v, p.rounds);
}

template <int READS> __global__ void placed(Placed p) {  // always updates
    Word i = blockIdx.x * blockDim.x + threadIdx.x, v = p.task + i, to = at(p.to, i);
    v = v * 5u + p.out[to];
    if (READS) v = v * 5u + p.read[at(p.from, p.span - 1 - i % p.span)];
    p.out[to] = stir(v, p.rounds);
}

static const void *kernel_of(bool is_plain, bool updates, size_t reads) {
    if (!is_plain) {
        if (!updates || reads > 1) return nullptr;
        return reads ? (const void *)placed<1> : (const void *)placed<0>;
    }
    switch (reads * 2 + updates) {
        case 0: return (const void *)plain0<false>;
        case 1: return (const void *)plain0<true>;
        case 2: return (const void *)plain<1, false>;
        case 3: return (const void *)plain<1, true>;
        case 4: return (const void *)plain<2, false>;
        case 6: return (const void *)plain<3, false>;
        case 8: return (const void *)plain<4, false>;
    }
    return nullptr;
}

// ---- graphs ---------------------------------------------------------------------------------------

struct Region {
    Word array, start, width, rows, pitch;
    bool is_whole() const { return rows == 1 && start == 0; }
};

struct Task {
    const void *kernel;
    Word groups, lane;
    Plain<MOST_READS> plain;  // a kernel with fewer reads takes the beginning of it
    Placed placed;
    bool is_plain;
    std::vector<Word> upstream;
    std::vector<Word> waits;  // those of upstream that are on other streams, the last of each
    bool is_waited_for;       // from another stream
    void *arguments() { return is_plain ? (void *)&plain : (void *)&placed; }
};

struct Graph {
    Word group;
    std::vector<Word> contents, expected;
    std::vector<Task> tasks;
    Word *memory, *beginning;  // on the device
};

class Reader {
  public:
    Reader(const char *name) : name(name), next(0) {
        FILE *file = fopen(name, "rb");
        if (!file) refuse(name, "cannot be opened");
        fseek(file, 0, SEEK_END);
        long size = ftell(file);
        fseek(file, 0, SEEK_SET);
        words.resize(size / sizeof(Word));
        if (size < 0 || fread(words.data(), sizeof(Word), words.size(), file) != words.size())
            refuse(name, "cannot be read");
        fclose(file);
    }
    Word word() {
        if (next >= words.size()) refuse(name, "ends too early");
        return words[next++];
    }
    std::vector<Word> take(size_t count) {
        if (count > words.size() - next) refuse(name, "ends too early");
        next += count;
        return std::vector<Word>(words.begin() + (next - count), words.begin() + next);
    }
    Region region() {
        Region r;
        r.array = word(); r.start = word(); r.width = word(); r.rows = word(); r.pitch = word();
        return r;
    }
    bool at_end() const { return next == words.size(); }

  private:
    const char *name;
    std::vector<Word> words;
    size_t next;
};

const Word MAGIC = 0x47534341, VERSION = 1;
const size_t ALIGNED = 64;  // arrays begin at multiples of so many words

static Graph read_graph(const char *name, Word streams) {
    Reader in(name);
    if (in.word() != MAGIC || in.word() != VERSION) refuse(name, "is no graph of this version");
    Graph graph;
    graph.group = in.word();
    Word arrays = in.word(), tasks = in.word();
    std::vector<Word> lengths = in.take(arrays);
    std::vector<size_t> places;
    size_t total = 0;
    for (Word length : lengths) {
        places.push_back(total);
        total += (length + ALIGNED - 1) / ALIGNED * ALIGNED;
    }
    for (std::vector<Word> *all : {&graph.contents, &graph.expected}) {
        all->assign(total, 0);
        for (Word n = 0; n < arrays; ++n) {
            std::vector<Word> one = in.take(lengths[n]);
            std::copy(one.begin(), one.end(), all->begin() + places[n]);
        }
    }
    CHECK(cudaMalloc(&graph.memory, total * sizeof(Word)));
    CHECK(cudaMalloc(&graph.beginning, total * sizeof(Word)));
    CHECK(cudaMemcpy(graph.beginning, graph.contents.data(), total * sizeof(Word), cudaMemcpyHostToDevice));
    graph.tasks.resize(tasks);
    for (Word number = 0; number < tasks; ++number) {
        Task &task = graph.tasks[number];
        bool updates = in.word();
        Word items = in.word(), rounds = in.word(), span = in.word();
        task.lane = in.word() % streams;
        task.is_waited_for = false;
        Word reads = in.word(), upstream = in.word();
        Region to = in.region();
        std::vector<Region> from;
        for (Word n = 0; n < reads; ++n) from.push_back(in.region());
        task.upstream = in.take(upstream);
        task.is_plain = to.is_whole();
        for (const Region &r : from) task.is_plain = task.is_plain && r.is_whole();
        task.kernel = kernel_of(task.is_plain, updates, reads);
        if (!task.kernel || items % graph.group || !span) refuse(name, "has a task there is no kernel for");
        task.groups = items / graph.group;
        Word *out = graph.memory + places.at(to.array);
        task.plain = {number, rounds, span, out, {}};
        task.placed = {number, rounds, span, out, out, {to.start, to.width, to.pitch}, {0, 1, 1}};
        for (Word n = 0; n < reads; ++n) task.plain.reads[n] = graph.memory + places.at(from[n].array);
        if (reads) {
            task.placed.read = task.plain.reads[0];
            task.placed.from = {from[0].start, from[0].width, from[0].pitch};
        }
        std::map<Word, Word> last;  // of each stream
        for (Word other : task.upstream) {
            if (other >= number) refuse(name, "has a task that waits for a later one");
            Word lane = graph.tasks[other].lane;
            if (lane == task.lane) continue;
            if (!last.count(lane) || last[lane] < other) last[lane] = other;
        }
        for (const auto &one : last) {
            task.waits.push_back(one.second);
            graph.tasks[one.second].is_waited_for = true;
        }
    }
    if (!in.at_end()) refuse(name, "goes on after its end");
    return graph;
}

// ---- ways -----------------------------------------------------------------------------------------

typedef std::map<std::string, std::vector<double>> Samples;

static double now_us() {
    using namespace std::chrono;
    return duration<double, std::micro>(steady_clock::now().time_since_epoch()).count();
}

static void restore(Graph &graph) {
    CHECK(cudaMemcpy(graph.memory, graph.beginning, graph.contents.size() * sizeof(Word),
                     cudaMemcpyDeviceToDevice));
    CHECK(cudaDeviceSynchronize());
}

static size_t wrong_words(const Graph &graph) {
    std::vector<Word> found(graph.expected.size());
    CHECK(cudaMemcpy(found.data(), graph.memory, found.size() * sizeof(Word), cudaMemcpyDeviceToHost));
    size_t wrong = 0;
    for (size_t n = 0; n < found.size(); ++n) wrong += found[n] != graph.expected[n];
    return wrong;
}

static void launch(Graph &graph, Task &task, cudaStream_t stream) {
    void *arguments[] = {task.arguments()};
    CHECK(cudaLaunchKernel(task.kernel, dim3(task.groups), dim3(graph.group), arguments, 0, stream));
}

static size_t in_one_stream(Graph &graph, cudaStream_t stream, Samples &samples) {
    restore(graph);
    double start = now_us();
    for (Task &task : graph.tasks) launch(graph, task, stream);
    CHECK(cudaStreamSynchronize(stream));
    samples["stream"].push_back((now_us() - start) / graph.tasks.size());
    return wrong_words(graph);
}

static size_t in_streams(Graph &graph, std::vector<cudaStream_t> &streams,
                         std::vector<cudaEvent_t> &events, Samples &samples) {
    restore(graph);
    double start = now_us();
    for (size_t number = 0; number < graph.tasks.size(); ++number) {
        Task &task = graph.tasks[number];
        cudaStream_t stream = streams[task.lane];
        for (Word other : task.waits) CHECK(cudaStreamWaitEvent(stream, events[other], 0));
        launch(graph, task, stream);
        if (task.is_waited_for) CHECK(cudaEventRecord(events[number], stream));
    }
    CHECK(cudaDeviceSynchronize());
    samples["streams"].push_back((now_us() - start) / graph.tasks.size());
    return wrong_words(graph);
}

static size_t as_graph(Graph &graph, cudaStream_t stream, Samples &samples) {
    double tasks = graph.tasks.size();
    std::vector<cudaGraphNode_t> nodes(graph.tasks.size()), behind;
    restore(graph);
    double start = now_us();
    cudaGraph_t made;
    CHECK(cudaGraphCreate(&made, 0));
    for (size_t number = 0; number < graph.tasks.size(); ++number) {
        Task &task = graph.tasks[number];
        behind.clear();
        for (Word other : task.upstream) behind.push_back(nodes[other]);
        void *arguments[] = {task.arguments()};
        cudaKernelNodeParams params = {};
        params.func = const_cast<void *>(task.kernel);
        params.gridDim = dim3(task.groups);
        params.blockDim = dim3(graph.group);
        params.kernelParams = arguments;
        CHECK(cudaGraphAddKernelNode(&nodes[number], made, behind.data(), behind.size(), &params));
    }
    double constructed = now_us();
    cudaGraphExec_t ready;
    CHECK(cudaGraphInstantiate(&ready, made, 0));
    double instantiated = now_us();
    CHECK(cudaGraphLaunch(ready, stream));
    CHECK(cudaStreamSynchronize(stream));
    double ended = now_us();
    size_t wrong = wrong_words(graph);
    restore(graph);
    double again = now_us();
    CHECK(cudaGraphLaunch(ready, stream));
    CHECK(cudaStreamSynchronize(stream));
    samples["replay"].push_back((now_us() - again) / tasks);
    wrong += wrong_words(graph);
    samples["construct"].push_back((constructed - start) / tasks);
    samples["instantiate"].push_back((instantiated - constructed) / tasks);
    samples["first"].push_back((ended - instantiated) / tasks);
    samples["new_graph"].push_back((ended - start) / tasks);
    CHECK(cudaGraphExecDestroy(ready));
    CHECK(cudaGraphDestroy(made));
    return wrong;
}

static void measure(const char *name, int rounds, Word count) {
    Graph graph = read_graph(name, count);
    std::vector<cudaStream_t> streams(count);
    for (cudaStream_t &stream : streams) CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    std::vector<cudaEvent_t> events(graph.tasks.size());
    for (size_t n = 0; n < events.size(); ++n)
        if (graph.tasks[n].is_waited_for)
            CHECK(cudaEventCreateWithFlags(&events[n], cudaEventDisableTiming));
    Samples samples;
    std::map<std::string, size_t> wrong;
    for (int round = -1; round < rounds; ++round) {  // the first one is thrown away
        for (int turn = 0; turn < 3; ++turn) {
            switch ((turn + round + 1) % 3) {
                case 0: wrong["stream"] += in_one_stream(graph, streams[0], samples); break;
                case 1: wrong["streams"] += in_streams(graph, streams, events, samples); break;
                case 2: wrong["graph"] += as_graph(graph, streams[0], samples); break;
            }
        }
        if (round < 0) samples.clear();
    }
    printf("{\"tasks\": %zu, \"streams\": %u, \"wrong\": {", graph.tasks.size(), count);
    const char *comma = "";
    for (const auto &one : wrong) {
        printf("%s\"%s\": %zu", comma, one.first.c_str(), one.second);
        comma = ", ";
    }
    printf("}, \"us_per_task\": {");
    comma = "";
    for (const auto &one : samples) {
        printf("%s\"%s\": [", comma, one.first.c_str());
        for (size_t n = 0; n < one.second.size(); ++n) printf("%s%.5f", n ? ", " : "", one.second[n]);
        printf("]");
        comma = ", ";
    }
    printf("}}\n");
    fflush(stdout);
    for (size_t n = 0; n < events.size(); ++n)
        if (graph.tasks[n].is_waited_for) CHECK(cudaEventDestroy(events[n]));
    for (cudaStream_t stream : streams) CHECK(cudaStreamDestroy(stream));
    CHECK(cudaFree(graph.memory));
    CHECK(cudaFree(graph.beginning));
}

int main(int argc, char **argv) {
    int rounds = argc > 3 ? atoi(argv[1]) : 0, streams = argc > 3 ? atoi(argv[2]) : 0;
    if (rounds < 1 || streams < 1) {
        fprintf(stderr, "usage: %s rounds streams file...\n", argv[0]);
        return 2;
    }
    for (int n = 3; n < argc; ++n) measure(argv[n], rounds, (Word)streams);
    return 0;
}
