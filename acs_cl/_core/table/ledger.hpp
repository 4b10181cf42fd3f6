// Where launches are that the device-side scheduler has. It also keeps the books of launches that the
// core makes itself, in a few words each: Python learns of one only if it asks (`settle`). Those in
// an epoch end with it; those on a queue, each by itself.

#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "epoch/recorder.hpp"
#include "hazards/python_hazards.hpp"
#include "python/lock.hpp"

namespace acs_cl {

constexpr std::int64_t LOOK_EVERY = 32;  // launches, and then only after so long:
constexpr auto LOOK_AFTER = std::chrono::microseconds(100);

inline nb::tuple upstream_of(const std::vector<Edge> &edges) {
    nb::list upstream;
    for (const Edge &edge : edges) upstream.append(edge.upstream);
    return nb::tuple(upstream);
}

class Ledger {
public:
    Ledger() = default;
    Ledger(const Ledger &) = delete;
    Ledger &operator=(const Ledger &) = delete;
    ~Ledger() {
        for (auto &[_, batch] : batches_) batch.quick.let_go();
        for (Loose &one : loose_)
            if (one.number) one.let_go();
    }

    std::int64_t number = 0;  // of the newest launch
    std::int64_t most = 0;  // launches in the window, when a quick one came

    // ---- epochs and tasks ---------------------------------------------------------------------

    void put(std::int64_t launch, std::uint32_t epoch, std::uint32_t task) {
        place(launch, epoch, task, false);
    }

    // 0 where it is in none.
    std::uint32_t epoch(std::int64_t launch) const {
        const Row *row = find(launch);
        return row ? row->epoch : 0;
    }

    std::int64_t task(std::int64_t launch, std::uint32_t epoch) const {
        const Row *row = find(launch);
        return row && row->epoch == epoch ? std::int64_t(row->task) : -1;
    }

    std::vector<std::int64_t> numbers(std::uint32_t epoch) const {
        auto batch = batches_.find(epoch);
        return batch == batches_.end() ? std::vector<std::int64_t>() : batch->second.numbers;
    }

    // The kernels of the quick launches of an epoch, with how many there are of each.
    nb::dict names(std::uint32_t epoch) const {
        std::unordered_map<PyObject *, std::size_t> many;  // one kernel has one string
        auto batch = batches_.find(epoch);
        if (batch != batches_.end())
            for (const Quick &one : batch->second.quick.all) many[one.name]++;
        nb::dict names;
        for (auto [name, count] : many)
            names[name] = nb::cast<std::size_t>(names.attr("get")(nb::handle(name), 0)) + count;
        return names;
    }

    std::vector<std::int64_t> leave(std::uint32_t epoch) {
        std::vector<std::int64_t> ordinary;
        auto batch = batches_.find(epoch);
        if (batch == batches_.end()) return ordinary;
        for (std::int64_t launch : batch->second.numbers) {
            Row &row = rows_[std::size_t(launch - first_)];
            row.epoch = 0;
            if (!row.quick) ordinary.push_back(launch);
        }
        placed_ -= batch->second.numbers.size();
        if (batch->second.quick.all.empty()) end(batch);
        trim();
        return ordinary;
    }

    std::size_t placed() const { return placed_; }

    // ---- launches of the core's own -----------------------------------------------------------

    std::size_t quick() const { return quick_; }
    bool has_quick(std::int64_t launch) const {
        const Row *row = find(launch);
        return row && row->quick;
    }

    std::vector<std::int64_t> quick_numbers() const {
        std::vector<std::int64_t> numbers;
        for (const auto &[_, batch] : batches_)
            for (const Quick &one : batch.quick.all) numbers.push_back(one.number);
        for (const Loose &one : loose_)
            if (one.number) numbers.push_back(one.number);
        std::sort(numbers.begin(), numbers.end());
        return numbers;
    }

