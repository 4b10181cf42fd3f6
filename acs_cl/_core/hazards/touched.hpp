// The access of a launch: nodes of its arrays' bytes, and bits that say which of them are read and written.

#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "python/spans.hpp"

namespace acs_cl {

constexpr int MOST_SPANS = 32;  // bits of a word: pointers, and values that decide

struct Touched {
    std::uint32_t many = 0, reads = 0, writes = 0;
    bool overwrites = false;  // surely overwrites everything that it writes
    Node *nodes[MOST_SPANS];  // last, since most launches have few

    Touched() = default;
    Touched(const Touched &other) { *this = other; }
    Touched &operator=(const Touched &other) {  // copies only the nodes that are there
        std::copy_n(other.nodes, other.many, nodes);
        many = other.many;
        reads = other.reads;
        writes = other.writes;
        overwrites = other.overwrites;
        return *this;
    }

    void add(Node *node, bool read, bool written) {
        reads |= std::uint32_t(read) << many;
        writes |= std::uint32_t(written) << many;
        nodes[many++] = node;
    }

    void hold() const { std::for_each_n(nodes, many, [](Node *node) { node->holders++; }); }
    // Puts held nodes into the index again that were taken out.
    void renew(Hazards &hazards) {
        for (std::uint32_t at = 0; at < many; at++) {
            if (hazards.has(*nodes[at])) continue;
            Node *const now = hazards.node(nodes[at]->span()).get();
            now->holders++;
            std::exchange(nodes[at], now)->let_go();
        }
    }
    void let_go() const { std::for_each_n(nodes, many, [](Node *node) { node->let_go(); }); }
};

// Holds the nodes of a launch while a driver is called without the GIL.
struct Holding : Single {
    explicit Holding(const Touched &touched) : touched_(touched) { touched_.hold(); }
    ~Holding() { touched_.let_go(); }

private:
    const Touched &touched_;
};

// Makes a `records.Access` for Python.
inline nb::object new_access(const nb::tuple &reads, const nb::tuple &writes, const nb::tuple &overwrites = {}) {
    static const nb::handle type = named_tuple("acs_cl.records", "Access");
    return named(type, nb::make_tuple(reads, writes, overwrites));
}
inline nb::object access_of(const Touched &touched) {
    const auto spans = [&](std::uint32_t which) {
        nb::list chosen;
        for (std::uint32_t at = 0; at < touched.many; at++)
            if (which >> at & 1) chosen.append(object_of(touched.nodes[at]->span()));
        return nb::tuple(chosen);
    };
    const nb::tuple written = spans(touched.writes);
    return new_access(spans(touched.reads), written, touched.overwrites ? written : nb::tuple());
}

}  // namespace acs_cl
