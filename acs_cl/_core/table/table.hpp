// The launch table: a row for each launch in flight, from its entry into the hazards to its end. It includes the
// window, which decides when a launch may go to its route, and the launches of each epoch of the scheduler.
// docs/design/launch-table.md says more; emu/reference/table.py is the model.
//
// A launch is held on the host only by what no driver can wait for:
// - A launch that blocks on the host (a host task) holds those behind it until it has ended.
// - Any other launch holds those behind it only until it is handed out. The driver then waits for its event.
// - A launch that waits on the host is held by all that it follows until they have ended. Host tasks do, since no
//   driver waits for them, and with `ready_first` every launch does.
// - A launch with foreign events is held until they have ended.
// - A launch outside of a full window is held until there is room.

#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "epoch/forecast.hpp"
#include "epoch/recorder.hpp"
#include "hazards/python_hazards.hpp"
#include "python/lock.hpp"
#include "python/owned.hpp"
#include "table/reasons.hpp"
#include "table/rows.hpp"

namespace acs_cl {

constexpr std::size_t MOST_PAST = 256;  // foreseen epochs that are remembered for `explain`
constexpr std::int64_t POLL_EVERY = 32;  // launches from one look at the clock to the next
constexpr auto POLL_AFTER = std::chrono::microseconds(100);    // from one poll of Python's to the next, at least
constexpr auto COUNT_AFTER = std::chrono::microseconds(4000);  // `Table::count_after` at first

// Makes a `records.Launch`.
nb::object new_record(std::int64_t number, const nb::object &command, const nb::object &access, const nb::tuple &upstream);

// A launch in flight on a lane.
struct Flying {
    std::int64_t number = 0;  // 0: it is not in flight
    void *event = nullptr;
    PyObject *owner = nullptr;  // the Python event, if that keeps the launch's host memory alive
    std::uint32_t lane = 0;
    std::int64_t place = 0;  // on its lane, from 1 on, in the order of submission
    PyObject *bytes = nullptr;  // host memory of the core that the driver uses until the launch ends
    bool continued = false;  // another launch has followed it on its lane; for a policy of lanes
    const void *queues = nullptr;  // whose lane it is on: those of its device
};

// A launch went from one state to another. `ns`: on the clock of `perf_counter_ns`.
struct Transition {
    std::int64_t number;
    State from, to;
    std::int64_t ns;
};

class Sender;

class Table : Single {
public:
    ~Table() {
        rows_.each(-1, [](std::int64_t, Row &row) {
            Py_CLEAR(row.object);
            return true;
        });
        for (OnLane &one : on_lanes_) one.touched.let_go();
        if (lock) lock->first = nullptr;
    }

    // Visits the Python objects that it owns, for the collector of cycles. Stops when `visit` returns false.
    template <typename Visit>
    void each_object(Visit &&visit) {
        rows_.each(-1, [&](std::int64_t, Row &row) { return !row.object || visit(row.object); });
        for (nb::handle one : {nb::handle(recorder.owner()), nb::handle(scheduler), nb::handle(hazards.owner()),
                               nb::handle(lock_object), nb::handle(reasons.owner())})
            if (one.ptr() && !visit(one.ptr())) return;
        for (const RememberedPointer &one : forecast.remembered())
            for (nb::object *object : {&one->scheduler, &one->resident})
                if (object->ptr() && !visit(object->ptr())) return;
        for (const Costly &one : forecast.slow())
            if (!visit(one.begin->scheduler.ptr())) return;
    }
    void clear_objects() {
        forecast.forget_all();
        forecast.start();
        rows_.each(-1, [](std::int64_t, Row &row) {
            if (!row.has_record()) return true;  // it is a string
            Py_XSETREF(row.object, Py_NewRef(Py_None));
            return true;
        });
        scheduler.reset();
        recorder = {};
        reasons = {};
        open = 0;
        usable = false;
    }

    std::int64_t number = 0;   // of the newest launch
    std::int64_t ended = 0;    // launches that have ended so far
    std::int64_t full = 0;     // launches that found the window full
    std::int64_t by_core = 0;  // launches that the core has made so far
    std::size_t most = 0;      // the most launches that were inside the window

    // ---- from one state to the next -------------------------------------------------------------

