// Nodes of an index of spans. Arrays, launches and footprints hold them.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "hazards/bits.hpp"
#include "hazards/single.hpp"
#include "hazards/span.hpp"

namespace acs_cl {

// The launches that a node remembers: a vector with room for the first ones in itself. If there is none, it has
// launch 0. So a check, which looks at the first one in any case, needs no guess.
class Uses : Single {
public:
    ~Uses() {
        if (data_ != first_) delete[] data_;
    }

    std::int64_t *begin() { return data_; }
    std::int64_t *end() { return data_ + size_; }
    const std::int64_t *begin() const { return data_; }
    const std::int64_t *end() const { return data_ + size_; }
    std::int64_t latest() const { return data_[size_ - 1]; }
    std::size_t size() const { return empty() ? 0 : size_; }
    bool empty() const { return size_ == 1 && !*data_; }
    bool is_full() const { return size_ == room_; }

    // Adds a launch; there is room for it. It replaces the latest one, unless that stays.
    void add(std::int64_t number, bool latest_stays) {
        size_ += latest_stays;
        data_[size_ - 1] = number;
    }
    void drop_latest() { size_--; }  // of several
    // Doubles the room if most of it is taken.
    void make_room() {
        if (2 * size_ <= room_) return;
        std::int64_t *more = std::copy(begin(), end(), new std::int64_t[2 * room_]) - size_;
        if (data_ != first_) delete[] data_;
        data_ = more;
        room_ *= 2;
    }
    void erase(std::int64_t *from, std::int64_t *) {  // up to the end
        size_ = std::uint32_t(from - data_);
        if (!size_) clear();
    }
    void clear() {
        size_ = 1;
        *data_ = 0;
    }

private:
    static constexpr std::uint32_t LEAST = 2;

    std::int64_t *data_ = first_;
    std::uint32_t size_ = 1, room_ = LEAST;
    std::int64_t first_[LEAST] = {};
};

struct Node;

// Nodes that share bytes with one, and whether it covers them. For most nodes it takes one cache line, which costs
// a check more than everything that it does with it.
class Neighbours : Single {
public:
    class One {
    public:
        One(Node *node, bool is_covered) : bits_(reinterpret_cast<std::uintptr_t>(node) | is_covered) {}
        One() = default;
        Node *node() const { return reinterpret_cast<Node *>(bits_ & ~std::uintptr_t(1)); }
        bool is_covered() const { return bits_ & 1; }

    private:
        std::uintptr_t bits_;
    };

    ~Neighbours() { delete[] data_; }

    const One *begin() const { return data_; }
    const One *end() const { return data_ + size_; }
    std::size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }

    void add(Node *node, bool is_covered) {
        const bool is_full = size_ >= LEAST ? !(size_ & (size_ - 1)) : !data_;
        if (is_full) {
            One *more = new One[std::max(2 * size_, LEAST)];
            std::copy(begin(), end(), more);
            delete[] std::exchange(data_, more);
        }
        data_[size_++] = One(node, is_covered);
    }

    template <typename Gone>
    void remove(Gone &&gone) {
        auto is_gone = [&](const One &one) { return gone(one.node()); };
        size_ = std::uint32_t(std::remove_if(data_, data_ + size_, is_gone) - data_);
    }
    void clear() { size_ = 0; }

    // Belongs to the owner, and is here because there is room: no wide node's list has it (see `Node::wake`), and
    // some of its neighbours may go to sleep.
    bool is_asleep() const { return is_asleep_; }
    bool is_crowded() const { return is_crowded_; }
    void set_asleep(bool is) { is_asleep_ = is; }
    void set_crowded(bool is) { is_crowded_ = is; }

private:
    static constexpr std::uint32_t LEAST = 4;  // the room; beyond it, the next power of 2

    One *data_ = nullptr;
    std::uint32_t size_ = 0;
    bool is_asleep_ = false, is_crowded_ = false;
};

