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

thread_local bool works = false;

// Changes only while the GIL is held.
Clock::time_point next;
nanoseconds rest = SLICE;

#if defined(__linux__)
std::array<std::atomic<clockid_t>, 8> clocks;  // of threads that work; 0: of none
thread_local std::atomic<clockid_t> *own = nullptr;

bool enter() {
    clockid_t clock;
    if (pthread_getcpuclockid(pthread_self(), &clock)) return false;
    for (auto &place : clocks) {
        clockid_t none = 0;
        if (place.compare_exchange_strong(none, clock)) return own = &place, true;
    }
    return false;
}

void leave() { own->store(0); }

// Returns the processor time that all of them have used. Only differences of a short while mean something.
nanoseconds used() {
    nanoseconds sum{0};
    for (auto &place : clocks) {
        const clockid_t clock = place.load();
        timespec time;
        if (clock && !clock_gettime(clock, &time))
            sum += std::chrono::seconds(time.tv_sec) + nanoseconds(time.tv_nsec);
    }
    return sum;
}

void forget_clocks() {
    for (auto &place : clocks) place.store(0);
}
#else
// Nothing tells what a turn is used for, so there are none.
bool enter() { return false; }
void leave() {}
nanoseconds used() { return nanoseconds(0); }
void forget_clocks() {}
#endif

}  // namespace

void want(bool does) {
    if (does == works) return;
    if (does) {
        if (!enter()) return;
        next = Clock::time_point();
        rest = SLICE;
        wanted++;
    } else {
        leave();
        wanted--;
    }
    works = does;
}

void give() {
    const auto began = Clock::now();
    if (works || began < next) return;
    PyThreadState *saved = PyEval_SaveThread();
    nanoseconds before = used();
    bool is_used = false;
    while (wanted && Clock::now() - began < SLICE) {
        std::this_thread::sleep_for(LOOK);
        const nanoseconds now = used();
        if (now - before < IS_USED) break;
        is_used = true;
        before = now;
    }
    take_gil(saved);
    const auto ended = Clock::now();
    rest = is_used ? std::max<nanoseconds>(ended - began, SLICE)
                   : std::min<nanoseconds>(2 * rest, SELDOM);
    next = ended + rest;
}

void forget() {
    wanted = 0;
    works = false;
    forget_clocks();
}

}  // namespace acs_cl::turns
