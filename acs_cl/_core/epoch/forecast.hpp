// The forecast of the open epoch: epochs that were sent before are remembered, and launches of the next one are
// compared with them. docs/design/prediction.md says why; emu/reference/forecast.py is the model.

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "epoch/remembered.hpp"
#include "epoch/sections.hpp"
#include "python/clock.hpp"
#include "python/nb.hpp"

namespace acs_cl {

constexpr std::size_t MOST_EPOCHS = 32, MOST_REMEMBERED = 1 << 16;  // most epochs, and tasks of all together
constexpr std::size_t LEAST_FORESEEN = 8;  // fewest tasks of an epoch that is remembered
constexpr std::uint32_t OFTEN = 3;         // times that an epoch came before it stays on the device
constexpr std::int64_t MOST_LOST = 4, MOST_GAINED = 4;  // `RememberedEpoch::gained`, in times of its size
constexpr std::size_t NEW_IN_A_ROW = MOST_EPOCHS;  // epochs that came only once before fewer are remembered
constexpr std::int64_t ENTER_NS = 20'000, MOST_ENTER_NS = 150;  // of a footprint; for each launch
constexpr std::int64_t SAVED_TIMES = 2;  // what a counted launch saves, in times of recording one
constexpr std::uint32_t MOST_SLOW = 3;  // slow times in a row; the first one always takes long
constexpr std::size_t REST = 256, LONGEST_REST = 1 << 16;  // epochs that begin like a slow one and are not forecast
constexpr std::size_t MOST_COSTLY = 16;  // beginnings of slow epochs
constexpr std::size_t LARGE_EPOCH = 512;  // tasks from which on longer epochs cost little less

// Beginnings of epochs whose footprint takes longer than the hazards of their launches.
struct Costly {
    RememberedPointer begin;          // one task
    std::size_t rest, next = REST;  // epochs that are collected without a forecast; the next number of them

    void take_rest() {
        rest = next;
        next = std::min(2 * next, LONGEST_REST);
    }
};

// Compares the open epoch with remembered ones. There is one forecast for each table. It knows only how many
// launches of the open epoch are like those of a remembered one. While the epoch follows that one, launches are
// recorded as usual. Once the remembered one is resident, they are only counted.
class Forecast {
public:
    bool is_on = false;
    std::int64_t most_enter_ns = MOST_ENTER_NS;  // below 0: every footprint is slow
    std::size_t least_alone = 0;  // fewest tasks of an epoch that ends where it did, although nobody waits
    std::size_t least_kept = 0;   // fewest tasks of a resident one
    Cutting cutting;

    // Counts since the beginning.
    struct {
        std::uint64_t epochs = 0, launches = 0, by_call = 0, given_up = 0, patched = 0, slow = 0, cut = 0, joined = 0;
    } stats;

    enum class Verdict { RECORD, COUNT, GIVE_UP };

    // Takes a launch for the open epoch, which has `recorded` tasks. Called again after it gave up and the counted
    // launches were recorded.
    Verdict ask(const Asked &one, std::size_t recorded, PyObject *scheduler) {
        if (!recorded && !counts_) open(one, scheduler);
        if (!followed_) return Verdict::RECORD;
        if (!counts_ && recorded != matched_) return leave();
        Likeness like =
            matched_ < followed_->size() ? followed_->compare(matched_, one) : Likeness::OTHER;
        if (like == Likeness::OTHER) {
            RememberedPointer other = another(one);
            if (!other) return counts_ ? Verdict::GIVE_UP : leave();
            if (counts_) hand_over(*other);
            else is_guess_ = true;
            followed_ = std::move(other);
            like = followed_->compare(matched_, one);
        }
        if (counts_ && like == Likeness::NUMBERS)
            followed_->take_numbers(matched_, one.arguments.data());
        matched_++;
        return counts_ ? Verdict::COUNT : Verdict::RECORD;
    }

    // Returns the launch that is expected next, if it would only be counted. Null: it would not.
    const Expected *next_counted() const {
        return counts_ && matched_ < followed_->size() ? &followed_->tasks[matched_] : nullptr;
    }
    // Returns the launch that was counted last, or null.
    Expected *last_counted() const { return counts_ && matched_ ? &followed_->tasks[matched_ - 1] : nullptr; }
    // Counts the next launch, which is the expected one.
    void count() {
        followed_->fetch_behind(matched_++);
        stats.by_call++;
    }