// The part that few nodes have: those with many neighbours, and their neighbours.
struct Crowd {
    Neighbours every;          // of a wide node: all its neighbours; `near` has the others
    std::vector<Node *> wide;  // of its neighbours
    std::uint32_t looks = 0;
    bool lists_all = false;    // `near` has each of `every`, so that none has to come back
};

// The part of a node that a check seldom needs.
struct NodeDetails {
    Span span;
    std::uint32_t arrays = 0;  // some of the holders: they ask for it again
    std::unique_ptr<Crowd> crowd;
};

// Memory for nodes: for as many parts that each check reads, one behind the other, and then for as many details. With
// both in turns, a program with many nodes would fill the nearer caches with details. Nodes that are gone leave their
// places to others. The GIL is held.
class NodeMemory {
public:
    static constexpr std::size_t LINE = 64, MANY = 64, TO_DETAILS = MANY * LINE;

    static void *take() {
        if (!free_) add();
        return std::exchange(free_, free_->next);
    }
    static void give_back(void *place) { free_ = new (place) Free{free_}; }

private:
    struct Free {
        Free *next;
    };

    static void add() {
        auto *first = static_cast<char *>(::operator new(2 * TO_DETAILS, std::align_val_t(LINE)));
        for (std::size_t at = MANY; at--;) give_back(first + at * LINE);
    }

    inline static Free *free_ = nullptr;
};

// A distinct span: its last writer, its readers since, and the nodes that it shares bytes with. What each check reads
// is a cache line.
struct alignas(NodeMemory::LINE) Node : Single {
    Node(const Span &of, std::uint32_t owner) : index(owner) { new (&details()) NodeDetails{of, 0, nullptr}; }
    ~Node() { details().~NodeDetails(); }
    static void *operator new(std::size_t) { return NodeMemory::take(); }
    static void operator delete(void *place) { NodeMemory::give_back(place); }

    std::int64_t writer = 0;  // a launch or a replay record
    std::uint32_t index;  // the number of its index; 0: it was taken out
    std::uint32_t holders = 0;
    Uses readers;
    Neighbours near;

    NodeDetails &details() const {
        return *reinterpret_cast<NodeDetails *>(reinterpret_cast<std::uintptr_t>(this) + NodeMemory::TO_DETAILS);
    }
    const Span &span() const { return details().span; }

    void let_go() {
        if (!--holders) delete this;
    }

    // A whole matrix has each of its tiles as a neighbour. To look at all of them each time would cost more than
    // the launch. So a wide node's list has only those on which a launch may stand. The others are asleep, and come
    // back with their next launch.
    bool is_wide() const { return crowd() && !crowd()->every.empty(); }
    const Neighbours &every() const { return is_wide() ? crowd()->every : near; }

    // Whether this look at a wide node, one of `each`, is the one at which its neighbours go to sleep.
    bool is_time_to_rest(std::uint32_t each) { return crowd()->looks++ % each == 0; }

    void meet(Node *other, bool is_covered) {
        near.add(other, is_covered);
        if (!is_wide()) return;
        crowd()->every.add(other, is_covered);
        other->new_crowd().wide.push_back(this);
    }
    void widen() {
        for (auto one : near) {
            new_crowd().every.add(one.node(), one.is_covered());
            one.node()->new_crowd().wide.push_back(this);
        }
        new_crowd().lists_all = true;
    }
    // Puts neighbours to sleep.
    template <typename Rests>
    void let_rest(Rests &&rests) {
        const std::size_t before = near.size();
        near.remove(rests);
        if (near.size() < before) crowd()->lists_all = false;
    }
    // Returns how many neighbours of wide nodes were listed anew.
    ACS_CL_SELDOM std::size_t wake() {
        near.set_asleep(false);
        std::size_t listed = 0;
        for (Node *wide : crowd()->wide) listed += wide->hear(this);
        return listed;
    }
    template <typename Gone>
    void forget(Gone &&gone) {
        near.remove(gone);
        if (!crowd()) return;
        crowd()->every.remove(gone);
        auto &wide = crowd()->wide;
        wide.erase(std::remove_if(wide.begin(), wide.end(), gone), wide.end());
    }

private:
    std::unique_ptr<Crowd> &crowd() const { return details().crowd; }
    Crowd &new_crowd() {
        if (!crowd()) crowd() = std::make_unique<Crowd>();
        return *crowd();
    }
    // A neighbour that another wide node has put to sleep may still be in the list of this one.
    std::size_t hear(Node *other) {
        near.set_crowded(true);
        if (crowd()->lists_all) return 0;
        if (near.size() < crowd()->every.size()) {
            near.add(other, covers(span(), other->span()));
            return 1;
        }
        near.clear();  // it has some of them twice
        for (auto one : crowd()->every) near.add(one.node(), one.is_covered());
        crowd()->lists_all = true;
        return near.size();
    }
};
static_assert(sizeof(Node) <= NodeMemory::LINE && sizeof(NodeDetails) <= NodeMemory::LINE);

