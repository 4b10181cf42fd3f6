// The binder of a kernel: its parameters, and the bytes that its launches reach through them.
//
// For launches of the core, launch/reach.hpp applies that to their arrays. Python gets a record
// (acs_cl/access/binder.py). In both cases an outline runs once for the same sizes and numbers.

#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "access/outline.hpp"
#include "launch/arguments.hpp"
#include "launch/sizes.hpp"

namespace acs_cl {

// Returns what an outline may ask about a launch with these sizes.
inline access::Launched launched_of(const Sizes &sizes) {
    access::Launched launch;
    launch.axes = sizes[0];
    for (std::size_t axis = 0; axis < 3; axis++)
        launch.sizes[axis] = Wide(axis < sizes[0] ? sizes[axis + 1] : 1);
    for (std::size_t axis = 0; axis < sizes[8]; axis++) launch.offset[axis] = Wide(sizes[axis + 9]);
    if (sizes[4]) launch.local = access::Launched::Three{1, 1, 1};
    for (std::size_t axis = 0; axis < sizes[4]; axis++) (*launch.local)[axis] = Wide(sizes[axis + 5]);
    return launch;
}

class Binder {
public:
    using Views = std::vector<Span>;  // of all arguments in memory

    // An argument in memory: its spans, whether they have no byte besides its own, and the bytes that ranges are of.
    struct Memory {
        nb::object spans;
        bool is_exact = false;
        Span span{};
    };
    using Memories = std::vector<Memory>;  // by parameter; without spans it is no memory

    // What a launch touches of its views, and what surely leaves them (`outside_of`). Null: nobody has asked.
    struct Narrowed {
        nb::object access, outside;
    };

    // What launches of the same sizes and numbers reach.
    struct Known {
        access::Outcome reached;
        std::map<Views, Narrowed> accesses;  // of some of them
    };

    // A number that what launches reach depends on: a parameter's own, or one at an offset in a structure, a vector, or
    // the sizes of an image.
    // 'P' as its code: the length of an argument in memory.
    struct Needed {
        std::uint16_t parameter, offset;
        char code;

        std::size_t place() const { return access::place_of(parameter, offset); }
    };

    // `given`: code, mode, size and alignment of each parameter; a mode with 'o' says that all of it is overwritten. `functions`:
    // those of the outline; None: launches touch all of their views. `needed`: the numbers that matter to the outline, or
    // to ranges that the program declares, each as a parameter, an offset and a code; parameters that have such ranges are
    // among them, and their lengths matter.
    // `group`: the group size that the kernel asks for. `more`: spans that it reads and writes besides its arguments.
    Binder(nb::handle given, nb::handle functions, nb::handle needed, nb::handle group,
           nb::tuple more);

    // Returns what launches reach of an argument. An outline tells nothing of memory that is no pointer.
    const access::Reached &reached_of(const access::Outcome &outcome, std::size_t parameter) const {
        static const access::Reached untouched;
        if (parameters[parameter].code != 'P') return access::WHOLE;
        const auto found = outcome.find(parameter);
        return found == outcome.end() ? untouched : found->second;
    }

    // Whether the program declares ranges of the parameter.
    bool is_told_of(std::size_t parameter) const {
        return is_told && is_needed(parameter);
    }

    // Whether a number of the parameter, or its length, matters.
    bool is_needed(std::size_t parameter) const {
        return std::any_of(numbers.begin(), numbers.end(), [&](const Needed &one) { return one.parameter == parameter; });
    }

    // Runs the outline, unless the result is known. Null: too many others were run, or the program has declared ranges,
    // which `bind` has evaluated. `always`: in the first case, too. Valid until the next call.
    Known *reach(const access::Launched &launch, bool always = false);

    // Returns what is kept for launches with these views. If too much is kept for all launches together, all that is
    // forgotten first: a program that makes its arrays anew, in ever other sizes, asks for none of it again.
    Narrowed &access(Known &of, const Views &views);

    // Returns what a part of a launch reaches, and does not keep it. None: too many others were run.
    std::optional<access::Outcome> reach_part(const access::Launched &part) {
        return most >= 0 && runs() >= most ? std::nullopt : std::optional(run(part));
    }

    // Returns a `Bound`: arguments for the driver, and what they touch. None: one is not plain. `are_usual`: all were
    // prepared by `usual` in acs_cl/kernel.py. `ranges`: evaluates those that the program declares.
    nb::object bind(nb::handle home, nb::handle global, nb::handle local, nb::handle offset, nb::handle args,
                    bool are_usual, bool narrows, nb::handle ranges);
    // Returns what a box of groups touches of these arguments. No groups: all of them.
    nb::object touched(nb::handle spans, nb::handle numbers, nb::handle global, nb::handle local,
                       nb::handle offset, nb::handle groups);
    nb::dict reached(nb::handle global, nb::handle local, nb::handle offset, nb::handle numbers,
                     nb::handle groups);
    // Returns the sizes, numbers and views of launches that have this access.
    nb::list outcomes(nb::handle access);

    std::int64_t runs() const { return outline ? outline->runs() : 0; }

    const std::vector<Parameter> parameters;
    std::vector<Needed> numbers;
    bool has_ranges = false, is_told = false;  // `is_told`: the program declares some
    std::int64_t most = -1;  // runs of the outline, after which launches touch all of their views; below 0: no limit
    std::optional<access::Launched::Three> group;  // the local size that the kernel requires

private:
    access::Outcome run(access::Launched launch);
    access::Outcome evaluated(const access::Launched &launch, nb::handle ranges);
    Known &keep(const access::Launched &launch, access::Outcome outcome);
    Narrowed narrowed(const access::Launched &launch, const Views &views);
    nb::object outside_of(const access::Outcome &outcome, const Views &given) const;
    nb::object access_of(const access::Outcome *outcome, const Memories &memories) const;
    Memories memories_of(const Views &views) const;
    access::Launched launched(nb::handle global, nb::handle local, nb::handle offset, nb::handle numbers,
                              nb::handle groups) const;
    std::optional<Views> views_of(nb::handle access) const;

    std::optional<access::Outline> outline;  // none, too, if it is nested too deeply
    nb::tuple more;
    std::map<access::Launched, Known> known;
    std::size_t many_accesses = 0;  // of all of them
};

void add_binder(nb::module_ &module);

}  // namespace acs_cl
