// What launches touch of their arrays, from the results of the binder (launch/binder.hpp). Those are rectangles of
// bytes of each argument. They depend on the sizes and on some numbers, but not on the arrays.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "access/outline.hpp"
#include "hazards/touched.hpp"

namespace acs_cl {

constexpr std::size_t MOST_FOUND = 8192;    // launches whose spans are kept
constexpr std::size_t MOST_NUMBERS = 4096;  // numbers whose reach is kept

// Bytes of an argument, counted from its first one. Their spans have no base. None: all bytes.
using Part = std::optional<std::vector<Span>>;

inline Part part_of(bool is_whole, const access::Rectangles &reached) {
    if (is_whole) return std::nullopt;
    std::vector<Span> made;
    const auto number = [](Wide value) { return std::int64_t(value); };  // none is beyond `FAR`
    for (const auto &[start, pitch, rows, width] : reached)
        made.push_back(bounded({0, number(start), number(pitch), number(rows), number(width)}));
    return made;
}

inline void add_to(Part &some, const Part &more) {
    if (!more) some.reset();
    else if (some) some->insert(some->end(), more->begin(), more->end());
}

// Clips a rectangle to a view of one row.
inline void clip(const Span &whole, const Span &part, std::vector<Span> &to) {
    const std::int64_t limit = whole.width, start = part.start, pitch = part.pitch, width = part.width;
    if (part.rows == 1) {
        const std::int64_t low = std::max<std::int64_t>(start, 0), high = std::min(start + width, limit);
        if (low < high) to.push_back({whole.base, whole.start + low, high - low, 1, high - low});
        return;
    }
    if (start >= 0 && part.end() <= limit) {
        to.push_back({whole.base, whole.start + start, pitch, part.rows, width});
        return;
    }
    // the rows that begin at 0 or later and end in the view
    const std::int64_t first = std::max<std::int64_t>(0, -floor_divide(start, pitch));
    const std::int64_t last = std::min(part.rows, floor_divide(limit - width - start, pitch) + 1);
    const auto row = [&](std::int64_t at) {
        if (0 <= at && at < part.rows) clip(whole, {0, start + at * pitch, width, 1, width}, to);
    };
    row(first - 1);
    if (last != first - 1) row(last);
    if (last > first) clip(whole, {0, start + first * pitch, pitch, last - first, width}, to);
}

// Returns the reached ones of an argument's bytes.
inline std::vector<Span> cut(const Span &whole, const Part &reached) {
    if (!reached) return {whole};
    std::vector<Span> found;
    if ((whole.rows > 1 || whole.base == EVERYTHING) && !reached->empty()) return {whole};
    for (const Span &part : *reached) clip(whole, part, found);
    const bool is_all = std::any_of(found.begin(), found.end(), [&](const Span &one) { return covers(one, whole); });
    return is_all ? std::vector<Span>{whole} : found;
}

// Values by the bytes of their keys. The value of the last request is found at once. Values that are gone make room for
// others. If there are `MOST`, they may never be needed again, and all are forgotten.
template <typename Value, std::size_t MOST>
class ByBytes {
public:
    // Returns null if there is none.
    Value *find(std::string_view key) {
        if (last_ && last_->key == key) return &last_->value;
        if (places_.empty()) return nullptr;
        Place &place = place_of(key);
        return place ? &(last_ = place.get())->value : nullptr;
    }

    // Makes a value, in place of the one that may be there.
    template <typename... Of>
    Value &make(std::string_view key, Of &&...of) {
        if (2 * many_ >= places_.size()) make_room();
        Place &place = place_of(key);
        many_ += !place;
        last_ = nullptr;
        place.reset(new Entry{std::string(key), Value(std::forward<Of>(of)...)});
        return (last_ = place.get())->value;
    }

private:
    struct Entry {
        const std::string key;
        Value value;
    };
    using Place = std::unique_ptr<Entry>;

    Place &place_of(std::string_view key) {
        std::uint64_t hash = 0, word;
        for (std::size_t at = 0; at < key.size(); at += sizeof(word)) {
            word = 0;
            std::memcpy(&word, key.data() + at, std::min(sizeof(word), key.size() - at));
            hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
        }
        for (std::size_t place = std::size_t(hash >> 32);; place++) {
            Place &one = places_[place % places_.size()];
            if (!one || one->key == key) return one;
        }
    }

    void make_room() {
        std::vector<Place> before = std::move(places_);
        for (Place &one : before) {
            if (!one || !one->value.is_gone()) continue;
            one.reset();
            many_--;
        }
        const bool keeps = many_ < MOST, grows = 4 * many_ >= before.size();
        places_.clear();
        places_.resize(keeps ? std::max<std::size_t>(16, before.size() << grows) : 16);
        if (!keeps) many_ = 0;
        for (Place &one : before)
            if (one && keeps) place_of(one->key).swap(one);
    }

    std::vector<Place> places_;
    std::size_t many_ = 0;
    Entry *last_ = nullptr;
};

// What launches of one size with the same numbers touch.
class Reach {
public:
    static constexpr bool is_gone() { return false; }

    // Of parameters, as bits: that the program declares their ranges, that they are written, and that all of what is
    // written is surely overwritten.
    std::uint64_t told = 0, writes = 0, overwrites = 0;
    bool is_for_python = false;  // these ranges are too many, or some of what is written is overwritten

