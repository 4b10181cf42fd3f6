// Records the tasks of an epoch, and writes the words that the scheduler reads. acs_cl/scheduler/layout.py
// describes these; tests/test_epochs.py has the model.

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hazards/single.hpp"

namespace acs_cl {

constexpr std::size_t RECORD_BYTES = 128, HEAD_BYTES = 64, INLINE_BYTES = RECORD_BYTES - HEAD_BYTES;
constexpr std::uint32_t RECORD_WORDS = RECORD_BYTES / 4, HEIR = 1, SUCCESSORS = 2, N_SUCCESSORS = 3,
                        TILES = 4, ITEMS = 5, TILE_ITEMS = 6, ARGS = 7, SHAPE = 8, LOCAL = 9,
                        WHEN = 10, HEADER_WORDS = 32;
constexpr std::uint32_t FUSED = 0x100, GANG = 0x200, PLAIN = 0x400,
                        SPAWNS = 0x800, ALIKE = 0x2000;  // in the first word
constexpr std::uint32_t TASK_BITS = 20, MOST_TILES = 1u << (32 - TASK_BITS);

using RecordWords = std::array<std::uint32_t, RECORD_WORDS>;

// The edges of an epoch. If a task is the only upstream of others, the first of these is its sole successor.
struct Graph {
    struct Edge {
        std::uint32_t above, below;
    };
    std::vector<std::uint32_t> heirs;    // sole successor of each task, plus one; 0: none
    std::vector<std::uint32_t> counts;   // how many others each task waits for; 0 for a sole successor
    std::vector<std::uint32_t> initial;  // tasks that wait for none
    std::vector<Edge> edges;             // edges except those to sole successors, by downstream task

    std::uint32_t tasks() const { return std::uint32_t(heirs.size()); }
    void clear() {
        for (std::vector<std::uint32_t> *list : {&heirs, &counts, &initial}) list->clear();
        edges.clear();
    }

    // Returns also the edges to sole successors.
    std::vector<Edge> all_edges() const {
        std::vector<std::uint32_t> above(tasks());
        for (std::uint32_t task = 0; task < tasks(); task++)
            if (heirs[task]) above[heirs[task] - 1] = task + 1;
        std::vector<Edge> found;
        for (std::uint32_t task = 0, edge = 0; task < tasks(); task++) {
            if (above[task]) found.push_back({above[task] - 1, task});
            for (; edge < edges.size() && edges[edge].below == task; edge++) found.push_back(edges[edge]);
        }
        return found;
    }

    // Returns the graph with tasks of higher priority first among those that become ready together. Empty: program
    // order. `slots`: tasks that a window takes at the start, 0: no window. Later tasks of a window wait until they
    // are in it. Then no task has a sole successor, because that would run without being in the window.
    Graph arranged(const std::vector<double> &priority, std::uint32_t slots) const {
        Graph found{std::vector<std::uint32_t>(tasks()), std::vector<std::uint32_t>(tasks()), initial, all_edges()};
        for (const Edge &edge : found.edges) found.counts[edge.below]++;
        if (!priority.empty()) {
            std::stable_sort(found.initial.begin(), found.initial.end(), [&](std::uint32_t a, std::uint32_t b) {
                return priority[a] > priority[b];
            });
            std::stable_sort(found.edges.begin(), found.edges.end(), [&](const Edge &a, const Edge &b) {
                return priority[a.below] > priority[b.below];
            });
        }
        if (slots) {
            auto is_outside = [&](std::uint32_t task) { return task >= slots; };
            found.initial.erase(std::remove_if(found.initial.begin(), found.initial.end(), is_outside),
                                found.initial.end());
            for (std::uint32_t task = slots; task < tasks(); task++) found.counts[task]++;
        } else {
            auto inherits = [&](const Edge &edge) {
                if (found.counts[edge.below] != 1 || found.heirs[edge.above]) return false;
                found.heirs[edge.above] = edge.below + 1;
                found.counts[edge.below] = 0;
                return true;
            };
            found.edges.erase(std::remove_if(found.edges.begin(), found.edges.end(), inherits), found.edges.end());
        }
        return found;
    }
};

// What a recorder has for each task.
struct TaskLists {
    struct Link {
        explicit Link(std::uint32_t of) : chain(of) {}
        std::uint32_t chain;
        bool is_followed = false;
    };

