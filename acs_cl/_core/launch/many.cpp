// Many launches of a kernel by one call; see acs_cl/graph/many.py.

#include <array>
#include <list>
#include <optional>

#include <nanobind/stl/unique_ptr.h>

#include "hazards/bits.hpp"
#include "launch/caller.hpp"
#include "python/collector.hpp"
#include "table/ends.hpp"

namespace acs_cl {

namespace {

constexpr Py_ssize_t ARRAYS_AHEAD = 8, NODES_AHEAD = 4;

// Keeps an object in the place of another one, while the runtime's lock is held.
void keep(nb::object &place, PyObject *object) {
    leftovers::drop(place.release().ptr());
    place = nb::borrow(object);
}

// A parameter of many launches: one value, the items of a sequence, or the numbers of a buffer.
class Column {
public:
    Column(nb::handle values, bool is_each, const Parameter &parameter) : same_(values.ptr()) {
        if (!is_each) return;
        if (is_number(parameter.code) && PyObject_CheckBuffer(values.ptr()) &&
            bytes_.take(values.ptr(), PyBUF_STRIDES | PyBUF_FORMAT)) {
            const Py_buffer &view = bytes_.view;
            bool native = view.ndim == 1 && view.format && !view.format[1];
            format_ = native ? whole(view.format[0]) : 0;
            if (format_) {
                data_ = bytes_.data();
                many_ = view.shape[0];
                return;
            }
            PyBuffer_Release(&bytes_.view);
        }
        items_ = nb::steal(PySequence_Fast(values.ptr(), "expected a sequence"));
        if (!items_.is_valid()) throw nb::python_error();
        many_ = PySequence_Fast_GET_SIZE(items_.ptr());
        is_arrays_ = parameter.code == 'P';
    }

    bool has(Py_ssize_t many) const { return many_ < 0 || many_ == many; }

    // Returns null if the sequence has become shorter.
    PyObject *item(Py_ssize_t index) const {
        if (!items_.is_valid()) return same_;
        bool is_there = index < PySequence_Fast_GET_SIZE(items_.ptr());
        return is_there ? PySequence_Fast_GET_ITEM(items_.ptr(), index) : nullptr;
    }

    // Has a launch take its argument `at`. `held`, if not null, keeps it.
    bool give(Py_ssize_t index, Bound &bound, std::size_t at, nb::object *held) const {
        if (data_) return give_number(index, bound, at);
        PyObject *value = same_;
        if (items_.is_valid()) {
            const Py_ssize_t many = PySequence_Fast_GET_SIZE(items_.ptr());
            if (index >= many) return false;
            PyObject *const *items = PySequence_Fast_ITEMS(items_.ptr()) + index;
            if (is_arrays_ && index + ARRAYS_AHEAD < many) fetch(items);
            value = *items;
        }
        if (held) keep(*held, value);
        return bound.take(at, value);
    }

private:
    // Has memory bring what the next launches read: their arrays, and the nodes of nearer ones.
    static void fetch(PyObject *const *items) {
        auto *farther = reinterpret_cast<View *>(items[ARRAYS_AHEAD]);
        prefetch_to_write(farther);
        prefetch(&farther->node);
        View *near = view_of(items[NODES_AHEAD]);
        if (!near || !near->node) return;
        prefetch_to_write(near->node.get());
        prefetch(&near->node->details());
    }

    bool give_number(Py_ssize_t index, Bound &bound, std::size_t at) const {
        const char *from = data_ + index * bytes_.view.strides[0];
        if (format_ == bound.plan.parameters[at].code) {
            char *to = bound.place_of(at);
            switch (bytes_.view.itemsize) {  // a copy of any size would be a call
                case 8: std::memcpy(to, from, 8); break;
                case 4: std::memcpy(to, from, 4); break;
                case 2: std::memcpy(to, from, 2); break;
                default: *to = *from;
            }
            return true;
        }
        return bound.take(at, as_object(from).ptr());
    }

    // The width of `long` depends on the system.
    static char whole(char format) {
        if (format == 'l') return sizeof(long) == 8 ? 'q' : 'i';
        if (format == 'L') return sizeof(long) == 8 ? 'Q' : 'I';
        return format != 'P' && number_bytes(format) ? format : 0;
    }

    nb::object as_object(const char *from) const {
        if (format_ == 'f') return nb::float_(read_as<float>(from));
        if (format_ == 'd') return nb::float_(read_as<double>(from));
        return python_number(number_of(format_, from));
    }

