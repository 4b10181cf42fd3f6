// Asks the driver for the memory behind PyOpenCL objects; see memory.hpp.

#include "driver/memory.hpp"

#include <nanobind/stl/map.h>

namespace acs_cl {

namespace {

PyTypeObject *memory_type;
PyObject *span_name, *size_name, *address_name;

// From CL/cl.h.
constexpr std::uint32_t MEM_TYPE = 0x1100, MEM_FLAGS = 0x1101, MEM_SIZE = 0x1102, MEM_HOST_PTR = 0x1103,
                        MEM_PARENT = 0x1107, MEM_OFFSET = 0x1108, BUFFER = 0x10F0;
constexpr std::uint64_t USE_HOST_PTR = 1 << 3;
const Span ALL_MEMORY{EVERYTHING, 0, 1, 1, 1};

nb::handle class_of(const char *name) {
    return nb::object(nb::module_::import_("pyopencl").attr(name)).release();
}
bool is_svm(PyObject *object) {
    static const nb::handle type = class_of("SVMPointer");
    return PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject *>(type.ptr()));
}
bool is_held_memory(PyObject *object) {
    static const nb::handle type = class_of("MemoryObjectHolder");
    return PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject *>(type.ptr()));
}

template <typename Value>
bool ask(void *memory, std::uint32_t what, Value &to) {
    return !driver.memory_info(memory, what, sizeof(to), &to, nullptr);
}

// Returns the span of a memory object. A sub-buffer has bytes of its buffer. An image has all bytes of the buffer below
// it, since its rows may be apart. Intel's runtime no longer names that buffer once the program has released it, so
// such a part may be any memory.
Span span_of_handle(void *memory) {
    std::size_t size = 0, offset = 0;
    std::uint32_t type = 0;
    void *parent = nullptr;
    if (!memory || !ask(memory, MEM_SIZE, size) || !ask(memory, MEM_TYPE, type) || !ask(memory, MEM_PARENT, parent))
        return ALL_MEMORY;
    if (!parent) return interval(-std::int64_t(reinterpret_cast<std::uintptr_t>(memory)), 0, size);
    const Span whole = span_of_handle(parent);
    if (whole.base == EVERYTHING || type != BUFFER || !ask(memory, MEM_OFFSET, offset)) return whole;
    return interval(whole.base, std::int64_t(offset), size);
}

nb::object attribute(PyObject *object, PyObject *name) {
    nb::object found = nb::steal(PyObject_GetAttr(object, name));
    if (!found.is_valid()) throw nb::python_error();
    return found;
}

// Raises a Python error if it is no whole number, since a class of the program may say what it likes.
std::uint64_t number_of(nb::handle object) {
    const nb::object whole = nb::steal(PyNumber_Index(object.ptr()));
    const std::uint64_t number = whole.is_valid() ? PyLong_AsUnsignedLongLong(whole.ptr()) : 0;
    if (PyErr_Occurred()) throw nb::python_error();
    return number;
}

// Returns the span of shared virtual memory. Without an extent it may be anything that is named by its address.
Span span_of_svm(PyObject *pointer, std::uint64_t address) {
    const nb::object size = attribute(pointer, size_name);
    if (size.is_none()) return interval(BY_ADDRESS, 0, INT64_MAX);
    return interval(BY_ADDRESS, std::int64_t(address), number_of(size));
}

// Names bytes of a buffer by their address if it is on the program's own memory. Returns whether it may be.
bool find_address(Span &span) {
    auto *memory = reinterpret_cast<void *>(std::uintptr_t(-span.base));
    std::uint64_t flags = 0;
    std::uintptr_t address = 0;
    if (!ask(memory, MEM_FLAGS, flags)) return true;
    if (!(flags & USE_HOST_PTR)) return false;
    if (ask(memory, MEM_HOST_PTR, address) && address)
        span = bounded({BY_ADDRESS, std::int64_t(address) + span.start, span.pitch, span.rows, span.width});
    return true;
}

nb::object new_memory(const Span &span, bool is_host, nb::handle store) {
    nb::object made = nb::steal(memory_type->tp_alloc(memory_type, 0));
    if (!made.is_valid()) throw nb::python_error();
    auto *self = reinterpret_cast<Memory *>(made.ptr());
    self->span = span;
    self->is_host = is_host;
    self->store = store.is_valid() && !store.is_none() ? store.inc_ref().ptr() : nullptr;
    return made;
}

