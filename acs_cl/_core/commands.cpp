// Commands that pass: functions of PyOpenCL's that take a queue.

#include <algorithm>
#include <array>

#include "passing.hpp"

namespace acs_cl {

namespace {

PyObject *event_class, *nanny_class, *own_event_class, *event_of_handle;
PyObject *wait_name, *queue_name;

// A function of PyOpenCL's that takes a queue, or `wait_for_events`. Positions are those of
// parameters, -1: it has none.
struct Command {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *original, *otherwise, *name, *doc, *waits_name, *blocks_name;
    int queue_at, waits_at, blocks_at;
    bool is_kernel;

    auto objects() {
        return std::array{&original, &otherwise, &name, &doc, &waits_name, &blocks_name};
    }
    void end() {}
};

// The arguments of a call, some of them changed.
struct Arguments {
    Arguments(PyObject *const *args, Py_ssize_t positional, PyObject *keywords)
        : positional(positional), keywords(keywords),
          many(positional + (keywords ? PyTuple_GET_SIZE(keywords) : 0)), args(args) {}
    ~Arguments() {
        Py_XDECREF(list);
        Py_XDECREF(names);
    }
    Arguments(const Arguments &) = delete;
    Arguments &operator=(const Arguments &) = delete;

    // Where a parameter's argument is, or -1.
    Py_ssize_t find(Py_ssize_t at, PyObject *name) const {
        if (at < positional) return at;
        for (Py_ssize_t index = positional; index < many; index++) {
            PyObject *given = PyTuple_GET_ITEM(keywords, index - positional);
            if (given == name) return index;
            if (!PyUnicode_CHECK_INTERNED(given) && PyUnicode_Compare(given, name) == 0)
                return index;
        }
        return -1;
    }

    // False: there is no room.
    bool change(Py_ssize_t at, PyObject *name, PyObject *value) {
        if (many + 1 > Py_ssize_t(changed.size())) return false;
        if (args != changed.data()) std::copy(args, args + many, changed.begin());
        args = changed.data();
        if (at < 0) {
            at = many;
            PyObject *more = PyTuple_New(many - positional + 1);
            if (!more) return PyErr_Clear(), false;
            for (Py_ssize_t index = positional; index < many; index++)
                PyTuple_SET_ITEM(more, index - positional,
                                 Py_NewRef(PyTuple_GET_ITEM(keywords, index - positional)));
            PyTuple_SET_ITEM(more, many - positional, Py_NewRef(name));
            Py_XDECREF(names);
            keywords = names = more;
            many++;
        }
        changed[std::size_t(at)] = value;
        return true;
    }

