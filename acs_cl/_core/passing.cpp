#include "passing.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>
#include <vector>

#include <structmember.h>

#include "lock.hpp"
#include "queue_kernel.hpp"

namespace acs_cl {

namespace {

double now_s() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

// The driver's handle of one of PyOpenCL's objects; null where it has none, and no error then.
void *handle_of(PyObject *object) {
    static PyObject *name = PyUnicode_InternFromString("int_ptr");
    PyObject *number = PyObject_GetAttr(object, name);
    void *found = number ? PyLong_AsVoidPtr(number) : nullptr;
    Py_XDECREF(number);
    if (PyErr_Occurred()) PyErr_Clear();
    return found;
}

template <typename T>
T *set_up(PyTypeObject *type) {
    return reinterpret_cast<T *>(type->tp_alloc(type, 0));
}

template <typename Function>
PyCFunction method(Function *function) {
    return reinterpret_cast<PyCFunction>(reinterpret_cast<void *>(function));
}

template <typename Function>
void *slot(Function *function) {
    return reinterpret_cast<void *>(function);
}

// ---- the way past -------------------------------------------------------------------------------

constexpr std::size_t EVENTS = 128;

// What a section needs while commands pass. It is found by the queue object that they are called
// with, which lives as long as commands may pass.
struct Passing {
    PyObject_HEAD
    PyObject *queue;  // borrowed
    PyObject *lock;
    PyObject *in_flight;  // an event of some commands ago, or null
    void *native, *in_flight_handle;
    long long passed;
    int left, behind;
    double rests_until;
    bool keeps_events;  // once a wait list named some
    PyObject *events[EVENTS];  // of the last commands, where an event's address says; or null

    PyObject *&place_of(PyObject *event) {
        return events[(reinterpret_cast<std::uintptr_t>(event) >> 5) % EVENTS];
    }

    void forget_events() {
        Py_CLEAR(in_flight);
        if (!keeps_events) return;
        keeps_events = false;
        for (PyObject *&event : events) Py_CLEAR(event);
    }
};

std::vector<Passing *> open_ways;

void close_way(Passing *self) {
    open_ways.erase(std::remove(open_ways.begin(), open_ways.end(), self), open_ways.end());
}

Passing *way_of(PyObject *queue) {
    for (Passing *way : open_ways)
        if (way->queue == queue) return way;
    return nullptr;
}

bool is_open(const Passing *self) {
    return std::find(open_ways.begin(), open_ways.end(), self) != open_ways.end();
}

int passing_init(Passing *self, PyObject *args, PyObject *keywords) {
    static const char *names[] = {"queue", "pointer", "behind", nullptr};
    PyObject *queue, *pointer;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OOi", const_cast<char **>(names), &queue,
                                     &pointer, &self->behind))
        return -1;
    self->native = PyLong_AsVoidPtr(pointer);
    if (PyErr_Occurred()) return -1;
    PyObject *lock = PyObject_CallNoArgs(reinterpret_cast<PyObject *>(lock_type()));
    if (!lock) return -1;
    Py_XSETREF(self->lock, lock);
    self->queue = queue;
    self->left = self->behind;
    return 0;
}

void passing_dealloc(Passing *self) {
    PyTypeObject *type = Py_TYPE(self);
    close_way(self);
    Py_XDECREF(self->lock);
    self->forget_events();
    type->tp_free(self);
    Py_DECREF(type);
}

PyObject *passing_get(Passing *self, void *) { return PyBool_FromLong(is_open(self)); }

int passing_set(Passing *self, PyObject *value, void *) {
    int opens = value ? PyObject_IsTrue(value) : 0;
    if (opens < 0) return -1;
    close_way(self);
    self->forget_events();
    self->left = self->behind;
    if (opens) open_ways.push_back(self);
    return 0;
}

