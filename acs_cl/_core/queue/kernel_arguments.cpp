// Arguments that kernels were given, and the methods that set them.

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "driver/landing.hpp"
#include "queue/kernel_arguments.hpp"

namespace acs_cl {

namespace {

long long generation = 0;
unsigned long long turn = 0;
PyTypeObject *given_type;
PyObject *arguments_class, *arguments_name;
std::array<KernelArguments *, 64> recent{};

std::unordered_multimap<void *, KernelArguments *> by_handle;

// Notes arguments by the driver's kernel, of which there may be several objects (`Kernel.from_int_ptr`).
void note_handle(KernelArguments *noted) {
    const auto [begin, end] = by_handle.equal_range(noted->handle);
    for (auto other = begin; other != end; ++other)
        if (other->second->kernel != noted->kernel) other->second->is_shared = noted->is_shared = true;
    by_handle.emplace(noted->handle, noted);
}

void forget_handle(const KernelArguments *noted) {
    const auto [begin, end] = by_handle.equal_range(noted->handle);
    const auto own = std::find_if(begin, end, [&](const auto &one) { return one.second == noted; });
    if (own != end) by_handle.erase(own);
}

KernelArguments *&recent_of(PyObject *kernel) {
    return recent[(reinterpret_cast<std::uintptr_t>(kernel) >> 5) % recent.size()];
}

int arguments_init(KernelArguments *self, PyObject *args, PyObject *keywords) {
    static const char *names[] = {"kernel", nullptr};
    PyObject *kernel;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O", const_cast<char **>(names), &kernel))
        return -1;
    if (self->kernel) forget_handle(self);
    self->kernel = kernel;
    self->handle = handle_of(kernel);
    self->generation = generation;
    note_handle(self);
    return 0;
}

// Returns [(which setter, its tuple)] in the order of the calls, and forgets them.
PyObject *arguments_take(KernelArguments *self, PyObject *) {
    outdate(self->set);
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

PyMethodDef arguments_methods[] = {{"take", method(arguments_take), METH_NOARGS, nullptr},
                               {nullptr, nullptr, 0, nullptr}};
PyMemberDef arguments_members[] = {
    {"generation", T_LONGLONG, offsetof(KernelArguments, generation), READONLY, nullptr},
    {"is_shared", T_BOOL, offsetof(KernelArguments, is_shared), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

// Returns the notes of a kernel, shared ones too, or null without an error.
KernelArguments *notes_of(PyObject *kernel) {
    KernelArguments *&known = recent_of(kernel);
    if (known && known->kernel == kernel && known->generation == generation) return known;
    const nb::object found = nb::steal(PyObject_GetAttr(kernel, arguments_name));
    if (!found.is_valid()) return PyErr_Clear(), nullptr;
    auto *given = reinterpret_cast<KernelArguments *>(found.ptr());
    const bool is_ours = PyObject_TypeCheck(found.ptr(), given_type) && given->generation == generation &&
                         given->kernel == kernel;
    return is_ours ? known = given : nullptr;  // the kernel holds it
}

// Returns the same, and makes some if there are none. Null with an error.
KernelArguments *new_notes_of(PyObject *kernel) {
    if (KernelArguments *known = notes_of(kernel)) return known;
    const nb::object made = nb::steal(PyObject_CallOneArg(arguments_class, kernel));
    if (!made.is_valid() || PyObject_SetAttr(kernel, arguments_name, made.ptr())) return nullptr;
    return notes_of(kernel);
}

std::unordered_set<PyTypeObject *> steady;  // types whose objects never change

// Whether a tuple can be read later, in the place of `last` if there is one. It sets the same arguments, and
// nothing in it can change. Small numbers are one object each.
bool can_be_kept(PyObject *tuple, PyObject *last, Py_ssize_t step) {
    Py_ssize_t many = PyTuple_GET_SIZE(tuple);
    if (last && PyTuple_GET_SIZE(last) != many) return false;
    for (Py_ssize_t at = 0; at < many; at += step) {
        if (last && PyTuple_GET_ITEM(tuple, at) != PyTuple_GET_ITEM(last, at)) return false;
        for (Py_ssize_t item = at + 1; item < std::min(at + step, many); item++) {
            PyTypeObject *type = Py_TYPE(PyTuple_GET_ITEM(tuple, item));
            if (last && Py_TYPE(PyTuple_GET_ITEM(last, item)) == type) continue;
            if (!steady.count(type)) return false;
        }
    }
    return true;
}

std::unordered_set<PyTypeObject *> copied;  // types whose objects may change, and are values

// Returns the bytes of a value that may change. Null without an error if it is something else.
nb::object copy_of(PyObject *value) {
    Bytes bytes;
    if (!copied.count(Py_TYPE(value)) || !bytes.take(value, PyBUF_SIMPLE)) return {};
    nb::object copy = nb::steal(PyBytes_FromStringAndSize(bytes.data(), bytes.view.len));
    if (!copy.is_valid()) PyErr_Clear();
    return copy;
}

// Returns what can be kept of indices, each with its argument: values that may change are copied.
nb::object kept_of(PyObject *pairs) {
    nb::object kept;
    for (Py_ssize_t at = 1; at < PyTuple_GET_SIZE(pairs); at += 2) {
        nb::object copy = copy_of(PyTuple_GET_ITEM(pairs, at));
        if (!copy.is_valid()) continue;
        if (!kept.is_valid()) {
            kept = nb::steal(PyTuple_New(PyTuple_GET_SIZE(pairs)));
            if (!kept.is_valid()) return PyErr_Clear(), nb::borrow(pairs);
            for (Py_ssize_t item = 0; item < PyTuple_GET_SIZE(pairs); item++)
                PyTuple_SET_ITEM(kept.ptr(), item, Py_NewRef(PyTuple_GET_ITEM(pairs, item)));
        }
        PyObject **place = &PyTuple_GET_ITEM(kept.ptr(), at);
        Py_XSETREF(*place, copy.release().ptr());
    }
    return kept.is_valid() ? kept : nb::borrow(pairs);
}

// A method of kernels that sets arguments, from a tuple or by index: PyOpenCL's method, and a note.
struct Setter {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *original, *otherwise, *note, *name, *doc;
    int kind;
    Py_ssize_t step;  // from index to index in the tuple; 0: it takes an index and one argument

    auto objects() { return std::array{&original, &otherwise, &note, &name, &doc}; }
    void end() {}
};

void keep(KernelArguments *given, int place, PyObject *object) {
    given->turns[place] = ++turn;
    Py_INCREF(object);
    Py_XSETREF(given->last[place], object);
}

// Returns the place where `kept` can be kept to be read later. -1: none.
int place_of(const Setter *self, const KernelArguments *given, PyObject *const *args, PyObject *kept) {
    if (self->step)
        return can_be_kept(kept, given->last[self->kind], self->step) ? self->kind : -1;
    if (!PyLong_CheckExact(args[1]) || !steady.count(Py_TYPE(kept))) return -1;
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
    nb::object done = nb::steal(PyObject_Vectorcall(self->original, args, std::size_t(many), nullptr));
    if (!done.is_valid()) {  // some may have been set
        const nb::error_scope raised;
        recent_of(args[0]) = nullptr;
        if (PyObject_SetAttr(args[0], arguments_name, Py_None)) PyErr_Clear();
        return nullptr;
    }
    KernelArguments *given = new_notes_of(args[0]);
    if (!given) return nullptr;
    nb::object kept = nb::borrow(args[self->step ? 1 : 2]);
    int place = place_of(self, given, args, kept.ptr());
    if (place < 0 && self->step != 3) {  // packed numbers have no values that change
        nb::object copy = self->step ? kept_of(kept.ptr()) : copy_of(kept.ptr());
        if (copy.is_valid()) {
            kept = std::move(copy);
            place = place_of(self, given, args, kept.ptr());
        }
    }
    if (place >= 0) {
        keep(given, place, kept.ptr());
        return done.release().ptr();
    }
    const nb::object noted = nb::steal(PyObject_CallFunctionObjArgs(
        self->note, reinterpret_cast<PyObject *>(given), args[1], self->step ? nullptr : args[2], nullptr));
    return noted.is_valid() ? done.release().ptr() : nullptr;
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
    auto *self = reinterpret_cast<Setter *>(type->tp_alloc(type, 0));
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

void take_types(std::unordered_set<PyTypeObject *> &to, nb::tuple types) {
    for (nb::handle type : types)
        if (to.insert(reinterpret_cast<PyTypeObject *>(type.ptr())).second) type.inc_ref();
}

// Forgets all arguments, and counts notes anew. `arguments`: the class of notes. Objects of `types` never change;
// those of `values` are values, and may.
void begin_noting(nb::handle arguments, nb::tuple types, nb::tuple values) {
    generation++;
    Py_XSETREF(arguments_class, arguments.inc_ref().ptr());
    take_types(steady, types);
    take_types(copied, values);
}

}  // namespace

KernelArguments *arguments_of(PyObject *kernel) {
    KernelArguments *known = notes_of(kernel);
    return known && !known->is_shared ? known : nullptr;
}

void KernelArguments::end() {
    forget(std::exchange(set, nullptr));
    if (!kernel) return;
    if (recent_of(kernel) == this) recent_of(kernel) = nullptr;
    forget_handle(this);
}

void add_kernel_arguments(nb::module_ &module) {
    arguments_name = PyUnicode_InternFromString("acs_arguments");
    nb::object given = nb::steal(new_type<KernelArguments>("acs_cl._core.KernelArguments", BASE | COLLECTED,
                                                 {{Py_tp_init, slot(arguments_init)},
                                                  {Py_tp_new, slot(PyType_GenericNew)},
                                                  {Py_tp_methods, arguments_methods},
                                                  {Py_tp_members, arguments_members}}));
    given_type = reinterpret_cast<PyTypeObject *>(given.inc_ref().ptr());
    module.attr("KernelArguments") = given;
    module.attr("Setter") = nb::steal(
        new_type<Setter>("acs_cl._core.Setter", CALLED | Py_TPFLAGS_METHOD_DESCRIPTOR,
                         {{Py_tp_new, slot(setter_new)},
                          {Py_tp_descr_get, slot(setter_bind)},
                          {Py_tp_members, setter_members}}));
    module.def("begin_noting", begin_noting, "arguments"_a, "types"_a, "values"_a);
}

}  // namespace acs_cl
