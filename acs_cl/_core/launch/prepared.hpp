// Launches of kernels that come again. What stays the same is looked up once. Recorded graphs and several devices make
// them, under the runtime's lock.
//
// A launch returns its number. A negative number: no lane took it, and it is in the table, so that the engine goes on
// with it.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
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

// Of a launch whose size the device decides: the index of the argument that takes a word for a wrong count, and what
// the count may be.
using CountedAt = std::tuple<std::size_t, std::uint32_t, std::uint32_t, bool>;

// A launch of a kernel on its device.
class Prepared {
public:
    // `counted`: each launch takes a word of its own, which `command` does not have.
    Prepared(PythonHazards &hazards, nb::object command, nb::handle access, const std::optional<CountedAt> &counted)
        : held_(hazards), command_(std::move(command)), fields_(command_) {
        if (counted) {
            counted_at_ = std::get<0>(*counted);
            allowed_ = {std::get<1>(*counted), std::get<2>(*counted), std::get<3>(*counted)};
        }
        const nb::handle reads = PyTuple_GET_ITEM(access.ptr(), 0), writes = PyTuple_GET_ITEM(access.ptr(), 1),
                         overwrites = PyTuple_GET_ITEM(access.ptr(), 2);
        held_.touched.overwrites = nb::len(overwrites);
        const bool is_told_so = !held_.touched.overwrites || overwrites.equal(writes);  // all of it, or nothing
        is_plain_ = fields_.plain && is_told_so && held_.add(reads, false) && held_.add(writes, true);
    }

    // Whether it may be made here.
    bool is_plain() const { return is_plain_; }

    // Makes it. 0: Python has to, because there is no word for a wrong count.
    std::int64_t launch(Queues &queues) const {
        if (!counted_at_) return launch_by(queues, nb::none(), [](QueueKernel &) { return true; }, [this] { return command_; });
        const std::optional<std::size_t> word = queues.take_word();
        if (!word) return 0;
        const nb::object memory = queues.counts.word(*word).memory;
        const std::int64_t number = queues.table()->number + 1;
        queues.counts.note(number, *word, allowed_);
        const std::int64_t found = launch_by(
            queues, Counts::why_on_lane(),
            [&](QueueKernel &kernel) { return kernel.set_memory(*counted_at_, memory, queues.classes()); },
            [&] { return with(memory); });
        queues.table()->count(number);
        return found;
    }

private:
    template <typename SetMore, typename Command>
    std::int64_t launch_by(Queues &queues, const nb::object &reason, SetMore &&set_more, Command &&command) const {
        const bool may_go = queues.table()->may_make() || queues.table()->may_go_to_lane();
        QueueKernel *kernel = may_go ? QueueKernel::of(fields_.kernel) : nullptr;
        if (kernel && !(kernel->set(fields_.pointers, fields_.values, queues.classes()) && set_more(*kernel)))
            kernel = nullptr;
        return made(queues, queues.launch(held_.touched, kernel, fields_.sizes, fields_.offset,
                                          PyTuple_GET_ITEM(command_.ptr(), 0), reason, command));
    }

    // Returns the command with the memory for a wrong count.
    nb::object with(const nb::object &memory) const {
        nb::list fields(command_);
        fields[4] = nb::borrow(fields_.pointers) + nb::make_tuple(*counted_at_, memory);
        return command_.type()(*nb::tuple(fields));
    }

    Held held_;
    nb::object command_;
    KernelFields fields_;
    std::optional<std::size_t> counted_at_;
    Allowed allowed_;
    bool is_plain_ = false;
};

// Launches that are made one after another on the lanes of one device.
class Series {
public:
    explicit Series(std::vector<const Prepared *> launches) : launches_(std::move(launches)) {}

    // Makes up to `most` of them, from the one at `first` on, up to one that no lane took. Returns the number of the
    // last one; 0: Python has to make the first one, because something is unusual.
    std::int64_t launch(std::size_t first, std::size_t most, Queues &queues) const {
        std::int64_t last = 0;
        for (std::size_t at = first; at < launches_.size() && at - first < most && last >= 0; at++) {
            if (!queues.table()->may_go_to_lane()) break;
            const std::int64_t number = launches_[at]->launch(queues);
            if (!number) break;
            last = number;
        }
        return last;
    }

private:
    std::vector<const Prepared *> launches_;
};

}  // namespace acs_cl
