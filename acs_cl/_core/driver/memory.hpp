// Memory of the driver's behind PyOpenCL's objects: its bytes, as hazards name them. Two objects for the same memory
// meet: a sub-buffer is named by its buffer and where it is there, shared virtual memory by its address, and so is
// a buffer on the program's own memory.

#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <vector>

#include "driver/kernel.hpp"
#include "python/spans.hpp"
#include "python/types.hpp"

namespace acs_cl {

// The base of what is named by its address: ADDRESS_SPACE in acs_cl/access/arguments.py.
constexpr std::int64_t BY_ADDRESS = -1;

// What a store has from the driver: where each allocation starts, as an address or a handle, and its size.
class Reserved {
public:
    void add(std::uint64_t start, std::uint64_t size) {
        sizes_[start] = size;
        changes_++;
    }
    // How much that was.
    std::uint64_t remove(std::uint64_t start) {
        const std::uint64_t size = sizes_.at(start);
        sizes_.erase(start);
        changes_++;
        return size;
    }
    // What another store has counts, too. It lives as long as this.
    void include(const Reserved &other) { others_.push_back(&other); }
    bool owns(std::uint64_t address) const {
        auto next = sizes_.upper_bound(address);
        if (next != sizes_.begin() && address - std::prev(next)->first < std::prev(next)->second) return true;
        return std::any_of(others_.begin(), others_.end(), [&](auto *other) { return other->owns(address); });
    }
    const std::map<std::uint64_t, std::uint64_t> &sizes() const { return sizes_; }
    std::int64_t changes() const { return changes_; }

private:
    std::map<std::uint64_t, std::uint64_t> sizes_;
    std::vector<const Reserved *> others_;
    std::int64_t changes_ = 0;
};

// What is known of such an object, which keeps this as its `acs_span`.
struct Memory {
    PyObject_HEAD
    PyObject *store;  // the `Reserved` whose runtime it is for; null: any
    Span span;
    NodePointer node;  // of the hazards that asked last
    bool is_host;      // the host may look at it without another command

    // Null where these are all memory, or left to Python.
    Node *node_in(Hazards &hazards) {
        if (!node || !hazards.has(*node)) {
            if (span.base == EVERYTHING) return nullptr;
            node = hazards.node(span);
        }
        return hazards.leaves(span) ? nullptr : node.get();
    }
    // Whether an argument begins where its bytes do: one of unknown extent does not.
    bool is_placed() const { return span.base != BY_ADDRESS || span.start; }

    auto objects() { return std::array{&store}; }
    void end() { node = {}; }
};

// The bytes of an object by what the driver calls it; all memory where that is not told. None: it is no memory.
std::optional<Span> driver_span(PyObject *object);
// The same of a buffer on the program's own memory, by where that is; none for others.
std::optional<Span> host_span(PyObject *object, const Span &span);
// What an object is for the runtime of a store; all memory where it has that from the store. None: it is no memory.
nb::object memory_of(PyObject *object, nb::handle store);

void add_memory(nb::module_ &module);

}  // namespace acs_cl
