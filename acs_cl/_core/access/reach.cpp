// Reach: which bytes of each argument a launch may touch. An outline is run for its sizes and numbers,
// for all work-items at once.
//
// An integer is a sum of a constant and multiples of variables, each of which has a range: work-item
// numbers, turns of loops, and unknown values (`Arithmetic`). A condition narrows ranges where it holds.
//
// Invariants: the values that a work-item can have are among those that the sum has for some values of
// its variables in their ranges. Arithmetic that may leave its type gives any value of the type. A
// variable that a loop changes may be anything when a turn begins, unless it is a counter that is proven
// not to leave its type. So no access is missed, and the rectangles are exact if the sums are.
//
// Where work-items of a group wait for each other, a driver may let all of them go where the first one goes. So a
// condition on which they may differ narrows nothing if it decides whether they come to a barrier.
//
// Some accesses are known to happen, too (`Sure`): every work-item comes to them, and their places are sums of
// work-item numbers alone, each of which has all values of its range.

// Long because: conditions, statements and loops of one interpreter.

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "access/arithmetic.hpp"
#include "access/outline.hpp"
#include "hazards/single.hpp"

namespace acs_cl::access {

namespace {

constexpr int MOST_STEPS = 20000;  // operations that are run for one launch before it is given up
constexpr int DEEPEST = 250;       // operations within one another
constexpr Wide MOST_TURNS = Wide(1) << 40;  // of a loop that is followed

struct TooMuch {};  // it takes too long to run

using Operations = std::vector<Operation>;

class Run : Arithmetic {
public:
    Run(const Outline &outline, const Launched &launch) : outline_(outline), launch_(launch) {
        state_.emplace().slots.assign(outline.slots(), Value{Value::MISSING, 0, {}});
        depths_.assign(outline.slots(), 0);
        moves_.assign(outline.slots(), 0);
        turns_.resize(outline.loops());
        returns_.emplace_back();
        number_work_items();
        begin_ = *state_;
        block(outline.function(0).body);
    }

    Outcome outcome() {
        Outcome made;
        for (auto &[index, why] : whole_) made[index] = {true, why, {}, {}, {}};
        for (auto &[index, found] : found_)
            if (!whole_.count(index))
                made[index] = {false, "", few(std::move(found.first)), few(std::move(found.second)), {}};
        for (auto &[index, sure] : sure_) {
            made[index].surely_read = sure.first;
            made[index].surely_written = sure.second;
        }
        return made;
    }

private:
    static Rectangles few(Rectangles found) {
        Rectangles made = merged(std::move(found));
        for (const auto &[start, pitch, rows, width] : made)
            if (!is_short(start) || !is_short(pitch) || !is_short(rows) || !is_short(width))
                throw TooWide();
        return made;
    }

    struct Way {
        Maybe state;
        Value value;
    };

    // A part to which perhaps not every work-item comes, or to which it may come again.
    class Some : Single {
    public:
        explicit Some(Run &run, bool is_some = true) : run_(run), is_some_(is_some) { run_.some_ += is_some_; }
        ~Some() { run_.some_ -= is_some_; }

    private:
        Run &run_;
        bool is_some_;
    };

    // ---- running ----

    static bool begins_anew(const Operation &op) {
        return op.rule == Rule::CASE || op.rule == Rule::AGAIN;
    }

    Value block(const Operations &operations, std::size_t from = 0, std::size_t to = SIZE_MAX) {
        Value last;
        for (std::size_t at = from; at < std::min(to, operations.size()); at++)
            if (state_ || begins_anew(operations[at])) last = value(operations[at]);
        return last;
    }

    Value value(const Operation &op) {
        if (!state_ && !begins_anew(op)) return zero();
        if (++steps_ > MOST_STEPS || deep_ > DEEPEST) throw TooMuch();
        deep_++;
        Value found = evaluate(op);
        deep_--;
        return found;
    }

    Sum number(const Operation &op) {
        Value found = value(op);
        if (found.kind == Value::NUMBER) return std::move(found.sum);
        return state_ ? fresh(limits_of(64).low, limits_of(-64).high) : Sum();  // it may have a sign, or none
    }

    Value evaluate(const Operation &op) {
        switch (op.rule) {
        case Rule::CONSTANT: return Value::number({op.number, {}});
        case Rule::SLOT: return known(op.place);
        case Rule::UNKNOWN: return op.type ? Value::number(any_of(op.type)) : Value();
        case Rule::ARGUMENT: return Value::number(argument(op));
        case Rule::CAST: case Rule::NEGATIVE: case Rule::COMPLEMENT: return unary(op);
        case Rule::BINARY: case Rule::EXTREME: case Rule::PRODUCT24: return binary(op);
        case Rule::COMPARE: case Rule::NOT: case Rule::AND: case Rule::OR: return truth(op);
        case Rule::CHOICE: return choice(op);
        case Rule::CLAMP: return clamp(op);
        case Rule::QUERY: return Value::number(query(op));
        case Rule::SEQUENCE: return block(op.parts);
        case Rule::PARAMETER: return Value::pointer(int(op.place), {});
        case Rule::MOVED: case Rule::INSIDE: return moved(op);
        case Rule::TOUCH: return touch(op.text, value(op.parts[0]), op.number), Value();
        case Rule::TOUCH_SEVERAL: return touch_several(op);
        case Rule::ESCAPE: return widen(value(op.parts[0]), op.text), Value();
        case Rule::ASSIGN: return assign(op);
        case Rule::NEW: return make(op);
        case Rule::POST: return post(op);
        case Rule::TURNS: return Value::number(turns_of(op));
        case Rule::IF: return choose(op);
        case Rule::LOOP: return loop(op);
        case Rule::AGAIN: return again(op);
        case Rule::SWITCH: return pick(op);
        case Rule::CASE: return enter(op);
        case Rule::MAYBE: return maybe(op);
        case Rule::RETURN: return leave_with(op);
        case Rule::LEAVE: return leave(), state_.reset(), Value();
        case Rule::CALL: return call(op);
        }
        throw TooMuch();
    }

