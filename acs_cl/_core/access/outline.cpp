#include "access/outline.hpp"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <stdexcept>
#include <string_view>

namespace acs_cl::access {

namespace {

constexpr int DEEPEST = 250;  // most operations within one another

// What a list holds behind the name of its operation: a letter for each item.
struct Layout {
    Rule rule;
    std::string_view items = "";
};

// n: a number; s: a variable; i: a parameter; o: an offset in it; l: a loop; f: a function; t: a type; x: a text; q: what is asked of a launch;
// a: assigned variables; p: an operation; b: a list of operations, as one; m: the same, as parts of this one.
const std::map<std::string_view, Layout> LAYOUTS = {
    {"k", {Rule::CONSTANT, "n"}}, {"s", {Rule::SLOT, "s"}}, {"?", {Rule::UNKNOWN, "t"}}, {"a", {Rule::ARGUMENT, "it"}},
    {"c", {Rule::CAST, "tp"}}, {"b", {Rule::BINARY, "xtpp"}}, {"neg", {Rule::NEGATIVE, "tp"}},
    {"~", {Rule::COMPLEMENT, "tp"}}, {"cmp", {Rule::COMPARE, "xpp"}}, {"!", {Rule::NOT, "p"}},
    {"and", {Rule::AND, "pp"}}, {"or", {Rule::OR, "pp"}}, {"?:", {Rule::CHOICE, "ppp"}},
    {"mm", {Rule::EXTREME, "xtpp"}}, {"clamp", {Rule::CLAMP, "tppp"}}, {"24", {Rule::PRODUCT24, "tpp"}},
    {"q", {Rule::QUERY, "qpt"}}, {",", {Rule::SEQUENCE}}, {"p", {Rule::PARAMETER, "i"}}, {"+", {Rule::MOVED, "ppn"}},
    {"in", {Rule::INSIDE, "pn"}}, {"r", {Rule::TOUCH, "pn"}}, {"w", {Rule::TOUCH, "pn"}}, {"rw", {Rule::TOUCH, "pn"}},
    {"rng", {Rule::TOUCH_SEVERAL, "xppn"}}, {"esc", {Rule::ESCAPE, "px"}}, {"=", {Rule::ASSIGN, "sp"}},
    {"new", {Rule::NEW, "sp"}}, {"post", {Rule::POST, "sp"}}, {"if", {Rule::IF, "ppp"}}, {"loop", {Rule::LOOP, "apbp"}},
    {"again", {Rule::AGAIN, "a"}}, {"switch", {Rule::SWITCH, "pab"}}, {"case", {Rule::CASE}},
    {"maybe", {Rule::MAYBE, "am"}}, {"return", {Rule::RETURN, "p"}}, {"leave", {Rule::LEAVE}},
    {"call", {Rule::CALL, "fmt"}}, {"if met", {Rule::IF, "ppp"}}, {"loop met", {Rule::LOOP, "apbp"}},
    {"turns", {Rule::TURNS, "l"}}, {"do", {Rule::LOOP, "apbp"}}, {"do met", {Rule::LOOP, "apbp"}}, {"part", {Rule::ARGUMENT, "iotx"}},
};

const std::map<std::string_view, Query> QUERIES = {
    {"get_global_id", Query::GLOBAL_ID}, {"get_local_id", Query::LOCAL_ID},
    {"get_group_id", Query::GROUP_ID}, {"get_global_size", Query::GLOBAL_SIZE},
    {"get_local_size", Query::LOCAL_SIZE}, {"get_enqueued_local_size", Query::ENQUEUED_SIZE},
    {"get_num_groups", Query::GROUPS}, {"get_global_offset", Query::OFFSET},
    {"get_work_dim", Query::AXES},
};

std::string text_of(nb::handle object) {
    Py_ssize_t many = 0;
    const char *text = PyUnicode_AsUTF8AndSize(object.ptr(), &many);
    if (!text) throw nb::python_error();
    return {text, std::size_t(many)};
}

bool is_list(nb::handle object) {
    return nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object);
}

}  // namespace

std::optional<Wide> wide_of(nb::handle object) {
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(object.ptr(), &overflow);
    if (value == -1 && PyErr_Occurred()) throw nb::python_error();
    if (!overflow) return Wide(value);
    if (overflow < 0) return std::nullopt;
    const unsigned long long high = PyLong_AsUnsignedLongLong(object.ptr());
    if (high == ~0ull && PyErr_Occurred()) return PyErr_Clear(), std::nullopt;
    return Wide(high);
}

Wide whole(nb::handle given) {
    if (const auto number = wide_of(given)) return *number;
    throw std::invalid_argument("got a number of more than 64 bits");
}

