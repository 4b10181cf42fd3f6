// The lanes of one device: which one a launch takes, and for which launches on the others it waits there.
//
// By default a launch goes behind an upstream launch that is the last on its lane. The order of the queue is then
// the wait, so most edges of a chain need no event. Otherwise the launch takes the lane with the fewest in flight. An
// idle lane that was used last comes first, since drivers are quickest there.
//
// The launch waits for upstream on other lanes by event. One event for each such lane is enough, that of the last
// upstream launch there. What its own lane follows already needs none. The other lane is flushed first: a driver may
// never start a queue that was not flushed, while another queue waits for it. emu/reference/lanes.py is the model of
// these choices.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "driver/kernel.hpp"
#include "driver/spread.hpp"
#include "python/clock.hpp"
#include "python/gil.hpp"
#include "table/table.hpp"

namespace acs_cl {

// Which lane of its upstream a launch takes: one where upstream is the last launch; the lane of the first upstream
// launch; or that of the first one that no other launch has followed there, as in Opara and GrCUDA.
enum class After : int { TAIL, SAME, DISJOINT };

// Which other lane it takes: the one with the fewest in flight; an idle one, or each in turn; or always each in turn.
enum class Fresh : int { LEAST, REUSE, ALWAYS };

// On some drivers an event costs as much as an enqueue. If nobody asked for one in the last UNASKED launches, only
// every SPARSE-th launch of an in-order lane has an event. That stands for the launches before it, or a marker does. If
// the device does not keep up, kernels may be long, and a wait for one should not be a wait for many: every BEHIND-th
// launch has an event then. A request for the last launch of a lane gets a marker, which is exact. Only the next FEW
// launches then have events, in case each is asked for. Launches without events never fill the window, because nobody
// would see it become empty.
constexpr int UNASKED = 64, SPARSE = 16, BEHIND = 4, FEW = 4;

class Lanes : Single {
public:
    struct Lane {
        void *queue;
        nb::object python;
        std::deque<std::int64_t> queued;  // launches in flight, in the order of submission
        std::int64_t used = 0, last_seen = 0;
        int bare = 0;  // launches since the last one with an event
        std::int64_t flushed = 0;  // the place up to which the driver was told to start
        std::int64_t last_above = 0;  // the last place here of an upstream of the launch being submitted
        std::vector<std::int64_t> follows{};  // by lane: the last place that this lane already follows

        bool is_unflushed() const { return flushed < used; }
    };

    Lanes(bool out_of_order, bool profiling) : out_of_order_(out_of_order), profiling_(profiling) {}

    std::int64_t bare = 0;  // launches without an event of their own
    std::int64_t narrow = 0;  // launches on one lane, because all lanes would not be quicker
    int unasked_enough = UNASKED;
    std::optional<double> clock_s;  // a test's clock

    // Sets the policy that chooses lanes.
    void place_by(int after, int fresh) {
        if (after < 0 || after > int(After::DISJOINT) || fresh < 0 || fresh > int(Fresh::ALWAYS))
            throw std::invalid_argument("there is no such policy of lanes");
        after_ = After(after);
        fresh_ = Fresh(fresh);
    }

protected:
    std::size_t add_lane(nb::object queue) {
        lanes_.push_back({address(queue.attr("int_ptr")), std::move(queue), {}});
        for (Lane &lane : lanes_) lane.follows.resize(lanes_.size());
        return lanes_.size() - 1;
    }

    bool is_in_order(const Lane &lane) const { return !out_of_order_ || is_timed(lane); }
    bool is_timed(const Lane &lane) const { return timed_ && &lane == &lanes_[timed_]; }

    bool has_timed() const { return timed_ && !lanes_[timed_].queued.empty(); }

    // ---- where a launch goes --------------------------------------------------------------------

