// The commands of an epoch: words to their places in a region, launches of the scheduler, and a read of
// what became of it, in one call from Python. acs_cl/scheduler/sender.py says which.

#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "driver/kernel.hpp"

namespace acs_cl {

// A contiguous piece of host memory, which Python keeps until the driver is through with it.
struct HostBytes {
    HostBytes(nb::handle object, bool is_written) {
        int flags = is_written ? PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE : PyBUF_C_CONTIGUOUS;
        if (PyObject_GetBuffer(object.ptr(), &view, flags)) throw nb::python_error();
    }
    ~HostBytes() { PyBuffer_Release(&view); }
    HostBytes(const HostBytes &) = delete;
    HostBytes &operator=(const HostBytes &) = delete;

    std::size_t nbytes() const { return std::size_t(view.len); }

    Py_buffer view = {};
};

// Enqueues all of it on a queue that is in order, and flushes that. Returns the driver's status, how
// many commands it has taken, and events to be released: of the first and of the last launch, where
// `is_timed`, and of the read.
//
// `writes`: a place in bytes and a buffer each. `launches`: groups, and index and value of arguments in
// turns. The first command waits for `wait_for`, which are addresses of events. An event takes the
// driver as long as a third of a launch, and so nothing has one that nobody asks for.
inline nb::tuple send_epoch(std::uintptr_t queue_address, QueueKernel &kernel, nb::handle region,
                            std::size_t group, const std::vector<std::uintptr_t> &wait_for,
                            nb::list writes, nb::list launches, std::size_t status_at,
                            nb::handle status, bool is_timed) {
    auto *queue = reinterpret_cast<void *>(queue_address);
    void *memory = address(region.attr("int_ptr"));
    std::vector<void *> behind;
    for (std::uintptr_t event : wait_for) behind.push_back(reinterpret_cast<void *>(event));
    void *first = nullptr, *last = nullptr, *read = nullptr;
    std::size_t taken = 0;
    auto done = [&](std::int32_t failed) {
        if (taken) driver.flush(queue);
        auto number = [](void *event) { return std::uintptr_t(event); };
        return nb::make_tuple(failed, taken, number(first), number(last), number(read));
    };
    auto count = [&](std::int32_t failed) {
        taken += !failed;
        behind.clear();
        return failed;
    };
    auto waited = [&] { return behind.empty() ? nullptr : behind.data(); };

    for (nb::handle write : writes) {
        HostBytes from(write[1], false);
        std::int32_t failed = count(driver.write_buffer(
            queue, memory, 0, nb::cast<std::size_t>(write[0]), from.nbytes(), from.view.buf,
            std::uint32_t(behind.size()), waited(), nullptr));
        if (failed) return done(failed);
    }
    if (std::int32_t failed = kernel.put_buffer(0, memory, region.ptr())) return done(failed);
    std::size_t left = launches.size();
    for (nb::handle launch : launches) {
        left--;
        PyObject *turns = nb::handle(launch[1]).ptr();
        for (Py_ssize_t at = 0; at + 1 < PyTuple_GET_SIZE(turns); at += 2) {
            nb::bytes value = nb::borrow<nb::bytes>(PyTuple_GET_ITEM(turns, at + 1));
            std::size_t index = PyLong_AsSize_t(PyTuple_GET_ITEM(turns, at));
            if (std::int32_t failed = kernel.put_value(index, {value.c_str(), value.size()}))
                return done(failed);
        }
        std::size_t items = nb::cast<std::size_t>(launch[0]) * group;
        void **event = !is_timed ? nullptr : !first ? &first : !left ? &last : nullptr;
        const Sizes sizes = {1, items, 0, 0, 1, group, 0, 0};
        if (std::int32_t failed = count(kernel.enqueue(queue, sizes, behind, event)))
            return done(failed);
    }
    HostBytes to(status, true);
    return done(count(driver.read_buffer(queue, memory, 0, status_at, to.nbytes(), to.view.buf,
                                         std::uint32_t(behind.size()), waited(), &read)));
}

}  // namespace acs_cl
