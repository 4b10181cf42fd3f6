// The index for Python: spans and edges are Python objects.

#pragma once

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "hazards/hazards.hpp"
#include "hazards/touched.hpp"
#include "python/nb.hpp"

namespace acs_cl {

inline PyObject *kinds[KINDS];  // names of the kinds of edges, for the life of the process

class PythonHazards : public Hazards {
public:
    nb::object enter(std::int64_t number, nb::handle reads, nb::handle writes) {
        return told(check(number, reads, writes));
    }

    nb::object enter_many(std::int64_t first, nb::handle accesses) {
        std::vector<Band> bands;
        for (PyObject *access : Items(accesses.ptr())) {
            Band &band = bands.emplace_back();
            if (!take(PyTuple_GET_ITEM(access, 0), band.reads) ||
                !take(PyTuple_GET_ITEM(access, 1), band.writes))
                throw std::invalid_argument("what may touch any memory is not cut into bands");
        }
        nb::list found;
        for (const std::vector<Edge> &edges : Hazards::enter_many(first, bands))
            found.append(told({edges.data(), edges.size()}));
        return found;
    }

    std::vector<std::int64_t> sharers(nb::handle reads, nb::handle writes) {
        if (!take(reads, writes)) throw std::invalid_argument("what may touch any memory shares bytes with all");
        return Hazards::sharers(read_, written_);
    }

    // Returns the edges of a launch that Python made, or the core.
    Edges check(std::int64_t number, nb::handle reads, nb::handle writes) {
        return take(reads, writes) ? Hazards::enter(number, read_, written_) : enter_barrier(number);
    }
    Edges check(std::int64_t number, const Touched &touched) {
        Node *reads[MOST_SPANS], *writes[MOST_SPANS];
        std::size_t many_read = 0, many_written = 0;
        std::uint32_t read_too = 0;
        for (std::uint32_t at = 0; at < touched.many; at++) {
            Node *node = touched.nodes[at];
            if (!has(*node)) node = this->node(node->span()).get();
            const std::uint32_t is_read = touched.reads >> at & 1;
            if (is_read) reads[many_read++] = node;
            if (!(touched.writes >> at & 1)) continue;
            read_too |= is_read << many_written;
            writes[many_written++] = node;
        }
        return Hazards::enter(number, {reads, many_read}, {writes, many_written}, read_too);
    }

    // Measures the nanoseconds of launches from inside, the first of them `number`. Each is checked, and then the
    // one that came `window` before retires.
    double measure(std::int64_t number, nb::handle accesses, std::int64_t window) {
        std::vector<Touched> launches;
        std::vector<NodePointer> held;  // as arrays do
        for (PyObject *access : Items(accesses.ptr())) {
            Touched &one = launches.emplace_back();
            for (int written = 0; written < 2; written++)
                for (PyObject *span : Items(PyTuple_GET_ITEM(access, written))) {
                    held.push_back(node(span_of(span)));
                    one.add(held.back().get(), !written, written);
                }
        }
        auto started = std::chrono::steady_clock::now();
        for (const Touched &touched : launches) {
            check(number, touched);
            retire(number++ - window);
        }
        std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - started;
        return took.count();
    }

    // The caller has merged the spans.
    std::unique_ptr<Footprint> footprint(nb::handle reads, nb::handle writes,
                                         const Footprint *before) {
        return Hazards::footprint(spans_of(reads), spans_of(writes), before);
    }

    nb::object enter_footprint(std::int64_t number, Footprint &footprint) {
        return told(Hazards::enter_footprint(number, footprint));
    }

    void move(Footprint &footprint, std::int64_t base, nb::handle spans) {
        std::vector<std::pair<Span, bool>> moved;
        for (nb::handle item : spans) {
            auto [span, written] = nb::cast<std::pair<nb::object, bool>>(item);
            moved.emplace_back(span_of(span.ptr()), written);
        }
        Hazards::move(footprint, base, moved);
    }

    // Returns how many neighbours a launch on a span looks at.
    std::size_t looks_at(nb::handle span) { return node(span_of(span.ptr()))->near.size(); }

    nb::object users(std::int64_t base) {
        return nb::tuple(nb::cast(Hazards::users(base)));
    }

    nb::object counted() {
        nb::dict counted;
        for (int kind = 0; kind < KINDS; kind++)
            counted[nb::handle(kinds[kind])] = nb::int_(edges[kind]);
        return counted;
    }

    static std::vector<Span> spans_of(nb::handle objects) {
        std::vector<Span> spans;
        for (PyObject *object : Items(objects.ptr())) spans.push_back(span_of(object));
        return spans;
    }

private:
    // Takes the nodes of spans. False: one of them is all memory.
    bool take(nb::handle objects, std::vector<Node *> &nodes) {
        for (PyObject *object : Items(objects.ptr())) {
            const Span span = span_of(object);
            if (span.base == EVERYTHING) return false;
            nodes.push_back(node(span).get());
        }
        return true;
    }

    bool take(nb::handle reads, nb::handle writes) {
        read_.clear();
        written_.clear();
        return take(reads, read_) && take(writes, written_);
    }

    static nb::object told(Edges found) {
        nb::object told = nb::steal(PyDict_New());
        if (!told.is_valid()) throw PythonError();
        for (const Edge &edge : found) {
            nb::object upstream = nb::steal(PyLong_FromLongLong(edge.upstream));
            if (!upstream.is_valid() ||
                PyDict_SetItem(told.ptr(), upstream.ptr(), kinds[edge.kind]))
                throw PythonError();
        }
        return told;
    }

    std::vector<Node *> read_, written_;
};

}  // namespace acs_cl