    std::vector<RecordWords> records;  // one more if `Recorder::place` was called
    Graph graph;
    std::vector<Link> links;            // of each task
    std::vector<std::uint32_t> widest;  // tiles of the widest task of each chain

    void clear() {
        records.clear();
        graph.clear();
        links.clear();
        widest.clear();
    }
};

class Recorder : Single, public TaskLists {
public:
    // An epoch of thousands of tasks fills half a megabyte, which the system would give and take back for each epoch.
    // So a recorder takes the memory of one that is gone. The GIL is held.
    Recorder() {
        if (spares().empty()) return;
        lists() = std::move(spares().back());
        spares().pop_back();
    }
    ~Recorder() {
        if (spares().size() >= MOST_SPARE || records.empty()) return;
        clear();
        spares().push_back(std::move(lists()));
    }

    std::string extra;
    std::size_t entries = 0;  // tiles of all tasks
    std::uint32_t width = 0;  // most tiles that can be ready or running at one time
    std::vector<std::pair<std::uint32_t, std::uint32_t>> patches;

    std::uint32_t tasks() const { return graph.tasks(); }

    // Adds a task behind those of `others`, and returns its number. Null: the arguments are in the record, or there
    // is no shape.
    std::uint32_t add(std::string_view record, const std::string_view *blob,
                      const std::string_view *shape, const std::vector<std::uint32_t> &others) {
        std::uint32_t task = tasks();
        if (record.size() != (blob ? HEAD_BYTES : RECORD_BYTES))
            throw std::invalid_argument("a record has 128 bytes, a head 64");
        for (std::uint32_t other : others)
            if (other >= task) throw std::out_of_range("a task follows only those before it");
        char *own = place({});
        std::memcpy(own, record.data(), record.size());
        bool fits = blob && blob->size() <= INLINE_BYTES;
        if (fits) std::memcpy(own + HEAD_BYTES, blob->data(), blob->size());
        return add(fits ? nullptr : blob, shape, others);
    }

    // Returns the place of the next record, filled like another one.
    char *place(const RecordWords &like) {
        records.resize(tasks());
        records.push_back(like);
        return reinterpret_cast<char *>(records.back().data());
    }

    // Adds the record that `place` returned. Only a blob that does not fit is missing.
    std::uint32_t add(const std::string_view *blob, const std::string_view *shape,
                      const std::vector<std::uint32_t> &others) {
        std::uint32_t task = tasks();
        entries += tiles(task);
        if (blob) patches.emplace_back(task * RECORD_WORDS + ARGS, put(*blob));
        if (shape) {
            auto [place, is_new] = shapes_.try_emplace(std::string(*shape), 0);
            if (is_new) place->second = put(*shape);
            patches.emplace_back(task * RECORD_WORDS + SHAPE, place->second);
        }
        follow(task, others);
        graph.heirs.push_back(0);
        graph.counts.push_back(0);
        if (others.empty()) {
            graph.initial.push_back(task);
        } else if (others.size() == 1 && !graph.heirs[others[0]]) {
            graph.heirs[others[0]] = task + 1;
        } else {
            graph.counts.back() = std::uint32_t(others.size());
            for (std::uint32_t other : others) graph.edges.push_back({other, task});
        }
        return task;
    }

    // Returns its graph, or `made`, which holds one for a window of so many tasks (0: all) or for priorities.
    const Graph &arranged(Graph &made, const std::vector<double> &priority, std::uint32_t window) const {
        if (!priority.empty() && priority.size() != tasks())
            throw std::invalid_argument("each task has a priority, or none has");
        if (!window && priority.empty()) return graph;
        return made = graph.arranged(priority, std::min(window, std::uint32_t(tasks())));
    }

