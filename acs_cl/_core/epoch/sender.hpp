// The sender of epochs: the open one, those on the device, and the commands of one. The commands upload words into
// a region, launch the scheduler, and read the status buffer. acs_cl/scheduler/sender.py and backend.py decide
// unusual cases: other orders, windows, segments, loops, faults.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "driver/kernel.hpp"
#include "driver/landing.hpp"
#include "driver/memory.hpp"
#include "driver/queues.hpp"
#include "epoch/forecast.hpp"
#include "python/clock.hpp"
#include "python/gil.hpp"
#include "table/table.hpp"

namespace acs_cl {

constexpr std::size_t STATUS_WORDS = 160, UNFINISHED = 64, SPAWNED = 99, KEPT = 100, REASONS = 4,
                      FAULT = 128;  // as in acs_cl/scheduler/layout.py
constexpr std::uint32_t CLEANS = 1, MAY_NARROW = 2, COMPANY_AT = 8;  // bits of a launch's mode
constexpr std::uint32_t MOST_SLICES = 17;  // launches of an epoch
constexpr std::size_t SPARE_BYTES = 1 << 24, SPARE_WORDS = 4;
constexpr std::uint32_t TIMED_TASKS = 64;  // tasks of an epoch from which on the time of a task is reported

// The part of a scheduler that is launched: its kernel, and the groups that run at one time.
struct Launcher {
    Launcher(nb::object of, std::size_t group_, bool has_pool_)
        : kernel(std::move(of)), group(group_), has_pool(has_pool_) {}

    // Uses another form of it, which has not been told about the memory.
    void use(nb::object other) {
        kernel = std::move(other);
        declared = -1;
    }

    Owned<QueueKernel> kernel;
    std::size_t group;
    bool has_pool;
    bool takes_notes = false;  // whether groups note when they began and ended; Python reads that after each epoch
    std::uint32_t groups = 1, child_slots = 0;
    std::int64_t declared = -1;  // the change of the memory up to which the driver knows it
};

// An image in a region: its tasks, tiles that may run at one time, and the place of its blocks.
struct Placed {
    std::uint32_t tasks = 0, width = 0, block = 0, block_words = 0;
};

// An epoch that stays on the device, with two blocks that take turns: a segment of a graph, or one that came often.
// `first`: the block of its next run.
struct Resident {
    Resident(nb::object in, const Placed &what, std::uint32_t first)
        : region(std::move(in)), memory(address(region.attr("int_ptr"))), placed(what), next(first) {}

    std::uint32_t turn() { return std::exchange(next, 1 - next); }

    nb::object region;
    void *memory;
    Placed placed;
    std::uint32_t next;
    bool broken = false;       // a run of it failed, so the state of its blocks is unknown
    std::int32_t refused = 0;  // why a run never came to the device, which has not cleaned the block of the next one
};

// Launches that go to the scheduler by one command. The table has their numbers. Python's class adds the unusual
// parts. Its destructor waits, because the driver reads its words and writes its outcome until the end.
struct Epoch : Single {
    Epoch(nb::object of, std::uint32_t as, nb::object by)
        : scheduler(std::move(of)), launcher(nb::cast<Launcher *>(scheduler.attr("launcher"))), recorder(std::move(by)),
          number(as) {}
    ~Epoch() {
        if (event && event_status(event) > 0) {
            const WithoutGil others;
            driver.wait_for_events(1, &event);
        }
        for (void *one : {event, first, last})
            if (one) driver.release_event(one);
        wait_no_more();
    }

    bool has_ended() const { return !event || event_status(event) <= 0; }
    void wait_no_more() {
        for (void *one : std::exchange(wait_for, {})) driver.release_event(one);
    }

