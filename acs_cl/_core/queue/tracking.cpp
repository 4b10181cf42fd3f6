// Kernels of an `acs.Queue` as launches of the core's own, and what they have in common with transfers:
// tracking.hpp says what and when.

#include "queue/tracking.hpp"

#include <nanobind/stl/vector.h>

#include <algorithm>
#include <unordered_map>

namespace acs_cl {

namespace {

constexpr std::size_t PLACES_OF_MEMORY = 256;
constexpr Py_ssize_t TRIM_EVERY = 256;  // launches, as MANY in acs_cl/queue/queue.py

PyObject *span_name, *find_span_name;
PyObject *event_kinds;  // of what joins, in the order of `Joins`
PyObject *error_of;  // the one of PyOpenCL's that a program expects for one of ours
std::unordered_map<PyObject *, Joining *> joinings;

}  // namespace

const Joining::Known *known_of(Joining *self, PyObject *memory) {
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
    return &kept;
}

namespace {

// ---- what a kernel was given -----------------------------------------------------------------------

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
        const Joining::Known *known = known_of(self, object);
        // memory that is only Python's has to be held until the launch has ended
        if (!known || (known->is_host && code == 'S')) return false;
        argument.node = known->node;
        argument.is_host = known->is_host;
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

}  // namespace

bool is_plain(const Joining *self) {
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(self->empty); at++)
        if (PyObject_Size(PyTuple_GET_ITEM(self->empty, at))) return false;
    return true;
}

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

