#include "python/waiting.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "driver/kernel.hpp"
#include "python/gil.hpp"
#include "python/signals.hpp"

namespace acs_cl {

namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

using SharedNotice = std::shared_ptr<Notice>;

// Threads, each of which waits for one event of the driver at a time.
class EventThreads : Single {
public:
    // `most`: threads at one time. Further waits begin when one is free. `kept`: threads that stay when they are free.
    EventThreads(std::size_t most, std::size_t kept) : most_(most), kept_(kept) {}

    // Has one wait for an event, and then call `then(event, failed)` with the driver's status of the wait. The event is
    // kept until then. Raises `std::system_error` if a thread is needed and the system has none.
    template <typename Then>
    void wait(void *event, Then &&then) {
        std::lock_guard held(mutex_);
        if (free_ <= asked_.size() && threads_ < most_) {
            std::thread([this] { run(); }).detach();
            threads_++, free_++;
        }
        asked_.push_back({event, std::forward<Then>(then)});
        driver.retain_event(event);
        changed_.notify_one();
    }

private:
    struct Asked {
        void *event;
        std::function<void(void *, std::int32_t)> then;
    };

    void run() {
        for (bool stays = true; stays;) {
            std::unique_lock held(mutex_);
            changed_.wait(held, [this] { return !asked_.empty(); });
            const Asked one = std::move(asked_.front());
            asked_.pop_front();
            free_--;
            held.unlock();
            const std::int32_t failed = driver.wait_for_events(1, &one.event);
            held.lock();
            stays = free_ < kept_;  // it is free before it tells, so that the next wait needs no other one
            if (stays) free_++;
            else threads_--;
            held.unlock();
            one.then(one.event, failed);
            driver.release_event(one.event);
        }
    }

    const std::size_t most_, kept_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Asked> asked_;
    std::size_t threads_ = 0, free_ = 0;
};

// For waits of the program, of which none may stand behind another one, and for bridges. Never freed: threads may still
// run when the process ends.
auto *waiters = new EventThreads(SIZE_MAX, 1), *bridges = new EventThreads(4, 4);

// A wait that was left before its event ended. Whoever will give the notice keeps the event until then.
struct Left {
    void *event;
    SharedNotice notice;
};

std::vector<Left> left;  // with the GIL

// Returns the notice of a wait for the same event that was left. Null: there is none.
SharedNotice take_left(void *event) {
    left.erase(std::remove_if(left.begin(), left.end(), [](const Left &one) { return one.notice->count(); }),
               left.end());
    const auto found = std::find_if(left.begin(), left.end(), [&](const Left &one) { return one.event == event; });
    if (found == left.end()) return nullptr;
    SharedNotice notice = std::move(found->notice);
    left.erase(found);
    return notice;
}

void on_end(void *, std::int32_t, void *notice) {
    const std::unique_ptr<SharedNotice> own(static_cast<SharedNotice *>(notice));
    (*own)->come();
}

// Lets the driver's own thread tell the end of an event. Returns false if it does not.
bool is_told(void *event, const SharedNotice &notice) {
    auto kept = std::make_unique<SharedNotice>(notice);
    if (driver.set_event_callback(event, EVENT_COMPLETE, on_end, kept.get())) return false;
    kept.release();
    return true;
}

// Returns null if the driver does not tell.
void *device_of(void *queue) {
    void *device = nullptr;
    return driver.queue_info(queue, QUEUE_DEVICE, sizeof(device), &device, nullptr) ? nullptr : device;
}

bool is_own_processor(void *device) {
    std::uint64_t type = DEVICE_IS_CPU;
    return device && !driver.device_info(device, DEVICE_TYPE, sizeof(type), &type, nullptr) && !(type & DEVICE_IS_CPU);
}

// What a wait for an event has to know about its device.
struct Device {
    bool is_cpu = true;
    bool tells = false;  // its driver runs all commands, whether anybody waits or not