    nb::object scheduler;
    Launcher *launcher;  // the scheduler has it
    Owned<Recorder> recorder;
    std::uint32_t number;
    bool is_sent_anyway = true;  // however small it is
    bool is_clocked = true;  // its queue keeps times
    bool is_plain = true;    // only its outcome has to be handled
    bool is_judged = true;   // beside lanes: Python looks at how long it took
    bool is_replay = false;  // of a segment, made by the core
    double opened = 0;       // when its first task was seen; 0: none was
    double attended = 0;     // since when it is polled; 0: it is not
    double sent = 0;
    std::int32_t refused = 0;  // error of the driver for its commands
    nb::object error;          // the error that stopped it before that
    std::vector<void *> wait_for;
    void *event = nullptr, *first = nullptr, *last = nullptr;  // of the read, and of launches
    nb::object region;
    std::size_t spare_bytes = 0;  // of a region that serves another epoch afterwards
    std::vector<std::uint32_t> words;
    std::vector<Write> changes;
    nb::object keeps;  // other objects that the driver uploads
    Landing landing;  // of its status buffer
    std::vector<std::uint32_t> own;
    std::size_t status_words = 0;
    Placed counts;
    std::uint32_t launches = 0, block = 0, groups = 0;
    std::uint32_t foreseen = 0;  // number of its launches, if these came as foreseen and were not collected
    Timed timed;  // by the forecast
    nb::object resident, segment;  // what stays on the device, if it is one of these
};

// Sends the epochs of one queue, and keeps them in order.
class Sender : Single {
public:
    // `classes`: of epochs, of recorders, and of memory. `constants`: module with the limits of an open epoch.
    Sender(nb::object table, nb::object memory, nb::object constants, nb::tuple classes, bool on_cpu, std::uint32_t units)
        : table_(std::move(table)), memory_(std::move(memory)), constants_(std::move(constants)),
          classes_(std::move(classes)), on_cpu_(on_cpu), units_(units) {}
    ~Sender() { leave_table(); }

    std::uint64_t launches = 0, epochs_sent = 0, tasks_sent = 0, waits = 0;
    std::uint64_t cuts = 0;  // epochs that were sent early because of a wait
    std::uint32_t newest_number = 0;  // of an epoch
    bool is_timed = false;
    bool by_itself = false;  // the core sends due epochs without Python
    std::uint32_t polls = 0, turns = 0, window = 0;
    std::size_t most_tasks = 0, most_entries = 0, few = 0;
    double slice_s = 0;
    nb::object order = nb::none();     // gives tasks of a recorder priorities; none: program order
    nb::object on_words = nb::none();  // tests see the words of epochs, and change them
    Landings landings;

    // For the collector of cycles.
    template <typename Visit>
    bool each_object(Visit &&visit) {
        for (nb::handle one : {nb::handle(table_.owner()), nb::handle(memory_.owner()), nb::handle(constants_),
                               nb::handle(classes_), nb::handle(queue_object_), nb::handle(lanes_.owner()),
                               nb::handle(open_.owner()), nb::handle(order), nb::handle(on_words),
                               nb::handle(landings.maker())})
            if (one.ptr() && !visit(one.ptr())) return false;
        for (const Owned<Epoch> &one : sent_)
            if (!visit(one.owner().ptr())) return false;
        return true;
    }
    void clear_objects() {
        by_itself = false;
        leave_table();
        landings.use(nb::none());
        memory_ = {};
        lanes_ = {};
        open_ = {};
        const std::deque<Owned<Epoch>> sent = std::exchange(sent_, {});
    }

    // Lets the table ask it to send due epochs.
    void join() { table_->sender = this; }

    void requeue(nb::object queue, nb::object lanes, bool timed) {
        queue_ = address(queue.attr("int_ptr"));
        queue_object_ = std::move(queue);
        lanes_ = std::move(lanes);
        is_timed = timed;
    }

    // ---- the open epoch, and those that were sent ----------------------------------------------

    nb::object open() const { return open_.owner_or_none(); }
    nb::object newest() const { return sent_.empty() ? nb::none() : sent_.back().owner(); }
    const std::deque<Owned<Epoch>> &sent() const { return sent_; }
    bool has_any() const { return open_ || !sent_.empty(); }
    bool has_sent() const { return !sent_.empty(); }

    // Returns none for an unknown epoch, or one that was seen to end.
    nb::object find(std::uint32_t number) const {
        return open_ && open_->number == number ? open_.owner() : find_sent(number).owner_or_none();
    }

    // Returns the event behind an epoch that was sent. Null: it has none, or was seen to end.
    void *event_of(std::uint32_t number) const {
        const Owned<Epoch> one = find_sent(number);
        return one ? one->event : nullptr;
    }

    // Whether an epoch that was sent has failed.
    bool has_bad() const {
        return std::any_of(sent_.begin(), sent_.end(), [](const Owned<Epoch> &one) {
            return one->has_ended() && !is_well(*one);
        });
    }

