// Hazards and footprints. Their models, emu/reference/hazards.py and footprints.py, say what they do and why. The
// results are the same, edge by edge and kind by kind. Sweeps are the same, too, except for nodes that arrays hold.

#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "hazards/bits.hpp"
#include "hazards/live.hpp"
#include "hazards/node.hpp"
#include "hazards/places.hpp"
#include "hazards/span.hpp"

namespace acs_cl {

constexpr int GROUP = 4;  // words that a wide register has
constexpr std::size_t MOST_KNOWN = 32;  // bits of a word
constexpr std::size_t SWEPT_AT = 16384;
constexpr std::size_t MOST_NEAR = 8;  // of nodes that are kept for arrays only
constexpr std::size_t WIDE = 32;  // neighbours from which on those without launches are asleep
constexpr std::uint32_t REST_EACH = 4;  // one in this many looks at a wide node puts them to sleep

enum Kind : std::uint8_t { RAW, WAR, WAW, REUSE, ANY, KINDS };

struct Edge {
    std::int64_t upstream;
    Kind kind;
};

// The edges of a launch, one after another in memory.
struct Edges {
    const Edge *first = nullptr;
    std::size_t many = 0;

    const Edge *begin() const { return first; }
    const Edge *end() const { return first + many; }
};

// Nodes in the order in which they came, each with whether it is written.
class NodeMap {
public:
    std::vector<std::pair<NodePointer, bool>> items;  // null if one was taken out

    const std::pair<NodePointer, bool> *find(const Node *node) const {
        auto found = places_.find(node);
        return found == places_.end() ? nullptr : &items[found->second];
    }

    void set(const NodePointer &node, bool written) {
        auto [place, is_new] = places_.try_emplace(node.get(), items.size());
        if (is_new)
            items.emplace_back(node, written);
        else
            items[place->second].second = written;
    }

    void erase(const Node *node) {
        auto found = places_.find(node);
        if (found == places_.end()) return;
        items[found->second].first = {};
        places_.erase(found);
    }

    void clear() {
        items.clear();
        places_.clear();
    }

    bool empty() const { return places_.empty(); }

private:
    std::unordered_map<const Node *, std::size_t> places_;
};

// Some nodes, one after another in memory.
struct Nodes {
    Nodes() = default;
    Nodes(Node *const *from, std::size_t so_many) : first(from), many(so_many) {}
    Nodes(const std::vector<Node *> &all) : Nodes(all.data(), all.size()) {}

    Node *const *first = nullptr;
    std::size_t many = 0;

    Node *const *begin() const { return first; }
    Node *const *end() const { return first + many; }
};

// The nodes that a band of a launch touches.
struct Band {
    std::vector<Node *> reads, writes;
};

class Footprint;

// Live replay records, which stand for whole replays. Their numbers are negative.
struct ReplayRecords {
    struct Record {
        std::int64_t last = 0;  // the latest launch that it stands for
        Footprint *footprint = nullptr;  // null when that is gone
    };

    struct Dropped {
        std::int64_t number;
        std::vector<std::int64_t> bases;
    };

    std::unordered_map<std::int64_t, Record> by_number;
    std::deque<Dropped> dropped;
};

// The bytes that a segment touches.
class Footprint : Single {
public:
    Footprint(std::int64_t record, const std::vector<Span> &reads, const std::vector<Span> &writes,
              std::shared_ptr<ReplayRecords> records);
    ~Footprint();

    const std::int64_t record;  // the number of its replay record
    NodeMap nodes, met;
    bool met_all = true;  // `met` may be everything
    std::vector<std::pair<Span, bool>> fresh;  // spans that have no nodes yet
    std::unordered_set<std::int64_t> bases;

private:
    std::shared_ptr<ReplayRecords> records_;
};

class Hazards : Single {
public:
    Hazards() : records_(std::make_shared<ReplayRecords>()) {}

    // Returns the node of a span, which is not `EVERYTHING`. Makes a new one if needed. `before`: what it was when the
    // same array asked last, or null.
    NodePointer node(const Span &span, const Node *before = nullptr);
    // Whether it is still in this index.
    bool has(const Node &node) const { return node.index == index_; }

    // Returns the edges of launch `number`, which is live from now on. Valid until the next call. `read_too`: which of
    // the first `MOST_KNOWN` written nodes are surely among the read ones. Their writers are known by then.
    Edges enter(std::int64_t number, Nodes reads, Nodes writes, std::uint32_t read_too = 0);
    // Does the same for the bands of one launch, numbered from `first` on, which do not see each other. No two of
    // them write the same node.
    std::vector<std::vector<Edge>> enter_many(std::int64_t first, const std::vector<Band> &bands);
    // Returns all live launches that the next one would share bytes with, if one of both writes them.
    std::vector<std::int64_t> sharers(Nodes reads, Nodes writes);
    // Enters a launch that may touch any memory.
    Edges enter_barrier(std::int64_t number);
    Edges enter_footprint(std::int64_t number, Footprint &footprint);

