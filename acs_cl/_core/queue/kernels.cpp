// Kernels of an `acs.Queue` as launches of the core: tracking.hpp says when.

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>

#include <nanobind/stl/string.h>

#include "queue/tracking.hpp"

namespace acs_cl {

namespace {

// ---- arguments of a kernel -------------------------------------------------------------------------

// Returns what an object is for a kernel: memory ('P'), memory at an address ('S'), or anything else ('L'). 0: it
// is left to Python.
char kind_of(const Classes &classes, PyObject *object) {
    if (is_a(object, classes.svm)) return 'S';
    const bool is_no_bytes = object == Py_None || is_a(object, classes.local);
    if (is_no_bytes || is_a(object, classes.sampler)) return 'L';
    return is_a(object, classes.memory) ? 'P' : 0;
}

// Sets arguments of a kernel by its plan. Functions return false if one is left to Python.
class Setting {
public:
    Setting(Tracker *tracker, SetArguments &arguments, const LaunchPlan &of)
        : self(tracker), to(arguments), plan(of), classes(tracker->queues->classes()) {}

    bool put_object(std::size_t index, PyObject *object) {
        SetArguments::Object &argument = to.objects[index];
        if (argument.object.is(object)) return true;
        const char kind = kind_of(classes, object);
        if (!kind) return false;
        nb::object known;
        if (kind != 'L') {
            known = known_memory(self, object);
            if (!known.is_valid() || !put_sizes(index, object)) return false;
        }
        // NVIDIA's driver refuses a buffer if the same kernel was once given an address
        if (kind != argument.kind) to.is_first = false;
        const bool was_held = argument.is_held();
        argument = {nb::borrow(object), std::move(known), kind};
        to.missing &= ~(std::uint64_t(1) << index);
        if (was_held || argument.is_held()) to.held.reset();
        return true;
    }

    bool put_bytes(std::size_t index, PyObject *object) {
        if (PyBytes_CheckExact(object))
            return put_value(index, PyBytes_AS_STRING(object), std::size_t(PyBytes_GET_SIZE(object)));
        Bytes bytes;
        return bytes.take(object, PyBUF_SIMPLE) && put_value(index, bytes.data(), bytes.nbytes());
    }

    // Reads what setters were given since the last read.
    bool read(KernelArguments *given) {
        int places[PLACES], many = 0;
        for (int place = 0; place < PLACES; place++)
            if (given->last[place] && given->turns[place] > to.read) places[many++] = place;
        std::sort(places, places + many,
                  [&](int one, int other) { return given->turns[one] < given->turns[other]; });
        for (int at = 0; at < many; at++) {
            const unsigned long long turn = given->turns[places[at]];
            if (!put_note(places[at], nb::borrow(given->last[places[at]]).ptr())) return to.is_known = false;
            to.read = turn;
        }
        return true;
    }

private:
    bool put_value(std::size_t index, const char *bytes, std::size_t nbytes) {
        const Parameter &one = plan.parameters[index];
        if (one.is_object() || nbytes != one.nbytes) return false;
        std::copy_n(bytes, nbytes, &to.bytes[one.at - HEAD_BYTES]);
        to.missing &= ~(std::uint64_t(1) << index);
        return true;
    }

    // Puts the sizes of an image, if launches depend on them.
    bool put_sizes(std::size_t index, PyObject *object) {
        const Parameter &one = plan.parameters[index];
        if (one.code != 'M' || !plan.binder || !plan.binder->is_needed(index)) return true;
        const auto sizes = sizes_of_image(object);
        if (sizes) std::memcpy(&to.bytes[one.at - HEAD_BYTES], sizes->data(), sizeof(*sizes));
        return sizes.has_value();
    }

    bool put(PyObject *at, PyObject *object, bool are_bytes) {
        const std::size_t index = PyLong_AsSize_t(at);
        if (index >= plan.parameters.size()) return PyErr_Clear(), false;
        if (plan.parameters[index].is_object()) return !are_bytes && put_object(index, object);
        return (are_bytes || !kind_of(classes, object)) && put_bytes(index, object);
    }

    // Puts a number in the format of `struct`.
    bool put_packed(PyObject *at, PyObject *code, PyObject *number) {
        const std::size_t index = PyLong_AsSize_t(at);
        if (index >= plan.parameters.size()) return PyErr_Clear(), false;
        if (!PyBytes_CheckExact(code) || PyBytes_GET_SIZE(code) != 1) return false;
        char which = PyBytes_AS_STRING(code)[0];
        if (which == 'c') which = 'b';
        if (which == 'l' || which == 'L') which = sizeof(long) == 8 ? which + 5 : which - 3;
        const std::size_t nbytes = which == 'P' ? 0 : number_bytes(which);
        char value[8];
        return nbytes && put_number(which, number, value) && put_value(index, value, nbytes);
    }

