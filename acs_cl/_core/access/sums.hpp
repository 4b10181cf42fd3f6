// Numbers of a kernel as sums: a constant and multiples of variables, each of which has a range.
//
// A type of 64 bits times a pitch needs more than 64 bits. So these are `Wide`. A value that would need
// more than `WIDEST` is given up (`TooWide`): then the reach of the body is unknown.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <utility>
#include <vector>

#include "hazards/bits.hpp"

namespace acs_cl::access {

struct TooWide {};

constexpr Wide WIDEST = Wide(1) << 120;
constexpr Wide NOWHERE = Wide(1) << 124;  // of a fact that is no bound

inline Wide checked(Wide value) {
    if (value > WIDEST || value < -WIDEST) throw TooWide();
    return value;
}

inline bool is_short(Wide value) {
    return value >= std::numeric_limits<std::int64_t>::min() &&
           value <= std::numeric_limits<std::int64_t>::max();
}

inline Wide size_of(Wide value) { return value < 0 ? -value : value; }

inline Wide plus(Wide a, Wide b) { return checked(a + b); }

inline Wide times(Wide a, Wide b) {
    if (!is_short(a) || !is_short(b)) {
        if (a == 0 || b == 0) return 0;
        if (size_of(a) > WIDEST / size_of(b)) throw TooWide();
    }
    return checked(a * b);
}

// Divides towards minus infinity. `by` is above zero.
inline Wide floored(Wide value, Wide by) {
    if (is_short(value) && is_short(by)) {
        const std::int64_t low = std::int64_t(value), under = std::int64_t(by);
        return low / under - (low % under < 0);
    }
    return value / by - (value % by < 0 ? 1 : 0);
}

// Returns the rest, from 0 to `by` - 1.
inline Wide rest_of(Wide value, Wide by) { return value - floored(value, by) * by; }

inline Wide common_divisor(Wide a, Wide b) {
    a = size_of(a), b = size_of(b);
    while (b != 0) a = std::exchange(b, a % b);
    return a;
}

struct Term {
    std::int32_t variable;
    Wide factor;

    bool operator==(const Term &other) const {
        return variable == other.variable && factor == other.factor;
    }
};

using Terms = std::vector<Term>;  // by variable, no factor is zero

struct Sum {
    Wide constant = 0;
    Terms terms;

    bool is_constant() const { return terms.empty(); }
    bool operator==(const Sum &other) const {
        return constant == other.constant && terms == other.terms;
    }
};

// Returns `a` plus `sign` times `b`.
inline Sum added(const Sum &a, const Sum &b, int sign = 1) {
    Sum made{plus(a.constant, sign * b.constant), {}};
    if (b.terms.empty()) return made.terms = a.terms, made;
    made.terms.reserve(a.terms.size() + b.terms.size());
    auto one = a.terms.begin(), other = b.terms.begin();
    while (one != a.terms.end() || other != b.terms.end()) {
        if (other == b.terms.end() || (one != a.terms.end() && one->variable < other->variable)) {
            made.terms.push_back(*one++);
        } else if (one == a.terms.end() || other->variable < one->variable) {
            made.terms.push_back({other->variable, sign * other->factor});
            other++;
        } else {
            const Wide factor = plus(one->factor, sign * other->factor);
            if (factor != 0) made.terms.push_back({one->variable, factor});
            one++, other++;
        }
    }
    return made;
}

inline Sum scaled(const Sum &a, Wide by) {
    if (by == 0) return {};
    Sum made{times(a.constant, by), a.terms};
    for (Term &term : made.terms) term.factor = times(term.factor, by);
    return made;
}

struct Interval {
    Wide low = 0, high = -1;

    bool is_known() const { return low <= high; }
    bool operator==(const Interval &other) const { return low == other.low && high == other.high; }
    bool holds(const Interval &other) const { return low <= other.low && other.high <= high; }
};

inline Interval hull(const Interval &a, const Interval &b) {
    return {std::min(a.low, b.low), std::max(a.high, b.high)};
}

inline Interval hull_of(std::initializer_list<Wide> values) {
    return {std::min(values), std::max(values)};
}

// Returns the values of a type: a number of bits, negative if unsigned.
inline Interval limits_of(int type) {
    if (type < 0) return {0, (Wide(1) << -type) - 1};
    return {-(Wide(1) << (type - 1)), (Wide(1) << (type - 1)) - 1};
}

// A value of a variable of the kernel.
struct Value {
    enum Kind : std::uint8_t { MISSING, NOTHING, NUMBER, POINTER };

