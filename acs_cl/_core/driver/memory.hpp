// The driver's memory behind PyOpenCL objects, as spans for hazards. Two objects for the same memory have spans that
// meet. So the span of a sub-buffer names its buffer and the place in it. Shared virtual memory is named by its
// address, like a buffer on the program's own memory. All launches use these names.

#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <vector>

#include "driver/kernel.hpp"
#include "python/spans.hpp"
#include "python/types.hpp"

namespace acs_cl {

// The base of memory that is named by its address: ADDRESS_SPACE in acs_cl/access/arguments.py.
constexpr std::int64_t BY_ADDRESS = -1;

// Returns the span of some bytes, at least of one.
inline Span interval(std::int64_t base, std::int64_t start, std::uint64_t nbytes) {
    const auto width = std::int64_t(std::clamp<std::uint64_t>(nbytes, 1, INT64_MAX));
    return bounded({base, start, width, 1, width});
}
inline Span interval_at(const void *start, Py_ssize_t nbytes) {
    return interval(BY_ADDRESS, std::int64_t(reinterpret_cast<std::uintptr_t>(start)), std::uint64_t(nbytes));
}

// The allocations of a store: the start of each, as an address or a handle, and its size.
class Reserved {
public:
    void add(std::uint64_t start, std::uint64_t size) {
        sizes_[start] = size;
        changes_++;
    }
    // Returns its size.
    std::uint64_t remove(std::uint64_t start) {
        const std::uint64_t size = sizes_.at(start);
        sizes_.erase(start);
        changes_++;
        return size;
    }
    // Adds the allocations of another store, which lives at least as long.
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

// Returns the address of the first byte of a span, or the handle of its buffer.
inline std::uint64_t name_of(const Span &span) {
    return std::uint64_t(span.base == BY_ADDRESS ? span.start : -span.base);
}

// Knowledge about the memory of a PyOpenCL object, which keeps it in its attribute `acs_span`.
struct Memory {
    PyObject_HEAD
    PyObject *store;  // the `Reserved` of its runtime; null: it is for any that does not own it
    Span span;
    NodePointer node;  // in the hazards that asked last
    bool is_host;      // the host may look at it without another command

    // Returns its node. Null: it may be all memory, or is left to Python.
    Node *node_in(Hazards &hazards) {
        if (!node || !hazards.has(*node)) {
            if (span.base == EVERYTHING) return nullptr;
            node = hazards.node(span);
        }
        return hazards.leaves(span) ? nullptr : node.get();
    }
    // Whether its first byte is known. It is not if the extent is unknown.
    bool is_placed() const { return span.base != BY_ADDRESS || span.start; }

    auto objects() { return std::array{&store}; }
    void end() { node = {}; }
};

// Returns the `Memory` of an object, for the runtime of a store. It is all memory if it comes from the store, or if the
// driver does not tell. None: the object is no memory.
nb::object memory_of(PyObject *object, nb::handle store);

// The sizes of an image: its width, height, depth and layers, as a kernel gets them.
constexpr std::size_t IMAGE_BYTES = 16;  // as in access/binder.py
using ImageSizes = std::array<std::int32_t, IMAGE_BYTES / 4>;

// Asks the driver for them. None: it is no image, or the driver does not tell. A size that an image has not is 0.
std::optional<ImageSizes> sizes_of_image(PyObject *object);

void add_memory(nb::module_ &module);

}  // namespace acs_cl