    bool unsent() const { return open_ && (open_->recorder->tasks() || counts()); }

    // Returns how many epochs the device has not finished. Numbers above two do not matter.
    std::size_t in_hand() const {
        std::size_t found = 0;
        for (auto one = sent_.rbegin(); one != sent_.rend() && found < 2 && !(*one)->has_ended(); ++one)
            found += (*one)->event != nullptr;
        return found;
    }

    // Takes the oldest epoch, if it has ended. If only its outcome has to be handled, and that is good, it is over,
    // and the next one is the oldest.
    nb::object take_ended() {
        while (!sent_.empty() && sent_.front()->has_ended()) {
            const Owned<Epoch> ended = std::move(sent_.front());
            sent_.pop_front();
            if (!is_over(*ended)) return ended.owner();
        }
        return nb::none();
    }

    Owned<Epoch> new_epoch(nb::handle scheduler, bool is_sent_anyway) {
        if (!++newest_number) ++newest_number;  // 0 stands for no epoch
        Owned<Epoch> made = classes_[0](scheduler, newest_number, classes_[1]());
        made->is_sent_anyway = is_sent_anyway;
        return made;
    }

    // Opens a new epoch, in place of one without tasks.
    nb::object open_for(nb::handle scheduler, bool is_sent_anyway) {
        const nb::object kept = nb::borrow(scheduler);
        if (open_) shut();
        open_ = new_epoch(kept, is_sent_anyway);
        tell();
        return open_.owner();
    }

    // Closes the open epoch. Returns its external upstream.
    std::vector<std::int64_t> shut() {
        open_ = {};
        table_->shut();
        return std::exchange(table_->external, {});
    }

    // Has the open epoch polled from now on, so that tasks need not be announced.
    void attend() {
        open_->attended = now_s();
        if (sent_.empty()) {
            next_look_ = first_look();
            ahead_ = 0;
        }
        tell();
    }
    // Stops the polls, because no launch came.
    void leave_alone() {
        open_->attended = 0;
        tell();
    }

    // Tells the table about it.
    void tell() {
        if (!open_) return;
        table_->forecast.least_kept = std::min(first_look(), LARGE_EPOCH);
        table_->forecast.least_alone = std::min(next_look_ ? next_look_ : first_look(), LARGE_EPOCH);
        table_->open_epoch(open_->number, open_->recorder.owner(), open_->scheduler, open_->is_sent_anyway ? 0 : few, most_tasks,
                           most_entries, open_->attended ? next_look_ : 1);
    }
    void grow_to(std::size_t tasks) {
        next_look_ = tasks;
        tell();
    }

    // Whether it is full, or has some tasks while the device has none.
    bool is_due() {
        const std::size_t tasks = open_->recorder->tasks();
        if (table_->forecast.ends_here()) return has_sent_ahead(table_->forecast.followed()->size());
        if (tasks >= most_tasks || open_->recorder->entries >= most_entries) return true;
        // an epoch that follows a remembered one ends where that did
        if (table_->forecast.follows() || !next_look_ || tasks < next_look_) return false;
        if (in_hand()) {
            next_look_ = tasks + first_look();
            tell();
            return false;
        }
        return has_sent_ahead(tasks);
    }

    // Makes an epoch follow a launch, unless that is in an epoch sent before, or has ended.
    void follow(Epoch &epoch, std::int64_t number) {
        void *event = table_->epoch(number) ? nullptr : lanes_->event_to_wait_for(number);
        if (!event) return;
        epoch.wait_for.push_back(event);
        waits++;
    }

    // Sends the open epoch. With `opens` the next one is open at once. If the driver refuses, all its launches
    // fail. If this epoch was polled, the next one is polled too.
    void send_open(bool opens) {
        const Owned<Epoch> kept = std::exchange(open_, {});
        Epoch &epoch = *kept;
        if (table_->forecast.times()) epoch.timed = table_->forecast.begin_timing(!in_hand());
        RememberedPointer foreseen = table_->take_foreseen();
        stays_ = !foreseen && table_->remember();
        const double attended = epoch.attended;
        for (std::int64_t number : shut()) follow(epoch, number);
        sent_.push_back(kept);
        epochs_sent++;
        if (foreseen) {
            epoch.foreseen = std::uint32_t(foreseen->size());
            epoch.resident = foreseen->resident;
            epoch.changes = foreseen->take_changes();
        }
        tasks_sent += foreseen ? epoch.foreseen : epoch.recorder->tasks();
        attempt(epoch, [&] {
            if (foreseen) send_resident(epoch, epoch.resident);
            else send_collected(epoch);
        });
        if (foreseen && (epoch.refused || epoch.error.is_valid())) table_->forecast.drop(epoch.resident);
        if (opens && !open_) {
            open_for(epoch.scheduler, true);
            if (attended) attend();
        }
    }

