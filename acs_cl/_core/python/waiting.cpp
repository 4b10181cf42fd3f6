#include "python/waiting.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

#include "driver/kernel.hpp"
#include "python/signals.hpp"

namespace acs_cl {

namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

// A thread that waits for one event after the other.
struct Waiter {
    std::mutex mutex;
    std::condition_variable changed;
    void *event = nullptr;  // what is waited for, or null
    bool is_left = false;  // by who asked: it ends with the event

    void run() {
        std::unique_lock held(mutex);
        while (!is_left) {
            changed.wait(held, [&] { return event || is_left; });
            if (!event) return;
            held.unlock();
            driver.wait_for_events(1, &event);
            driver.release_event(event);
            held.lock();
            event = nullptr;
            changed.notify_all();
        }
    }
};

std::shared_ptr<Waiter> idle;  // one that nobody uses, or none

// Null with an error.
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

// Whether the event ends while it is asked again and again, for a short time.
bool ends_soon(void *event) {
    if (event_status(event) <= 0) return true;
    void *queue = nullptr;
    const bool is_known = !driver.event_info(event, EVENT_QUEUE, sizeof(queue), &queue, nullptr);
    const bool on_cpu = !is_known || !queue || !is_of_own_processor(queue);
    const double asked_s = on_cpu ? ASKED_ON_CPU_S : ASKED_S;
    for (const auto began = Clock::now(); Seconds(Clock::now() - began).count() < asked_s;) {
        if (event_status(event) <= 0) return true;
        if (on_cpu) std::this_thread::yield();
    }
    return false;
}

double left_s(Clock::time_point began, double seconds) {
    if (seconds < 0) return SLICE_S;
    return std::clamp(seconds - Seconds(Clock::now() - began).count(), 0.0, SLICE_S);
}

// The rest of a wait, by another thread. What handles a signal may wait, too, for another event.
Wait by_another(void *event, Clock::time_point began, double seconds) {
    const std::shared_ptr<Waiter> own = take_waiter();
    if (!own) return Wait::RAISED;
    driver.retain_event(event);
    {
        std::lock_guard held(own->mutex);
        own->event = event;
    }
    own->changed.notify_all();
    Wait found = Wait::LATE;
    while (found == Wait::LATE) {
        if (PyErr_CheckSignals()) {
            found = Wait::RAISED;
            break;
        }
        const double slice_s = left_s(began, seconds);
        if (slice_s <= 0) break;
        PyThreadState *saved = PyEval_SaveThread();
        {
            std::unique_lock held(own->mutex);
            if (own->changed.wait_for(held, Seconds(slice_s), [&] { return !own->event; }))
                found = Wait::ENDED;
        }
        PyEval_RestoreThread(saved);
    }
    std::lock_guard held(own->mutex);
    if (own->event) own->is_left = true;  // the thread ends with it
    else if (!idle) idle = own;
    else own->is_left = true;
    own->changed.notify_all();
    return found;
}

}  // namespace

Wait wait_for_event(void *event, double seconds) {
    const auto began = Clock::now();
    PyThreadState *saved = PyEval_SaveThread();
    bool is_over = true;
    if (PyThread_get_thread_ident() == signals::main_thread) is_over = ends_soon(event);
    else driver.wait_for_events(1, &event);
    PyEval_RestoreThread(saved);
    return is_over ? Wait::ENDED : by_another(event, began, seconds);
}

bool is_of_own_processor(void *queue) {
    void *device = nullptr;
    std::uint64_t type = DEVICE_IS_CPU;
    if (driver.queue_info(queue, QUEUE_DEVICE, sizeof(device), &device, nullptr) ||
        driver.device_info(device, DEVICE_TYPE, sizeof(type), &type, nullptr))
        return false;
    return !(type & DEVICE_IS_CPU);
}

// Never freed: a lock that another thread held stays taken.
void forget_waiters() { new std::shared_ptr<Waiter>(std::move(idle)); }

}  // namespace acs_cl
