// Why launches went to lanes beside a scheduler: the reasons of the newest ones, and how many had each reason. A note
// takes two stores, because every launch on a lane is noted.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "python/nb.hpp"

namespace acs_cl {

class Reasons {
public:
    // Notes that a launch went to a lane.
    void note(std::int64_t number, const nb::object &reason) {
        keep(number, reason);
        auto found = std::find_if(counted_.begin(), counted_.end(),
                                  [&](const auto &one) { return one.first.is(reason); });
        if (found == counted_.end()) {
            if (counted_.size() >= MOST) add_up();
            found = counted_.emplace(counted_.end(), reason, 0);
        }
        found->second++;
    }

    // Notes that a launch went somewhere else.
    void keep(std::int64_t number, const nb::object &where) {
        Kept &one = kept_[std::size_t(number) % REMEMBERED];
        one.number = number;
        one.where = where;
        newest_ = std::max(newest_, number);
    }

    // Returns what was noted of a launch, or None.
    nb::object of(std::int64_t number) const {
        const Kept &one = kept_[std::size_t(number) % REMEMBERED];
        return number && one.number == number ? one.where : nb::none();
    }

    // Whether a note of this launch would still be there.
    bool reaches(std::int64_t number) const { return number > newest_ - std::int64_t(REMEMBERED); }

    // Returns how many launches had each reason.
    nb::dict counts() {
        add_up();
        return nb::steal<nb::dict>(PyDict_Copy(sums_.ptr()));
    }

private:
    static constexpr std::size_t REMEMBERED = 8192, MOST = 16;

    struct Kept {
        std::int64_t number = 0;
        nb::object where;
    };

    void add_up() {
        for (auto &[reason, many] : std::exchange(counted_, {}))
            sums_[reason] = nb::cast<std::int64_t>(sums_.attr("get")(reason, 0)) + many;
    }

    std::vector<Kept> kept_ = std::vector<Kept>(REMEMBERED);  // by number
    std::vector<std::pair<nb::object, std::int64_t>> counted_;  // each reason is one object
    nb::dict sums_;
    std::int64_t newest_ = 0;
};

}  // namespace acs_cl
