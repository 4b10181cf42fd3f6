// What Python teaches of kernels: acs_cl/plans.py says when.

#include <memory>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "launch/caller.hpp"

namespace acs_cl {

namespace {

// The classes of handles, arrays and local memory, the types of numbers, and those of arrays that
// decide, for as long as the process lives.
void use(nb::handle handle, nb::handle array, nb::handle local, nb::handle numbers,
         nb::handle flags) {
    handle_type = reinterpret_cast<PyTypeObject *>(handle.inc_ref().ptr());
    array_type = reinterpret_cast<PyTypeObject *>(array.inc_ref().ptr());
    local_type = reinterpret_cast<PyTypeObject *>(local.inc_ref().ptr());
    for (nb::handle type : numbers)
        number_types.push_back(reinterpret_cast<PyTypeObject *>(type.inc_ref().ptr()));
    for (nb::handle type : flags) flag_types.push_back(type.inc_ref().ptr());
}

// `kernel` is in a scheduler: (code, place in a record, mode) for each parameter, which take
// `blob_bytes` together. Of `most_local` bytes of local memory it has `own_local` of its own.
void teach(nb::handle kernel, nb::handle table, nb::object scheduler, nb::object name,
           nb::handle parameters, std::size_t blob_bytes, std::uint32_t own_local,
           std::uint32_t most_local) {
    Caller *self = caller(kernel);
    auto made = std::make_unique<ToScheduler>(table, std::move(name));
    int pointers = 0;
    for (nb::handle item : parameters) {
        auto code = nb::cast<std::string>(item[0]);
        auto at = nb::cast<std::size_t>(item[1]);
        pointers += code == "P";
        std::size_t nbytes = code == "L" ? 4 : code.size() == 1 ? number_bytes(code[0]) : 0;
        if (!nbytes || at < HEAD_BYTES || at + nbytes > HEAD_BYTES + blob_bytes ||
            pointers >= MOST_SPANS)
            throw std::invalid_argument("a parameter does not fit into a record");
        if (code == "P") made->addresses.add(at - HEAD_BYTES);
        made->add(code, at, nb::cast<std::string>(item[2]));
    }
    if (blob_bytes > MOST_BLOB) throw std::invalid_argument("these arguments are too many");
    made->blob_bytes = blob_bytes;
    made->arena = {own_local, most_local};
    made->scheduler = std::move(scheduler);
    self->keep(table);
    delete std::exchange(self->to_scheduler, made.release());
}

// A size that its launches may have.
void learn(nb::handle kernel, nb::handle global, nb::handle local, nb::bytes words,
           nb::handle shape) {
    ToScheduler *to = caller(kernel)->to_scheduler;
    Sizes sizes;
    if (!to || words.size() != HEAD_BYTES || !take_sizes(global.ptr(), local.ptr(), sizes)) return;
    Head &head = to->heads.make(sizes);
    std::memcpy(head.words.data(), words.c_str(), HEAD_BYTES);
    if (!shape.is_none()) {
        nb::bytes bytes = nb::cast<nb::bytes>(shape);
        head.shape.emplace(bytes.c_str(), bytes.size());
    }
}

// Launches of `kernel` go to `queues`, as `native` with arguments of some codes and modes. `numbers`:
// the parameters that the ranges of its arrays depend on; None where it touches all of each.
void teach_queues(nb::handle kernel, nb::handle table, nb::handle queues, nb::object native,
                  nb::object name, nb::handle parameters, bool by_address, nb::handle numbers) {
    Caller *self = caller(kernel);
    auto made = std::make_unique<ToQueues>(table, std::move(name));
    int pointers = 0;
    for (nb::handle item : parameters) {
        auto code = nb::cast<std::string>(item[0]);
        pointers += code == "P";
        if (code.size() != 1 || (code != "L" && !number_bytes(code[0])) || pointers > MOST_SPANS ||
            made->parameters.size() >= MOST_PARAMETERS)
            throw std::invalid_argument("a kernel with such parameters is not for the core");
        made->add(code, 8 * made->parameters.size(), nb::cast<std::string>(item[1]));
    }
    made->kernel = QueueKernel::of(native);
    if (!made->kernel) return;
    made->queues = nb::cast<Queues *>(queues);
    made->kernel_object = std::move(native);
    made->by_address = by_address;
    if (!numbers.is_none()) made->numbers = nb::cast<std::vector<std::uint16_t>>(numbers);
    self->keep(table);
    self->keep_queues(queues);
    ToQueues::forget(std::exchange(self->to_queues, made.release()));
}

// A size of its launches on queues, and what they touch with the numbers among `args`: how many bytes
// each array may have at most that all of it is touched, where that is known, and the access with the
// arrays there. `left` launches, up to number `until`, go there before Python decides again, for
// `reason`, where that is asked for. Whether anything but that was new.
bool learn_queues(nb::handle kernel, nb::handle global, nb::handle local, nb::tuple args,
                  std::optional<std::vector<std::int64_t>> covers, nb::handle access,
                  std::int64_t left, std::int64_t until, nb::object reason) {
    Caller *self = caller(kernel);
    ToQueues *to = self->to_queues;
    Sizes sizes;
    if (!to || args.size() != to->parameters.size() ||
        !take_sizes(global.ptr(), local.ptr(), sizes))
        return true;
    char values[8 * MOST_PARAMETERS] = {};
    Touched whole;
    if (to->numbers) {
        const Home home = to->home(self->engine);
        for (std::size_t at = 0; at < to->parameters.size(); at++) {
            const Parameter &parameter = to->parameters[at];
            if (parameter.code == 'P' &&
                !take(parameter, args[at].ptr(), home, values, whole))
                return true;
        }
        if (covers && covers->size() != whole.many) return true;
        for (std::uint16_t index : *to->numbers)
            if (index >= to->parameters.size() ||
                !put_number(to->parameters[index].code, args[index].ptr(), values + 8 * index))
                return true;
    }
    bool is_new = !to->known.find(sizes);
    OnQueues &known = to->known.make(sizes);
    if (to->numbers) {
        known.last = nullptr;
        if (known.reaches.size() >= MOST_NUMBERS) known.reaches.clear();
        auto [at, is_reach_new] = known.reaches.try_emplace(to->key(values));
        Reach &reach = at->second;
        if (covers) reach.covers = std::move(*covers);
        if (!to->is_covered(reach, reinterpret_cast<PyTupleObject *>(args.ptr())->ob_item))
            is_new |= reach.learn(whole, access);
        is_new |= is_reach_new;
    }
    to->stay = {left, until, std::move(reason)};
    return is_new;
}

// The variant of a kernel that takes what decides behind its other parameters.
void learn_gate(nb::handle kernel, nb::object variant) {
    ToQueues *to = caller(kernel)->to_queues;
    if (!to || to->gated_object.is(variant)) return;
    to->gated = QueueKernel::of(variant);
    to->gated_object = std::move(variant);
}

}  // namespace

void add_teaching(nb::module_ &module) {
    module.def("use", use);
    module.def("teach", teach, nb::arg("kernel"), nb::arg("table"), nb::arg("scheduler"),
               nb::arg("name"), nb::arg("parameters"), nb::arg("blob_bytes"),
               nb::arg("own_local"), nb::arg("most_local"));
    module.def("learn", learn, nb::arg("kernel"), nb::arg("global_size"),
               nb::arg("local_size").none(), nb::arg("words"), nb::arg("shape").none());
    module.def("teach_queues", teach_queues, nb::arg("kernel"), nb::arg("table"),
               nb::arg("queues"), nb::arg("native"), nb::arg("name"), nb::arg("parameters"),
               nb::arg("by_address"), nb::arg("numbers").none());
    module.def("learn_queues", learn_queues, nb::arg("kernel"), nb::arg("global_size"),
               nb::arg("local_size").none(), nb::arg("args"), nb::arg("covers").none(),
               nb::arg("access"), nb::arg("left"), nb::arg("until"), nb::arg("reason").none());
    module.def("learn_gate", learn_gate, nb::arg("kernel"), nb::arg("variant"));
    module.def("is_taught", [](nb::handle kernel) {
        const ToScheduler *to = caller(kernel)->to_scheduler;
        return to && to->is_new();
    });
    module.def(
        "knows",
        [](nb::handle kernel, nb::handle global, nb::handle local) {
            ToScheduler *to = caller(kernel)->to_scheduler;
            Sizes sizes;
            return to && to->is_new() && take_sizes(global.ptr(), local.ptr(), sizes) &&
                   to->heads.find(sizes);
        },
        nb::arg("kernel"), nb::arg("global_size"), nb::arg("local_size").none());
    module.def("is_taught_queues", [](nb::handle kernel) {
        const ToQueues *to = caller(kernel)->to_queues;
        return to && to->is_new();
    });
    module.def("forget", [](nb::handle kernel) { caller(kernel)->forget(); });
}

}  // namespace acs_cl