    // Takes a launch to its next state. Raises if that may not follow.
    void go(std::int64_t launch, Row &row, State state) {
        check_step(launch, row.state, state);
        if (logs_) keep_step(launch, row.state, state);
        row.state = state;
    }

    // Inserts a launch that Python made behind all others. Returns whether it is ready, and then the caller has it.
    // `has_foreign`: it is held until `foreign_ended`. `counted`: whether it has failed may be known only after its end.
    bool insert(nb::handle launch, bool blocks_on_host, bool has_foreign, bool waits_on_host, bool counted);

    // Enters a launch of Python into the hazards and the window. `after`: launches that it follows, whatever bytes it
    // touches. Returns its number, and whether it is ready. The caller has it then.
    std::pair<std::int64_t, bool> take(const nb::object &command, const nb::object &access, Footprint *footprint,
                                       const std::vector<std::int64_t> &after, bool blocks_on_host,
                                       bool has_foreign, bool waits_on_host, bool counted);

    // Inserts launch `number` of the core, which is in the hazards behind `edges`. No lane took it, so it goes on like
    // a launch that Python made.
    void keep(const nb::object &command, const Touched &touched, Edges edges);

    // Notes that its route has a launch.
    void start(std::int64_t launch) { go(launch, known(launch), State::EXECUTING); }

    // Ends a launch.
    void end(std::int64_t launch, bool failed);

    // Ends a launch that will not run. Its upstream stands in for it until that has ended.
    void never_ran(std::int64_t launch, const std::vector<std::int64_t> &upstream);

    // Returns the upstream with stand-ins in place of launches that never ran.
    std::vector<std::int64_t> expand(const std::vector<std::int64_t> &upstream) const;

    // Lets a launch go on whose foreign events have ended.
    void foreign_ended(std::int64_t launch);

    // Takes the next launch that became ready, in the order in which they did. 0: there is none.
    std::int64_t next_ready() {
        if (ready_.empty()) return 0;
        std::int64_t launch = ready_.front();
        ready_.pop_front();
        return launch;
    }
    bool has_ready() const { return !ready_.empty(); }

    // Gives back a ready launch that reached nobody, because of an error of Python. It is the next one again.
    void put_back(std::int64_t launch) {
        if (is_unclaimed(launch)) ready_.push_front(launch);
    }

    // Ends such a launch instead.
    void withdraw(std::int64_t launch) {
        if (!is_unclaimed(launch)) return;
        ready_.erase(std::remove(ready_.begin(), ready_.end(), launch), ready_.end());
        Upstream upstream;
        for (PyObject *other : Items(PyTuple_GET_ITEM(known(launch).object, 3)))
            upstream.push_back(whole_number(other));
        never_ran(launch, upstream);
    }

    // Notes that a failure has reached a launch. However it ends, it has failed.
    void lose(std::int64_t launch) {
        tell_apart();
        known(launch).is_lost = true;
    }

    // ---- asking ---------------------------------------------------------------------------------

    std::size_t in_flight() const { return in_flight_ + forecast.counted(); }
    bool has(std::int64_t launch) const {
        return find(launch) || is_counted_only(launch);
    }
    // Returns the launch whose row stands for one in flight. 0: it has ended.
    std::int64_t row_of(std::int64_t launch) const { return find(launch) ? stands_for(launch) : 0; }
    std::int64_t oldest() const { return rows_.oldest(); }
    std::int64_t newest(std::int64_t last) const { return rows_.newest(last); }
    std::size_t outside() const { return outside_.size(); }
    std::size_t inside() const { return inside_; }
    std::size_t waiting() const { return outside_.size() + pending_; }  // launches that are not handed out

    const char *state(std::int64_t launch) const {
        const Row *row = find(launch);
        if (row) return name_of(row->state);
        if (is_counted_only(launch)) return name_of(State::READY);
        return stand_ins_.count(launch) ? name_of(State::NEVER_RAN) : nullptr;
    }

    nb::list live();

    // Returns the number of launch `place` of those in flight, from 0 on. 0: there are not so many.
    std::int64_t nth(std::size_t place);

    // Returns a `records.Launch`. None: it is not in flight.
    nb::object record_of(std::int64_t launch);

    // Returns the launches behind one, in order.
    nb::list later(std::int64_t launch);

