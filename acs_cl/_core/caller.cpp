#include "caller.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/stl/string.h>
#include <structmember.h>

#include "ledger.hpp"

namespace acs_cl {

namespace {

constexpr std::int64_t LOOK_EVERY = 32;  // launches, and then only after so long:
constexpr auto LOOK_AFTER = std::chrono::microseconds(100);
constexpr std::size_t MOST_SIZES = 4096;

PyTypeObject *handle_type;  // what a launch gives back: a class in Python
PyObject *call_name, *look_name, *when_name;

// ---- handles ------------------------------------------------------------------------------------

struct Handle {
    PyObject_HEAD
    PyObject *runtime, *name, *result, *access;  // null: nothing, or by `touched`
    long long number;
    Touched touched;
};

int handle_init(Handle *self, PyObject *args, PyObject *keywords) {
    static const char *names[] = {"runtime", "number", "name", "access", "result", nullptr};
    PyObject *runtime, *name, *access, *result = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OLOO|O", const_cast<char **>(names), &runtime,
                                     &self->number, &name, &access, &result))
        return -1;
    for (auto [place, value] : {std::pair(&self->runtime, runtime), {&self->name, name},
                                {&self->access, access}, {&self->result, result}}) {
        Py_INCREF(value);
        Py_XSETREF(*place, value);
    }
    return 0;
}

void handle_dealloc(Handle *self) {
    PyTypeObject *type = Py_TYPE(self);
    self->touched.let_go();
    for (PyObject *one : {self->runtime, self->name, self->result, self->access}) Py_XDECREF(one);
    type->tp_free(self);
    Py_DECREF(type);
}

PyObject *handle_access(Handle *self, void *) {
    if (!self->access) {
        const Touched &touched = self->touched;
        try {
            nb::object make = nb::module_::import_("acs_cl.records").attr("Access");
            nb::object made = make(touched.access(touched.reads), touched.access(touched.writes));
            self->access = made.release().ptr();
        } catch (nb::python_error &error) {
            error.restore();
            return nullptr;
        }
    }
    Py_INCREF(self->access);
    return self->access;
}

