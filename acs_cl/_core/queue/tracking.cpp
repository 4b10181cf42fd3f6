// Kernels and transfers of an `acs.Queue` as launches of the core's own: tracking.hpp says what and when.

#include "queue/tracking.hpp"

#include "launch/reading.hpp"

#include <algorithm>
#include <unordered_map>

namespace acs_cl {

namespace {

constexpr std::size_t PLACES_OF_MEMORY = 256;
constexpr Py_ssize_t TRIM_EVERY = 256;  // launches, as MANY in acs_cl/queue/queue.py

// Python's ADDRESS_SPACE, and of its COPIED_BYTES as many as are copied while others wait.
constexpr std::int64_t HOST = -1;
constexpr Py_ssize_t MOST_COPIED = 64 << 10;

PyObject *span_name, *find_span_name, *finish_name, *looked_name,
    *trim_name, *transfer_name, *settle_name, *complete_name;
PyObject *event_kinds;  // of a kernel, a read, a write
PyObject *host_task;  // tells whether this thread runs one, which must not wait
std::unordered_map<PyObject *, Joining *> joinings;

// ---- what a kernel was given -----------------------------------------------------------------------

// The bytes of memory, and whether the host may look at them without another command; null where
// that is not known, or these are all memory.
Node *node_of(Joining *self, PyObject *memory, bool &is_host) {
    nb::object known = nb::steal(PyObject_GetAttr(memory, span_name));
    if (!known.is_valid()) {
        PyErr_Clear();
        nb::object found = nb::steal(
            PyObject_CallMethodOneArg(self->queue, find_span_name, memory));  // which keeps it there
        if (!found.is_valid()) return PyErr_Clear(), nullptr;
        known = nb::steal(PyObject_GetAttr(memory, span_name));
        if (!known.is_valid()) return PyErr_Clear(), nullptr;
    }
    if (!PyTuple_CheckExact(known.ptr()) || PyTuple_GET_SIZE(known.ptr()) != 3) return nullptr;
    PyObject *store = PyTuple_GET_ITEM(known.ptr(), 2);
    if (store != Py_None && store != self->store) return nullptr;
    Hazards &hazards = *self->table->hazards;
    Joining::Known &kept =
        (*self->known)[(reinterpret_cast<std::uintptr_t>(known.ptr()) >> 4) % PLACES_OF_MEMORY];
    if (!kept.span.is(known) || !kept.node || !hazards.has(*kept.node)) {
        const Span span = span_of(PyTuple_GET_ITEM(known.ptr(), 0));
        if (span.base == EVERYTHING) return nullptr;
        kept.is_host = PyTuple_GET_ITEM(known.ptr(), 1) == Py_True;
        kept.node = hazards.node(span);
        kept.span = std::move(known);
    }
    is_host = kept.is_host;
    return kept.node.get();
}

// What an object is for a kernel: a code of `Taught`; 0: left to Python.
char code_of(const Classes &classes, PyObject *object) {
    if (is_a(object, classes.svm)) return 'S';
    const bool is_no_bytes = object == Py_None || is_a(object, classes.local);
    if (is_no_bytes || is_a(object, classes.sampler)) return 'L';
    return is_a(object, classes.memory) ? 'P' : 0;
}

bool put_object(Joining *self, Taught &to, std::size_t index, PyObject *object) {
    Argument &argument = to.arguments[index];
    char code = to.parameters[index].code;
    if (argument.object.is(object) &&
        (code == 'L' || self->table->hazards->has(*argument.node)))
        return true;
    if (code_of(self->queues->classes(), object) != code) return false;
    if (code != 'L') {
        Node *node = node_of(self, object, argument.is_host);
        // memory that is only Python's has to be held until the launch has ended
        if (!node || (argument.is_host && code == 'S')) return false;
        argument.node = NodePointer(node);
    }
    argument.object = nb::borrow(object);
    return true;
}

bool put_bytes(Argument &argument, PyObject *object) {
    if (PyBytes_CheckExact(object)) {
        argument.value.assign(PyBytes_AS_STRING(object), std::size_t(PyBytes_GET_SIZE(object)));
        return true;
    }
    Py_buffer bytes;
    if (PyObject_GetBuffer(object, &bytes, PyBUF_SIMPLE)) return PyErr_Clear(), false;
    argument.value.assign(static_cast<const char *>(bytes.buf), std::size_t(bytes.len));
    PyBuffer_Release(&bytes);
    return true;
}

bool put(Joining *self, Taught &to, PyObject *at, PyObject *object, bool bytes) {
    std::size_t index = PyLong_AsSize_t(at);
    if (index >= to.arguments.size()) return PyErr_Clear(), false;
    if (to.parameters[index].code == 'v') {
        if (!bytes && (object == Py_None || code_of(self->queues->classes(), object))) return false;
        return put_bytes(to.arguments[index], object);
    }
    return !bytes && put_object(self, to, index, object);
}

// A number as `struct` packs it.
bool put_packed(Taught &to, PyObject *at, PyObject *code, PyObject *number) {
    std::size_t index = PyLong_AsSize_t(at);
    if (index >= to.arguments.size()) return PyErr_Clear(), false;
    if (to.parameters[index].code != 'v' || !PyBytes_CheckExact(code) ||
        PyBytes_GET_SIZE(code) != 1)
        return false;
    char which = PyBytes_AS_STRING(code)[0];
    if (which == 'c') which = 'b';
    if (which == 'l' || which == 'L') which = sizeof(long) == 8 ? which + 5 : which - 3;
    std::size_t nbytes = which == 'P' ? 0 : number_bytes(which);
    char value[8];
    if (!nbytes || !put_number(which, number, value)) return false;
    to.arguments[index].value.assign(value, nbytes);
    return true;
}

bool put_note(Joining *self, Taught &to, int place, PyObject *note) {
    if (place >= SETTERS) {
        nb::object index = nb::steal(PyLong_FromLong(place - SETTERS));
        return put(self, to, index.ptr(), note, false);
    }
    const Py_ssize_t many = PyTuple_GET_SIZE(note), step = place == PACKED ? 3 : 2;
    for (Py_ssize_t at = 0; at + step <= many; at += step) {
        PyObject **items = &PyTuple_GET_ITEM(note, at);
        if (place == PACKED ? !put_packed(to, items[0], items[1], items[2])
                            : !put(self, to, items[0], items[1], place != MULTI))
            return false;
    }
    return true;
}

// The arguments that a kernel has now; false where some are left to Python.
bool read_notes(Joining *self, Given *given, Taught &to) {
    int places[PLACES], many = 0;
    for (int place = 0; place < PLACES; place++)
        if (given->last[place] && given->turns[place] > to.read) places[many++] = place;
    std::sort(places, places + many,
              [&](int one, int other) { return given->turns[one] < given->turns[other]; });
    for (int at = 0; at < many; at++) {
        if (!put_note(self, to, places[at], given->last[places[at]])) return to.is_current = false;
        to.read = given->turns[places[at]];
    }
    return true;
}

// ---- a launch ------------------------------------------------------------------------------------

bool is_on_host_task() {
    nb::object found = nb::steal(PyObject_CallNoArgs(host_task));
    if (!found.is_valid()) throw PythonError();
    return found.is(Py_True);
}

bool is_plain(const Joining *self) {
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(self->empty); at++)
        if (PyObject_Size(PyTuple_GET_ITEM(self->empty, at))) return false;
    return true;
}

// Whether nothing in a wait list says more than the order of the queue does.
bool waits_for_nothing(const Joining *self, PyObject *wait_for) {
    if (wait_for == Py_None) return true;
    if (!PyList_CheckExact(wait_for) && !PyTuple_CheckExact(wait_for)) return false;
    for (Py_ssize_t index = 0; index < PySequence_Fast_GET_SIZE(wait_for); index++) {
        PyObject *event = PySequence_Fast_GET_ITEM(wait_for, index);
        auto *type = reinterpret_cast<PyObject *>(Py_TYPE(event));
        if (type == events.own) {
            if (!self->in_order || *events.slot(event, QUEUE) != self->queue) return false;
        } else if (type == events.plain || type == events.nanny) {
            void *handle = handle_of(event);
            if (!handle || event_status(handle)) return false;
        } else {
            return false;
        }
    }
    return true;
}

nb::object new_event(Joining *self, int joins, PyObject *keeps = Py_None) {
    static PyObject *nothing = PyTuple_New(0);
    auto *type = reinterpret_cast<PyTypeObject *>(events.own);
    nb::object event = nb::steal(type->tp_new(type, nothing, nullptr));
    if (!event.is_valid()) throw PythonError();
    *events.slot(event.ptr(), QUEUE) = Py_NewRef(self->queue);
    *events.slot(event.ptr(), KIND) = Py_NewRef(PyTuple_GET_ITEM(event_kinds, joins - KERNEL));
    *events.slot(event.ptr(), KEEPS) = Py_NewRef(keeps);
    for (int which : {TIMED, SETTLED}) *events.slot(event.ptr(), which) = Py_NewRef(Py_None);
    return event;
}

// The bytes of all arguments that are memory.
bool touch(Joining *self, Taught &to, Touched &touched, bool &is_seen) {
    Hazards &hazards = *self->table->hazards;
    for (std::size_t index = 0; index < to.parameters.size(); index++) {
        const Parameter &parameter = to.parameters[index];
        if (parameter.code != 'P' && parameter.code != 'S') continue;
        Argument &argument = to.arguments[index];
        if (!hazards.has(*argument.node)) {
            Node *node = node_of(self, argument.object.ptr(), argument.is_host);
            if (!node) return false;
            argument.node = NodePointer(node);
        }
        is_seen |= argument.is_host;
        touched.add(argument.node.get(), parameter.read, parameter.written);
    }
    return true;
}

bool set(const Taught &to, const Classes &classes) {
    for (std::size_t index = 0; index < to.parameters.size(); index++) {
        const Argument &argument = to.arguments[index];
        bool is_set = to.parameters[index].code == 'v'
                          ? to.kernel->set_value(index, argument.value)
                          : to.kernel->set_memory(index, argument.object, classes);
        if (!is_set) return false;
    }
    return true;
}

// Held while a driver is called without the GIL, when others may teach the kernel anew.
struct Held {
    nb::object kernel, name, reason;
    Touched touched;

