// Decides whether launches are spread over lanes. Lanes let kernels overlap, but an event between two lanes costs some
// drivers as much as a launch, so one lane alone is often quicker. Two ways to know:
//
// A *stretch* is what is launched between two waits of the host that leave nothing in flight, such as a step of a
// program that waits for each step. If stretches repeat, they are timed on all lanes and on one, in turns, until one way is clearly
// quicker, or each had TRIES. It is kept for some stretches. Then one goes the other way, and if that is not clearly
// slower, both are timed again. A stretch is known by its launches in order, and expected behind the stretch that came
// before it last time.
//
// Other launches are looked at: if a kernel ends before the next but one is launched, lanes overlap nothing.
//
// emu/reference/spread.py is the model.

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

namespace acs_cl {

// Looks that find the device waiting until one lane is enough.
class Looks {
public:
    bool is_wide() const { return wide_; }

    // Which launch in flight is looked at: the newest is 1.
    int back() const { return wide_ ? 2 : 4; }
    bool is_due() { return ++launches_ % (wide_ ? 8 : 4) == 0; }

    void note(bool ended) {
        if (!wide_) {
            narrow_ += 4;
            if (ended && narrow_ >= STEADY) needed_ = VOTES;
            if (ended) return;
            wide_ = true;
            needed_ = std::min(2 * needed_, MOST_VOTES);
            votes_ = 0;
            return;
        }
        votes_ = ended ? votes_ + 1 : 0;
        if (votes_ < needed_) return;
        wide_ = false;
        narrow_ = 0;
    }

private:
    static constexpr int VOTES = 4, MOST_VOTES = 1024, STEADY = 256;

    bool wide_ = true;
    int votes_ = 0, needed_ = VOTES;
    unsigned launches_ = 0;
    std::int64_t narrow_ = 0;
};

// A stretch that came before, and how long it takes on all lanes and on one.
class Stretch {
public:
    Stretch() = default;
    Stretch(std::uint64_t behind, std::uint64_t launches, std::size_t many)
        : many(many), behind_(behind), launches_(launches) {}

    bool is_behind(std::uint64_t last) const { return many && behind_ == last; }
    bool is(std::uint64_t launches) const { return launches_ == launches; }

    // Whether it goes to all lanes the next time. While both ways are timed: yes, no, no, yes, and so on.
    bool is_wide() const {
        if (state_ == State::TIMED) return tries_ % 4 == 0 || tries_ % 4 == 3;
        return (state_ == State::KEPT) == wide_;
    }

    void note(double took_s) {
        misses = 0;
        double &least_s = least_s_[is_wide()];
        least_s = std::min(least_s, took_s);
        switch (state_) {
        case State::TIMED: return decide();
        case State::KEPT:
            if (!--left_) state_ = State::ASKED;
            return;
        case State::ASKED:
            if (least_s > CLEAR * least_s_[wide_]) return keep();
            state_ = State::TIMED;
            tries_ = 0;
            least_s_ = {NEVER, NEVER};
        }
    }

    std::size_t many = 0;  // launches; 0: there is no such stretch
    std::uint64_t last_used = 0;
    int misses = 0;  // in a row

private:
    // Both ways are timed; the quicker one is kept; the other one is asked once whether it has become quicker.
    enum class State { TIMED, KEPT, ASKED };

    static constexpr int TRIES = 4, SHORTEST = 32, LONGEST = 1024;
    static constexpr double CLEAR = 1.25;
    static constexpr double NEVER = std::numeric_limits<double>::infinity();

    void decide() {
        tries_++;
        const auto [narrow_s, wide_s] = least_s_;
        const auto [less_s, more_s] = std::minmax(narrow_s, wide_s);
        const bool is_clear = tries_ == 4 && more_s > CLEAR * less_s;
        if (tries_ < 2 * TRIES && !is_clear) return;
        const bool was_wide = std::exchange(wide_, wide_s < narrow_s);
        if (wide_ != was_wide) keep_ = SHORTEST / 2;
        keep();
    }

    void keep() {
        state_ = State::KEPT;
        left_ = keep_ = std::min(2 * keep_, LONGEST);
        least_s_ = {NEVER, NEVER};
    }

    std::uint64_t behind_ = 0, launches_ = 0;
    std::array<double, 2> least_s_{NEVER, NEVER};  // by whether it is wide
    State state_ = State::TIMED;
    bool wide_ = true;
    int tries_ = 0, left_ = 0, keep_ = SHORTEST / 2;
};

class Spread {
public:
    bool is_wide() const { return expected_ ? expected_->is_wide() : looks_.is_wide(); }

    // Returns what looks at launches; null: not needed, because this stretch is timed.
    Looks *looks() { return expected_ ? nullptr : &looks_; }

    // A launch comes, the first one of a stretch.
    void begin(double now_s) {
        began_s_ = now_s;
        launches_ = many_ = 0;
        is_open_ = true;
        expected_ = nullptr;
        for (Stretch &one : stretches_)
            if (one.is_behind(last_)) expected_ = &one;
    }

    // `what`: the kernel and its sizes, or how many bytes a transfer has. Without a stretch, as on one lane, there is
    // nothing to know it by.
    void add(std::uint64_t what) {
        if (!is_open_) return;
        launches_ = (launches_ ^ what) * 0x9E3779B97F4A7C15u + 1;
        many_++;
        if (expected_ && many_ > expected_->many) miss();  // perhaps no wait ever comes
    }

    bool is_open() const { return is_open_; }

    // The host has waited, and nothing is in flight any more.
    void end(double now_s) {
        is_open_ = false;
        if (expected_ && !expected_->is(launches_)) miss();
        if (expected_) {
            expected_->note(now_s - began_s_);
            expected_->last_used = ++uses_;
        } else {
            keep();
        }
        last_ = launches_;
        expected_ = nullptr;
    }

    // Nothing is in flight any more, and nobody knows since when.
    void forget() { is_open_ = false, expected_ = nullptr; }

private:
    // Another stretch comes. Only the second time in a row is the expected one forgotten.
    void miss() {
        if (++expected_->misses > 1) *expected_ = Stretch();
        expected_ = nullptr;
    }

    // Expects this stretch the next time, unless another one still is.
    void keep() {
        Stretch *oldest = &stretches_[0];
        for (Stretch &one : stretches_) {
            if (one.is_behind(last_)) return;
            if (one.last_used < oldest->last_used) oldest = &one;
        }
        *oldest = Stretch(last_, launches_, many_);
        oldest->last_used = ++uses_;
    }

    Looks looks_;
    std::array<Stretch, 8> stretches_{};
    Stretch *expected_ = nullptr;  // the stretch that is being launched, if one is expected
    std::uint64_t last_ = 0, launches_ = 0, uses_ = 0;
    std::size_t many_ = 0;
    double began_s_ = 0;
    bool is_open_ = false;
};

}  // namespace acs_cl