    Kind kind = NOTHING;
    int parameter = 0;  // that a pointer points into; the sum counts its bytes
    Sum sum;

    static Value number(Sum sum) { return {NUMBER, 0, std::move(sum)}; }
    static Value pointer(int parameter, Sum bytes) { return {POINTER, parameter, std::move(bytes)}; }
    bool operator==(const Value &other) const {
        if (kind < NUMBER) return other.kind < NUMBER;
        return kind == other.kind && parameter == other.parameter && sum == other.sum;
    }
};

// What is known at one place of a body: its variables, ranges of the variables of sums, and of whole sums.
class State {
    struct Fact {
        Terms terms;
        Interval range;
    };

public:
    std::vector<Value> slots;
    std::vector<Interval> ranges;

    void limit(std::int32_t variable, Interval range) {
        if (std::size_t(variable) >= ranges.size()) ranges.resize(std::size_t(variable) + 1);
        ranges[std::size_t(variable)] = range;
    }
    const Interval &range(std::int32_t variable) const {
        if (std::size_t(variable) >= ranges.size()) throw TooWide();
        const Interval &found = ranges[std::size_t(variable)];
        if (!found.is_known()) throw TooWide();
        return found;
    }
    // Returns the range of a term.
    Interval range(const Term &term) const {
        const Interval &one = range(term.variable);
        return hull_of({times(term.factor, one.low), times(term.factor, one.high)});
    }

    // A part of a sum: so many times a sum of variables, of which more may be known than the ranges of these.
    struct Group {
        Wide factor;
        Interval range;
        bool is_dense;  // whether the inner sum has all values of its range
    };

    // Returns the parts of a sum: what facts are known of, the longest first, and single variables.
    std::vector<Group> groups(const Terms &terms, bool only_dense = false) const {
        std::vector<Group> made;
        std::vector<bool> is_used(terms.size());
        std::vector<const Fact *> known;
        for (const Fact &fact : facts_)
            if (fact.terms.size() <= terms.size()) known.push_back(&fact);
        std::stable_sort(known.begin(), known.end(),
                         [](const Fact *a, const Fact *b) { return a->terms.size() > b->terms.size(); });
        for (const Fact *fact : known) {
            const auto [places, factor] = within(fact->terms, terms, is_used);
            if (factor == 0) continue;
            const bool is_all = is_dense(fact->terms);
            if (only_dense && !is_all) continue;
            const Interval own = without_facts(fact->terms);
            made.push_back({factor, {std::max(own.low, fact->range.low), std::min(own.high, fact->range.high)}, is_all});
            for (const std::size_t at : places) is_used[at] = true;
        }
        for (std::size_t at = 0; at < terms.size(); at++)
            if (!is_used[at]) made.push_back({terms[at].factor, range(terms[at].variable), true});
        return made;
    }

    bool has_facts() const { return !facts_.empty(); }

    // Returns the range of a sum.
    Interval interval(const Sum &value) const {
        Interval found = without_facts(value.terms);
        if (value.terms.size() > 2 && !facts_.empty()) {
            Interval inner{0, 0};
            for (const Group &one : groups(value.terms)) {
                const Interval part = hull_of({times(one.factor, one.range.low), times(one.factor, one.range.high)});
                inner = {plus(inner.low, part.low), plus(inner.high, part.high)};
            }
            found = {std::max(found.low, inner.low), std::min(found.high, inner.high)};
        }
        if (value.terms.size() > 1 && !facts_.empty()) {
            const auto [key, factor] = canonical(value.terms);
            if (const Fact *fact = find(key)) {
                const bool is_up = factor > 0;
                const Wide low = is_up ? fact->range.low : fact->range.high;
                const Wide high = is_up ? fact->range.high : fact->range.low;
                if (size_of(low) < NOWHERE) found.low = std::max(found.low, times(low, factor));
                if (size_of(high) < NOWHERE) found.high = std::min(found.high, times(high, factor));
            }
        }
        return {plus(value.constant, found.low), plus(value.constant, found.high)};
    }