    Held(const Taught &to, const Touched &of)
        : kernel(to.kernel_object), name(to.name), reason(to.stay.reason), touched(of) {
        touched.hold();
    }
    ~Held() { touched.let_go(); }
    Held(const Held &) = delete;
    Held &operator=(const Held &) = delete;
};

struct Launched {
    std::int64_t number = 0;
    nb::object number_object, upstream;  // the second where Python has to finish it
    bool looked = false, trims = false;
};

void append(PyObject *list, const nb::object &one) {
    if (PyList_Append(list, one.ptr())) throw PythonError();
}

// Whether the program's launches overlap, as `Section.wants` looks at it. What has ended is told.
void look(Joining *self, std::int64_t number, const std::vector<std::int64_t> &upstream,
          Launched &launched) {
    Passing *section = self->section;
    if (section->satisfied > 0) {
        section->satisfied--;
        return;
    }
    Table &table = *self->table;
    const nb::object kept = nb::borrow(section->look_object);  // another thread may begin a new one
    Look &look = *section->look;
    if (!look.many) section->began = now_s();
    nb::object ended;
    if (!table.in_epochs() && !table.has_watched()) ended = self->queues->poll(64);
    if (!ended.is_valid() || nb::len(ended) || table.has_ready()) {
        if (!completed(self->engine, ended.ptr())) throw PythonError();
    }
    look.note(number, upstream, [&](std::int64_t one) { return table.has(one); });
    launched.looked = look.many >= section->wanted;
}

// The books of a launch. With `upstream`, it is in the hazards and no queue took it, and the
// runtime's lock stays taken.
void note(Joining *self, bool is_on_queue, bool is_seen, Taken &taken, Launched &launched) {
    const std::vector<Edge> &edges = self->queues->edges();
    const std::int64_t number = launched.number = self->table->number;
    launched.number_object = nb::steal(PyLong_FromLongLong(number));
    if (!is_on_queue) {
        launched.upstream = upstream_of(edges);
        taken.leave();
        return;
    }
    std::vector<std::int64_t> upstream;
    if (self->section && self->section->satisfied <= 0)
        for (const Edge &edge : edges) upstream.push_back(edge.upstream);
    if (self->chains) upstream.assign(1, number - 1);
    append(self->numbers, launched.number_object);
    if (is_seen) append(self->seen, launched.number_object);
    launched.trims = PyList_GET_SIZE(self->numbers) % TRIM_EVERY == 0;
    if (!self->section) return;
    self->section->commands++;
    look(self, number, upstream, launched);
}

// False: nothing has changed.
bool launch(Joining *self, Given *given, PyObject *global, PyObject *local, Launched &launched) {
    Taught &to = *given->taught;
    const Taught::Use use(to);
    Table &table = *self->table;
    Sizes sizes;
    if (!take_sizes(global, local, sizes) || !to.sizes.find(sizes) || !read_notes(self, given, to))
        return false;
    Touched touched;
    bool is_seen = false;
    // again, for the memory of an event or of spans may have run code
    if (!touch(self, to, touched, is_seen) || !table.is_plain() || !is_plain(self) ||
        !table.lock->try_take())
        return false;
    Taken taken(table.lock);
    if (!self->books->try_take()) return false;
    Taken books(self->books);
    if (!set(to, self->queues->classes())) return false;
    const Held held(to, touched);
    to.stay.use();
    bool is_on_queue =
        self->queues->launch(held.touched, *to.kernel, sizes, held.name.ptr(), held.reason);
    note(self, is_on_queue, is_seen, taken, launched);
    return true;
}

bool call(PyObject *object, PyObject *name) {
    return nb::steal(PyObject_CallMethodNoArgs(object, name)).is_valid();
}

// What is due after a launch; false with an error.
bool after(Joining *self, const Launched &launched) {
    return !((self->table->should_look() && !completed(self->engine, nullptr)) ||
             (launched.trims && !call(self->queue, trim_name)) ||
             (launched.looked && !call(self->queue, looked_name)));
}

PyObject *told(nb::object event, Launched &launched) {
    *events.slot(event.ptr(), NUMBER) = launched.number_object.release().ptr();
    return event.release().ptr();
}

PyObject *join(Joining *self, PyObject *const *args) {
    if (args[4] != Py_None || args[6] != Py_False || args[7] != Py_False ||
        !self->table->is_plain() || !is_plain(self) || !waits_for_nothing(self, args[5]))
        return nullptr;
    Given *given = given_of(args[1]);
    Taught *to = given ? given->taught : nullptr;
    Table &table = *self->table;
    if (!to || !to->is_current || to->index != table.hazards->index() ||
        to->generation != table.generation || !to->stay.lasts(table))
        return nullptr;
    const nb::object lives = nb::borrow(reinterpret_cast<PyObject *>(self));
    const nb::object known = nb::borrow(reinterpret_cast<PyObject *>(given));
    nb::object event = new_event(self, KERNEL);
    Launched launched;
    if (!launch(self, given, args[2], args[3], launched)) return nullptr;
    if (launched.upstream.is_valid()) {
        PyObject *all[] = {self->queue, args[1], args[2], args[3], launched.number_object.ptr(),
                           launched.upstream.ptr()};
        PyObject *finished = PyObject_VectorcallMethod(finish_name, all, 6, nullptr);
        table.lock->give_back();
        return finished;
    }
    return after(self, launched) ? told(std::move(event), launched) : nullptr;
}

// ---- transfers -------------------------------------------------------------------------------------

// Whether a launch that the host can look behind has not been seen to end; those that have are
// forgotten.
bool has_seen(Joining *self) {
    for (Py_ssize_t at = 0; at < PyList_GET_SIZE(self->seen); at++)
        if (self->table->has(whole_number(PyList_GET_ITEM(self->seen, at)))) return true;
    if (PyList_SetSlice(self->seen, 0, PyList_GET_SIZE(self->seen), nullptr)) throw PythonError();
    return false;
}

// A buffer, or the bytes of some object.
struct Bytes {
    Py_buffer view = {};

