// What Python sees of the core. acs_cl/core.py says where it takes the place of modules in Python.

#include <chrono>

#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "hazards.hpp"
#include "queues.hpp"
#include "recorder.hpp"
#include "spans.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace acs_cl {

namespace {

PyObject *kinds[KINDS];  // names of the kinds of edges, for as long as the process lives

// The index as Python has it: spans and edges are Python's.
class PythonHazards {
public:
    nb::object enter(std::int64_t number, nb::handle reads, nb::handle writes) {
        return edges(check(number, reads, writes));
    }

    // Nanoseconds that the checks of some launches take from inside, the first of them `number`.
    double measure(std::int64_t number, nb::handle accesses) {
        Items items(accesses.ptr());
        auto started = std::chrono::steady_clock::now();
        for (PyObject *access : items)
            check(number++, PyTuple_GET_ITEM(access, 0), PyTuple_GET_ITEM(access, 1));
        std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - started;
        return took.count();
    }

    // Spans are put together in Python: a footprint is made once, and used often.
    std::unique_ptr<Footprint> footprint(nb::handle reads, nb::handle writes,
                                         const Footprint *before) {
        nb::object merged = nb::module_::import_("acs_cl.footprints").attr("merged");
        return hazards.footprint(spans(merged(reads)), spans(merged(writes)), before);
    }

    nb::object enter_footprint(std::int64_t number, Footprint &footprint) {
        return edges(hazards.enter_footprint(number, footprint));
    }

    void move(Footprint &footprint, std::int64_t base, nb::handle spans) {
        std::vector<std::pair<Span, bool>> moved;
        for (nb::handle item : spans) {
            auto [span, written] = nb::cast<std::pair<nb::object, bool>>(item);
            moved.emplace_back(span_of(span.ptr()), written);
        }
        hazards.move(footprint, base, moved);
    }

    nb::object users(std::int64_t base) {
        auto users = hazards.users(base);
        return nb::tuple(nb::cast(users));
    }

    nb::object counted() {
        nb::dict counted;
        for (int kind = 0; kind < KINDS; kind++)
            counted[nb::handle(kinds[kind])] = nb::int_(hazards.edges[kind]);
        return counted;
    }

    Hazards hazards;

private:
    const std::vector<Edge> &check(std::int64_t number, nb::handle reads, nb::handle writes) {
        read_.clear();
        written_.clear();
        if (take(reads, read_) && take(writes, written_))
            return hazards.enter(number, read_, written_);
        return hazards.enter_barrier(number);
    }

    // The nodes of spans; false where one of them is all memory.
    bool take(nb::handle objects, std::vector<Node *> &nodes) {
        for (PyObject *object : Items(objects.ptr())) {
            Node *node = seen_.node(object, hazards);
            if (!node) return false;
            nodes.push_back(node);
        }
        return true;
    }

    static std::vector<Span> spans(nb::handle objects) {
        std::vector<Span> spans;
        for (PyObject *object : Items(objects.ptr())) spans.push_back(span_of(object));
        return spans;
    }

    static nb::object edges(const std::vector<Edge> &found) {
        nb::object edges = nb::steal(PyDict_New());
        if (!edges.is_valid()) throw PythonError();
        for (const Edge &edge : found) {
            nb::object upstream = nb::steal(PyLong_FromLongLong(edge.upstream));
            if (!upstream.is_valid() ||
                PyDict_SetItem(edges.ptr(), upstream.ptr(), kinds[edge.kind]))
                throw PythonError();
        }
        return edges;
    }

    SeenSpans seen_;
    std::vector<Node *> read_, written_;
};

// The recorder as Python has it: bytes and sequences of numbers.
class PythonRecorder {
public:
    std::uint32_t add(nb::bytes record, nb::handle blob, nb::handle shape, nb::handle upstream) {
        std::string_view blob_bytes, shape_bytes;
        upstream_.clear();
        for (PyObject *other : Items(upstream.ptr())) {
            std::int64_t number = whole_number(other);
            if (number < 0 || number >= recorder.tasks())
                throw std::out_of_range("a task follows only those before it");
            upstream_.push_back(std::uint32_t(number));
        }
        return recorder.add({record.c_str(), record.size()}, some(blob, blob_bytes),
                            some(shape, shape_bytes), upstream_);
    }

    template <auto column>
    nb::bytes words() const {
        const auto &values = recorder.*column;
        return nb::bytes(reinterpret_cast<const char *>(values.data()),
                         values.size() * sizeof(values[0]));
    }

    Recorder recorder;

private:
    static const std::string_view *some(nb::handle object, std::string_view &place) {
        if (object.is_none()) return nullptr;
        nb::bytes bytes = nb::cast<nb::bytes>(object);
        place = {bytes.c_str(), bytes.size()};
        return &place;
    }

