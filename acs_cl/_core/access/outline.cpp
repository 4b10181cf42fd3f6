#include "access/outline.hpp"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <stdexcept>
#include <string_view>

namespace acs_cl::access {

namespace {

constexpr int DEEPEST = 250;  // most operations within one another

const std::map<std::string_view, Rule> RULES = {
    {"k", Rule::CONSTANT}, {"s", Rule::SLOT}, {"?", Rule::UNKNOWN}, {"a", Rule::ARGUMENT},
    {"c", Rule::CAST}, {"b", Rule::BINARY}, {"neg", Rule::NEGATIVE}, {"~", Rule::COMPLEMENT},
    {"cmp", Rule::COMPARE}, {"!", Rule::NOT}, {"and", Rule::AND}, {"or", Rule::OR},
    {"?:", Rule::CHOICE}, {"mm", Rule::EXTREME}, {"clamp", Rule::CLAMP}, {"24", Rule::PRODUCT24}, {"q", Rule::QUERY},
    {",", Rule::SEQUENCE}, {"p", Rule::PARAMETER}, {"+", Rule::MOVED}, {"in", Rule::INSIDE},
    {"r", Rule::TOUCH}, {"w", Rule::TOUCH}, {"rw", Rule::TOUCH}, {"rng", Rule::TOUCH_SEVERAL},
    {"esc", Rule::ESCAPE}, {"=", Rule::ASSIGN}, {"new", Rule::NEW}, {"post", Rule::POST}, {"if", Rule::IF},
    {"loop", Rule::LOOP}, {"again", Rule::AGAIN}, {"switch", Rule::SWITCH}, {"case", Rule::CASE},
    {"maybe", Rule::MAYBE}, {"return", Rule::RETURN}, {"leave", Rule::LEAVE}, {"call", Rule::CALL},
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
        const auto found = RULES.find(name);
        if (found == RULES.end()) throw std::invalid_argument("got an unknown operation: " + name);
        Operation made;
        made.rule = found->second;
        fill(made, name, given);
        depth_--;
        return made;
    }

    void fill(Operation &made, const std::string &name, nb::handle given) {
        const auto item = [&](int at) { return nb::object(given[at]); };
        const auto part = [&](int at) { made.parts.push_back(operation(item(at))); };
        const auto type = [&](int at) { made.type = type_of(item(at)); };
        switch (made.rule) {
        case Rule::CONSTANT: made.number = whole(item(1)); break;
        case Rule::SLOT: made.place = slot(item(1)); break;
        case Rule::UNKNOWN: type(1); break;
        case Rule::PARAMETER: made.place = nb::cast<std::size_t>(item(1)); break;
        case Rule::ARGUMENT: made.place = nb::cast<std::size_t>(item(1)), type(2); break;
        case Rule::CAST: case Rule::NEGATIVE: case Rule::COMPLEMENT: type(1), part(2); break;
        case Rule::BINARY: case Rule::EXTREME:
            made.text = text_of(item(1)), type(2), part(3), part(4);
            break;
        case Rule::COMPARE: made.text = text_of(item(1)), part(2), part(3); break;
        case Rule::NOT: case Rule::RETURN: part(1); break;
        case Rule::AND: case Rule::OR: part(1), part(2); break;
        case Rule::CHOICE: case Rule::IF: part(1), part(2), part(3); break;
        case Rule::PRODUCT24: type(1), part(2), part(3); break;
        case Rule::CLAMP: type(1), part(2), part(3), part(4); break;
        case Rule::QUERY: {
            const auto query = QUERIES.find(text_of(item(1)));
            made.query = query == QUERIES.end() ? Query::OTHER : query->second;
            part(2), type(3);
            break;
        }
        case Rule::SEQUENCE: made.parts = several(given, 1); break;
        case Rule::MOVED: part(1), part(2), made.number = whole(item(3)); break;
        case Rule::INSIDE: part(1), made.number = whole(item(2)); break;
        case Rule::TOUCH: made.text = name, part(1), made.number = whole(item(2)); break;
        case Rule::TOUCH_SEVERAL:
            made.text = text_of(item(1)), part(2), part(3), made.number = whole(item(4));
            break;
        case Rule::ESCAPE: part(1), made.text = text_of(item(2)); break;
        case Rule::ASSIGN: case Rule::NEW: case Rule::POST:
            made.place = slot(item(1)), part(2);
            break;
        case Rule::LOOP: fill_loop(made, given); break;
        case Rule::AGAIN: made.assigned = assigned(item(1)); break;
        case Rule::SWITCH:
            part(1), made.assigned = assigned(item(2));
            made.parts.push_back(block(item(3)));
            break;
        case Rule::MAYBE: made.assigned = assigned(item(1)), made.parts = several(item(2)); break;
        case Rule::CALL:
            made.place = nb::cast<std::size_t>(item(1));
            made.parts = several(item(2)), type(3);
            if (made.place >= many_) throw std::invalid_argument("got no such function");
            break;
        case Rule::CASE: case Rule::LEAVE: break;
        }
    }

    // Takes its parts: the condition, the body, the step, and by how much the counter moves.
    void fill_loop(Operation &made, nb::handle given) {
        const auto item = [&](int at) { return nb::object(given[at]); };
        made.assigned = assigned(item(1));
        made.parts.push_back(operation(item(2)));
        made.parts.push_back(block(item(3)));
        made.parts.push_back(operation(item(4)));
        const nb::object counter = item(5);
        if (counter.is_none()) return;
        made.parts.push_back(operation(nb::object(counter[2])));
        made.induction = Induction{slot(nb::object(counter[0])), type_of(nb::object(counter[1])),
                                   nb::cast<int>(nb::object(counter[3]))};
    }

    Operation block(nb::handle given) {
        Operation made;
        made.parts = several(given);
        return made;
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