class OutlineReader {
public:
    OutlineReader(Outline &to, nb::handle functions) : to_(to), many_(nb::len(functions)) {
        for (nb::handle one : functions) to.functions_.push_back(function(one));
        if (to.functions_.empty()) throw std::invalid_argument("got no function");
    }

private:
    OutlinedFunction function(nb::handle given) {
        OutlinedFunction made;
        for (nb::handle one : nb::object(given[0])) {
            const int number = nb::cast<int>(one);
            made.parameters.push_back(number < 0 ? std::nullopt : std::optional(slot(one)));
        }
        made.body = several(given[1]);
        for (nb::handle one : nb::object(given[3])) made.own.push_back(slot(one));
        return made;
    }

    std::size_t slot(nb::handle given) {
        const int number = nb::cast<int>(given);
        if (number < 0 || number > 1 << 20) throw std::invalid_argument("got no variable");
        to_.slots_ = std::max(to_.slots_, std::size_t(number) + 1);
        return std::size_t(number);
    }

    std::vector<Operation> several(nb::handle given, std::size_t from = 0) {
        std::vector<Operation> made;
        std::size_t at = 0;
        for (nb::handle one : given)
            if (at++ >= from) made.push_back(operation(one));
        return made;
    }

    std::vector<Assigned> assigned(nb::handle given) {
        std::vector<Assigned> made;
        for (nb::handle one : given)
            made.push_back({slot(nb::object(one[0])), nb::cast<int>(nb::object(one[1]))});
        return made;
    }

    // Each list begins with a name. modes/outline.py says what the rest means.
    Operation operation(nb::handle given) {
        if (!is_list(given) || !nb::len(given)) throw std::invalid_argument("got no operation");
        if (++depth_ > DEEPEST) throw std::invalid_argument("operations are nested too deeply");
        const std::string name = text_of(nb::object(given[0]));
        const auto found = LAYOUTS.find(name);
        if (found == LAYOUTS.end()) throw std::invalid_argument("got an unknown operation: " + name);
        const auto &[rule, items] = found->second;
        Operation made;
        made.rule = rule;
        if (rule == Rule::TOUCH) made.text = name;
        made.is_met = name == "if met" || name == "loop met" || name == "do met";
        made.is_first = name == "do" || name == "do met";
        if (rule == Rule::SEQUENCE) made.parts = several(given, 1);
        for (std::size_t at = 0; at < items.size(); at++) fill(made, items[at], nb::object(given[at + 1]));
        if (rule == Rule::LOOP) fill_counters(made, nb::object(given[5]));
        if (rule == Rule::LOOP) made.loop = loop(nb::object(given[6]));
        depth_--;
        return made;
    }

    void fill(Operation &made, char letter, const nb::object &item) {
        switch (letter) {
        case 'n': made.number = whole(item); break;
        case 's': made.place = slot(item); break;
        case 'i': made.place = nb::cast<std::size_t>(item); break;
        case 'o': made.place = place_of(made.place, nb::cast<std::size_t>(item)); break;
        case 'l': made.loop = loop(item); break;
        case 'f':
            made.place = nb::cast<std::size_t>(item);
            if (made.place >= many_) throw std::invalid_argument("got no such function");
            break;
        case 't': made.type = type_of(item); break;
        case 'x': made.text = text_of(item); break;
        case 'q': {
            const auto query = QUERIES.find(text_of(item));
            made.query = query == QUERIES.end() ? Query::OTHER : query->second;
            break;
        }
        case 'a': made.assigned = assigned(item); break;
        case 'p': made.parts.push_back(operation(item)); break;
        case 'b': made.parts.emplace_back().parts = several(item); break;
        case 'm': made.parts = several(item); break;
        }
    }

    // Takes the counters of a loop: of each its variable, its type, the number that changes it, a factor or a sign, and
    // whether that comes behind the body.
    void fill_counters(Operation &made, const nb::object &counters) {
        for (nb::handle one : counters) {
            made.parts.push_back(operation(nb::object(one[2])));
            made.counts_turns = made.counts_turns || asks_for_turns(made.parts.back());
            const nb::object how = one[3];
            const bool is_sum = !nb::isinstance<nb::str>(how);
            made.counters.push_back({slot(nb::object(one[0])), type_of(nb::object(one[1])),
                                     is_sum ? '+' : text_of(how).at(0), is_sum ? whole(how) : Wide(1),
                                     nb::cast<bool>(nb::object(one[4]))});
        }
    }

    static bool asks_for_turns(const Operation &op) {
        return op.rule == Rule::TURNS || std::any_of(op.parts.begin(), op.parts.end(), asks_for_turns);
    }

    int loop(nb::handle given) {
        const int number = nb::cast<int>(given);
        if (number > 1 << 20) throw std::invalid_argument("got no loop");
        if (number >= 0) to_.loops_ = std::max(to_.loops_, std::size_t(number) + 1);
        return number;
    }

    static int type_of(nb::handle given) {
        const int type = given.is_none() ? 0 : nb::cast<int>(given);
        if (type < -64 || type > 64) throw std::invalid_argument("got a type of more than 64 bits");
        return type;
    }

    Outline &to_;
    const std::size_t many_;
    int depth_ = 0;
};

Outline::Outline(nb::handle functions) { OutlineReader(*this, functions); }

}  // namespace acs_cl::access
