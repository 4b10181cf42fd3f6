// Places of the spans of one base, so that a new span finds those that it may share bytes with.
//
// The hull of a tile of a matrix overlaps the hull of every other tile in the same rows. So a search
// by hulls would cost more the more tiles a row has. Taken modulo the matrix's pitch, a tile is a box of
// rows and columns, and only boxes that overlap are candidates.
//
// A base has a `Grid` for each of a few pitches. A grid has every span as a box: those of its own
// pitch, and contiguous ones, unchanged; a contiguous one that goes beyond a row as whole rows.
// A search returns a superset. `overlap` decides.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "hazards/node.hpp"
#include "hazards/span.hpp"

namespace acs_cl {

struct Box {
    std::int64_t row, column, rows, width;
};

// Nodes whose boxes have about one size: rows and widths of at most two powers of 2, and more than half of these.
// They are sorted by bands of rows, and in a band by columns. They are in chunks, so that a new one moves few
// others.
class Places {
public:
    Places(int rows_bits, int width_bits) : rows_bits_(rows_bits), width_bits_(width_bits) {}

    bool is_for(int rows_bits, int width_bits) const {
        return rows_bits == rows_bits_ && width_bits == width_bits_;
    }

    void add(const Box &box, Node *node) {
        const Entry entry{box.row, box.column, node};
        first_row_ = std::min(first_row_, box.row);
        last_row_ = std::max(last_row_, box.row);
        if (chunks_.empty()) chunks_.emplace_back();
        const Place place = find(band(box.row), box.column);
        auto &chunk = chunks_[place.chunk];
        chunk.insert(chunk.begin() + std::ptrdiff_t(place.at), entry);
        if (chunk.size() > FULL) split(place.chunk, place.at + 1 == chunk.size());
    }

    // Visits nodes whose boxes may meet this one.
    template <typename Visit>
    void search(const Box &box, Visit &&visit) const {
        const std::int64_t low = std::max(box.row - (std::int64_t(1) << rows_bits_) + 1, first_row_);
        const std::int64_t high = std::min(box.row + box.rows - 1, last_row_);
        if (low > high) return;
        const std::int64_t left = box.column - (std::int64_t(1) << width_bits_) + 1;
        const std::int64_t right = box.column + box.width - 1, last = band(high);
        std::int64_t now = band(low);
        Place place = find(now, left);
        while (const Entry *entry = at(place)) {
            const std::int64_t its = band(entry->row);
            if (its > last) return;
            if (its > now || entry->column > right) {  // on to the next band that has any
                now = its > now ? its : now + 1;
                if (now > last) return;
                if (its < now || entry->column < left) {
                    place = find(now, left);
                    continue;
                }
                if (entry->column > right) continue;
            }
            if (entry->row >= low && entry->row <= high) visit(entry->node);
            place.at++;
        }
    }

    template <typename Visit>
    void each(Visit &&visit) const {
        for (const auto &chunk : chunks_)
            for (const Entry &entry : chunk) visit(entry.node);
    }

    template <typename Gone>
    void remove(Gone &&gone) {
        auto is_gone = [&](const Entry &entry) { return gone(entry.node); };
        std::size_t kept = 0;
        for (auto &chunk : chunks_) {
            chunk.erase(std::remove_if(chunk.begin(), chunk.end(), is_gone), chunk.end());
            if (chunk.empty()) continue;
            if (kept && chunks_[kept - 1].size() + chunk.size() <= FULL / 2) {
                auto &before = chunks_[kept - 1];
                before.insert(before.end(), chunk.begin(), chunk.end());
            } else {
                if (&chunks_[kept] != &chunk) chunks_[kept] = std::move(chunk);
                kept++;
            }
        }
        chunks_.resize(kept);
    }

    bool empty() const { return chunks_.empty(); }

private:
    struct Entry {
        std::int64_t row, column;
        Node *node;
    };
    struct Place {
        std::size_t chunk, at;
    };
    using Chunk = std::vector<Entry>;  // never empty, except the first one for a moment

    static constexpr std::size_t FULL = 64;
    static constexpr int BAND_BITS = 2;  // a band is 4 times as high as a box, so a search visits few

    std::int64_t band(std::int64_t row) const {
        return row >> std::min(rows_bits_ + BAND_BITS, 62);
    }
    bool is_before(const Entry &entry, std::int64_t band, std::int64_t column) const {
        const std::int64_t its = this->band(entry.row);
        return its != band ? its < band : entry.column < column;
    }

    // Finds the first entry that is not before a column of a band, or its place.
    Place find(std::int64_t band, std::int64_t column) const {
        auto before = [&](const Entry &entry) { return is_before(entry, band, column); };
        auto starts_before = [&](const Chunk &chunk) {
            return chunk.empty() || before(chunk.front());
        };
        auto after = std::partition_point(chunks_.begin(), chunks_.end(), starts_before);
        if (after != chunks_.begin()) --after;
        auto entry = std::partition_point(after->begin(), after->end(), before);
        return {std::size_t(after - chunks_.begin()), std::size_t(entry - after->begin())};
    }

    // Returns null at the end. The place behind a chunk is the begin of the next one.
    const Entry *at(Place &place) const {
        if (place.chunk < chunks_.size() && place.at == chunks_[place.chunk].size())
            place = {place.chunk + 1, 0};
        return place.chunk < chunks_.size() ? &chunks_[place.chunk][place.at] : nullptr;
    }

