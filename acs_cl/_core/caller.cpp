#include "caller.hpp"

#include <chrono>
#include <cstddef>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arguments.hpp"
#include "columns.hpp"
#include "handles.hpp"
#include "queues.hpp"
#include "reach.hpp"

namespace acs_cl {

namespace {

constexpr std::size_t MOST_SIZES = 4096, MOST_NUMBERS = 4096, MOST_PARAMETERS = 64;
constexpr std::size_t MOST_BLOB = 1024;  // as epochs.MOST_ARGS_BYTES

PyObject *call_name, *finish_name, *look_name, *when_name;

// ---- what kernels were taught -------------------------------------------------------------------

// One of the ways that launches of a kernel take.
struct Route {
    nb::object ledger_object, name;
    Ledger *ledger;
    std::uint64_t generation;
    std::vector<Parameter> parameters;

    Route(nb::object with, nb::object called)
        : ledger_object(std::move(with)), name(std::move(called)),
          ledger(nb::cast<Ledger *>(ledger_object)), generation(ledger->generation) {}

    bool is_new() const { return generation == ledger->generation; }

    void add(const std::string &code, std::size_t at, const std::string &mode) {
        auto has = [&](char one) { return mode.find(one) != std::string::npos; };
        parameters.push_back({code[0], at, has('r'), has('w')});
    }
};

// Things that are known of some sizes; the last ones that were asked for are found at once.
template <typename Value>
class BySizes {
public:
    Value *find(PyObject *global, PyObject *local) {
        SizeKey sizes;
        if (!take_sizes(global, local, sizes)) return nullptr;
        if (!last_ || last_->first != sizes) {
            auto found = known_.find(sizes);
            last_ = found == known_.end() ? nullptr : &*found;
        }
        return last_ ? &last_->second : nullptr;
    }

    // The value of these sizes, new or not; null where they are none.
    Value *make(PyObject *global, PyObject *local) {
        SizeKey sizes;
        if (!take_sizes(global, local, sizes)) return nullptr;
        if (known_.size() >= MOST_SIZES) {
            last_ = nullptr;
            known_.clear();
        }
        return &known_[sizes];
    }

private:
    std::map<SizeKey, Value> known_;
    std::pair<const SizeKey, Value> *last_ = nullptr;
};

// What records of one size have in common.
struct Head {
    std::string words;
    std::optional<std::string> shape;
};

// Into the open epoch of a scheduler.
struct ToScheduler : Route {
    using Route::Route;

    nb::object scheduler;
    std::size_t blob_bytes = 0;  // of all arguments
    BySizes<Head> heads;

    bool may_launch() const { return is_new() && ledger->takes(scheduler.ptr()); }
};

// Sizes as the driver takes them.
struct Extent {
    std::uint32_t axes = 0;
    bool has_local = false;
    std::size_t global[3], local[3];

    Sizes sizes() const { return {axes, global, has_local ? local : nullptr, nullptr}; }
};

// A size of launches on queues, and what they touch, by the numbers that this depends on.
struct OnQueues {
    Extent extent;
    std::map<std::string, Reach> reaches;
    std::pair<const std::string, Reach> *last = nullptr;
};

// To the queues of a host backend.
struct ToQueues : Route {
    using Route::Route;

    nb::object queues_object, kernel_object, gated_object, reason;
    Queues *queues = nullptr;
    QueueKernel *kernel = nullptr, *gated = nullptr;  // as it is; the variant for `when=`
    bool by_address = false;
    std::optional<std::vector<std::uint16_t>> numbers;  // parameters that ranges depend on, if any do
    std::int64_t left = -1;  // launches until Python decides again where they go; below 0: all
    std::int64_t until = 0;  // the last launch that it is not asked about; 0: none
    BySizes<OnQueues> known;