// Counts in the node, where a check looks anyway. The GIL is held.
class NodePointer {
public:
    NodePointer() = default;
    explicit NodePointer(Node *node) : node_(node) {
        if (node) node->holders++;
    }
    NodePointer(const NodePointer &other) : NodePointer(other.node_) {}
    NodePointer(NodePointer &&other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
    NodePointer &operator=(NodePointer other) noexcept {
        std::swap(node_, other.node_);
        return *this;
    }
    ~NodePointer() {
        if (node_) node_->let_go();
    }

    Node *get() const { return node_; }
    Node *operator->() const { return node_; }
    Node &operator*() const { return *node_; }
    explicit operator bool() const { return node_; }

private:
    Node *node_ = nullptr;
};

// Nodes by their spans. Each holds one until it is erased. Slots have the hash beside the node, so a search touches
// only the node that it finds.
class NodeTable : Single {
public:
    std::size_t size() const { return size_; }

    // Returns null if there is none.
    Node *find(const Span &span) const {
        const std::uint64_t hash = HashOfSpan()(span);
        for (std::size_t at = hash & mask();; at = (at + 1) & mask()) {
            const Slot &slot = slots_[at];
            if (!slot.node) return nullptr;
            if (slot.hash == hash && slot.node->span() == span) return slot.node;
        }
    }

    // Adds a node whose span is not there yet.
    void add(Node *node) {
        if (2 * ++size_ > slots_.size()) grow();
        node->holders++;
        put({HashOfSpan()(node->span()), node});
    }

    void erase(Node *node) {
        std::size_t hole = HashOfSpan()(node->span()) & mask();
        while (slots_[hole].node != node) hole = (hole + 1) & mask();
        // entries that were pushed past the hole move back, or a search would miss them
        for (std::size_t at = (hole + 1) & mask(); slots_[at].node; at = (at + 1) & mask()) {
            const std::size_t wanted = slots_[at].hash & mask();
            if (((at - wanted) & mask()) >= ((at - hole) & mask())) {
                slots_[hole] = slots_[at];
                hole = at;
            }
        }
        slots_[hole].node = nullptr;
        size_--;
        node->let_go();
    }

    template <typename Visit>
    void each(Visit &&visit) const {
        for (const Slot &slot : slots_)
            if (slot.node) visit(slot.node);
    }

    NodeTable() : slots_(64) {}
    ~NodeTable() {
        each([](Node *node) { node->let_go(); });
    }

private:
    struct Slot {
        std::uint64_t hash;
        Node *node;
    };

    std::size_t mask() const { return slots_.size() - 1; }

    void put(const Slot &slot) {
        std::size_t at = slot.hash & mask();
        while (slots_[at].node) at = (at + 1) & mask();
        slots_[at] = slot;
    }

    void grow() {
        const std::vector<Slot> before = std::exchange(slots_, std::vector<Slot>(2 * slots_.size()));
        for (const Slot &slot : before)
            if (slot.node) put(slot);
    }

    std::vector<Slot> slots_;
    std::size_t size_ = 0;
};

}  // namespace acs_cl
