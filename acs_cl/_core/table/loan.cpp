// A loan of memory to the program, which ends with the object.
//
// No Python may run there: a signal that comes as a method begins is raised in it. In a finalizer Python drops what
// is raised, so that both Ctrl-C and the memory would be lost.

#include "python/types.hpp"
#include "table/table.hpp"

namespace acs_cl {

namespace {

struct Loan {
    PyObject_HEAD
    PyObject *table, *block;
    long long base;

    std::array<PyObject **, 2> objects() { return {&table, &block}; }

    void end() {
        if (!table || !block) return;
        try {
            nb::inst_ptr<Table>(table)->give_back(base, nb::borrow(block));
        } catch (const std::bad_alloc &) {  // then it stays lent
        }
        Py_CLEAR(block);
    }
};

// Of a cycle, while all its objects are whole.
void finalize(PyObject *self) { reinterpret_cast<Loan *>(self)->end(); }

PyObject *make(PyTypeObject *type, PyObject *args, PyObject *) {
    PyObject *table, *block;
    long long base;
    if (!PyArg_ParseTuple(args, "OLO", &table, &base, &block)) return nullptr;
    if (!nb::isinstance<Table>(table)) {
        PyErr_SetString(PyExc_TypeError, "expected a launch table");
        return nullptr;
    }
    auto *self = reinterpret_cast<Loan *>(type->tp_alloc(type, 0));
    if (!self) return nullptr;
    self->table = Py_NewRef(table);
    self->block = Py_NewRef(block);
    self->base = base;
    return reinterpret_cast<PyObject *>(self);
}

}  // namespace

// Returns the type, which lives as long as the process. Null with an error.
PyTypeObject *loan_type() {
    static PyObject *type = new_type<Loan>("acs_cl._core.Loan", COLLECTED,
                                           {{Py_tp_new, slot(make)}, {Py_tp_finalize, slot(finalize)}});
    return reinterpret_cast<PyTypeObject *>(type);
}

}  // namespace acs_cl
