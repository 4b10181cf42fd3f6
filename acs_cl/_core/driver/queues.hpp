// Submits launches to the lanes of one device and finds out which have ended, for the three host backends of
// acs_cl/backends/queues.py. The backend `serial` has one lane. driver/lanes.hpp chooses the lane.
//
// A launch that is to be timed takes a lane that keeps times. No other launch does, since keeping times costs
// microseconds for each command.
//
// Only plain kernels are enqueued here. Other commands, and those that the driver refuses, go through their own
// `enqueue` in Python, which knows every case and raises PyOpenCL's errors. The caller holds the runtime's lock.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "driver/counts.hpp"
#include "driver/kernel.hpp"
#include "driver/landing.hpp"
#include "driver/lanes.hpp"
#include "driver/machine_code.hpp"
#include "driver/memory.hpp"
#include "driver/staging.hpp"
#include "driver/transfer.hpp"
#include "python/gil.hpp"
#include "python/waiting.hpp"
#include "table/ends.hpp"
#include "table/table.hpp"

namespace acs_cl {

// With so many launches in flight on a queue, a driver may make an enqueue wait for room. It is then called without
// the GIL. With fewer the GIL is kept, because another busy thread would take it for milliseconds at each launch.
constexpr std::size_t CROWDED = 512;

constexpr std::size_t KEEPS_UP = 64;  // launches in flight on a lane, after a look at what has ended

// Bytes from which on an upload goes to a lane of its own. It takes longer than a wait for another lane.
constexpr std::size_t UPLOAD_BYTES = 1 << 20;

// Bytes from which on a driver may copy inside a call for so long that other threads should run meanwhile.
constexpr std::size_t MANY_BYTES = 64 << 10;

class Queues : public Lanes {
public:
    // `event`: makes a Python event from a driver's event, and from whether to retain that.
    Queues(nb::list queues, bool out_of_order, bool profiling, nb::tuple classes, nb::object event)
        : Lanes(out_of_order, profiling), classes_(classes), event_(std::move(event)) {
        for (nb::handle queue : queues)
            add_lane(nb::borrow(queue));
        open_ = lanes_.size();
    }
    ~Queues() {
        forget();
        if (apart_) apart_->all.erase(std::find(apart_->all.begin(), apart_->all.end(), this));
    }
    std::int64_t waits = 0;    // events that launches were made to wait for
    std::int64_t by_host = 0;  // transfers that the host has made
    Landings landings;  // for small reads that the host waits for
    Staging staging;    // for long uploads
    Counts counts;      // of launches whose size the device decides

    // Returns a word for one of these, or empty.
    std::optional<std::size_t> take_word() {
        if (!counts.free()) counts.sweep([this](std::int64_t launch) { return table_->has(launch); });
        return counts.take();
    }

    // Whether a long upload may go through pinned memory. With the GIL.
    bool may_stage() { return uploads_ && !profiling_ && staging.is_there(); }

    // ---- submitting ---------------------------------------------------------------------------

    // Adds an in-order queue that keeps times, for launches that are to be timed.
    void time_on(nb::object queue) {
        if (timed_) throw std::logic_error("there is a queue that keeps times");
        timed_ = add_lane(std::move(queue));
    }

    // Adds an in-order queue for uploads that follow nothing in flight.
    void upload_on(nb::object queue) {
        if (uploads_) throw std::logic_error("there is a queue for uploads");
        uploads_ = add_lane(std::move(queue));
    }