    PyObject *same_;
    nb::object items_;
    Bytes bytes_;
    const char *data_ = nullptr;
    char format_ = 0;
    bool is_arrays_ = false;
    Py_ssize_t many_ = -1;
};

// What some launches touch, for whoever asks later.
class Touches : Single {
public:
    ~Touches() {
        for (const Touch touch : all_) touch.node()->let_go();
    }

    std::int64_t first = 0;  // the number of the first launch
    Py_ssize_t many = 0;  // launches
    nb::object error;  // of the launch behind them, which was refused

    // Adds launch `number`, without nodes that a launch before uses alike in the same place.
    void add(std::int64_t number, const Touched &touched) {
        if (!many) first = number;
        for (std::uint32_t at = 0; at < touched.many; at++) {
            const Touch touch(touched.nodes[at], touched.reads >> at & 1, touched.writes >> at & 1);
            if (last_[at] == touch) continue;
            last_[at] = touch;
            touch.node()->holders++;
            all_.push_back(touch);
        }
        many++;
    }

    nb::list reads() const { return spans(&Touch::is_read); }
    nb::list writes() const { return spans(&Touch::is_written); }

private:
    // A node that is held, and in its lowest bits whether it is read and written.
    class Touch {
    public:
        Touch() = default;
        Touch(Node *node, bool read, bool written)
            : bits_(reinterpret_cast<std::uintptr_t>(node) | std::uintptr_t(read) | std::uintptr_t(written) << 1) {}

        Node *node() const { return reinterpret_cast<Node *>(bits_ & ~std::uintptr_t(3)); }
        bool is_read() const { return bits_ & 1; }
        bool is_written() const { return bits_ & 2; }
        bool operator==(const Touch &other) const { return bits_ == other.bits_; }

    private:
        std::uintptr_t bits_ = 0;
    };

    nb::list spans(bool (Touch::*is_wanted)() const) const {
        nb::list spans;
        for (const Touch &touch : all_)
            if ((touch.*is_wanted)()) spans.append(object_of(touch.node()->span()));
        return spans;
    }

    std::array<Touch, MOST_SPANS> last_;
    std::vector<Touch> all_;
};

// All parameters of many launches, and the words that decide about them.
class Columns {
public:
    // `columns`: for each parameter its values, and whether there is one for each launch. `when`: the same for the
    // words that decide, or None.
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