    // Adds what is read and written of the next argument in memory, and what surely is.
    void add(Part reads, Part writes, const access::Sure &read, const access::Sure &written) {
        surely_.emplace_back(read, written);
        Limits limits;
        for (const Part *some : {&reads, &writes})
            if (*some) limits.most = std::min(limits.most, from_the_start(**some));
        const bool always_leaves = written.first_end <= 0 || written.last >= FARTHEST;
        limits.least = always_leaves ? FARTHEST + 1 : std::int64_t(std::max<Wide>(written.last + 1, 0));
        limits_.push_back(limits);
        arguments_.push_back({std::move(reads), std::move(writes)});
    }

    // Returns what is surely read and written of argument `at` in memory.
    const std::pair<access::Sure, access::Sure> &surely(std::size_t at) const { return surely_[at]; }

    // Narrows whole arrays to the bytes that a launch touches. Returns whether they have all that is surely written.
    // False: that has to be looked at.
    bool narrow(Touched &touched, Hazards &hazards) {
        if (is_covered(touched)) return writes_inside(touched);
        const std::string_view key(reinterpret_cast<const char *>(touched.nodes),
                                   touched.many * sizeof(Node *));
        Found *found = found_.find(key);
        if (!found) found = &found_.make(key, touched, *this, hazards);
        found->give(touched, hazards);
        return found->are_inside;
    }

private:
    struct Argument {
        Part reads, writes;
    };

    // Bytes of an array in one row: it is touched as a whole if it has no more than `most`, and what is surely written
    // lies in it if it has `least`.
    struct Limits {
        std::int64_t most = FARTHEST, least = 0;
    };

    // What a launch touches of its arrays. It holds the nodes of the arrays, too, because it is found by them. It is
    // small, because there are many.
    class Found : Single {
    public:
        Found(const Touched &whole, const Reach &reach, Hazards &hazards) : arrays_(whole.many) {
            Touched touched;
            for (std::uint32_t at = 0; at < whole.many; at++) {
                add(touched, whole, at, reach.arguments_[at], hazards);
                are_inside &= !reach.surely(at).second.outside(whole.nodes[at]->span());
            }
            if (touched.many >= MOST_SPANS) touched = whole;  // leaves room for the word that decides
            reads_ = touched.reads;
            writes_ = touched.writes;
            overwrites_ = touched.overwrites;
            nodes_.reserve(whole.many + touched.many);
            for (const Touched *some : std::initializer_list<const Touched *>{&whole, &touched})
                for (std::uint32_t at = 0; at < some->many; at++) nodes_.emplace_back(some->nodes[at]);
        }

        bool are_inside = true;  // the arrays have all that is surely written

        // Whether an array has another node by now, so that nobody asks for this.
        bool is_gone() const {
            const auto end = nodes_.begin() + std::ptrdiff_t(arrays_);
            return std::any_of(nodes_.begin(), end, [](const NodePointer &node) { return !node->index; });
        }

        void give(Touched &touched, Hazards &hazards) {
            touched.many = 0;
            for (std::size_t at = arrays_; at < nodes_.size(); at++) {
                if (!hazards.has(*nodes_[at])) nodes_[at] = hazards.node(nodes_[at]->span());
                touched.nodes[touched.many++] = nodes_[at].get();
            }
            touched.reads = reads_;
            touched.writes = writes_;
            touched.overwrites = overwrites_;
        }

    private:
        static void add(Touched &touched, const Touched &of, std::uint32_t at,
                        const Argument &argument, Hazards &hazards) {
            const Span &span = of.nodes[at]->span();
            const bool read = of.reads >> at & 1, written = of.writes >> at & 1;
            const std::vector<Span> none, reads = read ? cut(span, argument.reads) : none,
                                          writes = written ? cut(span, argument.writes) : none;
            const bool alike = reads == writes;
            const auto add_one = [&](const Span &one, bool is_read, bool is_written) {
                if (touched.many < MOST_SPANS)
                    touched.add(hazards.node(one).get(), is_read, is_written);
            };
            for (const Span &one : reads) add_one(one, true, alike);
            if (!alike)
                for (const Span &one : writes) add_one(one, false, true);
        }

        std::vector<NodePointer> nodes_;  // of the arrays, and then of the touched bytes
        std::uint32_t arrays_, reads_ = 0, writes_ = 0;
        bool overwrites_ = false;
    };

    // Returns how many bytes are reached from the first one on.
    static std::int64_t from_the_start(const std::vector<Span> &reached) {
        std::int64_t most = 0;
        for (const Span &one : reached)
            if (one.rows == 1 && one.start <= 0) most = std::max(most, one.end());
        return most;
    }

    // Whether the arrays, each of one row, have all bytes that are surely written.
    bool writes_inside(const Touched &whole) const {
        for (std::uint32_t at = 0; at < whole.many; at++) {
            const Span &span = whole.nodes[at]->span();
            if (span.rows > 1 || span.width < limits_[at].least) return false;
        }
        return true;
    }

    // Whether all bytes of the arrays are touched.
    bool is_covered(const Touched &whole) const {
        for (std::uint32_t at = 0; at < whole.many; at++)
            if (whole.nodes[at]->span().width > limits_[at].most) return false;
        return true;
    }

    std::vector<Argument> arguments_;
    std::vector<Limits> limits_;
    std::vector<std::pair<access::Sure, access::Sure>> surely_;  // read, written
    ByBytes<Found, MOST_FOUND> found_;  // by the nodes of the arrays
};

// The reach for all numbers, by the bytes of those that it depends on.
using Reaches = ByBytes<Reach, MOST_NUMBERS>;

}  // namespace acs_cl
