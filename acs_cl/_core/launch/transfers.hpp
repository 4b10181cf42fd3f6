// Transfers: one binder for arrays and for `acs.Queue`, and the waits for them. acs_cl/transfers.py and acs_cl/calls.py
// use it for arrays, queue/transfers.cpp for queues.

#pragma once

#include <cstring>
#include <utility>

#include "driver/queues.hpp"
#include "launch/arguments.hpp"
#include "python/gil.hpp"
#include "python/handle.hpp"
#include "python/waiting.hpp"
#include "table/ends.hpp"

namespace acs_cl {

// Bytes up to which the host copies by itself what it sees. It holds locks meanwhile: 6 us, where a command takes 25 with
// PoCL. Of a MiB it would be longer than it saves.
constexpr std::size_t MOST_BY_HOST = 1 << 18;

// Waits for a read of the core into `host` by its event, which it releases, and tells Python what has ended. Returns
// whether the read ended well. If the handler of a signal raises, the driver still uses the memory, which is kept.
inline bool wait_for(Queues &queues, nb::handle engine, std::int64_t number, void *event,
                     nb::handle host) {
    const HeldEvent given(event);
    queues.flush_for(number);
    if (wait_for_event(event) == Wait::RAISED) {
        queues.keep(number, host);
        engine_was_interrupted(engine.ptr());
        throw PythonError();
    }
    bool has_ended_well = !event_status(event);
    Table &table = *queues.table();
    if (!table.lock->try_take()) {
        has_ended_well &= !table.sender;  // another thread may be handling the end of an epoch
    } else {
        Taken taken(table.lock);
        has_ended_well &= !table.poisoned && !table.has_bad_epoch();
        nb::list ended = queues.poll_up_to(number);
        if ((ended.size() || table.has_ready() || !table.is_simple()) &&
            !engine_hears(engine.ptr(), ended.ptr()))
            throw PythonError();
    }
    return has_ended_well;
}

// Waits for a launch, if a lane has it and nothing is unusual. Returns whether it has ended, and Python knows of it.
inline bool wait_on_lane(Queues &queues, nb::handle engine, std::int64_t number) {
    Table *table = queues.table();
    if (!table || runs_host_task || !table->is_simple() || !table->lock->try_take()) return false;
    void *event = nullptr;
    {
        Taken taken(table->lock);
        event = queues.event_to_wait_for(number);
    }
    if (!event) return false;
    wait_for(queues, engine, number, event, nb::none());
    return !table->has(number);
}

// A transfer under way into or out of the program's memory. An exception also waits for its end, because the memory may
// be used for anything afterwards.
struct UnderWay : Queues::Waited, Single {
    ~UnderWay() {
        if (!event) return;
        const WithoutGil others;
        driver.wait_for_events(1, &event);
        driver.release_event(event);
    }

    void *take() { return std::exchange(event, nullptr); }
};

// A transfer, and what it touches of the device's memory. It takes its two sides, and is launched then. At least one
// side is the driver's memory. The other one may be the program's. A pattern is bytes that are repeated over the
// target.
class BoundTransfer {
public:
    Transfer plain{};
    Touched touched;
    Bytes program;    // the program's side, or the pattern
    nb::object keeps;  // it lives as long as a lane has the transfer

    explicit BoundTransfer(Queues &of) : queues(of), table(*of.table()) {}

    // Takes bytes of the driver's memory from `offset` on, whose node somebody holds. False: there is no memory.
    bool take(const DriverMemory &memory, Node *node, std::size_t offset, std::size_t nbytes, bool written) {
        (written ? plain.target : plain.source) = memory.start;
        (written ? plain.to : plain.from) = offset;
        (written ? has_target_ : has_source_) = true;
        is_svm_ |= memory.is_svm;
        plain.nbytes = nbytes;
        touched.add(node, !written, written);
        return memory.start;
    }