    // Sends the open epoch early, if Python need not decide about it.
    void cut() {
        if (!by_itself || !unsent()) return;
        cuts++;
        send_open(true);
    }

    // Sends the open epoch early, and opens one of another scheduler. If it was polled, the other one is polled
    // too.
    void change_to(const nb::object &scheduler) {
        const double attended = open_ ? open_->attended : 0;
        if (unsent()) {
            cuts++;
            send_open(false);
        }
        open_for(scheduler, true);
        if (attended) attend();
    }

    // Sends a due epoch from the core. False: Python has to.
    bool send_due() {
        if (!by_itself || !open_ || !open_->attended || !unsent()) return false;
        if (!open_->opened) open_->opened = now_s();
        if (is_due()) send_open(true);
        return true;
    }

    // ---- commands ------------------------------------------------------------------------------

    struct Commands {
        void *region;
        std::uint32_t groups, which = 0, cleans = 0;
        std::size_t status_words = STATUS_WORDS;
        std::uint32_t rounds = 0;  // about how many rounds a loop will have
        nb::handle writes = {};    // Python's, besides those of the epoch
    };

    // Returns slots of the ring beyond the entries, for an epoch that stays or not.
    std::uint32_t spare(const Epoch &epoch, bool stays) const {
        const std::uint32_t groups = groups_of(epoch), n = epoch.recorder->tasks();
        const std::uint32_t most = stays ? MOST_SLICES : slices(n, groups) + 1;
        return 2 * most * groups + 64 + epoch.launcher->child_slots;
    }
    std::uint32_t groups_of(const Epoch &epoch) const {
        return std::min(epoch.launcher->groups, epoch.recorder->width);
    }

    // Replays a segment as an epoch of its own, behind the open one. Returns its launch. 0: something is unusual, so
    // Python has to, and nothing has changed. `command`: a `SegmentCommand`. `writes`: words that have changed, with
    // their places; or none.
    std::int64_t replay(nb::handle scheduler, const nb::object &command, const nb::object &access,
                        Footprint &footprint, nb::object resident, nb::object writes) {
        if (!table_->may_replay() || (unsent() && !by_itself)) return 0;
        cut();
        const Owned<Epoch> made = new_epoch(scheduler, true);
        Epoch &epoch = *made;
        epoch.segment = nb::borrow(PyTuple_GET_ITEM(command.ptr(), 0));
        epoch.is_replay = true;
        epoch.is_judged = false;
        const std::vector<std::int64_t> upstream = table_->enter_replay(epoch.number, command, access, footprint);
        sent_.push_back(made);
        attempt(epoch, [&] {
            for (std::int64_t other : upstream) follow(epoch, other);
            tasks_sent += nb::len(PyTuple_GET_ITEM(command.ptr(), 2));  // the accesses of its launches
            send_resident(epoch, resident, std::move(writes));
        });
        return table_->number;
    }

    // Sends an epoch that is on the device already. Uploads only changed words.
    void send_resident(Epoch &epoch, const nb::object &as, nb::object writes = nb::object(),
                       std::size_t status_words = STATUS_WORDS, std::uint32_t rounds = 0) {
        Resident &resident = *nb::inst_ptr<Resident>(as);
        epoch.counts = resident.placed;
        epoch.region = resident.region;
        epoch.keeps = std::move(writes);
        // behind a run that was refused, another one would find nothing to do, and end well
        if ((epoch.refused = resident.refused)) return;
        enqueue(epoch, {resident.memory, epoch.launcher->groups, resident.turn(), CLEANS, status_words, rounds, epoch.keeps});
        resident.refused = epoch.error.is_valid() ? OUT_OF_RESOURCES : epoch.refused;
        resident.broken |= resident.refused != 0;
    }

    // ---- ends ----------------------------------------------------------------------------------

    // Adds an epoch that Python made to those that were sent.
    void push(nb::object one) { sent_.push_back(std::move(one)); }