    // Places of the parts in an image of `blocks` blocks, of which the first is filled.
    struct Layout {
        std::uint32_t entries, capacity, rows, successors, extra, initial, counts, blocks,
            block_words, words;
    };

    // `graph`: its own, or the arranged one. `spare`: slots of the ring beyond the entries.
    Layout layout(const Graph &graph, std::uint32_t spare, std::uint32_t blocks) const {
        Layout at{};
        std::uint32_t n = tasks(), published = std::uint32_t(entries);
        for (std::uint32_t task : graph.initial) at.entries += tiles(task);
        std::uint64_t slots = std::uint64_t(published) + spare + at.entries;
        if (slots >> 31) throw std::length_error("an epoch has too many tiles");
        for (at.capacity = 32; at.capacity <= slots;) at.capacity *= 2;
        at.rows = (n + 31) / 32;
        at.successors = HEADER_WORDS + n * RECORD_WORDS;
        at.extra = (at.successors + std::uint32_t(graph.edges.size()) + 3) / 4 * 4;
        at.initial = at.extra + std::uint32_t(extra.size() / 4);
        at.counts = at.initial + at.entries;
        at.blocks = (at.counts + n + 31) / 32 * 32;
        at.block_words = (STATE_WORD + 64 * at.rows + at.capacity + 31) / 32 * 32;
        const std::uint64_t words = at.blocks + std::uint64_t(blocks) * at.block_words;
        if (words >> 32) throw std::length_error("an epoch has too many tiles");
        at.words = std::uint32_t(words);
        return at;
    }

    // Writes everything into `at.words` words that are zero.
    void write(const Graph &graph, const Layout &at, std::uint32_t *words, std::uint32_t window, bool gang) const {
        std::uint32_t n = tasks();
        const std::uint32_t header[] = {
            VERSION, n, HEADER_WORDS, at.successors, std::uint32_t(graph.edges.size()), at.blocks,
            at.block_words, at.capacity - 1, at.initial, at.entries, at.counts, window, 0, at.words, 0};
        std::uint32_t check = 0;
        for (std::uint32_t word : header) check = (check ^ word) * 16777619u;
        std::memcpy(words, header, sizeof(header));
        words[HEADER_CHECK] = check;

        std::uint32_t *own = words + HEADER_WORDS;
        if (n) std::memcpy(own, records.data(), n * RECORD_BYTES);
        for (auto [place, put] : patches) own[place] = at.extra + put;
        std::memcpy(words + at.extra, extra.data(), extra.size());
        std::copy(graph.counts.begin(), graph.counts.end(), words + at.counts);
        write_successors(graph.edges, own, words + at.successors);
        mark(graph.heirs, own, gang);

        std::uint32_t *block = words + at.blocks, *state = block + STATE_WORD;
        block[32] = at.entries;
        block[UNFINISHED] = n;
        for (std::uint32_t task = 0; task < n; task++) {
            std::uint32_t place = task % 32 * at.rows + task / 32;
            state[place] = graph.counts[task];
            state[32 * at.rows + place] = tiles(task);
        }
        std::uint32_t *slots = state + 64 * at.rows, slot = 0;
        for (std::uint32_t task : graph.initial)
            for (std::uint32_t tile = 0; tile < tiles(task); tile++, slot++) {
                std::uint32_t entry = tile << TASK_BITS | (task + 1);
                words[at.initial + slot] = entry;
                slots[slot % 32 * (at.capacity / 32) + slot / 32] = entry;
            }
    }

    // The high half of the word is the number of the first tile.
    std::uint32_t tiles(std::uint32_t task) const { return records[task][TILES] & 0xFFFF; }

private:
    static constexpr std::uint32_t VERSION = 0xAC500003, HEADER_CHECK = 15, UNFINISHED = 64,
                                   STATE_WORD = 192;

