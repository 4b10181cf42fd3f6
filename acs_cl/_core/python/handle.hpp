// Handles: each launch returns one. It is a type of Python's own kind, since one is made for every launch.

#pragma once

#include <cstddef>
#include <utility>

#include "hazards/touched.hpp"
#include "python/types.hpp"

namespace acs_cl {

inline PyTypeObject *handle_type;  // the class in Python
inline PyTypeObject *cut_handle_type;  // the class for launches in bands

struct Handle {
    PyObject_HEAD
    PyObject *engine, *name, *result, *access;  // null: nothing, or by `touched`
    long long number;
    Touched touched;

    auto objects() { return std::array{&engine, &name, &result, &access}; }
    void end() { touched.let_go(); }
};

// Memory of handles that are gone, for the next ones. A loop drops each handle before it makes the next one. The
// collector of cycles does not see the core's handles, since it never looked into one. The GIL is held.
class SpareHandles {
public:
    // Returns a handle whose objects are null. Null with an error.
    static Handle *take(PyTypeObject *type) {
        if (type != handle_type) return reinterpret_cast<Handle *>(type->tp_alloc(type, 0));
        if (many_) return reinterpret_cast<Handle *>(PyObject_Init(reinterpret_cast<PyObject *>(all_[--many_]), type));
        PyObject *const made = type->tp_alloc(type, 0);
        if (made && PyType_IS_GC(type)) PyObject_GC_UnTrack(made);
        return reinterpret_cast<Handle *>(made);
    }
    // Frees a handle whose objects are null.
    static void free(Handle *handle, PyTypeObject *type) {
        if (type == handle_type && many_ < all_.size()) all_[many_++] = handle;
        else type->tp_free(handle);
    }

private:
    inline static std::array<Handle *, 16> all_;
    inline static std::size_t many_ = 0;
};

inline void handle_dealloc(Handle *self) {
    PyTypeObject *const type = Py_TYPE(self);
    if (PyType_IS_GC(type)) PyObject_GC_UnTrack(self);
    clear(self);
    SpareHandles::free(self, type);
    Py_DECREF(type);
}

// Makes a handle of a launch of the core, which touches `touched`. `result`: what it returns, or null.
inline PyObject *new_handle(PyObject *engine, PyObject *name, std::int64_t number,
                            const Touched &touched, PyObject *result = nullptr,
                            PyTypeObject *type = handle_type) {
    Handle *const handle = SpareHandles::take(type);
    if (!handle) return nullptr;
    handle->number = number;
    handle->engine = Py_NewRef(engine);
    handle->name = Py_NewRef(name);
    handle->result = Py_XNewRef(result);
    handle->touched = touched;
    touched.hold();
    return reinterpret_cast<PyObject *>(handle);
}

inline int handle_init(Handle *self, PyObject *args, PyObject *keywords) {
    static const char *names[] = {"engine", "number", "name", "access", "result", nullptr};
    PyObject *engine, *name, *access, *result = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OLOO|O", const_cast<char **>(names), &engine,
                                     &self->number, &name, &access, &result))
        return -1;
    for (auto [place, value] : {std::pair(&self->engine, engine), {&self->name, name},
                                {&self->access, access}, {&self->result, result}}) {
        Py_INCREF(value);
        Py_XSETREF(*place, value);
    }
    return 0;
}

inline PyObject *handle_access(Handle *self, void *) {
    return guarded([&] {
        if (!self->access) Py_XSETREF(self->access, access_of(self->touched).release().ptr());
        return Py_NewRef(self->access);
    });
}

inline PyMemberDef handle_members[] = {
    {"engine", T_OBJECT_EX, offsetof(Handle, engine), READONLY, nullptr},
    {"_result", T_OBJECT, offsetof(Handle, result), READONLY, nullptr},
    {"name", T_OBJECT_EX, offsetof(Handle, name), READONLY, nullptr},
    {"number", T_LONGLONG, offsetof(Handle, number), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
inline PyGetSetDef handle_properties[] = {
    {"access", getter(handle_access), nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
inline PyObject *new_handle_type() {
    return new_type<Handle>("acs_cl._core.Handle", BASE,
                            {{Py_tp_dealloc, slot(handle_dealloc)},
                             {Py_tp_init, slot(handle_init)},
                             {Py_tp_new, slot(PyType_GenericNew)},
                             {Py_tp_members, handle_members},
                             {Py_tp_getset, handle_properties}});
}

}  // namespace acs_cl