// A command has passed. Where the one some commands ago has not ended, work is waiting.
void count(Passing *self, PyObject *event, void *handle) {
    self->passed++;
    if (self->keeps_events && event != Py_None)  // barriers of old have no event
        Py_XSETREF(self->place_of(event), Py_NewRef(event));
    if (--self->left > 0) return;
    self->left = self->behind;
    bool waits = self->in_flight && event_status(self->in_flight_handle) > 0;
    self->in_flight_handle = handle ? handle : handle_of(event);
    Py_XSETREF(self->in_flight, self->in_flight_handle ? Py_NewRef(event) : nullptr);
    if (waits && now_s() > self->rests_until) close_way(self);
}

PyObject *passing_count(Passing *self, PyObject *event) {
    count(self, event, nullptr);
    Py_RETURN_NONE;
}

PyObject *passing_rest(Passing *self, PyObject *seconds) {
    double rest_s = PyFloat_AsDouble(seconds);
    if (PyErr_Occurred()) return nullptr;
    self->rests_until = now_s() + rest_s;
    Py_RETURN_NONE;
}

PyObject *passing_rests(Passing *self, void *) {
    return PyBool_FromLong(now_s() <= self->rests_until);
}

PyMethodDef passing_methods[] = {{"count", method(passing_count), METH_O, nullptr},
                                 {"rest", method(passing_rest), METH_O, nullptr},
                                 {nullptr, nullptr, 0, nullptr}};
PyMemberDef passing_members[] = {{"passed", T_LONGLONG, offsetof(Passing, passed), 0, nullptr},
                                 {"lock", T_OBJECT_EX, offsetof(Passing, lock), READONLY, nullptr},
                                 {nullptr, 0, 0, 0, nullptr}};