    // Takes the program's memory as the other side: all of it, or other bytes in its place.
    void take_program(void *bytes = nullptr) {
        (has_target_ ? plain.source : plain.target) = bytes ? bytes : program.view.buf;
    }
    void take_pattern() {
        plain.pattern = {program.data(), program.nbytes()};
    }

    // Ends the sides.
    void finish() {
        const bool fills = !plain.pattern.empty();
        what_ = fills ? Transfer::FILL : !has_target_ ? Transfer::READ : has_source_ ? Transfer::COPY : Transfer::WRITE;
        plain.is_upload = what_ == Transfer::WRITE;
        plain.kind = !is_svm_ ? what_ : fills ? Transfer::SVM_FILL : Transfer::SVM_COPY;
    }

    static PyObject *name_of(Transfer::Kind kind) {
        static PyObject *const all[] = {
            PyUnicode_InternFromString("read"), PyUnicode_InternFromString("write"),
            PyUnicode_InternFromString("copy"), PyUnicode_InternFromString("fill")};
        return all[kind < Transfer::SVM_COPY ? kind : kind - 2];
    }
    PyObject *name() const { return name_of(what_); }

    // Launches it, with the runtime's lock. `command` makes its record. False: no lane took it, and it is in the table.
    template <typename Command>
    bool launch(Queues::Waited *waited, Command &&command) const {
        static PyObject *const reasons[] = {PyUnicode_InternFromString("a read runs on a lane"),
                                            PyUnicode_InternFromString("a write runs on a lane"),
                                            PyUnicode_InternFromString("a copy runs on a lane"),
                                            PyUnicode_InternFromString("a fill runs on a lane")};
        return queues.launch(touched, plain, name(), keeps.ptr(), waited, command, reasons[what_]);
    }

    Queues &queues;
    Table &table;

protected:
    bool is_svm_ = false;

private:
    Transfer::Kind what_ = Transfer::READ;
    bool has_source_ = false, has_target_ = false;
};

// A transfer between an array in one piece and memory of the host, or between two such arrays. A source with fewer
// bytes than the target is a pattern.
class ArrayTransfer : public BoundTransfer {
public:
    // `copied`: the program may change its own source when the call returns.
    ArrayTransfer(Queues &of, nb::handle engine, nb::object target, nb::object source, bool copied = false)
        : BoundTransfer(of), engine_(engine), target_(std::move(target)), source_(std::move(source)),
          to_(view_of(target_.ptr())), from_(view_of(source_.ptr())) {
        is_plain_ = (!from_ || take_view(from_, false)) && (!to_ || take_view(to_, true)) &&
                    ((to_ && from_) || take_host());
        touched.overwrites = to_;
        finish();
        plain.is_seen = is_plain_ && is_svm_ && plain.nbytes <= MOST_BY_HOST && (!to_ || of.sees(plain.target)) &&
                        (!from_ || of.sees(plain.source));
        if (copied && is_plain_)
            plain.is_staged = is_plain_ = plain.is_upload && plain.nbytes >= STAGED_BYTES && of.may_stage();
    }

    // Whether the core may make it.
    bool is_plain() const { return is_plain_; }
    PyObject *result() const { return to_ ? nullptr : target_.ptr(); }

    // Launches it, with the runtime's lock. False: no lane took it, and it is in the table.
    bool launch(Queues::Waited *waited) const {
        return BoundTransfer::launch(waited, [&]() -> nb::object {
            return queues.classes().transfer(nb::handle(name()),
                                             to_ ? nb::handle(to_->its_place()) : nb::handle(target_),
                                             from_              ? nb::borrow(from_->its_place())
                                             : plain.is_staged ? nb::object(source_.attr("copy")())
                                                               : source_);
        });
    }

private:
    bool take_view(View *view, bool written) {
        if (view->engine != engine_.ptr()) return false;
        const nb::handle place = view->its_place();
        if (!place.is_valid()) throw nb::python_error();
        if (!PyTuple_Check(place.ptr())) return false;
        Node *node = view->node_in(*table.hazards);
        return node && node->span().rows == 1 && node->span().width == view->nbytes &&
               take(DriverMemory(queues.classes(), PyTuple_GET_ITEM(place.ptr(), 0)), node,
                    PyLong_AsSize_t(PyTuple_GET_ITEM(place.ptr(), 1)), std::size_t(view->nbytes), written);
    }

