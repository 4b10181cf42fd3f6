// The bands of a launch by one call: its arguments are bound once, and each band goes to a lane as a launch with an
// offset and with bytes of its own.

#include "launch/caller.hpp"
#include "table/ends.hpp"

namespace acs_cl {

namespace {

// A handle of launches `first` to `last`, which touch `touched` together.
nb::object handle_of(const Bound &bound, PyObject *engine, std::int64_t first, std::int64_t last) {
    static PyObject *const runs_name = PyUnicode_InternFromString("_runs");
    nb::object handle = nb::steal(
        new_handle(engine, bound.plan.name.ptr(), last, bound.touched, nullptr, cut_handle_type));
    const nb::object numbers = nb::steal(PyObject_CallFunction(
        reinterpret_cast<PyObject *>(&PyRange_Type), "LL", (long long)first, (long long)last + 1));
    if (!handle.is_valid() || !numbers.is_valid() ||
        PyObject_SetAttr(handle.ptr(), runs_name, nb::make_tuple(numbers).ptr()))
        throw PythonError();
    return handle;
}

// What bands touch, while a driver is called without the GIL.
struct AllHeld {
    explicit AllHeld(std::vector<Touched> &all) : all_(all) {
        for (const Touched &one : all_) one.hold();
    }
    ~AllHeld() {
        for (const Touched &one : all_) one.let_go();
    }
    AllHeld(const AllHeld &) = delete;
    AllHeld &operator=(const AllHeld &) = delete;

private:
    std::vector<Touched> &all_;
};

}  // namespace

PyObject *launch_bands(Caller *self, PyObject *const *args, std::size_t many, PyObject *asked,
                       std::size_t &made) {
    Bound bound(*self->plan, self->engine);
    Table &table = bound.table;
    if (many != bound.plan.parameters.size() + 2 || !bound.begin(args[0], args[1], false)) return nullptr;
    const std::shared_ptr<CutPlan> cut = bound.cut(asked);
    // where something is held, bytes may yet be poisoned: the launch goes as a whole, so that it fails as a whole
    if (!cut || !cut->stay.lasts(table) || table.has_watched() || !table.is_plain() ||
        !table.has_room(cut->bands.size()) || !bound.start(false))
        return nullptr;
    for (std::size_t at = 0; at < bound.plan.parameters.size(); at++)
        if (!bound.take(at, args[at + 2])) return nullptr;
    std::vector<Touched> shares;
    if (!bound.share_out(*cut, shares) || !bound.finish(nullptr) || !table.lock->try_take()) return nullptr;
    const Taken taken(table.lock);
    const std::int64_t before = table.number;
    nb::object handle = handle_of(bound, self->engine, before + 1, before + std::int64_t(shares.size()));
    const AllHeld held(shares);
    for (std::size_t at = 0; at < shares.size(); at++) {
        shares[at].renew(*table.hazards);
        if (bound.enqueue(*cut, cut->bands[at], shares[at])) continue;
        if (!completed(self->engine, nullptr, table.number, nullptr, at > 0)) return nullptr;
        if (table.epoch(table.number)) cut->stay.left = 0;
    }
    made = shares.size();
    return handle.release().ptr();
}

}  // namespace acs_cl