    static Value zero() { return Value::number({}); }

    Value known(std::size_t slot) const {
        const Value &found = state_->slots[slot];
        return found.kind == Value::MISSING ? Value() : found;
    }

    // ---- what is touched ----

    void widen(const Value &value, const std::string &why) {
        if (!learning_ && value.kind == Value::POINTER) whole_.emplace(std::size_t(value.parameter), why);
    }

    void touch(const std::string &flags, const Value &pointer, Wide width) {
        if (!state_ || learning_ || pointer.kind != Value::POINTER) return;
        const std::size_t index = std::size_t(pointer.parameter);
        if (whole_.count(index)) return;
        const Interval ends = interval(pointer.sum);
        if (width <= 0 || ends.low < -FAR || ends.high > FAR)
            return widen(pointer, width > 0 ? "an index that may be any number" : "no size");
        width = std::min(width, FAR);
        Wide first = pointer.sum.constant, last = plus(first, width);
        std::vector<Step> steps;
        const auto step = [&](Wide factor, const Interval &range) {
            const Interval one = hull_of({times(factor, range.low), times(factor, range.high)});
            first = plus(first, one.low);
            last = plus(last, one.high);
            if (range.high > range.low) steps.push_back({size_of(factor), range.high - range.low + 1});
        };
        if (pointer.sum.terms.size() > 2 && state_->has_facts())
            for (const State::Group &one : state_->groups(pointer.sum.terms, true)) step(one.factor, one.range);
        else
            for (const Term &term : pointer.sum.terms) step(term.factor, state_->range(term.variable));
        const Rectangle found =
            within(rectangle(first, last, width, std::move(steps)), ends.low, ends.high + width);
        auto &[reads, writes] = found_[index];
        for (char flag : flags) (flag == 'r' ? reads : writes).push_back(found);
        if (some_ || have_left_ || !is_reached(pointer.sum)) return;
        auto &[read, written] = sure_[index];
        for (char flag : flags) {
            Sure &sure = flag == 'r' ? read : written;
            sure.last = std::max(sure.last, ends.high);
            if (ends.low + width >= sure.first_end) continue;
            sure.first = ends.low;
            sure.first_end = ends.low + width;
        }
    }

    // Whether the lowest and the highest value of a sum are those of some work-item. Of one axis it may have the
    // number in the launch, or the ones in the group and of the group, which have all values together.
    bool is_reached(const Sum &sum) const {
        std::array<std::array<bool, 3>, 3> has{};
        for (const Term &term : sum.terms) {
            bool is_number = false;
            for (std::size_t kind = 0; kind < 3; kind++)
                for (std::size_t axis = 0; axis < launch_.axes; axis++) {
                    const Terms &of = ids_[kind][axis].terms;
                    if (of.size() != 1 || of[0].variable != term.variable) continue;
                    has[kind][axis] = is_number = state_->range(term.variable) == begin_.range(term.variable);
                }
            if (!is_number) return false;
        }
        for (std::size_t axis = 0; axis < launch_.axes; axis++) {
            const bool in_group = has[1][axis] || has[2][axis];
            const bool is_even = launch_.local && launch_.sizes[axis] % (*launch_.local)[axis] == 0;
            if (in_group && (has[0][axis] || !is_even)) return false;
        }
        return true;
    }

    Value touch_several(const Operation &op) {
        const Value pointer = value(op.parts[0]);
        const Sum count = number(op.parts[1]);
        if (!state_) return {};
        const Some some(*this);  // the count may be less, or none
        const Wide most = interval(count).high;
        if (most > 0) touch(op.text, pointer, times(most, op.number));
        return {};
    }

    Value moved(const Operation &op) {
        Value pointer = value(op.parts[0]);
        const bool is_inside = op.rule == Rule::INSIDE;
        const Sum index = is_inside ? Sum() : number(op.parts[1]);
        if (!state_ || pointer.kind != Value::POINTER) return {};
        if (is_inside ? op.number <= 0 : op.number == 0) return widen(pointer, "no size"), Value();
        pointer.sum = added(pointer.sum, is_inside ? fresh(0, op.number - 1) : scaled(index, op.number));
        return pointer;
    }

    // ---- states ----

    // Keeps what holds in both states.
    Maybe join(Maybe a, Maybe b) {
        if (!a) return b;
        if (!b) return a;
        State made = a->either(*b);
        made.slots.assign(a->slots.size(), Value{Value::MISSING, 0, {}});
        for (std::size_t slot = 0; slot < made.slots.size(); slot++) {
            const Value &one = a->slots[slot], &two = b->slots[slot];
            if (one.kind != Value::MISSING && two.kind != Value::MISSING)
                made.slots[slot] = either(made, *a, one, *b, two);
        }
        return made;
    }

    Value either(State &made, const State &a, const Value &one, const State &b, const Value &two) {
        if (one == two) return one;
        const bool is_alike = one.kind == two.kind && one.parameter == two.parameter;
        if (is_alike && one.kind >= Value::NUMBER) {
            const Interval range = hull(a.interval(one.sum), b.interval(two.sum));
            made.limit(variables_, range);
            return {one.kind, one.parameter, {0, {{variables_++, 1}}}};
        }
        widen(one, "a pointer that is one or the other");
        widen(two, "a pointer that is one or the other");
        return {};
    }

