// A remembered epoch: the records of one that was sent, what its launches touch, and how long it took. The forecast
// compares launches with it. docs/design/prediction.md says why; emu/reference/forecast.py is the model.

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "epoch/recorder.hpp"
#include "hazards/bits.hpp"
#include "hazards/merged.hpp"
#include "hazards/touched.hpp"
#include "python/nb.hpp"

namespace acs_cl {

constexpr std::size_t SHAPE_BYTES = 40;  // as in acs_cl/scheduler/layout.py
constexpr std::size_t MOST_PIECES = 16;    // changed records that are written one by one

// The words of 8 bytes of a record's arguments that are addresses.
struct Addresses {
    std::uint64_t bits[2] = {};

    // Adds an address that begins there.
    void add(std::size_t at) {
        for (std::size_t byte : {at, at + 7}) bits[byte / 512] |= 1ull << byte / 8 % 64;
    }
    bool has(std::size_t word) const { return bits[word / 64] >> word % 64 & 1; }
};

// A launch for the open epoch, in the form for the forecast.
struct Asked {
    const char *head;
    std::string_view arguments;  // in the record they are only as long as there is room
    std::string_view shape;
    const Touched &touched;
    const Addresses &addresses;
};

// What the call of a launch was: the head of its record, and its arrays as the program gave them. A call like it, with
// the same numbers, is the same launch, whatever is known of the bytes that it touches.
struct Call {
    std::uint64_t head;  // `Head::version`, which says the kernel, the sizes and the scheduler, too
    std::vector<NodePointer> arrays;
    bool overwrites;  // as `Touched` has it
};

// A task of a remembered epoch, with its latest numbers.
struct Expected {
    RecordWords words;
    std::string blob, shape;  // arguments that do not fit into the record, else empty
    std::uint32_t first, many, reads, writes;  // nodes
    Addresses addresses;
    PyObject *name;
    bool is_changed = false;  // the device has older numbers
    std::shared_ptr<const Call> call = nullptr;  // of the core, once a launch like it was counted; or null

    char *head() { return reinterpret_cast<char *>(words.data()); }
    const char *head() const { return reinterpret_cast<const char *>(words.data()); }
    char *arguments() { return blob.empty() ? head() + HEAD_BYTES : blob.data(); }
    const char *arguments() const { return const_cast<Expected *>(this)->arguments(); }
    std::size_t argument_bytes() const { return blob.empty() ? INLINE_BYTES : blob.size(); }
    bool begins_launch() const { return !(words[TILES] >> 16); }  // or is it a later band of one?
};

// Bytes for a place in a region.
struct Write {
    std::size_t place;
    std::string bytes;
};

enum class Likeness { OTHER, NUMBERS, SAME };

// The bytes that epochs on the device touch together. Epochs of one loop often touch the same bytes, however many
// launches they have. They share this, so that entering one behind another meets only itself.
struct Joint {
    std::vector<Span> reads, writes;
    std::unique_ptr<Footprint> footprint;
};

class RememberedEpoch;
using RememberedPointer = std::shared_ptr<RememberedEpoch>;

// Sections of an epoch that are tried, interleaved with the whole one. Then the clock decides which of them stay.
struct Trial {
    RememberedPointer whole;
    std::uint32_t many, runs = 0, turn = 0;
    double sections_s = 1e9;  // least time from the first launch to the end
    double began = 0;         // when the first launch came of sections that are under way; 0: none are
    std::uint32_t next = 0;   // which of these comes next
};

// An epoch that is timed, from its first launch on. Of sections only the last one is, from the first launch of all.
struct Timed {
    RememberedPointer of;
    double began = 0;
};

// A remembered epoch: the records of one that was sent, kept for comparison.
class RememberedEpoch : Single {
public:
    explicit RememberedEpoch(PyObject *of) : scheduler(nb::borrow(of)) {}
    ~RememberedEpoch() {
        for (Expected &task : tasks) Py_DECREF(task.name);
    }

