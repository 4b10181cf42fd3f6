// Transfers of an `acs.Queue` as launches of the core: tracking.hpp says what and when.

#include <algorithm>
#include <utility>

#include "launch/transfers.hpp"
#include "queue/tracking.hpp"

namespace acs_cl {

namespace {

// A blocking write of up to MOST_COPIED bytes copies the program's memory and returns. A longer one waits until the
// device has it. One of more than SHORT waits, too, if nothing is in flight, because a copy would take longer.
constexpr std::int64_t MOST_COPIED = 1 << 20, SHORT = 64 << 10;

constexpr std::size_t MOST_PATTERN = 128;
constexpr int HOST_AT = 2;  // the program's memory, or the pattern, among the arguments
constexpr int MOST_TURNS = 4;  // waits for launches ahead of a transfer
// ---- the call --------------------------------------------------------------------------------------

constexpr std::int64_t ALL = -1;

// A call of one of PyOpenCL's functions. A side that is null is the program's memory in `host`, which is a pattern
// for a fill.
struct Sides {
    PyObject *source = nullptr, *target = nullptr, *host = nullptr;
    std::int64_t from = 0, to = 0, nbytes = ALL;
    bool blocks = false, fills = false, is_svm = false;
};

// Takes a number of bytes, or `ALL`.
bool take_nbytes(PyObject *object, std::int64_t &to) { return take_number(object, ALL, to) || to == ALL; }

// Returns false for an unusual call.
bool take(int tracked, PyObject *const *args, Sides &to) {
    to.is_svm = tracked >= SVM_COPY;
    to.fills = tracked == FILL || tracked == SVM_FILL;
    switch (tracked) {
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

// ---- its bytes -------------------------------------------------------------------------------------

// The bytes of a call, and what the program sees of it. Other commands may use the program's memory meanwhile, so
// its bytes count.
struct Ranges {
    struct Side {
        nb::object known;  // its `Memory`
        Span span{};
    };

    const Sides sides;
    std::int64_t nbytes;
    Side source, target;
    Bytes program;          // the program's memory, or the pattern
    bool is_exact = true;   // false: more than is meant, where the driver or PyOpenCL decides
    bool is_seen = false;   // the host can look behind it
    bool waits;             // and the program waits for it
    bool is_copy = false;   // of memory that is the program's own again at once
    bool uses_host = false; // the driver gets the program's memory itself

    explicit Ranges(const Sides &of) : sides(of), nbytes(of.nbytes), waits(of.blocks) {}

    // Returns false if some of it is no memory. `host`: the bytes of the program's side. `is_busy`: something is
    // ahead of it. `may_copy`: the program learns nothing of other queues when the call returns.
    bool bind(nb::handle store, PyObject *host, int flags, bool is_busy, bool may_copy) {
        if (sides.host && !program.take(host, flags)) return false;
        for (const auto &[memory, side] : {std::pair(sides.source, &source), std::pair(sides.target, &target)}) {
            if (!memory) continue;
            side->known = memory_of(memory, store);
            if (side->known.is_none()) return false;
            if (sides.nbytes != ALL || (sides.host && !sides.fills)) continue;
            const std::int64_t width = memory_in(side->known)->span.width;
            if (nbytes != ALL && (sides.is_svm ? nbytes != width : nbytes > width)) is_exact = false;
            nbytes = nbytes == ALL ? width : std::min(nbytes, width);
        }
        if (sides.host && !sides.fills) nbytes = program.view.len;
        // PyOpenCL fills all of it, by its version
        if (sides.is_svm && sides.fills && nbytes != memory_in(target.known)->span.width) is_exact = false;
        if (sides.source) take(source, sides.from, false);
        if (sides.target) take(target, sides.to, true);
        is_seen |= sides.is_svm && !sides.fills;
        if (sides.host && !sides.fills) {
            is_copy = may_copy && sides.target && waits && nbytes > 0 && nbytes <= MOST_COPIED && (nbytes <= SHORT || is_busy);
            uses_host = !is_copy;
            is_seen |= uses_host;
            waits &= uses_host;
        }
        return true;
    }

    Span host_span() const { return interval_at(program.view.buf, Py_ssize_t(nbytes)); }

    // Returns what the event keeps: the program's memory, or both sides of a copy of shared memory.
    nb::object kept() const {
        if (uses_host) return nb::borrow(sides.host);
        if (sides.is_svm && !sides.fills) return nb::make_tuple(nb::handle(sides.target), nb::handle(sides.source));
        return nb::none();
    }

private:
    // Takes some bytes of memory, or all of it.
    void take(Side &side, std::int64_t offset, bool written) {
        const Memory *known = memory_in(side.known);
        side.span = known->span;
        is_seen |= known->is_host && written;
        if (side.span.base == EVERYTHING || side.span.rows != 1 || nbytes <= 0 || offset > side.span.width - nbytes)
            is_exact = false;
        else if (is_exact && nbytes != side.span.width)
            side.span = {side.span.base, side.span.start + offset, nbytes, 1, nbytes};
    }
};

// A transfer of a queue that the core launches.
struct QueueTransfer : BoundTransfer {
    nb::object copied;

    QueueTransfer(Tracker *of, const Ranges &ranges) : BoundTransfer(*of->queues), ranges_(ranges) {}

    // Returns false if it is left to Python.
    bool bind() {
        const Sides &sides = ranges_.sides;
        const Py_buffer &view = ranges_.program.view;
        if (!ranges_.is_exact || (sides.host && view.len <= 0)) return false;
        if (sides.fills) {
            plain.pattern = {ranges_.program.data(), ranges_.program.nbytes()};
            if (plain.pattern.size() > MOST_PATTERN) return false;
        }
        if (sides.source && !add(sides.source, ranges_.source, sides.from, false)) return false;
        if (sides.target && !add(sides.target, ranges_.target, sides.to, true)) return false;
        if (sides.is_svm) keeps = sides.fills ? nb::borrow(sides.target) : ranges_.kept();
        else if (sides.host && !sides.fills && !use_host()) return false;
        finish();
        return true;
    }

private:
    bool add(PyObject *memory, const Ranges::Side &side, std::int64_t offset, bool written) {
        Memory *known = memory_in(side.known);
        Node *node = known->node_in(*table.hazards);
        const DriverMemory driven(queues.classes(), memory);
        if (!node || driven.is_svm != ranges_.sides.is_svm) return false;
        nodes_[touched.many] = side.span == known->span ? known->node : table.hazards->node(side.span);
        return take(driven, nodes_[touched.many].get(), std::size_t(offset), std::size_t(ranges_.nbytes), written);
    }

    // Uses the program's memory itself, or a copy of it.
    bool use_host() {
        const bool writes = ranges_.sides.target;
        if (ranges_.is_copy) {
            keeps = copied = nb::bytes(ranges_.program.view.buf, std::size_t(ranges_.nbytes));
            take_program(PyBytes_AS_STRING(copied.ptr()));
            return true;
        }
        nodes_[touched.many] = table.hazards->node(ranges_.host_span());
        touched.add(nodes_[touched.many].get(), writes, !writes);
        take_program(ranges_.program.view.buf);
        if (!ranges_.waits) keeps = nb::steal(PyMemoryView_FromObject(ranges_.sides.host));
        return !PyErr_Occurred() || (PyErr_Clear(), false);
    }

    const Ranges &ranges_;
    NodePointer nodes_[2];  // of its bytes
};

// Makes the record of a transfer. `copied`: bytes in place of the program's, or null.
nb::object record_of(int tracked, PyObject *original, PyObject *const *args, const Ranges &ranges,
                     const nb::object &copied = {}) {
    const Py_buffer &view = ranges.program.view;
    const nb::object host = copied.is_valid() || !ranges.sides.fills ? copied
                                                                     : nb::bytes(view.buf, std::size_t(view.len));
    const nb::handle name = BoundTransfer::name_of(Transfer::Kind(tracked - READ));
    return acs_cl::record_of(tracked, name, original, args, HOST_AT, host);
}

// Returns the newest launch on a lane that touched these bytes before. 0: there is none.
std::int64_t newest_ahead(const Tracker *self, const Touched &touched) {
    std::int64_t newest = 0;
    const auto see = [&](std::int64_t number) {
        if (number > newest && self->table->flying(number)) newest = number;
    };
    const auto see_all = [&](const Node &node, bool written) {
        see(node.writer);
        for (std::int64_t reader : node.readers)
            if (written) see(reader);
    };
    for (std::uint32_t at = 0; at < touched.many; at++) {
        const Node &node = *touched.nodes[at];
        if (!self->table->hazards->has(node)) continue;  // it was swept meanwhile, and its neighbours may be gone
        const bool written = touched.writes >> at & 1;
        see_all(node, written);
        for (const auto &near : node.near) see_all(*near.node(), written);
    }
    return newest;
}

}  // namespace

void wait_ahead(Tracker *self, const Touched &touched) {
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

// Launches a transfer, which needs no plan. A blocking write of few bytes is copied, because the program only has
// to get its memory back.
PyObject *track_transfer(Tracker *self, int tracked, PyObject *original, PyObject *const *args) {
    Table &table = *self->table;
    Upstream upstream;
    if (!is_plain(self) || !take_upstream(self, args[FORMS[tracked].waits], upstream)) return nullptr;
    const nb::object lives = nb::borrow(reinterpret_cast<PyObject *>(self));
    Sides sides;
    if (!take(tracked, args, sides)) return nullptr;
    Ranges ranges(sides);
    try {
        const int flags = PyBUF_ANY_CONTIGUOUS | (sides.target ? 0 : PyBUF_WRITABLE);
        if (!ranges.bind(self->store, sides.host, flags, table.in_flight(), upstream.empty())) return nullptr;
    } catch (const nb::python_error &) {  // the Python code says what is wrong
        return nullptr;
    }
    QueueTransfer bound(self, ranges);
    if (!bound.bind()) return nullptr;
    const bool is_told = ranges.waits || ranges.is_copy;
    if (is_told && runs_host_task) return nullptr;
    const nb::object kept = ranges.kept();
    nb::object event = new_event(self, tracked, kept.ptr());
    if (ranges.waits && self->waits_first) wait_ahead(self, bound.touched);
    Launched launched;
    UnderWay under_way;
    {
        // again, because code may have run that made the event or the bytes
        if (!is_plain(self) || !table.lock->try_take()) return nullptr;
        Taken taken(table.lock);
        if (ranges.is_copy && table.shows(self->number)) return nullptr;  // these are waited for first
        self->queues->follow(upstream, watch(self));
        const bool is_on_lane = bound.launch(ranges.waits ? &under_way : nullptr, [&] {
            return record_of(tracked, original, args, ranges, bound.copied);
        });
        if (!note(self, is_on_lane, ranges.is_seen, launched, under_way.event)) return nullptr;
    }
    if (ranges.waits) wait_here(self, launched, under_way, kept.ptr());
    if (!after(self, launched) || (is_told && !pretend(self, launched.number_object))) return nullptr;
    return told(std::move(event), launched);
}

// Binds a transfer for Python. Returns its record, what it reads, writes and overwrites, its kind, whether the host
// can look behind it, whether the program waits, what its event keeps, and whether the program's memory has to be
// copied first. `host`: the bytes of that memory, or none. Returns none for a transfer that is not understood.
nb::object bind_transfer(int tracked, nb::handle original, nb::tuple args, nb::handle host, nb::handle store,
                         bool is_busy, bool may_copy) {
    if (tracked <= KERNEL || tracked > SVM_FILL || Py_ssize_t(nb::len(args)) != FORMS[tracked].all) return nb::none();
    PyObject *given[MOST_PLACED];
    for (int at = 0; at < FORMS[tracked].all; at++) given[at] = PyTuple_GET_ITEM(args.ptr(), at);
    Sides sides;
    if (!take(tracked, given, sides)) return nb::none();
    Ranges ranges(sides);
    if (!ranges.bind(store, host.is_none() ? sides.host : host.ptr(), PyBUF_ANY_CONTIGUOUS, is_busy, may_copy))
        return nb::none();
    nb::list reads, writes, overwrites;
    if (sides.source) reads.append(object_of(ranges.source.span));
    if (sides.target) writes.append(object_of(ranges.target.span));
    if (sides.target && ranges.is_exact) overwrites.append(object_of(ranges.target.span));
    if (ranges.uses_host) (sides.target ? reads : writes).append(object_of(ranges.host_span()));
    return nb::make_tuple(record_of(tracked, original.ptr(), given, ranges),
                          nb::make_tuple(nb::tuple(reads), nb::tuple(writes), nb::tuple(overwrites)),
                          kind_of_event(tracked), ranges.is_seen, ranges.waits, ranges.kept(), ranges.is_copy);
}

void add_transfers(nb::module_ &module) {
    module.def("bind_transfer", bind_transfer, "tracked"_a, "original"_a, "args"_a,
               "host"_a.none(), "store"_a, "is_busy"_a, "may_copy"_a);
}

}  // namespace acs_cl
