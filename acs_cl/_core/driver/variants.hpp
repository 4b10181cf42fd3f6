// The variants of a kernel: PoCL makes machine code of a kernel for launches with an offset and for those without, and
// anew whenever a launch is larger than all before it. Before 6.0 it confuses their users when a launch ends. So a
// variant may go while it runs, and a build with assertions ends the process. Where launches of two variants are never in
// flight at one time, it counts right.

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "launch/sizes.hpp"

namespace acs_cl {

class Variants {
public:
    // Notes a launch. Returns whether it may need another variant than those before it with the same local size.
    bool note(const Sizes &sizes, const std::size_t *offset) {
        const std::array<std::size_t, 4> local{sizes[4], sizes[5], sizes[6], sizes[7]};
        const std::size_t width = *std::max_element(&sizes[1], &sizes[1] + sizes[0]);
        const bool has_offset = offset && std::any_of(offset, offset + sizes[0], [](std::size_t at) { return at; });
        auto one = std::find_if(known_.begin(), known_.end(), [&](const Known &one) { return one.local == local; });
        if (one == known_.end()) {
            known_.push_back({local, width, has_offset});
            return false;
        }
        const bool is_other = width > one->width || has_offset != one->has_offset;
        *one = {local, std::max(width, one->width), has_offset};
        return is_other;
    }

private:
    struct Known {
        std::array<std::size_t, 4> local;
        std::size_t width;  // of the largest launch
        bool has_offset;    // of the last launch
    };
    std::vector<Known> known_;
};

}  // namespace acs_cl
