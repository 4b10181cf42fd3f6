// Views of arrays: NumPy's basic indexing on shapes and strides, and the bytes of a view. A program may make one
// for every launch, so both are here.

#include "launch/reach.hpp"
#include "python/indexing.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace acs_cl {

namespace {

constexpr std::int64_t MOST_VIEW_SPANS = 16;  // a view that needs more rectangles is taken as its hull

struct Axis {
    std::int64_t length, stride;
};

std::vector<Axis> axes_of(nb::handle shape, nb::handle strides) {
    const Items lengths(shape.ptr()), distances(strides.ptr());
    std::vector<Axis> made;
    auto distance = distances.begin();
    for (PyObject *length : lengths) {
        if (distance == distances.end()) throw std::invalid_argument("got more lengths than strides");
        made.push_back({whole_number(length), whole_number(*distance++)});
    }
    if (distance != distances.end()) throw std::invalid_argument("got more strides than lengths");
    return made;
}

nb::object tuple_of(const std::vector<std::int64_t> &numbers) {
    nb::object made = nb::steal(PyTuple_New(Py_ssize_t(numbers.size())));
    if (!made.is_valid()) throw nb::python_error();
    for (std::size_t at = 0; at < numbers.size(); at++)
        PyTuple_SET_ITEM(made.ptr(), Py_ssize_t(at), PyLong_FromLongLong(numbers[at]));
    return made;
}

// A view as it grows, index by index.
struct Growing {
    std::vector<std::int64_t> shape, strides;
    std::int64_t offset = 0;

    void keep(Axis axis) {
        shape.push_back(axis.length);
        strides.push_back(axis.stride);
    }

    // Returns false if this is no simple index within the axis.
    bool take(PyObject *item, Axis axis) {
        if (PySlice_Check(item)) return slice(reinterpret_cast<PySliceObject *>(item), axis);
        std::int64_t position;
        if (!read(item, position) || position < -axis.length || position >= axis.length) return false;
        offset += (position < 0 ? position + axis.length : position) * axis.stride;
        return true;
    }

private:
    static bool read(PyObject *item, std::int64_t &to) {
        if (!PyIndex_Check(item) || PyBool_Check(item)) return false;  // a bool is a mask
        to = PyNumber_AsSsize_t(item, PyExc_IndexError);
        return !(to == -1 && PyErr_Occurred()) || (PyErr_Clear(), false);
    }

    static bool is_within(PyObject *bound, std::int64_t length) {
        std::int64_t place;
        return bound == Py_None || (read(bound, place) && -length <= place && place <= length);
    }

