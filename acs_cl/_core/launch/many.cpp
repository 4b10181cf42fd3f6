// Many launches of a kernel by one call: acs_cl/graph/many.py says when.

#include <list>
#include <optional>

#include <nanobind/stl/unique_ptr.h>

#include "hazards/bits.hpp"
#include "launch/caller.hpp"
#include "table/ends.hpp"

namespace acs_cl {

namespace {

constexpr Py_ssize_t ARRAYS_AHEAD = 8, NODES_AHEAD = 4;

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
        is_arrays_ = parameter.code == 'P';
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

    // Has memory bring what launches soon after will look at: arrays, and the nodes of nearer ones.
    void fetch(Py_ssize_t index) const {
        if (!is_arrays_ || index + ARRAYS_AHEAD >= PySequence_Fast_GET_SIZE(items_.ptr())) return;
        auto *farther = reinterpret_cast<View *>(item(index + ARRAYS_AHEAD));
        prefetch_to_write(farther);
        prefetch(&farther->node);
        View *near = view_of(item(index + NODES_AHEAD));
        if (near && near->node) prefetch_to_write(near->node.get());
    }

    // Has a launch take its argument `at`; it is put into `held`, where that is something.
    bool give(Py_ssize_t index, Bound &bound, std::size_t at, nb::object *held) const {
        if (!data_) {
            PyObject *value = item(index);
            if (held) *held = nb::borrow(value);
            return value && bound.take(at, value);
        }
        const char code = bound.plan.parameters[at].code, *from = data_ + index * buffer_.strides[0];
        if (format_ == code) {
            std::memcpy(bound.place_of(at), from, std::size_t(buffer_.itemsize));
            return true;
        }
        nb::object number = nb::steal(as_object(from));
        return number.is_valid() && bound.take(at, number.ptr());
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
    bool is_arrays_ = false;
    Py_ssize_t many_ = -1;
};

// What some launches touch, for whoever asks later.
class Touches {
public:
    Touches() = default;
    Touches(const Touches &) = delete;
    Touches &operator=(const Touches &) = delete;

    std::int64_t first = 0;  // its number
    Py_ssize_t many = 0;  // launches
    nb::object error;  // of the one behind them, which was refused

    // Launch `number`, without what the one before had in the same place.
    void add(std::int64_t number, const Touched &touched) {
        if (!many) first = number;
        for (std::uint32_t at = 0; at < touched.many; at++) {
            Node *node = touched.nodes[at];
            if (many && last_[at] == node) continue;
            last_[at] = node;
            if (touched.reads >> at & 1) reads_.emplace_back(node);
            if (touched.writes >> at & 1) writes_.emplace_back(node);
        }
        many++;
    }

    nb::list reads() const { return spans(reads_); }
    nb::list writes() const { return spans(writes_); }

private:
    static nb::list spans(const std::vector<NodePointer> &nodes) {
        nb::list spans;
        for (const NodePointer &node : nodes) spans.append(object_of(node->span));
        return spans;
    }

    Node *last_[MOST_SPANS];
    std::vector<NodePointer> reads_, writes_;
};

// What the parameters are in each of many launches, and what decides; nothing where these are not as many.
class Columns {
public:
    // `columns`: for each parameter its values, and whether they are one for each launch; `when`: the same
    // of what decides, or None.
    Columns(nb::list columns, nb::handle when, const std::vector<Parameter> &parameters,
            Py_ssize_t many) {
        is_whole_ = columns.size() == parameters.size();
        for (std::size_t at = 0; is_whole_ && at < columns.size(); at++) {
            nb::handle column = columns[at];
            all_.emplace_back(column[0], nb::cast<bool>(column[1]), parameters[at]);
            is_whole_ = all_.back().has(many);
        }
        if (!is_whole_ || when.is_none()) return;
        flags_.emplace(when[0], nb::cast<bool>(when[1]), Parameter{'P', 0, true, false});
        is_whole_ = flags_->has(many);
    }

