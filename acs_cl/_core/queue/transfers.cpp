// Transfers of an `acs.Queue` as launches of the core's own: tracking.hpp says what and when.

#include <algorithm>
#include <utility>

#include "launch/transfers.hpp"
#include "queue/tracking.hpp"

namespace acs_cl {

namespace {

// A blocking write of up to MOST_COPIED bytes copies the program's memory and returns; a longer one waits
// until the device has it. One of more than SHORT waits, too, where nothing is in flight: to copy it takes
// longer.
constexpr std::int64_t MOST_COPIED = 1 << 20, SHORT = 64 << 10;

constexpr std::size_t MOST_PATTERN = 128;
constexpr int MOST_TURNS = 4;  // waits for what is ahead of a transfer

PyObject *complete_name;
PyObject *make_call;  // as `use_transfers` has it

// Whether a launch that the host can look behind has not been seen to end; those that have are
// forgotten.
bool has_seen(Joining *self) {
    for (Py_ssize_t at = 0; at < PyList_GET_SIZE(self->seen); at++)
        if (self->table->has(whole_number(PyList_GET_ITEM(self->seen, at)))) return true;
    if (PyList_SetSlice(self->seen, 0, PyList_GET_SIZE(self->seen), nullptr)) throw PythonError();
    return false;
}

// ---- what is asked for -----------------------------------------------------------------------------

constexpr std::int64_t ALL = -1;

// A call of one of PyOpenCL's functions. The sides that are null are the program's memory in `host`, which
// is a pattern for a fill.
struct Sides {
    PyObject *source = nullptr, *target = nullptr, *host = nullptr;
    std::int64_t from = 0, to = 0, nbytes = ALL;
    bool blocks = false, fills = false, is_svm = false;
};

// Any whole number, NumPy's own too; `otherwise` where it was left out. False: it is none, or below 0.
bool take_number(PyObject *object, std::int64_t otherwise, std::int64_t &to) {
    if (!object || object == Py_None) return to = otherwise, true;
    const nb::object number = nb::steal(PyNumber_Index(object));
    to = number.is_valid() ? PyLong_AsLongLong(number.ptr()) : -1;
    if (PyErr_Occurred()) PyErr_Clear();
    return to >= 0;
}

// The same, where all may be said by a number.
bool take_nbytes(PyObject *object, std::int64_t &to) { return take_number(object, ALL, to) || to == ALL; }

bool take_truth(PyObject *object, bool &to) {
    to = object == Py_True;
    return to || object == Py_False;
}

// False where it is not plain.
bool take(int joins, PyObject *const *args, Sides &to) {
    to.is_svm = joins >= SVM_COPY;
    to.fills = joins == FILL || joins == SVM_FILL;
    switch (joins) {
    case READ:
        to.source = args[1];
        to.host = args[2];
        return take_number(args[3], 0, to.from) && take_truth(args[5], to.blocks);
    case WRITE:
        to.target = args[1];
        to.host = args[2];
        return take_number(args[3], 0, to.to) && take_truth(args[5], to.blocks);
    case COPY:
        to.source = args[1];
        to.target = args[2];
        return take_nbytes(args[3], to.nbytes) && take_number(args[4], 0, to.from) &&
               take_number(args[5], 0, to.to);
    case FILL:
        to.target = args[1];
        to.host = args[2];
        return take_number(args[3], 0, to.to) && take_number(args[4], 0, to.nbytes);
    case SVM_COPY:
        to.target = args[2];
        to.source = args[3];
        return take_truth(args[1], to.blocks) && take_number(args[5], ALL, to.nbytes);
    default:
        to.target = args[1];
        to.host = args[2];
        return take_nbytes(args[3], to.nbytes);
    }
}

// ---- what it touches -------------------------------------------------------------------------------

// A transfer of a queue. Other commands may use the program's memory meanwhile, so that its bytes count.
struct QueueTransfer : BoundTransfer {
    bool is_seen = false;  // the host can look behind it
    bool waits = false;    // and the program waits for it
    bool is_copy = false;  // of memory that is the program's own again at once
    PyObject *kept = Py_None;  // the program's memory, which the event keeps
    nb::object copied;

    QueueTransfer(Joining *of, const Sides &sides)
        : BoundTransfer(*of->queues), self_(of), sides_(sides), nbytes_(sides.nbytes) {}

