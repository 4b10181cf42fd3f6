// Rectangles of bytes, and whether two of them meet. emu/reference/ranges.py is the model.
//
// No address of a device or a program comes near 2^60. So a span that reaches farther ends there
// (`bounded`), and sums of a few numbers fit 64 bits.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>

namespace acs_cl {

constexpr std::int64_t EVERYTHING = 0;
constexpr std::int64_t EXACT_ROWS = 4096;  // compared one by one if two pitches differ; with more rows the hulls are
constexpr std::int64_t FARTHEST = std::int64_t(1) << 60;

struct Span {
    std::int64_t base, start, pitch, rows, width;

    std::int64_t end() const { return start + (rows - 1) * pitch + width; }

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

// Whether it describes bytes at all.
inline bool is_valid(const Span &span) {
    return span.rows >= 1 && span.width >= 0 && (span.rows == 1 || span.pitch > 0);
}

// Limits a span: bytes beyond `FARTHEST` count as its last byte, and a span that does not fit becomes its hull.
// Both only add bytes, the same ones to every span.
inline Span bounded(const Span &span) {
    constexpr std::int64_t NEAR = std::int64_t(1) << 29;
    const bool is_near = span.start >= 0 && span.start < NEAR * NEAR && span.width < NEAR &&
                         span.pitch < NEAR && span.rows < NEAR;
    if (is_near) return span;  // true for nearly all, and needs no division
    const std::int64_t start = std::clamp(span.start, -FARTHEST, FARTHEST - 1);
    const std::int64_t room = FARTHEST - start - span.width;
    const bool fits = start == span.start && room >= 0 &&
                      (span.rows == 1 || span.rows - 1 <= room / span.pitch);
    const std::int64_t hull = FARTHEST - start;
    return fits ? span : Span{span.base, start, hull, 1, hull};
}

inline std::int64_t floor_divide(std::int64_t value, std::int64_t by) {
    return value / by - (value % by < 0);
}

// Whether two rectangles meet that have one pitch, or of which one has a single row. The model derives this.
inline bool meet(const Span &a, const Span &b) {
    const std::int64_t pitch = a.rows > 1 ? a.pitch : b.pitch;
    const std::int64_t distance = b.start - a.start;
    const std::int64_t least = std::max(floor_divide(distance - a.width, pitch) + 1, 1 - b.rows);
    const std::int64_t most = std::min(-floor_divide(-(distance + b.width), pitch) - 1, a.rows - 1);
    return least <= most;
}

// Whether two spans of the same base share a byte.
inline bool overlap(const Span &first, const Span &second) {
    if (first.start >= second.end() || second.start >= first.end()) return false;
    if (first.rows == 1 && second.rows == 1) return true;
    if (first.rows == 1 || second.rows == 1 || first.pitch == second.pitch)
        return meet(first, second);
    const Span &few = first.rows > second.rows ? second : first;
    const Span &many = first.rows > second.rows ? first : second;
    if (few.rows > EXACT_ROWS) return true;
    for (std::int64_t row = 0; row < few.rows; row++) {
        const std::int64_t start = few.start + row * few.pitch;
        if (start >= many.end()) break;
        if (meet({few.base, start, few.width, 1, few.width}, many)) return true;
    }
    return false;
}

// Whether every byte of `b` is in `a`. It may say no for exotic pairs, but never a wrong yes.
inline bool covers(const Span &a, const Span &b) {
    if (a.start > b.start || a.end() < b.end()) return false;
    if (a.rows == 1) return true;
    if (b.rows != 1 && a.pitch != b.pitch) return false;
    const std::int64_t distance = b.start - a.start;
    return distance - floor_divide(distance, a.pitch) * a.pitch + b.width <= a.width;
}

}  // namespace acs_cl
