// The module that Python sees. acs_cl/core.py says where it replaces Python modules.

#include <nanobind/stl/tuple.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "driver/carrying.hpp"
#include "driver/queues.hpp"
#include "epoch/order.hpp"
#include "epoch/recorder.hpp"
#include "epoch/sender.hpp"
#include "hazards/python_hazards.hpp"
#include "launch/binder.hpp"
#include "launch/caller.hpp"
#include "launch/transfers.hpp"
#include "python/clock.hpp"
#include "python/collected.hpp"
#include "python/collector.hpp"
#include "python/gil.hpp"
#include "python/lock.hpp"
#include "python/turns.hpp"
#include "python/view.hpp"
#include "python/waiting.hpp"
#include "queue/bypass.hpp"
#include "queue/kernel_arguments.hpp"
#include "queue/tracking.hpp"
#include "several/objects.hpp"
#include "table/ends.hpp"
#include "table/table.hpp"

namespace acs_cl {

namespace {

// Ends the process without what libraries do at exit. A driver would free what a kernel or a compiler still uses,
// which is a crash (PoCL). `own`: which statuses of the program stay, if the C library tells them: those that
// report a failure, or any.
enum class Own { NONE, FAILED, ANY };
void leave_without_drivers(int status, [[maybe_unused]] Own own) {
    static int told;
    told = status;
#ifdef __GLIBC__
    static Own stays;
    stays = own;
    on_exit([](int its, void *) {
        const bool is_its = stays == Own::ANY || (stays == Own::FAILED && its);
        std::fflush(nullptr), std::_Exit(is_its ? its : told);
    }, nullptr);
#else
    std::atexit([] { std::fflush(nullptr), std::_Exit(told); });
#endif
}

// Ends the process once the calling thread has done nothing for so many seconds, or at the latest after LONGEST times as
// long. On a busy machine a thread may take seconds for a little work, and the process should end by itself then.
void end_once_idle(double seconds, int status) {
    constexpr int LONGEST = 10, LOOKS = 20;
    static constexpr std::chrono::milliseconds WORK{2};  // less may be a look at something that it waits for
    const ThreadClock clock = ThreadClock::own();
    std::thread([seconds, status, clock] {
        const double until = now_s() + LONGEST * seconds;
        auto before = clock.worked();
        // Looks are counted, not time: while this process has no processor there are none.
        for (int idle = 0; idle < LOOKS && now_s() < until; idle++) {
            std::this_thread::sleep_for(std::chrono::duration<double>(seconds / LOOKS));
            if (const auto now = clock.worked(); now >= before + WORK) before = now, idle = -1;
        }
        std::_Exit(status);
    }).detach();
}

// Returns how many more frames Python allows in the calling thread.
int frames_left() {
    const PyThreadState *thread = PyThreadState_Get();
#if PY_VERSION_HEX >= 0x030C0000
    return thread->py_recursion_remaining;
#elif PY_VERSION_HEX >= 0x030B0000
    return thread->recursion_remaining;
#else
    return Py_GetRecursionLimit() - thread->recursion_depth;
#endif
}

// The status of a process that would report success. 0: that stays.
int fails = 0;

// Registered when this is loaded, so that what drivers do at exit comes first.
void fail_if_asked() {
#ifdef __GLIBC__
    on_exit([](int its, void *) { if (fails && !its) std::fflush(nullptr), std::_Exit(fails); }, nullptr);
#else
    std::atexit([] { if (fails) std::fflush(nullptr), std::_Exit(fails); });
#endif
}

const std::string_view *some(nb::handle object, std::string_view &place) {
    if (object.is_none()) return nullptr;
    nb::bytes bytes = nb::cast<nb::bytes>(object);
    place = {bytes.c_str(), bytes.size()};
    return &place;
}

std::uint32_t add_task(Recorder &self, nb::bytes record, nb::handle blob, nb::handle shape, nb::handle upstream) {
    std::string_view blob_bytes, shape_bytes;
    Tasks others;
    for (PyObject *other : Items(upstream.ptr())) {
        std::int64_t number = whole_number(other);
        if (number < 0 || number >= self.tasks()) throw std::out_of_range("a task follows only those before it");
        others.push_back(std::uint32_t(number));
    }
    return self.add({record.c_str(), record.size()}, some(blob, blob_bytes), some(shape, shape_bytes), others);
}

// Returns the upstream task of each edge, the downstream task of each, and the tiles of each task.
nb::tuple edges_of(const Recorder &self) {
    nb::list above, below, tiles;
    for (auto [upstream, downstream] : self.graph.all_edges()) above.append(upstream), below.append(downstream);
    for (std::uint32_t task = 0; task < self.tasks(); task++) tiles.append(self.tiles(task));
    return nb::make_tuple(above, below, tiles);
}

// Returns its words, the place of block 0, and its length.
nb::tuple image_of(const Recorder &self, std::uint32_t spare, const std::vector<double> &priority, std::uint32_t window,
                   std::uint32_t blocks, bool gang) {
    Graph made;
    const Graph &sent = self.arranged(made, priority, window);
    Recorder::Layout at = self.layout(sent, spare, blocks);
    nb::object words = nb::steal(PyByteArray_FromStringAndSize(nullptr, 4 * Py_ssize_t(at.words)));
    if (!words.is_valid()) throw nb::python_error();
    char *bytes = PyByteArray_AS_STRING(words.ptr());
    std::memset(bytes, 0, 4 * std::size_t(at.words));
    self.write(sent, at, reinterpret_cast<std::uint32_t *>(bytes), window, gang);
    return nb::make_tuple(words, at.blocks, at.block_words);
}

}  // namespace

NB_MODULE(_core, module) {
    const char *names[KINDS] = {"RAW", "WAR", "WAW", "reuse", "any"};
    for (int kind = 0; kind < KINDS; kind++) kinds[kind] = PyUnicode_InternFromString(names[kind]);

    module.attr("INTERFACE") = 134;  // as acs_cl/core.py expects it
    module.attr("UPLOAD_BYTES") = UPLOAD_BYTES;
    module.attr("SOURCES") = ACS_CL_SOURCES;  // the digest that CMake made of them
#ifdef ACS_CL_PROFILED
    module.attr("IS_PROFILED") = true;
#else
    module.attr("IS_PROFILED") = false;
#endif

    nb::register_exception_translator([](const std::exception_ptr &error, void *) {
        try {
            std::rethrow_exception(error);
        } catch (const PythonError &) {  // it is set already
        }
    });

    module.def("heights", &heights, "upstream"_a, "downstream"_a, "took"_a, "edge"_a);
    module.def("sequence", &sequence, "upstream"_a, "downstream"_a, "keys"_a, "classes"_a);

    module.def("merged", [](nb::handle spans) { return listed(merged(PythonHazards::spans_of(spans))); }, "spans"_a);

    nb::class_<Footprint>(module, "Footprint").def_ro("record", &Footprint::record);

    nb::class_<PythonHazards>(module, "Hazards")
        .def(nb::init<>())
        .def("enter", &PythonHazards::enter, "number"_a, "reads"_a, "writes"_a)
        .def("enter_many", &PythonHazards::enter_many, "first"_a, "accesses"_a)
        .def("sharers", &PythonHazards::sharers, "reads"_a, "writes"_a)
        .def("_measure", &PythonHazards::measure, "number"_a, "accesses"_a, "window"_a)
        .def("footprint", &PythonHazards::footprint, "reads"_a, "writes"_a, "before"_a = nb::none())
        .def("enter_footprint", &PythonHazards::enter_footprint, "number"_a, "footprint"_a)
        .def("move", &PythonHazards::move, "footprint"_a, "base"_a, "spans"_a)
        .def("users", &PythonHazards::users, "base"_a)
        .def("is_used", &PythonHazards::is_used, "base"_a)
        .def("retire", &Hazards::retire)
        .def("forget", &Hazards::forget)
        .def("leave", &Hazards::leave)
        .def("take_up", &Hazards::take_up)
        .def("inherit", &Hazards::inherit)
        .def("is_live", &Hazards::is_live)
        .def_prop_ro("live", &Hazards::live)
        .def_prop_ro("spans", &Hazards::spans)
        .def_prop_ro("edges", &PythonHazards::counted)
        .def_ro("pruned", &Hazards::pruned)
        .def_prop_ro("_held", &Hazards::held)
        .def_rw("wide", &PythonHazards::wide)
        .def("looks_at", &PythonHazards::looks_at, "span"_a)
        .def_ro("compared", &Hazards::compared)
        .def_ro("listed", &Hazards::listed);

    nb::handle lock(reinterpret_cast<PyObject *>(lock_type()));
    if (!lock.is_valid()) throw nb::python_error();
    module.attr("Lock") = lock;
    if (!collector::watch()) throw nb::python_error();
    nb::handle leaving(reinterpret_cast<PyObject *>(leaving_type()));
    if (!leaving.is_valid()) throw nb::python_error();
    module.attr("Leaving") = leaving;
    module.def("use_main_thread", [](unsigned long thread) {
        signals::use_main_thread(thread);
        collector::go_on_alone();
        forget_waiters();
        turns::forget();
    }, "thread"_a);
    module.def("signals", &signals::many);
    module.def("interrupt_waits", &signals::interrupt_waits);
    module.def("may_hear", &signals::may_hear);
    module.def("hear", [] {
        if (!signals::hear()) throw nb::python_error();
    });
    module.def("want_turns", &turns::want, "does"_a);
    module.def("end_process", [](double seconds, int status, const std::string &own, nb::object keeps) {
        leave_without_drivers(status, own == "any" ? Own::ANY : own == "failed" ? Own::FAILED : Own::NONE);
        keeps.release();
        end_once_idle(seconds, status);
    }, "seconds"_a, "status"_a, "own"_a, "keeps"_a);
    fail_if_asked();
    module.def("fail_at_the_end", [](int status) { fails = status; }, "status"_a);
    // Python can be interrupted before the first line of a function that it calls. Here it cannot.
    module.def("call_to_the_end", [](nb::object call) {
        for (bool interrupted = false;; interrupted = true) {
            nb::object done = nb::steal(PyObject_CallFunctionObjArgs(
                call.ptr(), interrupted ? Py_True : Py_False, nullptr));
            if (done) return;
            if (!PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) throw PythonError();
            PyErr_Clear();
        }
    }, "call"_a);
    module.def("hold_finalizers", [](bool held) {
        if (held) {
            collector::pause();
            leftovers::enter();
        } else {
            collector::go_on();
            leftovers::leave();
        }
    }, "held"_a);
    module.def("let_go", [](nb::object object) { leftovers::drop(object.release().ptr()); }, "object"_a.none());
    module.def("need_stack", [](int frames) {
        if (frames_left() >= frames) return;
        PyErr_Format(PyExc_RecursionError, "no stack is left for %d more calls", frames);
        throw PythonError();
    }, "frames"_a);
    module.def("wait_for_event", [](std::uintptr_t event, double seconds) {
        Wait found = wait_for_event(reinterpret_cast<void *>(event), seconds);
        if (found == Wait::RAISED) throw PythonError();
        return found == Wait::ENDED;
    }, "event"_a, "seconds"_a = -1);
    using OnSide = std::tuple<std::uintptr_t, std::uintptr_t, std::size_t>;
    using Staged = std::tuple<std::uintptr_t, std::size_t, std::size_t>;
    module.def("carry", [](const std::vector<std::tuple<OnSide, OnSide, std::size_t, Staged>> &copies,
                           bool is_svm) {
        const auto side = [](const OnSide &of) {
            const auto &[queue, memory, offset] = of;
            return Side{reinterpret_cast<void *>(queue), reinterpret_cast<void *>(memory), offset};
        };
        std::vector<std::unique_ptr<Carrying>> all;
        for (const auto &[source, target, nbytes, staging] : copies) {
            const auto &[first, slot, slots] = staging;
            if (!slot || !slots) throw std::invalid_argument("a copy needs staging memory");
            all.push_back(std::make_unique<Carrying>(
                side(source), side(target), is_svm, nbytes,
                Slots{reinterpret_cast<char *>(first), slot, slots}));
        }
        const WithoutGil others;
        const std::int32_t status = carry(all);
        all.clear();  // waits for what is under way
        return status;
    }, "copies"_a, "is_svm"_a);
    module.def("bridge", [](std::uintptr_t event, std::uintptr_t user) {
        bridge(reinterpret_cast<void *>(event), reinterpret_cast<void *>(user));
    }, "event"_a, "user"_a);
    module.def("mark_host_task", [](bool runs) { runs_host_task = runs; }, "runs"_a);
    module.def("on_host_task", [] { return runs_host_task; });

    add_table(module);
    add_caller(module);
    add_plans(module);
    add_binder(module);
    add_indexing(module);
    add_many(module);
    add_prepared(module);
    add_bypass(module);
    add_kernel_arguments(module);
    add_commands(module);
    add_tracker(module);
    add_coherence(module);
    add_making(module);
    add_memory(module);
    add_sender(module);

    nb::class_<Recorder>(module, "Recorder")
        .def(nb::init<>())
        .def("add", &add_task, "record"_a, "blob"_a.none(), "task_shape"_a.none(), "upstream"_a)
        .def("_edges", &edges_of)
        .def("_image", &image_of, "spare"_a, "priority"_a, "window"_a, "blocks"_a, "gang"_a)
        .def_prop_ro("tasks", &Recorder::tasks)
        .def_ro("entries", &Recorder::entries)
        .def_ro("width", &Recorder::width);

    module.def("open_driver", &open_driver, "functions"_a);
    module.def("declare_memory", [](std::uintptr_t kernel, const std::vector<std::uintptr_t> &addresses) {
        std::vector<void *> all;
        for (std::uintptr_t one : addresses) all.push_back(reinterpret_cast<void *>(one));
        return declare_memory(reinterpret_cast<void *>(kernel), all);
    }, "kernel"_a, "addresses"_a);
    nb::class_<QueueKernel>(module, "QueueKernel").def(nb::init<nb::object>(), "kernel"_a);
    using Numbers = std::vector<std::uintptr_t>;
    nb::class_<FromC>(module, "FromC")
        .def(nb::init<Numbers, std::uintptr_t, bool, std::vector<Numbers>, std::uint32_t, bool>())
        .def("run", &FromC::run);
    nb::class_<Queues>(module, "Queues", nb::type_slots(collected<Queues>))
        .def(nb::init<nb::list, bool, bool, nb::tuple, nb::object>())
        .def("place_by", &Queues::place_by, "after"_a, "fresh"_a)
        .def("keep_machine_code_apart", &Queues::keep_machine_code_apart, "others"_a = nb::none(), "by_size"_a = true)
        .def("time_on", &Queues::time_on, "queue"_a)
        .def("upload_on", &Queues::upload_on, "queue"_a)
        .def("submit", &Queues::submit, "launch"_a, "behind"_a = nb::none(), "timed"_a = false)
        .def("join", &Queues::join, "table"_a)
        .def("read_now", &read_now, "engine"_a, "array"_a, "host"_a, "beside_counts"_a = false)
        .def("transfer", &transfer, "engine"_a, "target"_a, "source"_a, "copied"_a = false)
        .def("stage_in", [](Queues &self, nb::object make) { self.staging.use(std::move(make)); }, "make"_a)
        .def("land_in", [](Queues &self, nb::object make) { self.landings.use(std::move(make)); }, "make"_a.none())
        .def_prop_ro("places", [](const Queues &self) {
            return std::make_pair(self.landings.taken(), self.landings.free());
        })
        .def("add_word", [](Queues &self, nb::object memory, std::uint64_t address) {
            self.counts.add(std::move(memory), address);
        }, "memory"_a, "address"_a)
        .def("see", &Queues::see, "memory"_a, nb::keep_alive<1, 2>())
        .def_prop_ro("words", [](const Queues &self) { return self.counts.many(); })
        .def_prop_ro("free_words", [](const Queues &self) { return self.counts.free(); })
        .def("refused", [](Queues &self, std::int64_t number) { return self.counts.refused(number); }, "number"_a)
        .def("event", &Queues::event, "number"_a)
        .def("oldest", &Queues::oldest)
        .def("poll", &Queues::poll, "most"_a = 64)
        .def("poll_up_to", &Queues::poll_up_to, "number"_a)
        .def("wait", &wait_on_lane, "engine"_a, "number"_a)
        .def("flush", &Queues::flush)
        .def("forget", &Queues::forget)
        .def("used", &Queues::used)
        .def_ro("waits", &Queues::waits)
        .def_ro("by_host", &Queues::by_host)
        .def_ro("bare", &Queues::bare)
        .def_ro("narrow", &Queues::narrow)
        .def_rw("unasked_enough", &Queues::unasked_enough)
        .def_rw("clock_s", &Queues::clock_s, nb::arg().none())
        .def_prop_ro("in_flight", &Queues::in_flight);
}

}  // namespace acs_cl