    // Submits a `records.Launch`, behind the events of other queues. `timed`: it is to be timed.
    void submit(nb::handle launch, nb::handle behind, bool timed) {
        if (!table_) throw std::logic_error("these queues have no launch table");
        std::int64_t number = whole_number(PyTuple_GET_ITEM(launch.ptr(), 0));
        nb::handle command = PyTuple_GET_ITEM(launch.ptr(), 1);
        wait_for_.clear();
        upstream_.clear();
        for (PyObject *other : Items(PyTuple_GET_ITEM(launch.ptr(), 3)))
            if (const Flying *one = find(whole_number(other))) upstream_.push_back(*one);
        Lane &lane = place(timed, behind.is_none() && uploaded(command) >= UPLOAD_BYTES);
        if (!behind.is_none())
            for (PyObject *event : Items(behind.ptr()))
                wait_for_.push_back(address(nb::handle(event).attr("int_ptr")));
        if (!upstream_.empty()) waits += std::int64_t(wait_for_.size());
        if (command.type().is(classes_.command)) {
            KernelFields kernel(command);
            QueueKernel *own = kernel.plain ? QueueKernel::of(kernel.kernel) : nullptr;
            if (own && own->set(kernel.pointers, kernel.values, classes_)) {
                void *event = nullptr;
                if (!enqueue(lane, *own, kernel.sizes, event, kernel.offset)) {
                    add(lane, number, event, nullptr);
                    return;
                }
            }
        }
        spread_.add(0);
        nb::object wait_list = nb::none();
        if (!wait_for_.empty()) wait_list = nb::list();
        for (void *event : wait_for_) wait_list.attr("append")(made(event));
        nb::object event = command.attr("enqueue")(lane.python, wait_list);
        void *driver_event = address(event.attr("int_ptr"));
        add(lane, number, driver_event, event.release().ptr());
    }

    // Enters a launch of the core into the hazards, and submits it. False: no lane took it, because its upstream is
    // held or in an epoch, or because the driver refuses it. The table then keeps what `command` returns, and
    // `engine_takes_over` goes on with that. Without `command` Python has to finish it. `kernel`: null if no lane may
    // have it. `offset`: null for none.
    template <typename Command = std::nullptr_t>
    bool launch(const Touched &touched, const QueueKernel *kernel, const Sizes &sizes, const std::size_t *offset,
                PyObject *name, const nb::object &reason, Command &&command = nullptr) {
        return launch_by(touched, name, reason, command, [&](Lane &lane, void *&event) {
            return kernel ? enqueue(lane, *kernel, sizes, event, offset) : ELSEWHERE;
        });
    }

    // Has the next launch follow these, too, whatever bytes it touches. `watch`: makes, of the record of a launch that no
    // lane takes, one that keeps its event. Null: nobody will ask for that.
    void follow(const std::vector<std::int64_t> &launches, nb::handle watch = {}) {
        also_.assign(launches.begin(), launches.end());
        watch_ = watch;
        watched_.reset();
    }

    // Returns the record that keeps the event of the newest launch here. Null: a lane took that, or nobody asked.
    nb::object watched() { return std::exchange(watched_, {}); }

    // Does the same for a marker, which touches nothing. In a lane in order it needs no command of the driver's if nobody
    // asks for events: it ends with what is before it.
    template <typename Command>
    bool launch_marker(PyObject *name, Command &&command) {
        static PyObject *const reason = PyUnicode_InternFromString("a marker runs on a lane");
        return launch_by(Touched(), name, nb::borrow(reason), command, [this](Lane &lane, void *&event) {
            spread_.add(0);
            const bool is_asked = wants_event(lane);
            if (!is_asked && wait_for_.empty()) return 0;
            const auto many = std::uint32_t(wait_for_.size());
            return driver.marker(lane.queue, many, many ? wait_for_.data() : nullptr, is_asked ? &event : nullptr);
        });
    }

    // How a caller waits for a transfer. If nothing is ahead of it and the caller `may_block`, the driver's blocking
    // call is quickest, and then it `has_ended`. Otherwise the caller gets `event`, and releases it.
    struct Waited {
        bool may_block = true;
        void *event = nullptr;
        bool has_ended = false;
    };

