// Takes launch plans from Python; see acs_cl/plans.py.

#include <memory>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "launch/caller.hpp"
#include "launch/prepared.hpp"

namespace acs_cl {

namespace {

// Takes the classes of handles, of handles of launches in bands, of arrays, of local memory, of memory with lasting
// addresses and of events whose status the driver has, the types of numbers and of other values, the element types of
// arrays that may decide, the class of counted sizes, and that of NumPy's truths. They live as long as the process.
void use(nb::handle handle, nb::handle cut_handle, nb::handle array, nb::handle local, nb::handle pointer,
         nb::handle events, nb::handle numbers, nb::handle values, nb::handle flags, nb::handle size,
         nb::handle truth) {
    handle_type = reinterpret_cast<PyTypeObject *>(handle.inc_ref().ptr());
    handle_type->tp_dealloc = reinterpret_cast<destructor>(handle_dealloc);  // the class in Python has nothing to free
    cut_handle_type = reinterpret_cast<PyTypeObject *>(cut_handle.inc_ref().ptr());
    array_type = reinterpret_cast<PyTypeObject *>(array.inc_ref().ptr());
    local_type = reinterpret_cast<PyTypeObject *>(local.inc_ref().ptr());
    pointer_type = pointer.inc_ref().ptr();
    for (nb::handle type : events) event_types.push_back(reinterpret_cast<PyTypeObject *>(type.inc_ref().ptr()));
    for (nb::handle type : numbers)
        number_types.push_back(reinterpret_cast<PyTypeObject *>(type.inc_ref().ptr()));
    for (nb::handle type : values)
        value_types.push_back(reinterpret_cast<PyTypeObject *>(type.inc_ref().ptr()));
    size_type = reinterpret_cast<PyTypeObject *>(size.inc_ref().ptr());
    truth_type = reinterpret_cast<PyTypeObject *>(truth.inc_ref().ptr());
    for (nb::handle type : flags) flag_types.push_back(type.inc_ref().ptr());
}

// Makes the plan of a kernel, unless it was told to forget plans since it was `forgets`. `parameters`: code, mode, size,
// and place in a record of each; a mode with 'o' says that all of it is overwritten. `binder`: tells which bytes
// launches reach. `lanes`: the queues, the kernel for them, and whether arrays are addresses there. `record`: for
// a kernel in a scheduler, the bytes of its arguments and its local memory; empty if its arguments fit no record.
void plan(nb::handle kernel, nb::handle table, nb::object name, nb::handle parameters, nb::handle binder,
          nb::handle lanes, nb::handle record, long long forgets) {
    Caller *self = caller(kernel);
    auto made = std::make_unique<LaunchPlan>(table, std::move(name));
    std::size_t end = 0;  // of a record; 0: no record, arguments are one behind the other
    made->knows_records = !record.is_none();
    if (made->knows_records && nb::len(record)) {
        const auto blob_bytes = nb::cast<std::size_t>(record[0]);
        if (blob_bytes > MOST_BLOB) throw std::invalid_argument("these arguments are too many");
        end = HEAD_BYTES + blob_bytes;
        made->epoch = ToEpoch{blob_bytes, nb::cast<std::uint64_t>(record[1]), {}};
    }
    std::size_t memory = 0;
    for (nb::handle item : parameters) {
        const auto code = nb::cast<std::string>(item[0]), mode = nb::cast<std::string>(item[1]);
        const auto nbytes = nb::cast<std::size_t>(item[2]);
        const std::size_t at = end ? nb::cast<std::size_t>(item[3]) : made->end;
        const auto has = [&](char one) { return mode.find(one) != std::string::npos; };
        const Parameter one{code.size() == 1 ? code[0] : '\0', at, has('r'), has('w'), nbytes, has('o')};
        made->overwrites |= one.overwritten;
        memory += one.is_memory();
        const bool is_known = one.is_object() || one.code == 'v' || number_bytes(one.code) == nbytes;
        if (!nbytes || !is_known || memory >= MOST_SPANS || made->parameters.size() >= MOST_PARAMETERS ||
            at < HEAD_BYTES || at + nbytes > (end ? end : HEAD_BYTES + MOST_BLOB))
            throw std::invalid_argument("a parameter does not fit into a launch plan");
        made->parameters.push_back(one);
        made->end = std::max(made->end, at + (nbytes + 7) / 8 * 8);
        if (end && one.code == 'P') made->epoch->addresses.add(at - HEAD_BYTES);
    }
    if (made->end > HEAD_BYTES + MOST_BLOB) made->end = HEAD_BYTES + MOST_BLOB;
    Binder *known = nb::cast<Binder *>(binder);
    if (known) made->required = known->group;
    for (std::size_t index = 0; known && index < std::min(known->parameters.size(), made->parameters.size()); index++)
        made->parameters[index].alignment = known->parameters[index].alignment;
    if (known && known->has_ranges) {
        if (known->numbers.size() > MOST_NEEDED) throw std::invalid_argument("ranges depend on too many numbers");
        for (const auto &[index, offset, code] : known->numbers)
            if (index >= made->parameters.size() || made->parameters[index].code != known->parameters[index].code ||
                made->parameters[index].nbytes != known->parameters[index].nbytes)
                throw std::invalid_argument("ranges depend on numbers only");
        made->overwrites |= known->is_told;
        made->binder = nb::borrow(binder);
    }
    if (!lanes.is_none()) {
        made->lanes.variants[false][false][false].become(nb::object(lanes[1]));
        made->lanes.queues = nb::cast<Queues *>(lanes[0]);
        made->lanes.by_address = nb::cast<bool>(lanes[2]);
    }
    if (self->forgets != forgets) return;
    for (auto [place, object] : {std::pair(&self->table, table), {&self->queues, lanes}})
        Py_XSETREF(*place, object.inc_ref().ptr());
    LaunchPlan::forget(std::exchange(self->plan, made.release()));
}

void fill(RecordWords &words, nb::handle head) {
    const nb::bytes given = nb::cast<nb::bytes>(head);
    if (given.size() != HEAD_BYTES) throw std::invalid_argument("a head has 64 bytes");
    std::memcpy(words.data(), given.c_str(), HEAD_BYTES);
}

std::optional<std::string> shape_of(const nb::object &given) {
    if (given.is_none()) return std::nullopt;
    const nb::bytes shape = nb::cast<nb::bytes>(given);
    return std::string(shape.c_str(), shape.size());
}

Lease lease_of(nb::handle fields) {
    return {nb::cast<std::int64_t>(fields[0]), nb::cast<std::int64_t>(fields[1]), nb::object(fields[2]),
            nb::cast<std::uint64_t>(fields[3])};
}

// Adds a size of launches to the plan, with an offset or None. `heads`: for each scheduler that takes them, and for their
// own one first, the scheduler, its local memory, the head of their records, and their shape. `lease`: the fields of a
// `Lease`, or None.
void plan_sizes(nb::handle kernel, nb::handle global, nb::handle local, nb::handle offset, nb::handle heads,
                nb::handle lease) {
    LaunchPlan *plan = caller(kernel)->plan;
    Sizes sizes;
    if (!plan || !plan->take_sizes(global.ptr(), local.ptr(), offset.ptr(), sizes)) return;
    Sized &size = plan->sizes.make(sizes);
    bool is_home = true;
    for (nb::handle one : heads) {
        RecordWords words{};
        fill(words, nb::object(one[2]));
        if (!plan->epoch) break;
        Head &head = size.make(nb::object(one[0]), std::exchange(is_home, false));
        head.arena_bytes = nb::cast<std::uint64_t>(one[1]);
        head.words = words;
        head.version = Head::new_version();
        if (auto shape = shape_of(nb::object(one[3]))) head.shape = std::move(shape);
        if (nb::object(one[4]).is_none()) continue;
        const auto [least, group, most_tiles, limit] =
            nb::cast<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>>(nb::object(one[4]));
        head.tiling = {least, group, most_tiles, limit};
    }
    size.is_tried = true;
    plan->learn_from(sizes, size);
    if (lease.is_none()) return;
    size.on_lanes = true;
    plan->lanes.lease = lease_of(lease);
}

// Adds a size of launches with counts, which lanes take. `global`: with the bound of the count. `rounded`: the first
// global size for the driver.
void plan_counted(nb::handle kernel, nb::handle global, nb::handle local, nb::handle offset, std::size_t rounded,
                  nb::handle lease) {
    LaunchPlan *plan = caller(kernel)->plan;
    Sizes sizes;
    if (!plan || !plan->take_sizes(global.ptr(), local.ptr(), offset.ptr(), sizes)) return;
    plan->sizes.make(sizes).rounded = rounded;
    plan->lanes.lease = lease_of(lease);
}

// Adds to the plan how launches of a size are cut for `asked`, the value of `bands=`. None: the default. `bands`: of
// each, boxes of its groups, which have `unit` work-items; then its size and offset on lanes, or the head of its record.
// `lanes`: the kernel of bands with an offset, and why they go there. `record`: the scheduler, its local memory, and the
// shape.
void plan_bands(nb::handle kernel, nb::handle global, nb::handle local, nb::object asked, nb::handle unit,
                 nb::handle bands, nb::handle lanes, nb::handle record) {
    LaunchPlan *plan = caller(kernel)->plan;
    Sizes sizes, in_units;
    if (!plan || !plan->take_sizes(global.ptr(), local.ptr(), sizes) ||
        !take_sizes(global.ptr(), unit.ptr(), in_units))
        return;
    auto made = std::make_shared<CutPlan>();
    made->asked = std::move(asked);
    if (record.is_none()) {
        made->with_offset.become(nb::object(lanes[0]));
        made->reason = nb::object(lanes[1]);
        if (!made->with_offset.kernel || !plan->lanes.variants[false][false][false].kernel) return;
    } else {
        made->scheduler = nb::object(record[0]);
        made->arena_bytes = nb::cast<std::uint64_t>(record[1]);
        made->shape = shape_of(nb::object(record[2]));
        if (!plan->epoch) return;
    }
    for (nb::handle one : bands) {
        BandPlan &band = made->bands.emplace_back();
        if (made->is_recorded()) {
            fill(band.words, nb::object(one[1]));
        } else {
            band.python_offset = one[2];
            if (!take_sizes(nb::object(one[1]).ptr(), local.ptr(), band.sizes) ||
                !take_size(band.python_offset.ptr(), band.offset.data(), 0))
                throw std::invalid_argument("a band has no such sizes");
        }
        for (nb::handle box : nb::object(one[0])) {
            access::Launched &part = band.boxes.emplace_back(launched_of(in_units));
            part.groups.emplace();
            std::size_t axis = 0;
            for (nb::handle ends : box) {
                if (axis >= 3) throw std::invalid_argument("groups have three axes at most");
                (*part.groups)[axis++] = {access::whole(nb::object(ends[0])), access::whole(nb::object(ends[1]))};
            }
        }
    }
    Sized &size = plan->sizes.make(sizes);
    size.is_tried = true;
    size.cuts.add(std::move(made));
    plan->is_cut = true;
}

// Adds a variant of a kernel for lanes. `starts`: the parameters whose arrays may start inside their buffers.
// `decides`: it is for `when=`. `counts`: it is for `acs_cl.size`.
void plan_variant(nb::handle kernel, nb::object variant, nb::handle starts, bool decides, bool counts) {
    LaunchPlan *plan = caller(kernel)->plan;
    if (!plan) return;
    ToLanes &lanes = plan->lanes;
    std::uint64_t bits = 0;
    for (nb::handle at : starts) {
        const auto index = nb::cast<std::size_t>(at);
        if (index >= plan->parameters.size()) throw std::invalid_argument("there is no such parameter");
        bits |= std::uint64_t(1) << index;
    }
    if (bits && bits != lanes.starts) {
        lanes.starts = bits;
        for (auto &both : lanes.variants[true]) both[false] = both[true] = {};
    }
    KernelVariant &known = lanes.variants[bits != 0][decides][counts];
    if (!known.object.is(variant)) known.become(std::move(variant));
}

// Adds a type of elements that arrays for a parameter may have. None: any.
void plan_elements(nb::handle kernel, std::size_t parameter, nb::handle type) {
    LaunchPlan *plan = caller(kernel)->plan;
    if (plan && parameter < plan->parameters.size())
        plan->parameters[parameter].elements.add(type.is_none() ? nullptr : type.ptr());
}

}  // namespace

void add_plans(nb::module_ &module) {
    module.def("use", use);
    module.def("plan", plan, "kernel"_a, "table"_a, "name"_a, "parameters"_a, "binder"_a, "lanes"_a.none(),
               "record"_a.none(), "forgets"_a);
    module.def("plan_sizes", plan_sizes, "kernel"_a, "global_size"_a,
               "local_size"_a.none(), "offset"_a.none(), "heads"_a, "lease"_a.none());
    module.def("plan_bands", plan_bands, "kernel"_a, "global_size"_a, "local_size"_a.none(),
               "asked"_a.none(), "unit"_a, "bands"_a, "lanes"_a.none(), "record"_a.none());
    module.def("plan_variant", plan_variant, "kernel"_a, "variant"_a, "starts"_a, "decides"_a, "counts"_a = false);
    module.def("plan_counted", plan_counted, "kernel"_a, "global_size"_a, "local_size"_a.none(),
               "offset"_a.none(), "rounded"_a, "lease"_a);
    module.def("plan_elements", plan_elements, "kernel"_a, "parameter"_a, "type"_a.none());
    module.def("is_planned", [](nb::handle kernel, bool for_epochs) {
        const LaunchPlan *plan = caller(kernel)->plan;
        return plan && plan->is_current() && (plan->knows_records || !for_epochs);
    }, "kernel"_a, "for_epochs"_a);
    module.def("forget", [](nb::handle kernel) { caller(kernel)->forget(); });
}

void add_prepared(nb::module_ &module) {
    nb::class_<Prepared>(module, "Prepared")
        .def(nb::init<PythonHazards &, nb::object, nb::handle, const std::optional<CountedAt> &>(), "hazards"_a,
             "command"_a, "access"_a, "counted"_a = nb::none(), nb::keep_alive<1, 2>())
        .def_prop_ro("is_plain", &Prepared::is_plain)
        .def("launch", &Prepared::launch, "queues"_a);
    nb::class_<Series>(module, "Series")
        .def("__init__", [](Series *self, nb::tuple launches) {
            std::vector<const Prepared *> found;
            for (nb::handle one : launches) found.push_back(nb::cast<const Prepared *>(one));
            new (self) Series(std::move(found));
        }, "launches"_a, nb::keep_alive<1, 2>())
        .def("launch", &Series::launch, "first"_a, "most"_a, "queues"_a);
}

}  // namespace acs_cl
