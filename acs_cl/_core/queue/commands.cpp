// Functions of PyOpenCL that take a queue: their commands bypass the runtime, or become launches.

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <unordered_set>
#include <utility>

#include "python/waiting.hpp"
#include "queue/tracking.hpp"
#include "table/ends.hpp"

namespace acs_cl {

namespace {

PyObject *wait_name, *wait_for_name, *is_blocking_name;

PyTypeObject *queue_type;  // PyOpenCL's class of queues
PyObject *elsewhere;  // {name: commands on queues that are not ours}
std::unordered_set<Py_hash_t> own_queues;  // the hashes of our queues, which are those of the driver's

// A function of PyOpenCL that takes a queue, or `wait_for_events`. Positions are those of parameters. -1: it has
// none.
struct Command {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *original, *otherwise, *name, *doc, *parameters;
    int queue_at, waits_at, blocks_at;
    int tracked;  // kind of launch if it is tracked: see `Tracked`

    auto objects() { return std::array{&original, &otherwise, &name, &doc, &parameters}; }
    void end() {}
};

// The arguments of a call, some of them changed.
struct Arguments : Single {
    Arguments(PyObject *const *args, Py_ssize_t positional, PyObject *keywords)
        : positional(positional), keywords(keywords),
          many(positional + (keywords ? PyTuple_GET_SIZE(keywords) : 0)), args(args) {}

    // Returns the place of a parameter's argument, or -1.
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

    // Returns false if there is no room.
    bool change(Py_ssize_t at, PyObject *name, PyObject *value) {
        if (many + 1 > Py_ssize_t(changed.size())) return false;
        if (args != changed.data()) std::copy(args, args + many, changed.begin());
        args = changed.data();
        if (at < 0) {
            at = many;
            nb::object more = nb::steal(PyTuple_New(many - positional + 1));
            if (!more.is_valid()) return PyErr_Clear(), false;
            for (Py_ssize_t index = 0; index < many - positional; index++)
                PyTuple_SET_ITEM(more.ptr(), index, Py_NewRef(PyTuple_GET_ITEM(keywords, index)));
            PyTuple_SET_ITEM(more.ptr(), many - positional, Py_NewRef(name));
            keywords = more.ptr();
            names = std::move(more);
            many++;
        }
        changed[std::size_t(at)] = value;
        return true;
    }