    // Does the same for a transfer. `keeps` lives until it has ended. `waited`: null if the caller does not wait.
    // `may_go_on`: whether a lane may have it. `behind`: an event of this context that it follows.
    template <typename Command>
    bool launch(const Touched &touched, const Transfer &transfer, PyObject *name, PyObject *keeps,
                Waited *waited, Command &&command, PyObject *reason = nullptr, bool may_go_on = true,
                void *behind = nullptr) {
        static PyObject *const a_transfer = PyUnicode_InternFromString("a transfer runs on a lane");
        Lane *on = nullptr;
        auto enqueue_on = [&](Lane &lane, void *&event) {
            if (!may_go_on) return ELSEWHERE;
            on = &lane;
            spread_.add(transfer.nbytes);
            if (behind) wait_for_.push_back(behind);
            if (waited && may_block(*waited, lane)) {
                const WithoutGil others;
                void **kept = profiling_ ? &waited->event : nullptr;  // somebody may ask for its times
                const std::int32_t failed = transfer.enqueue(lane.queue, wait_for_, true, kept);
                waited->has_ended = !failed;
                return failed;
            }
            void **wanted = waited || wants_event(lane) ? &event : nullptr;
            if (transfer.is_staged) {
                if (&lane != &lanes_[uploads_]) return ELSEWHERE;
                const WithoutGil others;
                return staging.write(transfer, lane.queue, wanted);
            }
            auto now = [&] { return transfer.enqueue(lane.queue, wait_for_, false, wanted); };
            std::int32_t failed;
            if (transfer.nbytes < MANY_BYTES && lane.queued.size() < CROWDED) {
                failed = now();
            } else {
                const WithoutGil others;
                failed = now();
            }
            if (!failed && waited) driver.retain_event(waited->event = event);
            return failed;
        };
        const bool may_copy = transfer.is_seen && may_go_on && !behind;
        if (!launch_by(touched, name, nb::borrow(reason ? reason : a_transfer), command, enqueue_on,
                       transfer.is_upload && transfer.nbytes >= UPLOAD_BYTES, may_copy ? &transfer : nullptr))
            return false;
        if (!on) {  // the host has made it
            if (waited) waited->has_ended = true;
            return true;
        }
        if (waited && waited->has_ended) end_newest(*on);
        else if (keeps) find(table_->number)->bytes = Py_NewRef(keeps);
        return true;
    }

    // Does the same for a command that PyOpenCL's own function makes: `enqueue(queue, wait_list, blocks)` returns its
    // event, or null without an error if it was refused.
    template <typename Enqueue, typename Command>
    bool launch_call(const Touched &touched, PyObject *name, Waited *waited, Enqueue &&enqueue, Command &&command) {
        static PyObject *const reason = PyUnicode_InternFromString("a command of PyOpenCL's runs on a lane");
        Lane *on = nullptr;
        nb::object owner;
        const auto enqueue_on = [&](Lane &lane, void *&event) {
            on = &lane;
            spread_.add(0);
            nb::object wait_list = nb::none();
            if (!wait_for_.empty()) wait_list = nb::list();
            for (void *one : wait_for_) wait_list.attr("append")(made(one));
            const bool blocks = waited && may_block(*waited, lane);
            owner = enqueue(lane.python, wait_list, blocks);
            if (!owner.is_valid()) return ELSEWHERE;
            if (blocks && profiling_) driver.retain_event(waited->event = handle_of(owner.ptr()));
            if (blocks) return waited->has_ended = true, 0;
            event = handle_of(owner.ptr());
            if (waited) driver.retain_event(waited->event = event);
            return 0;
        };
        if (!launch_by(touched, name, nb::borrow(reason), command, enqueue_on)) return false;
        if (waited && waited->has_ended) end_newest(*on);
        else find(table_->number)->owner = owner.release().ptr();
        return true;
    }

    // Returns an event behind a launch, which the caller releases. Null: no lane has the launch.
    void *event_to_wait_for(std::int64_t number) {
        const Flying *one = asked_for(number);
        if (one) driver.retain_event(one->event);
        return one ? one->event : nullptr;
    }

    // Returns the driver's context. Null: it does not tell.
    void *context() const {
        void *found = nullptr;
        driver.queue_info(lanes_[0].queue, QUEUE_CONTEXT, sizeof(found), &found, nullptr);
        return found;
    }

    // Says what memory the host sees without a command: that of a store, which lives as long.
    void see(const Reserved &memory) { seen_ = &memory; }
    bool sees(const void *start) const { return seen_ && seen_->owns(std::uintptr_t(start)); }