    // Joins states, each of which comes with a value.
    Value settle(std::vector<Way> ways) {
        std::optional<Way> made;
        for (Way &way : ways) {
            if (!way.state) continue;
            way.state->slots.push_back(std::move(way.value));
            if (!made) made.emplace(Way{std::move(way.state), {}});
            else made->state = join(std::move(made->state), std::move(way.state));
        }
        state_.reset();
        if (!made) return zero();
        state_ = std::move(made->state);
        Value found = std::move(state_->slots.back());
        state_->slots.pop_back();
        return found;
    }

    // Forgets variables that were assigned any number of times.
    void forget(const std::vector<Assigned> &assigned, const std::string &why,
                std::size_t but = SIZE_MAX) {
        for (const auto &[slot, type] : assigned) {
            if (slot == but || state_->slots[slot].kind == Value::MISSING) continue;
            if (!type) widen(state_->slots[slot], why);
            Value found = type ? Value::number(any_of(type)) : Value();
            state_->slots[slot] = std::move(found);
        }
    }

    // ---- conditions ----

    struct Branches {
        Maybe yes, no;
    };

    // Returns the states where a condition holds, and where it does not. None: no work-item comes there.
    Branches branch(const Operation &op) {
        if (!state_) return {};
        switch (op.rule) {
        case Rule::NOT: {
            auto [yes, no] = branch(op.parts[0]);
            return {std::move(no), std::move(yes)};
        }
        case Rule::AND: {
            auto [yes, no] = branch(op.parts[0]);
            state_ = std::move(yes);
            const Some some(*this, no.has_value());
            auto [both, other] = branch(op.parts[1]);
            return {std::move(both), join(std::move(no), std::move(other))};
        }
        case Rule::OR: {
            auto [yes, no] = branch(op.parts[0]);
            state_ = std::move(no);
            const Some some(*this, yes.has_value());
            auto [other, none] = branch(op.parts[1]);
            return {join(std::move(yes), std::move(other)), std::move(none)};
        }
        case Rule::COMPARE: {
            const Sum a = number(op.parts[0]), b = number(op.parts[1]);
            return compared(op.text, a, b);
        }
        case Rule::CAST: {
            const Rule inner = op.parts[0].rule;
            if (inner == Rule::NOT || inner == Rule::AND || inner == Rule::OR || inner == Rule::COMPARE)
                return branch(op.parts[0]);
            break;
        }
        case Rule::SEQUENCE:
            if (op.parts.empty()) break;
            block(op.parts, 0, op.parts.size() - 1);
            return branch(op.parts.back());
        default: break;
        }
        const Value found = value(op);
        if (!state_) return {};
        if (found.kind == Value::NUMBER) return compared("!=", found.sum, {});
        is_varying_ = true;
        Maybe no = state_;
        return {std::exchange(state_, std::nullopt), std::move(no)};
    }

    // Returns the same for the condition of an `if` or a loop.
    Branches decide(const Operation &condition, bool is_met) {
        const bool others = std::exchange(is_varying_, false);
        Branches made = branch(condition);
        if (is_met && is_varying_ && made.yes && made.no) made.yes = made.no = join(made.yes, made.no);
        is_varying_ = is_varying_ || others;
        return made;
    }

    // Whether all work-items of a group surely have the same value.
    bool is_common(const Sum &value) const {
        return std::all_of(value.terms.begin(), value.terms.end(),
                           [&](const Term &term) {
                               const std::size_t at = std::size_t(term.variable);
                               return at < common_.size() && common_[at];
                           });
    }

    Sum made_common(Sum value) {
        for (const Term &term : value.terms) {
            const std::size_t at = std::size_t(term.variable);
            if (at >= common_.size()) common_.resize(at + 1);
            common_[at] = true;
        }
        return value;
    }
    // Returns what is computed from values: it is common to all work-items of a group if these are.
    Sum computed(Sum value, std::initializer_list<const Sum *> from) {
        const bool is_same = std::all_of(from.begin(), from.end(), [&](const Sum *one) { return is_common(*one); });
        return is_same ? made_common(std::move(value)) : std::move(value);
    }

    Branches compared(std::string_view sign, const Sum &a, const Sum &b) {
        if (!state_) return {};
        is_varying_ = is_varying_ || !is_common(a) || !is_common(b);
        const bool turns = sign == ">" || sign == ">=";
        const Sum distance = turns ? added(b, a, -1) : added(a, b, -1), back = scaled(distance, -1);
        State yes = *state_, no = *std::exchange(state_, std::nullopt);
        const auto some = [](bool holds, State &state) {
            return holds ? Maybe(std::move(state)) : std::nullopt;
        };
        if (sign == "==" || sign == "!=") {
            const bool is_same = yes.at_most(distance, 0) && yes.at_most(back, 0);
            Branches made{some(is_same, yes), {}};
            made.no = some(no.differs(distance), no);
            if (sign == "!=") std::swap(made.yes, made.no);
            return made;
        }
        const Wide limit = sign == "<" || sign == ">" ? -1 : 0;
        const bool holds = yes.at_most(distance, limit), fails = no.at_most(back, -limit - 1);
        return {some(holds, yes), some(fails, no)};
    }

    Value truth(const Operation &op) {
        auto [yes, no] = branch(op);
        const bool never = !yes, always = !no;
        state_ = join(std::move(yes), std::move(no));
        return Value::number(never ? Sum() : always ? Sum{1, {}} : fresh(0, 1));
    }

    // ---- operations ----