    // Returns what holds a launch that is not handed out.
    std::vector<std::int64_t> blockers(std::int64_t launch) const;

    // Logs every change of a state from now on.
    void log() { logs_ = true; }
    const std::vector<Transition> &transitions() const { return log_; }

    // ---- queues of the program --------------------------------------------------------------------

    std::uint32_t new_queue() {
        newest_of_queue_.push_back(0);
        return std::uint32_t(newest_of_queue_.size());
    }

    // Assigns a launch to a queue. `shown`: the host can see its result without another command.
    void assign(std::int64_t launch, std::uint32_t queue, bool shown) {
        newest_of_queue_.at(queue - 1) = launch;
        Row *row = rows_.find(launch);
        if (!row) return;  // it has ended already
        row->owner = queue;
        shown_ += shown && !row->is_shown;
        row->is_shown |= shown;
    }

    // Returns the queue of a launch in flight. 0: none.
    std::uint32_t queue_of(std::int64_t launch) const {
        const Row *row = rows_.find(launch);
        return row ? row->owner : 0;
    }

    // Returns the newest launch that a queue ever had. 0: none.
    std::int64_t newest_of(std::uint32_t queue) const { return newest_of_queue_.at(queue - 1); }

    // Adds the launches of a queue in flight behind `first`, up to `last`. `shown`: only those whose result the host can
    // see.
    void add_of_queue(std::uint32_t queue, std::int64_t first, std::int64_t last, bool shown,
                      std::vector<std::int64_t> &to);
    std::vector<std::int64_t> of_queue(std::uint32_t queue, std::int64_t last, bool shown) {
        std::vector<std::int64_t> found;
        add_of_queue(queue, -1, last, shown, found);
        return found;
    }
    // Whether there are such launches whose result the host can see.
    bool shows(std::uint32_t queue, std::int64_t last = INT64_MAX);

    // ---- epochs and tasks -----------------------------------------------------------------------

    // Makes a launch of Python a task of an epoch.
    void put(std::int64_t launch, std::uint32_t epoch, std::uint32_t task) {
        Row &row = known(launch);
        row.epoch = epoch;
        row.task = task;
        row.is_left = false;
        batch(epoch).numbers.push_back(launch);
        in_epochs_++;
        if (epoch == open) forecast.leave_alone();
    }

    // Returns the epoch of a launch. 0: none.
    std::uint32_t epoch(std::int64_t launch) const {
        const Row *row = find(launch);
        return row && row->is_in_epoch() ? row->epoch : 0;
    }

    std::int64_t task(std::int64_t launch, std::uint32_t epoch) const {
        const Row *row = rows_.find(launch);
        return row && row->is_in_epoch() && row->epoch == epoch ? std::int64_t(row->task) : -1;
    }

    std::vector<std::int64_t> of_epoch(std::uint32_t epoch);

    // Returns the kernels in an epoch, and how many launches of each the core made there.
    nb::dict names(std::uint32_t epoch) const;

    // Whether the core made all launches of an epoch, and only those are in flight up to the last one. Then no failure
    // is left to be reported before they end.
    bool comes_next(std::uint32_t epoch);

    // Takes the launches out of an epoch that has ended, or is given up. Returns those that Python has to end one by
    // one. The others end at `end_epoch`. `one_by_one`: it returns all.
    std::vector<std::int64_t> leave(std::uint32_t epoch, bool one_by_one);

    // Ends the launches that the core made in an epoch that was left.
    void end_epoch(std::uint32_t epoch);

    // Adds a replay of a segment as the only launch of an epoch, which is about to be sent. Returns its upstream.
    std::vector<std::int64_t> enter_replay(std::uint32_t epoch, const nb::object &command, const nb::object &access,
                                           Footprint &footprint);

    std::size_t in_epochs() const { return in_epochs_; }

    // ---- launches of the core -------------------------------------------------------------------

    // Adds a launch that a lane has.
    void put_on_lane(std::int64_t launch, PyObject *name, const Touched &touched) {
        Row &row = make(launch, name, touched);
        place_of(row).touched = touched;
        touched.hold();
    }