    std::vector<Expected> tasks;
    std::vector<NodePointer> nodes;
    nb::object scheduler;
    std::uint32_t came = 1;
    std::int64_t gained = 0;      // launches that were only counted, less those that were recorded after all
    std::uint32_t slow = 0;       // times in a row that its footprint took long
    std::int64_t recorded_ns = 0; // least time that recording its launches took; 0: unknown
    bool is_forgotten = false;    // it is forgotten, but still in use
    bool goes_on = false;         // a longer epoch began like it
    nb::object resident;  // a Python object, once it stays on the device
    std::shared_ptr<Joint> joint;
    std::vector<std::uint32_t> words;  // as the device has them, without those in `changed`
    std::vector<std::uint32_t> changed;
    std::weak_ptr<RememberedEpoch> next;  // the epoch that followed it last
    std::vector<Graph::Edge> edges;  // until it is known where it should be cut
    std::uint32_t runs = 0;          // that were timed,
    double host_s = 1e9, device_s = 1e9, whole_s = 1e9;  // and the least times: until it was sent, then, and both
    bool is_tried = false;           // interleaved with its sections, which lead to it
    bool is_section = false;         // it ends with its last launch, however short it is
    std::shared_ptr<Trial> trial;    // of sections, until the clock has decided
    std::uint32_t position = 0;      // among these; later ones are only followed right behind the one before
    std::weak_ptr<RememberedEpoch> behind;  // the section behind it

    std::size_t size() const { return tasks.size(); }
    bool is_resident() const { return bool(joint); }
    bool is_timed() const { return trial || !edges.empty(); }

    // Returns an epoch of some of its tasks.
    std::shared_ptr<RememberedEpoch> part(std::size_t first, std::size_t end) const {
        auto made = std::make_shared<RememberedEpoch>(scheduler.ptr());
        for (std::size_t which = first; which < end; which++) {
            const Expected &task = tasks[which];
            made->tasks.push_back(task);
            made->tasks.back().first = std::uint32_t(made->nodes.size());
            made->tasks.back().is_changed = false;
            Py_INCREF(task.name);
            const auto own = nodes.begin() + std::ptrdiff_t(task.first);
            made->nodes.insert(made->nodes.end(), own, own + std::ptrdiff_t(task.many));
        }
        made->seal();
        return made;
    }

    // Returns the ends of sections of `least` tasks, behind whole launches. Bands of one are recorded at once, so nothing
    // is sent between.
    std::vector<std::size_t> between_launches(const std::vector<std::size_t> &ends, std::size_t least) const {
        std::vector<std::size_t> found;
        std::size_t first = 0;
        for (std::size_t end : ends) {
            while (end < size() && !tasks[end].begins_launch()) end++;
            if (end >= first + least && end + least <= size()) found.push_back(first = end);
        }
        found.push_back(size());
        return found;
    }

    // Asks for what launches behind this one are compared with, which is more than the processor's caches keep.
    void fetch_behind(std::size_t at) const {
        if (at + 2 < size()) prefetch_all(&tasks[at + 2]);
        const Call *next = at + 1 < size() ? tasks[at + 1].call.get() : nullptr;
        if (next) prefetch_all(next);
    }

    Touched touched(const Expected &task) const {
        Touched touched;
        for (std::uint32_t at = 0; at < task.many; at++)
            touched.add(nodes[task.first + at].get(), task.reads >> at & 1, task.writes >> at & 1);
        return touched;
    }

    Likeness compare(std::size_t at, const Asked &one) {
        const Expected &task = tasks[at];
        if (task.many != one.touched.many || task.reads != one.touched.reads ||
            task.writes != one.touched.writes ||
            std::memcmp(task.head(), one.head, HEAD_BYTES) ||
            task.argument_bytes() != one.arguments.size() || task.shape != one.shape)
            return Likeness::OTHER;
        for (std::uint32_t node = 0; node < task.many; node++)
            if (!is_same(nodes[task.first + node], one.touched.nodes[node])) return Likeness::OTHER;
        return arguments(task, one.arguments.data());
    }

    // Ends the collection of tasks. Each of them gets a number for the beginning up to it.
    void seal() {
        std::uint64_t so_far = 0;
        const auto mix = [&so_far](std::uint64_t word) {
            so_far = (so_far ^ word) * 0x9E3779B97F4A7C15u;
            so_far ^= so_far >> 29;
        };
        prefixes_.reserve(size());
        for (const Expected &task : tasks) {
            std::uint64_t words[HEAD_BYTES / 8];
            std::memcpy(words, task.head(), HEAD_BYTES);
            std::for_each(std::begin(words), std::end(words), mix);
            mix(std::uint64_t(task.reads) << 32 | task.writes);
            for (std::uint32_t at = 0; at < task.many; at++) {
                const Span &span = nodes[task.first + at]->span();
                mix(std::uint64_t(span.base));
                mix(std::uint64_t(span.start));
            }
            prefixes_.push_back(so_far);
        }
    }

