// Launches all bands of a launch by one call. The arguments are bound once. Each band is a launch with its own bytes.
// It goes to a lane with an offset, or into the open epoch with some of the tiles.

#include <list>
#include <stdexcept>

#include "launch/caller.hpp"
#include "table/ends.hpp"

namespace acs_cl {

namespace {

// Makes a handle of launches `first` to `last`, which touch `touched` together.
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

// Whether all bands may go now.
bool may_go(Table &table, const CutPlan &cut) {
    const std::size_t many = cut.bands.size();
    if (!cut.is_recorded())
        // if something is held, bytes may still be poisoned; the launch stays whole, so that it fails as a whole
        return !table.has_watched() && table.is_plain() && table.has_room(many);
    if (!table.scheduler.is(cut.scheduler) && !table.open_for(cut.scheduler)) return false;
    return table.takes_more() && table.has_room(many);
}

void record_all(const Bound &bound, const CutPlan &cut, std::vector<Touched> &shares) {
    for (std::size_t at = 0; at < shares.size(); at++) {
        // a remembered epoch ends behind a whole launch, and bands of another cut have other records
        if (bound.table.forecast.is_complete()) throw std::logic_error("an epoch ended between the bands of a launch");
        shares[at].renew(*bound.table.hazards);
        bound.record(cut, cut.bands[at], shares[at]);
    }
}

// False with an error.
bool enqueue_all(Bound &bound, PyObject *engine, const CutPlan &cut, std::vector<Touched> &shares) {
    Table &table = bound.table;
    for (std::size_t at = 0; at < shares.size(); at++) {
        shares[at].renew(*table.hazards);
        if (bound.enqueue(cut, cut.bands[at], shares[at])) continue;
        if (!engine_takes_over(engine, table.number, at > 0)) return false;
    }
    return true;
}

}  // namespace

PyObject *launch_bands(Caller *self, PyObject *const *args, std::size_t many, PyObject *asked,
                       std::size_t &made) {
    Bound bound(*self->plan, self->engine);
    Table &table = bound.table;
    if (many != bound.plan.parameters.size() + 2 || !bound.begin(args[0], args[1], Py_None, false)) return nullptr;
    const auto now = [&](const CutPlan &one) { return may_go(table, one); };
    const std::shared_ptr<CutPlan> cut = bound.cut(asked, now);
    if (!cut || !bound.start(*cut)) return nullptr;
    for (std::size_t at = 0; at < bound.plan.parameters.size(); at++)
        if (!bound.take(at, args[at + 2])) return nullptr;
    std::vector<Touched> shares;
    if (!bound.share_out(*cut, shares) || !bound.finish(nullptr)) return nullptr;
    const std::list<Holding> held(shares.begin(), shares.end());
    const std::int64_t before = table.number;
    nb::object handle = handle_of(bound, self->engine, before + 1, before + std::int64_t(shares.size()));
    // the collector of cycles may have run meanwhile, and with it any code
    if (table.number != before || !may_go(table, *cut)) return nullptr;
    if (cut->is_recorded()) {
        record_all(bound, *cut, shares);
    } else {
        if (!table.lock->try_take()) return nullptr;
        const Taken taken(table.lock);
        if (!enqueue_all(bound, self->engine, *cut, shares)) return nullptr;
    }
    made = shares.size();
    return handle.release().ptr();
}

}  // namespace acs_cl