    // How many launches were only counted, of an epoch that is not in the hazards.
    std::size_t counted() const { return counts_ && !is_complete_ ? matched_ : 0; }
    // Whether the epoch is in the hazards as a whole, and has to be sent.
    bool is_complete() const { return is_complete_; }
    // Whether all launches of a remembered epoch have come.
    bool is_whole() const { return followed_ && matched_ == followed_->size(); }
    // Whether the open epoch follows a remembered one up to here, which goes on.
    bool follows() const { return followed_ && matched_ < followed_->size(); }
    // Whether the epoch is like a remembered one, and ends where that did. A short epoch ends only when somebody
    // waits: it may go on, and two sends cost more than collecting one. A resident one that is not so short is
    // sent, unless a longer one exists. Collecting it would make one more epoch that ends elsewhere, the next time,
    // too.
    bool ends_here() const {
        return is_whole() && (is_complete_ || followed_->is_section || matched_ >= least_alone ||
                              (followed_->is_resident() && matched_ >= least_kept && !followed_->goes_on));
    }
    const RememberedPointer &followed() const { return followed_; }

    // Whether the counted launches are a whole resident epoch, now that nothing more comes. If the remembered epoch
    // goes on, that is a shorter one.
    bool comes_to_an_end() {
        if (is_whole()) return true;
        const auto found = std::find_if(remembered_.begin(), remembered_.end(), [&](const RememberedPointer &other) {
            return other->size() == matched_ && other->is_resident() && other->scheduler.is(followed_->scheduler) &&
                   other->begins_like(*followed_, matched_);
        });
        if (found == remembered_.end()) return false;
        hand_over(**found);
        followed_ = *found;
        return true;
    }

    // Gives up counting, after the counted launches were recorded. From now on the epoch only follows. A remembered
    // epoch that lost too much is forgotten. If no other resident one begins like it, it would soon be back, so
    // such epochs rest.
    void give_up() {
        stats.given_up += matched_;
        counts_ = false;
        if (is_whole()) followed_->goes_on = false;  // but not as expected
        followed_->gained -= std::int64_t(matched_);
        if (followed_->gained > -MOST_LOST * std::int64_t(followed_->size())) return;
        forget(followed_);
        if (std::none_of(remembered_.begin(), remembered_.end(), [&](const RememberedPointer &other) {
                return other->is_resident() && other->scheduler.is(followed_->scheduler) &&
                       other->begins_like(*followed_, 1);
            }))
            costly(*followed_).take_rest();
    }

    // Whether the open epoch is remembered once it is sent.
    bool remembers() const { return is_on && !rests_; }

    // Whether the time of recording the next launch is needed. It is compared with the footprint of an epoch that
    // gets resident. Reading the clock takes long itself.
    bool is_timed() const { return followed_ && !followed_->is_resident() && followed_->came + 1 >= OFTEN; }
    void recorded(std::int64_t ns) {
        recorded_ns_ += ns;
        timed_++;
    }

    // Notes that the open epoch is sent as foreseen.
    void sent_foreseen() {
        stats.epochs++;
        stats.launches += followed_->size();
        stats.patched += followed_->changed.size();
        const auto many = std::int64_t(followed_->size());
        followed_->gained = std::min(followed_->gained + many, MOST_GAINED * many);
        follow_up(followed_);
        start();
    }

    // Notes that the open epoch is sent, all of it made by the core. Returns its remembered epoch if that came
    // often and should stay on the device, else null.
    template <typename Fill>
    RememberedPointer remember(std::size_t tasks, PyObject *scheduler, Fill &&fill) {
        if (!remembers() || tasks < LEAST_FORESEEN) {
            last_.reset();
            return nullptr;
        }
        const bool is_like = is_whole() && matched_ == tasks && !followed_->is_forgotten && !is_guess_;
        RememberedPointer found = is_like && followed_->is_resident() ? followed_ : nullptr, made;
        if (!found) {
            made = std::make_shared<RememberedEpoch>(scheduler);
            fill(*made);
            made->seal();
            // sections may be alike but for their numbers, and the first one should not get those of all
            found = is_like && followed_->is_section ? followed_ : find(*made);
        }
        if (found) {
            new_ = 0;
            found->came++;
            if (!found->is_resident()) found->take_all_numbers(*made);
            if (timed_ == tasks) found->take_time(recorded_ns_);
        } else {
            new_++;
            found = std::move(made);
            for (const RememberedPointer &other : remembered_) note_longer(*found, *other);
            remembered_.push_front(found);
            make_room();
        }
        follow_up(found);
        return found->came >= OFTEN && !found->is_resident() ? found : nullptr;
    }
    // Gives up the open epoch, because it has a launch that the core did not make.
    void leave_alone() {
        followed_.reset();
        last_.reset();
    }

