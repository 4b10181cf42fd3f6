// How the core cuts launches of one size into bands (docs/design/bands.md). acs_cl/plans.py tells it about launches
// that went in bands before.

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

constexpr std::size_t MOST_CUTS = 16;          // for launches of one size
constexpr std::size_t MOST_BAND_NUMBERS = 64;  // different numbers for which the reach of a band is kept

// Some groups of a launch that are a launch of their own: one with an offset on a lane, or some of the tiles in the
// scheduler.
struct BandPlan {
    std::vector<access::Launched> boxes;  // its groups, without the launch's numbers
    Sizes sizes{};
    std::array<std::size_t, 4> offset{};  // the number of dimensions comes first
    nb::object python_offset;
    RecordWords words{};  // no arguments
    ByBytes<Reach, MOST_BAND_NUMBERS> reaches;

    bool has_offset() const { return offset[1] || offset[2] || offset[3]; }
};

// All bands of a launch, on lanes or in a scheduler.
struct CutPlan {
    nb::object asked;  // the value of `bands=`
    std::vector<BandPlan> bands;

    KernelVariant with_offset;  // for bands that have one
    nb::object reason;  // why they go to lanes

    nb::object scheduler;
    std::uint64_t arena_bytes = 0;  // all local memory
    std::optional<std::string> shape;

    bool is_recorded() const { return scheduler.is_valid(); }

    // Whether it is for this value of `bands=`. Only values of the same type are compared, which runs no code of the
    // program.
    bool is_for(PyObject *said) const {
        if (said == asked.ptr()) return true;
        if (Py_TYPE(said) != Py_TYPE(asked.ptr())) return false;
        const int same = PyObject_RichCompareBool(said, asked.ptr(), Py_EQ);
        if (same < 0) PyErr_Clear();
        return same > 0;
    }
};

// The known cuts of launches of one size.
class CutPlans {
public:
    // Returns the first one for a value of `bands=` that may go now, in a scheduler rather than on lanes. Null: none.
    template <typename MayGo>
    std::shared_ptr<CutPlan> find(PyObject *asked, MayGo &&may_go) const {
        const std::vector<std::shared_ptr<CutPlan>> all = all_;  // a scheduler may be opened for one
        for (const bool is_recorded : {true, false})
            for (const auto &one : all)
                if (one->is_recorded() == is_recorded && one->is_for(asked) && may_go(*one)) return one;
        return nullptr;
    }

    void add(std::shared_ptr<CutPlan> made) {
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