    Py_ssize_t positional;
    PyObject *keywords;
    Py_ssize_t many;
    PyObject *const *args;
    nb::object list, names;  // made by it
    std::array<PyObject *, 16> changed;
};

enum class Waits { FOR_NOTHING, AS_GIVEN, FOR_SOME, UNCLEAR };

// Whether an event is of a command that comes before the next one anyway: a tracked command of a queue in bypass, or
// one in bypass not long ago.
bool is_before(Bypass *bypass, PyObject *event) {
    if (reinterpret_cast<PyObject *>(Py_TYPE(event)) == events.own) return bypass->member(*events.slot(event, QUEUE));
    if (bypass->recent.has(event)) return true;
    return bypass->is_joint() && is_of_the_driver(event) && bypass->has_passed(handle_of(event));
}

// Returns what remains of a wait list without events that come before anyway. `pyopencl.array` lists a dozen events
// of each array, nearly all of them such. FOR_SOME: others are left.
Waits look_at(Passing &command, PyObject *wait_for) {
    if (is_empty(wait_for)) return Waits::FOR_NOTHING;
    Bypass *const bypass = command.bypass;
    bypass->recent.note_use();
    bool some_are_before = false, some_are_left = false;
    const bool are_clear = all_events(wait_for, [&](PyObject *event) {
        const bool comes_before = is_before(bypass, event);
        command.follows |= event == bypass->newest_event;
        (comes_before ? some_are_before : some_are_left) = true;
        return comes_before || (is_of_the_driver(event) && !bypass->is_joint());
    });
    if (!are_clear) return Waits::UNCLEAR;
    if (!some_are_left) return Waits::FOR_NOTHING;
    return some_are_before ? Waits::FOR_SOME : Waits::AS_GIVEN;
}

// Replaces the argument at `at` by what remains of it. Returns false without memory.
bool take_wait_list(Bypass *bypass, Waits what, Arguments &args, Py_ssize_t at) {
    if (what == Waits::AS_GIVEN) return true;
    if (what == Waits::FOR_NOTHING) return args.change(at, nullptr, Py_None);
    args.list = nb::steal(PyList_New(0));
    const bool has_all = args.list.is_valid() && all_events(args.args[at], [&](PyObject *event) {
        return is_before(bypass, event) || !PyList_Append(args.list.ptr(), event);
    });
    if (!has_all) return PyErr_Clear(), false;
    return args.change(at, nullptr, args.list.ptr());
}

// Enqueues a kernel whose arguments were noted, as PyOpenCL would. Null, without an error: it is unusual, or the
// driver refuses it. PyOpenCL then says why, or finds memory. The GIL is held from the check of the bypass to the
// driver's call, so nobody comes between.
PyObject *pass_kernel(const Passing &command, PyObject *const *args) {
    if (args[4] != Py_None || args[6] != Py_False || args[7] != Py_False) return nullptr;
    const KernelArguments *given = arguments_of(args[1]);
    if (!given || !given->handle) return nullptr;
    Sizes sizes;
    if (!take_sizes(args[2], args[3], sizes)) return nullptr;
    void *handle = nullptr;
    if (driver.enqueue(command.bypass->native, given->handle, std::uint32_t(sizes[0]), nullptr, &sizes[1],
                       sizes[4] ? &sizes[5] : nullptr, 0, nullptr, &handle))
        return nullptr;
    PyObject *number = PyLong_FromVoidPtr(handle);
    PyObject *turns[] = {number, Py_False};  // its reference goes to the event
    PyObject *event = number ? PyObject_Vectorcall(events.of_handle, turns, 2, nullptr) : nullptr;
    Py_XDECREF(number);
    if (event) command.bypass->count(command, event, handle);
    return event;
}

// Returns the event in what a function of PyOpenCL returned. A map returns an array, too.
PyObject *event_in(PyObject *returned) { return PyTuple_Check(returned) ? PyTuple_GET_ITEM(returned, 1) : returned; }

// Waits for a blocking transfer. Returns false with an error if a signal's handler has raised. The event, which
// keeps the memory, is then kept until the driver needs that no more.
bool wait_here(PyObject *event, PyObject *memory = Py_None) {
    static PyObject *const kept = PyList_New(0);  // events, each with memory
    void *handle = handle_of(event);
    if (!handle) return nb::steal(PyObject_CallMethodNoArgs(event, wait_name)).is_valid();
    if (wait_for_event(handle) != Wait::RAISED) {
        if (event_status(handle) >= 0) return true;
        return nb::steal(PyObject_CallMethodNoArgs(event, wait_name)).is_valid();  // says what failed
    }
    const nb::error_scope raised;
    for (Py_ssize_t at = PyList_GET_SIZE(kept); at-- > 0;)
        if (event_status(handle_of(PyTuple_GET_ITEM(PyList_GET_ITEM(kept, at), 0))) <= 0)
            PySequence_DelItem(kept, at);
    PyList_Append(kept, nb::steal(PyTuple_Pack(2, event, memory)).ptr());
    return false;
}

}  // namespace

bool waited(const Passing &command) {
    if (!command.bypass->ends_stretch()) return true;
    const Due due{nb::borrow(command.queue), 0, false, true};
    return queue_sees_to(due);
}

namespace {

// Takes the lock of a bypass, while it is open. Returns false if it is not open, or with an error.
bool take_open(const Passing &command) {
    Bypass *const bypass = command.bypass;
    auto *lock = reinterpret_cast<Lock *>(bypass->lock.ptr());
    // the first one makes no system call
    if (bypass_of(command.queue) != bypass || !(lock->try_take() || lock->take())) return false;
    if (bypass_of(command.queue) == bypass) return true;
    lock->give_back();
    return false;
}

// Calls PyOpenCL's function while a bypass is open. `turn`: how many commands there were then. Null without an error: it
// is not open.
PyObject *enqueue(const Command *self, const Passing &command, Arguments &args, long long &turn) {
    if (!take_open(command)) return nullptr;
    Bypass *const bypass = command.bypass;
    const Taken taken(reinterpret_cast<Lock *>(bypass->lock.ptr()));
    if (bypass->is_joint() && !args.change(self->queue_at, nullptr, bypass->stand_in.ptr())) return nullptr;
    PyObject *returned = PyObject_Vectorcall(self->original, args.args, std::size_t(args.positional), args.keywords);
    if (returned) bypass->count(command, event_in(returned), nullptr);
    turn = bypass->all;
    return returned;
}

// Memory of the program, in PyOpenCL's form, whose bytes are elsewhere.
struct Landed {
    PyObject_HEAD
    PyObject *host;
    void *bytes;

