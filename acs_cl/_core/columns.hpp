// Columns: what a parameter is in each of many launches.

#pragma once

#include <cstring>

#include "arguments.hpp"

namespace acs_cl {

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

}  // namespace acs_cl