    // Learns that a sum is at most `limit`. Returns false if it cannot be.
    bool at_most(const Sum &value, Wide limit) {
        const Interval all = interval(value);
        if (all.low > limit) return false;
        if (all.high <= limit) return true;
        limit = plus(limit, -value.constant);
        const Wide low = without_facts(value.terms).low;
        for (const Term &term : value.terms) {
            Interval one = range(term.variable);
            const Wide room = limit - (low - range(term).low);
            if (term.factor > 0) one.high = std::min(one.high, floored(room, term.factor));
            else one.low = std::max(one.low, -floored(room, -term.factor));
            if (!one.is_known()) return false;
            this->limit(term.variable, one);
        }
        if (value.terms.size() > 1) keep(value.terms, limit);
        return true;
    }

    // Learns that a sum is not zero. Returns false if it must be.
    bool differs(const Sum &value) {
        if (value.terms.empty()) return value.constant != 0;
        if (value.terms.size() > 1 || value.constant % value.terms[0].factor != 0) return true;
        const Wide root = -value.constant / value.terms[0].factor;
        Interval one = range(value.terms[0].variable);
        if (root == one.low) one.low += 1;
        if (root == one.high) one.high -= 1;
        if (!one.is_known()) return false;
        limit(value.terms[0].variable, one);
        return true;
    }

    // Returns the ranges and facts that hold in this state or in another one, without slots.
    State either(const State &other) const {
        State made;
        made.ranges = ranges;
        made.ranges.resize(std::max(ranges.size(), other.ranges.size()));
        for (std::size_t at = 0; at < other.ranges.size(); at++) {
            Interval &one = made.ranges[at];
            if (!one.is_known()) one = other.ranges[at];
            else if (other.ranges[at].is_known()) one = hull(one, other.ranges[at]);
        }
        for (const Fact &fact : facts_)
            if (const Fact *same = other.find(fact.terms))
                made.facts_.push_back({fact.terms, hull(fact.range, same->range)});
        return made;
    }

private:
    Interval without_facts(const Terms &terms) const {
        Interval found{0, 0};
        for (const Term &term : terms) {
            const Interval one = range(term);
            found = {plus(found.low, one.low), plus(found.high, one.high)};
        }
        return found;
    }

    // Returns where the terms of a fact are among others, and how many times they are there. 0: they are not.
    static std::pair<std::vector<std::size_t>, Wide> within(const Terms &fact, const Terms &terms,
                                                           const std::vector<bool> &is_used) {
        std::vector<std::size_t> places;
        Wide factor = 0;
        std::size_t at = 0;
        for (const Term &one : fact) {
            while (at < terms.size() && terms[at].variable < one.variable) at++;
            if (at == terms.size() || terms[at].variable != one.variable || is_used[at]) return {{}, 0};
            if (terms[at].factor % one.factor != 0) return {{}, 0};
            const Wide own = terms[at].factor / one.factor;
            if (factor != 0 && own != factor) return {{}, 0};
            factor = own;
            places.push_back(at);
        }
        return {std::move(places), factor};
    }

    // Whether a sum has all values from its lowest to its highest one.
    bool is_dense(const Terms &terms) const {
        std::vector<std::pair<Wide, Wide>> steps;
        for (const Term &term : terms) {
            const Interval &one = range(term.variable);
            steps.emplace_back(size_of(term.factor), one.high - one.low);
        }
        std::sort(steps.begin(), steps.end());
        Wide width = 1;
        for (const auto &[step, more] : steps) {
            if (step > width) return false;
            width = plus(width, times(step, more));
        }
        return true;
    }

    // Returns the terms divided by their common factor, with the first factor above zero.
    static std::pair<Terms, Wide> canonical(const Terms &terms) {
        Wide common = 0;
        for (const Term &term : terms) common = common_divisor(common, term.factor);
        if (terms[0].factor < 0) common = -common;
        Terms made = terms;
        for (Term &term : made) term.factor = term.factor / common;
        return {std::move(made), common};
    }

    const Fact *find(const Terms &key) const {
        for (const Fact &fact : facts_)
            if (fact.terms == key) return &fact;
        return nullptr;
    }

    void keep(const Terms &terms, Wide limit) {
        auto [key, factor] = canonical(terms);
        const Wide bound = floored(limit, size_of(factor));
        Fact *fact = const_cast<Fact *>(find(key));
        if (!fact) fact = &facts_.emplace_back(Fact{std::move(key), {-NOWHERE, NOWHERE}});
        if (factor > 0) fact->range.high = std::min(fact->range.high, bound);
        else fact->range.low = std::max(fact->range.low, -bound);
    }

    std::vector<Fact> facts_;
};

}  // namespace acs_cl::access