    auto objects() { return std::array{&host}; }
    void end() {}
};
PyTypeObject *landed_type;

int landed_view(Landed *self, Py_buffer *view, int flags) {
    if (PyObject_GetBuffer(self->host, view, flags)) return -1;
    view->buf = self->bytes;
    return 0;
}

// A blocking read into pinned memory. One of these two calls is enough for it: a wait that signals can end, or the
// driver's own blocking call.
struct ShortRead : Single {
    ~ShortRead() {
        if (queues) queues->landings.give(std::move(landing));
    }

    // Returns false if it is not short, or there is no such memory. Nothing has changed then.
    bool begin(const Command *self, const Passing &command, Arguments &args) {
        Tracker *tracker = command.bypass->waits_first && self->tracked == READ ? tracker_of(command.queue) : nullptr;
        const Py_ssize_t at = tracker ? args.find(HOST_AT, PyTuple_GET_ITEM(self->parameters, HOST_AT)) : -1;
        if (at < 0) return false;
        keeper = nb::borrow(tracker->queues_object);
        try {
            host.emplace(args.args[at], true);
            if (!tracker->queues->landings.take(host->nbytes(), landing)) return false;
        } catch (nb::python_error &) {
            return false;  // PyOpenCL says what is wrong
        }
        queues = tracker->queues;
        auto *made = reinterpret_cast<Landed *>(landed_type->tp_alloc(landed_type, 0));
        view = nb::steal(reinterpret_cast<PyObject *>(made));
        if (!made) return PyErr_Clear(), false;
        made->host = Py_NewRef(args.args[at]);
        made->bytes = landing.bytes;
        return args.change(at, nullptr, view.ptr());
    }

    // Whether it has ended well. If a signal's handler has raised, the memory lives on, and is not given back.
    bool wait(PyObject *event) {
        if (!wait_here(event, landing.keeper.ptr())) return landing = {}, false;
        std::memcpy(host->view.buf, landing.bytes, host->nbytes());
        return true;
    }

    static constexpr Py_ssize_t HOST_AT = 2;
    nb::object keeper, view;
    Queues *queues = nullptr;
    std::optional<HostBytes> host;
    Landing landing;
};

// Returns PyOpenCL's result of a blocking command. Null with an error, also if a signal's handler raised. The
// driver's own blocking call is quickest, but no signal ends it. So it is made when nothing is in flight, after a
// wait for that if needed. On a CPU a wait costs more than it saves. `wait_for`: events of the driver, or null.
PyObject *pass_blocking(Command *self, const Passing &command, Arguments &args, Py_ssize_t blocks_at,
                        PyObject *wait_for) {
    Bypass *const bypass = command.bypass;
    ShortRead read;
    const bool have_come = !wait_for || all_events(wait_for, has_come);
    const bool lands = !bypass->is_idle() && have_come && read.begin(self, command, args);
    const bool stays = !lands && (bypass->is_idle() || (bypass->waits_first && wait_until_idle(bypass))) && have_come;
    if (PyErr_Occurred()) return nullptr;
    if (!stays && !args.change(blocks_at, is_blocking_name, Py_False)) return nullptr;
    long long turn;
    void *const native = bypass->native;
    PyObject *event = enqueue(self, command, args, turn);  // other commands came meanwhile if it is not open
    if (event && !stays) {
        driver.flush(native);
        if (!(lands ? read.wait(event) : wait_here(event_in(event)))) Py_CLEAR(event);
    }
    if (event) bypass->idle_since(turn);
    if (event && self->tracked == READ && !waited(command)) Py_CLEAR(event);
    return event;
}

// Lets PyOpenCL make any command in bypass. Returns false if that is not possible here.
bool pass(Command *self, Passing &command, Arguments &args, PyObject *&event) {
    Bypass *const bypass = command.bypass;
    Py_ssize_t at = self->waits_at < 0 ? -1 : args.find(self->waits_at, wait_for_name);
    Waits what = Waits::FOR_NOTHING;
    PyObject *wait_for = nullptr;
    if (at >= 0) {
        what = look_at(command, args.args[at]);
        if (what == Waits::UNCLEAR || !take_wait_list(bypass, what, args, at)) return false;
        if (what != Waits::FOR_NOTHING) wait_for = args.args[at];
    }
    if (self->tracked == MARKER || self->tracked == BARRIER) {
        command.follows = true;  // it is no work that others could run beside
        command.holds = self->tracked == BARRIER;
    }
    const nb::object lives = nb::borrow(bypass->own);
    if (self->blocks_at >= 0) {
        at = args.find(self->blocks_at, is_blocking_name);
        PyObject *given = at < 0 ? Py_True : args.args[at];
        const int blocks = PyObject_IsTrue(given);
        if (blocks < 0) return event = nullptr, true;
        if (blocks) {
            event = pass_blocking(self, command, args, at, wait_for);
            return event || PyErr_Occurred();
        }
    }
    long long turn;
    event = enqueue(self, command, args, turn);
    return event || PyErr_Occurred();
}

// Lets PyOpenCL map memory in bypass. The program unmaps it by a command of the queue, since the bypass may have ended by
// then. Returns false if that is not possible here.
bool pass_map(Command *self, Passing &command, Arguments &args, PyObject *&result) {
    const int place = FORMS[self->tracked].written;
    const Py_ssize_t at = args.find(place, PyTuple_GET_ITEM(self->parameters, place));
    Tracker *tracker = at < 0 ? nullptr : tracker_of(command.queue);
    const nb::object memory = tracker ? known_memory(tracker, args.args[at]) : nb::object();
    if (!memory.is_valid()) return false;
    const nb::object queue = nb::borrow(command.queue);
    PyObject *returned = nullptr;
    if (!pass(self, command, args, returned)) return false;
    result = nullptr;
    if (!returned) return true;
    const nb::object all = nb::steal(returned);
    result = mapped_by(queue.ptr(), all, nb::borrow(event_in(returned)), memory).release().ptr();
    return true;
}

// All arguments of a command that can be a launch, by position. Null: it was left out. Defaults are filled in where
// other arguments need them.
struct Placed {
    PyObject *args[MOST_PLACED] = {};