    std::unique_ptr<Footprint> footprint(const std::vector<Span> &reads,
                                         const std::vector<Span> &writes, const Footprint *before);

    // Gives the footprint these spans from the next replay on, some of them written, in place of those in `base`.
    void move(Footprint &footprint, std::int64_t base,
              const std::vector<std::pair<Span, bool>> &spans);

    void retire(std::int64_t number);
    std::vector<std::int64_t> users(std::int64_t base);
    bool is_used(std::int64_t base);
    void forget(std::int64_t base);
    // Leaves launches that touch a base to Python, or to the core again, which is the default.
    void leave(std::int64_t base) { left_.insert(base); }
    void take_up(std::int64_t base) { left_.erase(base); }
    bool leaves(const Span &span) const { return !left_.empty() && left_.count(span.base); }
    void inherit(std::int64_t base, const std::vector<std::int64_t> &users);
    bool is_live(std::int64_t number) const { return live_.has(number); }

    std::size_t live() const { return live_.size() - records_->by_number.size(); }
    std::size_t spans() const { return nodes_.size(); }
    std::size_t held() const;  // entries of all lists of all nodes

    std::uint64_t edges[KINDS] = {};
    std::uint64_t pruned = 0;
    std::uint64_t compared = 0;  // spans that new ones may have met
    std::uint64_t listed = 0;    // neighbours of wide nodes that came back, or were listed anew
    std::size_t wide = WIDE;

private:
    void begin(std::int64_t number);
    void find(std::int64_t number, Kind kind);
    void settle();
    ACS_CL_SELDOM void find_far(std::int64_t number, Kind kind);
    void find_reuse(std::int64_t base);
    void search(std::int64_t number, Nodes reads, Nodes writes, std::uint32_t read_too);
    void follow(std::int64_t number, Nodes reads, Nodes writes, std::uint32_t read_too);
    void let_rest(Nodes nodes);
    void let_rest(Node &node);
    void note_width(Node &node);
    void wake(Nodes nodes);
    void read(Node &node, std::int64_t number);
    static void fetch(const Nodes &nodes);
    void find_writers(const Node &node, Kind kind);
    void find_readers(const Node &node);
    ReplayRecords::Record &record_of(Footprint &footprint);
    void look_again(Footprint &footprint);
    void resolve(const Nodes *read, Nodes written);
    void prune();
    void keep_far();
    Edges kept() const { return {kept_.data(), many_kept_}; }
    void write(Node &node, std::int64_t number);
    NodePointer new_node(const Span &span);
    void tidy();
    void make_room();
    std::size_t sweep(std::int64_t base, std::size_t most_near = MOST_NEAR);
    // Calls `visit(number)` for launches in flight that use a base, until it returns false. Some come twice.
    template <typename Visit>
    void each_user(std::int64_t base, Visit &&visit);
    template <typename Uses>
    void keep_live(Uses &uses) const;
    void forget_dropped();

    inline static std::uint32_t newest_index_ = 0;
    const std::uint32_t index_ = ++newest_index_;
    Live live_;
    NodeTable nodes_;
    std::unordered_map<std::int64_t, Base> bases_;
    // By recycled base: live launches that used its memory before.
    std::unordered_map<std::int64_t, std::vector<std::int64_t>> recycled_;
    std::unordered_set<std::int64_t> left_;  // bases
    std::shared_ptr<ReplayRecords> records_;
    std::int64_t barrier_ = 0;
    std::int64_t newest_record_ = 0;
    std::size_t sweep_at_ = SWEPT_AT;
    std::vector<std::int64_t> crowded_, deserted_;  // bases with too many nodes, and with some of a footprint that is gone
    bool met_dropped_ = false;  // a replay record whose footprint is gone
    bool has_wide_ = false;     // some node has, or had, many neighbours

    // The search for the upstream of launch `number_`. Near launches are kept by their distance (bit k: launch
    // `number_ - 1 - k`), so that none is found twice, and they need no sorting.
    std::int64_t number_ = 0;
    std::array<std::int64_t, 64> candidates_;  // may be live; some of them twice
    std::array<Kind, 64> their_kinds_;
    std::uint32_t many_ = 0;
    int words_ = 0;  // as far back as launches live
    std::array<std::uint64_t, WORDS> near_ = {};
    std::uint64_t near_words_ = 0;  // words that are not 0
    std::uint32_t near_launches_ = 0;  // bits that are set
    std::array<Kind, REMEMBERED> kinds_;  // by distance
    std::vector<std::pair<std::int64_t, Kind>> far_, met_;  // launches that are farther away; replay records
    std::array<std::uint64_t, 2 * WORDS + GROUP> ancestors_ = {};  // of the launch; beyond `words_` they may be anything
    std::vector<Edge> kept_ = std::vector<Edge>(64);  // room for edges, `many_kept_` of which are there
    std::size_t many_kept_ = 0;
};

}  // namespace acs_cl