    Bytes(PyObject *object, int flags) {
        if (PyObject_GetBuffer(object, &view, flags)) PyErr_Clear();
    }
    ~Bytes() { PyBuffer_Release(&view); }
    Bytes(const Bytes &) = delete;
    Bytes &operator=(const Bytes &) = delete;
};

// The program believes from now on that everything up to this launch is complete: `_pretend`.
bool pretend(Joining *self, const nb::object &number) {
    if (!self->in_order) return true;
    nb::object known = nb::steal(PyObject_GetAttr(self->queue, complete_name));
    if (!known.is_valid()) return false;
    return whole_number(known.ptr()) >= whole_number(number.ptr()) ||
           !PyObject_SetAttr(self->queue, complete_name, number.ptr());
}

// What no queue took is finished in Python, which then waits for it if it is a read.
PyObject *finish_transfer(Joining *self, bool writes, PyObject *original, PyObject *const *args,
                          Launched &launched) {
    nb::object offset = args[3] ? nb::borrow(args[3]) : nb::steal(PyLong_FromLong(0));
    PyObject *all[] = {self->queue, original, args[1], args[2], offset.ptr(),
                       launched.number_object.ptr(), launched.upstream.ptr()};
    nb::object event = nb::steal(PyObject_VectorcallMethod(transfer_name, all, 7, nullptr));
    self->table->lock->give_back();
    if (!event.is_valid()) return nullptr;
    if (writes) return pretend(self, launched.number_object) ? event.release().ptr() : nullptr;
    PyObject *turns[] = {self->queue, launched.number_object.ptr()};
    nb::object settled = nb::steal(PyObject_VectorcallMethod(settle_name, turns, 2, nullptr));
    return settled.is_valid() ? event.release().ptr() : nullptr;
}

// A read on its way into the program's memory. Who leaves before it has ended, by an exception, waits
// for it all the same: that memory may be anything then.
struct Reading {
    void *event = nullptr;