    // Returns a launch on its lane. Null: no lane has it.
    Flying *flying(std::int64_t launch) {
        const Row *row = rows_.find(launch);
        if (!row || !row->has_place) return nullptr;
        Flying &one = on_lanes_[row->first].flying;
        return one.number ? &one : nullptr;
    }

    // Notes that a lane has a launch.
    void take_off(std::int64_t launch, void *event, PyObject *owner, std::uint32_t lane, std::int64_t place,
                  const void *queues) {
        place_of(known(launch)).flying = {launch, event, owner, lane, place, nullptr, false, queues};
    }

    // Notes that no lane has it any more. The caller owns what is returned.
    Flying land(std::int64_t launch) { return std::exchange(*flying(launch), Flying()); }

    // Ends a launch that the core made for a lane, and that ended well. False: it is another one.
    bool end_on_lane(std::int64_t launch) {
        Row *row = rows_.find(launch);
        if (!row || !row->is_on_lane_by_core()) return false;
        const leftovers::Kept kept;  // until all is as it should be
        go(launch, *row, row->is_lost ? State::FAILED : State::ENDED);
        give_up(launch, *row, true);
        let_others_in();
        return true;
    }

    // Notes that only the end of a launch tells whether its count was right.
    void count(std::int64_t launch) {
        Row &row = known(launch);
        counted_ += !row.is_counted;
        row.is_counted = true;
    }

    // Whether it is one of these, and in flight.
    bool has_count(std::int64_t launch) const {
        const Row *row = counted_ ? rows_.find(launch) : nullptr;
        return row && row->is_counted;
    }

    // Whether Python has to look at the count of a launch that has ended.
    bool is_counted_by_python(std::int64_t launch) const {
        const Row *row = counted_ ? rows_.find(launch) : nullptr;
        return row && row->is_counted && row->has_record();
    }

    // ---- the open epoch -------------------------------------------------------------------------

    std::uint32_t open = 0;  // 0: none
    nb::object scheduler;
    Owned<Recorder> recorder;
    std::size_t least_tasks = 0, most_tasks = 0, most_entries = 0, next_poll = 0;
    std::vector<std::int64_t> external;  // its external upstream: launches in no epoch
    Sender *sender = nullptr;            // of epochs; null: there is no scheduler

    // Whether the core may add a launch now.
    bool takes_more() const {
        return open && recorder->tasks() + forecast.counted() >= least_tasks && may_record();
    }

    // Sends it, and opens one for another scheduler. False: Python has to decide that, and nothing has changed.
    bool open_for(nb::handle other);

    // Adds launch `number + 1`, a task whose record is in its place. If the epoch is forecast and the launch comes as
    // foreseen, it is only counted.
    void launch(const std::string_view *blob, const std::string_view *shape, const Touched &touched,
                PyObject *name, const Addresses &addresses) {
        if (forecast.is_on && is_foreseen(blob, shape, touched, addresses)) {
            counted();
            return;
        }
        if (!forecast.is_timed()) return record_task(blob, shape, touched, name, addresses);
        const auto began = std::chrono::steady_clock::now();
        record_task(blob, shape, touched, name, addresses);
        forecast.recorded(std::chrono::nanoseconds(std::chrono::steady_clock::now() - began).count());
    }

    // Counts launch `number + 1`, which is the one that `forecast.next_counted` returned.
    void launch_expected() {
        forecast.count();
        counted();
    }

    // Enters the launches that were only counted into the hazards: as a whole, or one by one like without a forecast.
    // Every taker of the lock does this first.
    void settle() noexcept {
        if (!forecast.counted()) return;
        if (forecast.comes_to_an_end()) enter_foreseen();
        else record_counted();
    }

    // Records the launches that were only counted.
    void record_counted();

    // Opens an epoch for launches.
    void open_epoch(std::uint32_t epoch, nb::object to, nb::object for_scheduler, std::size_t least,
                    std::size_t most, std::size_t entries, std::size_t poll) {
        recorder = std::move(to);
        scheduler = std::move(for_scheduler);
        open = epoch;
        least_tasks = least;
        most_tasks = most;
        most_entries = entries;
        next_poll = poll;
    }

    // Takes the remembered epoch that is sent in place of the open one. Null: that did not come as foreseen.
    RememberedPointer take_foreseen() {
        if (!forecast.is_complete()) return nullptr;
        RememberedPointer known = forecast.followed();
        forecast.sent_foreseen();
        return known;
    }