    // False where that is left to Python.
    bool bind() {
        waits = sides_.blocks;
        if (sides_.host && !take_host()) return false;
        if (nbytes_ == ALL && !take_least()) return false;
        if (sides_.source && !add(sides_.source, sides_.from, false)) return false;
        if (sides_.target && !add(sides_.target, sides_.to, true)) return false;
        if (sides_.is_svm) keep_both();
        else if (sides_.host && !sides_.fills && !use_host()) return false;
        finish();
        return true;
    }

private:
    // The program's bytes, or the pattern, which the driver copies.
    bool take_host() {
        const int flags = PyBUF_ANY_CONTIGUOUS | (sides_.target ? 0 : PyBUF_WRITABLE);
        if (!program.take(sides_.host, flags) || program.view.len <= 0) return false;
        if (!sides_.fills) return nbytes_ = program.view.len, true;
        take_pattern();
        return plain.pattern.size() <= MOST_PATTERN;
    }

    // As many bytes as the shorter side has.
    bool take_least() {
        for (PyObject *memory : {sides_.source, sides_.target}) {
            if (!memory) continue;
            const nb::object known = known_memory(self_, memory);
            if (!known.is_valid()) return false;
            const std::int64_t width = memory_in(known)->span.width;
            nbytes_ = nbytes_ == ALL ? width : std::min(nbytes_, width);
        }
        return true;
    }

    // Some bytes of memory.
    bool add(PyObject *memory, std::int64_t offset, bool written) {
        const nb::object kept = known_memory(self_, memory);
        if (!kept.is_valid()) return false;
        const Memory *known = memory_in(kept);
        const Span all = known->span;
        if (all.rows != 1) return false;
        if (nbytes_ <= 0 || offset > all.width - nbytes_) return false;
        const DriverMemory driven(queues.classes(), memory);
        if (driven.is_svm != sides_.is_svm) return false;
        is_seen |= known->is_host && written;
        hold(nbytes_ == all.width
                 ? known->node
                 : table.hazards->node({all.base, all.start + offset, nbytes_, 1, nbytes_}));
        return take(driven, nodes_[touched.many].get(), std::size_t(offset), std::size_t(nbytes_), written);
    }

    // The program's memory as it is, or a copy of it.
    bool use_host() {
        const bool writes = sides_.target;
        is_copy = writes && waits && nbytes_ <= MOST_COPIED && (nbytes_ <= SHORT || table.in_flight());
        if (is_copy) {
            keeps = copied = nb::bytes(program.view.buf, std::size_t(nbytes_));
            waits = false;
            take_program(PyBytes_AS_STRING(copied.ptr()));
            return true;
        }
        const auto address = std::int64_t(reinterpret_cast<std::uintptr_t>(program.view.buf));
        hold(table.hazards->node(bounded({BY_ADDRESS, address, nbytes_, 1, nbytes_})));
        touched.add(nodes_[touched.many].get(), writes, !writes);
        is_seen = true;
        take_program();
        kept = sides_.host;
        if (!waits) keeps = nb::steal(PyMemoryView_FromObject(sides_.host));
        return !PyErr_Occurred() || (PyErr_Clear(), false);
    }

    // Shared memory is Python's objects, which the event of a copy keeps, too.
    void keep_both() {
        if (sides_.fills) {
            keeps = nb::borrow(sides_.target);
            return;
        }
        keeps = nb::make_tuple(nb::handle(sides_.target), nb::handle(sides_.source));
        kept = keeps.ptr();
        is_seen = true;
    }

    void hold(NodePointer node) { nodes_[touched.many] = std::move(node); }

