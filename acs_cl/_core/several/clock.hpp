// When devices will have done their launches, and when data will be ready, in microseconds of a clock that the caller
// chooses. Part of the model that policies are asked with (acs_cl/several/model.py).

#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "hazards/span.hpp"

namespace acs_cl {

class Clock {
public:
    explicit Clock(std::size_t devices) : free_us_(devices, 0.0) {}

    // Notes when a launch begins, and how long it takes. One that is really made has a number, others have 0.
    void runs(const std::vector<Span> &writes, int device, double start_us, double took_us, std::int64_t number) {
        const double ends = free_us_.at(std::size_t(device)) = start_us + took_us;
        if (number) {
            if (ends_us_.size() >= MOST) forget_ended(start_us);
            ends_us_[number] = ends;
        }
        for (const Span &span : writes) ready_us_[key(span.base, device)] = ends;
    }

    // Returns when a launch will have ended; 0: it has.
    double ended_us(std::int64_t number) const {
        const auto found = ends_us_.find(number);
        return found == ends_us_.end() ? 0.0 : found->second;
    }
    // Returns when the last writer of a base on a device will have ended; 0: it has.
    double ready_us(std::int64_t base, int device) const {
        const auto found = ready_us_.find(key(base, device));
        return found == ready_us_.end() ? 0.0 : found->second;
    }
    double free_us(int device) const { return free_us_.at(std::size_t(device)); }
    const std::vector<double> &all_free_us() const { return free_us_; }

    void forget(std::int64_t base, int device) { ready_us_.erase(key(base, device)); }

private:
    static constexpr std::size_t MOST = 4096;  // launches whose ends are kept, before the ended ones are forgotten

    static std::int64_t key(std::int64_t base, int device) { return base * 32 + device; }
    void forget_ended(double now_us) {
        for (auto one = ends_us_.begin(); one != ends_us_.end();)
            one = one->second > now_us ? std::next(one) : ends_us_.erase(one);
    }

    std::vector<double> free_us_;                        // when each device will have done all its launches
    std::unordered_map<std::int64_t, double> ready_us_;  // by base and device
    std::unordered_map<std::int64_t, double> ends_us_;   // by launch that may not have ended
};

}  // namespace acs_cl