    Sum argument(const Operation &op) {
        const auto found = launch_.numbers.find(op.place);
        const bool fits = found != launch_.numbers.end() &&
                          limits_of(op.type).holds({found->second, found->second});
        if (fits) return {found->second, {}};
        return made_common(any_of(op.type));
    }

    Value unary(const Operation &op) {
        const Sum a = number(op.parts[0]);
        if (!state_) return zero();
        if (op.rule == Rule::CAST) return Value::number(computed(cast(op.type, a), {&a}));
        Sum turned = scaled(a, -1);
        if (op.rule == Rule::COMPLEMENT)
            turned.constant = plus(turned.constant, op.type < 0 ? shifted(-op.type) - 1 : Wide(-1));
        return Value::number(computed(fitting(op.type, std::move(turned)), {&a}));
    }

    Value binary(const Operation &op) {
        const Sum a = number(op.parts[0]), b = number(op.parts[1]);
        if (!state_) return zero();
        return Value::number(computed(of_two(op, a, b), {&a, &b}));
    }

    Sum of_two(const Operation &op, const Sum &a, const Sum &b) {
        if (op.rule == Rule::EXTREME) return extreme(op.text == "max", op.type, a, b);
        if (op.rule != Rule::PRODUCT24) return arithmetic(op.text, op.type, a, b);
        const Interval limits = limits_of(op.type > 0 ? 24 : -24);
        const bool fits = limits.holds(interval(a)) && limits.holds(interval(b));
        return fits ? product(op.type, a, b) : any_of(op.type);
    }

    Value choice(const Operation &op) {
        auto [yes, no] = branch(op.parts[0]);
        const Some some(*this, yes && no);
        state_ = std::move(yes);
        Value first = value(op.parts[1]);
        yes = std::exchange(state_, std::move(no));
        Value second = value(op.parts[2]);
        return one_of({std::move(yes), std::move(first)}, {std::move(state_), std::move(second)});
    }

    Value one_of(Way one, Way other) {
        if (!one.state || !other.state) {
            Way &only = one.state ? one : other;
            state_ = std::move(only.state);
            return std::move(only.value);
        }
        std::vector<Way> ways;
        ways.push_back(std::move(one));
        ways.push_back(std::move(other));
        return settle(std::move(ways));
    }

    Value clamp(const Operation &op) {
        const Sum a = number(op.parts[0]), least = number(op.parts[1]), most = number(op.parts[2]);
        if (!state_) return zero();
        auto [in_order, crossed] = compared("<=", least, most);
        Value within, either;
        if ((state_ = std::move(in_order))) {
            const Sum raised = extreme(true, op.type, a, least);
            within = Value::number(extreme(false, op.type, raised, most));
        }
        in_order = std::exchange(state_, std::move(crossed));
        if (state_)  // drivers differ in which bound it is
            either = one_of({state_, Value::number(least)}, {state_, Value::number(most)});
        Value made = one_of({std::move(in_order), std::move(within)}, {std::move(state_), std::move(either)});
        made.sum = computed(std::move(made.sum), {&a, &least, &most});
        return made;
    }

    // ---- statements ----

    Value assign(const Operation &op) {
        Value found = value(op.parts[0]);
        if (!state_) return zero();
        if (found.kind == Value::POINTER && depths_[op.place] < depth_ && moves_[op.place] != depth_) {
            widen(found, "a pointer that a loop changes");
            found = Value();
        }
        return state_->slots[op.place] = std::move(found);
    }

    Value make(const Operation &op) {
        Value found = value(op.parts[0]);
        if (!state_) return {};
        depths_[op.place] = depth_;
        state_->slots[op.place] = std::move(found);
        return {};
    }

    Value post(const Operation &op) {
        Value before = known(op.place);
        assign(op);
        return before;
    }

    Value choose(const Operation &op) {
        auto [yes, no] = decide(op.parts[0], op.is_met);
        const Some some(*this, yes && no);
        state_ = std::move(yes);
        if (state_) value(op.parts[1]);
        yes = std::exchange(state_, std::move(no));
        if (state_) value(op.parts[2]);
        state_ = join(std::move(yes), std::exchange(state_, std::nullopt));
        return {};
    }

    // A loop while it is run. Of each counter: its value before the loop and at the top of a turn, the range of what a
    // turn changes it by, its own variable, and whether it is followed. A counter that may leave its type is not.
    struct Turning {
        struct Counted {
            Value begin, top;
            Interval by;
            std::int32_t own = -1;
            bool is_followed = false;
            bool is_common = false;  // whether each turn changes it by the same, for all work-items
        };

        explicit Turning(const Operation &of) : op(of), counted(of.counters.size()) {}

        bool follows(std::size_t slot) const {
            for (std::size_t at = 0; at < counted.size(); at++)
                if (op.counters[at].slot == slot) return counted[at].is_followed;
            return false;
        }
        std::ptrdiff_t many() const {
            return std::count_if(counted.begin(), counted.end(), [](const Counted &one) { return one.is_followed; });
        }

        const Operation &op;
        std::vector<Counted> counted;
        Wide last = -1;         // the last turn, from 0 on
        bool is_sure = false;   // whether it is the last one for all work-items
        std::optional<std::int32_t> turn;  // the variable of the turn
        Maybe asked;            // the state in front of the condition, if the loop is one of a number
        bool has_turns = true;  // false: there is surely none
    };