    Py_ssize_t positional;
    PyObject *keywords;
    Py_ssize_t many;
    PyObject *const *args;
    PyObject *list = nullptr, *names = nullptr;  // what it has made itself
    std::array<PyObject *, 16> changed;
};

bool is_empty(PyObject *wait_for) {
    return wait_for == Py_None || (PyList_CheckExact(wait_for) && !PyList_GET_SIZE(wait_for)) ||
           (PyTuple_CheckExact(wait_for) && !PyTuple_GET_SIZE(wait_for));
}

enum class Waits { FOR_NOTHING, AS_GIVEN, FOR_SOME, UNCLEAR };

// What is left of a wait list without the commands of this queue, which are before anyway.
// FOR_SOME: events of the driver, and others that PyOpenCL cannot take.
Waits look_at(Passing *way, PyObject *wait_for) {
    if (is_empty(wait_for)) return Waits::FOR_NOTHING;
    if (!PyList_CheckExact(wait_for) && !PyTuple_CheckExact(wait_for)) return Waits::UNCLEAR;
    Waits found = Waits::FOR_NOTHING;
    bool has_own = false;
    for (Py_ssize_t index = 0; index < PySequence_Fast_GET_SIZE(wait_for); index++) {
        PyObject *event = PySequence_Fast_GET_ITEM(wait_for, index);
        if (way->place_of(event) == event) continue;
        auto *type = reinterpret_cast<PyObject *>(Py_TYPE(event));
        if (type == event_class || type == nanny_class) {
            found = Waits::AS_GIVEN;
            way->keeps_events = true;
            continue;
        }
        if (type != own_event_class) return Waits::UNCLEAR;
        PyObject *queue = PyObject_GetAttr(event, queue_name);
        if (!queue) return PyErr_Clear(), Waits::UNCLEAR;
        Py_DECREF(queue);  // the event holds it
        if (queue != way->queue) return Waits::UNCLEAR;
        has_own = true;
    }
    return has_own && found == Waits::AS_GIVEN ? Waits::FOR_SOME : found;
}

bool are_of_the_driver(PyObject *events) {
    if (!PyList_CheckExact(events) && !PyTuple_CheckExact(events)) return false;
    for (Py_ssize_t index = 0; index < PySequence_Fast_GET_SIZE(events); index++) {
        auto *type = reinterpret_cast<PyObject *>(Py_TYPE(PySequence_Fast_GET_ITEM(events, index)));
        if (type != event_class && type != nanny_class) return false;
    }
    return true;
}

// The argument at `at`, or what is left of it. False: there was no memory.
bool take_wait_list(Waits what, Arguments &args, Py_ssize_t at) {
    if (what == Waits::AS_GIVEN) return true;
    if (what == Waits::FOR_NOTHING) return args.change(at, nullptr, Py_None);
    PyObject *wait_for = args.args[at];
    args.list = PyList_New(0);
    for (Py_ssize_t index = 0; args.list && index < PySequence_Fast_GET_SIZE(wait_for); index++) {
        PyObject *event = PySequence_Fast_GET_ITEM(wait_for, index);
        if (reinterpret_cast<PyObject *>(Py_TYPE(event)) != own_event_class &&
            PyList_Append(args.list, event))
            Py_CLEAR(args.list);
    }
    if (!args.list) return PyErr_Clear(), false;
    return args.change(at, nullptr, args.list);
}

// One to three whole numbers above 0, as many as `many` unless that is 0; 0: they are not.
int take_size(PyObject *size, std::size_t *to, int many) {
    if (!PyTuple_CheckExact(size)) return 0;
    int found = int(PyTuple_GET_SIZE(size));
    if (found < 1 || found > 3 || (many && found != many)) return 0;
    for (int at = 0; at < found; at++) {
        PyObject *number = PyTuple_GET_ITEM(size, at);
        if (!PyLong_CheckExact(number)) return 0;
        Py_ssize_t value = PyLong_AsSsize_t(number);
        if (value <= 0) return PyErr_Clear(), 0;
        to[at] = std::size_t(value);
    }
    return found;
}

// A kernel whose arguments were noted, as PyOpenCL would enqueue it. Null, without an error: it is
// not that plain, or the driver refuses it; PyOpenCL says why, or finds memory. Nobody comes
// between the look at the way and the driver's call, for the GIL is held.
PyObject *pass_kernel(Passing *way, PyObject *const *args, Py_ssize_t many) {
    if (many > 4 && args[4] != Py_None) return nullptr;
    for (Py_ssize_t at = 6; at < many; at++)
        if (args[at] != Py_False) return nullptr;
    const Given *given = given_of(args[1]);
    if (!given || !given->handle) return nullptr;
    std::size_t global[3], local[3];
    int axes = take_size(args[2], global, 0);
    if (!axes || (args[3] != Py_None && !take_size(args[3], local, axes))) return nullptr;
    void *handle = nullptr;
    if (driver.enqueue(way->native, given->handle, std::uint32_t(axes), nullptr, global,
                       args[3] == Py_None ? nullptr : local, 0, nullptr, &handle))
        return nullptr;
    PyObject *number = PyLong_FromVoidPtr(handle);
    PyObject *turns[] = {number, Py_False};  // its reference goes to the event
    PyObject *event = number ? PyObject_Vectorcall(event_of_handle, turns, 2, nullptr) : nullptr;
    Py_XDECREF(number);
    if (event) way->count(event, handle);
    return event;
}

// Any command, made by PyOpenCL; a blocking one waits outside of the lock. False: not here.
bool pass(Command *self, Passing *way, Arguments &args, PyObject *&event) {
    Py_ssize_t at = self->waits_at < 0 ? -1 : args.find(self->waits_at, self->waits_name);
    if (at >= 0) {
        Waits what = look_at(way, args.args[at]);
        if (what == Waits::UNCLEAR || !take_wait_list(what, args, at)) return false;
    }
    bool blocks = false;
    if (self->blocks_at >= 0) {
        at = args.find(self->blocks_at, self->blocks_name);
        PyObject *given = at < 0 ? Py_True : args.args[at];
        if (given != Py_True && given != Py_False) return false;
        blocks = given == Py_True;
        if (blocks && !args.change(at, self->blocks_name, Py_False)) return false;
    }
    auto *lock = reinterpret_cast<Lock *>(way->lock);
    if (!lock->try_take()) return false;
    Py_INCREF(way);
    event = PyObject_Vectorcall(self->original, args.args, std::size_t(args.positional),
                                args.keywords);
    if (event) way->count(event, nullptr);
    lock->give_back();
    Py_DECREF(way);
    if (event && blocks) {
        PyObject *waited = PyObject_CallMethodNoArgs(event, wait_name);
        if (!waited) Py_CLEAR(event);
        Py_XDECREF(waited);
    }
    return true;
}

PyObject *command_call(PyObject *object, PyObject *const *args, std::size_t flags,
                       PyObject *keywords) {
    auto *self = reinterpret_cast<Command *>(object);
    Py_ssize_t many = PyVectorcall_NARGS(flags);
    if (self->queue_at < 0) {
        bool is_plain = many == 1 && !keywords && are_of_the_driver(args[0]);
        return PyObject_Vectorcall(is_plain ? self->original : self->otherwise, args,
                                   std::size_t(many), keywords);
    }
    Passing *way = many > self->queue_at ? way_of(args[self->queue_at]) : nullptr;
    if (way) {
        PyObject *event = nullptr;
        if (self->is_kernel && !keywords && many >= 4 && many <= 8 &&
            (many < 6 || look_at(way, args[5]) == Waits::FOR_NOTHING)) {
            event = pass_kernel(way, args, many);
            if (event || PyErr_Occurred()) return event;
        }
        Arguments given(args, many, keywords);
        if (pass(self, way, given, event)) return event;
    }
    return PyObject_Vectorcall(self->otherwise, args, std::size_t(many), keywords);
}

PyObject *command_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    static const char *names[] = {"original", "otherwise", "queue_at", "waits_at", "blocks_at",
                                  "is_kernel", nullptr};
    PyObject *original, *otherwise;
    int queue_at, waits_at, blocks_at, is_kernel;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OOiiip", const_cast<char **>(names),
                                     &original, &otherwise, &queue_at, &waits_at, &blocks_at,
                                     &is_kernel))
        return nullptr;
    auto *self = reinterpret_cast<Command *>(type->tp_alloc(type, 0));
    if (!self) return nullptr;
    self->call = command_call;
    self->original = Py_NewRef(original);
    self->otherwise = Py_NewRef(otherwise);
    self->waits_name = PyUnicode_InternFromString("wait_for");
    self->blocks_name = PyUnicode_InternFromString("is_blocking");
    self->queue_at = queue_at;
    self->waits_at = waits_at;
    self->blocks_at = blocks_at;
    self->is_kernel = is_kernel;
    return reinterpret_cast<PyObject *>(self);
}

