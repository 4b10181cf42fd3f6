// Pinned memory of the host for reads. A GPU's driver reads into other memory by a thread of its own, so the read ends
// some microseconds later, or tens of them on another core (docs/notes/2026-11-23-small-reads.md).

#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "hazards/single.hpp"
#include "python/nb.hpp"

namespace acs_cl {

// The bytes of an object, as long as this lives.
struct Bytes : Single {
    Py_buffer view = {};

    ~Bytes() { PyBuffer_Release(&view); }

    // False: the object has none of that kind, such as if its elements have a type that buffers do not know.
    bool take(PyObject *object, int flags) {
        if (!PyObject_GetBuffer(object, &view, flags)) return true;
        PyErr_Clear();
        return false;
    }
    const char *data() const { return static_cast<const char *>(view.buf); }
    std::size_t nbytes() const { return std::size_t(view.len); }
};

// A contiguous piece of host memory, which Python keeps until the driver no longer uses it.
struct HostBytes : Bytes {
    HostBytes(nb::handle object, bool is_written) {
        int flags = is_written ? PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE : PyBUF_C_CONTIGUOUS;
        if (PyObject_GetBuffer(object.ptr(), &view, flags)) throw nb::python_error();
    }
};

// Memory for one read. If it is pinned, `keeper` holds it, and may outlive everything else.
struct Landing {
    void *bytes = nullptr;
    nb::object keeper;
};

// Pieces of pinned memory. Each of them serves one read at a time.
class Landings {
public:
    // `make` is called at the first use, and returns a list of arrays of one size. None: there are none.
    void use(nb::object make) {
        free_.clear();
        taken_ = nbytes_ = 0;
        make_ = std::move(make);
    }
    const nb::object &maker() const { return make_; }

    // Takes a piece. False: none is free, or they are too short.
    bool take(std::size_t nbytes, Landing &landing) {
        if (make_.is_valid() && !make_.is_none())
            for (nb::handle one : std::exchange(make_, nb::object())()) {
                const HostBytes bytes(one, true);
                nbytes_ = bytes.nbytes();
                free_.push_back({bytes.view.buf, nb::borrow(one)});
            }
        if (free_.empty() || nbytes > nbytes_) return false;
        landing = std::move(free_.back());
        free_.pop_back();
        taken_++;
        return true;
    }

    // Gives a piece back.
    void give(Landing &&landing) {
        if (!landing.keeper.is_valid()) return;
        free_.push_back(std::move(landing));
        taken_--;
    }

    std::size_t taken() const { return taken_; }
    std::size_t free() const { return free_.size(); }

private:
    nb::object make_;
    std::vector<Landing> free_;
    std::size_t nbytes_ = 0, taken_ = 0;
};

}  // namespace acs_cl
