#include "queues.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "spans.hpp"

namespace nb = nanobind;

namespace acs_cl {

namespace {

// From CL/cl.h.
constexpr std::uint32_t KERNEL_FUNCTION_NAME = 0x1190, KERNEL_PROGRAM = 0x1194,
                        COMMAND_EXECUTION_STATUS = 0x11D3;

// Launches in flight on a queue from which on its driver may make an enqueue wait for room. Below it
// the GIL is kept: another busy thread would keep it for milliseconds, once for each launch.
constexpr std::size_t CROWDED = 512;

Driver driver;

// The fields of records.Launch and of commands.KernelCommand.
enum LaunchField { NUMBER, COMMAND, ACCESS, UPSTREAM };
enum KernelField { NAME, KERNEL, GLOBAL_SIZE, LOCAL_SIZE, POINTERS, VALUES, OFFSET, KERNEL_FIELDS };

void *address(nb::handle object) {
    void *found = PyLong_AsVoidPtr(object.ptr());
    if (!found && PyErr_Occurred()) throw nb::python_error();
    return found;
}

// Work sizes as the driver takes them.
class Sizes {
public:
    // False where it is not one to three plain numbers.
    bool take(PyObject *sizes) {
        if (sizes == Py_None) return true;
        if (!PyTuple_CheckExact(sizes)) return false;
        count = std::size_t(PyTuple_GET_SIZE(sizes));
        if (count < 1 || count > 3) return false;
        for (std::size_t at = 0; at < count; at++) {
            PyObject *size = PyTuple_GET_ITEM(sizes, at);
            if (!PyLong_Check(size)) return false;
            values_[at] = PyLong_AsSize_t(size);
            if (!values_[at] || values_[at] == std::size_t(-1)) {  // an offset of 0, too: seldom
                PyErr_Clear();
                return false;
            }
        }
        return true;
    }
    const std::size_t *get() const { return count ? values_ : nullptr; }