    Reading() = default;
    ~Reading() {
        if (!event) return;
        nb::gil_scoped_release others;
        driver.wait_for_events(1, &event);
        driver.release_event(event);
    }
    Reading(const Reading &) = delete;
    Reading &operator=(const Reading &) = delete;

    void *take() { return std::exchange(event, nullptr); }
};

// Where in a buffer, as any whole number says, NumPy's own too; -1 where it is none.
std::int64_t offset_of(PyObject *object) {
    const nb::object number = nb::steal(PyNumber_Index(object));
    if (!number.is_valid()) return PyErr_Clear(), -1;
    return whole_number(number.ptr());
}

// A blocking read, or a blocking write of a few bytes, which are copied: what has to be seen of that
// is that the program's memory is its own again.
PyObject *join_transfer(Joining *self, bool writes, PyObject *original, PyObject *const *args) {
    static PyObject *const names[] = {PyUnicode_InternFromString("read"),
                                      PyUnicode_InternFromString("write")};
    Table &table = *self->table;
    if (args[5] != Py_True || !table.is_plain() || !is_plain(self) || is_on_host_task() ||
        !waits_for_nothing(self, args[4]) || !is_a(args[1], self->queues->classes().memory))
        return nullptr;
    const nb::object lives = nb::borrow(reinterpret_cast<PyObject *>(self));
    const std::int64_t offset = args[3] ? offset_of(args[3]) : 0;
    const Bytes host(args[2], PyBUF_ANY_CONTIGUOUS | (writes ? 0 : PyBUF_WRITABLE));
    const std::int64_t nbytes = host.view.len;
    bool is_host = false;
    void *buffer = handle_of(args[1]);
    Node *whole = nbytes > 0 && buffer && !(writes && nbytes > MOST_COPIED)
                      ? node_of(self, args[1], is_host)
                      : nullptr;
    if (!whole || offset < 0 || offset > whole->span.width - nbytes) return nullptr;
    const Span all = whole->span;
    const NodePointer part = nbytes == all.width
                                 ? NodePointer(whole)
                                 : table.hazards->node({all.base, all.start + offset, nbytes, 1, nbytes});
    Touched touched;
    touched.add(part.get(), !writes, writes);
    NodePointer target;
    if (!writes) {
        auto address = std::int64_t(reinterpret_cast<std::uintptr_t>(host.view.buf));
        target = table.hazards->node(bounded({HOST, address, nbytes, 1, nbytes}));
        touched.add(target.get(), false, true);
    }
    nb::object event = new_event(self, writes ? WRITE : READ, writes ? Py_None : args[2]);
    const nb::bytes copied(writes ? host.view.buf : nullptr, writes ? std::size_t(nbytes) : 0);
    Launched launched;
    Reading reading;
    bool has_others = false;
    {
        // again, for whoever made the event or the bytes may have run code
        if (!table.is_plain() || !is_plain(self) || !table.lock->try_take()) return nullptr;
        Taken taken(table.lock);
        if (!self->books->try_take()) return nullptr;
        Taken books(self->books);
        has_others = has_seen(self);
        if (writes && has_others) return nullptr;  // which are waited for first
        const auto at = std::size_t(offset);
        bool is_on_queue =
            writes ? self->queues->launch(touched, Into{buffer, at, copied}, names[1])
                   : self->queues->launch(touched,
                                          From{args[1], at, host.view.buf, std::size_t(nbytes), buffer},
                                          reading.event, names[0]);
        note(self, is_on_queue, !writes, taken, launched);
    }
    if (launched.upstream.is_valid()) return finish_transfer(self, writes, original, args, launched);
    bool is_well = writes || wait_for(*self->queues, self->engine, launched.number, reading.take(),
                                     args[2]);
    if (!is_well || has_others) {  // which says what failed
        PyObject *turns[] = {self->queue, launched.number_object.ptr()};
        if (!nb::steal(PyObject_VectorcallMethod(settle_name, turns, 2, nullptr)).is_valid())
            return nullptr;
    }
    if (!pretend(self, launched.number_object) || !after(self, launched)) return nullptr;
    if (!writes && self->section && !waited(self->section)) return nullptr;
    return told(std::move(event), launched);
}

// ---- what Python says -------------------------------------------------------------------------------

// A launch of `kernel` went to a queue, as `native`: those like it may be the core's. `pointers` and
// `values`: its arguments by index; `left`, `until`, `reason` as for `learn_queues`.
void teach_kernel(nb::handle joining, nb::handle kernel, nb::object native, nb::object name,
                  nb::tuple modes, nb::dict pointers, nb::dict values, nb::handle global,
                  nb::handle local, std::int64_t left, std::int64_t until, nb::object reason) {
    auto *self = reinterpret_cast<Joining *>(joining.ptr());
    Given *given = given_of(kernel.ptr());
    Sizes sizes;
    if (!given || nb::len(modes) > MOST_PARAMETERS || nb::len(pointers) >= MOST_SPANS ||
        !take_sizes(global.ptr(), local.ptr(), sizes))
        return;
    const std::uint32_t index = self->table->hazards->index();
    Taught *to = given->taught;
    if (to && to->is_used()) return;
    if (!to || to->index != index || to->generation != self->table->generation ||
        !to->kernel_object.is(native)) {
        forget(std::exchange(given->taught, nullptr));
        QueueKernel *queued = QueueKernel::of(native);
        if (!queued) return;
        to = given->taught = new Taught;
        to->kernel = queued;
        to->kernel_object = std::move(native);
        to->index = index;
        to->generation = self->table->generation;
    }
    to->name = std::move(name);
    if (!to->is_current) {
        const Classes &classes = self->queues->classes();
        to->parameters.clear();
        to->arguments.clear();
        to->arguments.resize(nb::len(modes));
        for (std::size_t at = 0; at < to->arguments.size(); at++) {
            auto mode = nb::cast<std::string>(modes[at]);
            nb::int_ index_object(at);
            PyObject *object = PyDict_GetItem(pointers.ptr(), index_object.ptr());
            char code = object ? code_of(classes, object) : 'v';
            if (!code) return;
            to->parameters.push_back({code, 0, mode.find('r') != std::string::npos,
                                      mode.find('w') != std::string::npos});
            PyObject *value = PyDict_GetItem(values.ptr(), index_object.ptr());
            if (object ? !put_object(self, *to, at, object)
                       : !value || !put_bytes(to->arguments[at], value))
                return;
        }
        to->read = 0;  // notes were taken when Python read them; newer ones are newer
        to->is_current = true;
    }
    to->sizes.make(sizes) = true;
    to->stay = {left, until, std::move(reason)};
}

int joining_init(Joining *self, PyObject *args, PyObject *keywords) {
    static const char *names[] = {"queue", "engine", "table", "queues", "store", "numbers",
                                  "seen", "books", "section", "empty", "in_order", "chains",
                                  nullptr};
    PyObject *queue;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OOOOOO!O!OOO!pp", const_cast<char **>(names),
                                     &queue, &self->engine, &self->table_object,
                                     &self->queues_object, &self->store, &PyList_Type,
                                     &self->numbers, &PyList_Type, &self->seen,
                                     &self->books_object, &self->section_object, &PyTuple_Type,
                                     &self->empty, &self->in_order, &self->chains)) {
        for (PyObject **one : self->objects()) *one = nullptr;
        return -1;
    }
    for (PyObject **one : self->objects()) Py_INCREF(*one);
    try {
        self->table = nb::cast<Table *>(nb::handle(self->table_object));
        self->queues = nb::cast<Queues *>(nb::handle(self->queues_object));
    } catch (const std::bad_cast &) {
        PyErr_SetString(PyExc_TypeError, "these are not a table and queues of the core");
        return -1;
    }
    if (Py_TYPE(self->books_object) != lock_type() || !self->table->lock) {
        PyErr_SetString(PyExc_TypeError, "expected a lock, and a table that has one");
        return -1;
    }
    self->books = reinterpret_cast<Lock *>(self->books_object);
    self->section = self->section_object == Py_None
                        ? nullptr
                        : reinterpret_cast<Passing *>(self->section_object);
    self->known = new std::vector<Joining::Known>(PLACES_OF_MEMORY);
    self->queue = queue;
    joinings[queue] = self;
    return 0;
}

}  // namespace