    // While a driver is called without the GIL, others may teach the kernel anew, or have it forget.
    struct Use {
        ToQueues &to;
        explicit Use(ToQueues &used) : to(used) { to.users_++; }
        ~Use() {
            if (!--to.users_ && to.is_forgotten_) delete &to;
        }
        Use(const Use &) = delete;
        Use &operator=(const Use &) = delete;
    };
    static void forget(ToQueues *to) {
        if (to && to->users_) to->is_forgotten_ = true;
        else delete to;
    }

    std::string key(const char *values) const {
        std::string key;
        for (std::uint16_t index : *numbers) key.append(values + 8 * index, 8);
        return key;
    }

    // From all of a launch's arrays to what it touches of them; false where that is not known.
    bool narrow(OnQueues &size, const char *values, PyObject *const *args, Touched &touched) const {
        if (!numbers) return true;
        std::string key = this->key(values);
        if (!size.last || size.last->first != key) {
            auto known = size.reaches.find(key);
            size.last = known == size.reaches.end() ? nullptr : &*known;
        }
        if (!size.last) return false;
        Reach &reach = size.last->second;
        if (is_covered(reach, args)) return true;
        const Touched *found = reach.find(touched);
        if (found) touched = *found;
        return found;
    }

    bool is_covered(const Reach &reach, PyObject *const *args) const {
        auto most = reach.covers.begin();
        for (std::size_t at = 0; at < parameters.size(); at++)
            if (parameters[at].code == 'P' && (most == reach.covers.end() ||
                                               ArraySlots::nbytes_of(args[at]) > *most++))
                return false;
        return true;
    }

    // False where the driver refuses one.
    bool set(QueueKernel *kernel, const char *values, PyObject *const *args) const {
        for (std::size_t at = 0; at < parameters.size(); at++) {
            const Parameter &parameter = parameters[at];
            const char *value = values + parameter.at;
            bool is_set;
            if (parameter.code == 'L') {
                is_set = kernel->set_memory(at, args[at], queues->classes());
            } else if (parameter.code != 'P') {
                is_set = kernel->set_value(at, {value, number_bytes(parameter.code)});
            } else if (by_address) {
                void *address;
                std::memcpy(&address, value, sizeof(address));
                is_set = kernel->set_address(at, address, ArraySlots::argument_of(args[at]));
            } else {
                is_set = kernel->set_memory(at, ArraySlots::argument_of(args[at]), queues->classes());
            }
            if (!is_set) return false;
        }
        return true;
    }

    // The same, behind the other parameters of the variant.
    bool set(const Flag &flag) const {
        std::size_t first = parameters.size();
        bool is_set = by_address ? gated->set_address(first, flag.address, flag.memory)
                                 : gated->set_memory(first, flag.memory, queues->classes());
        return is_set && gated->set_value(first + 1, {reinterpret_cast<const char *>(&flag.offset),
                                                      sizeof(flag.offset)});
    }

private:
    int users_ = 0;
    bool is_forgotten_ = false;
};

// ---- calls --------------------------------------------------------------------------------------

struct Caller {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *runtime;
    ToScheduler *to_scheduler;
    ToQueues *to_queues;
};

nb::object new_handle() {
    return nb::steal(handle_type->tp_alloc(handle_type, 0));
}

PyObject *filled(nb::object made, PyObject *runtime, const Route &route, const Touched &touched) {
    auto *handle = reinterpret_cast<Handle *>(made.ptr());
    handle->number = route.ledger->number;
    handle->runtime = runtime;
    handle->name = route.name.ptr();
    Py_INCREF(handle->runtime);
    Py_INCREF(handle->name);
    handle->touched = touched;
    touched.hold();
    return made.release().ptr();
}

// A record with its arguments, or its head alone and the arguments beside it.
struct Record {
    explicit Record(const ToScheduler &to) : blob_bytes(to.blob_bytes) {
        std::memset(bytes + HEAD_BYTES, 0, fits() ? INLINE_BYTES : blob_bytes);
    }

    bool fits() const { return blob_bytes <= INLINE_BYTES; }
    std::string_view record() const { return {bytes, fits() ? RECORD_BYTES : HEAD_BYTES}; }
    std::string_view blob() const { return {bytes + HEAD_BYTES, blob_bytes}; }

