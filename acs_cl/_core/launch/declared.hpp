// What a program declares, in place of what is inferred: for launches of the core's own, and by `Rest` for records.

#pragma once

#include <algorithm>
#include <vector>

#include "launch/arguments.hpp"
#include "launch/reach.hpp"

namespace acs_cl {

// Whether a view has all bytes of its span, so that nothing is left of them if all elements are written.
inline bool is_exact(const View &view) { return view.span.rows * view.span.width <= view.nbytes; }

// Notes whether a launch overwrites what it writes, for a kernel that declares that of parameters. `decides`: the launch
// may be skipped, and then overwrites nothing. False: it overwrites a part of what it writes, which is left to Python.
// `reach`: what declared ranges are for it; null: there are none.
inline bool overwrite(Touched &touched, const std::vector<Parameter> &parameters, PyObject *const *args, bool decides,
                      const Reach *reach) {
    bool some = false, all = true;
    for (std::size_t at = 0; at < parameters.size(); at++) {
        const bool is_told = reach && reach->told >> at & 1;
        if (is_told ? !(reach->writes >> at & 1) : !parameters[at].written) continue;
        const bool is_sure = is_told ? reach->overwrites >> at & 1
                                     : parameters[at].overwritten && is_exact(*reinterpret_cast<View *>(args[at]));
        some = some || is_sure;
        all = all && is_sure;
    }
    touched.overwrites = some && !decides;
    return all || !touched.overwrites;
}

// What stays of inferred bytes beside those that a program names: all but what lies in arguments of which these are a
// part. What may as well belong to another argument stays, too.
class Rest {
public:
    // Adds bytes that the program names. These come first.
    void name(const Span &span) { named_.push_back(&span); }
    // Adds the spans of an argument, which live as long as this.
    void add(const Span *first, std::size_t many = 1) {
        const bool is_named = std::any_of(first, first + many, [this](const Span &own) { return share(named_, own); });
        for (std::size_t at = 0; at < many; at++) (is_named ? replaced_ : others_).push_back(first + at);
    }
    bool has(const Span &span) const { return !share(replaced_, span) || share(others_, span); }

private:
    static bool share(const std::vector<const Span *> &some, const Span &span) {
        return std::any_of(some.begin(), some.end(),
                           [&](const Span *one) { return one->base == span.base && overlap(*one, span); });
    }

    std::vector<const Span *> named_, replaced_, others_;
};

// `reads=` and `writes=` of a launch.
class Declared {
public:
    // `reads` and `writes`: as the call has them. Null: it has none.
    Declared(PyObject *reads, PyObject *writes) : reads_(reads), writes_(writes) {}

    bool is_there() const { return reads_ || writes_; }

    // Replaces what was inferred. `args`: of each parameter. `decides`: the launch may be skipped, and then overwrites
    // nothing. False: something is left to Python, and what was inferred is as it was.
    bool replace(Touched &touched, const std::vector<Parameter> &parameters, PyObject *const *args,
                 const Home &home, bool decides) const {
        Some some;
        if (!add(reads_, false, home, some) || !add(writes_, true, home, some)) return false;
        for (std::uint32_t at = 0; at < some.many; at++)
            if (some.writes >> at & 1 && !is_written(some.views[at]->span.base, parameters, args)) return false;
        Rest rest;
        for (std::uint32_t at = 0; at < some.many; at++) rest.name(some.views[at]->span);
        for (std::size_t at = 0; at < parameters.size(); at++)
            if (parameters[at].code == 'P') rest.add(&reinterpret_cast<View *>(args[at])->span);
        Touched made;
        for (std::uint32_t at = 0; at < touched.many; at++)
            if (rest.has(touched.nodes[at]->span()))
                made.add(touched.nodes[at], touched.reads >> at & 1, touched.writes >> at & 1);
        if (made.many + some.many >= MOST_SPANS) return false;  // leaves room for the word that decides
        const bool are_all_declared = !made.writes;
        std::uint32_t exact = 0, partly = 0;  // writes that surely end poison, and others
        for (std::uint32_t at = 0; at < some.many; at++) {
            const bool written = some.writes >> at & 1;
            if (written) (is_exact(some, at) ? exact : partly)++;
            made.add(some.nodes[at], !written, written);
        }
        made.overwrites = exact && !decides;
        if (made.overwrites && (partly || !are_all_declared)) return false;
        touched = made;
        return true;
    }

private:
    // The declared views, and their nodes.
    struct Some {
        std::uint32_t many = 0, writes = 0;
        View *views[MOST_SPANS];
        Node *nodes[MOST_SPANS];
    };

    // Adds an array, or those in a list or tuple. False: something is no array in one piece of this runtime.
    static bool add(PyObject *given, bool written, const Home &home, Some &some) {
        if (!given) return true;
        const bool is_list = PyList_CheckExact(given) || PyTuple_CheckExact(given);
        const std::size_t many = is_list ? std::size_t(PySequence_Fast_GET_SIZE(given)) : 1;
        PyObject *const *items = is_list ? PySequence_Fast_ITEMS(given) : &given;
        for (std::size_t at = 0; at < many; at++) {
            View *view = view_of(items[at]);
            Node *node = view && view->engine == home.engine && view->base && view->is_one ? view->node_in(home.hazards)
                                                                                            : nullptr;
            if (!node || some.many == MOST_SPANS) return false;
            some.writes |= std::uint32_t(written) << some.many;
            some.views[some.many] = view;
            some.nodes[some.many++] = node;
        }
        return true;
    }

    // Whether a parameter takes memory of a base to write it. Another one may be const, which Python refuses.
    static bool is_written(std::int64_t base, const std::vector<Parameter> &parameters, PyObject *const *args) {
        for (std::size_t at = 0; at < parameters.size(); at++)
            if (parameters[at].code == 'P' && parameters[at].written &&
                reinterpret_cast<View *>(args[at])->span.base == base)
                return true;
        return false;
    }

    // Whether a declared write surely overwrites its span: the view has all of its bytes, and they are not read.
    static bool is_exact(const Some &some, std::uint32_t at) {
        const View &view = *some.views[at];
        if (!acs_cl::is_exact(view)) return false;
        for (std::uint32_t other = 0; other < some.many; other++)
            if (!(some.writes >> other & 1) && some.views[other]->span == view.span) return false;
        return true;
    }

    PyObject *reads_, *writes_;
};

}  // namespace acs_cl