    // Takes the time that its footprint took to enter the hazards. If single launches would take less, the epoch is
    // forgotten, and its footprint leaves the index. Epochs that begin like it are collected for a while and not
    // remembered, because that would cost each of them, too.
    void entered(std::int64_t ns) {
        is_complete_ = true;
        RememberedEpoch &one = *followed_;
        const std::int64_t most = most_enter_ns * std::int64_t(one.size());
        const bool is_slow = most < 0 || ns > ENTER_NS + std::max(most, SAVED_TIMES * one.recorded_ns);
        one.slow = is_slow ? one.slow + 1 : 0;
        if (one.slow < MOST_SLOW) return;
        if (one.trial) return join(one.trial);
        stats.slow++;
        costly(one).take_rest();
        forget(followed_);
    }

    // Begins the next epoch.
    void start() {
        followed_.reset();
        matched_ = timed_ = 0;
        recorded_ns_ = 0;
        opened_s_ = 0;
        counts_ = rests_ = is_complete_ = is_guess_ = false;
    }

    // Whether the epoch that is about to be sent as foreseen is timed, if the device is idle.
    bool times() const { return is_complete_ && followed_->is_timed(); }

    // Begins to time it. `is_idle`: the device has nothing to do until it is sent. One that was known only behind its
    // first launch is not timed.
    Timed begin_timing(bool is_idle) {
        Trial *trial = followed_->trial.get();
        is_idle = is_idle && opened_s_;
        if (!trial) return is_idle ? Timed{followed_, opened_s_} : Timed();
        if (!followed_->position) {
            trial->began = is_idle ? opened_s_ : 0;
            trial->next = 0;
        }
        if (followed_->position != trial->next++) trial->began = 0;
        return trial->next == trial->many && trial->began ? Timed{followed_, std::exchange(trial->began, 0)} : Timed();
    }

    // Takes the time of one that has ended well. `sent`: when the driver had it.
    void end_timing(const Timed &timed, double sent) {
        RememberedEpoch &one = *timed.of;
        if (one.is_forgotten) return;
        const double now = now_s(), took = now - timed.began;
        if (Trial *trial = one.trial.get()) {
            trial->sections_s = std::min(trial->sections_s, took);
            trial->runs++;
            decide(one.trial);
        } else if (!one.edges.empty()) {
            one.host_s = std::min(one.host_s, sent - timed.began);
            one.device_s = std::min(one.device_s, now - sent);
            one.whole_s = std::min(one.whole_s, took);
            if (++one.runs >= cutting.runs && !one.is_tried) cut(timed.of);
        }
    }

    // Makes an epoch that came often resident. `graph`: its tasks.
    void keep(RememberedEpoch &one, Hazards &hazards, const Graph &graph) {
        if (one.size() >= cutting.least_whole() && !one.is_section) one.edges = graph.all_edges();
        std::shared_ptr<Joint> joint = one.touched();
        for (const RememberedPointer &other : remembered_)
            if (other->is_resident() && other->joint->reads == joint->reads && other->joint->writes == joint->writes) {
                one.joint = other->joint;
                return;
            }
        joint->footprint = hazards.footprint(joint->reads, joint->writes, nullptr);
        one.joint = std::move(joint);
    }

    // Forgets an epoch. Sections that are tried together are forgotten together, with the whole one.
    void forget(const RememberedPointer &one) {
        const std::deque<RememberedPointer> all = std::exchange(remembered_, {});
        for (const RememberedPointer &other : all) {
            if (other == one || (one->trial && other->trial == one->trial)) other->is_forgotten = true;
            else remembered_.push_back(other);
        }
        one->is_forgotten = true;
        if (one->trial) one->trial->whole->is_forgotten = true;
    }
    // Forgets an epoch whose state on the device is unknown.
    void drop(nb::handle resident) {
        const std::deque<RememberedPointer> all = remembered_;
        for (const RememberedPointer &one : all)
            if (one->resident.is(resident) || (one->trial && one->trial->whole->resident.is(resident))) forget(one);
    }
    // The open epoch goes on if its launches were only counted, since nobody else knows them.
    void forget_all() {
        while (!remembered_.empty()) forget(RememberedPointer(remembered_.front()));
        costly_.clear();
        last_.reset();
        if (!counts_) start();
    }