    // Remembers the open epoch, which was collected and is sent. Returns whether it has come often and should stay on
    // the device. `keep_on_device` is called then.
    bool remember();

    // Makes that epoch resident. `words`: those up to its blocks. `graph`: its tasks.
    void keep_on_device(nb::object resident, const void *words, std::size_t many, const Graph &graph);

    Forecast forecast;

    bool has_room(std::size_t many = 1) const {
        const std::size_t after = forecast.counted() + many;
        return in_flight_ + after <= backlog && inside_ + after <= window;
    }

    // Whether a driver may have a launch with these edges, and wait for its upstream.
    bool may_follow(Edges edges) const {
        return std::all_of(edges.begin(), edges.end(),
                           [this](const Edge &edge) { return may_follow(edge.upstream); });
    }

    bool may_follow(std::int64_t upstream) const {
        if (ready_first) return false;
        const Row *row = rows_.find(upstream);
        return !row || !(row->is_watched || row->is_in_epoch());
    }

    // Returns the epoch that alone keeps a driver from waiting for `upstream`, or 0.
    std::uint32_t epoch_ahead(std::int64_t upstream) const {
        const Row *row = rows_.find(upstream);
        return row && !ready_first && !row->is_watched && row->is_in_epoch() ? row->epoch : 0;
    }

    // Sends an epoch if it is open, and returns the driver's event behind it. Null: there is none.
    void *event_of_epoch(std::uint32_t which);

    // Whether an epoch has failed, and Python does not know yet. All that follows it on lanes has failed, too, and ends
    // only when Python knows.
    bool has_bad_epoch() const;

    bool is_due() const {
        if (!open) return false;
        if (recorder->tasks() >= most_tasks || recorder->entries >= most_entries ||
            forecast.ends_here())
            return true;
        // an epoch that follows a remembered one ends where that did
        if (forecast.follows() && next_poll != 1) return false;
        return next_poll && recorder->tasks() >= next_poll;
    }

    // Whether launches of the open epoch were only counted, and nobody polls that epoch.
    bool wants_attention() const { return next_poll == 1 && forecast.counted(); }

    // ---- both -----------------------------------------------------------------------------------

    // Whether the core may make launches, because nothing is unusual.
    bool is_plain() const { return !lock->is_held() && may_go_on(); }
    bool is_plain_beside_counts() const { return !lock->is_held() && may_go_to_lane(); }
    // The same for a caller that has the lock.
    bool may_go_on() const { return usable && may_make(); }
    // The same for launches that Python asks for.
    bool may_make() const { return has_room() && is_simple(); }
    // The same for a kernel on a lane. It may follow a launch whose count is not looked at yet: lanes see ends in their
    // order, and tell Python all that come behind a wrong count.
    bool may_go_to_lane() const { return usable && has_room() && is_simple_beside_counts() && !(counted_ && in_epochs_); }

    // The same for a replay of a segment, for which a driver has to wait for whatever is in flight.
    bool may_replay() const { return may_go_on() && !ready_first && watched_.empty(); }

    bool is_simple() const { return !counted_ && is_simple_beside_counts(); }
    bool is_simple_beside_counts() const {
        return !(recording || bypassing || poisoned) && returned_.empty() &&
               outside_.empty() && stand_ins_.empty() && !(in_order && !watched_.empty());
    }
    bool has_stand_ins() const { return !stand_ins_.empty(); }
    bool has_counted() const { return counted_; }
    bool has_watched() const { return !watched_.empty(); }

    // Enters launch `number + 1` into the hazards. Returns its edges.
    Edges enter(const Touched &touched) {
        const Edges edges = hazards->check(number + 1, touched);
        number++;
        return edges;
    }

    // Sends a due epoch, or has Python do that and poll. False with an error. Launches that are only
    // counted stay so if Python only has to know that there are some.
    bool poll(PyObject *engine);

    // Whether Python has not polled for a while. If so, it polls now.
    bool is_unseen() {
        const auto now = std::chrono::steady_clock::now();
        if (now - polled_at_ <= POLL_AFTER) return false;
        polled_at_ = now;
        return true;
    }

    std::chrono::nanoseconds count_after = COUNT_AFTER;  // like POLL_AFTER, while launches are only counted

