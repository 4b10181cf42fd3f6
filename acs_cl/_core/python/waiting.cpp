#include "python/waiting.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
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

// Tells whether an event has ended. The thread that waits may have left by then.
struct Notice {
    std::mutex mutex;
    std::condition_variable changed;
    bool has_come = false;

    void come() {
        std::lock_guard held(mutex);
        has_come = true;
        changed.notify_all();
    }

    bool is_there() {
        std::lock_guard held(mutex);
        return has_come;
    }

    // Whether it came within that many seconds.
    bool wait(double seconds) {
        std::unique_lock held(mutex);
        return changed.wait_for(held, Seconds(seconds), [&] { return has_come; });
    }
};
using SharedNotice = std::shared_ptr<Notice>;

// A thread that waits for one event after another.
struct Waiter {
    std::mutex mutex;
    std::condition_variable changed;
    void *event = nullptr;  // the event that it waits for, or null
    SharedNotice notice;
    bool is_left = false;  // the caller has left: it ends with the event

    void ask(void *what, SharedNotice whom) {
        std::lock_guard held(mutex);
        event = what;
        notice = std::move(whom);
        changed.notify_all();
    }

    void leave() {
        std::lock_guard held(mutex);
        is_left = true;
        changed.notify_all();
    }

    void run() {
        for (std::unique_lock held(mutex);;) {
            changed.wait(held, [&] { return event || is_left; });
            if (!event) return;
            held.unlock();
            driver.wait_for_events(1, &event);
            held.lock();
            void *const ended = std::exchange(event, nullptr);
            std::exchange(notice, nullptr)->come();
            held.unlock();
            driver.release_event(ended);
            held.lock();
        }
    }
};

std::shared_ptr<Waiter> idle;  // one that is not in use, or none

// Returns null with an error.
std::shared_ptr<Waiter> take_waiter() {
    if (idle) return std::move(idle);
    try {
        auto made = std::make_shared<Waiter>();
        std::thread([made] { made->run(); }).detach();
        return made;
    } catch (const std::system_error &) {
        PyErr_SetString(PyExc_MemoryError, "no thread can be started to wait for the device");
        return nullptr;
    }
}

// A wait that was left before its event ended. Whoever will give the notice keeps the event until then.
struct Left {
    void *event;
    SharedNotice notice;
};

std::vector<Left> left;  // with the GIL

// Returns the notice of a wait for the same event that was left. Null: there is none.
SharedNotice take_left(void *event) {
    left.erase(std::remove_if(left.begin(), left.end(), [](const Left &one) { return one.notice->is_there(); }),
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

Wait wait_in_slices(Notice &notice, Clock::time_point began, double seconds) {
    for (;;) {
        if (PyErr_CheckSignals()) return Wait::RAISED;
        const double slice_s = left_s(began, seconds);
        if (slice_s <= 0) return Wait::LATE;
        PyThreadState *saved = PyEval_SaveThread();
        const bool has_come = notice.wait(slice_s);
        take_gil(saved);
        if (has_come) return Wait::ENDED;
    }
}

// Waits for the notice of an event, in slices between which signals are handled.
Wait wait_for_notice(void *event, const SharedNotice &notice, Clock::time_point began, double seconds) {
    const Wait found = wait_in_slices(*notice, began, seconds);
    if (found != Wait::ENDED) left.push_back({event, notice});
    return found;
}

// Does the rest of a wait by a thread of ours. A signal's handler may wait, too, for another event.
Wait by_another(void *event, const SharedNotice &notice, Clock::time_point began, double seconds) {
    const std::shared_ptr<Waiter> own = take_waiter();
    if (!own) return Wait::RAISED;
    driver.retain_event(event);
    own->ask(event, notice);
    const Wait found = wait_for_notice(event, notice, began, seconds);
    if (found == Wait::ENDED && !idle) idle = own;
    else own->leave();
    return found;
}

}  // namespace

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

// Never freed: a lock that another thread held stays taken.
void forget_waiters() {
    new std::shared_ptr<Waiter>(std::move(idle));
    new std::vector<Left>(std::exchange(left, {}));
}

}  // namespace acs_cl
