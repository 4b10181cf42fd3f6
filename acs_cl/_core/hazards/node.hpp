// Nodes of an index of spans, which arrays, launches and footprints hold.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "hazards/live.hpp"
#include "hazards/span.hpp"

namespace acs_cl {

// Launches that nodes remember: a vector that has room for the first of them in itself.
class Uses {
public:
    Uses() = default;
    ~Uses() {
        if (data_ != &first_) delete[] data_;
    }
    Uses(const Uses &) = delete;
    Uses &operator=(const Uses &) = delete;

    Use *begin() { return data_; }
    Use *end() { return data_ + size_; }
    const Use *begin() const { return data_; }
    const Use *end() const { return data_ + size_; }
    std::size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }

    void push_back(const Use &use) {
        if (size_ == room_) {
            Use *more = std::copy(begin(), end(), new Use[2 * room_]) - size_;
            if (data_ != &first_) delete[] data_;
            data_ = more;
            room_ *= 2;
        }
        data_[size_++] = use;
    }
    void erase(Use *from, Use *) { size_ = std::uint32_t(from - data_); }  // up to the end
    void clear() { size_ = 0; }

private:
    Use *data_ = &first_;
    std::uint32_t size_ = 0, room_ = 1;
    Use first_;
};

// A distinct span: its last writer, its readers since, and the nodes it shares bytes with. What each
// check looks at comes first, and fits a cache line.
struct alignas(64) Node {
    Node(const Span &of, std::uint32_t owner) : index(owner), span(of) {}

    std::int64_t writer_number = 0;
    std::uint32_t writer_place = 0;
    std::uint32_t index;  // the number of the one that it is in; 0: it was taken out
    Uses readers;
    std::uint32_t sweep_at = 16;
    std::uint32_t holders = 0;

    struct Around {
        std::vector<Node *> near, covered;  // the second are some of the first
    };
    inline static const std::vector<Node *> nowhere;
    std::unique_ptr<Around> around;  // null where there are none
    Span span;
    std::uint32_t arrays = 0;  // some of the holders: they ask for it again

    const std::vector<Node *> &near() const {
        return around ? around->near : nowhere;
    }
    // Shares bytes with another, from now on.
    void meet(Node *other, bool covers_it) {
        if (!around) around = std::make_unique<Around>();
        around->near.push_back(other);
        if (covers_it) around->covered.push_back(other);
    }

    Use writer() const { return {writer_number, writer_place}; }
    void set_writer(const Use &use) {
        writer_number = use.number;
        writer_place = use.place;
    }
    void let_go() {
        if (!--holders) delete this;
    }
};

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

}  // namespace acs_cl
