// The rows of the launch table, by number. The latest ones are in a ring. A few old ones are in a map, because the ring
// would have to grow for their sake.

#pragma once

#include <Python.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "table/state.hpp"

namespace acs_cl {

// A launch in flight. If the core made it, the nodes are those that it touches.
struct Row {
    PyObject *object = nullptr;  // owned: its record, or the name of a launch that the core made
    std::uint32_t epoch = 0, task = 0;  // epoch 0: none
    std::uint32_t first = 0;  // its first node in its epoch, or its place if it `has_place`
    State state = State::NONE;
    std::uint8_t many = 0;  // nodes
    std::uint32_t owner = 0;  // its queue of the program; 0: none
    bool by_core : 1, is_replay : 1,  // of a segment, made by the core; its object is a record, too
        is_left : 1, blocks_on_host : 1, is_counted : 1, is_lost : 1, is_watched : 1,
        has_place : 1,    // among launches that lanes have, or had
        is_foreseen : 1,  // it is the last of a foreseen epoch, and stands for all of it
        overwrites : 1,   // surely everything that it writes
        is_shown : 1;     // the host can see its result without another command
    std::uint32_t reads = 0, writes = 0;  // which nodes, by bits

    Row()
        : by_core(false), is_replay(false), is_left(false), blocks_on_host(false), is_counted(false),
          is_lost(false), is_watched(false), has_place(false), is_foreseen(false),
          overwrites(false), is_shown(false) {}

    bool has_record() const { return !by_core || is_replay; }
    bool is_in_epoch() const { return epoch && !is_left; }
    bool is_on_lane_by_core() const { return by_core && !epoch; }
    bool is_handed_out() const { return state >= State::READY; }
};

class Rows {
public:
    Rows() : ring_(LEAST) {}

    // Returns null if no launch in flight has the number.
    Row *find(std::int64_t number) {
        if (is_in_ring(number)) {
            Row &row = at(number);
            return row.state == State::NONE ? nullptr : &row;
        }
        if (old_.empty()) return nullptr;
        auto found = old_.find(number);
        return found == old_.end() ? nullptr : &found->second;
    }
    const Row *find(std::int64_t number) const { return const_cast<Rows *>(this)->find(number); }

    // Makes the row of a new launch. Other rows may move.
    Row &make(std::int64_t number) {
        if (number != end_ || std::size_t(end_ - first_) >= ring_.size()) {
            if (first_ == end_) first_ = end_ = number;
            if (number < first_) return old_[number];
            while (number - first_ >= std::int64_t(ring_.size())) make_room(number);
        }
        if (number >= end_) end_ = number + 1;
        in_ring_++;
        return at(number);
    }

    // Erases the row of a launch that is over.
    void erase(std::int64_t number) {
        if (!is_in_ring(number)) {
            old_.erase(number);
            return;
        }
        at(number) = Row();
        in_ring_--;
        trim();
    }

    // Returns the oldest number, or 0.
    std::int64_t oldest() const {
        if (!old_.empty()) return old_.begin()->first;
        return first_ == end_ ? 0 : first_;
    }

    // Returns the newest number up to `last`, or 0.
    std::int64_t newest(std::int64_t last) const {
        for (std::int64_t number = last < end_ ? last : end_ - 1; number >= first_; number--)
            if (find(number)) return number;
        auto after = old_.upper_bound(last);
        return after == old_.begin() ? 0 : (--after)->first;
    }

    // Calls `visit(number, row)` for each row behind `after`, in order, until it returns false.
    template <typename Visit>
    void each(std::int64_t after, Visit &&visit) {
        for (auto one = old_.upper_bound(after); one != old_.end(); ++one)
            if (!visit(one->first, one->second)) return;
        for (std::int64_t number = after < first_ ? first_ : after + 1; number < end_; number++)
            if (Row *row = find(number))
                if (!visit(number, *row)) return;
    }

private:
    static constexpr std::size_t LEAST = 256;

    bool is_in_ring(std::int64_t number) const {
        return std::uint64_t(number) - std::uint64_t(first_) < std::uint64_t(end_ - first_);
    }
    Row &at(std::int64_t number) { return ring_[std::size_t(number) & (ring_.size() - 1)]; }

    void trim() {
        while (first_ < end_ && at(first_).state == State::NONE) first_++;
    }

    // Makes room in the ring. It grows if most of it is in use. Otherwise its oldest rows go to the map.
    void make_room(std::int64_t number) {
        if (2 * in_ring_ >= ring_.size()) {
            std::vector<Row> larger(2 * ring_.size());
            for (std::int64_t one = first_; one < end_; one++)
                larger[std::size_t(one) & (larger.size() - 1)] = at(one);
            ring_ = std::move(larger);
            return;
        }
        const std::int64_t kept = number - std::int64_t(ring_.size() / 2);
        for (; first_ < end_ && first_ < kept; first_++) {
            Row &row = at(first_);
            if (row.state == State::NONE) continue;
            old_[first_] = row;
            row = Row();
            in_ring_--;
        }
        trim();
        if (first_ == end_) first_ = end_ = number;
    }

    std::vector<Row> ring_;  // rows from `first_` to before `end_`; the others are unused
    std::map<std::int64_t, Row> old_;
    std::int64_t first_ = 0, end_ = 0;
    std::size_t in_ring_ = 0;
};

}  // namespace acs_cl
