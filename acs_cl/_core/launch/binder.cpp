// Binds the arguments of a kernel for Python: what the driver takes, and the bytes that are touched.

// Long because: the description of a parameter, the binding of its argument, and the record for Python belong together.

#include "launch/binder.hpp"

#include <stdexcept>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "launch/reach.hpp"

namespace acs_cl {

namespace {

constexpr std::size_t MOST_KEPT = 4096;      // launches whose outcome is kept
constexpr std::size_t MOST_ACCESSES = 8192;  // views for which their accesses are kept

nb::object long_of(Wide value) {
    return value < 0 ? nb::int_(std::int64_t(value)) : nb::int_(std::uint64_t(value));
}

nb::tuple tuple_of(const access::Rectangles &rectangles) {
    nb::list made;
    for (const auto &[start, pitch, rows, width] : rectangles)
        made.append(nb::make_tuple(long_of(start), long_of(pitch), long_of(rows), long_of(width)));
    return nb::tuple(made);
}

nb::dict dict_of(const access::Outcome &outcome) {
    static const nb::handle type = named_tuple("acs_cl.access.binder", "Reached");
    nb::dict made;
    for (const auto &[parameter, one] : outcome) {
        const nb::object reads = one.is_whole ? nb::none() : nb::object(tuple_of(one.reads));
        const nb::object writes = one.is_whole ? nb::none() : nb::object(tuple_of(one.writes));
        made[nb::int_(parameter)] = named(type, nb::make_tuple(reads, writes, nb::str(one.why.c_str())));
    }
    return made;
}

access::Launched::Three three(nb::handle given) {
    access::Launched::Three made{};
    std::size_t axis = 0;
    for (nb::handle one : given)
        if (axis < 3) made[axis++] = access::whole(one);
    return made;
}

nb::object sizes_of(const access::Launched::Three &sizes, std::size_t axes) {
    nb::list made;
    for (std::size_t axis = 0; axis < axes; axis++) made.append(long_of(sizes[axis]));
    return nb::tuple(made);
}

std::vector<Parameter> parameters_of(nb::handle given) {
    std::vector<Parameter> made;
    for (nb::handle item : given) {
        const auto code = nb::cast<std::string>(item[0]), mode = nb::cast<std::string>(item[1]);
        const auto has = [&](char one) { return mode.find(one) != std::string::npos; };
        made.push_back({code.at(0), 0, has('r'), has('w'), nb::cast<std::size_t>(item[2])});
    }
    return made;
}

// An argument of a launch in the form for the driver.
struct Argument {
    nb::object driven, spans;  // `spans`: of memory, what it touches
    bool is_placed = false;    // it is one span, and begins with its first byte
    bool is_value = false;
};

// Takes an argument. False: it is not plain.
bool take(const Parameter &one, PyObject *value, nb::handle home, bool is_usual, Argument &taken) {
    View *view = view_of(value);
    if (view && one.code == 'P' && view->home == home.ptr()) {
        taken = {nb::borrow(view->driven()), nb::borrow(view->all_spans()), true};
        if (!taken.driven.is_valid() || !taken.spans.is_valid()) throw nb::python_error();
    } else if (is_usual && PyTuple_Check(value) && PyTuple_GET_SIZE(value) == 4) {  // a `Resolved`
        taken = {nb::borrow(PyTuple_GET_ITEM(value, 0)), nb::borrow(PyTuple_GET_ITEM(value, 1)),
                 PyTuple_GET_ITEM(value, 3) == Py_True};
    } else if (is_usual || (one.code == 'L' && Py_TYPE(value) == local_type)) {
        taken.driven = nb::borrow(value);
        taken.is_value = PyBytes_Check(value);
    } else if (one.code == 'v') {
        const ValueBytes bytes(value, one.nbytes);
        if (!bytes.data) return false;
        taken.driven = nb::bytes(bytes.data, one.nbytes);
        taken.is_value = true;
    } else {
        char bytes[8];
        if (!is_number(one.code) || !put_number(one.code, value, bytes)) return false;
        taken.driven = nb::bytes(bytes, one.nbytes);
        taken.is_value = true;
    }
    return true;
}

}  // namespace

Binder::Binder(nb::handle given, nb::handle functions, std::vector<std::uint16_t> needed, nb::handle asked,
               nb::tuple besides)
    : parameters(parameters_of(given)), numbers(std::move(needed)), has_ranges(!functions.is_none()),
      more(std::move(besides)) {
    for (std::uint16_t index : numbers)
        if (index >= parameters.size() || !is_number(parameters[index].code))
            throw std::invalid_argument("ranges depend on numbers only");
    if (has_ranges) try {
        outline.emplace(functions);
    } catch (const std::invalid_argument &) {  // operations that are nested too deeply
    }
    if (asked.is_none()) return;
    group = three(asked);
    for (Wide &size : *group)
        if (!size) size = 1;
}

access::Outcome Binder::run(access::Launched launch) {
    if (!launch.local && group) {  // a kernel's attribute names three sizes always
        launch.local = group;
        for (std::size_t axis = launch.axes; axis < 3; axis++) (*launch.local)[axis] = 1;
    }
    std::optional<access::Outcome> found;
    if (outline) found = outline->run(launch);
    if (found) return std::move(*found);
    access::Outcome whole;
    for (std::size_t index = 0; index < parameters.size(); index++)
        if (parameters[index].code == 'P') whole[index] = access::WHOLE;
    return whole;
}

Binder::Known *Binder::reach(const access::Launched &launch, bool always) {
    const auto found = known.find(launch);
    if (found != known.end()) return &found->second;
    if (!always && most >= 0 && runs() >= most) return nullptr;
    if (known.size() >= MOST_KEPT) {
        known.clear();
        many_accesses = 0;
    }
    return &known.emplace(launch, Known{run(launch), {}}).first->second;
}

Binder::Narrowed &Binder::access(Known &of, const Views &views) {
    if (many_accesses >= MOST_ACCESSES) {
        for (auto &[launch, one] : known) one.accesses.clear();
        many_accesses = 0;
    }
    const auto [place, is_new] = of.accesses.try_emplace(views);
    many_accesses += is_new;
    return place->second;
}

// Returns what the outline may ask about. Raises if these are no sizes of a launch.
access::Launched Binder::launched(nb::handle global, nb::handle local, nb::handle offset, nb::handle values,
                                  nb::handle groups) const {
    Sizes sizes;
    if (!take_sizes(global.ptr(), local.ptr(), sizes) || !take_offset(offset.ptr(), sizes))
        throw std::invalid_argument("got no sizes of a launch");
    access::Launched launch = launched_of(sizes);
    std::size_t at = 0;
    for (nb::handle value : values) {
        if (const auto number = access::wide_of(value)) launch.numbers[numbers.at(at)] = *number;
        at++;
    }
    if (groups.is_none() || !(launch.local || group)) return launch;
    launch.groups.emplace();
    std::size_t axis = 0;
    for (nb::handle one : groups) {
        const auto ends = three(one);
        if (axis < 3) (*launch.groups)[axis++] = {ends[0], ends[1]};
    }
    return launch;
}

nb::object Binder::access_of(const access::Outcome &outcome, const Views &views) const {
    nb::list reads, writes;
    std::size_t view = 0;
    for (std::size_t index = 0; index < parameters.size(); index++) {
        const Parameter &one = parameters[index];
        if (one.code != 'P') continue;
        const access::Reached &reached = reached_of(outcome, index);
        const Span &span = views.at(view++);
        if (one.read)
            for (const Span &part : cut(span, part_of(reached.is_whole, reached.reads)))
                reads.append(object_of(part));
        if (one.written)
            for (const Span &part : cut(span, part_of(reached.is_whole, reached.writes)))
                writes.append(object_of(part));
    }
    return new_access(nb::tuple(reads), nb::tuple(writes));
}

// Returns the access to whole views. `spans`: of each parameter; null: it is no memory.
nb::object Binder::whole_of(const std::vector<nb::object> &spans) const {
    nb::list reads, writes;
    for (std::size_t index = 0; index < spans.size(); index++) {
        if (!spans[index].is_valid()) continue;
        for (nb::handle span : spans[index]) {
            if (parameters[index].read) reads.append(span);
            if (parameters[index].written) writes.append(span);
        }
    }
    for (nb::handle span : more) {
        reads.append(span);
        writes.append(span);
    }
    return new_access(nb::tuple(reads), nb::tuple(writes));
}

// Returns an `Outside`: an access that launches surely make and that has no byte in its argument, or one that they may
// make to an argument of no bytes. Arguments of fewer are left out. None: there is none.
nb::object Binder::outside_of(const access::Outcome &outcome, const std::vector<Wide> &nbytes) const {
    static const nb::handle type = named_tuple("acs_cl.access.binder", "Outside");
    const auto made = [&](std::size_t index, Wide byte, bool is_write, bool is_sure) {
        return named(type, nb::make_tuple(index, long_of(byte), is_write, is_sure));
    };
    for (const bool is_write : {true, false})
        for (const auto &[index, one] : outcome) {
            const access::Sure &sure = is_write ? one.surely_written : one.surely_read;
            if (nbytes.at(index) < 0) continue;
            if (const auto at = sure.outside(nbytes[index]); at && access::is_short(*at))
                return made(index, *at, is_write, true);
        }
    for (const auto &[index, one] : outcome)
        if (nbytes.at(index) == 0 && (one.is_whole || !one.reads.empty() || !one.writes.empty()))
            return made(index, 0, parameters[index].written, false);
    return nb::none();
}

// Returns the narrowed access. Null: it is unknown. While spans are made for Python, other threads may forget what is
// kept.
Binder::Narrowed Binder::narrowed(const access::Launched &launch, const Views &views) {
    Known *found = reach(launch);
    if (!found) return {};
    if (const Narrowed kept = access(*found, views); kept.access.is_valid()) return kept;
    const access::Outcome reached = found->reached;
    std::vector<Wide> nbytes(parameters.size(), -1);
    std::size_t view = 0;
    for (std::size_t index = 0; index < parameters.size(); index++) {
        if (parameters[index].code != 'P') continue;
        const Span &span = views[view++];
        if (span.base > 0) nbytes[index] = span.end() - span.start;  // of the runtime's own
    }
    const Narrowed made{access_of(reached, views), outside_of(reached, nbytes)};
    if ((found = reach(launch))) access(*found, views) = made;
    return made;
}

nb::object Binder::bind(nb::handle home, nb::handle global, nb::handle local, nb::handle offset, nb::handle args,
                        bool are_usual, bool narrows) {
    static const nb::handle type = named_tuple("acs_cl.access.binder", "Bound");
    const Items given(args.ptr());
    if (std::size_t(given.end() - given.begin()) != parameters.size()) return nb::none();
    nb::list pointers, values;
    std::vector<nb::object> spans(parameters.size());
    std::map<std::size_t, Wide> known_numbers;
    Views views;
    std::vector<Wide> lacking;  // of each argument: none, if it has no memory, else fewer; empty: all have some
    bool is_known = has_ranges;
    for (std::size_t index = 0; index < parameters.size(); index++) {
        const Parameter &one = parameters[index];
        Argument taken;
        if (!take(one, given.begin()[index], home, are_usual, taken)) return nb::none();
        nb::list &turns = taken.is_value ? values : pointers;
        turns.append(index);
        turns.append(taken.driven);
        spans[index] = taken.spans;
        if (taken.is_value && is_number(one.code) && PyBytes_GET_SIZE(taken.driven.ptr()) == Py_ssize_t(one.nbytes))
            known_numbers[index] = number_of(one.code, PyBytes_AS_STRING(taken.driven.ptr()));
        if (one.code != 'P') continue;
        if (taken.driven.is_none()) {
            lacking.resize(parameters.size(), -1);
            lacking[index] = 0;
        }
        is_known = is_known && taken.is_placed && nb::len(taken.spans) == 1;
        if (is_known) views.push_back(span_of(nb::object(taken.spans[0]).ptr()));
    }
    bool is_counted = has_ranges;
    for (std::uint16_t index : numbers) is_counted = is_counted && known_numbers.count(index);
    is_known = is_known && is_counted;
    const nb::object whole = whole_of(spans);
    nb::object access = whole, placed = nb::none(), counted = nb::none(), outside = nb::none();
    nb::list needed;
    if (is_counted)
        for (std::uint16_t index : numbers) needed.append(long_of(known_numbers[index]));
    if (is_known) {
        nb::list all;
        for (const Span &view : views) all.append(object_of(view));
        placed = nb::tuple(all);
        counted = nb::tuple(needed);
    }
    if (is_known && narrows) {
        const access::Launched launch = launched(global, local, offset, counted, nb::none());
        if (const Narrowed found = narrowed(launch, views); found.access.is_valid())
            access = found.access, outside = found.outside;
    } else if (is_counted && narrows && !lacking.empty()) {
        if (const Known *found = reach(launched(global, local, offset, needed, nb::none())))
            outside = outside_of(found->reached, lacking);
    }
    return named(type, nb::make_tuple(nb::tuple(pointers), nb::tuple(values), access, whole, placed, counted, outside));
}

nb::object Binder::touched(nb::handle given, nb::handle values, nb::handle global, nb::handle local,
                           nb::handle offset, nb::handle groups) {
    Views views;
    for (PyObject *span : Items(given.ptr())) views.push_back(span_of(span));
    return access_of(run(launched(global, local, offset, values, groups)), views);
}

nb::dict Binder::reached(nb::handle global, nb::handle local, nb::handle offset, nb::handle values,
                         nb::handle groups) {
    const access::Launched launch = launched(global, local, offset, values, groups);
    if (launch.groups) return dict_of(run(launch));
    const access::Outcome found = reach(launch, true)->reached;
    return dict_of(found);
}

// Returns the spans of an access that has one for each parameter in memory. None: it has not.
std::optional<Binder::Views> Binder::views_of(nb::handle access) const {
    const nb::object of_reads = access[0], of_writes = access[1];
    const Items reads(of_reads.ptr()), writes(of_writes.ptr());
    auto read = reads.begin(), written = writes.begin();
    Views views;
    for (const Parameter &one : parameters) {
        if (one.code != 'P') continue;
        if ((one.read && read == reads.end()) || (one.written && written == writes.end())) return std::nullopt;
        views.push_back(one.read || one.written ? span_of(one.read ? *read : *written) : Span{});
        read += one.read;
        written += one.written;
    }
    return read == reads.end() && written == writes.end() ? std::optional(views) : std::nullopt;
}

nb::list Binder::outcomes(nb::handle access) {
    static const nb::handle type = named_tuple("acs_cl.access.binder", "Outcome");
    const std::optional<Views> whole = views_of(access);
    nb::list made;
    const std::map<access::Launched, Known> now = known;  // other threads may change it meanwhile
    for (const auto &[launch, one] : now) {
        std::optional<Views> of;
        for (const auto &[views, kept] : one.accesses)
            if ((kept.access.is_valid() ? kept.access : access_of(one.reached, views)).equal(access)) of = views;
        if (!of && whole && access_of(one.reached, *whole).equal(access)) of = whole;
        if (!of) continue;
        const bool starts = launch.offset != access::Launched::Three{};
        const nb::object local = launch.local ? sizes_of(*launch.local, launch.axes) : nb::none();
        nb::list needed;
        for (std::uint16_t index : numbers) needed.append(long_of(launch.numbers.at(index)));
        nb::dict views;
        std::size_t view = 0;
        for (std::size_t index = 0; index < parameters.size(); index++)
            if (parameters[index].code == 'P') views[nb::int_(index)] = object_of(of->at(view++));
        made.append(named(type, nb::make_tuple(
            nb::make_tuple(sizes_of(launch.sizes, launch.axes), local,
                           starts ? sizes_of(launch.offset, launch.axes) : nb::none()),
            nb::tuple(needed), views, dict_of(one.reached))));
    }
    return made;
}

void add_binder(nb::module_ &module) {
    nb::class_<Binder>(module, "Binder")
        .def(nb::init<nb::handle, nb::handle, std::vector<std::uint16_t>, nb::handle, nb::tuple>(),
             nb::arg("parameters"), nb::arg("functions").none(), nb::arg("numbers"), nb::arg("group").none(),
             nb::arg("more"))
        .def_ro("has_ranges", &Binder::has_ranges)
        .def_ro("numbers", &Binder::numbers)
        .def_rw("most", &Binder::most)
        .def_prop_ro("runs", &Binder::runs)
        .def("bind", &Binder::bind, nb::arg("home"), nb::arg("global_size"), nb::arg("local_size").none(),
             nb::arg("offset").none(), nb::arg("args"), nb::arg("are_usual"), nb::arg("narrows"))
        .def("touched", &Binder::touched, nb::arg("views"), nb::arg("numbers"), nb::arg("global_size"),
             nb::arg("local_size").none(), nb::arg("offset").none(), nb::arg("groups").none())
        .def("reached", &Binder::reached, nb::arg("global_size"), nb::arg("local_size").none(),
             nb::arg("offset").none(), nb::arg("numbers"), nb::arg("groups").none())
        .def("outcomes", &Binder::outcomes, nb::arg("access"));
}

}  // namespace acs_cl
