// Binds the arguments of a kernel for Python: what the driver takes, and the bytes that are touched.

// Long because: the description of a parameter, the binding of its argument, and the record for Python belong together.

#include "launch/binder.hpp"

#include <list>
#include <stdexcept>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "driver/memory.hpp"
#include "launch/declared.hpp"

namespace acs_cl {

namespace {

constexpr std::size_t MOST_KEPT = 4096;      // launches whose outcome is kept
constexpr std::size_t MOST_ACCESSES = 8192;  // views for which their accesses are kept
const Span NO_BYTES{-1, 0, 1, 1, 0};         // of an array without memory

nb::tuple tuple_of(const access::Rectangles &rectangles) {
    nb::list made;
    for (const auto &[start, pitch, rows, width] : rectangles)
        made.append(nb::make_tuple(python_number(start), python_number(pitch), python_number(rows), python_number(width)));
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
    for (std::size_t axis = 0; axis < axes; axis++) made.append(python_number(sizes[axis]));
    return nb::tuple(made);
}

std::vector<Parameter> parameters_of(nb::handle given) {
    std::vector<Parameter> made;
    for (nb::handle item : given) {
        const auto code = nb::cast<std::string>(item[0]), mode = nb::cast<std::string>(item[1]);
        const auto has = [&](char one) { return mode.find(one) != std::string::npos; };
        made.push_back({code.at(0), 0, has('r'), has('w'), nb::cast<std::size_t>(item[2]), has('o'),
                        nb::cast<std::size_t>(item[3])});
    }
    return made;
}

// An argument of a launch in the form for the driver.
struct Argument {
    nb::object driven, spans;  // `spans`: of memory, what it touches
    bool is_placed = false;    // it is one span, and begins with its first byte
    bool is_value = false;
    std::int64_t nbytes = FARTHEST;  // of an array's elements
};

// Takes an argument. False: it is not plain.
bool take(const Parameter &one, PyObject *value, nb::handle home, bool is_usual, Argument &taken) {
    View *view = view_of(value);
    if (view && one.code == 'P' && view->home == home.ptr() && one.may_begin_at(view->address)) {
        taken = {nb::borrow(view->driven()), nb::borrow(view->all_spans()), true, false, view->nbytes};
        if (!taken.driven.is_valid() || !taken.spans.is_valid()) throw nb::python_error();
    } else if (is_usual && PyTuple_Check(value) && PyTuple_GET_SIZE(value) == 5) {  // a `Resolved`
        taken = {nb::borrow(PyTuple_GET_ITEM(value, 0)), nb::borrow(PyTuple_GET_ITEM(value, 1)),
                 PyTuple_GET_ITEM(value, 3) == Py_True, false, PyLong_AsLongLong(PyTuple_GET_ITEM(value, 4))};
    } else if (is_usual || (one.code == 'L' && local_bytes(value))) {
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

// Returns the memory of an argument with such spans. `nbytes`: of its elements. `is_told`: the program declares ranges of
// it, which are counted from its first byte to its last one.
Binder::Memory memory_of(const nb::object &spans, std::int64_t nbytes, bool is_told) {
    Binder::Memory made{spans, false};
    std::int64_t end = 0;
    for (PyObject *one : Items(spans.ptr())) {
        const Span span = span_of(one);
        nbytes -= span.rows * span.width;
        if (end && is_told) made.span.start = std::min(made.span.start, span.start);
        else if (!end) made.span = span;
        end = std::max(end, span.end());
    }
    made.is_exact = nbytes >= 0;
    if (is_told && made.span.base != EVERYTHING) {
        const std::int64_t width = end - made.span.start;
        made.span = {made.span.base, made.span.start, width, 1, width};
    }
    return made;
}

// Returns rectangles, without what is behind so many bytes.
access::Rectangles rectangles_of(nb::handle given, Wide nbytes) {
    access::Rectangles made;
    for (nb::handle one : given) {
        const auto number = [&](int at) { return access::whole(nb::object(one[at])); };
        made.push_back(access::within({number(0), number(1), number(2), number(3)}, 0, nbytes));
    }
    return made;
}

// Puts what a program names in place of what was inferred for the arguments of which that is a part. `access`: what was
// inferred. `arguments`: the spans of each argument; None: it is no memory. `exact`: those among the named writes that
// are sure to be overwritten.
nb::object replaced(nb::handle access, nb::handle arguments, nb::handle reads, nb::handle writes, nb::handle exact) {
    std::list<std::vector<Span>> all;
    const auto spans_in = [&](nb::handle given) -> const std::vector<Span> & {
        std::vector<Span> &made = all.emplace_back();
        for (PyObject *one : Items(given.ptr())) made.push_back(span_of(one));
        return made;
    };
    Rest rest;
    for (nb::handle named : {reads, writes})
        for (const Span &one : spans_in(named)) rest.name(one);
    for (PyObject *argument : Items(arguments.ptr())) {
        if (argument == Py_None) continue;
        const std::vector<Span> &own = spans_in(argument);
        rest.add(own.data(), own.size());
    }
    const auto with = [&](nb::handle inferred, nb::handle said) {
        nb::list made;
        for (PyObject *one : Items(inferred.ptr()))
            if (rest.has(span_of(one))) made.append(nb::handle(one));
        made.extend(said);
        return nb::tuple(made);
    };
    nb::list overwrites;
    for (nb::handle one : exact)
        if (PySequence_Contains(reads.ptr(), one.ptr()) == 0) overwrites.append(one);
    return new_access(with(nb::object(access[0]), reads), with(nb::object(access[1]), writes), nb::tuple(overwrites));
}

}  // namespace

Binder::Binder(nb::handle given, nb::handle functions, nb::handle needed, nb::handle asked, nb::tuple besides)
    : parameters(parameters_of(given)), more(std::move(besides)) {
    for (nb::handle item : needed) {
        const auto code = nb::cast<std::string>(item[2]);
        const Needed one{nb::cast<std::uint16_t>(item[0]), nb::cast<std::uint16_t>(item[1]), code.at(0)};
        const Parameter own = one.parameter < parameters.size() ? parameters[one.parameter] : Parameter{};
        const bool is_part = (own.code == 'v' || own.code == 'M') && one.offset + number_bytes(one.code) <= own.nbytes;
        if ((!is_part && (one.code != own.code || one.offset)) || (one.code != 'P' && !is_number(one.code)))
            throw std::invalid_argument("ranges depend on numbers only");
        is_told |= one.code == 'P';
        numbers.push_back(one);
    }
    has_ranges = is_told || !functions.is_none();
    if (!functions.is_none()) try {
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
    if (is_told || (!always && most >= 0 && runs() >= most)) return nullptr;
    return &keep(launch, run(launch));
}

Binder::Known &Binder::keep(const access::Launched &launch, access::Outcome outcome) {
    if (known.size() >= MOST_KEPT) {
        known.clear();
        many_accesses = 0;
    }
    return known.insert_or_assign(launch, Known{std::move(outcome), {}}).first->second;
}

// Returns what a launch reaches by the ranges that the program declares.
access::Outcome Binder::evaluated(const access::Launched &launch, nb::handle ranges) {
    if (const Known *found = reach(launch)) return found->reached;
    nb::dict told;
    for (const auto &[index, number] : launch.numbers) told[nb::int_(index)] = python_number(number);
    const nb::object found = ranges(sizes_of(launch.sizes, launch.axes), sizes_of(launch.offset, launch.axes), told);
    access::Outcome made;
    for (std::size_t index = 0; index < parameters.size(); index++) {
        if (parameters[index].code != 'P') continue;
        if (!is_told_of(index)) {
            made[index] = access::WHOLE;
        } else if (launch.numbers.count(index)) {
            const nb::object own = found[nb::int_(index)];
            const auto part = [&](int at) { return rectangles_of(nb::object(own[at]), launch.numbers.at(index)); };
            made[index] = {false, "", part(0), part(1), part(2)};
        }
    }
    return keep(launch, std::move(made)).reached;
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
        if (const auto number = access::wide_of(value)) launch.numbers[numbers.at(at).place()] = *number;
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

// Returns what a launch touches that reaches this of its arguments. Null: all.
nb::object Binder::access_of(const access::Outcome *outcome, const Memories &memories) const {
    nb::list reads, writes, overwrites;
    for (std::size_t index = 0; index < memories.size(); index++) {
        const Memory &own = memories[index];
        if (!own.spans.is_valid()) continue;
        const Parameter &one = parameters[index];
        const access::Reached &reached = outcome ? reached_of(*outcome, index) : access::WHOLE;
        const auto add = [&](nb::list &to, const access::Rectangles &of) {
            if (reached.is_whole) return to.extend(own.spans);
            for (const Span &part : cut(own.span, part_of(false, of))) to.append(object_of(part));
        };
        if (one.read) add(reads, reached.reads);
        if (one.written) add(writes, reached.writes);
        if (one.written && (reached.is_whole ? one.overwritten && own.is_exact : !reached.overwritten.empty()))
            add(overwrites, reached.overwritten);
    }
    reads.extend(more);
    writes.extend(more);
    return new_access(nb::tuple(reads), nb::tuple(writes), nb::tuple(overwrites));
}

Binder::Memories Binder::memories_of(const Views &views) const {
    Memories made(parameters.size());
    auto view = views.begin();
    for (std::size_t index = 0; index < parameters.size(); index++) {
        if (!parameters[index].is_memory()) continue;
        made[index] = {nb::make_tuple(object_of(*view)), true, *view};
        view++;
    }
    return made;
}

// Returns an `Outside`: an access that launches surely make and that is not of its argument, or one that they may make
// to an argument of no bytes. `given`: the arguments' bytes. Without a base they are left out. None: there is none.
nb::object Binder::outside_of(const access::Outcome &outcome, const Views &given) const {
    static const nb::handle type = named_tuple("acs_cl.access.binder", "Outside");
    const auto made = [&](std::size_t index, Wide byte, bool is_write, bool is_sure) {
        return named(type, nb::make_tuple(index, python_number(byte), is_write, is_sure));
    };
    for (const bool is_write : {true, false})
        for (const auto &[index, one] : outcome) {
            const access::Sure &sure = is_write ? one.surely_written : one.surely_read;
            const Span &span = given.at(index);
            if (!span.base) continue;
            if (const auto at = sure.outside(span); at && access::is_short(*at)) return made(index, *at, is_write, true);
        }
    for (const auto &[index, one] : outcome)
        if (const Span &span = given.at(index); span.base && !span.width && (one.is_whole || !one.reads.empty() || !one.writes.empty()))
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
    Views given(parameters.size(), Span{});
    std::size_t view = 0;
    for (std::size_t index = 0; index < parameters.size(); index++) {
        if (!parameters[index].is_memory()) continue;
        const Span &span = views[view++];
        if (span.base > 0) given[index] = span;  // of the runtime's own
    }
    const Narrowed made{access_of(&reached, memories_of(views)), outside_of(reached, given)};
    if ((found = reach(launch))) access(*found, views) = made;
    return made;
}

nb::object Binder::bind(nb::handle home, nb::handle global, nb::handle local, nb::handle offset, nb::handle args,
                        bool are_usual, bool narrows, nb::handle ranges) {
    static const nb::handle type = named_tuple("acs_cl.access.binder", "Bound");
    const Items given(args.ptr());
    if (std::size_t(given.end() - given.begin()) != parameters.size()) return nb::none();
    nb::list pointers, values, spans;
    Memories memories(parameters.size());
    access::Launched launch = launched(global, local, offset, nb::make_tuple(), nb::none());
    Views views;
    Views lacking;  // arguments without memory, as spans of no bytes; empty: all have some
    bool is_known = has_ranges, has_images = false;
    for (std::size_t index = 0; index < parameters.size(); index++) {
        const Parameter &one = parameters[index];
        Argument taken;
        if (!take(one, given.begin()[index], home, are_usual, taken)) return nb::none();
        nb::list &turns = taken.is_value ? values : pointers;
        turns.append(index);
        turns.append(taken.driven);
        spans.append(taken.spans.is_valid() ? taken.spans : nb::none());
        if (taken.spans.is_valid()) memories[index] = memory_of(taken.spans, taken.nbytes, is_told_of(index));
        const auto take_numbers = [&](const char *from) {
            for (const Needed &number : numbers)
                if (number.parameter == index) launch.numbers[number.place()] = number_of(number.code, from + number.offset);
        };
        if (taken.is_value && PyBytes_GET_SIZE(taken.driven.ptr()) == Py_ssize_t(one.nbytes))
            take_numbers(PyBytes_AS_STRING(taken.driven.ptr()));
        if (one.code == 'M' && is_needed(index))
            if (const auto sizes = sizes_of_image(taken.driven.ptr())) take_numbers(reinterpret_cast<const char *>(&*sizes));
        if (!one.is_memory()) continue;
        has_images = has_images || one.code == 'M';
        if (taken.driven.is_none()) {
            lacking.resize(parameters.size(), Span{});
            lacking[index] = NO_BYTES;
        }
        const std::size_t pieces = taken.spans.is_valid() ? nb::len(taken.spans) : 0;
        const Span &own = memories[index].span;
        if (pieces && one.code == 'P' && is_needed(index)) launch.numbers[index] = own.base == EVERYTHING ? FARTHEST : own.width;
        is_known = is_known && taken.is_placed && pieces == 1;
        if (is_known) views.push_back(own);
    }
    const bool is_counted = has_ranges && launch.numbers.size() == numbers.size();
    nb::object access, counted = nb::none(), outside = nb::none();
    if (is_told) {
        const access::Outcome reached = evaluated(launch, ranges);
        access = access_of(&reached, memories);
    } else if (is_known && is_counted && narrows) {
        if (const Narrowed found = narrowed(launch, views); found.access.is_valid())
            access = found.access, outside = found.outside;
    } else if (is_counted && narrows && !lacking.empty()) {
        if (const Known *found = reach(launch)) outside = outside_of(found->reached, lacking);
    }
    if (!access.is_valid()) access = access_of(nullptr, memories);
    if (is_known && is_counted && !is_told && !has_images) {  // parts of a launch may not share an image
        nb::list all;
        for (const Needed &one : numbers) all.append(python_number(launch.numbers.at(one.place())));
        counted = nb::tuple(all);
    }
    return named(type, nb::make_tuple(nb::tuple(pointers), nb::tuple(values), access, nb::tuple(spans), counted, outside));
}

nb::object Binder::touched(nb::handle given, nb::handle values, nb::handle global, nb::handle local,
                           nb::handle offset, nb::handle groups) {
    Memories memories(parameters.size());
    std::size_t index = 0;
    for (PyObject *spans : Items(given.ptr())) {
        if (spans != Py_None) memories.at(index) = memory_of(nb::borrow(spans), FARTHEST, false);
        index++;
    }
    const access::Outcome outcome = run(launched(global, local, offset, values, groups));
    return access_of(&outcome, memories);
}

nb::dict Binder::reached(nb::handle global, nb::handle local, nb::handle offset, nb::handle values,
                         nb::handle groups) {
    const access::Launched launch = launched(global, local, offset, values, groups);
    if (launch.groups) return dict_of(run(launch));
    const Known *found = reach(launch, true);
    if (!found) throw std::invalid_argument("only a bind evaluates ranges that the program declares");
    return dict_of(access::Outcome(found->reached));
}

// Returns the spans of an access that has one for each parameter in memory. None: it has not.
std::optional<Binder::Views> Binder::views_of(nb::handle access) const {
    const nb::object of_reads = access[0], of_writes = access[1];
    const Items reads(of_reads.ptr()), writes(of_writes.ptr());
    auto read = reads.begin(), written = writes.begin();
    Views views;
    for (const Parameter &one : parameters) {
        if (!one.is_memory()) continue;
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
            if ((kept.access.is_valid() ? kept.access : access_of(&one.reached, memories_of(views))).equal(access))
                of = views;
        if (!of && whole && access_of(&one.reached, memories_of(*whole)).equal(access)) of = whole;
        if (!of) continue;
        const bool starts = launch.offset != access::Launched::Three{};
        const nb::object local = launch.local ? sizes_of(*launch.local, launch.axes) : nb::none();
        nb::list needed;
        for (const Needed &one_of : numbers) needed.append(python_number(launch.numbers.at(one_of.place())));
        nb::dict views;
        std::size_t view = 0;
        for (std::size_t index = 0; index < parameters.size(); index++) {
            if (!parameters[index].is_memory()) continue;
            if (parameters[index].code == 'P') views[nb::int_(index)] = object_of(of->at(view));
            view++;
        }
        made.append(named(type, nb::make_tuple(
            nb::make_tuple(sizes_of(launch.sizes, launch.axes), local,
                           starts ? sizes_of(launch.offset, launch.axes) : nb::none()),
            nb::tuple(needed), views, dict_of(one.reached))));
    }
    return made;
}

void add_binder(nb::module_ &module) {
    nb::class_<Binder>(module, "Binder")
        .def(nb::init<nb::handle, nb::handle, nb::handle, nb::handle, nb::tuple>(),
             nb::arg("parameters"), nb::arg("functions").none(), nb::arg("numbers"), nb::arg("group").none(),
             nb::arg("more"))
        .def_ro("has_ranges", &Binder::has_ranges)
        .def_prop_ro("numbers", [](const Binder &self) {
            nb::list made;
            for (const Binder::Needed &one : self.numbers)
                made.append(nb::make_tuple(one.parameter, one.offset, std::string(1, one.code)));
            return made;
        })
        .def_rw("most", &Binder::most)
        .def_prop_ro("runs", &Binder::runs)
        .def("bind", &Binder::bind, nb::arg("home"), nb::arg("global_size"), nb::arg("local_size").none(),
             nb::arg("offset").none(), nb::arg("args"), nb::arg("are_usual"), nb::arg("narrows"),
             nb::arg("ranges") = nb::none())
        .def("touched", &Binder::touched, nb::arg("spans"), nb::arg("numbers"), nb::arg("global_size"),
             nb::arg("local_size").none(), nb::arg("offset").none(), nb::arg("groups").none())
        .def("reached", &Binder::reached, nb::arg("global_size"), nb::arg("local_size").none(),
             nb::arg("offset").none(), nb::arg("numbers"), nb::arg("groups").none())
        .def("outcomes", &Binder::outcomes, nb::arg("access"));
    module.def("replaced", replaced, nb::arg("access"), nb::arg("arguments"), nb::arg("reads"), nb::arg("writes"),
               nb::arg("exact"));
}

}  // namespace acs_cl