    // Whether an epoch has ended well, and nothing else has to be handled.
    bool has_ended_well(Epoch &epoch) {
        if (!epoch.is_plain || !is_well(epoch)) return false;
        if (epoch.launcher->has_pool)
            for (std::size_t at = SPAWNED; at < KEPT + REASONS; at++)
                if (status_of(epoch)[at]) return false;
        let_go(epoch, epoch.counts.tasks, true);
        return true;
    }

    // Frees the parts of an ended epoch for others. `tasks`: how many ran, if all went well.
    void let_go(Epoch &epoch, std::size_t tasks, bool well) {
        if (epoch.spare_bytes && well && spare_bytes_ + epoch.spare_bytes <= SPARE_BYTES) {
            spare_bytes_ += epoch.spare_bytes;
            regions_.emplace_front(std::move(epoch.region), std::exchange(epoch.spare_bytes, 0));
        }
        if (!epoch.words.empty() && words_.size() < SPARE_WORDS) words_.push_back(std::move(epoch.words));
        landings.give(std::exchange(epoch.landing, {}));
        if (const Timed timed = std::exchange(epoch.timed, {}); timed.of && well) table_->forecast.end_timing(timed, epoch.sent);
        if (!well || tasks < TIMED_TASKS) return;
        const double each = (now_s() - epoch.sent) / double(tasks);
        task_s_ = std::min(each, (task_s_ + each) / 2);
    }

    void let_go_of_all() {
        regions_.clear();
        words_.clear();
        landings.use(nb::none());
        spare_bytes_ = 0;
        const std::deque<Owned<Epoch>> sent = std::exchange(sent_, {});
        if (open_) shut();
    }

private:
    void enqueue(Epoch &epoch, const Commands &what) {
        waiting_.clear();
        for (void *event : epoch.wait_for)
            if (event_status(event) > 0) waiting_.push_back(event);
        if (!waiting_.empty()) lanes_->flush();
        std::size_t taken = 0;
        attempt(epoch, [&] {
            land(epoch, what.status_words);
            epoch.refused = declare(epoch);
            if (!epoch.refused) epoch.refused = commands(epoch, what, taken);
        });
        epoch.wait_no_more();
        epoch.sent = now_s();
        if (taken) driver.flush(queue_);
        if (!taken || !(epoch.refused || epoch.error.is_valid())) return;
        const WithoutGil others;
        driver.finish(queue_);  // otherwise it would write memory that the program has back
    }

    // Does some work for an epoch, and notes an error that keeps it from the driver.
    template <typename Work>
    static void attempt(Epoch &epoch, Work &&work) {
        if (guarded([&] { return work(), true; })) return;
        const nb::python_error error;  // takes it
        if (!error.matches(PyExc_Exception)) throw error;
        epoch.error = nb::borrow(error.value());
    }

    // Takes a region for an epoch of that many bytes. It serves others afterwards.
    void take_region(Epoch &epoch, std::size_t nbytes) {
        for (auto one = regions_.begin(); one != regions_.end(); ++one)
            if (nbytes <= one->second && one->second <= 4 * nbytes + (1 << 20)) {
                epoch.region = std::move(one->first);
                epoch.spare_bytes = one->second;
                spare_bytes_ -= one->second;
                regions_.erase(one);
                return;
            }
        std::size_t size = 1 << 16;
        while (size < nbytes) size *= 2;
        epoch.region = classes_[2](size);
        epoch.spare_bytes = size;
    }

    void leave_table() {
        if (table_ && table_->sender == this) table_->sender = nullptr;
        table_ = {};
    }
    // Whether an ended epoch is over: all its launches are the core's, their turn has come, and all went well.
    bool is_over(Epoch &epoch) {
        if (!by_itself && epoch.is_judged) return false;
        if (!table_->comes_next(epoch.number) || epoch.launcher->takes_notes || !has_ended_well(epoch)) return false;
        table_->leave(epoch.number, false);
        table_->end_epoch(epoch.number);
        return true;
    }
    bool has_sent_ahead(std::size_t tasks) {
        ahead_ += tasks;
        next_look_ = std::min(std::max(first_look(), ahead_), most_look());
        return true;
    }

    Owned<Epoch> find_sent(std::uint32_t number) const {
        for (const Owned<Epoch> &one : sent_)
            if (one->number == number) return one;
        return {};
    }

