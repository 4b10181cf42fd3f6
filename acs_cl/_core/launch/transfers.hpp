// Transfers of arrays as launches of the core's own; and reads that the program waits for at once, with
// the wait, in one call. acs_cl/transfers.py and acs_cl/calls.py say when.

#pragma once

#include <utility>

#include "driver/queues.hpp"
#include "launch/arguments.hpp"
#include "python/handle.hpp"
#include "python/waiting.hpp"
#include "table/ends.hpp"

namespace acs_cl {

// Waits for a read of the core's own into `host` by its event, which is given back, and has what ended
// told. Whether it ended well. Where a signal's handler raises meanwhile, the driver still has the
// memory, which lives until then.
inline bool wait_for(Queues &queues, nb::handle engine, std::int64_t number, void *event,
                     nb::handle host) {
    struct Given {
        void *event;
        ~Given() { driver.release_event(event); }
    } given{event};
    queues.flush_for(number);
    if (wait_for_event(event) == Wait::RAISED) {
        queues.keep(number, host);
        throw PythonError();
    }
    bool has_ended_well = !event_status(event);
    Table &table = *queues.table();
    if (table.lock->try_take()) {
        Taken taken(table.lock);
        nb::list ended = queues.poll_up_to(number);
        if ((ended.size() || table.has_ready() || !table.is_simple()) &&
            !queues.tell(engine.ptr(), ended))
            throw PythonError();
    }
    return has_ended_well;
}

// The host's side of a transfer.
struct HostSide {
    PyObject *object;  // null: there is none
    Py_buffer view = {};

    HostSide(PyObject *of, bool is_written) : object(of) {
        const int flags = PyBUF_C_CONTIGUOUS | (is_written ? PyBUF_WRITABLE : 0);
        if (of && PyObject_GetBuffer(of, &view, flags))
            PyErr_Clear();  // a type of elements that buffers do not have
    }
    ~HostSide() { PyBuffer_Release(&view); }
    HostSide(const HostSide &) = delete;
    HostSide &operator=(const HostSide &) = delete;
};

// A transfer from `source` to `target`; each is an array in one piece or memory of the host, and one is an
// array. A source of fewer bytes than the target has is a pattern.
class ArrayTransfer {
public:
    Transfer plain{};
    Touched touched;

    ArrayTransfer(Queues &queues, nb::handle engine, nb::object target, nb::object source)
        : queues_(queues), table_(*queues.table()), engine_(engine), target_(std::move(target)),
          source_(std::move(source)), to_(view_of(target_.ptr())), from_(view_of(source_.ptr())),
          host_(to_ && from_ ? nullptr : to_ ? source_.ptr() : target_.ptr(), !to_) {
        plain.kind = Transfer::COPY;
        is_plain_ = (!from_ || take(from_, false)) && (!to_ || take(to_, true)) &&
                    (!host_.object || take_host());
        touched.overwrites = to_;
    }

    // Whether it is one that the core makes.
    bool is_plain() const { return is_plain_; }
    PyObject *result() const { return to_ ? nullptr : target_.ptr(); }

    // With the runtime's lock. False: no lane took it, and it is in the table.
    bool launch(PyObject *name, Queues::Waited *waited) const {
        static PyObject *const reasons[] = {PyUnicode_InternFromString("a read runs on a lane"),
                                            PyUnicode_InternFromString("a write runs on a lane"),
                                            PyUnicode_InternFromString("a copy runs on a lane"),
                                            PyUnicode_InternFromString("a fill runs on a lane")};
        const int kind = !to_ ? 0 : from_ ? 2 : plain.pattern.empty() ? 1 : 3;
        auto command = [&]() -> nb::object {
            return queues_.classes().transfer(nb::handle(name), to_ ? nb::handle(to_->place) : nb::handle(target_),
                                              from_ ? nb::handle(from_->place) : nb::handle(source_));
        };
        return queues_.launch(touched, plain, name, kind < 2 ? host_.object : nullptr, waited, command,
                              reasons[kind]);
    }

private:
    bool take(View *view, bool written) {
        const nb::handle place = view->place;
        if (view->engine != engine_.ptr() || !PyTuple_Check(place.ptr())) return false;
        const nb::handle memory = PyTuple_GET_ITEM(place.ptr(), 0);
        const bool is_svm = is_a(memory, queues_.classes().svm);
        if (!is_svm && !is_a(memory, queues_.classes().memory)) return false;
        Node *node = view->node_in(*table_.hazards);
        if (!node || node->span.rows != 1 || node->span.width != view->nbytes) return false;
        void *const start = address(memory.attr(is_svm ? "svm_ptr" : "int_ptr"));
        (written ? plain.target : plain.source) = start;
        (written ? plain.to : plain.from) = PyLong_AsSize_t(PyTuple_GET_ITEM(place.ptr(), 1));
        if (is_svm) plain.kind = Transfer::SVM_COPY;
        plain.nbytes = std::size_t(view->nbytes);
        touched.add(node, !written, written);
        return true;
    }