    // Returns false if some are missing, or have other names.
    bool place(const Command *self, PyObject *const *given, Py_ssize_t many, PyObject *keywords) {
        const Form &form = FORMS[self->tracked];
        if (many > form.all || PyTuple_GET_SIZE(self->parameters) != form.all) return false;
        args[form.waits] = Py_None;
        if (form.blocks >= 0) args[form.blocks] = Py_True;
        if (self->tracked == KERNEL) {
            args[4] = Py_None;
            args[6] = args[7] = Py_False;
        }
        std::copy_n(given, many, args);
        for (Py_ssize_t at = 0; keywords && at < PyTuple_GET_SIZE(keywords); at++) {
            Py_ssize_t where = many;
            for (PyObject *name = PyTuple_GET_ITEM(keywords, at); where < form.all; where++)
                if (PyTuple_GET_ITEM(self->parameters, where) == name) break;
            if (where == form.all) return false;
            args[where] = given[many + at];
        }
        return std::all_of(args, args + form.needed, [](PyObject *one) { return one != nullptr; });
    }
};

// Whether a command is not ours: it is on a foreign queue, and waits for nothing of ours. `otherwise` would do the
// same, but takes longer than the driver does.
bool is_elsewhere(const Command *self, PyObject *const *args, Py_ssize_t many, PyObject *keywords) {
    if (many <= self->queue_at || words_given > words_kept || !self->name) return false;
    PyObject *queue = args[self->queue_at];
    if (Py_TYPE(queue) != queue_type) return false;
    const Py_hash_t hash = PyObject_Hash(queue);
    if (hash == -1) return PyErr_Clear(), false;
    if (own_queues.count(hash)) return false;
    if (self->waits_at >= 0) {
        const Arguments all(args, many, keywords);
        const Py_ssize_t at = all.find(self->waits_at, wait_for_name);
        if (at >= 0 && !is_empty(args[at]) && !all_events(args[at], is_of_the_driver)) return false;
    }
    PyObject *known = PyDict_GetItemWithError(elsewhere, self->name);
    const nb::object count = nb::steal(PyLong_FromLongLong(known ? PyLong_AsLongLong(known) + 1 : 1));
    if (!count.is_valid() || PyDict_SetItem(elsewhere, self->name, count.ptr())) PyErr_Clear();
    return true;
}

// Whether a size has a zero. Some drivers divide by it.
bool has_zero(PyObject *size) {
    if (!PySequence_Check(size)) return false;
    const nb::object all = nb::steal(PySequence_Fast(size, ""));
    bool found = false;
    for (Py_ssize_t at = 0; all.is_valid() && at < PySequence_Fast_GET_SIZE(all.ptr()); at++)
        found |= PyObject_IsTrue(PySequence_Fast_GET_ITEM(all.ptr(), at)) == 0;
    if (PyErr_Occurred()) PyErr_Clear();
    return found;
}

// Whether a kernel has no work items, and PyOpenCL does not see to it.
bool is_empty(const Command *self, const Arguments &args) {
    const auto argument = [&](Py_ssize_t place) {
        const Py_ssize_t at = args.find(place, PyTuple_GET_ITEM(self->parameters, place));
        return at < 0 ? Py_None : args.args[at];
    };
    constexpr Py_ssize_t GLOBAL = 2, LOCAL = 3, ALLOWED = 7;
    if (has_zero(argument(GLOBAL))) return PyObject_IsTrue(argument(ALLOWED)) <= 0;
    return has_zero(argument(LOCAL));
}

PyObject *command_call(PyObject *object, PyObject *const *args, std::size_t flags,
                       PyObject *keywords) {
    auto *self = reinterpret_cast<Command *>(object);
    Py_ssize_t many = PyVectorcall_NARGS(flags);
    if (self->queue_at < 0) {
        bool is_plain = many == 1 && !keywords && all_events(args[0], is_of_the_driver);
        return PyObject_Vectorcall(is_plain ? self->original : self->otherwise, args,
                                   std::size_t(many), keywords);
    }
    Bypass *bypass = many > self->queue_at ? bypass_of(args[self->queue_at]) : nullptr;
    Tracker *tracker =
        !bypass && self->tracked && many > self->queue_at ? tracker_of(args[self->queue_at]) : nullptr;
    Passing command{bypass, bypass ? args[self->queue_at] : nullptr};
    Placed placed;
    if ((tracker || (bypass && self->tracked == KERNEL)) && placed.place(self, args, many, keywords)) {
        PyObject *event = nullptr;
        if (tracker) event = track(tracker, self->tracked, self->original, placed.args, self->parameters);
        else if (look_at(command, placed.args[5]) == Waits::FOR_NOTHING)
            event = pass_kernel(command, placed.args);
        if (event || PyErr_Occurred()) return event;
    }
    if (bypass) {
        PyObject *event = nullptr;
        Arguments given(args, many, keywords);
        const bool is_left = self->tracked == KERNEL && is_empty(self, given);
        if (is_map(self->tracked) ? pass_map(self, command, given, event) : !is_left && pass(self, command, given, event))
            return event;
    } else if (is_elsewhere(self, args, many, keywords)) {
        return PyObject_Vectorcall(self->original, args, std::size_t(many), keywords);
    }
    return PyObject_Vectorcall(self->otherwise, args, std::size_t(many), keywords);
}

// The method of our queues that flushes: in bypass it is the driver's function alone. Otherwise it is Python's.
struct Flush {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *otherwise, *name, *doc;