PyObject *memory_span(Memory *self, void *) {
    return guarded([&] { return object_of(self->span).release().ptr(); });
}
PyObject *memory_is_host(Memory *self, void *) { return PyBool_FromLong(self->is_host); }
PyObject *memory_is_placed(Memory *self, void *) { return PyBool_FromLong(self->is_placed()); }
PyGetSetDef memory_properties[] = {{"span", getter(memory_span), nullptr, nullptr, nullptr},
                                   {"is_placed", getter(memory_is_placed), nullptr, nullptr, nullptr},
                                   {"is_host", getter(memory_is_host), nullptr, nullptr, nullptr},
                                   {nullptr, nullptr, nullptr, nullptr, nullptr}};

}  // namespace

nb::object memory_of(PyObject *object, nb::handle store) {
    nb::object known = nb::steal(PyObject_GetAttr(object, span_name));
    if (!known.is_valid()) PyErr_Clear();
    const auto &own = nb::cast<const Reserved &>(store);
    if (known.is_valid() && Py_TYPE(known.ptr()) == memory_type) {
        const auto *memory = reinterpret_cast<Memory *>(known.ptr());
        if (memory->store ? memory->store == store.ptr() : !own.owns(name_of(memory->span))) return known;
    }
    const bool is_address = is_svm(object);
    if (!is_address && !is_held_memory(object)) return nb::none();
    const std::uint64_t address = is_address ? number_of(attribute(object, address_name)) : 0;
    Span span = is_address ? span_of_svm(object, address) : span_of_handle(handle_of(object));
    const bool is_host = is_address || span.base == EVERYTHING || find_address(span);
    const std::uint64_t name = is_address ? address : name_of(span);
    if (span.base == EVERYTHING || own.owns(name)) return new_memory(ALL_MEMORY, true, nb::none());
    nb::object made = new_memory(span, is_host, nb::none());
    // an object that takes no attributes is asked each time
    if (!known.is_valid() && PyObject_SetAttr(object, span_name, made.ptr())) PyErr_Clear();
    return made;
}

std::optional<ImageSizes> sizes_of_image(PyObject *object) {
    constexpr std::uint32_t WIDTH = 0x1114, HEIGHT = 0x1115, DEPTH = 0x1116, LAYERS = 0x1117;
    void *const image = is_held_memory(object) ? handle_of(object) : nullptr;
    if (!image) return std::nullopt;
    ImageSizes found{};
    auto to = found.begin();
    for (const std::uint32_t what : {WIDTH, HEIGHT, DEPTH, LAYERS}) {
        std::size_t size = 0;
        if (driver.image_info(image, what, sizeof(size), &size, nullptr) || size > INT32_MAX) return std::nullopt;
        *to++ = std::int32_t(size);
    }
    return found;
}

void add_memory(nb::module_ &module) {
    span_name = PyUnicode_InternFromString("acs_span");
    size_name = PyUnicode_InternFromString("size");
    address_name = PyUnicode_InternFromString("svm_ptr");
    nb::object type = nb::steal(new_type<Memory>("acs_cl._core.Memory", COLLECTED, {{Py_tp_getset, memory_properties}}));
    memory_type = reinterpret_cast<PyTypeObject *>(type.inc_ref().ptr());
    module.attr("Memory") = type;
    nb::class_<Reserved>(module, "Reserved")
        .def(nb::init<>())
        .def("add", &Reserved::add, "start"_a, "size"_a)
        .def("remove", &Reserved::remove, "start"_a)
        .def("include", &Reserved::include, "other"_a, nb::keep_alive<1, 2>())
        .def("owns", &Reserved::owns, "address"_a)
        .def_prop_ro("sizes", &Reserved::sizes);
    module.def("memory_of", [](nb::handle object, nb::handle store) { return memory_of(object.ptr(), store); },
               "object"_a, "store"_a);
    module.def("new_memory", [](nb::handle span, nb::handle store) {
        return new_memory(span_of(span.ptr()), false, store);
    }, "span"_a, "store"_a);
}

}  // namespace acs_cl
