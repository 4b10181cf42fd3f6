// Views of arrays: NumPy's basic indexing on shapes and strides, and the bytes of a view. A program may make one
// for every launch, so both are here.

#include "launch/reach.hpp"
#include "python/collector.hpp"
#include "python/view.hpp"

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

// Dimensions, nearly always few.
class Axes {
public:
    void push_back(Axis axis) {
        if (many_ < first_.size()) first_[many_] = axis;
        else {
            if (many_ == first_.size()) more_.assign(first_.begin(), first_.end());
            more_.push_back(axis);
        }
        many_++;
    }
    Axis *begin() { return many_ > first_.size() ? more_.data() : first_.data(); }
    Axis *end() { return begin() + many_; }
    const Axis *begin() const { return const_cast<Axes *>(this)->begin(); }
    const Axis *end() const { return begin() + many_; }
    const Axis &operator[](std::size_t at) const { return begin()[at]; }
    Axis &back() { return end()[-1]; }
    std::size_t size() const { return many_; }
    bool empty() const { return !many_; }

private:
    std::array<Axis, 4> first_;
    std::vector<Axis> more_;
    std::size_t many_ = 0;
};

Axes axes_of(nb::handle shape, nb::handle strides) {
    const Items lengths(shape.ptr()), distances(strides.ptr());
    Axes made;
    auto distance = distances.begin();
    for (PyObject *length : lengths) {
        if (distance == distances.end()) throw std::invalid_argument("got more lengths than strides");
        made.push_back({whole_number(length), whole_number(*distance++)});
    }
    if (distance != distances.end()) throw std::invalid_argument("got more strides than lengths");
    return made;
}

nb::object tuple_of(const Axes &axes, std::int64_t Axis::*which) {
    nb::object made = nb::steal(PyTuple_New(Py_ssize_t(axes.size())));
    if (!made.is_valid()) throw nb::python_error();
    for (std::size_t at = 0; at < axes.size(); at++) {
        PyObject *const number = PyLong_FromLongLong(axes[at].*which);
        if (!number) throw nb::python_error();
        PyTuple_SET_ITEM(made.ptr(), Py_ssize_t(at), number);
    }
    return made;
}

// A view as it grows, index by index.
struct Growing {
    Axes axes;
    std::int64_t offset = 0;

    void keep(Axis axis) { axes.push_back(axis); }

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
        // as NumPy has it, also if nobody can go so far
        keep({many, std::int64_t(std::uint64_t(axis.stride) * std::uint64_t(step))});
        if (many) offset += start * axis.stride;
        return true;
    }
};

// Applies an index. False: it is wrong, and Python says why.
bool apply(nb::handle index, const Axes &axes, Growing &view) {
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
    if (dots > 1 || used > axes.size()) return false;
    std::size_t axis = 0;
    const auto skip = [&](std::size_t to) {
        while (axis < to) view.keep(axes[axis++]);
    };
    for (std::size_t at = 0; at < many; at++) {
        if (items[at] == Py_Ellipsis) skip(axis + axes.size() - used);
        else if (items[at] == Py_None) view.keep({1, 0});
        else if (!view.take(items[at], axes[axis++])) return false;
    }
    skip(axes.size());
    return true;
}

// Returns the view's shape, strides and byte offset. None: the index is wrong.
nb::object index_view(nb::handle index, nb::handle shape, nb::handle strides) {
    Growing view;
    if (!apply(index, axes_of(shape, strides), view)) return nb::none();
    return nb::make_tuple(tuple_of(view.axes, &Axis::length), tuple_of(view.axes, &Axis::stride), view.offset);
}

// Calls `give(span)` for the bytes of a strided view of `base`, in as few rectangles as possible.
template <typename Give>
void each_span(std::int64_t base, std::int64_t offset, const Axes &axes, std::int64_t itemsize, Give &&give) {
    Axes inner, outer;
    bool is_empty = itemsize == 0;
    for (Axis axis : axes) {
        is_empty = is_empty || axis.length == 0;
        if (axis.length == 1 || axis.stride == 0) continue;
        if (axis.stride < 0) {
            offset += (axis.length - 1) * axis.stride;
            axis.stride = -axis.stride;
        }
        inner.push_back(axis);
    }
    if (is_empty) return;
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
    if (outer.empty() || planes > MOST_VIEW_SPANS)
        return give(Span{base, offset, width + reach, 1, width + reach});
    const auto plane = [&](std::int64_t start) {
        give(Span{base, start, outer[0].stride, outer[0].length, width});
    };
    if (outer.size() == 1) return plane(offset);
    std::vector<std::int64_t> starts{offset};
    for (std::size_t at = 1; at < outer.size(); at++) {
        std::vector<std::int64_t> next;
        for (std::int64_t start : starts)
            for (std::int64_t step = 0; step < outer[at].length; step++)
                next.push_back(start + step * outer[at].stride);
        starts = std::move(next);
    }
    for (std::int64_t start : starts) plane(start);
}

// Returns the bytes of a strided view of `base`.
nb::object spans_of_view(std::int64_t base, std::int64_t offset, nb::handle shape, nb::handle strides,
                         std::int64_t itemsize) {
    nb::list made;
    each_span(base, offset, axes_of(shape, strides), itemsize, [&](const Span &span) { made.append(object_of(span)); });
    return nb::tuple(made);
}

