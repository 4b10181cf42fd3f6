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

// Tells other threads how long a thread has worked: its processor time.
class ThreadClock {
public:
    // Returns that of the calling thread.
    static ThreadClock own() {
        ThreadClock made;
#ifdef __linux__
        made.is_known_ = !pthread_getcpuclockid(pthread_self(), &made.clock_);
#endif
        return made;
    }
    bool is_known() const { return is_known_; }

    // 0: it is not known, or the thread has ended.
    std::chrono::nanoseconds worked() const {
#ifdef __linux__
        timespec now;
        if (is_known_ && !clock_gettime(clock_, &now))
            return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
#endif
        return std::chrono::nanoseconds(0);
    }

private:
#ifdef __linux__
    clockid_t clock_ = 0;
#endif
    bool is_known_ = false;
};

}  // namespace acs_cl