    std::size_t count = 0;

private:
    std::size_t values_[3];
};

}  // namespace

void open_driver(const std::vector<std::uintptr_t> &functions) {
    if (functions.size() * sizeof(functions[0]) != sizeof(driver))
        throw std::invalid_argument("these are not the functions of the driver");
    std::memcpy(&driver, functions.data(), sizeof(driver));
}

// ---- kernels -----------------------------------------------------------------------------------

QueueKernel::QueueKernel(std::uintptr_t like) : kernel_(nullptr) {
    void *kernel = reinterpret_cast<void *>(like), *program = nullptr;
    std::size_t length = 0;
    std::int32_t failed =
        driver.kernel_info(kernel, KERNEL_PROGRAM, sizeof(program), &program, nullptr) |
        driver.kernel_info(kernel, KERNEL_FUNCTION_NAME, 0, nullptr, &length);
    std::string name(length, '\0');
    if (!failed)
        failed = driver.kernel_info(kernel, KERNEL_FUNCTION_NAME, length, name.data(), nullptr);
    if (!failed) kernel_ = driver.create_kernel(program, name.c_str(), &failed);
    if (failed) throw std::runtime_error("the driver makes no second kernel");
}

// The one that a kernel of ours keeps: made for its first launch, False where there can be none.
// Null for a kernel of others.
QueueKernel *QueueKernel::of(nb::handle kernel) {
    QueueKernel *found = nullptr;
    nb::object kept = nb::getattr(kernel, "queued", nb::borrow(Py_False));
    if (kept.is_none()) {
        try {
            kept = nb::cast(new QueueKernel(nb::cast<std::uintptr_t>(kernel.attr("int_ptr"))));
        } catch (const std::runtime_error &) {
            kept = nb::borrow(Py_False);
        }
        nb::setattr(kernel, "queued", kept);
    }
    nb::try_cast(kept, found);
    return found;
}

QueueKernel::~QueueKernel() {
    if (kernel_) driver.release_kernel(kernel_);
}

nb::object &QueueKernel::slot(std::size_t index) {
    if (index >= slots_.size()) slots_.resize(index + 1);
    return slots_[index];
}

bool QueueKernel::set_memory(PyObject *arguments, const Classes &classes) {
    for (Py_ssize_t at = 0; at + 1 < PyTuple_GET_SIZE(arguments); at += 2) {
        std::uint32_t index = std::uint32_t(PyLong_AsUnsignedLong(PyTuple_GET_ITEM(arguments, at)));
        nb::handle object = PyTuple_GET_ITEM(arguments, at + 1);
        nb::object &before = slot(index);
        if (before.is(object)) continue;
        auto is = [&](const nb::object &kind) { return nb::isinstance(object, kind); };
        std::int32_t failed;
        if (object.type().is(classes.svm) || is(classes.svm)) {
            failed = driver.set_svm_argument(kernel_, index, address(object.attr("svm_ptr")));
        } else if (is(classes.memory) || is(classes.sampler)) {
            void *handle = address(object.attr("int_ptr"));
            failed = driver.set_argument(kernel_, index, sizeof(handle), &handle);
        } else if (is(classes.local)) {
            auto nbytes = nb::cast<std::size_t>(object.attr("size"));
            failed = driver.set_argument(kernel_, index, nbytes, nullptr);
        } else {
            failed = -1;
        }
        if (failed) {
            before = nb::object();
            return false;
        }
        before = nb::borrow(object);
    }
    return true;
}

bool QueueKernel::set_values(PyObject *arguments) {
    for (Py_ssize_t at = 0; at + 1 < PyTuple_GET_SIZE(arguments); at += 2) {
        std::uint32_t index = std::uint32_t(PyLong_AsUnsignedLong(PyTuple_GET_ITEM(arguments, at)));
        nb::handle value = PyTuple_GET_ITEM(arguments, at + 1);
        nb::object &before = slot(index);
        if (before.is(value)) continue;
        if (!PyBytes_CheckExact(value.ptr())) return false;
        const char *bytes = PyBytes_AS_STRING(value.ptr());
        std::size_t nbytes = std::size_t(PyBytes_GET_SIZE(value.ptr()));
        if (before.is_valid() && std::size_t(PyBytes_GET_SIZE(before.ptr())) == nbytes &&
            !std::memcmp(PyBytes_AS_STRING(before.ptr()), bytes, nbytes))
            continue;
        if (driver.set_argument(kernel_, index, nbytes, bytes)) {
            before = nb::object();
            return false;
        }
        before = nb::borrow(value);
    }
    return true;
}

// ---- what is in flight -------------------------------------------------------------------------

Flying::Entry *Flying::find(std::int64_t number) {
    for (std::size_t at = home(number); table_[at].number; at = (at + 1) & (table_.size() - 1))
        if (table_[at].number == number) return &table_[at];
    return nullptr;
}

void Flying::add(const Entry &entry) {
    if (2 * (size_ + 1) > table_.size()) {
        std::vector<Entry> old(2 * table_.size());
        old.swap(table_);
        size_ = 0;
        for (const Entry &moved : old)
            if (moved.number) add(moved);
    }
    std::size_t at = home(entry.number);
    while (table_[at].number) at = (at + 1) & (table_.size() - 1);
    table_[at] = entry;
    size_++;
}

void Flying::remove(Entry *entry) {
    std::size_t mask = table_.size() - 1, hole = std::size_t(entry - table_.data());
    // what was pushed on past the hole moves back, or it would not be found any more
    for (std::size_t at = (hole + 1) & mask; table_[at].number; at = (at + 1) & mask) {
        if (((at - home(table_[at].number)) & mask) >= ((at - hole) & mask)) {
            table_[hole] = table_[at];
            hole = at;
        }
    }
    table_[hole] = Entry();
    size_--;
}

std::vector<Flying::Entry> Flying::clear() {
    std::vector<Entry> all;
    for (Entry &entry : table_)
        if (entry.number) all.push_back(std::exchange(entry, Entry()));
    size_ = 0;
    return all;
}

// ---- submitting --------------------------------------------------------------------------------

Queues::Queues(nb::list queues, bool out_of_order, bool profiling, nb::tuple classes,
               nb::object event)
    : out_of_order_(out_of_order), profiling_(profiling),
      classes_{classes[0], classes[1], classes[2], classes[3], classes[4]},
      event_(std::move(event)) {
    for (nb::handle queue : queues) {
        lanes_.emplace_back();
        lanes_.back().queue = address(queue.attr("int_ptr"));
        lanes_.back().python = nb::borrow(queue);
    }
}

void Queues::forget() {
    for (const Flying::Entry &entry : flying_.clear()) release(entry);
    for (Lane &lane : lanes_) lane.queued.clear();
}

void Queues::release(const Flying::Entry &entry) {
    if (entry.owner)
        Py_DECREF(entry.owner);
    else
        driver.release_event(entry.event);
}

void Queues::submit(nb::handle launch, nb::handle behind) {
    std::int64_t number = whole_number(PyTuple_GET_ITEM(launch.ptr(), NUMBER));
    PyObject *command = PyTuple_GET_ITEM(launch.ptr(), COMMAND);
    PyObject *upstream = PyTuple_GET_ITEM(launch.ptr(), UPSTREAM);
    upstream_.clear();
    wait_for_.clear();
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(upstream); at++)
        if (auto *entry = flying_.find(whole_number(PyTuple_GET_ITEM(upstream, at))))
            upstream_.push_back(*entry);
    std::size_t chosen = out_of_order_ ? 0 : choose();
    for (const Flying::Entry &other : upstream_) {
        if (!out_of_order_ && other.lane == chosen) continue;
        wait_for_.push_back(other.event);
        if (!out_of_order_ && lanes_[other.lane].unflushed) start(lanes_[other.lane]);
    }
    if (!behind.is_none())
        for (nb::handle event : nb::borrow<nb::list>(behind))
            wait_for_.push_back(address(event.attr("int_ptr")));
    if (PyTuple_GET_SIZE(upstream)) waits += std::int64_t(wait_for_.size());
    Lane &lane = lanes_[chosen];
    Flying::Entry entry;
    entry.number = number;
    entry.lane = std::uint32_t(chosen);
    entry.event = enqueue(lane, command);
    if (!entry.event) {
        nb::object wait_list = nb::none();
        if (!wait_for_.empty()) {
            nb::list events;
            for (void *event : wait_for_) events.append(event_(std::uintptr_t(event), true));
            wait_list = events;
        }
        nb::object event = nb::handle(command).attr("enqueue")(lane.python, wait_list);
        entry.event = address(event.attr("int_ptr"));
        entry.owner = event.release().ptr();
    }
    flying_.add(entry);
    lane.queued.push_back(number);
    lane.unflushed = true;
    lane.used++;
}