PyMemberDef command_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Command, call), READONLY, nullptr},
    {"__name__", T_OBJECT, offsetof(Command, name), 0, nullptr},
    {"__doc__", T_OBJECT, offsetof(Command, doc), 0, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyType_Slot command_slots[] = {{Py_tp_new, slot(command_new)},
                               {Py_tp_call, slot(PyVectorcall_Call)},
                               {Py_tp_dealloc, slot(dealloc<Command>)},
                               {Py_tp_members, command_members},
                               {0, nullptr}};
PyType_Spec command_spec = {"acs_cl._core.Command", sizeof(Command), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, command_slots};

// PyOpenCL's two classes of events, that of queues of ours, and what makes one of the first from a
// handle.
void use_events(nb::tuple events) {
    PyObject **places[] = {&event_class, &nanny_class, &own_event_class, &event_of_handle};
    for (std::size_t at = 0; at < 4; at++) {
        nb::object one = events[at];
        Py_XSETREF(*places[at], one.release().ptr());
    }
}

}  // namespace

void add_commands(nb::module_ &module) {
    wait_name = PyUnicode_InternFromString("wait");
    queue_name = PyUnicode_InternFromString("_acs_queue");
    module.attr("Command") = nb::steal(PyType_FromSpec(&command_spec));
    module.def("use_events", use_events, nb::arg("events"));
}

}  // namespace acs_cl
