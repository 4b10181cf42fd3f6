// Merges spans: the same bytes in fewer spans.

#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <vector>

#include "hazards/span.hpp"

namespace acs_cl {

constexpr std::size_t MOST_APART = 64;  // most spans of a base; more become their hull

// Appends the merged spans of one base. They come in order and differ.
inline void merge(std::vector<Span>::const_iterator from, std::vector<Span>::const_iterator end,
                  std::vector<Span> &to) {
    std::vector<Span> flat, apart;
    for (auto one = from; one != end; ++one) {
        if (one->rows > 1) continue;
        if (flat.empty() || one->start > flat.back().end()) flat.push_back(*one);
        Span &last = flat.back();
        last.width = std::max(one->end(), last.end()) - last.start;
        last.pitch = last.width;
    }
    const auto is_covered = [&](const Span &one) {
        return flat.size() <= MOST_APART &&
               std::any_of(flat.begin(), flat.end(), [&](const Span &other) { return covers(other, one); });
    };
    std::copy_if(from, end, std::back_inserter(apart),
                 [&](const Span &one) { return one.rows > 1 && !is_covered(one); });
    flat.insert(flat.end(), apart.begin(), apart.end());
    if (flat.size() > MOST_APART) {
        const std::int64_t start = from->start;
        std::int64_t width = 0;
        for (const Span &one : flat) width = std::max(width, one.end() - start);
        flat = {{from->base, start, width, 1, width}};
    }
    to.insert(to.end(), flat.begin(), flat.end());
}

inline std::vector<Span> merged(std::vector<Span> spans) {
    std::sort(spans.begin(), spans.end());
    spans.erase(std::unique(spans.begin(), spans.end()), spans.end());
    std::vector<Span> found;
    for (auto one = spans.cbegin(); one != spans.cend();) {
        const auto next = std::find_if(one, spans.cend(), [&](const Span &other) { return other.base != one->base; });
        merge(one, next, found);
        one = next;
    }
    return found;
}

}  // namespace acs_cl
