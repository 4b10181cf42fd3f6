// Bytes from one device to another, of another context: through pinned memory of the host, in chunks
// that follow each other, so that one is read while the one before is written.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "driver/transfer.hpp"

namespace acs_cl {

// Where bytes are on a device: memory as a `Transfer` takes it, and a queue of its own.
struct Side {
    void *queue, *memory;
    std::size_t offset;
};

// Pinned memory, of which each slot has a chunk at a time.
struct Slots {
    char *first;
    std::size_t nbytes, many;

    char *operator[](std::size_t chunk) const { return first + chunk % many * nbytes; }
};

class Carrying {
public:
    Carrying(const Side &from, const Side &to, bool is_svm, std::size_t nbytes, const Slots &slots)
        : from_(from), to_(to), is_svm_(is_svm), nbytes_(nbytes), slots_(slots),
          chunk_(std::clamp((nbytes / slots.many + PAGE - 1) / PAGE * PAGE,
                            std::min(LEAST, slots.nbytes), slots.nbytes)),
          reads_((nbytes + chunk_ - 1) / chunk_), writes_(reads_.size()) {}
    Carrying(const Carrying &) = delete;
    Carrying &operator=(const Carrying &) = delete;
    // What is under way uses the slots.
    ~Carrying() {
        for (std::vector<void *> *all : {&reads_, &writes_})
            for (void *event : *all)
                if (event) driver.wait_for_events(1, &event), driver.release_event(event);
    }

    // The driver's status when all is there, or when a chunk has failed.
    std::int32_t run() {
        const std::size_t many = reads_.size();
        std::int32_t status = 0;
        for (std::size_t at = 0; !status && at < many && at < slots_.many; at++) status = read(at);
        for (std::size_t at = 0; !status && at < many; at++) {
            status = end(reads_[at]);
            if (!status) status = write(at);
            if (status || !at) continue;
            status = end(writes_[at - 1]);
            const std::size_t next = at - 1 + slots_.many;
            if (!status && next < many) status = read(next);
        }
        return status || !many ? status : end(writes_[many - 1]);
    }

private:
    static constexpr std::size_t PAGE = 4096, LEAST = 128 << 10;

    std::size_t length(std::size_t at) const { return std::min(chunk_, nbytes_ - at * chunk_); }
    std::int32_t read(std::size_t at) {
        Transfer one{is_svm_ ? Transfer::SVM_COPY : Transfer::READ, from_.memory, slots_[at],
                     from_.offset + at * chunk_, 0, length(at), {}};
        if (is_svm_) one.source = static_cast<char *>(one.source) + one.from;
        return start(one, from_.queue, reads_[at]);
    }
    std::int32_t write(std::size_t at) {
        Transfer one{is_svm_ ? Transfer::SVM_COPY : Transfer::WRITE, slots_[at], to_.memory,
                     0, to_.offset + at * chunk_, length(at), {}};
        if (is_svm_) one.target = static_cast<char *>(one.target) + one.to;
        return start(one, to_.queue, writes_[at]);
    }
    static std::int32_t start(const Transfer &one, void *queue, void *&event) {
        const std::int32_t status = one.enqueue(queue, {}, false, &event);
        return status ? status : driver.flush(queue);
    }
    static std::int32_t end(void *event) {
        const std::int32_t status = driver.wait_for_events(1, &event);
        return status ? status : event_status(event);
    }

    Side from_, to_;
    bool is_svm_;
    std::size_t nbytes_;
    Slots slots_;
    std::size_t chunk_;
    std::vector<void *> reads_, writes_;  // events, by chunk
};

}  // namespace acs_cl