    Value loop(const Operation &op) {
        const Some some(*this);
        Turning turning(op);
        for (std::size_t at = 0; at < op.counters.size(); at++) {
            const Counter &counter = op.counters[at];
            Value &begin = turning.counted[at].begin = known(counter.slot);
            turning.counted[at].is_followed = begin.kind == (counter.type ? Value::NUMBER : Value::POINTER);
        }
        depth_++;
        const State before = *state_;
        if (op.counts_turns) learn_turns(turning);
        Maybe top;
        std::ptrdiff_t many_of_last = -1;
        while (many_of_last != turning.many() && turning.has_turns) {
            const std::ptrdiff_t many = many_of_last = turning.many();
            state_ = before;
            forget_changed(turning);
            top = many ? counting(turning) : op.is_first ? state_ : decide(op.parts[0], op.is_met).yes;
        }
        if (op.loop >= 0) {
            turning.is_sure = !turning.has_turns || (top && many_of_last && ends_for_all(turning));
            turns_[std::size_t(op.loop)] = turning.is_sure ? std::optional(turning.last + 1) : std::nullopt;
        }
        if (top) {
            const std::vector<int> moves = moves_;
            for (const Counter &counter : op.counters)
                if (turning.follows(counter.slot)) moves_[counter.slot] = depth_;
            entries_.push_back(*top);
            state_ = *top;
            block(op.parts[1].parts);
            entries_.pop_back();
            state_ = std::move(top);
            end_turn(turning);
            value(op.parts[2]);
            moves_ = moves;
        }
        depth_--;
        state_ = before;
        forget_changed(turning);
        for (std::size_t at = 0; at < op.counters.size(); at++)
            if (turning.counted[at].is_followed) state_->slots[op.counters[at].slot] = left(turning, at);
        return {};
    }

    // Runs the body of a loop once for any turn, to learn how many turns the loops in it have. What these count with has
    // no value meanwhile, and nothing is noted: the body is run again.
    void learn_turns(const Turning &turning) {
        const Operation &op = turning.op;
        for (std::size_t at = 3; at < op.parts.size(); at++) forget_turns_of(op.parts[at]);
        const std::size_t many = returns_.back().size();
        learning_++;
        for (const Assigned &one : op.assigned)
            if (turning.follows(one.slot)) state_->slots[one.slot] = one.type ? Value::number(any_of(one.type)) : Value();
        forget_changed(turning);
        entries_.push_back(*state_);
        block(op.parts[1].parts);
        entries_.pop_back();
        learning_--;
        returns_.back().erase(returns_.back().begin() + std::ptrdiff_t(many), returns_.back().end());
    }

    void forget_turns_of(const Operation &op) {
        if (op.rule == Rule::TURNS) turns_[std::size_t(op.loop)].reset();
        for (const Operation &part : op.parts) forget_turns_of(part);
    }

    Sum turns_of(const Operation &op) {
        const std::optional<Wide> &known = turns_[std::size_t(op.loop)];
        return known ? Sum{*known, {}} : any_of(64);
    }

    // Whether a loop that only its condition ends has the same turns for all work-items: the condition holds in all of
    // them, and in none behind them.
    bool ends_for_all(const Turning &turning) {
        const Operation &condition = turning.op.parts[0];
        if (condition.rule != Rule::COMPARE || !turning.turn || !is_steady(condition, turning)) return false;
        state_ = turning.asked;
        state_->limit(*turning.turn, {0, turning.last});
        const bool holds = !branch(condition).no;
        state_ = turning.asked;
        state_->limit(*turning.turn, {turning.last + 1, turning.last + 1});
        return holds && !branch(condition).yes;
    }

    // Forgets what the turns of a loop change, but for its counters.
    void forget_changed(const Turning &turning, const char *why = "a pointer that a loop changes") {
        std::vector<Assigned> others;
        for (const Assigned &one : turning.op.assigned)
            if (!turning.follows(one.slot)) others.push_back(one);
        forget(others, why);
    }

    // Returns the state at the top of a turn. A counter is what it was before the loop, and as much more as the turns
    // before have added. None: there is surely no turn. Counters for which that is not proven are no longer followed.
    Maybe counting(Turning &turning) {
        Wide most = MOST_TURNS;
        for (std::size_t at = 0; at < turning.counted.size(); at++) {
            const Counter &counter = turning.op.counters[at];
            Turning::Counted &one = turning.counted[at];
            if (!one.is_followed) continue;
            one.by = distance(counter, number(turning.op.parts[3 + at]));
            if (!state_) throw TooMuch();
            const Interval first = interval(one.begin.sum);
            const bool is_sum = counter.way == '+', is_known = one.by.low == one.by.high;
            const bool is_up = is_sum ? one.by.low > 0 : one.by.low > 0 && first.low >= 0;
            one.is_followed = (is_up || (is_sum && one.by.high < 0)) && (counter.type || (is_sum && is_known));
            if (!one.is_followed || !is_sum || !counter.type || !is_known) continue;
            const Interval limits = limits_of(counter.type);
            most = std::min(most, std::max<Wide>(0, is_up ? floored(limits.high - first.low, one.by.low)
                                                          : floored(first.high - limits.low, -one.by.low)));
        }
        if (!turning.many()) return state_;
        const State before = *state_;
        Maybe top = turned(turning, most, true);
        if (!top || turning.many() == proven(*top, turning)) return drop(std::move(top), turning);
        state_ = before;  // arithmetic in the condition may leave its type before the condition ends the loop
        const int deep = deep_, depth = depth_, learning = learning_;
        const std::size_t calls = returns_.size(), entries = entries_.size();
        is_wide_ = true;
        learning_++;
        Wide guess = most;  // the last turn; below 0: there is none
        try {
            guess = (top = turned(turning, most, false)) ? turning.last : -1;
        } catch (const TooWide &) {
            deep_ = deep, depth_ = depth;
            returns_.erase(returns_.begin() + std::ptrdiff_t(calls), returns_.end());
            entries_.erase(entries_.begin() + std::ptrdiff_t(entries), entries_.end());
        }
        learning_ = learning;
        is_wide_ = false;
        if (guess < most) {
            state_ = before;
            top = turned(turning, guess + 1, false);
            if (turning.last <= guess) return drop(std::move(top), turning);
        }
        turning.has_turns = true;
        state_ = before;
        return drop(turned(turning, most, true), turning);
    }