    // The newest of those up to `last`, or the oldest of all; 0: none.
    std::int64_t newest_quick(std::int64_t last) const {
        std::int64_t launch = std::min(last, first_ + std::int64_t(rows_.size()) - 1);
        while (launch >= first_ && !has_quick(launch)) launch--;
        return launch < first_ ? 0 : launch;
    }
    std::int64_t oldest_quick() const {
        auto found = std::find_if(rows_.begin(), rows_.end(), [](const Row &row) { return row.quick; });
        return found == rows_.end() ? 0 : first_ + (found - rows_.begin());
    }

    // Those of an epoch that was left have ended; the numbers of those that were settled meanwhile.
    std::vector<std::int64_t> retire(std::uint32_t epoch) {
        auto batch = batches_.find(epoch);
        if (batch == batches_.end()) return {};
        for (const Quick &one : batch->second.quick.all) {
            hazards->retire(one.number);
            rows_[std::size_t(one.number - first_)].quick = false;
        }
        quick_ -= batch->second.quick.all.size();
        auto settled = std::move(batch->second.settled);
        batch->second.quick.let_go();
        end(batch);
        trim();
        return settled;
    }

    // (number, name, reads, writes) of all of them, which are like others from now on.
    nb::list settle() {
        nb::list settled;
        for (auto &[_, batch] : batches_) {
            for (const Quick &one : batch.quick.all) {
                Row &row = this->row(one.number);
                row.quick = false;
                if (!row.epoch) batch.settled.push_back(one.number);
                settled.append(told(one.number, one.name, batch.quick.nodes.data() + one.first,
                                    one.many, one.reads, one.writes));
            }
            batch.quick.let_go();
        }
        for (std::size_t place = 0; place < loose_.size(); place++) {
            if (!loose_[place].number) continue;
            const auto &[number, name, touched] = loose_[place];
            settled.append(told(number, name, touched.nodes, touched.many, touched.reads,
                                touched.writes));
            let_go_of(place);
        }
        quick_ = 0;
        trim();
        return settled;
    }

    // One that a queue has.
    void put_loose(std::int64_t launch, PyObject *name, const Touched &touched) {
        if (free_.empty()) {
            free_.push_back(std::uint32_t(loose_.size()));
            loose_.emplace_back();
        }
        std::uint32_t place = free_.back();
        free_.pop_back();
        Loose &one = loose_[place];
        one.number = launch;
        one.name = Py_NewRef(name);
        one.touched = touched;
        touched.hold();
        row(launch) = {0, true, true, place};
        quick_++;
        count();
    }

    // Why the newest launch went to a queue, where Python wants to know of each.
    void note(const nb::object &why) {
        nb::object many = nb::steal(PyLong_FromLongLong(number));
        if (PyDict_SetItem(where.ptr(), many.ptr(), why.ptr())) throw PythonError();
        PyObject *before = PyDict_GetItem(reasons.ptr(), why.ptr());
        many = nb::steal(PyLong_FromLongLong(1 + (before ? PyLong_AsLongLong(before) : 0)));
        if (PyDict_SetItem(reasons.ptr(), why.ptr(), many.ptr())) throw PythonError();
    }

    // It has ended, and well; false where it is none of these, any more.
    bool end_loose(std::int64_t launch) {
        const Row *row = find(launch);
        if (!row || !row->loose) return false;
        let_go_of(row->task);
        quick_--;
        hazards->retire(launch);
        trim();
        return true;
    }

    // ---- the open epoch -----------------------------------------------------------------------

    std::uint32_t open = 0;  // 0: none
    nb::object recorder_object, scheduler;
    Recorder *recorder = nullptr;
    std::size_t least_tasks = 0, most_tasks = 0, most_entries = 0, next_look = 0;
    std::vector<std::int64_t> strangers;  // what it waits for that is in no epoch

    // Whether the core may make a launch for it now.
    bool takes(PyObject *for_scheduler) const {
        return open && scheduler.ptr() == for_scheduler && recorder->tasks() >= least_tasks &&
               !ready_first && !PySet_GET_SIZE(watched.ptr()) && is_plain();
    }

