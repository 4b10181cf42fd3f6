// Decides whether launches are spread over lanes. If kernels end before the next but one is launched, lanes overlap
// nothing, and an event between lanes costs some drivers as much as a launch. All launches then go to one lane.

#pragma once

#include <algorithm>

namespace acs_cl {

class Spread {
public:
    bool wide = true;

    int back() const { return wide ? 2 : 4; }
    bool is_due() { return ++launches_ % (wide ? 8 : 4) == 0; }

    void note(bool ended) {
        if (!wide) {
            stretch_ += 4;
            if (ended && stretch_ >= STEADY) needed_ = VOTES;
            if (ended) return;
            wide = true;
            needed_ = std::min(2 * needed_, MOST_VOTES);
            votes_ = 0;
            return;
        }
        votes_ = ended ? votes_ + 1 : 0;
        if (votes_ < needed_) return;
        wide = false;
        stretch_ = 0;
    }

private:
    static constexpr int VOTES = 4, MOST_VOTES = 1024, STEADY = 256;

    int votes_ = 0, needed_ = VOTES;
    unsigned launches_ = 0;
    long stretch_ = 0;
};

}  // namespace acs_cl
