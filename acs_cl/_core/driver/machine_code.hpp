// When a driver needs other machine code for a launch. PoCL makes machine code of a kernel for launches with an offset and
// for those without, for each local size, and anew whenever a launch is larger than all before it. Before 6.0 it confuses
// the users of such pieces when a launch ends. So a piece may go while it runs, and a build with assertions ends the
// process. If none is made while another one is in use, and none with an offset runs beside one without, it counts right.
// Without assertions only offsets matter: all sizes share one file of machine code, which stays as long as any of them is
// kept.

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <unordered_map>

#include "launch/sizes.hpp"

namespace acs_cl {

class MachineCode {
public:
    // `by_size`: sizes matter, too.
    explicit MachineCode(bool by_size) : by_size_(by_size) {}

    // Notes a launch of a kernel. `code` stands for its program and name. `is_idle`: nothing is in flight. Returns whether
    // the launch may need another piece than those before it, so that nothing may be in flight when it begins.
    bool note(std::size_t code, const Sizes &sizes, const std::size_t *offset, bool is_idle) {
        const bool has_offset = offset && std::any_of(offset, offset + sizes[0], [](std::size_t at) { return at; });
        if (is_idle) idle_++;
        Known &one = known_[code];
        // what was made may be gone again, and then is made anew
        if (by_size_ && made_ > KEPT && one.since != idle_) one = Known();
        const bool is_first = one.is_new, is_other = !is_first && has_offset != one.has_offset;
        one.is_new = false;
        one.has_offset = has_offset;
        one.since = idle_;
        const bool makes = by_size_ && makes_one(one, sizes);
        const bool waits = (makes || is_other) && !is_first && !is_idle;
        if (waits) one.since = ++idle_;
        return waits;
    }

private:
    static constexpr std::size_t KEPT = 96;    // PoCL keeps 128 pieces; other parts of the process use some
    static constexpr std::size_t MOST = 4096;  // sizes that are remembered of a kernel
    using Size = std::array<std::size_t, 4>;

    struct Known {
        bool is_new = true;
        bool has_offset = false;             // of the last launch
        std::uint64_t since = 0;             // when something was in flight last, as a number of `idle_`
        std::map<Size, std::size_t> widest;  // by local size
        std::set<Size> sizes;                // global ones without a local size, which the driver chooses by them
    };

    static bool makes_one(Known &one, const Sizes &sizes) {
        if (one.sizes.size() + one.widest.size() >= MOST) one.sizes.clear(), one.widest.clear();
        if (!sizes[4]) {
            const bool is_new = one.sizes.insert({sizes[0], sizes[1], sizes[2], sizes[3]}).second;
            made_ += is_new;
            return is_new;
        }
        const std::size_t width = *std::max_element(&sizes[1], &sizes[1] + sizes[0]);
        std::size_t &widest = one.widest[{sizes[4], sizes[5], sizes[6], sizes[7]}];
        const bool is_wider = width > widest;
        made_ += is_wider;
        widest = std::max(width, widest);
        return is_wider;
    }

    inline static std::size_t made_ = 0;  // pieces of the process so far, at most; with the GIL
    const bool by_size_;
    std::uint64_t idle_ = 1;              // how often nothing was in flight
    std::unordered_map<std::size_t, Known> known_;
};

}  // namespace acs_cl