PyGetSetDef passing_properties[] = {
    {"passing", getter(passing_get), setter(passing_set), nullptr, nullptr},
    {"rests", getter(passing_rests), nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot passing_slots[] = {{Py_tp_init, slot(passing_init)},
                               {Py_tp_new, slot(PyType_GenericNew)},
                               {Py_tp_dealloc, slot(passing_dealloc)},
                               {Py_tp_methods, passing_methods},
                               {Py_tp_members, passing_members},
                               {Py_tp_getset, passing_properties},
                               {0, nullptr}};
PyType_Spec passing_spec = {"acs_cl._core.Passing", sizeof(Passing), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, passing_slots};

// ---- what kernels were given --------------------------------------------------------------------

// Setters of several arguments, and then of one each, of the first some.
constexpr int MULTI = 0, SETTERS = 3, PLACES = SETTERS + 16;

// What a kernel's arguments were set from, in each place the last, until somebody asks: tuples, and
// of single arguments the objects.
struct Given {
    PyObject_HEAD
    PyObject *kernel;  // borrowed: it holds this
    PyObject *last[PLACES];
    unsigned long long turns[PLACES];
    void *handle;
    long long generation;
};

long long generation = 0;
unsigned long long turn = 0;
PyTypeObject *given_type;
PyObject *arguments_class, *arguments_name;
std::array<Given *, 64> recent{};

Given *&recent_of(PyObject *kernel) {
    return recent[(reinterpret_cast<std::uintptr_t>(kernel) >> 5) % recent.size()];
}

int given_init(Given *self, PyObject *args, PyObject *keywords) {
    static const char *names[] = {"kernel", nullptr};
    PyObject *kernel;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O", const_cast<char **>(names), &kernel))
        return -1;
    self->kernel = kernel;
    self->handle = handle_of(kernel);
    self->generation = generation;
    return 0;
}

int given_traverse(Given *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    for (PyObject *one : self->last) Py_VISIT(one);
    return 0;
}

int given_clear(Given *self) {
    for (PyObject *&one : self->last) Py_CLEAR(one);
    return 0;
}

void given_dealloc(Given *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (self->kernel && recent_of(self->kernel) == self) recent_of(self->kernel) = nullptr;
    given_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

// [(which setter, its tuple)] in the order of the calls; they are forgotten here.
PyObject *given_take(Given *self, PyObject *) {
    PyObject *found = PyList_New(0);
    while (found) {
        int first = -1;
        for (int place = 0; place < PLACES; place++)
            if (self->last[place] && (first < 0 || self->turns[place] < self->turns[first]))
                first = place;
        if (first < 0) break;
        PyObject *taken = std::exchange(self->last[first], nullptr);
        PyObject *one = first < SETTERS
                            ? Py_BuildValue("(iN)", first, taken)
                            : Py_BuildValue("(i(iN))", MULTI, first - SETTERS, taken);
        if (!one || PyList_Append(found, one)) Py_CLEAR(found);
        Py_XDECREF(one);
    }
    return found;
}

PyObject *given_generation(Given *self, void *) { return PyLong_FromLongLong(self->generation); }

PyMethodDef given_methods[] = {{"take", method(given_take), METH_NOARGS, nullptr},
                               {nullptr, nullptr, 0, nullptr}};
PyGetSetDef given_properties[] = {
    {"generation", getter(given_generation), nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot given_slots[] = {{Py_tp_init, slot(given_init)},
                             {Py_tp_new, slot(PyType_GenericNew)},
                             {Py_tp_dealloc, slot(given_dealloc)},
                             {Py_tp_traverse, slot(given_traverse)},
                             {Py_tp_clear, slot(given_clear)},
                             {Py_tp_methods, given_methods},
                             {Py_tp_getset, given_properties},
                             {0, nullptr}};
PyType_Spec given_spec = {"acs_cl._core.Given", sizeof(Given), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
                          given_slots};

// What a kernel was given since functions were replaced, or null, without an error.
Given *given_of(PyObject *kernel) {
    Given *&known = recent_of(kernel);
    if (known && known->kernel == kernel && known->generation == generation) return known;
    PyObject *found = PyObject_GetAttr(kernel, arguments_name);
    if (!found) {
        PyErr_Clear();
        return nullptr;
    }
    auto *given = reinterpret_cast<Given *>(found);
    bool is_ours = PyObject_TypeCheck(found, given_type) && given->generation == generation &&
                   given->kernel == kernel;
    Py_DECREF(found);  // the kernel holds it
    if (!is_ours) return nullptr;
    return known = given;
}

// The same, new where there was none; null with an error.
Given *new_given_of(PyObject *kernel) {
    if (Given *known = given_of(kernel)) return known;
    PyObject *made = PyObject_CallOneArg(arguments_class, kernel);
    if (!made) return nullptr;
    int failed = PyObject_SetAttr(kernel, arguments_name, made);
    Py_DECREF(made);
    return failed ? nullptr : given_of(kernel);
}

// Types whose objects stay what they are, so that they can be read later.
class Types {
public:
    void add(PyTypeObject *type) {
        if (has(type) || many_ + 1 >= slots_.size() / 2) return;
        std::size_t at = place(type);
        while (slots_[at]) at = (at + 1) % slots_.size();
        slots_[at] = type;
        Py_INCREF(type);
        many_++;
    }

    bool has(PyTypeObject *type) const {
        for (std::size_t at = place(type); slots_[at]; at = (at + 1) % slots_.size())
            if (slots_[at] == type) return true;
        return false;
    }

private:
    static std::size_t place(PyTypeObject *type) {
        return (reinterpret_cast<std::uintptr_t>(type) >> 5) % 256;
    }

    std::array<PyTypeObject *, 256> slots_{};
    std::size_t many_ = 0;
};

Types steady;

// Whether a tuple can be read later, in the place of `last` if there is one: it sets the same
// arguments, for small numbers are one object each, and nothing in it can change.
bool can_be_kept(PyObject *tuple, PyObject *last, Py_ssize_t step) {
    Py_ssize_t many = PyTuple_GET_SIZE(tuple);
    if (last && PyTuple_GET_SIZE(last) != many) return false;
    for (Py_ssize_t at = 0; at < many; at += step) {
        if (last && PyTuple_GET_ITEM(tuple, at) != PyTuple_GET_ITEM(last, at)) return false;
        for (Py_ssize_t item = at + 1; item < std::min(at + step, many); item++) {
            PyTypeObject *type = Py_TYPE(PyTuple_GET_ITEM(tuple, item));
            if (last && Py_TYPE(PyTuple_GET_ITEM(last, item)) == type) continue;
            if (!steady.has(type)) return false;
        }
    }
    return true;
}

// A method of kernels that sets arguments, from a tuple or by index: what PyOpenCL's does, and a
// note.
struct Setter {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *original, *otherwise, *note, *name, *doc;
    int kind;
    Py_ssize_t step;  // from index to index in the tuple; 0: it takes an index and one argument

    static void dealloc(Setter *self) {
        PyTypeObject *type = Py_TYPE(self);
        for (PyObject *one : {self->original, self->otherwise, self->note, self->name, self->doc})
            Py_XDECREF(one);
        type->tp_free(self);
        Py_DECREF(type);
    }
};

void keep(Given *given, int place, PyObject *object) {
    given->turns[place] = ++turn;
    Py_INCREF(object);
    Py_XSETREF(given->last[place], object);
}

// Where what was set can be kept to be read later; -1: nowhere.
int place_of(const Setter *self, const Given *given, PyObject *const *args) {
    if (self->step)
        return can_be_kept(args[1], given->last[self->kind], self->step) ? self->kind : -1;
    if (!PyLong_CheckExact(args[1]) || !steady.has(Py_TYPE(args[2]))) return -1;
    Py_ssize_t index = PyLong_AsSsize_t(args[1]);
    if (index == -1 && PyErr_Occurred()) PyErr_Clear();
    return index >= 0 && index < PLACES - SETTERS ? SETTERS + int(index) : -1;
}

PyObject *setter_call(PyObject *object, PyObject *const *args, std::size_t flags,
                      PyObject *keywords) {
    auto *self = reinterpret_cast<Setter *>(object);
    Py_ssize_t many = PyVectorcall_NARGS(flags);
    if (keywords || many != (self->step ? 2 : 3) || (self->step && !PyTuple_CheckExact(args[1])))
        return PyObject_Vectorcall(self->otherwise, args, std::size_t(many), keywords);
    PyObject *done = PyObject_Vectorcall(self->original, args, std::size_t(many), nullptr);
    if (!done) {  // some of them may have been set
        PyObject *type, *value, *trace;
        PyErr_Fetch(&type, &value, &trace);
        recent_of(args[0]) = nullptr;
        if (PyObject_SetAttr(args[0], arguments_name, Py_None)) PyErr_Clear();
        PyErr_Restore(type, value, trace);
        return nullptr;
    }
    Given *given = new_given_of(args[0]);
    if (!given) {
        Py_DECREF(done);
        return nullptr;
    }
    int place = place_of(self, given, args);
    if (place >= 0) {
        keep(given, place, args[self->step ? 1 : 2]);
        return done;
    }
    auto *known = reinterpret_cast<PyObject *>(given);
    PyObject *noted = PyObject_CallFunctionObjArgs(self->note, known, args[1],
                                                   self->step ? nullptr : args[2], nullptr);
    if (!noted) Py_CLEAR(done);
    Py_XDECREF(noted);
    return done;
}

PyObject *setter_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    static const char *names[] = {"original", "otherwise", "note", "kind", "step", nullptr};
    PyObject *original, *otherwise, *note;
    int kind;
    Py_ssize_t step;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OOOin", const_cast<char **>(names),
                                     &original, &otherwise, &note, &kind, &step))
        return nullptr;
    if (kind < 0 || kind >= SETTERS || step < 0) {
        PyErr_SetString(PyExc_ValueError, "there is no such setter");
        return nullptr;
    }
    auto *self = set_up<Setter>(type);
    if (!self) return nullptr;
    self->call = setter_call;
    self->original = Py_NewRef(original);
    self->otherwise = Py_NewRef(otherwise);
    self->note = Py_NewRef(note);
    self->kind = kind;
    self->step = step;
    return reinterpret_cast<PyObject *>(self);
}

PyObject *setter_bind(PyObject *self, PyObject *object, PyObject *) {
    return object && object != Py_None ? PyMethod_New(self, object) : Py_NewRef(self);
}

PyMemberDef setter_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Setter, call), READONLY, nullptr},
    {"__name__", T_OBJECT, offsetof(Setter, name), 0, nullptr},
    {"__doc__", T_OBJECT, offsetof(Setter, doc), 0, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyType_Slot setter_slots[] = {{Py_tp_new, slot(setter_new)},
                              {Py_tp_call, slot(PyVectorcall_Call)},
                              {Py_tp_descr_get, slot(setter_bind)},
                              {Py_tp_dealloc, slot(Setter::dealloc)},
                              {Py_tp_members, setter_members},
                              {0, nullptr}};
PyType_Spec setter_spec = {"acs_cl._core.Setter", sizeof(Setter), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL |
                               Py_TPFLAGS_METHOD_DESCRIPTOR,
                           setter_slots};

// ---- commands -----------------------------------------------------------------------------------

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

    static void dealloc(Command *self) {
        PyTypeObject *type = Py_TYPE(self);
        for (PyObject *one : {self->original, self->otherwise, self->name, self->doc,
                              self->waits_name, self->blocks_name})
            Py_XDECREF(one);
        type->tp_free(self);
        Py_DECREF(type);
    }
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
    if (event) count(way, event, handle);
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
    if (event) count(way, event, nullptr);
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
    auto *self = set_up<Command>(type);
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
                               {Py_tp_dealloc, slot(Command::dealloc)},
                               {Py_tp_members, command_members},
                               {0, nullptr}};
