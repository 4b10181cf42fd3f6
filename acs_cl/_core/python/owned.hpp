// A C++ object, and the Python object that it lives in.

#pragma once

#include <utility>

#include "python/nb.hpp"

namespace acs_cl {

// Holds both, and stands for a pointer to the first. None: null.
template <typename What>
class Owned {
public:
    Owned() = default;
    Owned(nb::object owner) : what_(nb::cast<What *>(owner)), owner_(std::move(owner)) {}

    operator What *() const { return what_; }
    What *operator->() const { return what_; }
    const nb::object &owner() const { return owner_; }
    nb::object owner_or_none() const { return what_ ? owner_ : nb::none(); }

private:
    What *what_ = nullptr;
    nb::object owner_;
};

}  // namespace acs_cl