    bool slice(PySliceObject *item, Axis axis) {
        Py_ssize_t start, stop, step;
        if (!is_within(item->start, axis.length) || !is_within(item->stop, axis.length)) return false;
        if (PySlice_Unpack(reinterpret_cast<PyObject *>(item), &start, &stop, &step) < 0)
            return PyErr_Clear(), false;
        const Py_ssize_t many =
            PySlice_AdjustIndices(Py_ssize_t(axis.length), &start, &stop, step);
        keep({many, axis.stride * step});
        if (many) offset += start * axis.stride;
        return true;
    }
};

// Returns the view's shape, strides and byte offset. None: the index is wrong, and Python says why.
nb::object index_view(nb::handle index, nb::handle shape, nb::handle strides) {
    const std::vector<Axis> axes = axes_of(shape, strides);
    PyObject *single = index.ptr();
    PyObject *const *items = &single;
    std::size_t many = 1, used = 0, dots = 0;
    if (PyTuple_Check(single)) {
        items = &PyTuple_GET_ITEM(single, 0);
        many = std::size_t(PyTuple_GET_SIZE(single));
    }
    for (std::size_t at = 0; at < many; at++) {
        dots += items[at] == Py_Ellipsis;
        used += items[at] != Py_Ellipsis && items[at] != Py_None;
    }
    if (dots > 1 || used > axes.size()) return nb::none();
    Growing view;
    std::size_t axis = 0;
    const auto skip = [&](std::size_t to) {
        while (axis < to) view.keep(axes[axis++]);
    };
    for (std::size_t at = 0; at < many; at++) {
        if (items[at] == Py_Ellipsis) skip(axis + axes.size() - used);
        else if (items[at] == Py_None) view.keep({1, 0});
        else if (!view.take(items[at], axes[axis++])) return nb::none();
    }
    skip(axes.size());
    return nb::make_tuple(tuple_of(view.shape), tuple_of(view.strides), view.offset);
}

nb::list listed(const std::vector<Span> &spans) {
    nb::list made;
    for (const Span &one : spans) made.append(object_of(one));
    return made;
}

// Returns the bytes of a strided view of `base`, in as few rectangles as possible.
nb::object spans_of_view(std::int64_t base, std::int64_t offset, nb::handle shape, nb::handle strides,
                         std::int64_t itemsize) {
    std::vector<Axis> inner, outer;
    bool is_empty = itemsize == 0;
    for (Axis axis : axes_of(shape, strides)) {
        is_empty = is_empty || axis.length == 0;
        if (axis.length == 1 || axis.stride == 0) continue;
        if (axis.stride < 0) {
            offset += (axis.length - 1) * axis.stride;
            axis.stride = -axis.stride;
        }
        inner.push_back(axis);
    }
    nb::list made;
    if (is_empty) return nb::tuple(made);
    std::sort(inner.begin(), inner.end(), [](const Axis &a, const Axis &b) {
        return std::make_pair(a.stride, a.length) < std::make_pair(b.stride, b.length);
    });
    std::int64_t width = itemsize, planes = 1, reach = 0;
    for (const Axis &axis : inner) {
        if (outer.empty() && axis.stride <= width) width += (axis.length - 1) * axis.stride;
        else if (!outer.empty() && axis.stride == outer.back().stride * outer.back().length)
            outer.back().length *= axis.length;
        else outer.push_back(axis);
    }
    for (const Axis &axis : outer) reach += axis.stride * (axis.length - 1);
    for (std::size_t at = 1; at < outer.size() && planes <= MOST_VIEW_SPANS; at++)
        planes *= outer[at].length;
    if (outer.empty() || planes > MOST_VIEW_SPANS || width > outer[0].stride) {
        made.append(object_of(Span{base, offset, width + reach, 1, width + reach}));
        return nb::tuple(made);
    }
    std::vector<std::int64_t> starts{offset};
    for (std::size_t at = 1; at < outer.size(); at++) {
        std::vector<std::int64_t> next;
        for (std::int64_t start : starts)
            for (std::int64_t step = 0; step < outer[at].length; step++)
                next.push_back(start + step * outer[at].stride);
        starts = std::move(next);
    }
    for (std::int64_t start : starts)
        made.append(object_of(Span{base, start, outer[0].stride, outer[0].length, width}));
    return nb::tuple(made);
}

}  // namespace

void add_indexing(nb::module_ &module) {
    module.def("index_view", index_view, nb::arg("index").none(), nb::arg("shape"),
               nb::arg("strides"));
    module.def("spans_of_view", spans_of_view, nb::arg("base"), nb::arg("offset"), nb::arg("shape"),
               nb::arg("strides"), nb::arg("itemsize"));
    module.def("overlap", [](nb::handle a, nb::handle b) { return overlap(span_of(a.ptr()), span_of(b.ptr())); },
               nb::arg("a"), nb::arg("b"));
    module.def("covers", [](nb::handle a, nb::handle b) { return covers(span_of(a.ptr()), span_of(b.ptr())); },
               nb::arg("a"), nb::arg("b"));
    module.def("cut", [](nb::handle span, nb::handle reached) {
        Part part;
        if (!reached.is_none()) part.emplace();
        if (part)
            for (PyObject *one : Items(reached.ptr())) {
                const auto at = [&](int index) { return whole_number(PyTuple_GET_ITEM(one, index)); };
                part->push_back(bounded({0, at(0), at(1), at(2), at(3)}));
            }
        return listed(cut(span_of(span.ptr()), part));
    }, nb::arg("span"), nb::arg("reached").none());
}

}  // namespace acs_cl
