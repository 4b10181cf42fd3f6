#include "python/turns.hpp"

#include <Python.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>

#if defined(__linux__)
#include <pthread.h>
#include <time.h>
#endif

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

#if defined(__linux__)
class ProcessorTime {
public:
    bool begin() {
        clockid_t clock;
        if (pthread_getcpuclockid(pthread_self(), &clock)) return false;
        clock_ = clock;
        return true;
    }
    // Returns the processor time of the thread that began. 0: it has ended.
    nanoseconds now() const {
        timespec time;
        if (clock_gettime(clock_, &time)) return nanoseconds(0);
        return std::chrono::seconds(time.tv_sec) + nanoseconds(time.tv_nsec);
    }

private:
    std::atomic<clockid_t> clock_{0};
};
#else
// Nothing tells who needs a turn, so there are none.
struct ProcessorTime {
    bool begin() { return false; }
    nanoseconds now() const { return nanoseconds(0); }
};
#endif

struct Worker {
    std::atomic<bool> is_there = false;
    ProcessorTime time;
    std::atomic<nanoseconds> seen = nanoseconds(0);  // at the end of the last turn
    std::atomic<bool> waits = false;                 // whether it had hardly any processor time since
};

std::array<Worker, 8> workers;

// These change only while the GIL is held.
Clock::time_point last, next;  // the end of the last turn, and when the next one is due
nanoseconds rest = SLICE;

thread_local Worker *own = nullptr;

bool enter() {
    for (auto &worker : workers) {
        if (worker.is_there) continue;
        if (!worker.time.begin()) return false;
        worker.seen = worker.time.now();
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
        const nanoseconds now = worker.time.now();
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
        const nanoseconds now = worker.time.now();
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