    // Launch `number + 1`: the task whose record is in its place, behind what it touches.
    void launch(const std::string_view *blob, const std::string_view *shape, const Touched &touched,
                PyObject *name) {
        inside_.clear();
        for (const Edge &edge : enter(touched)) {
            const Row *row = find(edge.upstream);
            if (!row || !row->epoch) strangers.push_back(edge.upstream);
            else if (row->epoch == open) inside_.push_back(row->task);
        }
        std::uint32_t task = recorder->add(blob, shape, inside_);
        place(number, open, task, true).quick.add(number, name, touched);
        quick_++;
        count();
    }

    bool has_room() const {
        return quick_ + PyDict_GET_SIZE(launches.ptr()) < backlog &&
               quick_ + PyDict_GET_SIZE(slots.ptr()) < window;
    }

    // Whether a launch that nobody holds may go to a driver that then waits for its upstream.
    bool may_follow(const std::vector<Edge> &edges) const {
        return std::all_of(edges.begin(), edges.end(),
                           [this](const Edge &edge) { return may_follow(edge.upstream); });
    }

    bool may_follow(std::int64_t upstream) const {
        if (ready_first || epoch(upstream)) return false;
        if (!PySet_GET_SIZE(watched.ptr())) return true;
        nb::object number = nb::steal(PyLong_FromLongLong(upstream));
        int found = number.is_valid() ? PySet_Contains(watched.ptr(), number.ptr()) : -1;
        if (found < 0) throw PythonError();
        return !found;
    }

    bool is_due() const {
        if (!open) return false;
        return recorder->tasks() >= most_tasks || recorder->entries >= most_entries ||
               (next_look && recorder->tasks() >= next_look);
    }

    // ---- both ---------------------------------------------------------------------------------

    // Whether nothing is unusual, so that the core may make launches.
    bool is_plain() const { return usable && !lock->is_held() && has_room() && is_simple(); }

    // Whether nobody in Python waits for the end of some launch.
    bool is_simple() const {
        for (const nb::object &one : empty)
            if (PyObject_Size(one.ptr())) return false;
        return true;
    }

    // Launch `number + 1` is in the hazards: behind what.
    const std::vector<Edge> &enter(const Touched &touched) {
        const auto &edges = hazards->check(number + 1, touched);
        number++;
        return edges;
    }

    // Whether Python should look at what is due, or has ended.
    bool should_look() {
        if (is_due()) return true;
        if (number % LOOK_EVERY) return false;
        auto now = std::chrono::steady_clock::now();
        if (now - looked_at_ <= LOOK_AFTER) return false;
        looked_at_ = now;
        return true;
    }

    // ---- what it is part of -------------------------------------------------------------------

    bool usable = false;
    std::uint64_t generation = 0;  // of what kernels were taught
    std::size_t backlog = 0, window = 0;
    bool ready_first = false;  // a launch goes nowhere while anything upstream of it runs
    std::vector<nb::object> empty;  // what has to be empty, or a launch is not a plain one
    nb::object slots, hazards_object, lock_object;
    nb::object watched;  // launches that may hold others
    nb::object reasons, where;  // dictionaries, of launches on queues beside a scheduler
    nb::handle launches;  // not held, since they hold this: the runtime does, as long as it launches
    PythonHazards *hazards = nullptr;
    Lock *lock = nullptr;

private:
    struct Row {
        std::uint32_t epoch : 30, quick : 1, loose : 1;
        std::uint32_t task;  // or its place among the loose ones
    };

    // A launch of the core's own; its nodes are `many` of some, from the `first` on. It is made where
    // it stays, as all that a launch writes and reads again soon: what is stored in parts and read as a
    // whole has to wait for all stores before, and these for memory.
    struct Quick {
        Quick(std::int64_t launch, PyObject *called, std::size_t at, const Touched &touched)
            : number(launch), name(called), first(std::uint32_t(at)), many(touched.many),
              reads(touched.reads), writes(touched.writes) {}

