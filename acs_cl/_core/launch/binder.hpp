// The binder of a kernel: what its parameters are, and which bytes its launches reach by them.
//
// Launches of the core's own keep that for their arrays (launch/reach.hpp). Whoever has to see a launch in
// Python gets it as a record (acs_cl/access/binder.py). Either way a body is run once for the same sizes and
// numbers.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "access/outline.hpp"
#include "launch/arguments.hpp"
#include "launch/sizes.hpp"

namespace acs_cl {

// What an outline may ask for of a launch with these sizes.
inline access::Launched launched_of(const Sizes &sizes) {
    access::Launched launch;
    launch.axes = sizes[0];
    for (std::size_t axis = 0; axis < 3; axis++)
        launch.sizes[axis] = Wide(axis < sizes[0] ? sizes[axis + 1] : 1);
    if (sizes[4]) launch.local = access::Launched::Three{1, 1, 1};
    for (std::size_t axis = 0; axis < sizes[4]; axis++) (*launch.local)[axis] = Wide(sizes[axis + 5]);
    return launch;
}

class Binder {
public:
    using Views = std::vector<Span>;  // of all arguments in memory

    // What launches of the same sizes and numbers reach.
    struct Known {
        access::Outcome reached;
        std::map<Views, nb::object> accesses;  // what some of them touch; null where nobody has asked

        nb::object &access(Views &&views) {
            constexpr std::size_t MOST = 4096;
            if (accesses.size() >= MOST) accesses.clear();
            return accesses[std::move(views)];
        }
    };

    // `given`: code, mode and bytes of each parameter. `functions`: of the outline, None where launches touch
    // all of their views. `needed`: the parameters whose numbers matter there; `group`: what the kernel asks
    // for; `more`: what it writes besides, `everything`: in place of all that.
    Binder(nb::handle given, nb::handle functions, std::vector<std::uint16_t> needed, nb::handle group,
           nb::tuple more, bool everything);

    const access::Reached &reached_of(const access::Outcome &outcome, std::size_t parameter) const {
        static const access::Reached untouched;
        const auto found = outcome.find(parameter);
        return found == outcome.end() ? untouched : found->second;
    }

    // Null where these are new, and too many others were run, but not `always`. It stands until the next call.
    Known *reach(const access::Launched &launch, bool always = false);

    // What a part of a launch reaches, which is not kept; nothing where too many others were run.
    std::optional<access::Outcome> reach_part(const access::Launched &part) {
        return most >= 0 && runs() >= most ? std::nullopt : std::optional(run(part));
    }

    // Arguments as the driver takes them, and what they touch: a `Bound`, or None where one is not plain.
    // `are_usual`: none is as the program gave it; see `usual` in acs_cl/kernel.py.
    nb::object bind(nb::handle home, nb::handle global, nb::handle local, nb::handle offset, nb::handle args,
                    bool are_usual, bool narrows);
    // What any box of groups touches of these views, or all of them where no groups are named.
    nb::object touched(nb::handle views, nb::handle numbers, nb::handle global, nb::handle local,
                       nb::handle offset, nb::handle groups);
    nb::dict reached(nb::handle global, nb::handle local, nb::handle offset, nb::handle numbers,
                     nb::handle groups);
    // What launches that have this access were made of.
    nb::list outcomes(nb::handle access);

    std::int64_t runs() const { return outline ? outline->runs() : 0; }

    const std::vector<Parameter> parameters;
    std::vector<std::uint16_t> numbers;
    bool has_ranges = false;
    std::int64_t most = -1;  // runs, after which launches touch all of their views; below 0: any number

private:
    access::Outcome run(access::Launched launch);
    nb::object narrowed(const access::Launched &launch, const Views &views);
    nb::object access_of(const access::Outcome &outcome, const Views &views) const;
    nb::object whole_of(const std::vector<nb::object> &spans) const;
    access::Launched launched(nb::handle global, nb::handle local, nb::handle offset, nb::handle numbers,
                              nb::handle groups) const;
    std::optional<Views> views_of(nb::handle access) const;

    std::optional<access::Outline> outline;  // none, too, where it is nested too deeply
    std::optional<access::Launched::Three> group;
    nb::tuple more;
    bool is_everything;
    std::map<access::Launched, Known> known;
};

void add_binder(nb::module_ &module);

}  // namespace acs_cl
