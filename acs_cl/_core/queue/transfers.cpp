// Transfers of an `acs.Queue` as launches of the core's own: tracking.hpp says what and when.

#include <algorithm>
#include <utility>

#include "launch/transfers.hpp"
#include "queue/tracking.hpp"

namespace acs_cl {

namespace {

// Python's ADDRESS_SPACE.
constexpr std::int64_t HOST = -1;

// A blocking write of up to MOST_COPIED bytes copies the program's memory and returns; a longer one waits
// until the device has it. One of more than SHORT waits, too, where nothing is in flight: to copy it takes
// longer.
constexpr std::int64_t MOST_COPIED = 1 << 20, SHORT = 64 << 10;

constexpr std::size_t MOST_PATTERN = 128;
constexpr int MOST_TURNS = 4;  // waits for what is ahead of a transfer

PyObject *settle_name, *complete_name, *address_name;
PyObject *host_task, *make_call;  // as `use_transfers` has them

bool is_on_host_task() {
    const nb::object found = nb::steal(PyObject_CallNoArgs(host_task));
    if (!found.is_valid()) throw PythonError();
    return found.is(Py_True);
}

// Whether a launch that the host can look behind has not been seen to end; those that have are
// forgotten.
bool has_seen(Joining *self) {
    for (Py_ssize_t at = 0; at < PyList_GET_SIZE(self->seen); at++)
        if (self->table->has(whole_number(PyList_GET_ITEM(self->seen, at)))) return true;
    if (PyList_SetSlice(self->seen, 0, PyList_GET_SIZE(self->seen), nullptr)) throw PythonError();
    return false;
}

// The bytes of some object, while this lives.
struct Bytes {
    Py_buffer view = {};

    Bytes() = default;
    ~Bytes() { PyBuffer_Release(&view); }
    Bytes(const Bytes &) = delete;
    Bytes &operator=(const Bytes &) = delete;

    bool take(PyObject *object, int flags) {
        if (!PyObject_GetBuffer(object, &view, flags)) return true;
        PyErr_Clear();
        return false;
    }
};

// Any whole number, NumPy's own too; `otherwise` where it was left out. False: it is none, or below 0.
bool take_number(PyObject *object, std::int64_t otherwise, std::int64_t &to) {
    if (!object || object == Py_None) return to = otherwise, true;
    const nb::object number = nb::steal(PyNumber_Index(object));
    to = number.is_valid() ? PyLong_AsLongLong(number.ptr()) : -1;
    if (PyErr_Occurred()) PyErr_Clear();
    return to >= 0;
}

// A transfer, what it touches, and what has to live as long as it is under way.
struct Bound {
    Transfer transfer;
    Touched touched;
    bool is_seen = false;  // the host can look behind it
    bool waits = false;    // and the program waits for it
    bool is_copy = false;  // of memory that is the program's own again at once
    PyObject *program = Py_None;  // its memory, which the event keeps
    nb::object keeps;      // as long as a lane has it
    Bytes host;
    nb::object copied;

    // Some bytes of memory; below 0: all from `offset` on. False where that is left to Python.
    bool add(Joining *self, PyObject *memory, std::int64_t offset, std::int64_t nbytes, bool written) {
        bool is_host = false;
        Node *whole = node_of(self, memory, is_host);
        if (!whole || whole->span.rows != 1) return false;
        const Span all = whole->span;
        if (nbytes < 0) nbytes = all.width - offset;
        if (nbytes <= 0 || offset > all.width - nbytes) return false;
        add(nbytes == all.width ? NodePointer(whole)
                                : self->table->hazards->node({all.base, all.start + offset, nbytes, 1, nbytes}),
            written);
        is_seen |= is_host && written;
        transfer.nbytes = std::size_t(nbytes);
        return true;
    }

    // All of the program's memory in `host`.
    void add_host(Joining *self, bool written) {
        const auto address = std::int64_t(reinterpret_cast<std::uintptr_t>(host.view.buf));
        const std::int64_t nbytes = host.view.len;
        add(self->table->hazards->node(bounded({HOST, address, nbytes, 1, nbytes})), written);
        is_seen = true;
    }

private:
    NodePointer nodes_[2];  // which this holds