    // Returns the state at the top of a turn, if it is no later one than `most`.
    Maybe turned(Turning &turning, Wide most, bool may_be_dense) {
        const Operation &op = turning.op;
        const Sum turn = fresh(0, most);
        turning.turn.reset();
        if (!turn.is_constant()) turning.turn = turn.terms[0].variable;
        const bool is_alone = may_be_dense && turning.many() == 1 && !op.is_first;
        bool is_dense_one = false;
        for (std::size_t at = 0; at < turning.counted.size(); at++) {
            Turning::Counted &one = turning.counted[at];
            if (!one.is_followed) continue;
            is_dense_one = is_alone && is_dense(one.begin.sum, size_of(one.by.low)) && op.counters[at].type &&
                           op.counters[at].way == '+' && one.by.low == one.by.high;
            one.is_common = one.is_followed && one.by.low == one.by.high;
            one.top = {one.begin.kind, one.begin.parameter, at_top(op.counters[at], one, turn, is_dense_one)};
            state_->slots[op.counters[at].slot] = one.top;
        }
        if (is_turn_common(turning))
            for (const auto &one : turning.counted)
                if (one.is_common && is_common(one.begin.sum)) made_common(one.top.sum);
        Maybe first;
        if (op.is_first) {
            first = state_;
            limit_turn(*first, turn, 0, 0);
            for (const auto &one : turning.counted)
                if (one.is_followed && one.own >= 0) first->limit(one.own, own_at_first(*first, one));
            if (turn.is_constant()) state_.reset();
            else limit_turn(*state_, turn, 1, most);
        }
        if (op.loop >= 0) turning.asked = state_;
        Maybe top = state_ ? ask(turning, turn) : std::nullopt;
        if (op.is_first) top = join(std::move(first), std::move(top));
        turning.has_turns = top.has_value();
        if (!top) return turning.last = -1, top;
        turning.last = turn.is_constant() ? Wide(0) : top->range(turn.terms[0].variable).high;
        if (is_dense_one) {
            turning.turn.reset();
            const auto &one = *std::find_if(turning.counted.begin(), turning.counted.end(),
                                            [](const auto &any) { return any.is_followed; });
            const Interval range = top->interval(one.top.sum), begin = top->interval(one.begin.sum);
            turning.last = one.by.low > 0 ? floored(range.high - begin.low, one.by.low)
                                          : floored(begin.high - range.low, -one.by.low);
        }
        return top;
    }

    static void limit_turn(State &state, const Sum &turn, Wide low, Wide high) {
        if (!turn.is_constant()) state.limit(turn.terms[0].variable, {low, high});
    }

    // Returns the range of a counter's own variable in the first turn.
    static Interval own_at_first(const State &state, const Turning::Counted &one) {
        return one.top.sum.terms.size() == 1 && one.top.sum.constant == 0 ? state.interval(one.begin.sum) : Interval{0, 0};
    }

    // Returns by how much a turn changes a counter. Not known: it has no way that is followed.
    Interval distance(const Counter &counter, const Sum &by) const {
        if (!state_) return {};
        const Interval range = interval(by);
        return hull_of({times(range.low, counter.factor), times(range.high, counter.factor)});
    }

    Sum at_top(const Counter &counter, Turning::Counted &one, const Sum &turn, bool is_dense_one) {
        const Interval first = interval(one.begin.sum);
        const Interval limits = counter.type ? limits_of(counter.type) : Interval{};
        const auto own = [&](Wide low, Wide high) {
            const Sum made = fresh(low, high);
            one.own = made.is_constant() ? -1 : made.terms[0].variable;
            return made;
        };
        one.own = -1;
        if (counter.way == '*') return own(first.low, limits.high);
        if (counter.way == '/') return own(0, first.high);
        if (is_dense_one) return one.by.low > 0 ? own(first.low, limits.high) : own(limits.low, first.high);
        if (one.by.low == one.by.high) return added(one.begin.sum, scaled(turn, one.by.low));
        const Wide room = one.by.low > 0 ? limits.high - first.low : first.high - limits.low;
        return added(one.begin.sum, one.by.low > 0 ? own(0, room) : own(-room, 0));
    }

    // Whether all work-items of a group are in the same turn: what they count by is common to them.
    bool is_turn_common(const Turning &turning) const {
        for (std::size_t at = 0; at < turning.counted.size(); at++)
            if (turning.counted[at].is_followed &&
                !(turning.counted[at].is_common && is_common(turning.counted[at].begin.sum)) &&
                reads(turning.op.parts[0], turning.op.counters[at].slot))
                return false;
        return true;
    }

    static bool reads(const Operation &op, std::size_t slot) {
        if (op.rule == Rule::SLOT) return op.place == slot;
        return std::any_of(op.parts.begin(), op.parts.end(), [&](const Operation &part) { return reads(part, slot); });
    }

