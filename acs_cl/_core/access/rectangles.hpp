// Rectangles of the bytes that accesses reach, counted from the first byte of an argument.

#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "access/sums.hpp"
#include "hazards/span.hpp"

namespace acs_cl::access {

constexpr std::size_t MOST_RECTANGLES = 4;  // of one argument, read or written; more become their hull
constexpr Wide FAR = Wide(1) << 62;         // bytes; beyond, addresses may wrap around

struct Rectangle {
    Wide start, pitch, rows, width;

    Wide end() const { return start + (rows - 1) * pitch + width; }
    auto all() const { return std::tie(start, pitch, rows, width); }
    bool operator==(const Rectangle &other) const { return all() == other.all(); }
    static Rectangle row(Wide start, Wide width) { return {start, width, 1, width}; }
};

using Rectangles = std::vector<Rectangle>;

struct Step {
    Wide distance, count;
};

// Returns the rectangle of runs of `width` bytes that begin at sums of some of the steps. They lie from `first` on
// and end at `last`. Returns their hull if one rectangle does not do.
inline Rectangle rectangle(Wide first, Wide last, Wide width, std::vector<Step> steps) {
    std::sort(steps.begin(), steps.end(), [](const Step &a, const Step &b) {
        return std::tie(a.distance, a.count) < std::tie(b.distance, b.count);
    });
    Wide pitch = width, rows = 1;
    for (const auto &[step, count] : steps) {
        if (rows == 1 && step <= width) {
            width = plus(width, times(step, count - 1));
            pitch = width;
        } else if (rows == 1) {
            pitch = step, rows = count;
        } else if (step % pitch == 0 && step / pitch <= rows) {
            rows = plus(rows, times(step / pitch, count - 1));
        } else {
            return Rectangle::row(first, last - first);
        }
    }
    return {first, pitch, rows, width};
}

// Cuts off everything outside of [low, high).
inline Rectangle within(const Rectangle &found, Wide low, Wide high) {
    auto [start, pitch, rows, width] = found;
    if (rows == 1) {
        const Wide begin = std::max(start, low);
        return Rectangle::row(begin, std::min(start + width, high) - begin);
    }
    const Wide skipped = std::max<Wide>(0, floored(low - start - width, pitch) + 1);
    rows = std::min(rows, floored(high - 1 - start, pitch) + 1) - skipped;
    start += skipped * pitch;
    return rows > 1 ? Rectangle{start, pitch, rows, width} : Rectangle{start, width, rows, width};
}

// Joins single rows of one width, at equal distances, into one rectangle.
inline Rectangles equidistant(const Rectangles &found) {
    std::map<Wide, std::vector<Wide>> by_width;
    Rectangles made;
    for (const Rectangle &one : found) {
        if (one.rows == 1) by_width[one.width].push_back(one.start);
        else made.push_back(one);
    }
    for (auto &[width, starts] : by_width) {
        std::sort(starts.begin(), starts.end());
        for (std::size_t at = 0, rows; at < starts.size(); at += rows) {
            Wide pitch = width;
            rows = 1;
            if (at + 1 < starts.size()) {
                pitch = starts[at + 1] - starts[at];
                while (at + rows < starts.size() && starts[at + rows] == starts[at] + Wide(rows) * pitch)
                    rows++;
            }
            if (rows < 3) pitch = width, rows = 1;  // two may each begin a longer row
            made.push_back({starts[at], pitch, Wide(rows), width});
        }
    }
    return made;
}

// Joins rectangles of the same rows, one beginning in the other.
inline Rectangles joined_rows(Rectangles found) {
    const auto key = [](const Rectangle &one) {
        return std::make_tuple(one.rows > 1, one.pitch, one.rows, one.start, one.width);
    };
    std::sort(found.begin(), found.end(),
              [&](const Rectangle &a, const Rectangle &b) { return key(a) < key(b); });
    Rectangles made;
    for (const Rectangle &one : found) {
        if (!made.empty() && one.rows > 1) {
            Rectangle &before = made.back();
            if (before.pitch == one.pitch && before.rows == one.rows &&
                one.start <= before.start + before.width) {
                before.width =
                    std::max(one.start + one.width, before.start + before.width) - before.start;
                continue;
            }
        }
        made.push_back(one);
    }
    return made;
}

// Returns the same bytes in few rectangles.
inline Rectangles merged(Rectangles found) {
    const auto is_none = [](const Rectangle &one) { return one.rows <= 0 || one.width <= 0; };
    found.erase(std::remove_if(found.begin(), found.end(), is_none), found.end());
    if (found.size() < 2) return found;
    Rectangles flat, rest, made;
    for (const Rectangle &one : joined_rows(std::move(found))) {
        if (one.rows > 1 && one.width < one.pitch) rest.push_back(one);
        else flat.push_back(Rectangle::row(one.start, one.end() - one.start));
    }
    std::sort(flat.begin(), flat.end(),
              [](const Rectangle &a, const Rectangle &b) { return a.all() < b.all(); });
    for (const Rectangle &one : flat) {
        if (!made.empty() && one.start <= made.back().end()) {
            Rectangle &before = made.back();
            before = Rectangle::row(before.start, std::max(one.end(), before.end()) - before.start);
        } else {
            made.push_back(one);
        }
    }
    const std::size_t flats = made.size();
    for (const Rectangle &one : rest) {
        const auto holds = [&](const Rectangle &row) {
            return row.start <= one.start && one.end() <= row.end();
        };
        if (std::none_of(made.begin(), made.begin() + std::ptrdiff_t(flats), holds))
            made.push_back(one);
    }
    if (made.size() > MOST_RECTANGLES) made = equidistant(made);
    if (made.size() <= MOST_RECTANGLES) return made;
    Wide first = made[0].start, end = made[0].end();
    for (const Rectangle &one : made) {
        first = std::min(first, one.start);
        end = std::max(end, one.end());
    }
    return {Rectangle::row(first, end - first)};
}

}  // namespace acs_cl::access
