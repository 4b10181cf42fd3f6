// Outlines of kernels: the part of a body that decides where it touches its arguments. opencl_c/modes/outline.py
// makes them, as lists. Here they are operations that are run for the sizes and numbers of a launch.

#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "access/rectangles.hpp"

namespace acs_cl::access {

namespace nb = nanobind;

enum class Rule : std::uint8_t {
    CONSTANT, SLOT, UNKNOWN, ARGUMENT, CAST, BINARY, NEGATIVE, COMPLEMENT, COMPARE, NOT, AND, OR, CHOICE,
    EXTREME, CLAMP, PRODUCT24, QUERY, SEQUENCE, PARAMETER, MOVED, INSIDE, TOUCH, TOUCH_SEVERAL, ESCAPE, ASSIGN,
    NEW, POST, TURNS, IF, LOOP, AGAIN, SWITCH, CASE, MAYBE, RETURN, LEAVE, CALL,
};

enum class Query : std::uint8_t {
    GLOBAL_ID, LOCAL_ID, GROUP_ID, GLOBAL_SIZE, LOCAL_SIZE, ENQUEUED_SIZE, GROUPS, OFFSET, AXES, OTHER,
};

// Variables that a loop, a switch or an expression may assign, each with its type. 0: a pointer.
struct Assigned {
    std::size_t slot;
    int type;
};

// A counter of a loop: a variable that each turn changes once, in the same way, by a number that is a part of the
// operation. `way`: '+' for that number times `factor`; '*' and '/' for a number that it is multiplied with, or divided
// by. `in_step`: whether that comes behind the body.
struct Counter {
    std::size_t slot;
    int type;  // 0: a pointer
    char way;
    Wide factor;
    bool in_step;
};

struct Operation {
    Rule rule = Rule::SEQUENCE;
    std::string text;        // a sign, flags, or a reason
    Query query{};
    int type = 0;            // bits, negative if unsigned
    std::size_t place = 0;   // a slot, a parameter or a function
    Wide number = 0;         // a constant, or bytes
    std::vector<Operation> parts;
    std::vector<Assigned> assigned;
    std::vector<Counter> counters;
    int loop = -1;           // the number of a loop that only its condition ends
    bool counts_turns = false;  // a loop whose counters depend on the turns of loops in it
    bool is_first = false;   // a loop whose first turn asks for no condition
    bool is_met = false;     // work-items of a group wait for each other in what its condition decides
};

struct OutlinedFunction {
    std::vector<std::optional<std::size_t>> parameters;
    std::vector<Operation> body;
    std::vector<std::size_t> own;
};

// Returns the place of a number among those of a launch: of a parameter, or at an offset in one that is a structure or a
// vector.
constexpr std::size_t place_of(std::size_t parameter, std::size_t offset) { return parameter | offset << 16; }

// Properties of a launch that an outline may ask for.
struct Launched {
    using Three = std::array<Wide, 3>;

    std::size_t axes = 0;
    Three sizes{}, offset{};
    std::optional<Three> local;  // none: the driver chooses it
    std::optional<std::array<std::pair<Wide, Wide>, 3>> groups;  // groups that run; none: all
    std::map<std::size_t, Wide> numbers;  // by place (`place_of`); a missing one may be any

    auto all() const { return std::tie(axes, sizes, offset, local, groups, numbers); }
    bool operator<(const Launched &other) const { return all() < other.all(); }
};

// The outermost accesses that a launch surely makes: where the last and the first one begin, and where that ends.
struct Sure {
    Wide last = -NOWHERE, first = NOWHERE, first_end = NOWHERE;

    // Returns where an access begins that has no byte of `whole`, or begins in a gap between its rows. `offset`: where the
    // argument, from whose first byte that is counted, begins in `whole`.
    std::optional<Wide> outside(const Span &whole, Wide offset = 0) const {
        const Wide nbytes = whole.end() - whole.start;
        if (last + offset >= nbytes) return last;
        if (first_end + offset <= 0) return first;
        if (whole.rows > 1)
            for (const Wide at : {last, first})
                if (at + offset >= 0 && at + offset < nbytes && (at + offset) % whole.pitch >= whole.width) return at;
        return std::nullopt;
    }
};

// What a launch may do to one argument. `is_whole`: all of it, for the reason given.
struct Reached {
    bool is_whole = false;
    std::string why;
    Rectangles reads, writes, overwritten;  // the last are told by a program only
    Sure surely_read{}, surely_written{};
};

inline const Reached WHOLE{true, "the body is too long to run", {}, {}, {}};

using Outcome = std::map<std::size_t, Reached>;  // by parameter; a missing one is not touched

class Outline {
public:
    // `functions`: as in `outlines.py`. Throws `std::invalid_argument`.
    explicit Outline(nb::handle functions);

    // Returns what a launch may touch of each argument. None: that cannot be found in a bearable time.
    std::optional<Outcome> run(const Launched &launch);

    std::int64_t runs() const { return runs_; }

    const OutlinedFunction &function(std::size_t at) const { return functions_[at]; }
    std::size_t slots() const { return slots_; }
    std::size_t loops() const { return loops_; }

private:
    friend class OutlineReader;

    std::vector<OutlinedFunction> functions_;
    std::size_t slots_ = 0, loops_ = 0;
    std::int64_t runs_ = 0;
};

// Returns a number of 64 bits, signed or unsigned. None: it has more.
std::optional<Wide> wide_of(nb::handle object);
// Does the same, and throws if it has more.
Wide whole(nb::handle given);

}  // namespace acs_cl::access
