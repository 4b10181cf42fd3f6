// What may become of a launch: a closed list of states, and which of them may follow which.
// docs/design/launch-table.md draws it; emu/reference/table.py is the model.

#pragma once

#include <cstdint>

namespace acs_cl {

enum class State : std::uint8_t {
    NONE,       // no launch in flight has this number
    HELD,       // outside of a full window
    PENDING,    // inside, and something that it has to wait for on the host has not come
    READY,      // nothing holds it: whoever dispatches launches has it, or takes it next
    EXECUTING,  // a lane, an epoch or a thread of the host has it
    ENDED,
    FAILED,     // it ended badly, or was reached by the failure of another one
    NEVER_RAN,  // poisoned or refused; its upstream stands in for it until that has ended
};

constexpr int STATES = 8;
constexpr const char *STATE_NAMES[STATES] = {"none",      "held",  "pending", "ready",
                                             "executing", "ended", "failed",  "never ran"};

constexpr std::uint8_t bit(State state) { return std::uint8_t(1u << int(state)); }

// Which states may follow each.
constexpr std::uint8_t FOLLOWING[STATES] = {
    std::uint8_t(bit(State::HELD) | bit(State::PENDING) | bit(State::READY)),
    std::uint8_t(bit(State::PENDING) | bit(State::READY)),
    bit(State::READY),
    std::uint8_t(bit(State::EXECUTING) | bit(State::NEVER_RAN)),
    std::uint8_t(bit(State::ENDED) | bit(State::FAILED)),
    0,  // of a launch that is over nothing follows: its row is given up
    0,
    0,
};

inline const char *name_of(State state) { return STATE_NAMES[int(state)]; }

// Raises where `to` may not follow. What it says is made apart, since steps are many.
[[noreturn]] void refuse_step(std::int64_t number, State from, State to);
inline void check_step(std::int64_t number, State from, State to) {
    if (!(FOLLOWING[int(from)] & bit(to))) refuse_step(number, from, to);
}

}  // namespace acs_cl