    // Returns the lane for a launch that follows `upstream_`, and collects the events that it waits for there.
    Lane &place(bool timed = false, bool is_upload = false) {
        Lane &chosen = timed && timed_ ? lanes_[timed_]
                       : out_of_order_ ? lanes_[0]
                       : is_upload && uploads_ && upstream_.empty() && wait_for_.empty() ? lanes_[uploads_]
                                                                                         : choose();
        followed_places_.clear();
        const bool are_many = upstream_.size() > 1;
        if (are_many) note_last_above();
        for (const Flying &other : upstream_) {
            Lane &lane = lanes_[other.lane];
            if (is_in_order(lane)) {
                if (are_many && other.place != lane.last_above) continue;
                if (is_in_order(chosen) && (&lane == &chosen || other.place <= chosen.follows[other.lane])) continue;
            }
            const Flying *one = covering(other);
            if (!one) continue;
            wait_for_.push_back(one->event);
            followed_places_.emplace_back(other.lane, one->place);
            if (&lane != &chosen && one->place > lane.flushed) start(lane);
        }
        return chosen;
    }

    void note_last_above() {
        for (const Flying &other : upstream_) lanes_[other.lane].last_above = 0;
        for (const Flying &other : upstream_) {
            std::int64_t &last = lanes_[other.lane].last_above;
            last = std::max(last, other.place);
        }
    }

    // Returns the lane of the newest upstream launch that is the last on its lane. Without one: the lane with the
    // fewest in flight, or the latest lane if several would overlap nothing.
    Lane &choose() {
        if (after_ != After::TAIL || fresh_ != Fresh::LEAST) return choose_by_policy();
        if (open_ > 1) {
            if (!spread_.is_open()) spread_.begin(time_s());
            if (Looks *looks = spread_.looks(); looks && looks->is_due()) look_back(*looks);
            if (!spread_.is_wide()) return narrow++, lanes_[latest_];
        }
        if (Lane *lane = behind_tail()) return *lane;
        return lanes_[latest_ = least_used()];
    }

    // Does the same by the policies of other systems, which look only at edges and lanes.
    Lane &choose_by_policy() {
        if (after_ == After::SAME)
            for (const Flying &other : upstream_)
                if (other.lane < open_) return lanes_[other.lane];
        if (after_ == After::TAIL)
            if (Lane *lane = behind_tail()) return *lane;
        if (after_ == After::DISJOINT)
            for (const Flying &other : upstream_)
                if (Flying *one = find(other.number); !one->continued && one->lane < open_) {
                    one->continued = true;
                    return lanes_[one->lane];
                }
        if (fresh_ == Fresh::LEAST) return lanes_[latest_ = least_used()];
        if (fresh_ == Fresh::REUSE)
            for (std::size_t lane = 0; lane < open_; lane++)
                if (lanes_[lane].queued.empty()) return lanes_[latest_ = lane];
        return lanes_[latest_ = (latest_ + 1) % open_];
    }

    Lane *behind_tail() {
        for (auto other = upstream_.rbegin(); other != upstream_.rend(); ++other)
            if (other->lane < open_ && lanes_[other->lane].queued.back() == other->number) return &lanes_[other->lane];
        return nullptr;
    }

    std::size_t least_used() const {
        std::size_t best = latest_, least = lanes_[latest_].queued.size();
        for (std::size_t step = 1; least && step < open_; step++) {
            std::size_t lane = (latest_ + step) % open_;
            if (lanes_[lane].queued.size() < least) {
                best = lane;
                least = lanes_[lane].queued.size();
            }
        }
        return best;
    }

    // Notes whether a launch has ended that is some launches older than the newest one in flight. If it has no event,
    // the next older one that has.
    void look_back(Looks &looks) {
        std::vector<std::size_t> left;  // by lane: the launches that are older than those seen so far
        for (const Lane &lane : lanes_) left.push_back(lane.queued.size());
        for (int many = 1;; many++) {
            std::size_t newest = lanes_.size();
            std::int64_t number = 0;
            for (std::size_t lane = 0; lane < lanes_.size(); lane++)
                if (left[lane] && lanes_[lane].queued[left[lane] - 1] > number)
                    number = lanes_[newest = lane].queued[left[lane] - 1];
            if (!number) {
                if (many <= looks.back()) looks.note(true);
                return;
            }
            left[newest]--;
            void *event = find(number)->event;
            if (many < looks.back() || !event) continue;
            looks.note(event_status(event) <= 0);
            return;
        }
    }

    // ---- events ---------------------------------------------------------------------------------

