// Arithmetic of a body that is run for all work-items at once. An integer is a sum of a constant and multiples of
// variables, each of which has a range. A value that is no such sum gets a variable of its own, with the range that
// it must be in.
//
// Invariant: the values that an operation can have are among those of the sum that it returns. What may leave its
// type gives any value of the type.

#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "access/sums.hpp"

namespace acs_cl::access {

using Maybe = std::optional<State>;  // none: no work-item comes here

// What runs a body is made of this.
class Arithmetic {
protected:
    static Wide shifted(Wide by) { return Wide(1) << int(by); }

    Sum fresh(Interval range) {
        auto [low, high] = range;
        if (low == high) return {low, {}};
        if (low > high) std::swap(low, high);  // no work-item comes here
        const std::int32_t variable = variables_++;
        if (state_) state_->limit(variable, {low, high});
        return {0, {{variable, 1}}};
    }
    Sum fresh(Wide low, Wide high) { return fresh({low, high}); }
    Sum any_of(int type) { return fresh(limits_of(type)); }
    Interval interval(const Sum &value) const { return state_->interval(value); }

    // Returns the value if it is surely one of its type, else any.
    Sum fitting(int type, Sum value) {
        const Interval limits = limits_of(type);
        if (is_wide_ || limits.holds(interval(value))) return value;
        if (value.is_constant() && type < 0) return {rest_of(value.constant, limits.high + 1), {}};
        return any_of(type);
    }
    Sum between(int type, Interval range) {
        return limits_of(type).holds(range) ? fresh(range) : any_of(type);
    }

    Sum cast(int type, Sum a) {
        const Interval range = interval(a), limits = limits_of(type);
        if (type == -1) {
            if (range.low > 0 || range.high < 0) return {1, {}};
            const Wide farthest = std::max(size_of(range.low), size_of(range.high));
            return fresh(0, std::min<Wide>(1, farthest));
        }
        if (is_wide_ || limits.holds(range)) return a;
        if (!a.is_constant()) return any_of(type);
        return {rest_of(a.constant - limits.low, limits.high - limits.low + 1) + limits.low, {}};
    }

    Sum arithmetic(const std::string &sign, int type, const Sum &a, const Sum &b) {
        if (sign == "+") return fitting(type, added(a, b));
        if (sign == "-") return fitting(type, added(a, b, -1));
        if (sign == "*") return product(type, a, b);
        if (sign == "/") return divide(type, a, b);
        if (sign == "%") return remainder(type, a, b);
        if (sign == "<<") return left(type, a, b);
        if (sign == ">>") return right(type, a, b);
        if (sign == "&") return both_bits(type, a, b);
        return any_bits(type, a, b);
    }

    Sum product(int type, const Sum &a, const Sum &b) {
        try {
            if (b.is_constant()) return fitting(type, scaled(a, b.constant));
            if (a.is_constant()) return fitting(type, scaled(b, a.constant));
            return between(type, corners(interval(a), interval(b), times));
        } catch (const TooWide &) {  // far beyond its type
            return any_of(type);
        }
    }

    Sum extreme(bool is_max, int type, const Sum &a, const Sum &b) {
        const Interval distance = interval(added(a, b, -1));
        if (distance.low >= 0) return is_max ? a : b;
        if (distance.high <= 0) return is_max ? b : a;
        const Interval one = interval(a), two = interval(b);
        if (is_max) return between(type, {std::max(one.low, two.low), std::max(one.high, two.high)});
        return between(type, {std::min(one.low, two.low), std::min(one.high, two.high)});
    }

    Maybe state_;                 // what is known at the present place
    std::int32_t variables_ = 0;  // that there are
    bool is_wide_ = false;        // whether arithmetic is taken to stay in its type, for a guess

private:
    template <typename Of>
    static Interval corners(const Interval &a, const Interval &b, Of of) {
        return hull_of({of(a.low, b.low), of(a.low, b.high), of(a.high, b.low), of(a.high, b.high)});
    }

    struct Split {
        Sum outer, rest;
    };

    // Splits `a` into `by` times the first plus the second, which is from 0 to `by` - 1. `a` is not below zero.
    std::optional<Split> split(const Sum &a, Wide by) const {
        Split made{{floored(a.constant, by), {}}, {rest_of(a.constant, by), {}}};
        for (const Term &term : a.terms) {
            if (term.factor % by == 0) made.outer.terms.push_back({term.variable, term.factor / by});
            else made.rest.terms.push_back(term);
        }
        const Interval rest = interval(made.rest);
        if (rest.low < 0 || rest.high >= by) return std::nullopt;
        return made;
    }

    Sum divide(int type, const Sum &a, const Sum &b) {
        const Interval over = interval(a);
        Interval under = interval(b);
        if (under.low <= 0 && 0 <= under.high) {
            if (under.high <= 0 || under.low < 0) return any_of(type);
            under.low = 1;  // dividing by zero has no meaning
        }
        if (under.low == under.high && under.low > 0 && over.low >= 0)
            if (auto parts = split(a, under.low)) return std::move(parts->outer);
        return between(type, corners(over, under, [](Wide x, Wide y) -> Wide { return x / y; }));
    }

    Sum remainder(int type, const Sum &a, const Sum &b) {
        const Interval over = interval(a), under = interval(b);
        if (under.high <= 0 || under.low < 0) return any_of(type);
        if (over.low >= 0 && over.high < under.low) return a;
        if (under.low == under.high && over.low >= 0)
            if (auto parts = split(a, under.low)) return std::move(parts->rest);
        const Wide least = over.low < 0 ? std::max(over.low, 1 - under.high) : Wide(0);
        return between(type, {least, std::max<Wide>(0, std::min(over.high, under.high - 1))});
    }

    static bool is_shift(int type, const Sum &by) {
        return by.is_constant() && by.constant >= 0 && by.constant < (type < 0 ? -type : type);
    }

    Sum left(int type, const Sum &a, const Sum &b) {
        if (!is_shift(type, b)) return any_of(type);
        return product(type, a, {shifted(b.constant), {}});
    }

    Sum right(int type, const Sum &a, const Sum &b) {
        const Interval range = interval(a);
        if (!is_shift(type, b)) return range.low >= 0 ? between(type, {0, range.high}) : any_of(type);
        const Wide by = shifted(b.constant);
        if (range.low >= 0)
            if (auto parts = split(a, by)) return std::move(parts->outer);
        return between(type, {floored(range.low, by), floored(range.high, by)});
    }

    Sum both_bits(int type, const Sum &a, const Sum &b) {
        const Interval one = interval(a), two = interval(b);
        const bool is_mask = b.is_constant() && b.constant >= 0 && is_power(b.constant + 1);
        if (one.low >= 0 && is_mask) return remainder(type, a, {b.constant + 1, {}});
        if (one.low < 0 && two.low < 0) return any_of(type);
        const Wide first = one.low >= 0 ? one.high : two.high;
        const Wide second = two.low >= 0 ? two.high : one.high;
        return between(type, {0, std::min(first, second)});
    }

    static bool is_power(Wide value) {
        while (value > 1 && value % 2 == 0) value = value / 2;
        return value == 1;
    }

    Sum any_bits(int type, const Sum &a, const Sum &b) {
        const Interval one = interval(a), two = interval(b);
        if (one.low < 0 || two.low < 0) return any_of(type);
        Wide above = 1;
        while (above <= std::max(one.high, two.high)) above = above * 2;
        return between(type, {0, above - 1});
    }
};

}  // namespace acs_cl::access