    void add(NodePointer node, bool written) {
        touched.add(node.get(), !written, written);
        nodes_[touched.many - 1] = std::move(node);
    }
};

void *buffer_of(Joining *self, PyObject *memory) {
    return is_a(memory, self->queues->classes().memory) ? handle_of(memory) : nullptr;
}

void *address_of(Joining *self, PyObject *memory) {
    if (!is_a(memory, self->queues->classes().svm)) return nullptr;
    const nb::object number = nb::steal(PyObject_GetAttr(memory, address_name));
    void *found = number.is_valid() ? PyLong_AsVoidPtr(number.ptr()) : nullptr;
    if (PyErr_Occurred()) PyErr_Clear();
    return found;
}

// `_enqueue_read_buffer`, `_enqueue_write_buffer`.
bool bind_host(Joining *self, bool writes, PyObject *const *args, Bound &to) {
    std::int64_t offset = 0;
    void *buffer = buffer_of(self, args[1]);
    if ((args[5] != Py_True && args[5] != Py_False) || !buffer || !take_number(args[3], 0, offset) ||
        !to.host.take(args[2], PyBUF_ANY_CONTIGUOUS | (writes ? 0 : PyBUF_WRITABLE)))
        return false;
    const std::int64_t nbytes = to.host.view.len;
    if (nbytes <= 0 || !to.add(self, args[1], offset, nbytes, writes)) return false;
    Transfer &transfer = to.transfer;
    to.waits = args[5] == Py_True;
    to.is_copy = writes && to.waits && nbytes <= MOST_COPIED &&
                 (nbytes <= SHORT || self->table->in_flight());
    if (to.is_copy) {
        to.keeps = to.copied = nb::bytes(to.host.view.buf, std::size_t(nbytes));
        to.waits = to.is_seen = false;
    } else {
        to.add_host(self, !writes);
        to.program = args[2];
        if (!to.waits) to.keeps = nb::steal(PyMemoryView_FromObject(args[2]));
        if (PyErr_Occurred()) return PyErr_Clear(), false;
    }
    void *host = to.is_copy ? PyBytes_AS_STRING(to.copied.ptr()) : to.host.view.buf;
    transfer.kind = writes ? Transfer::WRITE : Transfer::READ;
    transfer.source = writes ? host : buffer;
    transfer.target = writes ? buffer : host;
    (writes ? transfer.to : transfer.from) = std::size_t(offset);
    return true;
}

// `_enqueue_copy_buffer`.
bool bind_copy(Joining *self, PyObject *const *args, Bound &to) {
    std::int64_t nbytes = -1, from = 0, into = 0;
    bool is_host = false;
    Transfer &transfer = to.transfer;
    transfer.kind = Transfer::COPY;
    transfer.source = buffer_of(self, args[1]);
    transfer.target = buffer_of(self, args[2]);
    if (!transfer.source || !transfer.target || !take_number(args[4], 0, from) ||
        !take_number(args[5], 0, into))
        return false;
    if (!take_number(args[3], -1, nbytes) && nbytes != -1) return false;
    if (nbytes < 0) {  // the shorter one
        for (PyObject *memory : {args[1], args[2]}) {
            Node *whole = node_of(self, memory, is_host);
            if (!whole) return false;
            nbytes = nbytes < 0 ? whole->span.width : std::min(nbytes, whole->span.width);
        }
    }
    transfer.from = std::size_t(from);
    transfer.to = std::size_t(into);
    return to.add(self, args[1], from, nbytes, false) && to.add(self, args[2], into, nbytes, true);
}

// The pattern of a fill, which the driver copies.
bool take_pattern(PyObject *object, Bound &to) {
    if (!to.host.take(object, PyBUF_ANY_CONTIGUOUS) || to.host.view.len <= 0) return false;
    to.transfer.pattern = {static_cast<const char *>(to.host.view.buf), std::size_t(to.host.view.len)};
    return to.transfer.pattern.size() <= MOST_PATTERN;
}

// `_enqueue_fill_buffer`.
bool bind_fill(Joining *self, PyObject *const *args, Bound &to) {
    std::int64_t offset = 0, nbytes = 0;
    Transfer &transfer = to.transfer;
    transfer.kind = Transfer::FILL;
    transfer.target = buffer_of(self, args[1]);
    if (!transfer.target || !take_pattern(args[2], to) || !take_number(args[3], 0, offset) ||
        !take_number(args[4], 0, nbytes))
        return false;
    transfer.to = std::size_t(offset);
    return to.add(self, args[1], offset, nbytes, true);
}

// `_enqueue_svm_memcpy`.
bool bind_svm_copy(Joining *self, PyObject *const *args, Bound &to) {
    std::int64_t nbytes = 0;
    Transfer &transfer = to.transfer;
    transfer.kind = Transfer::SVM_COPY;
    transfer.target = address_of(self, args[2]);
    transfer.source = address_of(self, args[3]);
    const int blocks = PyObject_IsTrue(args[1]);
    bool is_host = false;
    Node *source = node_of(self, args[3], is_host), *target = node_of(self, args[2], is_host);
    if (blocks < 0) PyErr_Clear();
    if (blocks < 0 || !transfer.target || !transfer.source || !source || !target ||
        !take_number(args[5], std::min(source->span.width, target->span.width), nbytes))
        return false;
    to.waits = blocks;
    to.is_seen = true;
    to.keeps = nb::make_tuple(nb::handle(args[2]), nb::handle(args[3]));
    to.program = to.keeps.ptr();
    return to.add(self, args[3], 0, nbytes, false) && to.add(self, args[2], 0, nbytes, true);
}

// `_enqueue_svm_memfill`.
bool bind_svm_fill(Joining *self, PyObject *const *args, Bound &to) {
    std::int64_t nbytes = -1;
    Transfer &transfer = to.transfer;
    transfer.kind = Transfer::SVM_FILL;
    transfer.target = address_of(self, args[1]);
    to.keeps = nb::borrow(args[1]);
    return transfer.target && take_pattern(args[2], to) &&
           (take_number(args[3], -1, nbytes) || nbytes == -1) && to.add(self, args[1], 0, nbytes, true);
}

bool bind(Joining *self, int joins, PyObject *const *args, Bound &to) {
    switch (joins) {
    case READ:
    case WRITE: return bind_host(self, joins == WRITE, args, to);
    case COPY: return bind_copy(self, args, to);
    case FILL: return bind_fill(self, args, to);
    case SVM_COPY: return bind_svm_copy(self, args, to);
    default: return bind_svm_fill(self, args, to);
    }
}

// The record of a transfer: a call of `original`, which the driver gets when its turn comes.
nb::object record_of(int joins, PyObject *name, PyObject *original, PyObject *const *args,
                     const Bound &bound) {
    nb::list all;
    for (int at = 0; at < FORMS[joins].all; at++) {
        const bool is_host = (joins == READ || joins == WRITE) && at == 2;
        nb::object one = args[at] ? nb::borrow(args[at]) : nb::none();
        if (is_host && bound.copied.is_valid()) one = bound.copied;
        if ((joins == FILL || joins == SVM_FILL) && at == 2)
            one = nb::bytes(bound.transfer.pattern.data(), bound.transfer.pattern.size());
        all.append(one);
    }
    return nb::borrow(make_call)(nb::handle(name), nb::handle(original), nb::tuple(all));
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

// A transfer on its way into or out of the program's memory. Who leaves before it has ended, by an
// exception, waits for it all the same: that memory may be anything then.
struct UnderWay : Queues::Waited {
    UnderWay() = default;
    ~UnderWay() {
        if (!event) return;
        nb::gil_scoped_release others;
        driver.wait_for_events(1, &event);
        driver.release_event(event);
    }
    UnderWay(const UnderWay &) = delete;
    UnderWay &operator=(const UnderWay &) = delete;

    void *take() { return std::exchange(event, nullptr); }
};

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

// The wait of the program for a transfer. False with an error.
bool settle(Joining *self, const Launched &launched, UnderWay &under_way, PyObject *program,
            bool has_others) {
    const bool has_event = under_way.event;
    const bool is_well =
        under_way.has_ended ||
        (has_event && wait_for(*self->queues, self->engine, launched.number, under_way.take(), program));
    if (is_well && !has_others) return true;  // or it says what failed, and waits for those, too
    PyObject *turns[] = {self->queue, launched.number_object.ptr()};
    return nb::steal(PyObject_VectorcallMethod(settle_name, turns, 2, nullptr)).is_valid();
}

}  // namespace

// A transfer that nobody has to plan. Of a blocking write of a few bytes what has to be seen is that the
// program's memory is its own again, so that these are copied.
PyObject *join_transfer(Joining *self, int joins, PyObject *original, PyObject *const *args) {
    static PyObject *const names[] = {PyUnicode_InternFromString("read"),
                                      PyUnicode_InternFromString("write"),
                                      PyUnicode_InternFromString("copy"),
                                      PyUnicode_InternFromString("fill")};
    Table &table = *self->table;
    if (!table.is_plain() || !is_plain(self) || !waits_for_nothing(self, args[FORMS[joins].waits]))
        return nullptr;
    const nb::object lives = nb::borrow(reinterpret_cast<PyObject *>(self));
    Bound bound;
    if (!bind(self, joins, args, bound) || ((bound.waits || bound.is_copy) && is_on_host_task()))
        return nullptr;
    nb::object event = new_event(self, joins, bound.program);
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
        has_others = (bound.waits || bound.is_copy) && has_seen(self);
        if (bound.is_copy && has_others) return nullptr;  // which are waited for first
        PyObject *name = names[joins >= SVM_COPY ? joins - COPY : joins - READ];
        const bool is_on_lane =
            self->queues->launch(bound.touched, bound.transfer, name, bound.keeps.ptr(),
                                 bound.waits ? &under_way : nullptr,
                                 [&] { return record_of(joins, name, original, args, bound); });
        if (!note(self, is_on_lane, bound.is_seen, launched)) return nullptr;
    }
    if (bound.waits && !settle(self, launched, under_way, bound.program, has_others)) return nullptr;
    if ((bound.waits || bound.is_copy) && !pretend(self, launched.number_object)) return nullptr;
    if (!after(self, launched)) return nullptr;
    if (bound.waits && self->section && !waited(self->section)) return nullptr;
    return told(std::move(event), launched);
}

void use_transfers(nb::object on_host_task, nb::object call) {
    Py_XSETREF(host_task, on_host_task.release().ptr());
    Py_XSETREF(make_call, call.release().ptr());
}

void add_transfers() {
    settle_name = PyUnicode_InternFromString("settle");
    complete_name = PyUnicode_InternFromString("complete");
    address_name = PyUnicode_InternFromString("svm_ptr");
}

}  // namespace acs_cl