    // Returns the state where a loop goes on. `i != n` is `i < n` for a counter that comes to it one by one.
    Maybe ask(const Turning &turning, const Sum &turn) {
        const Operation &condition = turning.op.parts[0];
        if (condition.rule == Rule::COMPARE && condition.text == "!=" && !turn.is_constant() &&
            is_steady(condition, turning)) {
            const Sum distance = added(number(condition.parts[0]), number(condition.parts[1]), -1);
            const std::int32_t variable = turn.terms[0].variable;
            State first = *state_;
            const Wide asked_first = turning.op.is_first ? 1 : 0;
            first.limit(variable, {asked_first, asked_first});
            const Interval begin = first.interval(distance);
            for (const Term &term : distance.terms) {
                if (term.variable != variable) continue;
                const bool is_up = term.factor == 1 && begin.high <= 0, is_down = term.factor == -1 && begin.low >= 0;
                if (is_up || is_down) {
                    Operation ends = condition;
                    ends.text = is_up ? "<" : ">";
                    return decide(ends, turning.op.is_met).yes;
                }
            }
        }
        return decide(condition, turning.op.is_met).yes;
    }

    // Whether a value only changes by the counters of a loop.
    static bool is_steady(const Operation &op, const Turning &turning) {
        switch (op.rule) {
        case Rule::SLOT:
            for (const Assigned &one : turning.op.assigned)
                if (one.slot == op.place && !turning.follows(one.slot)) return false;
            return true;
        case Rule::CONSTANT: case Rule::ARGUMENT: case Rule::CAST: case Rule::BINARY: case Rule::NEGATIVE:
        case Rule::COMPARE: case Rule::QUERY:
            return std::all_of(op.parts.begin(), op.parts.end(),
                               [&](const Operation &part) { return is_steady(part, turning); });
        default: return false;
        }
    }

    // Counts the counters that surely do not leave their types when the turn ends.
    std::ptrdiff_t proven(const State &top, const Turning &turning) const {
        std::ptrdiff_t many = 0;
        for (std::size_t at = 0; at < turning.counted.size(); at++)
            many += turning.counted[at].is_followed && stays(top, turning, at);
        return many;
    }

    Maybe drop(Maybe top, Turning &turning) const {
        if (!top) return top;
        std::vector<bool> stay;
        for (std::size_t at = 0; at < turning.counted.size(); at++) stay.push_back(stays(*top, turning, at));
        for (std::size_t at = 0; at < stay.size(); at++) turning.counted[at].is_followed &= stay[at];
        return top;
    }

    static bool stays(const State &top, const Turning &turning, std::size_t at) {
        const Counter &counter = turning.op.counters[at];
        const Turning::Counted &one = turning.counted[at];
        if (!one.is_followed || !(top.slots[counter.slot] == one.top)) return false;
        if (!counter.type) return turning.last < MOST_TURNS;
        const Interval range = top.interval(one.top.sum), limits = limits_of(counter.type);
        if (counter.way == '/') return true;
        if (counter.way == '*') return range.low >= 0 && times(range.high, one.by.high) <= limits.high;
        return range.high + one.by.high <= limits.high && range.low + one.by.low >= limits.low;
    }

    // Goes on to the step of a loop, where nothing is known of what its body changes but its counters.
    void end_turn(const Turning &turning) {
        forget_changed(turning, "");
        for (std::size_t at = 0; at < turning.counted.size(); at++) {
            const Counter &counter = turning.op.counters[at];
            const Turning::Counted &one = turning.counted[at];
            if (!one.is_followed || counter.in_step) continue;
            Value &found = state_->slots[counter.slot];
            if (counter.way == '+' && one.by.low == one.by.high) found.sum = added(found.sum, {one.by.low, {}});
            else found = Value::number(any_of(counter.type));
        }
    }

    // Returns the value of a counter behind a loop. A turn that was left early may have changed it once more, and so may
    // the condition that ended the loop.
    Value left(const Turning &turning, std::size_t at) {
        const Counter &counter = turning.op.counters[at];
        const Turning::Counted &one = turning.counted[at];
        if (counter.way == '+' && one.by.low == one.by.high && turning.last < MOST_TURNS) {
            Value found = one.begin;
            const Sum turns = turning.is_sure ? Sum{turning.last + 1, {}} : fresh(0, turning.last + 2);
            found.sum = added(found.sum, scaled(turns, one.by.low));
            if (!counter.type || limits_of(counter.type).holds(interval(found.sum))) return found;
        }
        return counter.type ? Value::number(any_of(counter.type)) : Value();
    }

    // Whether a sum of several values leaves no gap and spans a step of a loop.
    bool is_dense(const Sum &value, Wide width) const {
        std::vector<Step> steps;
        for (const Term &term : value.terms) {
            const Interval &range = state_->range(term.variable);
            steps.push_back({size_of(term.factor), range.high - range.low + 1});
        }
        if (steps.empty()) return false;
        const Rectangle found = rectangle(0, 0, 1, std::move(steps));
        return found.rows == 1 && found.width >= width;
    }

    Value again(const Operation &op) {
        state_ = entries_.back();
        forget(op.assigned, "a pointer that a loop changes");
        return {};
    }

    Value pick(const Operation &op) {
        value(op.parts[0]);
        if (!state_) return {};
        return some_times(op, "a pointer that a switch changes", [&] {
            state_.reset();
            block(op.parts[1].parts);
        });
    }

    // Runs parts that happen once, several times or not at all, each from this state or from that of one before it.
    template <typename Parts>
    Value some_times(const Operation &op, const char *why, Parts &&parts) {
        const Some some(*this);
        depth_++;
        forget(op.assigned, why);
        entries_.push_back(*state_);
        parts();
        state_ = std::move(entries_.back());
        entries_.pop_back();
        depth_--;
        return {};
    }

    Value enter(const Operation &) {
        const State &entry = entries_.back();
        if (state_)
            for (std::size_t slot = 0; slot < entry.slots.size(); slot++)
                if (!(state_->slots[slot] == entry.slots[slot]))
                    widen(state_->slots[slot], "a pointer that a switch changes");
        state_ = entry;
        return {};
    }