    const std::deque<RememberedPointer> &remembered() const { return remembered_; }
    std::size_t residents() const {
        return std::size_t(std::count_if(remembered_.begin(), remembered_.end(),
                                         [](const auto &one) { return one->is_resident(); }));
    }
    const std::deque<Costly> &slow() const { return costly_; }

private:
    // Tries the sections of an epoch, if they should take less. An epoch that may go on stays whole.
    void cut(const RememberedPointer &whole) {
        if (whole->goes_on) return whole->edges.clear();
        const std::vector<std::size_t> ends = whole->between_launches(
            best_sections(whole->size(), whole->edges, whole->host_s, whole->device_s, cutting), cutting.least);
        if (ends.size() == 1) return whole->edges.clear();
        stats.cut++;
        forget(whole);
        whole->is_forgotten = false;  // it is found by its sections
        whole->is_tried = true;
        whole->whole_s = 1e9;
        whole->runs = 0;
        const auto trial = std::make_shared<Trial>(Trial{whole, std::uint32_t(ends.size())});
        std::vector<RememberedPointer> sections;
        std::size_t first = 0;
        for (std::size_t end : ends) {
            RememberedPointer made = whole->part(first, end);
            made->came = OFTEN - 1;
            made->is_section = true;
            made->trial = trial;
            made->position = std::uint32_t(sections.size());
            if (!sections.empty()) sections.back()->behind = made;
            sections.push_back(std::move(made));
            first = end;
        }
        remembered_.insert(remembered_.begin(), sections.begin(), sections.end());
        make_room();
    }

    // Returns what the open epoch follows: every other time the whole epoch that is tried beside its sections.
    static RememberedPointer in_turn(const RememberedPointer &found) {
        if (!found || !found->trial || found->position || !found->is_resident()) return found;
        Trial &trial = *found->trial;
        return trial.turn++ % 2 && !trial.whole->is_forgotten ? trial.whole : found;
    }

    // Ends a trial after enough runs of both.
    void decide(const std::shared_ptr<Trial> trial) {
        const RememberedEpoch &whole = *trial->whole;
        if (trial->runs < cutting.runs || (whole.runs < cutting.runs && !whole.is_forgotten)) return;
        if (trial->sections_s >= whole.whole_s * (1 - cutting.timed_gain)) return join(trial);
        for (const RememberedPointer &one : remembered_)
            if (one->trial == trial) one->trial.reset();
    }

    // Remembers the whole epoch again, which is never cut any more, in place of sections that take longer. If it was
    // forgotten meanwhile, such as for a slow footprint, it is collected anew.
    void join(const std::shared_ptr<Trial> trial) {
        const bool comes_back = !trial->whole->is_forgotten;
        stats.joined++;
        const auto is_tried = [&](const RememberedPointer &one) { return one->trial == trial; };
        const auto section = std::find_if(remembered_.begin(), remembered_.end(), is_tried);
        if (section != remembered_.end()) forget(RememberedPointer(*section));
        if (!comes_back) return;
        trial->whole->is_forgotten = trial->whole->is_tried = false;
        trial->whole->edges.clear();
        remembered_.push_front(trial->whole);
        make_room();
    }

    Verdict leave() {
        followed_.reset();
        return Verdict::RECORD;
    }

    // Follows the epoch that came after the last one, or else the newest that begins like this launch.
    void open(const Asked &one, PyObject *scheduler) {
        start();
        if ((rests_ = is_resting(one, scheduler))) return;
        rests_ = is_skipped();
        auto fits = [&](const RememberedPointer &other) {
            return other && !other->is_forgotten && (!rests_ || other->is_resident()) &&
                   other->scheduler.ptr() == scheduler &&
                   other->compare(0, one) != Likeness::OTHER;
        };
        auto begins = [&](const RememberedPointer &other) {
            return fits(other) && !other->position && !other->is_tried;
        };
        if (RememberedPointer behind = last_ ? last_->behind.lock() : nullptr; fits(behind)) {
            followed_ = std::move(behind);
        } else if (RememberedPointer next = last_ ? last_->next.lock() : nullptr; begins(next)) {
            followed_ = std::move(next);
        } else {
            const auto found = std::find_if(remembered_.begin(), remembered_.end(), begins);
            if (found != remembered_.end()) followed_ = *found;
        }
        followed_ = in_turn(followed_);
        counts_ = followed_ && followed_->is_resident();
        if (counts_ && followed_->is_timed()) opened_s_ = now_s();
    }