    // A task, with its number of tiles less one.
    std::uint32_t reference(std::uint32_t task) const {
        return (tiles(task) - 1) << TASK_BITS | (task + 1);
    }

    // Writes the successors of each task without its sole successor, in the order in which they came.
    void write_successors(const std::vector<Graph::Edge> &edges, std::uint32_t *own, std::uint32_t *list) const {
        if (edges.empty()) return;
        for (const Graph::Edge &edge : edges) own[edge.above * RECORD_WORDS + N_SUCCESSORS]++;
        std::vector<std::uint32_t> next(tasks());
        for (std::uint32_t task = 0, place = 0; task < tasks(); task++) {
            own[task * RECORD_WORDS + SUCCESSORS] = next[task] = place;
            place += own[task * RECORD_WORDS + N_SUCCESSORS];
        }
        for (const Graph::Edge &edge : edges) list[next[edge.above]++] = reference(edge.below);
    }

    // Writes the sole successors, and marks direct hand-overs: a task of one tile whose only successor is a sole
    // successor of one tile, and tasks of several tiles with such successors.
    void mark(const std::vector<std::uint32_t> &heirs, std::uint32_t *own, bool gang) const {
        for (std::uint32_t task = 0; task < tasks(); task++, own += RECORD_WORDS) {
            if (!heirs[task]) continue;
            bool alone = tiles(task) == 1, single = tiles(heirs[task] - 1) == 1;
            own[HEIR] = reference(heirs[task] - 1);
            if (own[0] & SPAWNS) continue;  // its last tile may be a child's
            if (alone && single && !own[N_SUCCESSORS]) {
                bool is_alike = is_like(own + (heirs[task] - 1 - task) * RECORD_WORDS, own);
                own[0] |= FUSED | (is_alike ? ALIKE : 0);
            } else if (gang && !alone && !single) {
                own[0] |= GANG;
            }
        }
    }

    // Whether a task without marks differs from another at most in its arguments, which are in its record, and in
    // its sole successor. No other task may wait for it.
    static bool is_like(const std::uint32_t *task, const std::uint32_t *other) {
        if (!(task[0] & PLAIN) || task[N_SUCCESSORS]) return false;
        for (std::uint32_t word : {0u, TILES, ITEMS, TILE_ITEMS, LOCAL})
            if (task[word] != other[word]) return false;
        return true;
    }

    // Puts tasks into chains: each goes behind the widest of its upstream that is the end of a chain. Tasks of one
    // chain wait for each other, so only one of them is ready or running at one time. The widest task of each chain
    // therefore bounds the width.
    void follow(std::uint32_t task, const std::vector<std::uint32_t> &others) {
        std::uint32_t above = task, wide = records[task][0] & SPAWNS ? MOST_TILES : tiles(task);
        for (std::uint32_t other : others)
            if (!links[other].is_followed && (above == task || tiles(other) >= tiles(above)))
                above = other;
        std::uint32_t chain = std::uint32_t(widest.size());
        if (above == task) {
            widest.push_back(0);
        } else {
            chain = links[above].chain;
            links[above].is_followed = true;
        }
        links.emplace_back(chain);  // in place: a processor waits where it reads at once what it wrote in parts
        if (wide <= widest[chain]) return;
        width += wide - widest[chain];
        widest[chain] = wide;
    }

    static constexpr std::size_t MOST_SPARE = 3;  // one epoch is open, and two are on the device

    TaskLists &lists() { return *this; }
    // Those of recorders that are gone. They are empty, and have room.
    static std::vector<TaskLists> &spares() {
        static auto *const all = new std::vector<TaskLists>;  // which outlives all recorders
        return *all;
    }

    // Returns its place, in words.
    std::uint32_t put(std::string_view data) {
        std::uint32_t place = std::uint32_t(extra.size() / 4);
        extra += data;
        extra.resize((extra.size() + 15) / 16 * 16, '\0');
        return place;
    }

    std::unordered_map<std::string, std::uint32_t> shapes_;
};

}  // namespace acs_cl