PyType_Spec command_spec = {"acs_cl._core.Command", sizeof(Command), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, command_slots};

// Counts anew what kernels are given, from here on. `arguments`: the class of what is noted;
// `types`: objects of these stay what they are; `events`: PyOpenCL's two classes, that of queues of
// ours, and what makes one of the first from a handle.
void begin_noting(nb::handle arguments, nb::tuple types, nb::tuple events) {
    generation++;
    Py_XSETREF(arguments_class, arguments.inc_ref().ptr());
    for (nb::handle type : types) steady.add(reinterpret_cast<PyTypeObject *>(type.ptr()));
    PyObject **places[] = {&event_class, &nanny_class, &own_event_class, &event_of_handle};
    for (std::size_t at = 0; at < 4; at++) {
        nb::object one = events[at];
        Py_XSETREF(*places[at], one.release().ptr());
    }
}

}  // namespace

void add_passing(nb::module_ &module) {
    arguments_name = PyUnicode_InternFromString("_acs_arguments");
    wait_name = PyUnicode_InternFromString("wait");
    queue_name = PyUnicode_InternFromString("_acs_queue");
    module.attr("Passing") = nb::steal(PyType_FromSpec(&passing_spec));
    nb::object given = nb::steal(PyType_FromSpec(&given_spec));
    given_type = reinterpret_cast<PyTypeObject *>(given.inc_ref().ptr());
    module.attr("Given") = given;
    module.attr("Setter") = nb::steal(PyType_FromSpec(&setter_spec));
    module.attr("Command") = nb::steal(PyType_FromSpec(&command_spec));
    module.def("begin_noting", begin_noting, nb::arg("arguments"), nb::arg("types"),
               nb::arg("events"));
}

}  // namespace acs_cl