    // Whether epochs that begin with this launch were slow when they were foreseen, not long ago.
    bool is_resting(const Asked &one, PyObject *scheduler) {
        for (Costly &slow : costly_)
            if (slow.begin->scheduler.ptr() == scheduler &&
                slow.begin->compare(0, one) != Likeness::OTHER)
                return slow.rest && slow.rest--;
        return false;
    }

    // Returns what is known of epochs that begin like this one. At first nothing is.
    Costly &costly(const RememberedEpoch &of) {
        for (Costly &slow : costly_)
            if (slow.begin->scheduler.is(of.scheduler) && slow.begin->begins_like(of, 1))
                return slow;
        if (costly_.size() == MOST_COSTLY) costly_.pop_back();
        costly_.push_front({of.part(0, 1), 0});
        return costly_.front();
    }

    // Returns another epoch that is like this one up to here, and goes on with a launch.
    RememberedPointer another(const Asked &one) const {
        for (const RememberedPointer &other : remembered_)
            if (other != followed_ && !other->position && other->size() > matched_ &&
                other->scheduler.is(followed_->scheduler) &&
                (!counts_ || other->is_resident()) && other->seems_to_begin_like(*followed_, matched_) &&
                other->compare(matched_, one) != Likeness::OTHER &&
                (!counts_ || other->begins_like(*followed_, matched_)))
                return other;
        return nullptr;
    }

    // Gives the numbers of the counted launches to another epoch.
    void hand_over(RememberedEpoch &other) const {
        for (std::size_t at = 0; at < matched_; at++) {
            const Expected &mine = followed_->tasks[at];
            if (std::memcmp(mine.arguments(), other.tasks[at].arguments(), mine.argument_bytes()))
                other.take_numbers(at, mine.arguments());
        }
    }

    void follow_up(const RememberedPointer &now) {
        if (last_) last_->next = now;
        last_ = now;
        auto at = std::find(remembered_.begin(), remembered_.end(), now);
        if (at != remembered_.end()) std::rotate(remembered_.begin(), at, at + 1);
    }

    // Whether this epoch is skipped. If nothing comes again, few epochs are followed and remembered, and fewer the
    // longer that lasts.
    bool is_skipped() {
        return new_ >= NEW_IN_A_ROW && skipped_++ % std::min(new_ / 4, NEW_IN_A_ROW);
    }

    RememberedPointer find(const RememberedEpoch &made) const {
        for (const RememberedPointer &other : remembered_)
            if (!other->position && other->size() == made.size() && other->scheduler.is(made.scheduler) &&
                other->begins_like(made, made.size()))
                return other;
        return nullptr;
    }

    static void note_longer(RememberedEpoch &one, RememberedEpoch &other) {
        RememberedEpoch &shorter = one.size() < other.size() ? one : other, &longer = &shorter == &one ? other : one;
        if (one.size() != other.size() && one.scheduler.is(other.scheduler) &&
            longer.seems_to_begin_like(shorter, shorter.size()))
            shorter.goes_on = true;
    }

    // Forgets the oldest ones, of which some may still be in use.
    void make_room() {
        const auto tasks = [this] {
            std::size_t found = 0;
            for (const RememberedPointer &one : remembered_) found += one->size();
            return found;
        };
        while (remembered_.size() > 1 && (remembered_.size() > MOST_EPOCHS || tasks() > MOST_REMEMBERED))
            forget(RememberedPointer(remembered_.back()));
    }

    std::deque<RememberedPointer> remembered_;  // the newest first
    RememberedPointer followed_, last_;
    std::size_t matched_ = 0, new_ = 0, skipped_ = 0;
    std::size_t timed_ = 0;                  // launches of the open epoch that were recorded,
    std::int64_t recorded_ns_ = 0;           // and the time that took
    double opened_s_ = 0;                    // when the first launch of a timed epoch came; 0: it was another one
    std::deque<Costly> costly_;              // the newest first
    bool counts_ = false, rests_ = false, is_complete_ = false;  // the open epoch
    bool is_guess_ = false;  // its first launches only seem to be like those of `followed_`
};

}  // namespace acs_cl