    Joining *self_;
    const Sides &sides_;
    std::int64_t nbytes_;
    NodePointer nodes_[2];  // of what it touches
};

// The record of a transfer: a call of `original`, which the driver gets when its turn comes.
nb::object record_of(int joins, PyObject *original, PyObject *const *args, const Sides &sides,
                     const QueueTransfer &bound) {
    nb::list all;
    for (int at = 0; at < FORMS[joins].all; at++) {
        nb::object one = args[at] ? nb::borrow(args[at]) : nb::none();
        if (sides.host && one.is(sides.host)) {
            if (bound.copied.is_valid()) one = bound.copied;
            else if (sides.fills) one = nb::bytes(bound.plain.pattern.data(), bound.plain.pattern.size());
        }
        all.append(one);
    }
    return nb::borrow(make_call)(nb::handle(bound.name()), nb::handle(original), nb::tuple(all));
}

// The program believes from now on that everything up to this launch is complete: `Queue.pretend`.
bool pretend(Joining *self, const nb::object &number) {
    if (!self->in_order) return true;
    const nb::object known = nb::steal(PyObject_GetAttr(self->queue, complete_name));
    if (!known.is_valid()) return false;
    if (whole_number(known.ptr()) >= whole_number(number.ptr())) return true;
    word_given = true;
    return !PyObject_SetAttr(self->queue, complete_name, number.ptr());
}

// The newest launch that a lane has, of those that touched these bytes before; 0: there is none.
std::int64_t newest_ahead(const Joining *self, const Touched &touched) {
    std::int64_t newest = 0;
    const auto see = [&](std::int64_t number) {
        if (number > newest && self->table->flying(number)) newest = number;
    };
    const auto see_all = [&](const Node &node, bool written) {
        see(node.writer_number);
        for (const Use &use : node.readers)
            if (written) see(use.number);
    };
    for (std::uint32_t at = 0; at < touched.many; at++) {
        const bool written = touched.writes >> at & 1;
        see_all(*touched.nodes[at], written);
        for (const auto &near : touched.nodes[at]->near) see_all(*near.node(), written);
    }
    return newest;
}

// Waits for what a transfer follows, which signals can end, so that nothing is ahead of the driver's own
// blocking call.
void wait_ahead(Joining *self, const Touched &touched) {
    Table &table = *self->table;
    for (int turn = 0; turn < MOST_TURNS; turn++) {
        const std::int64_t newest = newest_ahead(self, touched);
        if (!newest || !table.lock->try_take()) return;
        void *event = nullptr;
        {
            Taken taken(table.lock);
            event = self->queues->event_to_wait_for(newest);
        }
        if (!event) return;
        wait_for(*self->queues, self->engine, newest, event, Py_None);
    }
}

// The wait of the program for a transfer; false where it has to be waited for again, which says what failed.
bool settle(Joining *self, const Launched &launched, UnderWay &under_way, PyObject *kept) {
    return under_way.has_ended ||
           (under_way.event &&
            wait_for(*self->queues, self->engine, launched.number, under_way.take(), kept));
}

}  // namespace

// A transfer that nobody has to plan. Of a blocking write of a few bytes what has to be seen is that the
// program's memory is its own again, so that these are copied.
PyObject *join_transfer(Joining *self, int joins, PyObject *original, PyObject *const *args) {
    Table &table = *self->table;
    if (!table.is_plain() || !is_plain(self) || !waits_for_nothing(self, args[FORMS[joins].waits]))
        return nullptr;
    const nb::object lives = nb::borrow(reinterpret_cast<PyObject *>(self));
    Sides sides;
    if (!take(joins, args, sides)) return nullptr;
    QueueTransfer bound(self, sides);
    if (!bound.bind()) return nullptr;
    const bool is_told = bound.waits || bound.is_copy;
    if (is_told && runs_host_task) return nullptr;
    nb::object event = new_event(self, joins, bound.kept);
    if (bound.waits && self->waits_first) wait_ahead(self, bound.touched);
    Launched launched;
    UnderWay under_way;
    bool has_others = false;
    {
        // again, for whoever made the event or the bytes may have run code
        if (!table.is_plain() || !is_plain(self) || !table.lock->try_take()) return nullptr;
        Taken taken(table.lock);
        if (!self->books->try_take()) return nullptr;
        Taken books(self->books);
        has_others = is_told && has_seen(self);
        if (bound.is_copy && has_others) return nullptr;  // which are waited for first
        const bool is_on_lane = bound.launch(bound.waits ? &under_way : nullptr, [&] {
            return record_of(joins, original, args, sides, bound);
        });
        if (!note(self, is_on_lane, bound.is_seen, launched)) return nullptr;
    }
    if (bound.waits) {
        const bool is_well = settle(self, launched, under_way, bound.kept);
        launched.settles = !is_well || has_others;
        launched.waited = self->section && self->section->ends_stretch();
    }
    if (!after(self, launched) || (is_told && !pretend(self, launched.number_object))) return nullptr;
    return told(std::move(event), launched);
}

void use_transfers(nb::object call) { Py_XSETREF(make_call, call.release().ptr()); }

void add_transfers() { complete_name = PyUnicode_InternFromString("complete"); }

}  // namespace acs_cl