    // Whether Python should poll, after the newest `many` launches.
    bool should_poll(std::size_t many = 1) {
        if (is_due() || wants_attention()) return true;
        if (number / POLL_EVERY == (number - std::int64_t(many)) / POLL_EVERY) return false;
        auto now = std::chrono::steady_clock::now();
        const std::size_t counted = forecast.counted();
        const bool begins = counted && counted <= std::size_t(POLL_EVERY);
        if (!begins && now - polled_at_ <= (counted ? count_after : POLL_AFTER)) return false;
        polled_at_ = now;
        return !begins;
    }

    // Closes the open epoch.
    void shut() {
        open = 0;
        recorder = {};
        scheduler.reset();
        besides_.clear();
        forecast.start();
    }

    // Whether a launch came in a foreseen epoch, as far as that is remembered.
    bool was_foreseen(std::int64_t launch) const {
        return std::any_of(past_.begin(), past_.end(), [launch](const auto &one) {
            return one.first <= launch && launch <= one.second;
        });
    }

    // Takes memory that a program has dropped, in whatever thread. The next launch handles it first.
    void give_back(std::int64_t base, nb::object block) {
        if (is_closed) return;  // and the driver has it back
        returned_.emplace_back(base, std::move(block));
    }
    bool has_returned() const { return !returned_.empty(); }
    nb::object take_back() {
        if (returned_.empty()) return nb::none();
        auto [base, block] = std::move(returned_.front());
        returned_.pop_front();
        return nb::make_tuple(base, block);
    }

    // ---- the runtime around it ------------------------------------------------------------------

    bool usable = false;
    bool is_closed = false;  // no launch comes any more, and none is in flight
    std::uint64_t generation = 0;  // of launch plans
    std::size_t backlog = SIZE_MAX, window = SIZE_MAX;
    bool ready_first = false;  // a launch is held while any of its upstream runs
    bool in_order = false;     // all launches behind a held one are held
    // reasons for which launches are unusual, besides those in the table itself
    std::int64_t recording = 0;  // recordings under way
    std::int64_t bypassing = 0;  // queues in bypass
    bool poisoned = false;
    nb::object lock_object;
    Owned<Reasons> reasons;  // why launches went to lanes beside a scheduler; null: there is no scheduler
    Owned<PythonHazards> hazards;
    Lock *lock = nullptr;

private:
    using Upstream = std::vector<std::int64_t>;

    // Whether a launch of Python is ready, and neither a lane nor an epoch has it.
    bool is_unclaimed(std::int64_t launch) {
        const Row *row = rows_.find(launch);
        return row && row->state == State::READY && !row->by_core && !row->epoch && !flying(launch);
    }

    // A launch that holds others, or is held.
    struct Watched {
        std::uint32_t blockers = 0;
        Upstream dependants;       // launches held until it is handed out, or, if it blocks on the host, until it has ended
        Upstream waiting_on_host;  // launches held until it has ended
    };

    // A launch on a lane, and the nodes that it touches if the core made it.
    struct OnLane {
        Flying flying;
        Touched touched;
    };

    // A launch outside of the window.
    struct Outside {
        std::int64_t number;
        Upstream upstream;
        bool has_foreign, waits_on_host;
    };

    // The launches of an epoch.
    struct Batch {
        Upstream numbers;  // by task; a foreseen epoch has only its last one
        std::vector<NodePointer> nodes;  // of launches that the core made
        std::size_t many = 0;            // how many of those are in flight
    };

    // What a task of the open epoch has beside its record.
    struct Beside {
        Addresses addresses;
        std::uint32_t blob_bytes;
    };

    // A foreseen epoch in flight: its first launch, and the remembered epoch that it is like. The row of its last
    // launch stands for all.
    struct Foreseen {
        std::int64_t first;
        RememberedPointer like;
    };

    void keep_step(std::int64_t launch, State from, State to);

    // Whether the core may make tasks, whatever epoch is open.
    bool may_record() const {
        return !forecast.is_complete() && !ready_first && watched_.empty() && is_plain();
    }

    // ---- foreseen epochs ------------------------------------------------------------------------

