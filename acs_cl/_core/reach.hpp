// What launches touch of their arrays, as Python found it: what acs_cl/narrow.py keeps of that. It
// does not depend on which arrays these are, but on where in them their views are.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ledger.hpp"

namespace acs_cl {

constexpr std::size_t MOST_FOUND = 1024;  // accesses of which the spans are kept

// The spans of a launch's arrays by value.
struct Wholes {
    Span spans[MOST_SPANS];
    std::int64_t bases[MOST_SPANS];
    std::uint32_t many, many_bases = 0;

    explicit Wholes(const Touched &touched) : many(touched.many) {
        for (std::uint32_t at = 0; at < many; at++) spans[at] = span_of(touched.spans[at]);
    }

    std::string key() const {
        return {reinterpret_cast<const char *>(spans), many * sizeof(Span)};
    }

    // The first base has number 0 from now on, and so on.
    void number_bases() {
        for (std::uint32_t at = 0; at < many; at++) {
            std::int64_t number = number_of(spans[at].base);
            if (number < 0) bases[number = many_bases++] = spans[at].base;
            spans[at].base = number;
        }
    }

    std::int64_t number_of(std::int64_t base) const {
        for (std::uint32_t at = 0; at < many_bases; at++)
            if (bases[at] == base) return at;
        return -1;
    }
};

// What launches of one size and the same numbers touch.
class Reach {
public:
    std::vector<std::int64_t> covers;  // all of their arrays where each has so many bytes at most

    // What one touches that has the arrays `whole`; null where that is not known. Runs no Python code.
    const Touched *find(const Touched &whole) {
        if (parts_.empty()) return nullptr;
        Wholes wholes(whole);
        auto &found = found_[wholes.key()];
        if (found) return &found->touched;
        std::string key = wholes.key();
        wholes.number_bases();
        auto parts = parts_.find(wholes.key());
        if (parts == parts_.end()) {
            found_.erase(key);
            return nullptr;
        }
        auto made = std::make_unique<Found>(parts->second, wholes, Py_TYPE(whole.spans[0]));
        if (found_.size() > MOST_FOUND) found_.clear();
        return &(found_[key] = std::move(made))->touched;
    }

    // The access that Python found for the arrays `whole`. Whether it was not known.
    bool learn(const Touched &whole, nb::handle access) {
        Wholes wholes(whole);
        wholes.number_bases();
        Parts parts;
        for (int written = 0; written < 2; written++)
            for (nb::handle one : access[written]) {
                Span span = span_of(one.ptr());
                span.base = wholes.number_of(span.base);
                if (span.base < 0 || parts.size() + 1 >= MOST_SPANS) return true;  // one may decide
                parts.emplace_back(span, bool(written));
            }
        return parts_.try_emplace(wholes.key(), std::move(parts)).second;
    }

private:
    using Parts = std::vector<std::pair<Span, bool>>;  // and whether they are written

    // An access with spans of its own.
    struct Found {
        Touched touched;

        Found(const Parts &parts, const Wholes &wholes, PyTypeObject *type) {
            struct Uncollected {  // the collector runs code of others
                int before = PyGC_Disable();
                ~Uncollected() {
                    if (before) PyGC_Enable();
                }
            } uncollected;
            for (const auto &[part, written] : parts)
                touched.add(span_at(part, wholes.bases[part.base], type), !written, written);
        }
        ~Found() { touched.let_go(); }
        Found(const Found &) = delete;
        Found &operator=(const Found &) = delete;

        static PyObject *span_at(const Span &part, std::int64_t base, PyTypeObject *type) {
            nb::object numbers = nb::steal(Py_BuildValue(
                "((LLLLL))", (long long)base, (long long)part.start, (long long)part.pitch,
                (long long)part.rows, (long long)part.width));
            PyObject *made = nullptr;
            if (numbers.is_valid()) made = PyTuple_Type.tp_new(type, numbers.ptr(), nullptr);
            if (!made) throw PythonError();
            return made;
        }
    };

    std::unordered_map<std::string, Parts> parts_;
    std::unordered_map<std::string, std::unique_ptr<Found>> found_;
};

}  // namespace acs_cl
