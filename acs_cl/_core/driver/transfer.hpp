// Transfers for queues: between buffers, memory at addresses, and the host.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "driver/kernel.hpp"

namespace acs_cl {

// A side is the driver's handle of a buffer, or an address. The other side of a read or a write is the program's
// memory.
struct Transfer {
    enum Kind { READ, WRITE, COPY, FILL, SVM_COPY, SVM_FILL } kind;
    void *source = nullptr, *target = nullptr;
    std::size_t from = 0, to = 0, nbytes = 0;
    std::string_view pattern;
    bool is_upload = false;  // the source is the program's memory
    bool is_staged = false;  // which the program may change when the call returns
    bool is_seen = false;    // the host sees the device's memory, so that it may copy by itself

    // Returns the driver's status. `blocks`: a transfer with the program's memory has ended when it returns.
    std::int32_t enqueue(void *queue, const std::vector<void *> &behind, bool blocks,
                         void **event) const {
        const auto many = std::uint32_t(behind.size());
        void *const *events = many ? behind.data() : nullptr;
        switch (kind) {
        case READ:
            return driver.read_buffer(queue, source, blocks, from, nbytes, target, many, events, event);
        case WRITE:
            return driver.write_buffer(queue, target, blocks, to, nbytes, source, many, events, event);
        case COPY:
            return driver.copy_buffer(queue, source, target, from, to, nbytes, many, events, event);
        case FILL:
            return driver.fill_buffer(queue, target, pattern.data(), pattern.size(), to, nbytes, many,
                                      events, event);
        case SVM_COPY:
            return driver.copy_svm(queue, blocks, target, source, nbytes, many, events, event);
        default:
            return driver.fill_svm(queue, target, pattern.data(), pattern.size(), nbytes, many, events,
                                   event);
        }
    }

    // Does the same on the host.
    void copy() const {
        if (kind == SVM_COPY) {
            std::memmove(target, source, nbytes);
            return;
        }
        char *const first = static_cast<char *>(target);
        std::memcpy(first, pattern.data(), pattern.size());
        for (std::size_t done = pattern.size(); done < nbytes; done *= 2)
            std::memcpy(first + done, first, std::min(done, nbytes - done));
    }
};

}  // namespace acs_cl