    // Whether there are as many values as launches.
    bool is_whole() const { return is_whole_; }
    bool decide() const { return flags_.has_value(); }
    // Returns null if the sequence has become shorter.
    PyObject *flag(Py_ssize_t launch) const { return flags_->item(launch); }
    auto begin() const { return all_.begin(); }
    auto end() const { return all_.end(); }

private:
    std::list<Column> all_;
    std::optional<Column> flags_;
    bool is_whole_ = false;
};

// Makes launches from `first` on, in the open epoch or on lanes. Stops at one that is not plain, and when Python has to
// look.
void launch_some(Caller *self, nb::handle global, nb::handle local, const Columns &taken,
                 Py_ssize_t first, Py_ssize_t many, Touches &made) {
    const collector::Paused collector;
    Bound bound(*self->plan, self->engine);
    LaunchPlan &plan = bound.plan;
    Table &table = bound.table;
    if (!taken.is_whole() || !bound.begin(global.ptr(), local.ptr(), Py_None, taken.decide())) return;
    const bool in_epoch = !plan.has_local() && bound.may_record();
    std::vector<nb::object> held(in_epoch ? 0 : plan.parameters.size() + 1);  // while the GIL is given away
    std::optional<Taken> lock;
    if (!in_epoch) {
        if (!bound.is_on_lanes() || !table.is_plain() || !table.lock->try_take()) return;
        lock.emplace(table.lock);
    }
    for (Py_ssize_t at = first; at < many; at++) {
        if (in_epoch ? !table.has_room() : !(table.may_go_on() && bound.may_enqueue())) return;
        if (made.many && (in_epoch ? table.is_due() : table.should_poll())) return;
        if (!bound.start(in_epoch)) return;
        std::size_t index = 0;
        for (const Column &column : taken) {
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
        if (flag) keep(held.back(), flag);
        if (!bound.set()) return;
        const Holding holding(bound.touched);
        const bool is_on_lane = bound.enqueue();
        if (!is_on_lane && !engine_takes_over(self->engine, table.number)) {
            const nb::python_error error;  // takes the error
            made.error = nb::borrow(error.value());
            return;
        }
        made.add(table.number, bound.touched);
        if (is_on_lane) continue;
        return plan.is_back(table.number);
    }
}

// An argument of the call: one value for all launches, or a sequence.
struct Each {
    nb::object value;
    bool is_each;

    explicit Each(nb::handle column) : value(column[0]), is_each(nb::cast<bool>(nb::object(column[1]))) {}
    nb::object at(Py_ssize_t launch) const {
        nb::object one = is_each ? nb::steal(PySequence_GetItem(value.ptr(), launch)) : value;
        if (!one.is_valid()) throw nb::python_error();
        return one;
    }
};

// Makes launch `at` by a call of the kernel.
nb::object launch_one(nb::handle kernel, const std::vector<Each> &given, nb::handle names, Py_ssize_t at) {
    std::vector<nb::object> held;
    std::vector<PyObject *> args;
    for (const Each &one : given) args.push_back(held.emplace_back(one.at(at)).ptr());
    nb::object handle = nb::steal(
        PyObject_Vectorcall(kernel.ptr(), args.data(), args.size() - nb::len(names), names.ptr()));
    if (!handle.is_valid()) throw nb::python_error();
    return handle;
}

// Makes all launches, in order. `sizes` and `columns`: values, and whether each launch has its own. `keywords`: the
// same by name. Returns `Touches` of plain launches and handles of the others, how many launches there are, and the
// error of the next one, or None.
nb::tuple launch_many(nb::handle kernel, nb::list sizes, nb::list columns, nb::dict keywords, Py_ssize_t many) {
    Caller *self = caller(kernel);
    std::vector<Each> given;
    for (nb::handle one : sizes) given.emplace_back(one);
    const bool are_alike = !given[0].is_each && !given[1].is_each &&
                           (!keywords.contains("wait_for") || have_ended(nb::object(keywords["wait_for"][0]).ptr()));
    for (nb::handle one : columns) given.emplace_back(one);
    for (nb::handle one : keywords.values()) given.emplace_back(one);
    const nb::tuple names(keywords.keys());
    const nb::object when = keywords.contains("when") ? nb::object(keywords["when"]) : nb::none();
    std::optional<Columns> taken;
    std::shared_ptr<LaunchPlan *> plan;  // which they were taken by
    nb::list parts;
    Py_ssize_t at = 0;
    try {
        while (at < many) {
            if (PyErr_CheckSignals()) throw nb::python_error();
            if (self->plan && are_alike) {
                Table *const table = self->plan->table;  // the kernel holds it, whatever becomes of the plan
                if (plan != self->plan->place) {
                    plan = self->plan->place;
                    taken.emplace(columns, when, self->plan->parameters, many);
                }
                if (table->forecast.is_complete() && !table->poll(self->engine)) throw nb::python_error();
                auto made = std::make_unique<Touches>();
                // PyObject_GetBuffer and others may have run any code
                if (self->plan && self->plan->place == plan)
                    launch_some(self, given[0].value, given[1].value, *taken, at, many, *made);
                at += made->many;
                if (const nb::object error = made->error; error.is_valid())
                    return nb::make_tuple(parts, at, error);
                if (made->many) {
                    // as behind a call, if this was all; if not, a poll may be what it stopped for
                    const bool polls = at < many || table->should_poll(std::size_t(made->many));
                    parts.append(nb::cast(std::move(made)));
                    if (polls && !table->poll(self->engine)) throw nb::python_error();
                    continue;
                }
            }
            parts.append(launch_one(kernel, given, names, at));
            at++;
        }
    } catch (const nb::python_error &error) {
        return nb::make_tuple(parts, at, error.value());
    } catch (const PythonError &) {  // the error is set
        const nb::python_error error;
        return nb::make_tuple(parts, at, error.value());
    }
    return nb::make_tuple(parts, at, nb::none());
}

}  // namespace

void add_many(nb::module_ &module) {
    nb::class_<Touches>(module, "Touches")
        .def_ro("first", &Touches::first)
        .def_ro("many", &Touches::many)
        .def_prop_ro("reads", &Touches::reads)
        .def_prop_ro("writes", &Touches::writes);
    module.def("launch_many", launch_many, "kernel"_a, "sizes"_a, "columns"_a, "keywords"_a, "many"_a);
}

}  // namespace acs_cl