// Lays an array out: its bytes, and whether it is a simple kernel argument. It has its engine, its base, the ground,
// the size of its elements and its dtype. `place_of`: gives its place if the ground has no memory.
void lay_out(View *view, std::int64_t offset, const Axes &axes, nb::handle place_of) {
    view->offset = offset;
    std::uint64_t size = 1;  // of no elements, lengths may be anything
    for (const Axis &axis : axes) size *= std::uint64_t(axis.length);
    view->size = static_cast<long long>(size);
    view->nbytes = view->size * view->itemsize;
    if (!view->base || !view->nbytes) return;
    std::int64_t first = INT64_MAX, end = INT64_MIN, many = 0;
    nb::list several;
    each_span(view->ground.number, offset, axes, view->itemsize, [&](const Span &span) {
        if (many == 1) several.append(object_of(view->span));
        if (many++) several.append(object_of(span));
        view->span = span;
        first = std::min(first, span.start);
        end = std::max(end, span.end());
    });
    view->is_one = many == 1;
    if (!view->is_one) view->spans = nb::tuple(several).release().ptr();
    view->first = first;
    view->length = end - first;
    view->lead = offset - first;
    unsigned long long start = 0;
    if (!view->ground.memory) {
        view->place = nb::object(place_of(first, end - first)).release().ptr();
        start = nb::cast<unsigned long long>(nb::handle(view->place)[1]);
    }
    if (!view->is_one || view->lead) return;
    if ((view->is_inside = start)) {
        view->address = start;
        return;
    }
    view->address = view->ground.address + static_cast<unsigned long long>(first);
    view->home = Py_NewRef(view->engine);
}

View *view_at(nb::handle array) {
    if (!array_type || !PyObject_TypeCheck(array.ptr(), array_type)) throw nb::type_error("expected an array");
    return reinterpret_cast<View *>(array.ptr());
}

// Fills an array that is new. `ground`: the number of the base, its address, its memory or None, where that begins, and
// the function that gives places; None without a base.
void fill(nb::handle array, nb::handle engine, nb::handle base, nb::handle ground, std::int64_t offset,
          nb::handle shape, nb::handle strides, nb::handle dtype, std::int64_t itemsize) {
    View *const view = view_at(array);
    if (view->engine) throw std::invalid_argument("this array has its memory");
    const Axes axes = axes_of(shape, strides);
    nb::object place_of;
    if (!base.is_none()) {
        view->ground = {nb::cast<long long>(ground[0]), nb::cast<unsigned long long>(ground[1]), nullptr,
                        nb::cast<long long>(ground[3])};
        nb::object memory = ground[2];
        if (!memory.is_none()) view->ground.memory = memory.release().ptr();
        place_of = ground[4];
        view->base = Py_NewRef(base.ptr());
    }
    view->engine = Py_NewRef(engine.ptr());
    view->shape = nb::tuple(shape).release().ptr();
    view->strides = nb::tuple(strides).release().ptr();
    view->dtype = Py_NewRef(dtype.ptr());
    view->itemsize = itemsize;
    lay_out(view, offset, axes, place_of);
}

// Returns a view of an array. None: the index is wrong, or the array has no memory that views find by themselves.
nb::object indexed(nb::handle array, nb::handle index) {
    const View *const of = view_at(array);
    if (!of->base || !of->ground.memory) return nb::none();
    const collector::Paused collector;  // a finalizer might free the array
    Growing grown;
    if (!apply(index, axes_of(of->shape, of->strides), grown)) return nb::none();
    if (!of->base) return nb::none();  // the index ran some code
    nb::object made = nb::steal(array_type->tp_alloc(array_type, 0));
    if (!made.is_valid()) throw nb::python_error();
    auto *const view = reinterpret_cast<View *>(made.ptr());
    view->engine = Py_NewRef(of->engine);
    view->base = Py_NewRef(of->base);
    view->dtype = Py_NewRef(of->dtype);
    view->ground = of->ground;
    Py_INCREF(view->ground.memory);
    view->itemsize = of->itemsize;
    view->shape = tuple_of(grown.axes, &Axis::length).release().ptr();
    view->strides = tuple_of(grown.axes, &Axis::stride).release().ptr();
    lay_out(view, of->offset + grown.offset, grown.axes, {});
    return made;
}

}  // namespace

void add_indexing(nb::module_ &module) {
    module.def("index_view", index_view, "index"_a.none(), "shape"_a, "strides"_a);
    module.def("spans_of_view", spans_of_view, "base"_a, "offset"_a, "shape"_a, "strides"_a, "itemsize"_a);
    module.def("lay_out", fill, "array"_a, "engine"_a, "base"_a.none(), "ground"_a.none(),
               "offset"_a, "shape"_a, "strides"_a, "dtype"_a, "itemsize"_a);
    module.def("indexed", indexed, "array"_a, "index"_a.none());
    module.def("release", [](nb::handle array) { view_at(array)->release(); }, "array"_a);
    module.def("overlap", [](nb::handle a, nb::handle b) { return overlap(span_of(a.ptr()), span_of(b.ptr())); },
               "a"_a, "b"_a);
    module.def("covers", [](nb::handle a, nb::handle b) { return covers(span_of(a.ptr()), span_of(b.ptr())); },
               "a"_a, "b"_a);
    module.def("cut", [](nb::handle span, nb::handle reached) {
        Part part;
        if (!reached.is_none()) part.emplace();
        if (part)
            for (PyObject *one : Items(reached.ptr())) {
                const auto at = [&](int index) { return whole_number(PyTuple_GET_ITEM(one, index)); };
                part->push_back(bounded({0, at(0), at(1), at(2), at(3)}));
            }
        return listed(cut(span_of(span.ptr()), part));
    }, "span"_a, "reached"_a.none());
}

}  // namespace acs_cl
