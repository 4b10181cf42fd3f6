// Coherence: on which devices the bytes of each base are valid. A set of devices is a number with one
// bit for each device. emu/reference/coherence.py is the model, which looks at each byte.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "hazards/span.hpp"

namespace acs_cl {

using Devices = std::uint32_t;

constexpr std::int64_t MOST_ROWS = 512;  // a span with more rows counts as all bytes from its first to its last one

// Bytes of one base, and the devices that have them.
struct Piece {
    std::int64_t base, start, end;
    Devices devices;

    std::int64_t nbytes() const { return end - start; }
};

// One copy between devices.
struct Parcel {
    std::int64_t base, start, end;
    int source, target;
};

// The cost of moving bytes from one device to another.
struct Link {
    double latency_us, bytes_per_us;

    double took_us(std::int64_t nbytes) const { return nbytes ? latency_us + double(nbytes) / bytes_per_us : 0.0; }
};
using Links = std::vector<std::vector<Link>>;  // by source, then by target

// Returns the device of a set from which a copy arrives first.
inline int nearest(Devices devices, int target, std::int64_t nbytes, const Links &links) {
    int found = -1;
    double least = 0.0;
    for (std::size_t source = 0; source < links.size(); source++) {
        if (!(devices >> source & 1)) continue;
        const double took = links[source][std::size_t(target)].took_us(nbytes);
        if (found < 0 || took < least) found = int(source), least = took;
    }
    return found;
}

// Calls `visit(start, end)` for each interval that counts for a span.
template <class Visit> void each_row(const Span &span, Visit &&visit) {
    if (span.rows == 1 || span.pitch == span.width || span.rows > MOST_ROWS) return visit(span.start, span.end());
    for (std::int64_t row = 0; row < span.rows; row++) {
        const std::int64_t start = span.start + row * span.pitch;
        visit(start, start + span.width);
    }
}

// The bytes of one base: disjoint intervals in order, which cover all of it. Neighbours differ. Each interval ends
// where the next one begins, and the last one never ends.
class Line {
public:
    struct Interval {
        std::int64_t start;
        Devices devices;
    };

    const std::vector<Interval> &all() const { return all_; }
    // Returns the interval in which a byte is.
    std::size_t at(std::int64_t byte) const {
        const auto behind = std::upper_bound(all_.begin(), all_.end(), byte,
                                             [](std::int64_t it, const Interval &one) { return it < one.start; });
        return std::size_t(std::max<std::ptrdiff_t>(behind - all_.begin() - 1, 0));
    }
    // Calls `visit(start, end, devices)` for the intervals that meet some bytes, cut to these bytes, until it says no.
    template <class Visit> void within(std::int64_t start, std::int64_t end, Visit &&visit) const {
        if (start >= end) return;
        for (std::size_t place = at(start); place < all_.size() && all_[place].start < end; place++) {
            const std::int64_t behind = place + 1 < all_.size() ? all_[place + 1].start : end;
            if (!visit(std::max(start, all_[place].start), std::min(end, behind), all_[place].devices)) return;
        }
    }
    // Calls `visit(start, end, devices)` for all that meet a span, cut to its rows.
    template <class Visit> void each(const Span &span, Visit &&visit) const {
        each_row(span, [&](std::int64_t start, std::int64_t end) {
            within(start, end, [&](std::int64_t begin, std::int64_t stop, Devices devices) {
                visit(begin, stop, devices);
                return true;
            });
        });
    }
    // Gives each interval of a span the devices `change(devices)`: one pass from its first byte to its last one.
    template <class Change> void change(const Span &span, Change &&change) {
        if (span.start >= span.end()) return;
        const std::size_t first = at(span.start), last = at(span.end() - 1);
        const Devices behind = all_[last].devices;
        std::vector<Interval> made;
        const auto add = [&](std::int64_t start, std::int64_t end, Devices devices) {
            if (start < end && (made.empty() || made.back().devices != devices)) made.push_back({start, devices});
        };
        if (first) made.push_back(all_[first - 1]);
        std::int64_t reached = all_[first].start;
        const auto keep = [&](std::int64_t end) {
            within(reached, end, [&](std::int64_t start, std::int64_t stop, Devices devices) {
                add(start, stop, devices);
                return true;
            });
        };
        each_row(span, [&](std::int64_t start, std::int64_t end) {
            if (reached < start) keep(start);
            within(start, end, [&](std::int64_t begin, std::int64_t stop, Devices devices) {
                add(begin, stop, change(devices));
                return true;
            });
            reached = end;
        });
        std::size_t end = last + 1;
        const bool is_whole = end < all_.size() && all_[end].start == reached;
        if (!is_whole) add(reached, reached + 1, behind);
        else if (made.back().devices == all_[end].devices) end++;  // one interval with the next one
        replace(first ? first - 1 : 0, end, made);
    }

private:
    void replace(std::size_t first, std::size_t end, const std::vector<Interval> &made) {
        const std::size_t same = std::min(end - first, made.size());
        std::copy_n(made.begin(), same, all_.begin() + std::ptrdiff_t(first));
        const auto at = all_.begin() + std::ptrdiff_t(first + same);
        if (same < made.size()) all_.insert(at, made.begin() + std::ptrdiff_t(same), made.end());
        else all_.erase(at, all_.begin() + std::ptrdiff_t(end));
    }