    // Whether the device is not the host's processor.
    bool on_own_processor() const { return is_of_own_processor(lanes_[0].queue); }

    // Has no two pieces of machine code of a kernel in flight at one time, for drivers that confuse them. `with`: on those
    // lanes neither, which are of the same runtime. Null: there are no others. `by_size`: sizes matter, too.
    void keep_machine_code_apart(Queues *with, bool by_size) {
        apart_ = with ? with->apart_ : std::make_shared<Apart>(by_size);
        if (!apart_) throw std::invalid_argument("those lanes keep nothing apart");
        apart_->all.push_back(this);
    }

    // Returns the edges of the newest launch here.
    Edges edges() const { return edges_; }

    // Sets the table of the runtime.
    void join(nb::object table) {
        table_ = std::move(table);
        const std::size_t room = std::min(table_->window, table_->backlog) / (2 * lanes_.size());
        most_bare_ = int(std::min<std::size_t>(room, SPARSE));
    }

    // For the collector of cycles. The table holds the Python objects of the launches.
    template <typename Visit>
    void each_object(Visit &&visit) {
        if (table_) visit(table_.owner().ptr());
    }
    void clear_objects() {
        forget();
        table_ = {};
    }

    const Classes &classes() const { return classes_; }
    Table *table() const { return table_; }

    // ---- asking -------------------------------------------------------------------------------

    std::size_t in_flight() const { return in_flight_; }

    nb::list used() const {
        nb::list used;
        for (const Lane &lane : lanes_) used.append(lane.used);
        return used;
    }

    // Makes a Python event from a driver's event.
    nb::object made(void *event) const { return event_(std::uintptr_t(event), true); }

    // Returns the event of a launch. None: it is not in flight.
    nb::object event(std::int64_t number) {
        const Flying *one = asked_for(number);
        if (!one) return nb::none();
        return one->owner ? nb::borrow(one->owner) : made(one->event);
    }

    nb::object oldest() {
        std::int64_t first = INT64_MAX;
        for (const Lane &lane : lanes_)
            if (!lane.queued.empty()) first = std::min(first, lane.queued.front());
        return event(first);
    }

    // ---- what has ended -----------------------------------------------------------------------

    nb::list poll(std::size_t most) {
        if (out_of_order_ && !has_timed()) {
            collect(lanes_[0], std::min(most, lanes_[0].queued.size()));
        } else {
            // only a poll that finds nothing more has seen the upstream of all that the polls before it found
            while (out_of_order_ ? collect_all() : collect_heads()) {
            }
            if (!out_of_order_) mark_idle();
            std::sort(ended_.begin(), ended_.end(), [](const auto &a, const auto &b) {
                return a.first.number < b.first.number;
            });
        }
        behind_ = in_flight_ > KEEPS_UP * lanes_.size();
        return ended();
    }

    // Does the same for a caller that has waited for a launch.
    nb::list poll_up_to(std::int64_t number) {
        if (!out_of_order_ || has_timed()) {
            nb::list found = poll(0);
            end_stretch();
            return found;
        }
        const auto &queued = lanes_[0].queued;
        auto after = std::find_if(queued.begin(), queued.end(),
                                  [&](std::int64_t other) { return other > number; });
        // a launch that was held is behind later ones
        if (find(number) && std::find(queued.begin(), after, number) == after)
            after = std::find(after, queued.end(), number) + 1;
        collect(lanes_[0], std::size_t(after - queued.begin()));
        return ended();
    }

    void flush() {
        const WithoutGil others;
        for (Lane &lane : lanes_)
            if (lane.is_unflushed()) start(lane);
    }

    // Has the device start a launch, since somebody will wait for it.
    void flush_for(std::int64_t number) {
        const Flying *one = find(number);
        if (one && lanes_[one->lane].is_unflushed()) start(lanes_[one->lane]);
    }

    // Keeps memory that the driver uses until this launch has ended.
    void keep(std::int64_t number, nb::handle memory) {
        Flying *one = find(number);
        if (one && !one->bytes) one->bytes = Py_NewRef(memory.ptr());
    }