    std::size_t blob_bytes;
    char bytes[HEAD_BYTES + MOST_BLOB];
};

bool enter(const ToScheduler &to, const Head &head, const Record &record, const Touched &touched) {
    const std::string_view shape = head.shape ? std::string_view(*head.shape) : "";
    const std::string_view blob = record.blob();
    return to.ledger->launch(record.record(), record.fits() ? nullptr : &blob,
                             head.shape ? &shape : nullptr, touched, to.name.ptr());
}

// A plain launch for the scheduler; null without an error where it is not one, and nothing has
// changed.
PyObject *launch(Caller *self, PyObject *const *args, std::size_t many, PyObject *when) {
    ToScheduler &to = *self->to_scheduler;
    if (!to.may_launch() || many != to.parameters.size() + 2) return nullptr;
    const Head *head = to.heads.find(args[0], args[1]);
    if (!head) return nullptr;
    Record record(to);
    std::memcpy(record.bytes, head->words.data(), HEAD_BYTES);
    Touched touched;
    args += 2;
    for (const Parameter &parameter : to.parameters)
        if (!take(parameter, *args++, self->runtime, record.bytes, touched)) return nullptr;
    if (when && !take_flag(when, self->runtime, record.bytes, touched)) return nullptr;
    nb::object handle = new_handle();
    if (!handle.is_valid() || !enter(to, *head, record, touched)) return nullptr;
    return filled(std::move(handle), self->runtime, to, touched);
}

// A plain launch for a queue, with the runtime's lock, so that the driver may be waited for without
// the GIL. Where the queue does not take it after all, it is in the hazards already and Python has
// to finish it: `left` is what it has to know, and the lock is still taken, or another thread would
// see a launch that is nowhere.
PyObject *enqueue(Caller *self, PyObject *const *args, std::size_t many, PyObject *when,
                  PyObject *&left) {
    ToQueues &to = *self->to_queues;
    ToQueues::Use use(to);
    Ledger &ledger = *to.ledger;
    QueueKernel *kernel = when ? to.gated : to.kernel;
    if (!kernel || !to.left || (to.until && ledger.number >= to.until) || !to.is_new() ||
        many != to.parameters.size() + 2 || !ledger.is_plain())
        return nullptr;
    nb::object handle = new_handle();
    OnQueues *size = to.known.find(args[0], args[1]);
    if (!size || !handle.is_valid()) return nullptr;
    args += 2;
    char values[8 * MOST_PARAMETERS] = {};
    Touched touched;
    for (std::size_t at = 0; at < to.parameters.size(); at++) {
        const Parameter &parameter = to.parameters[at];
        bool is_plain = parameter.code == 'L'
                            ? Py_TYPE(args[at]) == to.queues->classes().local_type()
                            : take(parameter, args[at], self->runtime, values, touched);
        if (!is_plain) return nullptr;
    }
    if (!to.narrow(*size, values, args, touched)) return nullptr;
    Flag flag;
    if (when && !flag.take(when, self->runtime, to.by_address, touched)) return nullptr;
    if (!ledger.lock->try_take()) return nullptr;
    Taken taken(ledger.lock);
    const Extent extent = size->extent;
    handle = nb::steal(filled(std::move(handle), self->runtime, to, touched));  // holds the spans
    bool is_set = to.set(kernel, values, args) && (!when || to.set(flag));
    const std::vector<Edge> *edges = is_set ? ledger.enter(touched) : nullptr;
    if (edges) {
        reinterpret_cast<Handle *>(handle.ptr())->number = ledger.number;
        to.left -= to.left > 0;
        if (!ledger.may_follow(*edges) ||
            to.queues->submit_quick(ledger.number, *edges, *kernel, extent.sizes())) {
            nb::object decides = when ? nb::borrow(when) : nb::none();
            left = nb::make_tuple(ledger.number, upstream_of(*edges), decides, to.ledger_object)
                       .release().ptr();
            taken.leave();
            return nullptr;
        }
        ledger.put_loose(ledger.number, to.name.ptr(), touched);
        if (!to.reason.is_none()) ledger.note(to.reason);
    }
    return edges ? handle.release().ptr() : nullptr;
}

PyObject *call(PyObject *object, PyObject *const *args, std::size_t flags, PyObject *keywords) {
    auto *self = reinterpret_cast<Caller *>(object);
    std::size_t many = std::size_t(PyVectorcall_NARGS(flags));
    bool has_when = keywords && PyTuple_GET_SIZE(keywords) == 1 &&
                    PyTuple_GET_ITEM(keywords, 0) == when_name;
    PyObject *left = nullptr;
    if ((self->to_scheduler || self->to_queues) && (!keywords || has_when)) {
        PyObject *when = has_when && args[many] != Py_None ? args[many] : nullptr;
        PyObject *handle = nullptr;
        Ledger *ledger = self->to_scheduler ? self->to_scheduler->ledger : self->to_queues->ledger;
        try {
            if (self->to_scheduler) handle = launch(self, args, many, when);
            if (!handle && self->to_queues && !PyErr_Occurred())
                handle = enqueue(self, args, many, when, left);
        } catch (const std::bad_alloc &) {
            return PyErr_NoMemory();
        } catch (const PythonError &) {  // which is set
            return nullptr;
        }
        // nothing is on this stack that has to be let go, should the interpreter end
        if (handle && ledger->should_look()) {
            PyObject *looked = PyObject_CallMethodNoArgs(self->runtime, look_name);
            if (!looked) Py_CLEAR(handle);
            Py_XDECREF(looked);
        }
        if (handle || PyErr_Occurred()) return handle;
    }
    std::vector<PyObject *> all{object};
    if (left)
        for (int at = 0; at < 3; at++) all.push_back(PyTuple_GET_ITEM(left, at));
    std::size_t given = many + (keywords && !left ? PyTuple_GET_SIZE(keywords) : 0);
    all.insert(all.end(), args, args + given);
    if (!left) return PyObject_VectorcallMethod(call_name, all.data(), many + 1, keywords);
    PyObject *finished = PyObject_VectorcallMethod(finish_name, all.data(), many + 4, nullptr);
    nb::cast<Ledger *>(nb::handle(PyTuple_GET_ITEM(left, 3)))->lock->give_back();
    Py_DECREF(left);  // and the ledger, which keeps the lock
    return finished;
}

void forget(Caller *self) {
    delete std::exchange(self->to_scheduler, nullptr);
    ToQueues::forget(std::exchange(self->to_queues, nullptr));
}

PyObject *caller_new(PyTypeObject *type, PyObject *, PyObject *) {
    auto *self = reinterpret_cast<Caller *>(type->tp_alloc(type, 0));
    if (self) self->vectorcall = call;
    return reinterpret_cast<PyObject *>(self);
}

int caller_traverse(Caller *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->runtime);
    return 0;
}

int caller_clear(Caller *self) {
    Py_CLEAR(self->runtime);
    forget(self);
    return 0;
}

void caller_dealloc(Caller *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    caller_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

PyMemberDef caller_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Caller, vectorcall), READONLY, nullptr},
    {"_runtime", T_OBJECT_EX, offsetof(Caller, runtime), 0, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyType_Slot caller_slots[] = {{Py_tp_new, reinterpret_cast<void *>(caller_new)},
                              {Py_tp_call, reinterpret_cast<void *>(PyVectorcall_Call)},
                              {Py_tp_traverse, reinterpret_cast<void *>(caller_traverse)},
                              {Py_tp_clear, reinterpret_cast<void *>(caller_clear)},
                              {Py_tp_dealloc, reinterpret_cast<void *>(caller_dealloc)},
                              {Py_tp_members, caller_members},
                              {0, nullptr}};
PyType_Spec caller_spec = {"acs_cl._core.Caller", sizeof(Caller), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC |
                               Py_TPFLAGS_HAVE_VECTORCALL,
                           caller_slots};

PyTypeObject *caller_type;

Caller *caller(nb::handle object) {
    if (!PyObject_TypeCheck(object.ptr(), caller_type))
        throw nb::type_error("expected a kernel");
    return reinterpret_cast<Caller *>(object.ptr());
}

// ---- what Python says ---------------------------------------------------------------------------

std::size_t slot(nb::handle type, const char *name) {
    nb::object found = type.attr(name);
    if (Py_TYPE(found.ptr()) != &PyMemberDescr_Type) throw nb::type_error("expected a slot");
    return std::size_t(reinterpret_cast<PyMemberDescrObject *>(found.ptr())->d_member->offset);
}

// The classes of handles and arrays, the types of numbers, and those of arrays that decide, for as
// long as the process lives.
void use(nb::handle handle, nb::handle array, nb::handle numbers, nb::handle flags) {
    handle_type = reinterpret_cast<PyTypeObject *>(handle.inc_ref().ptr());
    array_slots = {reinterpret_cast<PyTypeObject *>(array.inc_ref().ptr()), slot(array, "_home"),
                   slot(array, "_address"), slot(array, "_argument"), slot(array, "_span"),
                   slot(array, "size"), slot(array, "nbytes"), slot(array, "dtype"),
                   slot(array, "_runtime"), slot(array, "_place"), slot(array, "_spans")};
    for (nb::handle type : numbers)
        number_types.push_back(reinterpret_cast<PyTypeObject *>(type.inc_ref().ptr()));
    for (nb::handle type : flags) flag_types.push_back(type.inc_ref().ptr());
}

// `kernel` is in a scheduler: (code, place in a record, mode) for each parameter, which take
// `blob_bytes` together.
void teach(nb::handle kernel, nb::object ledger, nb::object scheduler, nb::object name,
           nb::handle parameters, std::size_t blob_bytes) {
    Caller *self = caller(kernel);
    auto made = std::make_unique<ToScheduler>(std::move(ledger), std::move(name));
    int pointers = 0;
    for (nb::handle item : parameters) {
        auto code = nb::cast<std::string>(item[0]);
        auto at = nb::cast<std::size_t>(item[1]);
        pointers += code == "P";
        std::size_t nbytes = code.size() == 1 ? number_bytes(code[0]) : 0;
        if (!nbytes || at < HEAD_BYTES || at + nbytes > HEAD_BYTES + blob_bytes ||
            pointers >= MOST_SPANS)
            throw std::invalid_argument("a parameter does not fit into a record");
        made->add(code, at, nb::cast<std::string>(item[2]));
    }
    if (blob_bytes > MOST_BLOB) throw std::invalid_argument("these arguments are too many");
    made->blob_bytes = blob_bytes;
    made->scheduler = std::move(scheduler);
    delete std::exchange(self->to_scheduler, made.release());
}

// A size that its launches may have.
void learn(nb::handle kernel, nb::handle global, nb::handle local, nb::bytes words,
           nb::handle shape) {
    ToScheduler *to = caller(kernel)->to_scheduler;
    if (!to || words.size() != HEAD_BYTES) return;
    Head *head = to->heads.make(global.ptr(), local.ptr());
    if (!head) return;
    head->words.assign(words.c_str(), words.size());
    if (!shape.is_none()) {
        nb::bytes bytes = nb::cast<nb::bytes>(shape);
        head->shape.emplace(bytes.c_str(), bytes.size());
    }
}

// Launches of `kernel` go to `queues`, as `native` with arguments of some codes and modes. `numbers`:
// the parameters that the ranges of its arrays depend on; None where it touches all of each.
void teach_queues(nb::handle kernel, nb::object ledger, nb::object queues, nb::object native,
                  nb::object name, nb::handle parameters, bool by_address, nb::handle numbers) {
    Caller *self = caller(kernel);
    auto made = std::make_unique<ToQueues>(std::move(ledger), std::move(name));
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
    made->queues_object = std::move(queues);
    made->kernel_object = std::move(native);
    made->by_address = by_address;
    if (!numbers.is_none()) made->numbers = nb::cast<std::vector<std::uint16_t>>(numbers);
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
    if (!to || args.size() != to->parameters.size()) return true;
    SizeKey sizes;
    if (!take_sizes(global.ptr(), local.ptr(), sizes)) return true;
    if (sizes[4] && sizes[4] != sizes[0]) return true;
    char values[8 * MOST_PARAMETERS] = {};
    Touched whole;
    if (to->numbers) {
        for (std::size_t at = 0; at < to->parameters.size(); at++) {
            const Parameter &parameter = to->parameters[at];
            if (parameter.code == 'P' &&
                !take(parameter, args[at].ptr(), self->runtime, values, whole))
                return true;
        }
        if (covers && covers->size() != whole.many) return true;
        for (std::uint16_t index : *to->numbers)
            if (index >= to->parameters.size() ||
                !put_number(to->parameters[index].code, args[index].ptr(), values + 8 * index))
                return true;
    }
    bool is_new = !to->known.find(global.ptr(), local.ptr());
    OnQueues *known = to->known.make(global.ptr(), local.ptr());
    Extent &extent = known->extent;
    extent.axes = std::uint32_t(sizes[0]);
    extent.has_local = sizes[4];
    for (int at = 0; at < 3; at++) {
        extent.global[at] = std::size_t(sizes[at + 1]);
        extent.local[at] = std::size_t(sizes[at + 5]);
    }
    if (to->numbers) {
        known->last = nullptr;
        if (known->reaches.size() >= MOST_NUMBERS) known->reaches.clear();
        auto [at, is_reach_new] = known->reaches.try_emplace(to->key(values));
        Reach &reach = at->second;
        if (covers) reach.covers = std::move(*covers);
        if (!to->is_covered(reach, reinterpret_cast<PyTupleObject *>(args.ptr())->ob_item))
            is_new |= reach.learn(whole, access);
        is_new |= is_reach_new;
    }
    to->left = left;
    to->until = until;
    to->reason = std::move(reason);
    return is_new;
}

// The variant of a kernel that takes what decides behind its other parameters.
void learn_gate(nb::handle kernel, nb::object variant) {
    ToQueues *to = caller(kernel)->to_queues;
    if (!to || to->gated_object.is(variant)) return;
    to->gated = QueueKernel::of(variant);
    to->gated_object = std::move(variant);
}

// ---- many launches ------------------------------------------------------------------------------

// Launches `first` and those after it of `many`, as far as they are plain and nobody has to look:
// how many. `columns`: for each parameter its values, and whether they are one for each launch;
// `when`: the same of what decides, or None. The spans that they touch go to `reads` and `writes`.
Py_ssize_t launch_many(nb::handle kernel, nb::handle global, nb::handle local, nb::list columns,
                       Py_ssize_t first, Py_ssize_t many, nb::list reads, nb::list writes,
                       nb::handle when) {
    Caller *self = caller(kernel);
    if (!self->to_scheduler || !self->to_scheduler->may_launch() ||
        columns.size() != self->to_scheduler->parameters.size())
        return 0;
    ToScheduler &to = *self->to_scheduler;
    Ledger &ledger = *to.ledger;
    const Head *head = to.heads.find(global.ptr(), local.ptr());
    if (!head) return 0;
    std::deque<Column> taken;
    for (std::size_t at = 0; at < columns.size(); at++) {
        nb::handle column = columns[at];
        taken.emplace_back(column[0], nb::cast<bool>(column[1]), to.parameters[at]);
        if (!taken.back().has(many)) return 0;
    }
    std::optional<Column> flags;
    if (!when.is_none()) {
        flags.emplace(when[0], nb::cast<bool>(when[1]), Parameter{'P', 0, true, false});
        if (!flags->has(many)) return 0;
    }
    // PyObject_GetBuffer and the like may have run code
    if (self->to_scheduler != &to || !to.may_launch() ||
        to.heads.find(global.ptr(), local.ptr()) != head)
        return 0;
    Touched before;
    Py_ssize_t at = first;
    for (; at < many && ledger.has_room() && (at == first || !ledger.is_due()); at++) {
        Record record(to);
        std::memcpy(record.bytes, head->words.data(), HEAD_BYTES);
        Touched touched;
        bool is_plain = true;
        for (std::size_t index = 0; is_plain && index < taken.size(); index++)
            is_plain = taken[index].take_at(at, to.parameters[index], self->runtime,
                                            record.bytes, touched);
        if (is_plain && flags) {
            PyObject *flag = flags->item(at);
            is_plain = flag && take_flag(flag, self->runtime, record.bytes, touched);
        }
        if (!is_plain || !enter(to, *head, record, touched)) break;
        for (std::uint32_t index = 0; index < touched.many; index++) {
            PyObject *span = touched.spans[index];
            if (index < before.many && before.spans[index] == span) continue;
            if (touched.reads >> index & 1) reads.append(nb::handle(span));
            if (touched.writes >> index & 1) writes.append(nb::handle(span));
        }
        before = touched;
    }
    return at - first;
}

}  // namespace

