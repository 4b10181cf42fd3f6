// How launches of one size are cut into bands (docs/design/bands.md), as far as the core makes these by itself.
// acs_cl/plans.py tells it of launches that went in bands before.

#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "driver/kernel.hpp"
#include "launch/binder.hpp"
#include "launch/reach.hpp"
#include "table/table.hpp"

namespace acs_cl {

constexpr std::size_t MOST_CUTS = 16;          // of launches of one size
constexpr std::size_t MOST_BAND_NUMBERS = 64;  // for which it is kept what a band reaches

// Some groups of a launch, which are a launch of their own: on a lane one with an offset, in the scheduler some of
// the tiles.
struct BandPlan {
    std::vector<access::Launched> boxes;  // which groups, without the launch's numbers
    Sizes sizes{};
    std::array<std::size_t, 4> offset{};  // how many numbers there are comes first
    nb::object python_size, python_offset;
    RecordWords words{};  // no arguments
    ByBytes<Reach, MOST_BAND_NUMBERS> reaches;

    bool has_offset() const { return offset[1] || offset[2] || offset[3]; }
};

// All of them: on lanes, or in a scheduler.
struct CutPlan {
    nb::object asked;  // by `bands=`
    std::vector<BandPlan> bands;

    nb::object kernel_object;  // for those with an offset
    QueueKernel *kernel = nullptr;
    nb::object reason;  // why they are there

    nb::object scheduler;
    std::uint64_t arena_bytes = 0;  // of local memory that there is
    std::optional<std::string> shape;

    bool is_recorded() const { return scheduler.is_valid(); }

    // Whether that is what `bands=` says. Only types that are known are compared, which run no code of the program's.
    bool is_for(PyObject *said) const {
        if (said == asked.ptr()) return true;
        if (Py_TYPE(said) != Py_TYPE(asked.ptr())) return false;
        const int same = PyObject_RichCompareBool(said, asked.ptr(), Py_EQ);
        if (same < 0) PyErr_Clear();
        return same > 0;
    }
};

// Those that are known of launches of one size.
class CutPlans {
public:
    // The first one as asked that may go now, in a scheduler rather than on lanes; null: none.
    template <typename MayGo>
    std::shared_ptr<CutPlan> find(PyObject *asked, MayGo &&may_go) const {
        const std::vector<std::shared_ptr<CutPlan>> all = all_;  // a scheduler may be opened for one
        for (const bool is_recorded : {true, false})
            for (const auto &one : all)
                if (one->is_recorded() == is_recorded && one->is_for(asked) && may_go(*one)) return one;
        return nullptr;
    }

    void learn(std::shared_ptr<CutPlan> made) {
        const auto same = [&](const auto &one) {
            return one->is_recorded() == made->is_recorded() && one->is_for(made->asked.ptr());
        };
        all_.erase(std::remove_if(all_.begin(), all_.end(), same), all_.end());
        if (all_.size() >= MOST_CUTS) all_.erase(all_.begin());
        all_.push_back(std::move(made));
    }

private:
    std::vector<std::shared_ptr<CutPlan>> all_;
};

}  // namespace acs_cl
