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
                         to.name.ptr(), to.addresses);
    }

    std::size_t blob_bytes;
    char *bytes, beside[HEAD_BYTES + MOST_BLOB];
};

// A launch for queues, from its arguments to its lane. Nothing has changed where a step says false, but
// for the last one.
class OnQueue {
public:
    ToQueues &to;
    Table &table;
    const Home home;
    Touched touched;
    char values[8 * MOST_PARAMETERS];
    PyObject *args[MOST_PARAMETERS];  // those that are memory

    OnQueue(ToQueues &of, PyObject *engine)
        : to(of), table(*of.table), home(of.home(engine)), use_(of) {}

    // Whether the core has a plan for such launches. `decides`: with `when=`.
    bool begin(PyObject *global, PyObject *local, bool decides) {
        kernel_ = decides ? to.gated : to.kernel;
        decides_ = decides;
        global_ = global;
        local_ = local;
        return kernel_ && is_planned() && take_sizes(global, local, sizes_);
    }
    bool is_planned() const { return to.stay.lasts(table) && to.is_new(); }

    // The first argument, or once more for the next launch.
    void start() {
        touched = Touched();
        std::memset(values, 0, 8 * to.parameters.size());
    }

    bool take(std::size_t at, PyObject *value) {
        args[at] = value;
        return to.parameters[at].code == 'L' ? Py_TYPE(value) == to.queues->classes().local_type()
                                             : acs_cl::take(to.parameters[at], value, home, values, touched);
    }

    // All arguments are there, and `when`, if it decides.
    bool narrow(PyObject *when) {
        OnQueues *size = to.known.find(sizes_);
        return size && to.narrow(*size, values, args, touched) &&
               (!decides_ || flag_.take(when, home, to.by_address, touched));
    }

    // With the runtime's lock, so that the driver may be waited for without the GIL.
    bool set() const {
        return to.set(kernel_, values, args) && (!decides_ || to.set(flag_));
    }

    // Into the hazards, and to a lane. False: no lane took it, and it is in the table.
    bool launch() {
        to.stay.use();
        return to.queues->launch(touched, *kernel_, sizes_, to.name.ptr(), to.stay.reason, [&] {
            return to.command(global_, local_, values, args, decides_ ? &flag_ : nullptr);
        });
    }

private:
    ToQueues::Use use_;
    QueueKernel *kernel_ = nullptr;
    PyObject *global_ = nullptr, *local_ = nullptr;
    Sizes sizes_;
    Flag flag_;
    bool decides_ = false;
};

void add_caller(nb::module_ &module);
void add_teaching(nb::module_ &module);
void add_many(nb::module_ &module);

}  // namespace acs_cl