    // Releases all events.
    void forget() {
        for (Lane &lane : lanes_) {
            for (std::int64_t number : lane.queued)
                if (find(number)) release(table_->land(number));
            lane.queued.clear();
        }
        in_flight_ = 0;
        counts.forget();
        spread_.forget();
        untold_.reset();
    }

private:
    // Lanes on which no two pieces of machine code of a kernel are in flight at one time.
    struct Apart {
        explicit Apart(bool by_size) : machine_code(by_size) {}

        MachineCode machine_code;
        std::vector<Queues *> all;
    };

    // The first of these launches are told, and go whatever comes.
    struct Told {
        std::vector<std::pair<Flying, std::int32_t>> &ended;
        std::size_t many = 0;

        ~Told() { ended.erase(ended.begin(), ended.begin() + std::ptrdiff_t(many)); }
    };

    static constexpr std::int32_t ELSEWHERE = -1;  // refused: the lane does not suit it

    // Does what all kinds of launches have in common. If it raises, either a lane has the launch, or nothing has.
    // `seen`: a transfer that the host may make. It does where nothing in flight uses the bytes.
    template <typename Command, typename Enqueue>
    bool launch_by(const Touched &touched, PyObject *name, const nb::object &reason, Command &&command,
                   Enqueue &&enqueue_on, bool is_upload = false, const Transfer *seen = nullptr) {
        static PyObject *const on_host = PyUnicode_InternFromString("on the host");
        edges_ = table_->enter(touched);
        const std::int64_t number = table_->number;
        try {
            if (!also_.empty()) follow_also();
            if (seen && !edges_.many) {
                seen->copy();
                by_host++;
                table_->by_core++;
                table_->ended++;
                table_->hazards->retire(number);
                if (table_->reasons) table_->reasons->keep(number, nb::borrow(on_host));
                return true;
            }
            if (go_on(touched, name, reason, enqueue_on, is_upload)) return true;
            if constexpr (!std::is_null_pointer_v<std::decay_t<Command>>) {
                nb::object record = command();
                if (watch_.is_valid()) record = watched_ = watch_(record);
                table_->keep(record, touched, edges_);
            }
        } catch (...) {
            if (!table_->has(number)) table_->hazards->retire(number);
            throw;
        }
        return false;
    }

    // Adds what the newest launch was told to follow, in the order of launches.
    void follow_also() {
        all_.assign(edges_.begin(), edges_.end());
        const std::size_t many = all_.size();
        for (std::int64_t other : also_) {
            const std::int64_t upstream = table_->row_of(other);
            const auto is_it = [upstream](const Edge &edge) { return edge.upstream == upstream; };
            if (upstream && std::none_of(all_.begin(), all_.begin() + std::ptrdiff_t(many), is_it))
                all_.push_back({upstream, ANY});
        }
        also_.clear();
        std::sort(all_.begin(), all_.end(), [](const Edge &one, const Edge &other) { return one.upstream < other.upstream; });
        edges_ = {all_.data(), all_.size()};
    }

    // Whether the driver's own blocking call is quickest, because nothing is ahead of it on the lane.
    bool may_block(const Waited &waited, const Lane &lane) const {
        return waited.may_block && wait_for_.empty() && (out_of_order_ || lane.queued.empty());
    }

    template <typename Enqueue>
    bool go_on(const Touched &touched, PyObject *name, const nb::object &reason,
               Enqueue &&enqueue_on, bool is_upload) {
        if (!follow_epochs()) return false;
        upstream_.clear();
        for (const Edge &edge : edges_)
            if (const Flying *one = find(edge.upstream)) upstream_.push_back(*one);
        Lane &lane = place(false, is_upload);
        void *event = nullptr;
        if (enqueue_on(lane, event)) return false;
        waits += std::int64_t(wait_for_.size());
        table_->put_on_lane(table_->number, name, touched);
        add(lane, table_->number, event, nullptr);
        if (table_->reasons && !reason.is_none()) table_->reasons->note(table_->number, reason);
        return true;
    }