nb::object new_event(Joining *self, int joins, PyObject *keeps) {
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

namespace {

// The bytes of all arguments that are memory.
bool touch(Joining *self, Taught &to, Touched &touched, bool &is_seen) {
    Hazards &hazards = *self->table->hazards;
    for (std::size_t index = 0; index < to.parameters.size(); index++) {
        const Parameter &parameter = to.parameters[index];
        if (parameter.code != 'P' && parameter.code != 'S') continue;
        Argument &argument = to.arguments[index];
        if (!hazards.has(*argument.node)) {
            const Joining::Known *known = known_of(self, argument.object.ptr());
            if (!known) return false;
            argument.node = known->node;
            argument.is_host = known->is_host;
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
    bool is_well = true;
    if (table.in_epochs() || table.has_watched()) {
        is_well = completed(self->engine, nullptr);
    } else {
        nb::list ended = self->queues->poll(64);
        if (nb::len(ended) || table.has_ready()) is_well = self->queues->tell(self->engine, ended);
    }
    if (!is_well) throw PythonError();
    look.note(number, upstream, [&](std::int64_t one) { return table.has(one); });
    launched.looked = look.many >= section->wanted;
}

// A launch that no lane took is in the table: it goes on from there. False with an error.
bool go_on(Joining *self, std::int64_t number) {
    if (completed(self->engine, nullptr, number)) return true;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    const nb::object all[] = {nb::steal(type), nb::steal(value), nb::steal(trace)};
    const nb::object told = nb::steal(PyObject_CallOneArg(error_of, value));
    if (told.is_valid()) PyErr_SetObject(reinterpret_cast<PyObject *>(Py_TYPE(told.ptr())), told.ptr());
    return false;
}

}  // namespace

bool note(Joining *self, bool is_on_lane, bool is_seen, Launched &launched) {
    const std::int64_t number = launched.number = self->table->number;
    launched.number_object = nb::steal(PyLong_FromLongLong(number));
    std::vector<std::int64_t> upstream;
    if (self->section && self->section->satisfied <= 0)
        for (const Edge &edge : self->queues->edges()) upstream.push_back(edge.upstream);
    if (self->chains) upstream.assign(1, number - 1);
    append(self->numbers, launched.number_object);
    if (is_seen) append(self->seen, launched.number_object);
    launched.trims = PyList_GET_SIZE(self->numbers) % TRIM_EVERY == 0;
    if (self->section) self->section->commands++;
    if (!is_on_lane) return go_on(self, number);
    if (self->section) look(self, number, upstream, launched);
    return true;
}

namespace {

// A `commands.KernelCommand` of such a launch.
nb::object command_of(const Joining *self, const Taught &to, PyObject *global, PyObject *local) {
    nb::list memory, values;
    for (std::size_t at = 0; at < to.parameters.size(); at++) {
        const bool is_value = to.parameters[at].code == 'v';
        const Argument &argument = to.arguments[at];
        nb::list &turns = is_value ? values : memory;
        turns.append(at);
        if (is_value) turns.append(nb::bytes(argument.value.data(), argument.value.size()));
        else turns.append(argument.object);
    }
    const auto sizes = [](PyObject *given) {  // as a tuple
        return given == Py_None ? nb::object(nb::none()) : nb::steal(PySequence_Tuple(given));
    };
    return self->queues->classes().command(to.name, to.kernel_object, sizes(global), sizes(local),
                                           nb::tuple(memory), nb::tuple(values), nb::none());
}

// False: nothing has changed, or there is an error.
bool launch(Joining *self, Given *given, PyObject *global, PyObject *local, Launched &launched) {
    Taught &to = *given->taught;
    const Taught::Use use(to);
    Table &table = *self->table;
    Sizes sizes;
    Reaches *reaches = take_sizes(global, local, sizes) ? to.sizes.find(sizes) : nullptr;
    if (!reaches || !read_notes(self, given, to)) return false;
    Touched touched;
    bool is_seen = false;
    // again, for the memory of an event or of spans may have run code
    if (!touch(self, to, touched, is_seen) ||
        (to.ranges && !to.ranges->narrow(*reaches, to.key(), touched, *table.hazards,
                                         []() -> Reach * { return nullptr; })) ||
        !table.is_plain() || !is_plain(self) || !table.lock->try_take())
        return false;
    Taken taken(table.lock);
    if (!self->books->try_take()) return false;
    Taken books(self->books);
    if (!set(to, self->queues->classes())) return false;
    const Held held(to, touched);
    to.stay.use();
    const bool is_on_lane =
        self->queues->launch(held.touched, *to.kernel, sizes, held.name.ptr(), held.reason,
                             [&] { return command_of(self, to, global, local); });
    return note(self, is_on_lane, is_seen, launched);
}

}  // namespace

bool after(Joining *self, const Launched &launched) {
    if (self->table->should_look() && !completed(self->engine, nullptr)) return false;
    if (!launched.settles && !launched.trims && !launched.looked && !launched.waited) return true;
    return due(self->queue, launched.settles ? launched.number_object.ptr() : nullptr, launched.looked,
               launched.waited);
}

PyObject *told(nb::object event, Launched &launched) {
    *events.slot(event.ptr(), NUMBER) = launched.number_object.release().ptr();
    return event.release().ptr();
}

namespace {

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
    return after(self, launched) ? told(std::move(event), launched) : nullptr;
}

// ---- what Python says -------------------------------------------------------------------------------

// What a launch with the arguments that the kernel has now touches of its memory: the numbers that this
// depends on, what is reached, if it is known, and whether all counts with other numbers. False where it
// cannot be kept.
bool learn_ranges(Taught &to, Reaches &reaches, const nb::tuple &ranges) {
    auto numbers = nb::cast<std::vector<std::uint16_t>>(ranges[0]);
    std::size_t many = 0;
    for (const Parameter &one : to.parameters) many += one.code == 'P' || one.code == 'S';
    for (std::uint16_t index : numbers)
        if (index >= to.parameters.size() || to.parameters[index].code != 'v') return false;
    to.ranges = Ranges{std::move(numbers), nb::cast<bool>(ranges[2])};
    if (!nb::object(ranges[1]).is_none()) reaches.add(to.key(), ranges[1], many);
    return true;
}

// A launch of `kernel` went to a queue, as `native`: those like it may be the core's. `pointers` and
// `values`: its arguments by index; `ranges` as for `learn_ranges`, None where launches touch all of their
// memory; `left`, `until`, `reason` as `stay` of `learn`.
void teach_kernel(nb::handle joining, nb::handle kernel, nb::object native, nb::object name,
                  nb::tuple modes, nb::dict pointers, nb::dict values, nb::handle global,
                  nb::handle local, nb::handle ranges, std::int64_t left, std::int64_t until,
                  nb::object reason) {
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
    Reaches &reaches = to->sizes.make(sizes);
    to->ranges.reset();
    if (!ranges.is_none() && !learn_ranges(*to, reaches, nb::cast<nb::tuple>(ranges))) return;
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
    self->waits_first = self->queues->on_own_processor();
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
        return join_transfer(joining, joins, original, args);
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
    module.attr("Joining") = nb::steal(
        new_type<Joining>("acs_cl._core.Joining", COLLECTED,
                          {{Py_tp_init, slot(joining_init)}, {Py_tp_new, slot(PyType_GenericNew)}}));
    module.def("use_kinds",
               [](nb::tuple kinds, nb::object native_error, nb::object call) {
                   Py_XSETREF(event_kinds, kinds.release().ptr());
                   Py_XSETREF(error_of, native_error.release().ptr());
                   use_transfers(std::move(call));
               });
    add_transfers();
    module.def("teach_kernel", teach_kernel, nb::arg("joining"), nb::arg("kernel"),
               nb::arg("native"), nb::arg("name"), nb::arg("modes"), nb::arg("pointers"),
               nb::arg("values"), nb::arg("global_size"), nb::arg("local_size").none(),
               nb::arg("ranges").none(), nb::arg("left"), nb::arg("until"), nb::arg("reason").none());
}

}  // namespace acs_cl