    bool is_foreseen(const std::string_view *blob, const std::string_view *shape,
                     const Touched &touched, const Addresses &addresses) {
        const auto ask = [&](const char *own) {
            const Asked one{own, blob ? *blob : std::string_view(own + HEAD_BYTES, INLINE_BYTES),
                            shape ? *shape : std::string_view(), touched, addresses};
            return forecast.ask(one, recorder->tasks(), scheduler.ptr());
        };
        const Forecast::Verdict verdict = ask(reinterpret_cast<char *>(recorder->records.back().data()));
        if (verdict != Forecast::Verdict::GIVE_UP) return verdict == Forecast::Verdict::COUNT;
        const RecordWords record = recorder->records.back();
        record_counted();
        ask(recorder->place(record));
        return false;
    }

    // Goes on behind a launch that was counted.
    void counted() {
        number++;
        if (forecast.ends_here()) enter_foreseen();
    }

    // Makes one row for all launches of the open epoch, which came as foreseen, behind what they touch together.
    void enter_foreseen();

    // Returns the launch whose row stands for this one.
    std::int64_t stands_for(std::int64_t launch) const {
        if (foreseen_.empty()) return launch;
        auto found = foreseen_.lower_bound(launch);
        return found == foreseen_.end() || found->second.first > launch ? launch : found->first;
    }
    const Row *find(std::int64_t launch) const { return rows_.find(stands_for(launch)); }
    bool is_foreseen(std::int64_t launch) const { return foreseen_.count(launch); }
    bool is_counted_only(std::int64_t launch) const {
        return !forecast.is_complete() && launch <= number &&
               launch > number - std::int64_t(forecast.counted());
    }
    std::size_t weight(std::int64_t launch, const Row &row) const {
        return row.is_foreseen ? std::size_t(launch - foreseen_.at(launch).first + 1) : 1;
    }

    // Gives each launch of foreseen epochs its own row, because somebody asks for a single one.
    void tell_apart();

    // Fills a remembered epoch from the open one.
    void fill(RememberedEpoch &made, const Batch &in);

    // ---- rows -----------------------------------------------------------------------------------

    // Records the task whose record is in its place.
    void record_task(const std::string_view *blob, const std::string_view *shape,
                     const Touched &touched, PyObject *name, const Addresses &addresses) {
        inside_epoch_.clear();
        for (const Edge &edge : enter(touched)) {
            const Row *row = rows_.find(edge.upstream);
            if (!row || !row->is_in_epoch()) external.push_back(edge.upstream);
            else if (row->epoch == open) inside_epoch_.push_back(row->task);
        }
        std::uint32_t task = recorder->add(blob, shape, inside_epoch_);
        if (forecast.remembers())
            besides_.push_back({addresses, std::uint32_t(blob ? blob->size() : 0)});
        Batch &in = batch(open);
        Row &row = make(number, name, touched);
        row.epoch = open;
        row.task = task;
        row.first = std::uint32_t(in.nodes.size());
        in.numbers.push_back(number);
        in.many++;
        for (std::uint32_t at = 0; at < touched.many; at++) in.nodes.emplace_back(touched.nodes[at]);
        in_epochs_++;
    }

    Row &known(std::int64_t launch) {
        Row *row = rows_.find(launch);
        if (!row) throw nb::key_error(std::to_string(launch).c_str());
        return *row;
    }

    // Makes the row of a launch of the core, which goes to its route at once.
    Row &make(std::int64_t launch, PyObject *name, const Touched &touched) {
        Row &row = rows_.make(launch);
        row.object = Py_NewRef(name);
        row.by_core = true;
        by_core++;
        row.many = std::uint8_t(touched.many);
        row.reads = touched.reads;
        row.writes = touched.writes;
        row.overwrites = touched.overwrites;
        in_flight_++;
        most = std::max(most, ++inside_);
        go(launch, row, State::READY);
        go(launch, row, State::EXECUTING);
        return row;
    }

    // ---- the window -----------------------------------------------------------------------------

    Watched &watch(std::int64_t launch, Row &row) {
        row.is_watched = true;
        return watched_[launch];
    }

    void forget(std::int64_t launch, Row &row) {
        row.is_watched = false;
        watched_.erase(launch);
    }

    bool enter(std::int64_t launch, Row &row, const Upstream &upstream, bool has_foreign, bool waits_on_host);