void forget(Taught *taught) { Taught::forget(taught); }

void not_current(Taught *taught) { taught->is_current = false; }

void Joining::end() {
    if (auto found = joinings.find(queue); found != joinings.end() && found->second == this)
        joinings.erase(found);
    delete std::exchange(known, nullptr);
}

Joining *joining_of(PyObject *queue) {
    auto found = joinings.find(queue);
    return found == joinings.end() ? nullptr : found->second;
}

PyObject *joined(Joining *joining, int joins, PyObject *original, PyObject *const *args) {
    try {
        if (joins == KERNEL) return join(joining, args);
        return join_transfer(joining, joins == WRITE, original, args);
    } catch (const std::bad_alloc &) {
        return PyErr_NoMemory();
    } catch (const PythonError &) {  // which is set
        return nullptr;
    } catch (nb::python_error &error) {
        return error.restore(), nullptr;
    }
}

void add_joining(nb::module_ &module) {
    span_name = PyUnicode_InternFromString("acs_span");
    find_span_name = PyUnicode_InternFromString("_find_span");
    finish_name = PyUnicode_InternFromString("_finish_kernel");
    looked_name = PyUnicode_InternFromString("_looked");
    trim_name = PyUnicode_InternFromString("_trim");
    transfer_name = PyUnicode_InternFromString("_finish_transfer");
    settle_name = PyUnicode_InternFromString("settle");
    complete_name = PyUnicode_InternFromString("complete");
    module.attr("Joining") = nb::steal(
        new_type<Joining>("acs_cl._core.Joining", COLLECTED,
                          {{Py_tp_init, slot(joining_init)}, {Py_tp_new, slot(PyType_GenericNew)}}));
    module.def("use_kinds", [](nb::tuple kinds, nb::object on_host_task) {
        Py_XSETREF(event_kinds, kinds.release().ptr());
        Py_XSETREF(host_task, on_host_task.release().ptr());
    });
    module.def("teach_kernel", teach_kernel, nb::arg("joining"), nb::arg("kernel"),
               nb::arg("native"), nb::arg("name"), nb::arg("modes"), nb::arg("pointers"),
               nb::arg("values"), nb::arg("global_size"), nb::arg("local_size").none(),
               nb::arg("left"), nb::arg("until"), nb::arg("reason").none());
}

}  // namespace acs_cl
