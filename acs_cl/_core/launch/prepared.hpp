// Launches of kernels that come again. What stays the same is looked up once. Recorded graphs and several devices make
// them, under the runtime's lock.
//
// A launch returns its number. A negative number: no lane took it, and it is in the table, so that the engine goes on
// with it.

#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "driver/queues.hpp"

namespace acs_cl {

// Nodes of spans, which it holds.
class Held : Single {
public:
    explicit Held(PythonHazards &hazards) : hazards_(hazards) {}
    ~Held() { touched.let_go(); }

    // False: there are too many, or it is all memory.
    bool add(nb::handle spans, bool written) {
        for (PyObject *object : Items(spans.ptr()))
            if (!add(span_of(object), written)) return false;
        return true;
    }
    bool add(const Span &span, bool written) {
        if (span.base == EVERYTHING || touched.many == MOST_SPANS) return false;
        Node *node = hazards_.node(span).get();
        node->holders++;
        touched.add(node, !written, written);
        return true;
    }

    Touched touched;

private:
    PythonHazards &hazards_;
};

inline std::int64_t made(Queues &queues, bool is_on_lane) {
    const std::int64_t number = queues.table()->number;
    return is_on_lane ? number : -number;
}

// A launch of a kernel on its device.
class Prepared {
public:
    Prepared(PythonHazards &hazards, nb::object command, nb::handle access)
        : held_(hazards), command_(std::move(command)), fields_(command_) {
        const nb::handle reads = PyTuple_GET_ITEM(access.ptr(), 0), writes = PyTuple_GET_ITEM(access.ptr(), 1),
                         overwrites = PyTuple_GET_ITEM(access.ptr(), 2);
        held_.touched.overwrites = nb::len(overwrites);
        const bool is_told_so = !held_.touched.overwrites || overwrites.equal(writes);  // all of it, or nothing
        is_plain_ = fields_.plain && is_told_so && held_.add(reads, false) && held_.add(writes, true);
    }

    // Whether it may be made here.
    bool is_plain() const { return is_plain_; }

    std::int64_t launch(Queues &queues) const {
        QueueKernel *kernel = queues.table()->may_make() ? QueueKernel::of(fields_.kernel) : nullptr;
        if (kernel && !kernel->set(fields_.pointers, fields_.values, queues.classes())) kernel = nullptr;
        return made(queues, queues.launch(held_.touched, kernel, fields_.sizes, fields_.offset,
                                          PyTuple_GET_ITEM(command_.ptr(), 0), nb::none(),
                                          [this] { return command_; }));
    }

private:
    Held held_;
    nb::object command_;
    KernelFields fields_;
    bool is_plain_ = false;
};

// Launches that are made one after another on the lanes of one device.
class Series {
public:
    explicit Series(std::vector<const Prepared *> launches) : launches_(std::move(launches)) {}

    // Makes up to `most` of them, from the one at `first` on, up to one that no lane took. Returns the number of the
    // last one; 0: Python has to make the first one, because something is unusual.
    std::int64_t launch(std::size_t first, std::size_t most, Queues &queues) const {
        std::int64_t number = 0;
        for (std::size_t at = first; at < launches_.size() && at - first < most && number >= 0; at++) {
            if (!queues.table()->may_go_on()) break;
            number = launches_[at]->launch(queues);
        }
        return number;
    }

private:
    std::vector<const Prepared *> launches_;
};

}  // namespace acs_cl