void add_caller(nb::module_ &module) {
    call_name = PyUnicode_InternFromString("_call");
    finish_name = PyUnicode_InternFromString("_finish");
    look_name = PyUnicode_InternFromString("_look");
    when_name = PyUnicode_InternFromString("when");
    nb::object type = nb::steal(PyType_FromSpec(&caller_spec));
    caller_type = reinterpret_cast<PyTypeObject *>(type.inc_ref().ptr());
    module.attr("Caller") = type;
    module.attr("Handle") = nb::steal(PyType_FromSpec(&handle_spec));
    module.def("use", use);
    module.def("teach", teach, nb::arg("kernel"), nb::arg("ledger"), nb::arg("scheduler"),
               nb::arg("name"), nb::arg("parameters"), nb::arg("blob_bytes"));
    module.def("learn", learn, nb::arg("kernel"), nb::arg("global_size"),
               nb::arg("local_size").none(), nb::arg("words"), nb::arg("shape").none());
    module.def("teach_queues", teach_queues, nb::arg("kernel"), nb::arg("ledger"),
               nb::arg("queues"), nb::arg("native"), nb::arg("name"), nb::arg("parameters"),
               nb::arg("by_address"), nb::arg("numbers").none());
    module.def("learn_queues", learn_queues, nb::arg("kernel"), nb::arg("global_size"),
               nb::arg("local_size").none(), nb::arg("args"), nb::arg("covers").none(),
               nb::arg("access"), nb::arg("left"), nb::arg("until"), nb::arg("reason").none());
    module.def("learn_gate", learn_gate, nb::arg("kernel"), nb::arg("variant"));
    module.def("launch_many", launch_many, nb::arg("kernel"), nb::arg("global_size"),
               nb::arg("local_size").none(), nb::arg("columns"), nb::arg("first"), nb::arg("many"),
               nb::arg("reads"), nb::arg("writes"), nb::arg("when").none() = nb::none());
    module.def("is_taught", [](nb::handle kernel) {
        const ToScheduler *to = caller(kernel)->to_scheduler;
        return to && to->is_new();
    });
    module.def(
        "knows",
        [](nb::handle kernel, nb::handle global, nb::handle local) {
            ToScheduler *to = caller(kernel)->to_scheduler;
            return to && to->is_new() && to->heads.find(global.ptr(), local.ptr());
        },
        nb::arg("kernel"), nb::arg("global_size"), nb::arg("local_size").none());
    module.def("is_taught_queues", [](nb::handle kernel) {
        const ToQueues *to = caller(kernel)->to_queues;
        return to && to->is_new();
    });
    module.def("forget", [](nb::handle kernel) { forget(caller(kernel)); });
}

}  // namespace acs_cl