    std::vector<std::uint32_t> upstream_;
};

}  // namespace

NB_MODULE(_core, module) {
    const char *names[KINDS] = {"RAW", "WAR", "WAW", "reuse", "any"};
    for (int kind = 0; kind < KINDS; kind++) kinds[kind] = PyUnicode_InternFromString(names[kind]);

    module.attr("INTERFACE") = 4;  // as acs_cl/core.py expects it

    nb::register_exception_translator([](const std::exception_ptr &error, void *) {
        try {
            std::rethrow_exception(error);
        } catch (const PythonError &) {  // it is set already
        }
    });

    nb::class_<Footprint>(module, "Footprint").def_ro("mark", &Footprint::mark);

    nb::class_<PythonHazards>(module, "Hazards")
        .def(nb::init<>())
        .def("enter", &PythonHazards::enter, "number"_a, "reads"_a, "writes"_a)
        .def("_measure", &PythonHazards::measure, "number"_a, "accesses"_a)
        .def("footprint", &PythonHazards::footprint, "reads"_a, "writes"_a,
             "before"_a = nb::none())
        .def("enter_footprint", &PythonHazards::enter_footprint, "number"_a, "footprint"_a)
        .def("move", &PythonHazards::move, "footprint"_a, "base"_a, "spans"_a)
        .def("users", &PythonHazards::users, "base"_a)
        .def("retire", [](PythonHazards &self, std::int64_t number) { self.hazards.retire(number); })
        .def("forget", [](PythonHazards &self, std::int64_t base) { self.hazards.forget(base); })
        .def("inherit", [](PythonHazards &self, std::int64_t base,
                           const std::vector<std::int64_t> &users) {
            self.hazards.inherit(base, users);
        })
        .def("is_live", [](PythonHazards &self, std::int64_t number) {
            return self.hazards.is_live(number);
        })
        .def_prop_ro("live", [](PythonHazards &self) { return self.hazards.live(); })
        .def_prop_ro("spans", [](PythonHazards &self) { return self.hazards.spans(); })
        .def_prop_ro("edges", &PythonHazards::counted)
        .def_prop_ro("pruned", [](PythonHazards &self) { return self.hazards.pruned; })
        .def_prop_ro("_held", [](PythonHazards &self) { return self.hazards.held(); });

    // The columns are as `epochs.Recorder.image` reads them.
    nb::class_<PythonRecorder>(module, "Recorder")
        .def(nb::init<>())
        .def("add", &PythonRecorder::add, "record"_a, "blob"_a.none(), "task_shape"_a.none(),
             "upstream"_a)
        .def_prop_ro("tasks", [](PythonRecorder &self) { return self.recorder.tasks(); })
        .def_prop_ro("_records", [](PythonRecorder &self) {
            return nb::make_tuple(self.words<&Recorder::records>());
        })
        .def_prop_ro("_extra", &PythonRecorder::words<&Recorder::extra>)
        .def_prop_ro("_heirs", &PythonRecorder::words<&Recorder::heirs>)
        .def_prop_ro("_counts", &PythonRecorder::words<&Recorder::counts>)
        .def_prop_ro("_initial", &PythonRecorder::words<&Recorder::initial>)
        .def_prop_ro("_upstream", &PythonRecorder::words<&Recorder::upstream>)
        .def_prop_ro("_downstream", &PythonRecorder::words<&Recorder::downstream>)
        .def_prop_ro("_patches", [](PythonRecorder &self) { return self.recorder.patches; });

    module.def("open_driver", &open_driver, "functions"_a);
    nb::class_<QueueKernel>(module, "QueueKernel");
    using Numbers = std::vector<std::uintptr_t>;
    nb::class_<FromC>(module, "FromC")
        .def(nb::init<Numbers, std::uintptr_t, bool, std::vector<Numbers>, std::uint32_t, bool>())
        .def("run", &FromC::run);
    nb::class_<Queues>(module, "Queues")
        .def(nb::init<nb::list, bool, bool, nb::tuple, nb::object>())
        .def("submit", &Queues::submit, "launch"_a, "behind"_a = nb::none())
        .def("event", &Queues::event, "number"_a)
        .def("oldest", &Queues::oldest)
        .def("poll", &Queues::poll, "most"_a = 64)
        .def("poll_up_to", &Queues::poll_up_to, "number"_a)
        .def("flush", &Queues::flush)
        .def("forget", &Queues::forget)
        .def("used", &Queues::used)
        .def_ro("waits", &Queues::waits)
        .def_ro("bare", &Queues::bare)
        .def_rw("_unasked_enough", &Queues::unasked_enough)
        .def_prop_ro("in_flight", &Queues::in_flight);
}

}  // namespace acs_cl
