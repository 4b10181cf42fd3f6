// The sender of epochs, as Python sees it.

#include "epoch/sender.hpp"
#include "python/collected.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

namespace acs_cl {

namespace {

nb::object or_none(const nb::object &one) { return one.is_valid() ? one : nb::none(); }

void add_epochs(nb::module_ &module) {
    nb::class_<Launcher>(module, "Launcher")
        .def(nb::init<nb::object, std::size_t, bool>(), "kernel"_a, "group"_a, "has_pool"_a)
        .def("use", &Launcher::use, "kernel"_a)
        .def_rw("groups", &Launcher::groups)
        .def_rw("takes_notes", &Launcher::takes_notes)
        .def_rw("child_slots", &Launcher::child_slots);

    nb::class_<Placed>(module, "Placed")
        .def("__init__", [](Placed *self, std::uint32_t tasks, std::uint32_t width, std::uint32_t block,
                            std::uint32_t block_words) {
            new (self) Placed{tasks, width, block, block_words};
        }, "tasks"_a, "width"_a, "block"_a, "block_words"_a)
        .def_ro("tasks", &Placed::tasks)
        .def_ro("width", &Placed::width)
        .def_ro("block", &Placed::block)
        .def_ro("block_words", &Placed::block_words);

    nb::class_<Resident>(module, "Resident")
        .def("__init__", [](Resident *self, nb::object region, const Placed &placed) {
            new (self) Resident(std::move(region), placed, 0);
        }, "region"_a, "placed"_a)
        .def_ro("region", &Resident::region)
        .def_ro("next", &Resident::next)
        .def("__len__", [](const Resident &self) { return self.placed.tasks; })
        .def_rw("broken", &Resident::broken);

    nb::class_<Epoch>(module, "Epoch")
        .def(nb::init<nb::object, std::uint32_t, nb::object>(), "scheduler"_a, "number"_a, "recorder"_a)
        .def_ro("scheduler", &Epoch::scheduler)
        .def_prop_ro("recorder", [](const Epoch &self) { return self.recorder.owner(); })
        .def_ro("number", &Epoch::number)
        .def_rw("is_sent_anyway", &Epoch::is_sent_anyway)
        .def_rw("is_clocked", &Epoch::is_clocked)
        .def_rw("is_plain", &Epoch::is_plain)
        .def_rw("is_judged", &Epoch::is_judged)
        .def_rw("opened", &Epoch::opened)
        .def_ro("attended", &Epoch::attended)
        .def_ro("sent", &Epoch::sent)
        .def_prop_ro("wait_for", [](const Epoch &self) { return self.wait_for.size(); })
        .def_ro("refused", &Epoch::refused)
        .def_prop_rw("error", [](const Epoch &self) { return or_none(self.error); },
                     [](Epoch &self, nb::object error) { self.error = std::move(error); })
        .def_ro("counts", &Epoch::counts)
        .def_ro("launches", &Epoch::launches)
        .def_ro("block", &Epoch::block)
        .def_ro("groups", &Epoch::groups)
        .def_ro("foreseen", &Epoch::foreseen)
        .def_ro("is_replay", &Epoch::is_replay)
        .def_prop_ro("region", [](const Epoch &self) { return or_none(self.region); })
        .def_prop_rw("resident", [](const Epoch &self) { return or_none(self.resident); },
                     [](Epoch &self, nb::object resident) { self.resident = std::move(resident); })
        .def_prop_rw("segment", [](const Epoch &self) { return or_none(self.segment); },
                     [](Epoch &self, nb::object segment) { self.segment = std::move(segment); })
        .def_prop_ro("_event", [](const Epoch &self) { return std::uintptr_t(self.event); })
        .def_prop_ro("_first", [](const Epoch &self) { return std::uintptr_t(self.first); })
        .def_prop_ro("_last", [](const Epoch &self) { return std::uintptr_t(self.last ? self.last : self.first); })
        .def_prop_ro("_status", [](const Epoch &self) {
            return nb::bytes(static_cast<const char *>(self.landing.bytes), 4 * self.status_words);
        });
}

}  // namespace

void add_sender(nb::module_ &module) {
    add_epochs(module);
    module.def("best_sections", [](std::size_t tasks, const std::vector<std::pair<std::uint32_t, std::uint32_t>> &edges,
                                   double host_s, double device_s, std::size_t least, double gain) {
        std::vector<Graph::Edge> all;
        for (const auto &[above, below] : edges) all.push_back({above, below});
        return best_sections(tasks, all, host_s, device_s, {least, gain});
    }, "tasks"_a, "edges"_a, "host_s"_a, "device_s"_a, "least"_a, "gain"_a);
    nb::class_<Sender>(module, "Sender", nb::type_slots(collected<Sender>))
        .def(nb::init<nb::object, nb::object, nb::object, nb::tuple, bool, std::uint32_t>(), "table"_a, "memory"_a,
             "constants"_a, "classes"_a, "on_cpu"_a, "units"_a)
        .def_ro("launches", &Sender::launches)
        .def_ro("epochs_sent", &Sender::epochs_sent)
        .def_ro("waits", &Sender::waits)
        .def_rw("tasks_sent", &Sender::tasks_sent)
        .def_rw("cuts", &Sender::cuts)
        .def_rw("newest_number", &Sender::newest_number)
        .def_rw("is_timed", &Sender::is_timed)
        .def_rw("by_itself", &Sender::by_itself)
        .def_rw("on_words", &Sender::on_words, nb::arg().none())
        .def("_set", [](Sender &self, std::uint32_t polls, std::uint32_t turns, double slice_s,
                        nb::object order, std::uint32_t window, std::size_t most_tasks,
                        std::size_t most_entries, std::size_t few) {
            self.polls = polls, self.turns = turns, self.slice_s = slice_s;
            self.order = std::move(order), self.window = window, self.most_tasks = most_tasks, self.most_entries = most_entries;
            self.few = few;
            self.tell();
        }, "polls"_a, "turns"_a, "slice_s"_a, "order"_a.none(), "window"_a,
             "most_tasks"_a, "most_entries"_a, "few"_a)
        .def("join", &Sender::join)
        .def("_requeue", &Sender::requeue, "queue"_a, "lanes"_a, "is_timed"_a)
        .def_prop_ro("open", &Sender::open)
        .def_prop_ro("newest", &Sender::newest)
        .def_prop_ro("sent", [](const Sender &self) {
            nb::list all;
            for (const Owned<Epoch> &one : self.sent()) all.append(one.owner());
            return all;
        })
        .def_prop_ro("has_any", &Sender::has_any)
        .def_prop_ro("has_sent", &Sender::has_sent)
        .def_prop_ro("unsent", &Sender::unsent)
        .def_prop_ro("in_hand", &Sender::in_hand)
        .def("find", &Sender::find, "number"_a)
        .def("take_ended", &Sender::take_ended)
        .def("new_epoch", [](Sender &self, nb::handle scheduler, bool is_sent_anyway) {
            return self.new_epoch(scheduler, is_sent_anyway).owner();
        }, "scheduler"_a, "is_sent_anyway"_a)
        .def("open_for", &Sender::open_for, "scheduler"_a, "is_sent_anyway"_a)
        .def("shut", &Sender::shut)
        .def("attend", &Sender::attend)
        .def("leave_alone", &Sender::leave_alone)
        .def("grow_to", &Sender::grow_to, "tasks"_a)
        .def("is_due", &Sender::is_due)
        .def("follow", &Sender::follow, "epoch"_a, "number"_a)
        .def("send_open", &Sender::send_open, "opens"_a)
        .def("push", &Sender::push, "epoch"_a)
        .def("replay", &Sender::replay, "scheduler"_a, "command"_a, "access"_a, "footprint"_a, "resident"_a,
             "writes"_a.none())
        .def("send_resident", &Sender::send_resident, "epoch"_a, "resident"_a, "writes"_a.none(), "status_words"_a,
             "rounds"_a)
        .def("has_ended_well", &Sender::has_ended_well, "epoch"_a)
        .def("let_go", &Sender::let_go, "epoch"_a, "tasks"_a, "well"_a)
        .def("let_go_of_all", &Sender::let_go_of_all)
        .def("land_in", [](Sender &self, nb::object make) { self.landings.use(std::move(make)); }, "make"_a.none())
        .def_prop_ro("places", [](const Sender &self) {
            return std::make_pair(self.landings.taken(), self.landings.free());
        });
}

}  // namespace acs_cl