    auto objects() { return std::array{&otherwise, &name, &doc}; }
    void end() {}
};
PyTypeObject *flush_type;

PyObject *flush_call(PyObject *object, PyObject *const *args, std::size_t flags, PyObject *keywords) {
    const Py_ssize_t many = PyVectorcall_NARGS(flags);
    Bypass *bypass = many == 1 && !keywords ? bypass_of(args[0]) : nullptr;
    if (bypass && !driver.flush(bypass->native)) Py_RETURN_NONE;
    return PyObject_Vectorcall(reinterpret_cast<Flush *>(object)->otherwise, args, std::size_t(many), keywords);
}

PyObject *flush_bind(PyObject *self, PyObject *object, PyObject *) {
    return object && object != Py_None ? PyMethod_New(self, object) : Py_NewRef(self);
}

PyMemberDef flush_members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(Flush, call), READONLY, nullptr},
                               {"__name__", T_OBJECT, offsetof(Flush, name), READONLY, nullptr},
                               {"__doc__", T_OBJECT, offsetof(Flush, doc), READONLY, nullptr},
                               {nullptr, 0, 0, 0, nullptr}};

// Returns the method of queues that flushes, from Python's.
nb::object flush_by(nb::object otherwise) {
    nb::object made = nb::steal(flush_type->tp_alloc(flush_type, 0));
    if (!made.is_valid()) throw nb::python_error();
    auto *self = reinterpret_cast<Flush *>(made.ptr());
    self->call = flush_call;
    self->name = PyObject_GetAttrString(otherwise.ptr(), "__name__");
    self->doc = PyObject_GetAttrString(otherwise.ptr(), "__doc__");
    self->otherwise = otherwise.release().ptr();
    if (PyErr_Occurred()) throw PythonError();
    return made;
}