    explicit Device(void *event) {
        void *queue = nullptr;
        char version[256] = "";  // of its language: that of the device is worked out anew by PoCL 3.0 each time
        if (driver.event_info(event, EVENT_QUEUE, sizeof(queue), &queue, nullptr) || !queue) return;
        void *device = device_of(queue);
        is_cpu = !is_own_processor(device);
        if (is_cpu && device && !driver.device_info(device, DEVICE_C_VERSION, sizeof(version) - 1, version, nullptr))
            tells = std::strstr(version, "PoCL");
    }
};

// Whether the event ends while its status is asked for that many seconds.
bool ends_within(double seconds, void *event) {
    const auto began = Clock::now();
    do {
        if (event_status(event) <= 0) return true;
    } while (Seconds(Clock::now() - began).count() < seconds);
    return false;
}

double left_s(Clock::time_point began, double seconds) {
    if (seconds < 0) return SLICE_S;
    return std::clamp(seconds - Seconds(Clock::now() - began).count(), 0.0, SLICE_S);
}

// Waits for the notice of an event.
Wait wait_for_notice(void *event, const SharedNotice &notice, Clock::time_point began, double seconds) {
    const Wait found = wait_in_slices(*notice, 0, began, seconds);
    if (found != Wait::ENDED) left.push_back({event, notice});
    return found;
}

// Does the rest of a wait by a thread of ours. A signal's handler may wait, too, for another event.
Wait by_another(void *event, const SharedNotice &notice, Clock::time_point began, double seconds) {
    try {
        waiters->wait(event, [notice](void *, std::int32_t) { notice->come(); });
    } catch (const std::system_error &) {
        PyErr_SetString(PyExc_MemoryError, "no thread can be started to wait for the device");
        return Wait::RAISED;
    }
    return wait_for_notice(event, notice, began, seconds);
}

}  // namespace

Wait wait_in_slices(Notice &notice, unsigned long before, Clock::time_point began, double seconds) {
    for (;;) {
        if (PyErr_CheckSignals()) return Wait::RAISED;
        const double slice_s = left_s(began, seconds);
        if (slice_s <= 0) return Wait::LATE;
        PyThreadState *saved = PyEval_SaveThread();
        const bool has_come = notice.wait(slice_s, before);
        take_gil(saved);
        if (has_come) return Wait::ENDED;
    }
}

Wait wait_for_event(void *event, double seconds) {
    const auto began = Clock::now();
    const bool is_main = PyThread_get_thread_ident() == signals::main_thread;
    const bool is_noticing = is_main || seconds >= 0;
    const signals::Paused paused(is_main);
    SharedNotice notice = is_noticing ? take_left(event) : nullptr;
    PyThreadState *saved = PyEval_SaveThread();
    bool is_over = true, is_noticed = !!notice;
    if (is_noticing) {
        is_over = event_status(event) <= 0;
        if (!is_over && !notice) {
            const Device device(event);
            is_over = !device.is_cpu && ends_within(seconds < 0 ? ASKED_S : std::min(ASKED_S, seconds), event);
            if (!is_over) {
                notice = std::make_shared<Notice>();
                is_noticed = device.tells && is_told(event, notice);
            }
        }
    } else {
        driver.wait_for_events(1, &event);
    }
    take_gil(saved);
    if (is_over) return Wait::ENDED;
    return is_noticed ? wait_for_notice(event, notice, began, seconds) : by_another(event, notice, began, seconds);
}

bool is_of_own_processor(void *queue) { return is_own_processor(device_of(queue)); }

void bridge(void *event, void *user) {
    const auto kept = std::make_shared<HeldEvent>(user);
    driver.retain_event(user);
    bridges->wait(event, [kept](void *ended, std::int32_t failed) {
        const std::int32_t status = failed ? failed : event_status(ended);
        driver.set_user_event_status(kept->event, status < 0 ? status : EVENT_COMPLETE);
    });
}

// Never freed: a lock that another thread held stays taken.
void forget_waiters() {
    waiters = new EventThreads(SIZE_MAX, 1);
    bridges = new EventThreads(4, 4);
    new std::vector<Left>(std::exchange(left, {}));
}

}  // namespace acs_cl