    Value maybe(const Operation &op) {
        return some_times(op, "a pointer that is changed in an expression", [&] {
            for (const Operation &part : op.parts) {
                state_ = entries_.back();
                value(part);
            }
        });
    }

    void leave() { have_left_ = have_left_ || some_; }

    Value leave_with(const Operation &op) {
        Value found = value(op.parts[0]);
        leave();
        if (state_)
            returns_.back().push_back({std::exchange(state_, std::nullopt), std::move(found)});
        return {};
    }

    Value call(const Operation &op) {
        const OutlinedFunction &function = outline_.function(op.place);
        std::vector<Value> values;
        for (const Operation &part : op.parts) values.push_back(value(part));
        if (!state_) return zero();
        if (values.size() != function.parameters.size()) throw TooMuch();
        for (std::size_t at = 0; at < values.size(); at++) {
            if (const auto &slot = function.parameters[at]) {
                depths_[*slot] = depth_;
                state_->slots[*slot] = std::move(values[at]);
            }
        }
        returns_.emplace_back();
        block(function.body);
        std::vector<Way> ways = std::move(returns_.back());
        returns_.pop_back();
        if (state_) {
            Value any = op.type ? Value::number(any_of(op.type)) : Value();
            ways.push_back({std::exchange(state_, std::nullopt), std::move(any)});
        }
        for (Way &way : ways)
            for (std::size_t slot : function.own) way.state->slots[slot] = {Value::MISSING, 0, {}};
        return settle(std::move(ways));
    }

    // ---- the launch ----

    Sum query(const Operation &op) {
        const Sum axis = number(op.parts[0]);
        if (!state_) return {};
        if (!axis.is_constant() || axis.constant < 0 || axis.constant >= 3) return any_of(op.type);
        return work_item(op.query, std::size_t(std::int64_t(axis.constant)));
    }

    Sum work_item(Query query, std::size_t axis) {
        const bool is_inside = axis < launch_.axes;
        const Wide size = is_inside ? launch_.sizes[axis] : Wide(1);
        const bool is_open = is_inside && !launch_.local;  // the driver chooses the groups
        const Wide group = is_inside && launch_.local ? (*launch_.local)[axis] : Wide(1);
        switch (query) {
        case Query::GLOBAL_ID: return ids_[0][axis];
        case Query::LOCAL_ID: return ids_[1][axis];
        case Query::GROUP_ID: return ids_[2][axis];
        case Query::GLOBAL_SIZE: return {size, {}};
        case Query::OFFSET: return {is_inside ? launch_.offset[axis] : Wide(0), {}};
        case Query::AXES: return {Wide(launch_.axes), {}};
        case Query::LOCAL_SIZE:
            if (is_open) return made_common(fresh(1, size));
            return size % group == 0 ? Sum{group, {}} : made_common(fresh(1, group));
        case Query::ENQUEUED_SIZE: return is_open ? made_common(fresh(1, size)) : Sum{group, {}};
        case Query::GROUPS: return is_open ? made_common(fresh(1, size)) : Sum{-floored(-size, group), {}};
        case Query::OTHER: break;
        }
        return {};
    }

    void number_work_items() {
        for (std::size_t axis = 0; axis < launch_.axes; axis++) {
            const Wide size = launch_.sizes[axis], begin = launch_.offset[axis];
            Wide first = 0, last = size - 1;  // work-items and groups that run
            Wide low = 0, high = size - 1, inside = last;
            if (launch_.local) {
                const Wide group = (*launch_.local)[axis];
                high = -floored(-size, group) - 1;
                if (launch_.groups) {
                    low = (*launch_.groups)[axis].first, high = (*launch_.groups)[axis].second - 1;
                    first = low * group, last = std::min((high + 1) * group, size) - 1;
                }
                inside = std::min(group - 1, last - first);
            }
            ids_[0][axis] = fresh(plus(begin, first), plus(begin, last));
            ids_[1][axis] = fresh(0, inside);
            ids_[2][axis] = fresh(low, high);
            made_common(ids_[2][axis]);
        }
    }

    const Outline &outline_;
    const Launched &launch_;
    State begin_;
    int some_ = 0;            // parts around this one to which perhaps not every work-item comes
    bool have_left_ = false;  // whether some may have left before
    std::map<std::size_t, std::pair<Rectangles, Rectangles>> found_;
    std::map<std::size_t, std::pair<Sure, Sure>> sure_;  // read, written
    std::map<std::size_t, std::string> whole_;
    std::vector<bool> common_;  // variables that all work-items of a group surely have in common
    bool is_varying_ = false;        // whether work-items of a group may differ on the condition
    std::array<std::array<Sum, 3>, 3> ids_;  // of all, within the group, of the group
    int depth_ = 0, steps_ = 0, deep_ = 0;
    int learning_ = 0;  // runs around this one of which nothing is noted
    std::vector<int> depths_;               // of slots: how many loops they were declared in
    std::vector<int> moves_;                // of slots that a loop counts with: in how many loops that is
    std::vector<std::optional<Wide>> turns_;  // by loop: how many it surely has each time
    std::vector<State> entries_;            // states at the begin of open loops and switches
    std::vector<std::vector<Way>> returns_;
};

}  // namespace

std::optional<Outcome> Outline::run(const Launched &launch) {
    runs_++;
    for (std::size_t axis = 0; axis < launch.axes; axis++)
        if (launch.sizes[axis] == 0) return Outcome();
    try {
        return Run(*this, launch).outcome();
    } catch (const TooMuch &) {
    } catch (const TooWide &) {
    }
    return std::nullopt;
}

}  // namespace acs_cl::access
