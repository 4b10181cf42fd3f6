// The clock of Python's `perf_counter`, and one of what a thread works.

#pragma once

#include <chrono>

#ifdef __linux__
#include <pthread.h>
#include <time.h>
#endif

namespace acs_cl {

inline double now_s() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Tells other threads how long the one that made it has worked: its processor time.
class ThreadClock {
public:
#ifdef __linux__
    ThreadClock() : is_known_(!pthread_getcpuclockid(pthread_self(), &clock_)) {}
    double worked_s() const {
        timespec now{};
        return is_known_ && !clock_gettime(clock_, &now) ? double(now.tv_sec) + double(now.tv_nsec) * 1e-9 : 0.0;
    }

private:
    clockid_t clock_{};
    bool is_known_;
#else
    double worked_s() const { return 0.0; }  // unknown
#endif
};

}  // namespace acs_cl
