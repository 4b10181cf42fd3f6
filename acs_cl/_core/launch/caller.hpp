// Kernels as they are called: a type of Python's own kind, so that a call finds no descriptor and no
// tuple on its way. What is not plain goes to `_call` of the class in Python that inherits from it.

#pragma once

#include "launch/plans.hpp"
#include "python/handle.hpp"

namespace acs_cl {

struct Caller {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *engine, *table, *queues;
    ToScheduler *to_scheduler;
    ToQueues *to_queues;

    auto objects() { return std::array{&engine, &table, &queues}; }
    void end() { forget(); }
    void keep(nb::handle one) { Py_XSETREF(table, one.inc_ref().ptr()); }
    void keep_queues(nb::handle one) { Py_XSETREF(queues, one.inc_ref().ptr()); }
    void forget() {
        delete std::exchange(to_scheduler, nullptr);
        ToQueues::forget(std::exchange(to_queues, nullptr));
    }
};

// Raises where an object is no kernel.
Caller *caller(nb::handle object);

// The next record of the open epoch, in its place but for arguments that do not fit.
struct Record {
    Record(const ToScheduler &to, const Head &head)
        : blob_bytes(to.blob_bytes), bytes(to.table->recorder->place(head.words)) {
        if (fits()) return;
        bytes = beside;
        std::memset(bytes, 0, HEAD_BYTES + blob_bytes);
        std::memcpy(bytes, head.words.data(), HEAD_BYTES);
    }
    Record(const Record &) = delete;
    Record &operator=(const Record &) = delete;

    bool fits() const { return blob_bytes <= INLINE_BYTES; }

    void enter(const ToScheduler &to, const Head &head, const Touched &touched) const {
        const std::string_view blob{bytes + HEAD_BYTES, blob_bytes};
        const std::string_view shape = head.shape ? std::string_view(*head.shape) : "";
        if (!fits()) std::memcpy(to.table->recorder->place({}), bytes, HEAD_BYTES);
        to.table->launch(fits() ? nullptr : &blob, head.shape ? &shape : nullptr, touched,
                          to.name.ptr());
    }

    std::size_t blob_bytes;
    char *bytes, beside[HEAD_BYTES + MOST_BLOB];
};

void add_caller(nb::module_ &module);
void add_teaching(nb::module_ &module);
void add_many(nb::module_ &module);

}  // namespace acs_cl
