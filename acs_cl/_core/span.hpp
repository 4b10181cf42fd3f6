// Rectangles of bytes: the twin of acs_cl/ranges.py, with the same answers.
//
// Numbers are 64 bits wide and sums of them 128, so that nothing overflows for any span.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <tuple>

namespace acs_cl {

__extension__ typedef __int128 Wide;

constexpr std::int64_t EVERYTHING = 0;
constexpr std::int64_t EXACT_ROWS = 4096;

struct Span {
    std::int64_t base, start, pitch, rows, width;

    Wide end() const { return start + (Wide(rows) - 1) * pitch + width; }

    auto all() const { return std::tie(base, start, pitch, rows, width); }
    bool operator==(const Span &other) const { return all() == other.all(); }
    bool operator<(const Span &other) const { return all() < other.all(); }
};

struct HashOfSpan {
    std::size_t operator()(const Span &span) const {
        std::uint64_t hash = 0;
        for (auto value : {span.base, span.start, span.pitch, span.rows, span.width}) {
            hash = (hash ^ std::uint64_t(value)) * 0x9E3779B97F4A7C15u;
            hash ^= hash >> 29;
        }
        return hash;
    }
};

inline Wide floor_divide(Wide value, Wide by) {
    if (by <= 0) throw std::domain_error("a span of several rows needs a pitch above 0");
    return value / by - (value % by < 0);
}

// Two rectangles of one pitch, or of which one has a single row. ranges.py derives this.
inline bool meet(const Span &a, const Span &b) {
    Wide pitch = a.rows > 1 ? a.pitch : b.pitch;
    Wide distance = Wide(b.start) - a.start;
    Wide least = std::max<Wide>(floor_divide(distance - a.width, pitch) + 1, 1 - Wide(b.rows));
    Wide most = std::min<Wide>(-floor_divide(-(distance + b.width), pitch) - 1, Wide(a.rows) - 1);
    return least <= most;
}

// Whether the two share a byte. Both are of the same base.
inline bool overlap(const Span &first, const Span &second) {
    if (first.start >= second.end() || second.start >= first.end()) return false;
    if (first.rows == 1 && second.rows == 1) return true;
    if (first.rows == 1 || second.rows == 1 || first.pitch == second.pitch)
        return meet(first, second);
    const Span &few = first.rows > second.rows ? second : first;
    const Span &many = first.rows > second.rows ? first : second;
    if (few.rows > EXACT_ROWS) return true;
    for (std::int64_t row = 0; row < few.rows; row++) {
        Wide start = few.start + Wide(row) * few.pitch;
        if (start >= many.end()) break;
        if (meet({few.base, std::int64_t(start), few.width, 1, few.width}, many)) return true;
    }
    return false;
}

// Whether every byte of `b` is in `a`. May say no for exotic pairs, never a wrong yes.
inline bool covers(const Span &a, const Span &b) {
    if (a.start > b.start || a.end() < b.end()) return false;
    if (a.rows == 1) return true;
    if (b.rows != 1 && a.pitch != b.pitch) return false;
    Wide distance = Wide(b.start) - a.start;
    return distance - floor_divide(distance, a.pitch) * a.pitch + b.width <= a.width;
}

}  // namespace acs_cl
