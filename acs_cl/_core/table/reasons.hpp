// Why launches went to lanes beside a scheduler: of the newest ones, and how many for each reason. A launch is
// noted by two stores, since each one that goes to a lane is.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>

namespace acs_cl {

namespace nb = nanobind;

class Reasons {
public:
    // A launch went to a lane.
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

    // A launch went somewhere else.
    void keep(std::int64_t number, const nb::object &where) {
        Kept &one = kept_[std::size_t(number) % REMEMBERED];
        one.number = number;
        one.where = where;
        newest_ = std::max(newest_, number);
    }

    // What was kept of a launch, or None.
    nb::object of(std::int64_t number) const {
        const Kept &one = kept_[std::size_t(number) % REMEMBERED];
        return number && one.number == number ? one.where : nb::none();
    }

    // Whether it would still be known of a launch that it was kept.
    bool reaches(std::int64_t number) const { return number > newest_ - std::int64_t(REMEMBERED); }

    // How many launches there were for each reason.
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
    std::vector<std::pair<nb::object, std::int64_t>> counted_;  // one object is one reason
    nb::dict sums_;
    std::int64_t newest_ = 0;
};

}  // namespace acs_cl