// Behind the newest of its upstream that is the last one on its lane; else where least is in flight.
std::size_t Queues::choose() {
    for (auto other = upstream_.rbegin(); other != upstream_.rend(); ++other)
        if (lanes_[other->lane].queued.back() == other->number) return other->lane;
    std::size_t best = latest_, least = lanes_[latest_].queued.size();
    for (std::size_t step = 1; least && step < lanes_.size(); step++) {
        std::size_t lane = (latest_ + step) % lanes_.size();
        if (lanes_[lane].queued.size() < least) {
            best = lane;
            least = lanes_[lane].queued.size();
        }
    }
    return latest_ = best;
}

void Queues::start(Lane &lane) {
    driver.flush(lane.queue);
    lane.unflushed = false;
}

// The event, or null for what only Python can enqueue.
void *Queues::enqueue(Lane &lane, PyObject *command) {
    if (!nb::handle(command).type().is(classes_.kernel_command)) return nullptr;
    auto field = [&](KernelField which) { return PyTuple_GET_ITEM(command, which); };
    Sizes global, local, offset;
    if (!global.take(field(GLOBAL_SIZE)) || !local.take(field(LOCAL_SIZE)) ||
        !offset.take(field(OFFSET)) || !global.count || (local.count && local.count != global.count) ||
        (offset.count && offset.count != global.count))
        return nullptr;
    QueueKernel *kernel = QueueKernel::of(field(KERNEL));
    if (!kernel || !kernel->set_memory(field(POINTERS), classes_) || !kernel->set_values(field(VALUES)))
        return nullptr;
    void *event = nullptr;
    std::int32_t failed;
    auto enqueue = [&] {
        failed = driver.enqueue(lane.queue, kernel->get(), std::uint32_t(global.count),
                                offset.get(), global.get(), local.get(),
                                std::uint32_t(wait_for_.size()),
                                wait_for_.empty() ? nullptr : wait_for_.data(), &event);
    };
    if (lane.queued.size() >= CROWDED) {
        nb::gil_scoped_release others;
        enqueue();
    } else {
        enqueue();
    }
    return failed ? nullptr : event;
}