    static const std::uint32_t *status_of(const Epoch &epoch) {
        return static_cast<const std::uint32_t *>(epoch.landing.bytes);
    }
    static bool is_well(const Epoch &epoch) {
        const std::uint32_t *status = status_of(epoch);
        return epoch.event && !event_status(epoch.event) && status && !status[FAULT] && !status[UNFINISHED];
    }

    bool counts() const { return table_->forecast.counted() || table_->forecast.is_complete(); }
    std::size_t first_look() const { return nb::cast<std::size_t>(constants_.attr("FIRST_LOOK")); }
    std::size_t most_look() const { return nb::cast<std::size_t>(constants_.attr("MOST_TASKS")); }

    // Returns how many launches come before the one that leaves only when all is done.
    std::uint32_t slices(std::size_t tasks, std::uint32_t groups) const {
        if (turns < tasks) return 1;
        const double seconds = double(tasks) * task_s_;
        if (seconds > slice_s / 2)
            return std::uint32_t(std::min(double(MOST_SLICES - 1), 1 + std::floor(seconds / slice_s)));
        // on a CPU groups leave as soon as they have no work: come back once
        return on_cpu_ && groups > 1;
    }

    void send_collected(Epoch &epoch) {
        const Recorder &recorder = *epoch.recorder;
        std::vector<double> priority;
        if (!order.is_none()) priority = nb::cast<std::vector<double>>(order(epoch.recorder.owner()));
        Graph made;
        const Graph &graph = recorder.arranged(made, priority, window);
        const Recorder::Layout at = recorder.layout(graph, spare(epoch, stays_), stays_ ? 2 : 1);
        if (!words_.empty()) {
            epoch.words = std::move(words_.back());
            words_.pop_back();
        }
        epoch.words.assign(at.words, 0);
        recorder.write(graph, at, epoch.words.data(), window, polls > 0);
        epoch.counts = {recorder.tasks(), recorder.width, at.blocks, at.block_words};
        const std::size_t nbytes = 4 * epoch.words.size();
        if (!on_words.is_none()) {
            char *bytes = reinterpret_cast<char *>(epoch.words.data());
            on_words(nb::steal(PyMemoryView_FromMemory(bytes, Py_ssize_t(nbytes), PyBUF_WRITE)), epoch.counts);
        }
        if (stays_) epoch.region = classes_[2](nbytes);
        else take_region(epoch, nbytes);
        if (stays_) epoch.resident = nb::cast(new Resident(epoch.region, epoch.counts, 1), nb::rv_policy::take_ownership);
        enqueue(epoch, {address(epoch.region.attr("int_ptr")), groups_of(epoch), 0, stays_ ? CLEANS : 0});
        if (stays_ && !epoch.refused && !epoch.error.is_valid()) table_->keep_on_device(epoch.resident, epoch.words.data(), at.blocks, recorder.graph);
    }

    // Tells the driver which memory arguments in records may point to. Returns its status.
    std::int32_t declare(Epoch &epoch) {
        if (epoch.launcher->declared == memory_->changes()) return 0;
        std::vector<void *> all;
        for (const auto &[start, nbytes] : memory_->sizes()) all.push_back(reinterpret_cast<void *>(start));
        const std::int32_t failed = epoch.launcher->kernel->declare(all);
        if (!failed) epoch.launcher->declared = memory_->changes();
        return failed;
    }

    // Prepares its status buffer.
    void land(Epoch &epoch, std::size_t words) {
        epoch.status_words = words;
        if (landings.take(4 * words, epoch.landing)) return;
        epoch.own.resize(words);
        epoch.landing.bytes = epoch.own.data();
    }