    bool take_host() {
        const auto nbytes = std::size_t(host_.view.len);
        if (!host_.view.buf || (nbytes != plain.nbytes && (!to_ || nbytes > plain.nbytes)))
            return false;
        if (nbytes < plain.nbytes) {
            plain.pattern = {static_cast<const char *>(host_.view.buf), nbytes};
            plain.kind = plain.kind == Transfer::COPY ? Transfer::FILL : Transfer::SVM_FILL;
            return true;
        }
        (to_ ? plain.source : plain.target) = host_.view.buf;
        if (plain.kind == Transfer::COPY) plain.kind = to_ ? Transfer::WRITE : Transfer::READ;
        return true;
    }

    Queues &queues_;
    Table &table_;
    nb::handle engine_;
    nb::object target_, source_;
    View *to_, *from_;
    const HostSide host_;
    bool is_plain_;
};

// True: `host` has the values of `array`, which is in one piece. False: the driver has failed. None:
// it is no plain read, and nothing has changed. A number: it is a launch, and has to be waited for.
inline nb::object read_now(Queues &queues, nb::handle engine, nb::object array, nb::object host) {
    static PyObject *const name = PyUnicode_InternFromString("read");
    Table *table = queues.table();
    if (!table || !table->is_plain() || !view_of(array.ptr())) return nb::none();
    const ArrayTransfer bound(queues, engine, host, array);
    Queues::Waited waited;
    waited.may_block = false;  // a signal is heard meanwhile
    std::int64_t number;
    {
        // again, for whoever made the buffer may have run code
        if (!bound.is_plain() || !table->is_plain() || !table->lock->try_take()) return nb::none();
        const Taken taken(table->lock);
        const bool is_on_lane = bound.launch(name, &waited);
        number = table->number;
        if (!is_on_lane) {
            if (!completed(engine.ptr(), nullptr, number)) throw PythonError();
            return nb::int_(number);
        }
    }
    const bool has_ended_well = wait_for(queues, engine, number, waited.event, host);
    if (table->should_look() && !completed(engine.ptr(), nullptr)) throw PythonError();
    return nb::bool_(has_ended_well);
}

// A transfer that nobody waits for now: a handle; or None, and nothing has changed.
inline nb::object transfer(Queues &queues, nb::handle engine, nb::object name, nb::object target,
                           nb::object source) {
    Table *table = queues.table();
    if (!table || !table->is_plain()) return nb::none();
    const ArrayTransfer bound(queues, engine, target, source);
    if (!bound.is_plain() || !table->is_plain()) return nb::none();
    const nb::object handle = nb::steal(
        new_handle(engine.ptr(), name.ptr(), 0, bound.touched, bound.result()));
    if (!handle.is_valid()) throw PythonError();
    if (!table->lock->try_take()) return nb::none();
    const Taken taken(table->lock);
    const bool is_on_lane = bound.launch(name.ptr(), nullptr);
    const std::int64_t number = reinterpret_cast<Handle *>(handle.ptr())->number = table->number;
    if (!is_on_lane && !completed(engine.ptr(), nullptr, number)) throw PythonError();
    return handle;
}

}  // namespace acs_cl