    bool take_host() {
        PyObject *const host = to_ ? source_.ptr() : target_.ptr();
        if (!program.take(host, PyBUF_C_CONTIGUOUS | (to_ ? 0 : PyBUF_WRITABLE))) return false;
        const std::size_t nbytes = program.nbytes();
        if (!program.view.buf || (nbytes != plain.nbytes && (!to_ || nbytes > plain.nbytes)))
            return false;
        if (nbytes < plain.nbytes) {
            take_pattern();
        } else {
            take_program();
            keeps = nb::borrow(host);
        }
        return true;
    }

    nb::handle engine_;
    nb::object target_, source_;
    View *to_, *from_;
    bool is_plain_;
};

// Reads an array in one piece into `host`. Returns True: the values are there. False: the driver has failed. None: it
// is no plain read, and nothing has changed. A number: that launch has to be waited for. `beside_counts`: the caller
// sees to counts that are not looked at yet.
inline nb::object read_now(Queues &queues, nb::handle engine, nb::object array, nb::object host,
                           bool beside_counts) {
    Table *table = queues.table();
    const auto may_read = [&] { return table->is_plain() || (beside_counts && table->is_plain_beside_counts()); };
    if (!table || !may_read() || !view_of(array.ptr())) return nb::none();
    ArrayTransfer bound(queues, engine, host, array);
    Landing landing;  // it outlives the read
    UnderWay under_way;
    under_way.may_block = false;  // signals are handled meanwhile
    std::int64_t number;
    {
        // asked again, because making the buffer may have run any code
        if (!bound.is_plain() || !may_read() || !table->lock->try_take()) return nb::none();
        const Taken taken(table->lock);
        const bool lands = queues.landings.take(bound.plain.nbytes, landing);
        if (lands) {
            bound.take_program(landing.bytes);
            bound.keeps = landing.keeper;
        }
        const bool is_on_lane = bound.launch(&under_way);
        number = table->number;
        if (!is_on_lane) {
            queues.landings.give(std::move(landing));
            if (!engine_takes_over(engine.ptr(), number)) throw PythonError();
            return nb::int_(number);
        }
    }
    const nb::handle kept = landing.bytes ? nb::handle(landing.keeper) : nb::handle(host);
    const bool has_ended_well = under_way.has_ended || wait_for(queues, engine, number, under_way.take(), kept);
    if (landing.bytes) {
        if (has_ended_well) std::memcpy(bound.program.view.buf, landing.bytes, bound.plain.nbytes);
        queues.landings.give(std::move(landing));
    }
    if (table->should_poll() && !engine_polls(engine.ptr())) throw PythonError();
    return nb::bool_(has_ended_well);
}

// Launches a transfer that nobody waits for now, and returns a handle. None: it is not plain, and nothing has changed.
inline nb::object transfer(Queues &queues, nb::handle engine, nb::object target, nb::object source,
                           bool copied) {
    Table *table = queues.table();
    if (!table || !table->is_plain()) return nb::none();
    const ArrayTransfer bound(queues, engine, target, source, copied);
    if (!bound.is_plain() || !table->is_plain()) return nb::none();
    const nb::object handle = nb::steal(
        new_handle(engine.ptr(), bound.name(), 0, bound.touched, bound.result()));
    if (!handle.is_valid()) throw PythonError();
    if (!table->lock->try_take()) return nb::none();
    const Taken taken(table->lock);
    const bool is_on_lane = bound.launch(nullptr);
    const std::int64_t number = reinterpret_cast<Handle *>(handle.ptr())->number = table->number;
    if (!is_on_lane && !engine_takes_over(engine.ptr(), number)) throw PythonError();
    return handle;
}

}  // namespace acs_cl