PyMemberDef handle_members[] = {
    {"_runtime", T_OBJECT_EX, offsetof(Handle, runtime), READONLY, nullptr},
    {"_result", T_OBJECT, offsetof(Handle, result), READONLY, nullptr},
    {"name", T_OBJECT_EX, offsetof(Handle, name), READONLY, nullptr},
    {"number", T_LONGLONG, offsetof(Handle, number), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyGetSetDef handle_properties[] = {
    {"access", getter(handle_access), nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot handle_slots[] = {{Py_tp_init, reinterpret_cast<void *>(handle_init)},
                              {Py_tp_new, reinterpret_cast<void *>(PyType_GenericNew)},
                              {Py_tp_dealloc, reinterpret_cast<void *>(handle_dealloc)},
                              {Py_tp_members, handle_members},
                              {Py_tp_getset, handle_properties},
                              {0, nullptr}};
PyType_Spec handle_spec = {"acs_cl._core.Handle", sizeof(Handle), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, handle_slots};

// ---- arguments ----------------------------------------------------------------------------------

// A parameter: an array of the runtime (`code` 'P'), or a number as `struct` calls it.
struct Parameter {
    char code;
    std::size_t at;  // in the record
    bool read, written;
};

// Where an array keeps what is asked of it: slots of a class in Python.
struct ArraySlots {
    PyTypeObject *type = nullptr;
    std::size_t home = 0, address = 0, span = 0, size = 0, dtype = 0;

    static PyObject *get(PyObject *array, std::size_t at) {
        return *reinterpret_cast<PyObject **>(reinterpret_cast<char *>(array) + at);
    }
};

ArraySlots array_slots;
std::vector<PyTypeObject *> number_types;  // NumPy's, whose conversions run no Python code
std::vector<PyObject *> flag_types;  // of arrays that may decide whether a launch runs

bool is_whole(PyObject *value) { return PyLong_CheckExact(value) || PyBool_Check(value); }

template <typename Number>
bool put(char *to, Number number) {
    std::memcpy(to, &number, sizeof(number));
    return true;
}

template <typename Number>
bool put_within(char *to, long long number) {
    return number >= std::numeric_limits<Number>::min() &&
           number <= (long long)std::numeric_limits<Number>::max() && put(to, Number(number));
}

// 0 for what is left to Python.
std::size_t number_bytes(char code) {
    switch (code) {
        case 'b': case 'B': return 1;
        case 'h': case 'H': return 2;
        case 'i': case 'I': case 'f': return 4;
        case 'q': case 'Q': case 'd': case 'P': return 8;
        default: return 0;
    }
}

// As `struct.pack` puts it; false for whatever that refuses, or converts in ways of its own.
bool put_number(char code, PyObject *value, char *to) {
    bool known = is_whole(value) || PyFloat_CheckExact(value);
    for (std::size_t at = 0; !known && at < number_types.size(); at++)
        known = Py_TYPE(value) == number_types[at];
    if (!known) return false;
    if (code == 'f' || code == 'd') {
        double number = PyFloat_AsDouble(value);
        if (number == -1 && PyErr_Occurred()) return PyErr_Clear(), false;
        if (code == 'd') return put(to, number);
        float small = float(number);
        return (!std::isinf(small) || std::isinf(number)) && put(to, small);
    }
    nb::object whole;
    if (!is_whole(value)) {
        if (!PyIndex_Check(value)) return false;
        whole = nb::steal(PyNumber_Index(value));
        if (!whole.is_valid()) return PyErr_Clear(), false;
        value = whole.ptr();
    }
    int overflow = 0;
    long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow) return false;
    switch (code) {
        case 'b': return put_within<std::int8_t>(to, number);
        case 'B': return put_within<std::uint8_t>(to, number);
        case 'h': return put_within<std::int16_t>(to, number);
        case 'H': return put_within<std::uint16_t>(to, number);
        case 'i': return put_within<std::int32_t>(to, number);
        case 'I': return put_within<std::uint32_t>(to, number);
        case 'q': return put(to, number);
        case 'Q': return number >= 0 && put(to, number);
        default: return false;
    }
}

// Global and local size; how many there are comes first, 0 where there is none.
using Sizes = std::array<std::int64_t, 8>;

bool take_size(PyObject *size, std::int64_t *to) {
    if (!PyTuple_CheckExact(size) || PyTuple_GET_SIZE(size) < 1 || PyTuple_GET_SIZE(size) > 3)
        return false;
    to[0] = PyTuple_GET_SIZE(size);
    for (int at = 0; at < to[0]; at++) {
        PyObject *one = PyTuple_GET_ITEM(size, at);
        if (!PyLong_CheckExact(one)) return false;
        int overflow = 0;
        to[at + 1] = PyLong_AsLongLongAndOverflow(one, &overflow);
        if (overflow) return false;
    }
    return true;
}

bool take_sizes(PyObject *global, PyObject *local, Sizes &sizes) {
    sizes.fill(0);
    return take_size(global, &sizes[0]) && (local == Py_None || take_size(local, &sizes[4]));
}

// What records of one size have in common.
struct Head {
    std::string words;
    std::optional<std::string> shape;
};

// What a kernel knows once it is in a scheduler.
struct Taught {
    nb::object ledger_object, scheduler, name;
    Ledger *ledger;
    std::uint64_t generation;
    std::vector<Parameter> parameters;
    std::map<Sizes, Head> heads;
    const std::pair<const Sizes, Head> *last = nullptr;  // the one of `heads` that was used last
    std::chrono::steady_clock::time_point looked_at;

    const Head *head(PyObject *global, PyObject *local) {
        Sizes sizes;
        if (!take_sizes(global, local, sizes)) return nullptr;
        if (!last || last->first != sizes) {
            auto found = heads.find(sizes);
            last = found == heads.end() ? nullptr : &*found;
        }
        return last ? &last->second : nullptr;
    }
};

// ---- calls --------------------------------------------------------------------------------------

struct Caller {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *runtime;
    Taught *taught;
};

// Puts an argument into a record, or notes what it touches; false where it is not plain.
bool take(const Parameter &parameter, PyObject *value, PyObject *runtime, char *record,
          Touched &touched) {
    if (parameter.code != 'P') return put_number(parameter.code, value, record + parameter.at);
    if (Py_TYPE(value) != array_slots.type ||
        ArraySlots::get(value, array_slots.home) != runtime)
        return false;
    put(record + parameter.at,
        PyLong_AsUnsignedLongLong(ArraySlots::get(value, array_slots.address)));
    touched.reads |= std::uint16_t(parameter.read << touched.many);
    touched.writes |= std::uint16_t(parameter.written << touched.many);
    touched.spans[touched.many++] = ArraySlots::get(value, array_slots.span);
    return true;
}

// Has a launch decided by `when`, as `packer.with_flag` does; false where that is not one word of
// this runtime, or the kernel may write it.
bool take_flag(PyObject *when, PyObject *runtime, char *record, Touched &touched) {
    if (Py_TYPE(when) != array_slots.type || ArraySlots::get(when, array_slots.home) != runtime)
        return false;
    PyObject *size = ArraySlots::get(when, array_slots.size);
    PyObject *span_object = ArraySlots::get(when, array_slots.span);
    PyObject *dtype = ArraySlots::get(when, array_slots.dtype);
    auto address = PyLong_AsUnsignedLongLong(ArraySlots::get(when, array_slots.address));
    if (!PyLong_CheckExact(size) || PyLong_AsLong(size) != 1 || address % 4 ||
        std::find(flag_types.begin(), flag_types.end(), dtype) == flag_types.end())
        return false;
    try {
        const Span span = span_of(span_object);
        for (int at = 0; at < touched.many; at++) {
            if (!(touched.writes >> at & 1)) continue;
            const Span written = span_of(touched.spans[at]);
            if (written.base == span.base && overlap(written, span)) return false;
        }
    } catch (...) {  // no span that an array has
        return PyErr_Clear(), false;
    }
    std::uint32_t first;
    std::memcpy(&first, record, sizeof(first));
    put(record, first & ~PLAIN);
    put(record + 4 * WHEN, address);
    touched.reads |= std::uint16_t(1 << touched.many);
    touched.spans[touched.many++] = span_object;
    return true;
}

bool enter(Taught &taught, const Head &head, const char *record, const Touched &touched) {
    const std::string_view shape = head.shape ? std::string_view(*head.shape) : "";
    return taught.ledger->launch({record, RECORD_BYTES}, head.shape ? &shape : nullptr, touched,
                                 taught.name.ptr());
}

bool may_launch(const Caller *self) {
    const Taught *taught = self->taught;
    return taught && taught->generation == taught->ledger->generation &&
           taught->ledger->takes(taught->scheduler.ptr());
}

// A plain launch; null without an error where it is not one, and nothing has changed.
PyObject *launch(Caller *self, PyObject *const *args, std::size_t many, PyObject *when,
                 bool &look) {
    if (!may_launch(self) || many != self->taught->parameters.size() + 2) return nullptr;
    Taught &taught = *self->taught;
    Ledger &ledger = *taught.ledger;
    const Head *head = taught.head(args[0], args[1]);
    if (!head) return nullptr;
    char record[RECORD_BYTES] = {};
    std::memcpy(record, head->words.data(), HEAD_BYTES);
    Touched touched;
    args += 2;
    for (const Parameter &parameter : taught.parameters)
        if (!take(parameter, *args++, self->runtime, record, touched)) return nullptr;
    if (when && !take_flag(when, self->runtime, record, touched)) return nullptr;
    auto *handle = reinterpret_cast<Handle *>(handle_type->tp_alloc(handle_type, 0));
    if (!handle) return nullptr;
    nb::object made = nb::steal(reinterpret_cast<PyObject *>(handle));
    try {
        if (!enter(taught, *head, record, touched)) return nullptr;
    } catch (const std::bad_alloc &) {
        return PyErr_NoMemory();
    }
    handle->number = ledger.number;
    handle->runtime = self->runtime;
    handle->name = taught.name.ptr();
    Py_INCREF(handle->runtime);
    Py_INCREF(handle->name);
    handle->touched = touched;
    touched.hold();
    look = ledger.is_due();
    if (!look && ledger.number % LOOK_EVERY == 0) {
        auto now = std::chrono::steady_clock::now();
        look = now - taught.looked_at > LOOK_AFTER;
        if (look) taught.looked_at = now;
    }
    return made.release().ptr();
}

PyObject *call(PyObject *object, PyObject *const *args, std::size_t flags, PyObject *keywords) {
    auto *self = reinterpret_cast<Caller *>(object);
    std::size_t many = std::size_t(PyVectorcall_NARGS(flags));
    bool has_when = keywords && PyTuple_GET_SIZE(keywords) == 1 &&
                    PyTuple_GET_ITEM(keywords, 0) == when_name;
    if (self->taught && (!keywords || has_when)) {
        bool look = false;
        PyObject *when = has_when && args[many] != Py_None ? args[many] : nullptr;
        PyObject *handle = launch(self, args, many, when, look);
        if (look) {  // nothing is on this stack that has to be let go, should the interpreter end
            PyObject *looked = PyObject_CallMethodNoArgs(self->runtime, look_name);
            if (!looked) Py_CLEAR(handle);
            Py_XDECREF(looked);
        }
        if (handle || PyErr_Occurred()) return handle;
    }
    std::vector<PyObject *> all{object};
    all.insert(all.end(), args, args + many + (keywords ? PyTuple_GET_SIZE(keywords) : 0));
    return PyObject_VectorcallMethod(call_name, all.data(), many + 1, keywords);
}

PyObject *caller_new(PyTypeObject *type, PyObject *, PyObject *) {
    auto *self = reinterpret_cast<Caller *>(type->tp_alloc(type, 0));
    if (self) self->vectorcall = call;
    return reinterpret_cast<PyObject *>(self);
}

int caller_traverse(Caller *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->runtime);
    return 0;
}

int caller_clear(Caller *self) {
    Py_CLEAR(self->runtime);
    delete std::exchange(self->taught, nullptr);
    return 0;
}

void caller_dealloc(Caller *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    caller_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

PyMemberDef caller_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Caller, vectorcall), READONLY, nullptr},
    {"_runtime", T_OBJECT_EX, offsetof(Caller, runtime), 0, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyType_Slot caller_slots[] = {{Py_tp_new, reinterpret_cast<void *>(caller_new)},
                              {Py_tp_call, reinterpret_cast<void *>(PyVectorcall_Call)},
                              {Py_tp_traverse, reinterpret_cast<void *>(caller_traverse)},
                              {Py_tp_clear, reinterpret_cast<void *>(caller_clear)},
                              {Py_tp_dealloc, reinterpret_cast<void *>(caller_dealloc)},
                              {Py_tp_members, caller_members},
                              {0, nullptr}};
PyType_Spec caller_spec = {"acs_cl._core.Caller", sizeof(Caller), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC |
                               Py_TPFLAGS_HAVE_VECTORCALL,
                           caller_slots};

PyTypeObject *caller_type;

Caller *caller(nb::handle object) {
    if (!PyObject_TypeCheck(object.ptr(), caller_type))
        throw nb::type_error("expected a kernel");
    return reinterpret_cast<Caller *>(object.ptr());
}

// ---- what Python says ---------------------------------------------------------------------------

std::size_t slot(nb::handle type, const char *name) {
    nb::object found = type.attr(name);
    if (Py_TYPE(found.ptr()) != &PyMemberDescr_Type) throw nb::type_error("expected a slot");
    return std::size_t(reinterpret_cast<PyMemberDescrObject *>(found.ptr())->d_member->offset);
}

// The classes of handles and arrays, the types of numbers, and those of arrays that decide, for as
// long as the process lives.
void use(nb::handle handle, nb::handle array, nb::handle numbers, nb::handle flags) {
    handle_type = reinterpret_cast<PyTypeObject *>(handle.inc_ref().ptr());
    array_slots = {reinterpret_cast<PyTypeObject *>(array.inc_ref().ptr()), slot(array, "_home"),
                   slot(array, "_address"), slot(array, "_span"), slot(array, "size"),
                   slot(array, "dtype")};
    for (nb::handle type : numbers)
        number_types.push_back(reinterpret_cast<PyTypeObject *>(type.inc_ref().ptr()));
    for (nb::handle type : flags) flag_types.push_back(type.inc_ref().ptr());
}

// `kernel` is in a scheduler: (code, place in a record, mode) for each parameter.
void teach(nb::handle kernel, nb::object ledger, nb::object scheduler, nb::object name,
           nb::handle parameters) {
    Caller *self = caller(kernel);
    auto made = std::make_unique<Taught>();
    made->ledger = nb::cast<Ledger *>(ledger);
    made->generation = made->ledger->generation;
    int pointers = 0;
    for (nb::handle item : parameters) {
        auto code = nb::cast<std::string>(item[0]), mode = nb::cast<std::string>(item[2]);
        auto at = nb::cast<std::size_t>(item[1]);
        pointers += code == "P";
        std::size_t nbytes = code.size() == 1 ? number_bytes(code[0]) : 0;
        if (!nbytes || at < HEAD_BYTES || at + nbytes > RECORD_BYTES || pointers >= MOST_SPANS)
            throw std::invalid_argument("a parameter does not fit into a record");
        made->parameters.push_back({code[0], at, mode.find('r') != std::string::npos,
                                    mode.find('w') != std::string::npos});
    }
    made->ledger_object = std::move(ledger);
    made->scheduler = std::move(scheduler);
    made->name = std::move(name);
    delete std::exchange(self->taught, made.release());
}

// A size that its launches may have.
void learn(nb::handle kernel, nb::handle global, nb::handle local, nb::bytes words,
           nb::handle shape) {
    Caller *self = caller(kernel);
    Head head{{words.c_str(), words.size()}, {}};
    Sizes sizes;
    if (!self->taught || head.words.size() != HEAD_BYTES ||
        !take_sizes(global.ptr(), local.ptr(), sizes))
        return;
    if (!shape.is_none()) {
        nb::bytes bytes = nb::cast<nb::bytes>(shape);
        head.shape.emplace(bytes.c_str(), bytes.size());
    }
    auto &heads = self->taught->heads;
    if (heads.size() >= MOST_SIZES) {
        self->taught->last = nullptr;
        heads.clear();
    }
    heads.try_emplace(sizes, std::move(head));
}

// ---- many launches ------------------------------------------------------------------------------

// What a parameter is in each of many launches: one value, the items of a sequence, or the numbers
// of a buffer.
class Column {
public:
    Column(nb::handle values, bool is_each, const Parameter &parameter) : same_(values.ptr()) {
        if (!is_each) return;
        if (parameter.code != 'P' && PyObject_CheckBuffer(values.ptr()) &&
            !PyObject_GetBuffer(values.ptr(), &buffer_, PyBUF_STRIDES | PyBUF_FORMAT)) {
            bool native = buffer_.ndim == 1 && buffer_.format && !buffer_.format[1];
            format_ = native ? whole(buffer_.format[0]) : 0;
            if (format_) {
                data_ = static_cast<const char *>(buffer_.buf);
                many_ = buffer_.shape[0];
                return;
            }
            PyBuffer_Release(&buffer_);
        }
        PyErr_Clear();
        items_ = nb::steal(PySequence_Fast(values.ptr(), "expected a sequence"));
        if (!items_.is_valid()) throw nb::python_error();
        many_ = PySequence_Fast_GET_SIZE(items_.ptr());
    }
    ~Column() {
        if (data_) PyBuffer_Release(&buffer_);
    }
    Column(const Column &) = delete;
    Column &operator=(const Column &) = delete;

    bool has(Py_ssize_t many) const { return many_ < 0 || many_ == many; }

    // Null where the sequence has become shorter.
    PyObject *item(Py_ssize_t index) const {
        if (!items_.is_valid()) return same_;
        bool is_there = index < PySequence_Fast_GET_SIZE(items_.ptr());
        return is_there ? PySequence_Fast_GET_ITEM(items_.ptr(), index) : nullptr;
    }

    bool take_at(Py_ssize_t index, const Parameter &parameter, PyObject *runtime, char *record,
                 Touched &touched) const {
        if (!data_) {
            PyObject *value = item(index);
            return value && take(parameter, value, runtime, record, touched);
        }
        const char *from = data_ + index * buffer_.strides[0];
        char *to = record + parameter.at;
        if (format_ == parameter.code) {
            std::memcpy(to, from, std::size_t(buffer_.itemsize));
            return true;
        }
        nb::object number = nb::steal(as_object(from));
        return number.is_valid() && put_number(parameter.code, number.ptr(), to);
    }

private:
    // `long` is one of the types with a width, and another one in different systems.
    static char whole(char format) {
        if (format == 'l') return sizeof(long) == 8 ? 'q' : 'i';
        if (format == 'L') return sizeof(long) == 8 ? 'Q' : 'I';
        return format != 'P' && number_bytes(format) ? format : 0;
    }

    template <typename Number>
    static Number get(const char *from) {
        Number number;
        std::memcpy(&number, from, sizeof(number));
        return number;
    }

    PyObject *as_object(const char *from) const {
        switch (format_) {
            case 'b': return PyLong_FromLong(get<std::int8_t>(from));
            case 'B': return PyLong_FromLong(get<std::uint8_t>(from));
            case 'h': return PyLong_FromLong(get<std::int16_t>(from));
            case 'H': return PyLong_FromLong(get<std::uint16_t>(from));
            case 'i': return PyLong_FromLong(get<std::int32_t>(from));
            case 'I': return PyLong_FromUnsignedLong(get<std::uint32_t>(from));
            case 'q': return PyLong_FromLongLong(get<long long>(from));
            case 'Q': return PyLong_FromUnsignedLongLong(get<unsigned long long>(from));
            case 'f': return PyFloat_FromDouble(get<float>(from));
            default: return PyFloat_FromDouble(get<double>(from));
        }
    }

    PyObject *same_;
    nb::object items_;
    Py_buffer buffer_;
    const char *data_ = nullptr;
    char format_ = 0;
    Py_ssize_t many_ = -1;
};

// Launches `first` and those after it of `many`, as far as they are plain and nobody has to look:
// how many. `columns`: for each parameter its values, and whether they are one for each launch;
// `when`: the same of what decides, or None. The spans that they touch go to `reads` and `writes`.
Py_ssize_t launch_many(nb::handle kernel, nb::handle global, nb::handle local, nb::list columns,
                       Py_ssize_t first, Py_ssize_t many, nb::list reads, nb::list writes,
                       nb::handle when) {
    Caller *self = caller(kernel);
    if (!may_launch(self) || columns.size() != self->taught->parameters.size()) return 0;
    Taught &taught = *self->taught;
    Ledger &ledger = *taught.ledger;
    const Head *head = taught.head(global.ptr(), local.ptr());
    if (!head) return 0;
    std::deque<Column> taken;
    for (std::size_t at = 0; at < columns.size(); at++) {
        nb::handle column = columns[at];
        taken.emplace_back(column[0], nb::cast<bool>(column[1]), taught.parameters[at]);
        if (!taken.back().has(many)) return 0;
    }
    std::optional<Column> flags;
    if (!when.is_none()) {
        flags.emplace(when[0], nb::cast<bool>(when[1]), Parameter{'P', 0, true, false});
        if (!flags->has(many)) return 0;
    }
    // PyObject_GetBuffer and the like may have run code
    if (!may_launch(self) || self->taught != &taught || taught.head(global.ptr(), local.ptr()) != head)
        return 0;
    Touched before;
    Py_ssize_t at = first;
    for (; at < many && ledger.has_room() && (at == first || !ledger.is_due()); at++) {
        char record[RECORD_BYTES] = {};
        std::memcpy(record, head->words.data(), HEAD_BYTES);
        Touched touched;
        bool is_plain = true;
        for (std::size_t index = 0; is_plain && index < taken.size(); index++)
            is_plain = taken[index].take_at(at, taught.parameters[index], self->runtime, record,
                                            touched);
        if (is_plain && flags) {
            PyObject *flag = flags->item(at);
            is_plain = flag && take_flag(flag, self->runtime, record, touched);
        }
        if (!is_plain || !enter(taught, *head, record, touched)) break;
        for (int index = 0; index < touched.many; index++) {
            PyObject *span = touched.spans[index];
            if (index < before.many && before.spans[index] == span) continue;
            if (touched.reads >> index & 1) reads.append(nb::handle(span));
            if (touched.writes >> index & 1) writes.append(nb::handle(span));
        }
        before = touched;
    }
    return at - first;
}

}  // namespace

void add_caller(nb::module_ &module) {
    call_name = PyUnicode_InternFromString("_call");
    look_name = PyUnicode_InternFromString("_look");
    when_name = PyUnicode_InternFromString("when");
    nb::object type = nb::steal(PyType_FromSpec(&caller_spec));
    caller_type = reinterpret_cast<PyTypeObject *>(type.inc_ref().ptr());
    module.attr("Caller") = type;
    module.attr("Handle") = nb::steal(PyType_FromSpec(&handle_spec));
    module.def("use", use);
    module.def("teach", teach, nb::arg("kernel"), nb::arg("ledger"), nb::arg("scheduler"),
               nb::arg("name"), nb::arg("parameters"));
    module.def("learn", learn, nb::arg("kernel"), nb::arg("global_size"),
               nb::arg("local_size").none(), nb::arg("words"), nb::arg("shape").none());
    module.def("launch_many", launch_many, nb::arg("kernel"), nb::arg("global_size"),
               nb::arg("local_size").none(), nb::arg("columns"), nb::arg("first"), nb::arg("many"),
               nb::arg("reads"), nb::arg("writes"), nb::arg("when").none() = nb::none());
    module.def("is_taught", [](nb::handle kernel) {
        const Taught *taught = caller(kernel)->taught;
        return taught && taught->generation == taught->ledger->generation;
    });
    module.def(
        "knows",
        [](nb::handle kernel, nb::handle global, nb::handle local) {
            Taught *taught = caller(kernel)->taught;
            return taught && taught->generation == taught->ledger->generation &&
                   taught->head(global.ptr(), local.ptr());
        },
        nb::arg("kernel"), nb::arg("global_size"), nb::arg("local_size").none());
    module.def("forget", [](nb::handle kernel) {
        delete std::exchange(caller(kernel)->taught, nullptr);
    });
}

}  // namespace acs_cl