    std::vector<Interval> all_{{0, 0}};
};

// Bytes that were never written are valid nowhere, and missing nowhere.
class Coherence {
public:
    // Calls `visit(piece)` for the written bytes of a span that are not valid on a device, in order.
    template <class Visit> void each_missing(const Span &span, int device, Visit &&visit) const {
        const Line *line = find(span.base);
        const auto lacks = [device](Devices devices) { return devices && !(devices >> device & 1); };
        if (!line || !has(*line, span, lacks)) return;
        Piece piece{span.base, 0, 0, 0};
        line->each(span, [&](std::int64_t begin, std::int64_t stop, Devices devices) {
            if (!lacks(devices)) return;
            if (piece.end == begin && piece.devices == devices) {
                piece.end = stop;
                return;
            }
            if (piece.devices) visit(piece);
            piece = {span.base, begin, stop, devices};
        });
        if (piece.devices) visit(piece);
    }
    bool is_there(const Span &span, int device) const {
        bool is = true;
        each_missing(span, device, [&](const Piece &) { is = false; });
        return is;
    }
    std::vector<Piece> missing(const Span &span, int device) const {
        std::vector<Piece> found;
        each_missing(span, device, [&](const Piece &piece) { found.push_back(piece); });
        return found;
    }
    // Appends the copies that a device needs to have a span, and notes that they are made. Up to `prefetch` bytes
    // between two pieces go along, if the device lacks them.
    void bring(const Span &span, int device, const Links &links, std::int64_t prefetch, std::vector<Parcel> &to) {
        const std::vector<Piece> pieces = missing(span, device);
        for (std::size_t at = 0; at < pieces.size();) {
            Piece piece = pieces[at++];
            const int source = nearest(piece.devices, device, piece.nbytes(), links);
            for (; at < pieces.size() && pieces[at].devices >> source & 1; at++) {
                const std::int64_t begins = pieces[at].start;
                if (begins - piece.end > prefetch || !can_go_along(piece.base, piece.end, begins, source, device)) break;
                piece.end = pieces[at].end;
            }
            to.push_back({piece.base, piece.start, piece.end, source, device});
            moved(piece, device);
        }
    }
    // Cuts an interval into as few pieces as possible, each valid as a whole on some device.
    std::vector<Piece> cover(const Span &span) const {
        std::vector<Piece> found{{span.base, span.start, span.start, ANY}};
        line_of(span.base).within(span.start, span.end(), [&](std::int64_t start, std::int64_t end, Devices devices) {
            const Devices both = found.back().devices & (devices ? devices : ANY);
            if (both) found.back().end = end, found.back().devices = both;
            else found.push_back({span.base, start, end, devices});
            return true;
        });
        return found;
    }
    // Returns the devices that have all written bytes of a span; 0 if none was written.
    Devices everywhere(const Span &span) const {
        Devices found = ANY;
        line_of(span.base).each(span, [&](std::int64_t, std::int64_t, Devices devices) {
            found &= devices ? devices : ANY;
        });
        return found == ANY ? 0 : found;
    }
    // Returns the intervals of a span that were never written.
    std::vector<Piece> unwritten(const Span &span) const {
        std::vector<Piece> found;
        line_of(span.base).each(span, [&](std::int64_t begin, std::int64_t stop, Devices devices) {
            if (!devices) found.push_back({span.base, begin, stop, 0});
        });
        return found;
    }

