// What launches touch of their arrays, as Python found it: what acs_cl/access/narrow.py keeps of that. It
// does not depend on which arrays these are, but on where in them their views are.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hazards/touched.hpp"

namespace acs_cl {

constexpr std::size_t MOST_FOUND = 1024;  // accesses of which the spans are kept

// The spans of a launch's arrays; the first base that comes has number 0, and so on.
struct Wholes {
    Span spans[MOST_SPANS];
    std::int64_t bases[MOST_SPANS];
    std::uint32_t many, many_bases = 0;

    explicit Wholes(const Touched &touched) : many(touched.many) {
        for (std::uint32_t at = 0; at < many; at++) {
            spans[at] = touched.nodes[at]->span;
            std::int64_t number = number_of(spans[at].base);
            if (number < 0) bases[number = many_bases++] = spans[at].base;
            spans[at].base = number;
        }
    }

    std::string key() const {
        return {reinterpret_cast<const char *>(spans), many * sizeof(Span)};
    }

    std::int64_t number_of(std::int64_t base) const {
        for (std::uint32_t at = 0; at < many_bases; at++)
            if (bases[at] == base) return at;
        return -1;
    }
};

// What launches of one size and the same numbers touch.
class Reach {
public:
    std::vector<std::int64_t> covers;  // all of their arrays where each has so many bytes at most

    // What one touches that has the arrays `whole`; null where that is not known.
    const Touched *find(const Touched &whole, Hazards &hazards) {
        if (parts_.empty()) return nullptr;
        std::string key(reinterpret_cast<const char *>(whole.nodes), whole.many * sizeof(Node *));
        if (auto found = found_.find(key); found != found_.end()) {
            found->second.touched.renew(hazards);
            return &found->second.touched;
        }
        Wholes wholes(whole);
        auto parts = parts_.find(wholes.key());
        if (parts == parts_.end()) return nullptr;
        if (found_.size() > MOST_FOUND) found_.clear();
        auto made = found_.try_emplace(std::move(key), whole, parts->second, wholes, hazards);
        return &made.first->second.touched;
    }

    // The access that Python found for the arrays `whole`. Whether it was not known.
    bool learn(const Touched &whole, nb::handle access) {
        Wholes wholes(whole);
        Parts parts;
        for (int written = 0; written < 2; written++)
            for (nb::handle one : access[written]) {
                Span span = span_of(one.ptr());
                span.base = wholes.number_of(span.base);
                if (span.base < 0 || parts.size() + 1 >= MOST_SPANS) return true;  // one may decide
                parts.emplace_back(span, bool(written));
            }
        return parts_.try_emplace(wholes.key(), std::move(parts)).second;
    }

private:
    using Parts = std::vector<std::pair<Span, bool>>;  // and whether they are written

    // Holds the arrays' nodes, too, since they are what it is found by.
    struct Found {
        Touched whole, touched;

        Found(const Touched &of, const Parts &parts, const Wholes &wholes, Hazards &hazards)
            : whole(of) {
            for (const auto &[part, written] : parts) {
                Span span = part;
                span.base = wholes.bases[part.base];
                touched.add(hazards.node(span).get(), !written, written);
            }
            whole.hold();
            touched.hold();
        }
        ~Found() {
            whole.let_go();
            touched.let_go();
        }
        Found(const Found &) = delete;
        Found &operator=(const Found &) = delete;
    };

    std::unordered_map<std::string, Parts> parts_;
    std::unordered_map<std::string, Found> found_;  // by the nodes of the arrays
};

}  // namespace acs_cl
