// Uploads of memory that the program may change as soon as the call returns. A GPU's driver copies such memory by one
// thread, which uses a seventh of the bus, and the caller waits. Here several threads copy it into pinned pieces, and
// each sends its own pieces. So the bus is as busy as the threads keep it.

#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "driver/landing.hpp"
#include "driver/transfer.hpp"

namespace acs_cl {

// Bytes from which on threads pay off, and the least number of bytes for each thread.
constexpr std::size_t STAGED_BYTES = 16 << 20, THREAD_BYTES = 2 << 20;

class Staging : Single {
public:
    ~Staging() { forget(); }

    // `make` is called at the first use, and returns a list of arrays of one size.
    void use(nb::object make) { make_ = std::move(make); }

    // Whether there are pieces. With the GIL.
    bool is_there() {
        if (make_.is_valid())
            for (nb::handle one : std::exchange(make_, nb::object())()) {
                const HostBytes bytes(one, true);
                nbytes_ = bytes.nbytes();
                pieces_.push_back({static_cast<char *>(bytes.view.buf), nullptr});
                keepers_.push_back(nb::borrow(one));
            }
        return pieces_.size() >= EACH;
    }

    // Copies and sends all bytes, without the GIL. Returns the driver's status. `last`, if not null, gets an event
    // behind all.
    std::int32_t write(const Transfer &transfer, void *queue, void **last) {
        const std::size_t most = std::min<std::size_t>(pieces_.size() / EACH,
                                                       std::max(1u, std::thread::hardware_concurrency() / 2));
        const std::size_t many = std::clamp<std::size_t>(transfer.nbytes / THREAD_BYTES, 1, most);
        std::atomic<std::size_t> next{0};
        std::atomic<std::int32_t> failed{0};
        auto work = [&](std::size_t worker) {
            for (std::size_t turn = 0; !failed; turn++) {
                const std::size_t at = next++ * nbytes_;
                if (at >= transfer.nbytes) break;
                const std::int32_t status =
                    send(transfer, queue, at, pieces_[worker * EACH + turn % EACH]);
                if (status) failed = status;
            }
        };
        std::vector<std::thread> others;
        for (std::size_t worker = 1; worker < many; worker++) try {
                others.emplace_back(work, worker);
            } catch (const std::system_error &) {
                break;  // the system has no more, so fewer do the work
            }
        work(0);
        for (std::thread &other : others) other.join();
        if (failed) return failed;
        return last ? driver.marker(queue, 0, nullptr, last) : 0;
    }

    // Releases all pieces, once their uploads have ended.
    void forget() {
        for (Piece &piece : pieces_)
            if (piece.event) {
                driver.wait_for_events(1, &piece.event);
                driver.release_event(piece.event);
            }
        pieces_.clear();
        keepers_.clear();
        make_.reset();
    }

private:
    static constexpr std::size_t EACH = 2;  // pieces of a thread: one is sent while the other is filled

    struct Piece {
        char *bytes;
        void *event;  // of its latest upload
    };

    std::int32_t send(const Transfer &transfer, void *queue, std::size_t at, Piece &piece) {
        if (piece.event) {
            driver.wait_for_events(1, &piece.event);
            driver.release_event(std::exchange(piece.event, nullptr));
        }
        Transfer one = transfer;
        one.nbytes = std::min(nbytes_, transfer.nbytes - at);
        one.source = std::memcpy(piece.bytes, static_cast<const char *>(transfer.source) + at, one.nbytes);
        if (transfer.kind == Transfer::SVM_COPY) one.target = static_cast<char *>(transfer.target) + at;
        one.to = transfer.to + at;
        const std::int32_t status = one.enqueue(queue, {}, false, &piece.event);
        return status ? status : driver.flush(queue);
    }

    nb::object make_;
    std::vector<Piece> pieces_;
    std::vector<nb::object> keepers_;
    std::size_t nbytes_ = 0;
};

}  // namespace acs_cl
