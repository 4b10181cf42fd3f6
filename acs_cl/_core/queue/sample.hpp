// A sample: what consecutive launches follow, among those in flight when they came. The level of a launch is the
// length of the longest chain up to it. Launches that had ended by then count as a step before.
// acs_cl/queue/bypass.py says why.

#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace acs_cl {

class Sample {
public:
    std::int64_t many = 0, steps = 0;

    // Adds a launch. `is_live(number)`: whether a launch is in flight.
    template <typename IsLive>
    void note(std::int64_t number, const std::vector<std::int64_t> &upstream, IsLive &&is_live) {
        auto ended = [&](const Level &one) {
            if (is_live(one.first)) return false;
            past_ = std::max(past_, one.second);
            return true;
        };
        levels_.erase(std::remove_if(levels_.begin(), levels_.end(), ended), levels_.end());
        std::int64_t level = past_ + 1;
        for (const Level &one : levels_)
            if (std::find(upstream.begin(), upstream.end(), one.first) != upstream.end())
                level = std::max(level, one.second + 1);
        levels_.emplace_back(number, level);
        many++;
        steps = std::max(steps, level);
    }

    double overlap() const { return steps ? double(many) / double(steps) : 1; }

private:
    using Level = std::pair<std::int64_t, std::int64_t>;
    std::vector<Level> levels_;  // number and level of launches in flight
    std::int64_t past_ = 0;
};

}  // namespace acs_cl
