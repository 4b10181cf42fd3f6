// Bridges between contexts: an event of one context cannot be waited for in another one. So a thread waits for it,
// and then lets a user event of the other context end.

#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <thread>

#include "driver/kernel.hpp"

namespace acs_cl {

class Bridges {
public:
    // Lets `user` end with the status of `event`. Both are kept until then. What `event` waits for are earlier
    // bridges only, and these are seen to in order: so the oldest one can always end.
    void add(void *event, void *user) {
        std::lock_guard held(mutex_);
        if (threads_ < MOST && free_ <= asked_.size()) {
            std::thread([this] { run(); }).detach();
            threads_++, free_++;
        }
        driver.retain_event(event), driver.retain_event(user);
        asked_.push_back({event, user});
        changed_.notify_one();
    }

private:
    struct Bridge {
        void *event, *user;
    };
    static constexpr std::size_t MOST = 4;  // threads that wait at one time

    void run() {
        for (std::unique_lock held(mutex_);;) {
            changed_.wait(held, [this] { return !asked_.empty(); });
            const Bridge one = asked_.front();
            asked_.pop_front();
            free_--;
            held.unlock();
            const std::int32_t failed = driver.wait_for_events(1, &one.event), status = event_status(one.event);
            driver.set_user_event_status(one.user, failed ? failed : status < 0 ? status : EVENT_COMPLETE);
            driver.release_event(one.event), driver.release_event(one.user);
            held.lock();
            free_++;
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Bridge> asked_;
    std::size_t threads_ = 0, free_ = 0;
};

// Those of the process. Their threads may still run when it ends.
inline Bridges &bridges() {
    static auto *all = new Bridges;
    return *all;
}

}  // namespace acs_cl
