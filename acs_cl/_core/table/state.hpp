// The states of a launch: a closed list, and which state may follow which.
// docs/design/launch-table.md draws it; emu/reference/table.py is the model.

#pragma once

#include <cstdint>

namespace acs_cl {

enum class State : std::uint8_t {
    NONE,       // no launch in flight has this number
    HELD,       // it is outside of a full window
    PENDING,    // it is inside, and waits for something on the host
    READY,      // nothing holds it, and the dispatcher has it, or takes it next
    EXECUTING,  // a lane, an epoch or a host thread has it
    ENDED,
    FAILED,     // it failed, or the failure of another one has reached it
    NEVER_RAN,  // it was poisoned or refused; its upstream stands in for it until that has ended
};

constexpr int STATES = 8;
constexpr const char *STATE_NAMES[STATES] = {"none",      "held",  "pending", "ready",
                                             "executing", "ended", "failed",  "never ran"};

constexpr std::uint8_t bit(State state) { return std::uint8_t(1u << int(state)); }

// The states that may follow each state.
constexpr std::uint8_t FOLLOWING[STATES] = {
    std::uint8_t(bit(State::HELD) | bit(State::PENDING) | bit(State::READY)),
    std::uint8_t(bit(State::PENDING) | bit(State::READY)),
    bit(State::READY),
    std::uint8_t(bit(State::EXECUTING) | bit(State::NEVER_RAN)),
    std::uint8_t(bit(State::ENDED) | bit(State::FAILED)),
    0,  // nothing follows the end of a launch, because its row is given up
    0,
    0,
};

inline const char *name_of(State state) { return STATE_NAMES[int(state)]; }

// Raises if `to` may not follow. The message is made in another function, to keep the frequent case short.
[[noreturn]] void refuse_step(std::int64_t number, State from, State to);
inline void check_step(std::int64_t number, State from, State to) {
    if (!(FOLLOWING[int(from)] & bit(to))) refuse_step(number, from, to);
}

}  // namespace acs_cl