    bool is_whole() const { return is_whole_; }
    bool decide() const { return flags_.has_value(); }
    // Null where the sequence has become shorter.
    PyObject *flag(Py_ssize_t launch) const { return flags_->item(launch); }
    auto begin() const { return all_.begin(); }
    auto end() const { return all_.end(); }

private:
    std::list<Column> all_;
    std::optional<Column> flags_;
    bool is_whole_ = false;
};

// As far as they are plain and nobody has to look, launches `first` and those after it: in the open epoch,
// or on lanes.
void launch_some(Caller *self, nb::handle global, nb::handle local, nb::list columns,
                 Py_ssize_t first, Py_ssize_t many, nb::handle when, Touches &made) {
    Bound bound(*self->plan, self->engine);
    LaunchPlan &plan = bound.plan;
    Table &table = bound.table;
    const Columns taken(columns, when, plan.parameters, many);
    // PyObject_GetBuffer and the like may have run code
    if (!taken.is_whole() || !bound.begin(global.ptr(), local.ptr(), taken.decide())) return;
    const bool in_epoch = bound.may_record() && !plan.has_local();
    std::optional<Taken> lock;
    if (!in_epoch) {
        if (!bound.is_on_lanes() || !table.is_plain() || !table.lock->try_take()) return;
        lock.emplace(table.lock);
    }
    std::vector<nb::object> held(in_epoch ? 0 : plan.parameters.size() + 1);  // without the GIL
    for (Py_ssize_t at = first; at < many; at++) {
        if (in_epoch ? !table.has_room() : !(table.may_go_on() && bound.may_enqueue())) return;
        if (made.many && (in_epoch ? table.is_due() : table.should_look())) return;
        if (!bound.start(in_epoch)) return;
        std::size_t index = 0;
        for (const Column &column : taken) {
            column.fetch(at);
            if (!column.give(at, bound, index, in_epoch ? nullptr : &held[index])) return;
            index++;
        }
        PyObject *flag = taken.decide() ? taken.flag(at) : nullptr;
        if ((taken.decide() && !flag) || !bound.finish(flag)) return;
        if (in_epoch) {
            bound.record();
            made.add(table.number, bound.touched);
            continue;
        }
        if (flag) held.back() = nb::borrow(flag);
        if (!bound.set()) return;
        const Holding holding(bound.touched);
        const bool is_on_lane = bound.enqueue();
        if (!is_on_lane && !completed(self->engine, nullptr, table.number)) {
            const nb::python_error error;  // which takes it
            made.error = nb::borrow(error.value());
            return;
        }
        made.add(table.number, bound.touched);
        if (!is_on_lane) return;
    }
}

// Launches `first` and those after it of `many`, as far as they are plain and nobody has to look:
// what they touch, and how many they are.
std::unique_ptr<Touches> launch_many(nb::handle kernel, nb::handle global, nb::handle local,
                                     nb::list columns, Py_ssize_t first, Py_ssize_t many,
                                     nb::handle when) {
    auto made = std::make_unique<Touches>();
    Caller *self = caller(kernel);
    if (self->plan) launch_some(self, global, local, columns, first, many, when, *made);
    return made;
}

}  // namespace

void add_many(nb::module_ &module) {
    nb::class_<Touches>(module, "Touches")
        .def_ro("first", &Touches::first)
        .def_ro("many", &Touches::many)
        .def_prop_ro("error", [](const Touches &self) {
            return self.error.is_valid() ? self.error : nb::none();
        })
        .def_prop_ro("reads", &Touches::reads)
        .def_prop_ro("writes", &Touches::writes);
    module.def("launch_many", launch_many, nb::arg("kernel"), nb::arg("global_size"),
               nb::arg("local_size").none(), nb::arg("columns"), nb::arg("first"), nb::arg("many"),
               nb::arg("when").none() = nb::none());
}

}  // namespace acs_cl
