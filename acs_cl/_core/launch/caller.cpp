#include "launch/caller.hpp"

#include <algorithm>
#include <array>

#include "python/collector.hpp"
#include "python/signals.hpp"
#include "table/ends.hpp"

namespace acs_cl {

namespace {

PyObject *call_name;

enum Keyword { WHEN, BANDS, READS, WRITES, OFFSET, WAIT_FOR, KEYWORDS };
std::array<PyObject *, KEYWORDS> keyword_names;

// The keywords of a call. Null: it does not have it, or has None.
struct Keywords {
    std::array<PyObject *, KEYWORDS> all{};
    bool are_known = true;  // the core knows all of them, and what they are together

    Keywords(PyObject *names, PyObject *const *values) {
        const Py_ssize_t many = names ? PyTuple_GET_SIZE(names) : 0;
        for (Py_ssize_t at = 0; at < many; at++) {
            const auto place = std::find(keyword_names.begin(), keyword_names.end(), PyTuple_GET_ITEM(names, at));
            are_known = are_known && place != keyword_names.end();
            if (are_known && values[at] != Py_None) all[std::size_t(place - keyword_names.begin())] = values[at];
        }
        are_known = are_known && (!all[BANDS] || many == 1);
    }
    PyObject *operator[](Keyword which) const { return all[which]; }
    Declared declared() const { return {all[READS], all[WRITES]}; }
    // Whether Python alone cuts it into bands, since it has an offset or is declared.
    bool is_cut_by_python() const { return all[OFFSET] || declared().is_there(); }
};

// Binds all arguments of a launch. False: one is not plain.
bool bind(Bound &bound, PyObject *const *args, PyObject *when, bool in_epoch) {
    if (!bound.start(in_epoch)) return false;
    for (std::size_t at = 0; at < bound.plan.parameters.size(); at++)
        if (!bound.take(at, args[at])) return false;
    return bound.finish(when);
}

// Makes a plain launch, and returns its handle. Null without an error: it is not plain, and nothing has changed.
// `kept`: no lane took it, and it is in the table. The lock is still held then, since no other thread may see a launch
// that is not handled yet.
PyObject *launch(Caller *self, PyObject *const *args, std::size_t many, const Keywords &given, bool &kept) {
    Bound bound(*self->plan, self->engine);
    Table &table = bound.table;
    PyObject *const when = given[WHEN];
    const Declared declared = given.declared();
    if (many != bound.plan.parameters.size() + 2) return nullptr;
    PyObject *const size = size_in(args[0]), *const offset = given[OFFSET] ? given[OFFSET] : Py_None;
    if (!bound.begin(args[0], args[1], offset, when, declared, size)) return nullptr;
    if (!size && bound.may_record()) {
        const bool is_expected = !declared.is_there() && bound.is_expected(args + 2, when);
        if (is_expected || bind(bound, args + 2, when, true)) {
            PyObject *handle =
                new_handle(self->engine, bound.plan.name.ptr(), table.number + 1, bound.touched);
            if (!handle) return nullptr;
            if (is_expected) {
                table.launch_expected();
            } else {
                bound.record();
                if (!declared.is_there()) bound.remember(when);
            }
            return handle;
        }
    }
    if (!bound.is_on_lanes() || table.lock->is_held() || !table.may_go_to_lane() ||
        !bind(bound, args + 2, when, false))
        return nullptr;
    nb::object handle = nb::steal(new_handle(self->engine, bound.plan.name.ptr(), 0, bound.touched));
    if (!handle.is_valid() || !table.lock->try_take()) return nullptr;
    Taken taken(table.lock);
    // an argument for the driver may have been made
    if (!table.may_go_to_lane() || (size && !bound.take_word())) return nullptr;
    if (!bound.set()) return bound.give_word_back(), nullptr;
    kept = !bound.enqueue();
    reinterpret_cast<Handle *>(handle.ptr())->number = table.number;
    if (kept) taken.leave();
    return handle.release().ptr();
}

PyObject *call(PyObject *object, PyObject *const *args, std::size_t flags, PyObject *keywords) {
    auto *self = reinterpret_cast<Caller *>(object);
    std::size_t many = std::size_t(PyVectorcall_NARGS(flags));
    if (keywords && !PyTuple_GET_SIZE(keywords)) keywords = nullptr;
    const Keywords given(keywords, args + many);
    const bool is_cut_by_python = given.is_cut_by_python(), may_be_cut = !given[WHEN] && !is_cut_by_python;
    if (given.are_known && have_ended(given[WAIT_FOR]) && self->plan && !(is_cut_by_python && self->plan->is_cut)) {
        PyObject *handle = nullptr;
        Table *table = self->plan->table;
        std::size_t made = 1;
        bool kept = false;
        const auto polls = [&] { return table->poll(self->engine); };
        if (table->forecast.is_complete() && !guarded(polls)) return nullptr;
        handle = guarded([&]() -> PyObject * {
            const collector::Paused collector;
            PyObject *made_handle = nullptr;
            // a poll runs Python, and epochs are sent without the GIL: meanwhile the plan may be forgotten
            if (may_be_cut && self->plan && self->plan->is_cut)
                made_handle = launch_bands(self, args, many, given[BANDS] ? given[BANDS] : Py_None, made);
            if (made_handle || !self->plan || given[BANDS] || PyErr_Occurred()) return made_handle;
            return launch(self, args, many, given, kept);
        });
        // nothing on this stack needs a destructor, in case the interpreter ends
        if (kept) {
            Lock *lock = table->lock;  // of the engine, which the kernel holds
            const std::int64_t number = reinterpret_cast<Handle *>(handle)->number;
            if (!engine_takes_over(self->engine, number)) Py_CLEAR(handle);
            else if (self->plan) self->plan->is_back(number);
            lock->give_back();
        } else if (handle && table->should_poll(made) && !guarded(polls)) {
            Py_CLEAR(handle);
        }
        if (handle || PyErr_Occurred()) return handle;
    }
    std::vector<PyObject *> all{object};
    all.insert(all.end(), args, args + many + (keywords ? PyTuple_GET_SIZE(keywords) : 0));
    const signals::Delayed delayed;
    if (delayed.has_failed()) return nullptr;
    return PyObject_VectorcallMethod(call_name, all.data(), many + 1, keywords);
}

PyObject *caller_new(PyTypeObject *type, PyObject *, PyObject *) {
    auto *self = reinterpret_cast<Caller *>(type->tp_alloc(type, 0));
    if (self) self->vectorcall = call;
#if PY_VERSION_HEX < 0x030C0000
    // A class in Python does not inherit before 3.12 that its calls need no tuple.
    if (type->tp_call == PyVectorcall_Call) type->tp_flags |= CALLED;
#endif
    return reinterpret_cast<PyObject *>(self);
}

PyMemberDef caller_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Caller, vectorcall), READONLY, nullptr},
    {"engine", T_OBJECT_EX, offsetof(Caller, engine), 0, nullptr},
    {"forgets", T_LONGLONG, offsetof(Caller, forgets), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyTypeObject *caller_type;

}  // namespace

Caller *caller(nb::handle object) {
    if (!PyObject_TypeCheck(object.ptr(), caller_type))
        throw nb::type_error("expected a kernel");
    return reinterpret_cast<Caller *>(object.ptr());
}

void add_caller(nb::module_ &module) {
    call_name = PyUnicode_InternFromString("_call");
    constexpr const char *names[KEYWORDS] = {"when", "bands", "reads", "writes", "offset", "wait_for"};
    for (std::size_t at = 0; at < KEYWORDS; at++) keyword_names[at] = PyUnicode_InternFromString(names[at]);
    nb::object type = nb::steal(
        new_type<Caller>("acs_cl._core.Caller", BASE | COLLECTED | CALLED,
                         {{Py_tp_new, slot(caller_new)}, {Py_tp_members, caller_members}}));
    caller_type = reinterpret_cast<PyTypeObject *>(type.inc_ref().ptr());
    module.attr("Caller") = type;
    module.attr("Handle") = nb::steal(new_handle_type());
    module.attr("View") = nb::steal(new_view_type());
}

}  // namespace acs_cl