    bool put_note(int place, PyObject *note) {
        if (place >= SETTERS) {
            const nb::object index = nb::steal(PyLong_FromLong(place - SETTERS));
            return put(index.ptr(), note, false);
        }
        const Py_ssize_t many = PyTuple_GET_SIZE(note), step = place == PACKED ? 3 : 2;
        for (Py_ssize_t at = 0; at + step <= many; at += step) {
            PyObject **items = &PyTuple_GET_ITEM(note, at);
            if (place == PACKED ? !put_packed(items[0], items[1], items[2])
                                : !put(items[0], items[1], place != MULTI))
                return false;
        }
        return true;
    }

    Tracker *self;
    SetArguments &to;
    const LaunchPlan &plan;
    const Classes &classes;
};

// ---- a launch ------------------------------------------------------------------------------------

// Binds the arguments of a kernel. Returns false if memory is left to Python.
bool bind(Tracker *self, const SetArguments &set, Bound &bound, bool &is_seen) {
    bound.take_bytes(set.bytes);
    for (std::size_t at = 0; at < set.objects.size(); at++) {
        const SetArguments::Object &one = set.objects[at];
        if (!bound.plan.parameters[at].is_object()) continue;
        Memory *memory = one.memory.is_valid() ? memory_in(one.memory) : nullptr;
        Node *node = memory ? memory->node_in(*self->table->hazards) : nullptr;
        if (memory && !node) return false;
        is_seen |= memory && memory->is_host;
        bound.take_object(at, one.object.ptr(), node, memory && memory->is_placed());
    }
    return bound.finish(nullptr);
}

// Returns a global size or offset in work-items, of one in groups (`g_times_l`). Null without an error: Python has to
// see it.
nb::object in_items(PyObject *groups, PyObject *local) {
    std::array<std::size_t, 4> many{}, items{};
    if (!take_size(groups, many.data(), 0) || !take_size(local, items.data()) || many[0] != items[0]) return {};
    nb::object size = nb::steal(PyTuple_New(Py_ssize_t(many[0])));
    for (std::size_t at = 1; size.is_valid() && at <= many[0]; at++) {
        if (many[at] > std::size_t(PY_SSIZE_T_MAX) / items[at]) return {};
        PyObject *one = PyLong_FromSize_t(many[at] * items[at]);
        if (!one) return PyErr_Clear(), nb::object();
        PyTuple_SET_ITEM(size.ptr(), Py_ssize_t(at - 1), one);
    }
    if (!size.is_valid()) PyErr_Clear();
    return size;
}

// Makes what a launch has to hold, since drivers do not hold memory at addresses.
void take_held(SetArguments &set) {
    if (set.held.is_valid()) return;
    nb::list held;
    for (const SetArguments::Object &one : set.objects)
        if (one.is_held()) held.append(one.object);
    set.held = held.size() ? nb::object(nb::tuple(held)) : nb::none();
}

// Returns false if nothing has changed, or with an error.
bool launch(Tracker *self, KernelArguments *given, SetArguments &set, LaunchPlan &plan, PyObject *const *args,
            const Upstream &upstream, Launched &launched) {
    const SetArguments::Use use(set);
    Table &table = *self->table;
    Bound bound(plan, self->engine);
    bool is_seen = false;
    const bool counts_groups = args[6] == Py_True && args[3] != Py_None;
    const auto size = [&](PyObject *one) {
        return counts_groups && one != Py_None ? in_items(one, args[3]) : nb::borrow(one);
    };
    const nb::object global = size(args[2]), offset = size(args[4]);
    if (!global.is_valid() || !offset.is_valid() || !Setting(self, set, plan).read(given) || set.missing ||
        !set.choose() || !bound.begin(global.ptr(), args[3], offset.ptr(), set.kernels[0].kernel) ||
        !bound.is_on_lanes() || !bound.start(false) || !bind(self, set, bound, is_seen))
        return false;
    take_held(set);
    const nb::object held = set.held;
    // again, because the memory of an event or of spans may have run code
    if (!plan.is_current() || !is_plain(self) || !table.lock->try_take()) return false;
    Taken taken(table.lock);
    if (!bound.set()) return false;
    const Holding holding(bound.touched);
    Queues &queues = *plan.lanes.queues;
    queues.follow(upstream, watch(self));
    const bool is_on_lane = bound.enqueue();
    if (is_on_lane && !held.is_none()) queues.keep(table.number, held);
    return note(self, is_on_lane, is_seen, launched);
}

// ---- kernels that a program makes anew -----------------------------------------------------------------

// A name of a program of the driver, in a runtime.
using Named = std::tuple<const Table *, void *, std::string>;

// Plans by the names of kernels: many programs make a kernel for each call. While a plan lives, its kernels keep their
// program, so that no other one gets its address.
std::map<Named, std::shared_ptr<LaunchPlan *>> by_name;

// Nothing: the driver does not tell.
std::optional<Named> name_of(const Tracker *self, const KernelArguments *given) {
    void *program = nullptr;
    char name[256];
    std::size_t nbytes = 0;
    if (driver.kernel_info(given->handle, KERNEL_PROGRAM, sizeof(program), &program, nullptr) || !program ||
        driver.kernel_info(given->handle, KERNEL_FUNCTION_NAME, sizeof(name), name, &nbytes) || !nbytes)
        return {};
    return Named(self->table, program, std::string(name, nbytes - 1));
}

void keep_plan(const Tracker *self, const KernelArguments *given, LaunchPlan &plan, const ByKinds &queued) {
    std::vector<ByKinds> &all = plan.queued;
    if (std::none_of(all.begin(), all.end(), [&](const ByKinds &one) { return one.kinds == queued.kinds; }) &&
        all.size() < ByKinds::MOST)
        all.push_back(queued);
    std::optional<Named> name = name_of(self, given);
    if (!name) return;
    if (by_name.find(*name) == by_name.end())  // a new one, so those that are gone make room
        for (auto one = by_name.begin(); one != by_name.end();)
            one = *one->second ? std::next(one) : by_name.erase(one);
    by_name[std::move(*name)] = plan.place;
}

// Gives a new kernel the plan of another one of its program and name, if there is one.
void find_plan(const Tracker *self, KernelArguments *given) {
    if (by_name.empty()) return;
    const std::optional<Named> name = name_of(self, given);
    const auto found = name ? by_name.find(*name) : by_name.end();
    if (found == by_name.end()) return;
    const LaunchPlan *plan = *found->second;
    if (!plan || !plan->is_current() || plan->table != self->table || plan->queued.empty()) return;
    auto set = std::make_unique<SetArguments>(*plan);
    set->kernels = plan->queued;
    set->is_first = false;
    given->set = set.release();
}

// ---- calls of Python -------------------------------------------------------------------------------

// Takes the arguments that a PyOpenCL kernel has now: `pointers` and `values` by index. From now on the core may
// make launches of `object`, by the plan of `own`, the runtime's kernel.
void set_arguments(nb::handle tracker, nb::handle kernel, nb::handle own, nb::object object, nb::dict pointers,
                   nb::dict values) {
    auto *self = reinterpret_cast<Tracker *>(tracker.ptr());
    KernelArguments *given = arguments_of(kernel.ptr());
    LaunchPlan *plan = caller(own)->plan;
    KernelVariant queued;
    queued.become(std::move(object));
    if (!given || !plan || !queued.kernel || (given->set && given->set->is_used())) return;
    const LaunchPlan::Use use(*plan);
    auto set = std::make_unique<SetArguments>(*plan);
    Setting setting(self, *set, *plan);
    for (std::size_t at = 0; at < set->objects.size(); at++) {
        const nb::int_ index(at);
        PyObject *memory = PyDict_GetItem(pointers.ptr(), index.ptr());
        PyObject *value = PyDict_GetItem(values.ptr(), index.ptr());
        const bool is_put = plan->parameters[at].is_object() ? memory && setting.put_object(at, memory)
                                                             : value && setting.put_bytes(at, value);
        if (!is_put) return;
    }
    set->kernels.push_back({set->kinds(), std::move(queued)});
    set->is_first = true;
    keep_plan(self, given, *plan, set->kernels[0]);
    // notes were taken when Python read them, so newer ones win
    if (given->set && given->set->is_used()) return;
    if (given->set && given->set->plan == set->plan) set->take_kernels(*given->set);
    forget(std::exchange(given->set, set.release()));
}

}  // namespace

PyObject *track_kernel(Tracker *self, PyObject *const *args) {
    // sizes of 0, which `allow_empty_ndrange` is about, are left to Python
    Upstream upstream;
    if (!PyBool_Check(args[6]) || !PyBool_Check(args[7]) || !is_plain(self) || !take_upstream(self, args[5], upstream))
        return nullptr;
    KernelArguments *given = arguments_of(args[1]);
    if (!given) return nullptr;
    if (!given->set) find_plan(self, given);
    if (!given->set) return nullptr;
    const nb::object lives = nb::borrow(reinterpret_cast<PyObject *>(self));
    const nb::object known = nb::borrow(reinterpret_cast<PyObject *>(given));
    nb::object event = new_event(self, KERNEL);
    SetArguments *set = given->set;
    LaunchPlan *plan = set && set->is_known ? *set->plan : nullptr;
    Launched launched;
    if (!plan || plan->table != self->table || !launch(self, given, *set, *plan, args, upstream, launched)) return nullptr;
    return after(self, launched) ? told(std::move(event), launched) : nullptr;
}

void forget(SetArguments *set) { SetArguments::forget(set); }

// Lets go of arguments that are out of date from now on, but not of the kernels that were found for them.
void outdate(SetArguments *&set) {
    if (!set) return;
    if (set->is_used()) return forget(std::exchange(set, nullptr));
    set->is_known = false;
    const nb::object held = std::exchange(set->held, {});  // they go last: that may run any code
    const std::vector<SetArguments::Object> objects = std::exchange(set->objects, {});
}

void add_kernels(nb::module_ &module) {
    module.def("set_arguments", set_arguments, "tracker"_a, "kernel"_a, "own"_a, "queued"_a, "pointers"_a, "values"_a);
}

}  // namespace acs_cl
