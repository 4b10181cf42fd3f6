// Transfers as queues take them: between buffers, memory at addresses, and the host.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "driver/kernel.hpp"

namespace acs_cl {

// `source` and `target`: the driver's handle of a buffer, or an address; the other side of a read or of a
// write is the program's memory.
struct Transfer {
    enum Kind { READ, WRITE, COPY, FILL, SVM_COPY, SVM_FILL } kind;
    void *source = nullptr, *target = nullptr;
    std::size_t from = 0, to = 0, nbytes = 0;
    std::string_view pattern;
    bool is_upload = false;  // of the program's memory, which is read
    bool is_staged = false;  // and which the program may change when the call returns

    // The driver's status. `blocks`: it returns when all is done, where one side is the program's.
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
};

}  // namespace acs_cl