        std::int64_t number;
        PyObject *name;
        std::uint32_t first, many, reads, writes;
    };

    // Those of an epoch.
    struct Quicks {
        std::vector<Quick> all;
        std::vector<Node *> nodes;

        void add(std::int64_t number, PyObject *name, const Touched &touched) {
            Py_INCREF(name);
            all.emplace_back(number, name, nodes.size(), touched);
            for (std::uint32_t at = 0; at < touched.many; at++) {
                touched.nodes[at]->holders++;
                nodes.push_back(touched.nodes[at]);
            }
        }
        void let_go() {
            for (const Quick &one : all) Py_DECREF(one.name);
            for (Node *node : nodes) node->let_go();
            all.clear();
            nodes.clear();
        }
    };

    // One that a queue has; number 0: a free place.
    struct Loose {
        std::int64_t number = 0;
        PyObject *name = nullptr;
        Touched touched;

        void let_go() {
            number = 0;
            Py_DECREF(name);
            touched.let_go();
        }
    };

    struct Batch {
        std::vector<std::int64_t> numbers;  // by task
        Quicks quick;
        std::vector<std::int64_t> settled;  // after they had left
    };

    static nb::object told(std::int64_t number, PyObject *name, Node *const *nodes,
                           std::uint32_t many, std::uint32_t reads, std::uint32_t writes) {
        return nb::make_tuple(number, nb::handle(name), spans_of(nodes, many, reads),
                              spans_of(nodes, many, writes));
    }

    Batch &place(std::int64_t launch, std::uint32_t epoch, std::uint32_t task, bool quick) {
        row(launch) = {epoch, quick, false, task};
        Batch &found = batch(epoch);
        found.numbers.push_back(launch);
        placed_++;
        return found;
    }

    Batch &batch(std::uint32_t epoch) {
        if (newest_.first != epoch) {
            auto [found, is_new] = batches_.try_emplace(epoch);
            if (is_new) std::swap(found->second, spare_);
            newest_ = {epoch, &found->second};
        }
        return *newest_.second;
    }

    // Its memory serves the next epoch: as much as that of a full one comes from the system each time.
    void end(std::map<std::uint32_t, Batch>::iterator batch) {
        if (newest_.first == batch->first) newest_ = {};
        spare_ = std::move(batch->second);
        spare_.numbers.clear();
        spare_.settled.clear();
        batches_.erase(batch);
    }

    Row &row(std::int64_t launch) {
        if (rows_.empty()) first_ = launch;
        for (; launch < first_; first_--) rows_.emplace_front();
        std::size_t at = std::size_t(launch - first_);
        if (at == rows_.size()) return rows_.emplace_back();
        if (at > rows_.size()) rows_.resize(at + 1);
        return rows_[at];
    }

    void let_go_of(std::size_t place) {
        row(loose_[place].number) = {};
        loose_[place].let_go();
        free_.push_back(std::uint32_t(place));
    }

    void count() {
        most = std::max(most, std::int64_t(quick_) + PyDict_GET_SIZE(slots.ptr()));
    }

    const Row *find(std::int64_t launch) const {
        std::uint64_t at = std::uint64_t(launch - first_);
        return at < rows_.size() ? &rows_[at] : nullptr;
    }

    void trim() {
        while (!rows_.empty() && !rows_.front().epoch && !rows_.front().quick) {
            rows_.pop_front();
            first_++;
        }
    }

    std::deque<Row> rows_;  // by number, from the oldest that is in an epoch, or quick
    std::int64_t first_ = 0;
    std::map<std::uint32_t, Batch> batches_;
    std::pair<std::uint32_t, Batch *> newest_;
    Batch spare_;
    std::size_t placed_ = 0, quick_ = 0;
    std::vector<Loose> loose_;  // on queues
    std::vector<std::uint32_t> free_;
    std::vector<std::uint32_t> inside_;
    std::chrono::steady_clock::time_point looked_at_;
};

}  // namespace acs_cl