    // Notes that a piece was copied to a device.
    void moved(const Piece &piece, int device) {
        lines_[piece.base].change(whole(piece), [bit = Devices(1) << device](Devices old) { return old ? old | bit : 0; });
    }
    // Notes that a device did not get a copy after all.
    void lost(const Piece &piece, int device) {
        lines_[piece.base].change(whole(piece), [bit = Devices(1) << device](Devices old) { return old & ~bit; });
    }
    // Notes that exactly these devices have a piece.
    void put(const Piece &piece) {
        lines_[piece.base].change(whole(piece), [&](Devices) { return piece.devices; });
    }
    // Notes that a launch on a device may have written a span, so no other device has it now.
    void written(const Span &span, int device) {
        Line &line = lines_[span.base];
        const Devices only = Devices(1) << device;
        const auto differs = [only](Devices devices) { return devices != only; };
        if (has(line, span, differs)) line.change(span, [only](Devices) { return only; });
    }
    // Tells whether only the first device has bytes of a base. If so, all its bytes count as written.
    bool settle(std::int64_t base, std::int64_t nbytes) {
        Line &line = lines_[base];
        for (const Line::Interval &one : line.all())
            if (one.devices > 1) return false;
        line.change({base, 0, nbytes, 1, nbytes}, [](Devices) { return Devices(1); });
        return true;
    }
    void forget(std::int64_t base) { lines_.erase(base); }

    // Returns the written pieces of a base with their devices.
    std::vector<Piece> all_of(std::int64_t base) const {
        std::vector<Piece> found;
        const std::vector<Line::Interval> &all = line_of(base).all();
        for (std::size_t at = 0; at + 1 < all.size(); at++)
            if (all[at].devices) found.push_back({base, all[at].start, all[at + 1].start, all[at].devices});
        return found;
    }
    std::vector<std::int64_t> bases() const {
        std::vector<std::int64_t> found;
        for (const auto &[base, line] : lines_) found.push_back(base);
        std::sort(found.begin(), found.end());
        return found;
    }
    std::size_t intervals() const {
        std::size_t many = 0;
        for (const auto &[base, line] : lines_) many += line.all().size();
        return many;
    }

private:
    static constexpr Devices ANY = ~Devices(0);

    static Span whole(const Piece &piece) { return {piece.base, piece.start, piece.nbytes(), 1, piece.nbytes()}; }
    // Whether an interval between the ends of a span is as asked: quick, since most spans meet one interval.
    template <class Is> static bool has(const Line &line, const Span &span, Is &&is) {
        bool found = false;
        line.within(span.start, span.end(), [&](std::int64_t, std::int64_t, Devices devices) {
            found = is(devices);
            return !found;
        });
        return found;
    }
    // Whether bytes between two pieces can be copied with them: the source has to have them, unless they were never
    // written, and the device has to lack them.
    bool can_go_along(std::int64_t base, std::int64_t start, std::int64_t end, int source, int device) const {
        bool can = true;
        line_of(base).within(start, end, [&](std::int64_t, std::int64_t, Devices devices) {
            can = !devices || (!(devices >> device & 1) && devices >> source & 1);
            return can;
        });
        return can;
    }
    const Line *find(std::int64_t base) const {
        const auto found = lines_.find(base);
        return found == lines_.end() ? nullptr : &found->second;
    }
    const Line &line_of(std::int64_t base) const {
        static const Line none;
        const Line *found = find(base);
        return found ? *found : none;
    }

    std::unordered_map<std::int64_t, Line> lines_;
};

}  // namespace acs_cl
