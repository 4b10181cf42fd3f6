#include "python/turns.hpp"

#include <Python.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>

#include "python/clock.hpp"
#include "python/gil.hpp"

namespace acs_cl::turns {

namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;
using Clock = std::chrono::steady_clock;

constexpr microseconds LOOK{200};      // from one look at what a turn is used for to the next
constexpr microseconds IS_USED{20};    // processor time between two looks, from which on it is used
constexpr microseconds SLICE{2000};    // how long a turn lasts at most
constexpr microseconds SELDOM{64000};  // how long there is none at most, while they are not used

struct Worker {
    std::atomic<bool> is_there = false;
    std::atomic<ThreadClock> clock = ThreadClock();
    std::atomic<nanoseconds> seen = nanoseconds(0);  // at the end of the last turn
    std::atomic<bool> waits = false;                 // whether it had hardly any processor time since
};

std::array<Worker, 8> workers;

// These change only while the GIL is held.
Clock::time_point last, next;  // the end of the last turn, and when the next one is due
nanoseconds rest = SLICE;

thread_local Worker *own = nullptr;

// If nothing tells who needs a turn, there are none.
bool enter() {
    const ThreadClock clock = ThreadClock::own();
    for (auto &worker : workers) {
        if (worker.is_there || !clock.is_known()) continue;
        worker.clock = clock;
        worker.seen = clock.worked();
        worker.is_there = true;
        own = &worker;
        return true;
    }
    return false;
}

// Finds who waits for a turn.
bool is_needed(nanoseconds since) {
    bool any = false;
    for (auto &worker : workers) {
        if (!worker.is_there) continue;
        const nanoseconds now = worker.clock.load().worked();
        worker.waits = now - worker.seen.exchange(now) < since / 4;
        any = any || worker.waits;
    }
    return any;
}

// Whether one that waited has had processor time since the last look.
bool is_used() {
    nanoseconds sum{0};
    for (auto &worker : workers) {
        if (!worker.is_there || !worker.waits) continue;
        const nanoseconds now = worker.clock.load().worked();
        sum += now - worker.seen.exchange(now);
    }
    return sum >= IS_USED;
}

}  // namespace

bool want(bool does) {
    const bool did = own;
    if (does == did) return did;
    if (!does) {
        own->is_there = false;
        own = nullptr;
        wanted--;
    } else if (enter()) {
        wanted++;
        last = Clock::now();
        next = last + (rest = SLICE);
    }
    return did;
}

void give() {
    const auto began = Clock::now();
    if (own || began < next) return;
    bool used = false;
    next = began + SELDOM;  // no second thread gives one meanwhile
    if (is_needed(began - last)) {
        PyThreadState *saved = PyEval_SaveThread();
        while (wanted && Clock::now() - began < SLICE) {
            std::this_thread::sleep_for(LOOK);
            if (!is_used()) break;
            used = true;
        }
        take_gil(saved);
    }
    last = Clock::now();
    rest = used ? std::max<nanoseconds>(last - began, SLICE) : std::min<nanoseconds>(2 * rest, SELDOM);
    next = last + rest;
}

void forget() {
    for (auto &worker : workers) worker.is_there = false;
    own = nullptr;
    wanted = 0;
}

}  // namespace acs_cl::turns