    void split(std::size_t which, bool at_end) {
        auto &chunk = chunks_[which];  // entries that come in order leave full chunks behind
        const std::ptrdiff_t from = at_end ? FULL : FULL / 2;
        Chunk more;
        more.reserve(FULL + 1);
        more.assign(chunk.begin() + from, chunk.end());
        chunk.erase(chunk.begin() + from, chunk.end());
        chunks_.insert(chunks_.begin() + std::ptrdiff_t(which) + 1, std::move(more));
    }

    int rows_bits_, width_bits_;
    std::int64_t first_row_ = INT64_MAX, last_row_ = INT64_MIN;
    std::vector<Chunk> chunks_;
};

// Nodes by their boxes, in a `Places` for each size.
class Boxes {
public:
    void add(const Box &box, Node *node) {
        const int rows_bits = bits_of(box.rows), width_bits = bits_of(box.width);
        auto is_it = [&](const Places &one) { return one.is_for(rows_bits, width_bits); };
        auto found = std::find_if(sizes_.begin(), sizes_.end(), is_it);
        if (found == sizes_.end()) found = sizes_.emplace(found, rows_bits, width_bits);
        found->add(box, node);
    }

    template <typename Visit>
    void search(const Box &box, Visit &&visit) const {
        for (const Places &places : sizes_) places.search(box, visit);
    }

    template <typename Visit>
    void each(Visit &&visit) const {
        for (const Places &places : sizes_) places.each(visit);
    }

    template <typename Gone>
    void remove(Gone &&gone) {
        for (Places &places : sizes_) places.remove(gone);
        auto is_empty = [](const Places &places) { return places.empty(); };
        sizes_.erase(std::remove_if(sizes_.begin(), sizes_.end(), is_empty), sizes_.end());
    }

    bool empty() const { return sizes_.empty(); }

private:
    static int bits_of(std::int64_t size) {  // of the least power of 2 that is no less
        int bits = 0;
        while ((std::int64_t(1) << bits) < size) bits++;
        return bits;
    }

    std::vector<Places> sizes_;  // in the order in which they came
};

// All nodes of a base. The first grid has no pitch: there a box is a hull.
class Base {
public:
    Base() : grids_(1) {}

    std::size_t count = 0, sweep_at = 64;
    std::size_t again = 0;  // nodes that an array needed again after they had been swept, since the last sweep

    void add(Node *node) {
        const Span &span = node->span();
        count++;
        if (span.rows == 1) {
            for (Grid &grid : grids_) grid.contiguous.add(box_in(grid, span), node);
            return;
        }
        Grid &home = grids_[home_of(span, true)];
        home.strided.add(box_in(home, span), node);
    }

    // Visits every node that may share bytes with a span, once.
    template <typename Visit>
    void search(const Span &span, Visit &&visit) const {
        const Grid &home = grids_[home_of(span)];
        home.contiguous.search(box_in(home, span), visit);
        for (const Grid &grid : grids_)
            if (!grid.strided.empty()) grid.strided.search(box_in(grid, span), visit);
    }

    template <typename Visit>
    void each(Visit &&visit) const {
        grids_.front().contiguous.each(visit);
        for (const Grid &grid : grids_) grid.strided.each(visit);
    }

    template <typename Gone>
    void remove(Gone &&gone) {
        for (Grid &grid : grids_) {
            grid.contiguous.remove(gone);
            grid.strided.remove(gone);
        }
        auto is_idle = [](const Grid &grid) { return grid.pitch && grid.strided.empty(); };
        grids_.erase(std::remove_if(grids_.begin(), grids_.end(), is_idle), grids_.end());
    }

private:
    struct Grid {
        std::int64_t pitch = 0;
        Boxes strided, contiguous;  // each contiguous node is in all grids
    };

    static constexpr std::size_t MOST_GRIDS = 5;  // spans of further pitches are hulls

    static Box box_in(const Grid &grid, const Span &span) {
        const std::int64_t last = std::max(span.end() - 1, span.start);  // also for no bytes
        if (!grid.pitch) return {0, span.start, 1, last - span.start + 1};
        const std::int64_t row = floor_divide(span.start, grid.pitch);
        const std::int64_t column = span.start - row * grid.pitch;
        const bool is_own = span.rows == 1 || span.pitch == grid.pitch;
        if (is_own && span.width && column + span.width <= grid.pitch)
            return {row, column, span.rows, span.width};
        return {row, 0, floor_divide(last, grid.pitch) - row + 1, grid.pitch};
    }

    // Returns the place of the grid of its pitch. Contiguous spans and further pitches have the first one.
    std::size_t home_of(const Span &span) const {
        if (span.rows == 1) return 0;
        for (std::size_t at = 1; at < grids_.size(); at++)
            if (grids_[at].pitch == span.pitch) return at;
        return 0;
    }

    std::size_t home_of(const Span &span, bool) {
        const std::size_t known = home_of(span);
        if (known || grids_.size() == MOST_GRIDS) return known;
        Grid grid;
        grid.pitch = span.pitch;
        grids_.front().contiguous.each(
            [&](Node *node) { grid.contiguous.add(box_in(grid, node->span()), node); });
        grids_.push_back(std::move(grid));
        return grids_.size() - 1;
    }

    std::vector<Grid> grids_;
};

}  // namespace acs_cl