    // Returns the driver's status. The first command waits for all others. An event costs the driver a third of a
    // launch, so commands have one only if it is needed.
    std::int32_t commands(Epoch &epoch, const Commands &what, std::size_t &taken) {
        QueueKernel &kernel = *epoch.launcher->kernel;
        auto count = [&](std::int32_t failed) {
            taken += !failed;
            waiting_.clear();
            return failed;
        };
        auto write = [&](std::size_t place, const void *from, std::size_t nbytes) {
            return count(driver.write_buffer(queue_, what.region, 0, place, nbytes, from, std::uint32_t(waiting_.size()),
                                             waiting_.empty() ? nullptr : waiting_.data(), nullptr));
        };
        if (!epoch.words.empty())
            if (std::int32_t failed = write(0, epoch.words.data(), 4 * epoch.words.size())) return failed;
        for (const Write &one : epoch.changes)
            if (std::int32_t failed = write(one.place, one.bytes.data(), one.bytes.size())) return failed;
        if (what.writes.is_valid() && !what.writes.is_none())
            for (nb::handle one : what.writes) {
                const HostBytes from(one[1], false);
                const auto place = nb::cast<std::size_t>(one[0]);
                if (std::int32_t failed = write(place, from.view.buf, from.nbytes())) return failed;
            }
        if (std::int32_t failed = kernel.put_buffer(0, what.region, epoch.region.ptr())) return failed;
        auto launch = [&](std::uint32_t groups, bool is_last) {
            launches++;
            epoch.launches++;
            if (epoch.launches == 1) epoch.groups = groups;
            const std::size_t items = groups * epoch.launcher->group;
            const Sizes sizes = {1, items, 0, 0, 1, epoch.launcher->group, 0, 0};
            void **event = !is_timed ? nullptr : epoch.launches == 1 ? &epoch.first : is_last ? &epoch.last : nullptr;
            return count(kernel.enqueue(queue_, sizes, waiting_, event));
        };
        epoch.block = what.which;
        if (std::int32_t failed = each_launch(epoch, kernel, what, launch)) return failed;
        const std::size_t from = 4 * (std::size_t(epoch.counts.block) + what.which * epoch.counts.block_words);
        return count(driver.read_buffer(queue_, what.region, 0, from, 4 * epoch.status_words, epoch.landing.bytes,
                                        std::uint32_t(waiting_.size()), waiting_.empty() ? nullptr : waiting_.data(),
                                        &epoch.event));
    }

    // Launches those that may leave work, if needed, and one that leaves none. The first one cleans.
    template <typename Enqueue>
    std::int32_t each_launch(const Epoch &epoch, QueueKernel &kernel, const Commands &what, Enqueue &&launch) const {
        const Placed &image = epoch.counts;
        const std::uint32_t groups = std::max(1u, std::min(what.groups, image.width));
        const std::uint32_t together = std::min(groups, units_ ? units_ : groups);
        std::uint32_t mode = groups > 1 ? MAY_NARROW : 0, cleans = what.cleans;
        // Bands are given away if few tasks wait. Not in the last launch: on an H200 each link of a chain then
        // takes five times as long if there are more chains than groups, and long tiles gain 1.05x at most.
        if (together > 1 && together < image.width) mode |= together << COMPANY_AT;
        std::uint32_t left = slices(std::size_t(image.tasks) * std::max(what.rounds, 1u), what.rounds ? 1 : groups);
        for (;; left--) {
            const std::uint32_t most = left ? turns : 1u << 30, how = (left ? mode : 0) | cleans;
            const std::uint64_t slice_ns = left ? std::uint64_t(slice_s * 1e9) : 0;
            std::int32_t failed = 0;
            auto put = [&](std::size_t index, const auto &value) {
                if (!failed) failed = kernel.put_value(index, {reinterpret_cast<const char *>(&value), sizeof(value)});
            };
            put(1, what.which);
            put(2, most);
            put(3, polls);
            put(4, slice_ns);
            put(5, how);
            if (failed || (failed = launch(groups, !left)) || !left) return failed;
            cleans = 0;
        }
    }

    Owned<Table> table_;
    Owned<const Reserved> memory_;
    Owned<Queues> lanes_;
    nb::object constants_;
    nb::tuple classes_;
    nb::object queue_object_;
    void *queue_ = nullptr;
    bool on_cpu_;
    std::uint32_t units_;  // groups that run at one time, if fewer than are launched
    double task_s_ = 50e-6;
    Owned<Epoch> open_;
    bool stays_ = false;  // the epoch that is sent came often
    std::deque<Owned<Epoch>> sent_;
    std::size_t next_look_ = 0, ahead_ = 0;  // tasks sent since the device was idle and had no epoch
    std::deque<std::pair<nb::object, std::size_t>> regions_;  // the newest is taken first
    std::size_t spare_bytes_ = 0;
    std::vector<std::vector<std::uint32_t>> words_;
    std::vector<void *> waiting_;
};

void add_sender(nb::module_ &module);

}  // namespace acs_cl
