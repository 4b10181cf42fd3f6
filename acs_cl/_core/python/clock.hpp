// The clock of Python's `perf_counter`.

#pragma once

#include <chrono>

namespace acs_cl {

inline double now_s() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace acs_cl
