// The launch table for Python.

#include "table/table.hpp"

#include <stdexcept>
#include <string>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "epoch/sender.hpp"
#include "python/collected.hpp"
#include "table/ends.hpp"

namespace acs_cl {

namespace {

void join(Table &self, nb::object hazards, nb::object lock, std::size_t backlog,
          std::optional<std::size_t> window, bool ready_first, bool in_order) {
    if (window && !*window) throw nb::value_error("a window needs at least one slot, got 0");
    if (Py_TYPE(lock.ptr()) != lock_type()) throw nb::type_error("expected a lock");
    self.lock = reinterpret_cast<Lock *>(lock.ptr());
    self.lock->first = [](void *table) { static_cast<Table *>(table)->settle(); };
    self.lock->first_of = &self;
    self.hazards = std::move(hazards);
    self.lock_object = std::move(lock);
    self.backlog = backlog;
    self.window = window.value_or(SIZE_MAX);
    self.ready_first = ready_first;
    self.in_order = in_order;
}

nb::dict forecasts(const Table &self) {
    const Forecast &of = self.forecast;
    nb::dict told;
    told["remembered"] = of.remembered().size();
    told["kept"] = of.residents();
    told["epochs"] = of.stats.epochs;
    told["launches"] = of.stats.launches;
    told["given_up"] = of.stats.given_up;
    told["patched"] = of.stats.patched;
    told["slow"] = of.stats.slow;
    told["by_call"] = of.stats.by_call;
    told["cut"] = of.stats.cut;
    told["joined"] = of.stats.joined;
    return told;
}

nb::list transitions(const Table &self, std::int64_t launch) {
    nb::list found;
    for (const Transition &one : self.transitions())
        if (one.number == launch)
            found.append(nb::make_tuple(name_of(one.from), name_of(one.to), one.ns));
    return found;
}

}  // namespace

nb::object new_record(std::int64_t number, const nb::object &command, const nb::object &access,
                      const nb::tuple &upstream) {
    static const nb::handle type = named_tuple("acs_cl.records", "Launch");
    return named(type, nb::make_tuple(number, command, access, upstream));
}

void refuse_step(std::int64_t number, State from, State to) {
    throw std::logic_error("launch " + std::to_string(number) + " cannot be " + name_of(to) +
                           ": it is " + name_of(from));
}

std::pair<std::int64_t, bool> Table::take(const nb::object &command, const nb::object &access, Footprint *footprint,
                                          const std::vector<std::int64_t> &after, bool blocks_on_host,
                                          bool has_foreign, bool waits_on_host, bool counted) {
    const std::int64_t launch = ++number;
    const Edges edges = footprint ? hazards->Hazards::enter_footprint(launch, *footprint)
                                               : hazards->check(launch, PyTuple_GET_ITEM(access.ptr(), 0),
                                                                PyTuple_GET_ITEM(access.ptr(), 1));
    try {
        std::vector<std::int64_t> upstream;
        if (in_order) {  // behind the newest that has not ended: what the host made has ended before others
            if (const std::int64_t before = newest(launch - 1)) upstream.push_back(before);
        } else {
            for (const Edge &edge : edges) upstream.push_back(edge.upstream);
            for (std::int64_t other : after)
                if (state(other) && std::find(upstream.begin(), upstream.end(), other) == upstream.end())
                    upstream.push_back(other);
        }
        nb::list follows;
        for (std::int64_t other : expand(upstream)) follows.append(other);
        const nb::object record = new_record(launch, command, access, nb::tuple(follows));
        return {launch, insert(record, blocks_on_host, has_foreign, waits_on_host, counted)};
    } catch (...) {
        if (!has(launch)) hazards->retire(launch);
        throw;
    }
}

bool Table::poll(PyObject *engine) {
    const bool only_tells = wants_attention();
    if (!only_tells && !(sender && sender->by_itself && (is_due() || forecast.is_complete())))
        return engine_polls(engine);
    if (!lock->try_take(only_tells)) return only_tells || engine_polls(engine);  // a signal comes first
    Taken taken(lock);
    if (!only_tells) {
        const nb::object self = nb::find(sender);
        if (sender->send_due() && !is_unseen()) return true;
    }
    return engine_polls(engine);
}

bool Table::open_for(nb::handle other) {
    if (!sender || !sender->by_itself || !may_record() || !lock->try_take()) return false;
    const Taken taken(lock);
    const nb::object self = nb::find(sender);
    sender->change_to(nb::borrow(other));
    return true;
}

void *Table::event_of_epoch(std::uint32_t which) {
    if (!sender) return nullptr;
    if (which == open) sender->cut();
    return sender->event_of(which);
}

bool Table::has_bad_epoch() const { return sender && sender->has_bad(); }

void Table::keep_step(std::int64_t launch, State from, State to) {
    using namespace std::chrono;
    const auto now = steady_clock::now().time_since_epoch();
    log_.push_back({launch, from, to, duration_cast<nanoseconds>(now).count()});
}

void add_table(nb::module_ &module) {
    nb::class_<End>(module, "End")
        .def(nb::init<std::int64_t, std::int32_t, nb::object, std::int32_t, std::uint32_t>(),
             "number"_a, "status"_a, "event"_a.none(), "lane"_a, "epoch"_a = 0)
        .def_ro("number", &End::number)
        .def_ro("status", &End::status)
        .def_ro("event", &End::event)
        .def_ro("lane", &End::lane)
        .def_ro("epoch", &End::epoch);
    nb::class_<Due>(module, "Due")
        .def_ro("queue", &Due::queue)
        .def_ro("settles", &Due::settles)
        .def_ro("is_sampled", &Due::is_sampled)
        .def_ro("has_waited", &Due::has_waited);

    // for each state, those that may follow it
    nb::dict steps;
    for (int from = 0; from < STATES; from++) {
        nb::list names;
        for (int to = 0; to < STATES; to++)
            if (FOLLOWING[from] & bit(State(to))) names.append(STATE_NAMES[to]);
        steps[STATE_NAMES[from]] = nb::tuple(names);
    }
    module.attr("STEPS") = steps;

    nb::class_<Reasons>(module, "Reasons")
        .def(nb::init<>())
        .def("note", &Reasons::note, "number"_a, "reason"_a)
        .def("keep", &Reasons::keep, "number"_a, "where"_a)
        .def("of", &Reasons::of, "number"_a)
        .def("reaches", &Reasons::reaches, "number"_a)
        .def("counts", &Reasons::counts);
    nb::handle loan(reinterpret_cast<PyObject *>(loan_type()));
    if (!loan.is_valid()) throw nb::python_error();
    module.attr("Loan") = loan;
    nb::class_<Table>(module, "Table", nb::type_slots(collected<Table>))
        .def(nb::init<>())
        .def("join", join, "hazards"_a, "lock"_a, "backlog"_a, "window"_a.none(), "ready_first"_a,
             "in_order"_a)
        .def_rw("number", &Table::number)
        .def_rw("usable", &Table::usable)
        .def_rw("is_closed", &Table::is_closed)
        .def_rw("generation", &Table::generation)
        .def_rw("poisoned", &Table::poisoned)
        .def("recording", [](Table &self, int change) { self.recording += change; }, "change"_a)
        .def("take_back", &Table::take_back)
        .def("bypassing", [](Table &self, int change) { self.bypassing += change; }, "change"_a)
        .def("take", &Table::take, "command"_a, "access"_a, "footprint"_a.none(), "after"_a, "blocks_on_host"_a,
             "has_foreign"_a, "waits_on_host"_a, "counted"_a)
        .def("insert", &Table::insert, "launch"_a, "blocks_on_host"_a = false, "has_foreign"_a = false,
             "waits_on_host"_a = false, "counted"_a = false)
        .def("start", &Table::start, "number"_a)
        .def("end", &Table::end, "number"_a, "failed"_a)
        .def("never_ran", &Table::never_ran, "number"_a, "upstream"_a)
        .def("expand", [](const Table &self, nb::tuple upstream) {
            if (!self.has_stand_ins()) return upstream;
            nb::list found;
            for (std::int64_t one : self.expand(nb::cast<std::vector<std::int64_t>>(upstream)))
                found.append(one);
            return nb::tuple(found);
        }, "upstream"_a)
        .def("foreign_ended", &Table::foreign_ended, "number"_a)
        .def("next_ready", &Table::next_ready)
        .def("put_back", &Table::put_back, "number"_a)
        .def("withdraw", &Table::withdraw, "number"_a)
        .def("lose", &Table::lose, "number"_a)
        .def("__len__", &Table::in_flight)
        .def("__contains__", &Table::has, "number"_a)
        .def("live", &Table::live)
        .def("nth", &Table::nth, "place"_a)
        .def("oldest", &Table::oldest)
        .def("newest", &Table::newest, "last"_a)
        .def("state", &Table::state, "number"_a)
        .def("launch", &Table::record_of, "number"_a)
        .def("later", &Table::later, "number"_a)
        .def("blockers", &Table::blockers, "number"_a)
        .def("has_count", &Table::has_count, "number"_a)
        .def("log", &Table::log)
        .def("transitions", transitions, "number"_a)
        .def_ro("most", &Table::most)
        .def_ro("full", &Table::full)
        .def_ro("ended", &Table::ended)
        .def_ro("by_core", &Table::by_core)
        .def_prop_ro("held", &Table::waiting)
        .def_prop_ro("outside", &Table::outside)
        .def_prop_ro("occupied", &Table::inside)
        .def_prop_ro("is_counted", &Table::has_counted)
        .def_prop_ro("has_returned", &Table::has_returned)
        .def_prop_ro("has_ready", &Table::has_ready)
        .def_prop_ro("has_stand_ins", &Table::has_stand_ins)
        .def("new_queue", &Table::new_queue)
        .def("assign", &Table::assign, "number"_a, "queue"_a, "shown"_a)
        .def("newest_of", &Table::newest_of, "queue"_a)
        .def("queue_of", &Table::queue_of, "number"_a)
        .def("of_queue", &Table::of_queue, "queue"_a, "last"_a, "shown"_a)
        .def("put", &Table::put, "number"_a, "epoch"_a, "task"_a)
        .def("epoch", &Table::epoch, "number"_a)
        .def("task", &Table::task, "number"_a, "epoch"_a)
        .def("of_epoch", &Table::of_epoch, "epoch"_a)
        .def("names", &Table::names, "epoch"_a)
        .def("leave", &Table::leave, "epoch"_a, "one_by_one"_a = false)
        .def("end_epoch", &Table::end_epoch, "epoch"_a)
        .def_prop_ro("in_epochs", &Table::in_epochs)
        .def("tell", [](Table &self, nb::object reasons) { self.reasons = std::move(reasons); }, "reasons"_a)
        .def("open", &Table::open_epoch, "epoch"_a, "recorder"_a, "scheduler"_a, "least_tasks"_a, "most_tasks"_a,
             "most_entries"_a, "next_poll"_a)
        .def("shut", [](Table &self) {
            self.shut();
            return std::exchange(self.external, {});
        })
        .def_prop_ro("counts", [](const Table &self) {
            return self.forecast.counted() || self.forecast.is_complete();
        })
        .def("predict", [](Table &self, bool on) {
            self.forecast.forget_all();
            self.forecast.is_on = on;
        }, "on"_a)
        .def("allow_footprints", [](Table &self, std::int64_t ns) {
            self.forecast.most_enter_ns = ns;
        }, "ns"_a)
        .def("count_for", [](Table &self, std::int64_t ns) { self.count_after = std::chrono::nanoseconds(ns); }, "ns"_a)
        .def("cut_epochs", [](Table &self, std::size_t least, double gain, double timed_gain, std::uint32_t runs) {
            self.forecast.cutting = {least, gain, timed_gain, runs};
        }, "least"_a, "gain"_a, "timed_gain"_a, "runs"_a)
        .def("forget_epochs", [](Table &self) { self.forecast.forget_all(); })
        .def("poll", [](Table &self, nb::handle engine) {
            if (self.forecast.counted() && !self.should_poll()) return;
            if (!self.poll(engine.ptr())) throw nb::python_error();
        }, "engine"_a)
        .def_prop_ro("wants_attention", &Table::wants_attention)
        .def_prop_ro("is_complete", [](const Table &self) { return self.forecast.is_complete(); })
        .def_prop_ro("follows", [](const Table &self) { return self.forecast.follows(); })
        .def("drop", [](Table &self, nb::handle resident) { self.forecast.drop(resident); }, "resident"_a)
        .def("was_foreseen", &Table::was_foreseen, "number"_a)
        .def("forecasts", forecasts);
}

}  // namespace acs_cl