// ---- what has ended ----------------------------------------------------------------------------

std::int32_t Queues::status(const Flying::Entry &entry) const {
    std::int32_t status = 0;
    std::int32_t failed = driver.event_info(entry.event, COMMAND_EXECUTION_STATUS, sizeof(status),
                                            &status, nullptr);
    return failed ? failed : status;
}

nb::object Queues::event(std::int64_t number) {
    Flying::Entry *entry = flying_.find(number);
    if (!entry) return nb::none();
    if (entry->owner) return nb::borrow(entry->owner);
    return event_(std::uintptr_t(entry->event), true);
}

nb::object Queues::oldest() {
    std::int64_t oldest = INT64_MAX;
    for (const Lane &lane : lanes_)
        if (!lane.queued.empty()) oldest = std::min(oldest, lane.queued.front());
    return event(oldest);
}

nb::list Queues::poll(std::size_t most) {
    if (out_of_order_) {
        collect(lanes_[0], std::min(most, lanes_[0].queued.size()));
    } else if (collect_heads(most)) {
        // what the second pass finds includes everything upstream of what the first one found
        collect_heads(most);
        std::sort(ended_.begin(), ended_.end(), [](const Ended &a, const Ended &b) {
            return a.entry.number < b.entry.number;
        });
    }
    return ended();
}

nb::list Queues::poll_up_to(std::int64_t number) {
    if (!out_of_order_) return poll(flying_.size());
    const auto &queued = lanes_[0].queued;
    auto after = std::find_if(queued.begin(), queued.end(),
                              [&](std::int64_t other) { return other > number; });
    collect(lanes_[0], std::size_t(after - queued.begin()));
    return ended();
}

// What has ended at the heads of in-order lanes; whether anything has.
bool Queues::collect_heads(std::size_t most) {
    std::size_t before = ended_.size();
    for (Lane &lane : lanes_) {
        for (std::size_t seen = 0; seen < most && !lane.queued.empty(); seen++) {
            Flying::Entry *entry = flying_.find(lane.queued.front());
            std::int32_t state = status(*entry);
            if (state > 0) break;
            ended_.push_back({*entry, state});
            flying_.remove(entry);
            lane.queued.pop_front();
        }
    }
    return ended_.size() > before;
}

// Of the first launches of an out-of-order queue, newest first: whatever is upstream of one seen to
// have ended has then ended too. Those that are left move up, to where they are looked at next time.
void Queues::collect(Lane &lane, std::size_t most) {
    std::size_t left = most;
    for (std::size_t at = most; at-- > 0;) {
        Flying::Entry *entry = flying_.find(lane.queued[at]);
        std::int32_t state = status(*entry);
        if (state > 0) {
            lane.queued[--left] = entry->number;
        } else {
            ended_.push_back({*entry, state});
            flying_.remove(entry);
        }
    }
    lane.queued.erase(lane.queued.begin(), lane.queued.begin() + std::ptrdiff_t(left));
    std::reverse(ended_.begin(), ended_.end());
}

nb::list Queues::ended() {
    nb::list list;
    for (const Ended &one : ended_) {
        nb::object event = nb::none();
        if (one.entry.owner)
            event = nb::borrow(one.entry.owner);
        else if (profiling_)
            event = event_(std::uintptr_t(one.entry.event), true);
        list.append(nb::make_tuple(one.entry.number, one.status, event, one.entry.lane));
        release(one.entry);
    }
    ended_.clear();
    return list;
}

void Queues::flush() {
    nb::gil_scoped_release others;
    for (Lane &lane : lanes_)
        if (lane.unflushed) start(lane);
}

nb::list Queues::used() const {
    nb::list used;
    for (const Lane &lane : lanes_) used.append(lane.used);
    return used;
}

}  // namespace acs_cl