PyObject *command_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    static const char *names[] = {"original", "otherwise", "parameters", "queue_at", "waits_at",
                                  "blocks_at", "tracked", nullptr};
    PyObject *original, *otherwise, *parameters;
    int queue_at, waits_at, blocks_at, tracked;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OOO!iiii", const_cast<char **>(names),
                                     &original, &otherwise, &PyTuple_Type, &parameters, &queue_at,
                                     &waits_at, &blocks_at, &tracked))
        return nullptr;
    auto *self = reinterpret_cast<Command *>(type->tp_alloc(type, 0));
    if (!self) return nullptr;
    self->call = command_call;
    self->original = Py_NewRef(original);
    self->otherwise = Py_NewRef(otherwise);
    self->parameters = Py_NewRef(parameters);
    self->queue_at = queue_at;
    self->waits_at = waits_at;
    self->blocks_at = blocks_at;
    self->tracked = tracked;
    if (tracked < NEVER || tracked >= ALL_TRACKED) {
        Py_DECREF(self);
        PyErr_SetString(PyExc_ValueError, "no command tracked like that");
        return nullptr;
    }
    return reinterpret_cast<PyObject *>(self);
}

PyMemberDef command_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Command, call), READONLY, nullptr},
    {"__name__", T_OBJECT, offsetof(Command, name), 0, nullptr},
    {"__doc__", T_OBJECT, offsetof(Command, doc), 0, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

// Takes the classes of events, the function that makes one from a handle, as in `Events`, and the slots of our
// events.
void use_events(nb::tuple all) {
    static const char *names[EVENT_SLOTS] = {"acs_queue", "acs_number", "acs_kind",
                                             "acs_keeps", "acs_timed", "acs_settled", "acs_ended"};
    PyObject **places[] = {&events.plain, &events.nanny, &events.own, &events.of_handle};
    for (std::size_t at = 0; at < 4; at++) {
        nb::object one = all[at];
        Py_XSETREF(*places[at], one.release().ptr());
    }
    for (int which = 0; which < EVENT_SLOTS; which++) {
        nb::object slot = nb::getattr(nb::handle(events.own), names[which]);
        if (Py_TYPE(slot.ptr()) != &PyMemberDescr_Type) throw nb::type_error("expected a slot");
        events.slots[which] = reinterpret_cast<PyMemberDescrObject *>(slot.ptr())->d_member->offset;
    }
}

}  // namespace

void add_commands(nb::module_ &module) {
    wait_name = PyUnicode_InternFromString("wait");
    wait_for_name = PyUnicode_InternFromString("wait_for");
    is_blocking_name = PyUnicode_InternFromString("is_blocking");
    landed_type = reinterpret_cast<PyTypeObject *>(
        new_type<Landed>("acs_cl._core.Landed", 0, {{Py_bf_getbuffer, slot(landed_view)}}));
    module.attr("Command") = nb::steal(
        new_type<Command>("acs_cl._core.Command", CALLED,
                          {{Py_tp_new, slot(command_new)}, {Py_tp_members, command_members}}));
    flush_type = reinterpret_cast<PyTypeObject *>(
        new_type<Flush>("acs_cl._core.Flush", CALLED | Py_TPFLAGS_METHOD_DESCRIPTOR,
                        {{Py_tp_descr_get, slot(flush_bind)}, {Py_tp_members, flush_members}}));
    module.def("flush_by", flush_by, "otherwise"_a);
    module.def("use_events", use_events, "events"_a);
    module.def("use_queues", [](nb::type_object type, nb::dict counts) {
        Py_XSETREF(queue_type, reinterpret_cast<PyTypeObject *>(type.release().ptr()));
        Py_XSETREF(elsewhere, counts.release().ptr());
    }, "type"_a, "elsewhere"_a);
    module.def("note_queue", [](Py_hash_t hash, bool lives) {
        if (lives) own_queues.insert(hash);
        else own_queues.erase(hash);
    }, "hash"_a, "lives"_a);
    module.def("give_word", [] { words_given++; });
    module.def("words_to_keep", [] { return words_given > words_kept ? words_given : 0; });
    module.def("note_kept", [](long long words) { words_kept = std::max(words_kept, words); }, "words"_a);
}

}  // namespace acs_cl