    // Whether the first `many` tasks may be like those of another epoch. Never wrongly no.
    bool seems_to_begin_like(const RememberedEpoch &other, std::size_t many) const {
        return !many || prefixes_[many - 1] == other.prefixes_[many - 1];
    }

    // Whether they are. To compare each task with those of all remembered epochs would take longer than recording.
    bool begins_like(const RememberedEpoch &other, std::size_t many) const {
        if (!seems_to_begin_like(other, many)) return false;
        for (std::size_t at = 0; at < many; at++) {
            const Expected &mine = tasks[at], &theirs = other.tasks[at];
            if (mine.many != theirs.many || mine.reads != theirs.reads ||
                mine.writes != theirs.writes ||
                std::memcmp(mine.head(), theirs.head(), HEAD_BYTES) ||
                mine.argument_bytes() != theirs.argument_bytes() || mine.shape != theirs.shape)
                return false;
            for (std::uint32_t node = 0; node < mine.many; node++)
                if (!(nodes[mine.first + node]->span() == other.nodes[theirs.first + node]->span()))
                    return false;
            if (arguments(mine, theirs.arguments()) == Likeness::OTHER) return false;
        }
        return true;
    }

    // Returns the bytes of all tasks, for the index.
    std::shared_ptr<Joint> touched() const {
        std::vector<Span> reads, writes;
        for (const Expected &task : tasks)
            for (std::uint32_t at = 0; at < task.many; at++) {
                const Span &span = nodes[task.first + at]->span();
                if (task.reads >> at & 1) reads.push_back(span);
                if (task.writes >> at & 1) writes.push_back(span);
            }
        return std::make_shared<Joint>(Joint{merged(std::move(reads)), merged(std::move(writes)), nullptr});
    }

    // Takes the other numbers of a launch that is like a task.
    void take_numbers(std::size_t at, const char *from) {
        Expected &task = tasks[at];
        std::memcpy(task.arguments(), from, task.argument_bytes());
        if (is_resident() && !std::exchange(task.is_changed, true))
            changed.push_back(std::uint32_t(at));
    }

    // Takes the numbers of an epoch like it that is not on the device.
    void take_all_numbers(RememberedEpoch &from) {
        for (std::size_t at = 0; at < size(); at++) take_numbers(at, from.tasks[at].arguments());
    }

    // Notes how long recording its launches took.
    void take_time(std::int64_t ns) { recorded_ns = recorded_ns ? std::min(recorded_ns, ns) : ns; }

    // Returns the words to write before its next run.
    std::vector<Write> take_changes() {
        std::vector<Write> writes;
        if (changed.empty()) return writes;
        std::size_t first = SIZE_MAX, last = 0;
        std::vector<std::pair<std::size_t, std::size_t>> pieces;
        for (std::uint32_t at : changed) {
            Expected &task = tasks[at];
            task.is_changed = false;
            const std::size_t record = HEADER_WORDS + at * RECORD_WORDS;
            const std::size_t place =
                task.blob.empty() ? record + HEAD_BYTES / 4 : words[record + ARGS];
            std::memcpy(&words[place], task.arguments(), task.argument_bytes());
            const std::size_t many = (task.argument_bytes() + 3) / 4;
            pieces.emplace_back(place, many);
            first = std::min(first, place);
            last = std::max(last, place + many);
        }
        changed.clear();
        if (pieces.size() > MOST_PIECES) pieces = {{first, last - first}};
        for (auto [place, many] : pieces)
            writes.push_back({4 * place, {reinterpret_cast<const char *>(&words[place]), 4 * many}});
        return writes;
    }

private:
    std::vector<std::uint64_t> prefixes_;

    // A node that was taken out of the index and came back is another node.
    static bool is_same(NodePointer &mine, Node *other) {
        if (mine.get() == other) return true;
        if (!(mine->span() == other->span())) return false;
        mine = NodePointer(other);
        return true;
    }

    static Likeness arguments(const Expected &task, const char *others) {
        const char *mine = task.arguments();
        const std::size_t nbytes = task.argument_bytes();
        if (!std::memcmp(mine, others, nbytes)) return Likeness::SAME;
        for (std::size_t at = 0; at < nbytes; at += 8)
            if (task.addresses.has(at / 8) &&
                std::memcmp(mine + at, others + at, std::min<std::size_t>(8, nbytes - at)))
                return Likeness::OTHER;
        return Likeness::NUMBERS;
    }
};

}  // namespace acs_cl