    // Whether a driver may have the newest launch now. Sends the epochs that it follows, so that it waits for their
    // events.
    bool follow_epochs() {
        epochs_.clear();
        wait_for_.clear();
        if (table_->may_follow(edges_)) return true;
        followed_.assign(edges_.begin(), edges_.end());  // an epoch that is sent may enter the hazards
        edges_ = {followed_.data(), followed_.size()};
        for (const Edge &edge : followed_) {
            if (table_->may_follow(edge.upstream)) continue;
            const std::uint32_t epoch = table_->epoch_ahead(edge.upstream);
            if (!epoch) return false;
            if (std::find(epochs_.begin(), epochs_.end(), epoch) != epochs_.end()) continue;
            void *event = table_->event_of_epoch(epoch);
            if (!event) return false;
            epochs_.push_back(epoch);
            wait_for_.push_back(event);
        }
        return true;
    }

    // ---- enqueuing ----------------------------------------------------------------------------

    // Returns how many bytes a command takes from the host to the device.
    std::size_t uploaded(nb::handle command) const {
        if (!uploads_ || !command.type().is(classes_.transfer)) return 0;
        const nb::handle target = PyTuple_GET_ITEM(command.ptr(), 1), source = PyTuple_GET_ITEM(command.ptr(), 2);
        if (!PyTuple_Check(target.ptr()) || PyTuple_Check(source.ptr())) return 0;
        // an array of any shape, without one, too
        const nb::object found = nb::steal(PyObject_GetAttrString(source.ptr(), "nbytes"));
        const Py_ssize_t nbytes = found.is_valid() ? PyLong_AsSsize_t(found.ptr()) : -1;
        if (nbytes < 0) throw PythonError();
        return std::size_t(nbytes);
    }

    // Returns the driver's status.
    std::int32_t enqueue(Lane &lane, const QueueKernel &kernel, const Sizes &sizes, void *&event,
                         const std::size_t *offset = nullptr) {
        void **wanted = wants_event(lane) ? &event : nullptr;
        if (apart_) keep_apart(kernel, sizes, offset);
        spread_.add(std::uintptr_t(&kernel) + sizes[1] + (sizes[2] << 20) + (sizes[3] << 40));
        auto now = [&] { return kernel.enqueue(lane.queue, sizes, wait_for_, wanted, offset); };
        if (lane.queued.size() < CROWDED) return now();
        const WithoutGil others;
        return now();
    }

    // Waits until nothing is in flight, if the driver may need other machine code for a launch than before. The caller
    // has the runtime's lock, so that no lane changes meanwhile.
    void keep_apart(const QueueKernel &kernel, const Sizes &sizes, const std::size_t *offset) {
        if (!device_) driver.queue_info(lanes_[0].queue, QUEUE_DEVICE, sizeof(device_), &device_, nullptr);
        const bool is_idle = std::all_of(apart_->all.begin(), apart_->all.end(),
                                         [](const Queues *one) { return !one->in_flight_; });
        if (!apart_->machine_code.note(kernel.code(device_), sizes, offset, is_idle)) return;
        const WithoutGil others;
        const auto each = [this](auto &&visit) {
            for (Queues *one : apart_->all)
                for (Lane &lane : one->lanes_)
                    if (!lane.queued.empty()) visit(lane);
        };
        each([](Lane &lane) { start(lane); });  // they may wait for each other
        each([](Lane &lane) { driver.finish(lane.queue); });
    }

    // ---- launches in flight -------------------------------------------------------------------

    // Ends the newest launch of a lane, because the call that enqueued it has waited for it.
    void end_newest(Lane &lane) {
        const std::int64_t number = lane.queued.back();
        lane.queued.pop_back();
        lane.bare = 0;
        lane.flushed = lane.used;
        bare--;
        in_flight_--;
        end_stretch();
        table_->land(number);
        table_->end_on_lane(number);
    }

    // The host has waited.
    void end_stretch() {
        if (!in_flight_ && spread_.is_open()) spread_.end(time_s());
    }