    bool wants_event(const Lane &lane) const {
        return out_of_order_ || profiling_ || is_timed(lane) || unasked_ < unasked_enough ||
               lane.bare + 1 >= std::min(behind_ ? BEHIND : SPARSE, most_bare_);
    }

    // Returns the launch of the lane whose event says that `one` has ended: the next one with an event, or the last
    // one, which gets the event of a marker. Null: the driver refuses the marker, and `one` has ended.
    const Flying *covering(const Flying &one, int unasked = 0) {
        unasked_ = std::min(unasked_, unasked);
        if (one.event) return &one;
        Lane &lane = lanes_[one.lane];
        auto at = std::find(lane.queued.begin(), lane.queued.end(), one.number);
        for (; at != lane.queued.end(); ++at)
            if (find(*at)->event) return find(*at);
        return mark(lane) ? find(lane.queued.back()) : nullptr;
    }

    // Does the same for the host, which often waits for the last launch of a lane, and for no other.
    const Flying *asked_for(std::int64_t number) {
        const Flying *one = find(number);
        if (!one) return nullptr;
        const bool is_last = is_in_order(lanes_[one->lane]) && lanes_[one->lane].queued.back() == number;
        return covering(*one, is_last ? std::max(0, unasked_enough - FEW) : 0);
    }

    // Adds a marker, whose event the last launch gets. False: the driver refuses it. Nothing else says when launches
    // without events have ended, so these end with that error, once the driver has done all of the lane.
    bool mark(Lane &lane) {
        Flying &last = *find(lane.queued.back());
        const std::int32_t failed = driver.marker(lane.queue, 0, nullptr, &last.event);
        lane.bare = 0;
        lane.flushed = std::min(lane.flushed, last.place - 1);
        if (!failed) return true;
        {
            const WithoutGil others;
            driver.finish(lane.queue);
        }
        auto &queued = lane.queued;
        for (; !queued.empty() && !find(queued.back())->event; queued.pop_back()) take(queued.back(), failed);
        return false;
    }

    // The note comes first: without the GIL, another thread may add a launch during the flush.
    static void start(Lane &lane) {
        lane.flushed = lane.used;
        driver.flush(lane.queue);
    }

    // ---- launches in flight -----------------------------------------------------------------------

    // Returns a launch on a lane here. Null: no lane has it, or it is on a lane of another device.
    Flying *find(std::int64_t number) const {
        Flying *one = table_ ? table_->flying(number) : nullptr;
        return one && one->queues == this ? one : nullptr;
    }

    void add(Lane &lane, std::int64_t number, void *event, PyObject *owner) {
        table_->take_off(number, event, owner, std::uint32_t(&lane - lanes_.data()), ++lane.used, this);
        for (const auto &[other, place] : followed_places_)
            lane.follows[other] = std::max(lane.follows[other], place);
        in_flight_++;
        lane.queued.push_back(number);
        unasked_ += unasked_ < UNASKED;
        lane.bare = event ? 0 : lane.bare + 1;
        bare += !event;
    }

    void take(std::int64_t number, std::int32_t status) {
        ended_.emplace_back(table_->land(number), status);
        in_flight_--;
    }

    double time_s() const { return clock_s ? *clock_s : now_s(); }

    std::vector<Lane> lanes_;
    std::vector<std::pair<Flying, std::int32_t>> ended_;  // until they are told
    std::size_t in_flight_ = 0, latest_ = 0;
    std::size_t open_ = 0;  // how many lanes any launch may take; they come first
    std::size_t timed_ = 0, uploads_ = 0;  // the lane that keeps times, and the one for uploads; 0: none
    Spread spread_;
    After after_ = After::TAIL;
    Fresh fresh_ = Fresh::LEAST;
    int unasked_ = 0;  // launches since somebody asked for an event
    int most_bare_ = SPARSE;  // how many launches of a lane may share one event
    std::vector<Flying> upstream_;  // those in flight, of the launch being submitted
    std::vector<void *> wait_for_;
    std::vector<std::pair<std::uint32_t, std::int64_t>> followed_places_;  // of these events: the lane, the place on it
    Owned<Table> table_;
    bool out_of_order_, profiling_, behind_ = false;
};

}  // namespace acs_cl