    void hand_out(std::int64_t launch, Row &row) {
        go(launch, row, State::READY);
        pending_--;
    }

    // Removes a blocker of a launch. If that was the last one, the launch is ready, and so may be those that it held.
    void unblock(std::int64_t launch);

    // Collects the launches that waited until this one was handed out.
    void let_pass(std::int64_t launch, Row &row, std::deque<std::int64_t> &come);

    // Gives up the row of a launch that is over, and unblocks the launches that it held. Its record may be the last one
    // that knows some object of the program.
    void give_up(std::int64_t launch, Row &row, bool retires) {
        leftovers::drop(std::exchange(row.object, nullptr));
        if (row.has_place) give_place_up(row);
        counted_ -= row.is_counted;
        shown_ -= row.is_shown;
        const bool was_watched = row.is_watched;
        const std::size_t many = weight(launch, row);
        if (row.is_foreseen) foreseen_.erase(launch);
        rows_.erase(launch);
        in_flight_ -= many;
        inside_ -= many;
        ended += std::int64_t(many);
        if (retires && hazards) hazards->retire(launch);
        if (was_watched) {
            const auto found = watched_.extract(launch);
            for (const Upstream *list : {&found.mapped().dependants, &found.mapped().waiting_on_host})
                for (std::int64_t other : *list) unblock(other);
        }
    }

    // Returns the place for a launch on a lane.
    OnLane &place_of(Row &row) {
        if (!row.has_place) {
            if (free_.empty()) {
                free_.push_back(std::uint32_t(on_lanes_.size()));
                on_lanes_.emplace_back();
            }
            row.first = free_.back();
            row.has_place = true;
            free_.pop_back();
        }
        return on_lanes_[row.first];
    }

    void give_place_up(const Row &row) {
        Touched &touched = on_lanes_[row.first].touched;
        touched.let_go();
        touched.many = 0;
        free_.push_back(row.first);
    }

    // Notes that Python ended a launch of the core in an epoch that was left.
    void end_in_batch(std::uint32_t epoch) {
        auto found = batches_.find(epoch);
        if (!--found->second.many) end_batch(found);
    }

    // Lets launches into the window if there is room, and removes stand-ins that have ended.
    void let_others_in();

    // ---- rows for Python, and epochs ------------------------------------------------------------

    nb::object record(std::int64_t launch, const Row &row);

    Batch &batch(std::uint32_t epoch) {
        if (newest_.first != epoch) {
            auto [found, is_new] = batches_.try_emplace(epoch);
            if (is_new) std::swap(found->second, spare_);
            newest_ = {epoch, &found->second};
        }
        return *newest_.second;
    }

    // Ends the batch of an epoch. Its memory serves the next one, since the system would give so much anew each time.
    void end_batch(std::map<std::uint32_t, Batch>::iterator batch) {
        if (newest_.first == batch->first) newest_ = {};
        spare_ = std::move(batch->second);
        spare_.nodes.clear();
        spare_.numbers.clear();
        batches_.erase(batch);
    }

    Rows rows_;
    std::unordered_map<std::int64_t, Watched> watched_;
    std::deque<Outside> outside_;
    std::deque<std::int64_t> ready_;
    std::deque<std::pair<std::int64_t, nb::object>> returned_;
    std::map<std::int64_t, Upstream> stand_ins_;  // of launches that never ran
    std::size_t in_flight_ = 0, inside_ = 0, pending_ = 0, counted_ = 0, in_epochs_ = 0;
    std::size_t shown_ = 0;  // launches whose result the host can see
    std::vector<std::int64_t> newest_of_queue_;
    std::map<std::uint32_t, Batch> batches_;
    std::pair<std::uint32_t, Batch *> newest_;
    Batch spare_;
    std::deque<OnLane> on_lanes_;
    std::vector<std::uint32_t> free_, inside_epoch_;
    std::vector<Beside> besides_;
    std::map<std::int64_t, Foreseen> foreseen_;  // by the last launch
    std::deque<std::pair<std::int64_t, std::int64_t>> past_;
    RememberedPointer kept_;
    std::chrono::steady_clock::time_point polled_at_;
    std::vector<Transition> log_;
    bool logs_ = false;
};

PyTypeObject *loan_type();

}  // namespace acs_cl