    // Takes the ended launches at the heads of in-order lanes. Returns whether there were any.
    bool collect_heads() {
        std::size_t before = ended_.size();
        for (Lane &lane : lanes_) {
            auto &queued = lane.queued;
            std::size_t covered = 0;
            for (std::size_t at = 0; at < queued.size(); at++) {
                void *event = find(queued[at])->event;
                if (!event) continue;
                std::int32_t status = event_status(event);
                if (status > 0) break;
                for (; covered <= at; covered++) take(queued[covered], status);
            }
            queued.erase(queued.begin(), queued.begin() + std::ptrdiff_t(covered));
        }
        return ended_.size() > before;
    }

    // Adds a marker to each lane whose launches have no event and that got no launch since the last poll.
    void mark_idle() {
        for (Lane &lane : lanes_) {
            auto &queued = lane.queued;
            if (queued.empty()) continue;
            if (lane.last_seen == queued.back() && lane.bare == int(queued.size()) && !mark(lane)) continue;
            lane.last_seen = queued.back();
        }
    }

    // Takes the ended ones among the first launches of an out-of-order queue. The newest is asked first, so that all
    // upstream of one that has ended is found, too. The others move up, and the next poll asks about them.
    void collect(Lane &lane, std::size_t most) {
        std::size_t left = most;
        const auto before = std::ptrdiff_t(ended_.size());
        for (std::size_t at = most; at-- > 0;) {
            std::int64_t number = lane.queued[at];
            std::int32_t status = event_status(find(number)->event);
            if (status > 0) lane.queued[--left] = number;
            else take(number, status);
        }
        lane.queued.erase(lane.queued.begin(), lane.queued.begin() + std::ptrdiff_t(left));
        std::reverse(ended_.begin() + before, ended_.end());
    }

    // Does the same for all lanes. Returns whether any launch has ended.
    bool collect_all() {
        const std::size_t before = ended_.size();
        for (Lane &lane : lanes_) collect(lane, lane.queued.size());
        return ended_.size() > before;
    }

    // Returns the ends that Python has to see, always in the same list. Python takes them out once it has kept them.
    // What a signal or a lack of stack made it leave there comes again with the next ones. Launches of the core that
    // ended well are over here, in the table.
    nb::list ended() {
        if (!untold_.is_valid()) untold_ = nb::list();
        nb::list list = nb::borrow<nb::list>(untold_);
        bool all_is_well = table_ && !list.size() && !(ended_.size() && (table_->has_bad_epoch() || counts.has_refused()));
        for (Told told{ended_}; told.many < ended_.size(); told.many++) {
            const auto &[one, driver_status] = ended_[told.many];
            nb::object event = one.owner ? nb::borrow(one.owner) : nb::none();
            // first, since it may raise: nothing is told twice
            if ((profiling_ || is_timed(lanes_[one.lane])) && !one.owner) event = made(one.event);
            const bool is_refused = counts.end(one.number);
            const std::int32_t status = is_refused && driver_status >= 0 ? Counts::REFUSED : driver_status;
            // Python hears of all that may follow a wrong count
            if (is_refused || (table_ && table_->is_counted_by_python(one.number))) all_is_well = false;
            if (!(status >= 0 && all_is_well && table_->end_on_lane(one.number)))
                list.append(End(one.number, status, std::move(event), std::int32_t(one.lane), 0));
            release(one);
        }
        return list;
    }

    static void release(const Flying &one) {
        if (one.owner) leftovers::drop(one.owner);
        else if (one.event) driver.release_event(one.event);
        leftovers::drop(one.bytes);
    }

    Edges edges_;
    std::vector<std::int64_t> also_;     // as in `follow`
    nb::handle watch_;                   // as in `follow`
    nb::object watched_;                 // as in `watched`
    std::vector<Edge> all_;              // edges of the newest launch, with those
    std::vector<Edge> followed_;         // edges of the newest launch, if epochs were sent for it
    std::vector<std::uint32_t> epochs_;  // epochs that it follows
    Classes classes_;
    nb::object event_, untold_;
    void *device_ = nullptr;  // null: not asked yet
    const Reserved *seen_ = nullptr;  // null: the host sees nothing by itself
    std::shared_ptr<Apart> apart_;  // null: any machine code may be in flight at one time
};

}  // namespace acs_cl
