// Copies between devices of two contexts. Bytes go through pinned memory of the host, in chunks, so that one chunk is
// read while the one before is written.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "driver/transfer.hpp"

namespace acs_cl {

// The place of the bytes on a device: memory in the form of a `Transfer`, with a queue for this copy alone.
struct Side {
    void *queue, *memory;
    std::size_t offset;
};

// Pinned memory in slots. Each slot holds one chunk at a time.
struct Slots {
    char *first;
    std::size_t nbytes, many;

    char *operator[](std::size_t chunk) const { return first + chunk % many * nbytes; }
};

class Carrying : Single {
public:
    Carrying(const Side &from, const Side &to, bool is_svm, std::size_t nbytes, const Slots &slots)
        : from_(from), to_(to), is_svm_(is_svm), nbytes_(nbytes), slots_(slots),
          chunk_(std::clamp((nbytes / slots.many + PAGE - 1) / PAGE * PAGE,
                            std::min(LEAST, slots.nbytes), slots.nbytes)),
          reads_((nbytes + chunk_ - 1) / chunk_), writes_(reads_.size()) {}
    // Waits, because copies under way use the slots.
    ~Carrying() {
        for (std::vector<void *> *all : {&reads_, &writes_})
            for (void *event : *all)
                if (event) driver.wait_for_events(1, &event), driver.release_event(event);
    }

    // Starts to read the first chunks. Returns the driver's status, like the others.
    std::int32_t begin() {
        std::int32_t status = 0;
        for (std::size_t at = 0; !status && at < reads_.size() && at < slots_.many; at++)
            status = read(at);
        return status;
    }
    // Writes the next chunk once it was read, and reads another one into the slot that becomes free.
    std::int32_t step() {
        const std::size_t at = next_++, behind = at - 1 + slots_.many;
        std::int32_t status = end(reads_[at]);
        if (!status) status = write(at);
        if (status || !at) return status;
        status = end(writes_[at - 1]);
        return !status && behind < reads_.size() ? read(behind) : status;
    }
    bool has_more() const { return next_ < reads_.size(); }
    // Waits until the last chunk is there.
    std::int32_t finish() { return writes_.empty() ? 0 : end(writes_.back()); }

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
    std::size_t chunk_, next_ = 0;
    std::vector<void *> reads_, writes_;  // events, by chunk
};

// Runs several copies at one time, each with its own slots. Returns the first failure, or 0 when all bytes are there.
inline std::int32_t carry(std::vector<std::unique_ptr<Carrying>> &copies) {
    std::int32_t status = 0;
    const auto each = [&](auto &&what) {
        for (auto &copy : copies)
            if (!status) status = what(*copy);
    };
    each([](Carrying &copy) { return copy.begin(); });
    for (bool more = true; more && !status;) {
        more = false;
        each([&](Carrying &copy) {
            if (!copy.has_more()) return 0;
            const std::int32_t found = copy.step();
            more = more || copy.has_more();
            return found;
        });
    }
    each([](Carrying &copy) { return copy.finish(); });
    return status;
}

}  // namespace acs_cl
