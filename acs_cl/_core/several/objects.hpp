// Pieces, copies and links for Python, where they are named tuples.

#pragma once

#include <utility>

#include <nanobind/stl/pair.h>

#include "python/nb.hpp"
#include "python/spans.hpp"
#include "several/coherence.hpp"

namespace acs_cl {

inline nb::object object_of(const Piece &piece) {
    static nb::handle type = named_tuple("acs_cl.several.model", "Piece");
    return named(type, nb::make_tuple(piece.base, piece.start, piece.end, piece.devices));
}

inline nb::object object_of(const Parcel &parcel) {
    static nb::handle type = named_tuple("acs_cl.several.model", "Parcel");
    return named(type, nb::make_tuple(parcel.base, parcel.start, parcel.end, parcel.source, parcel.target));
}

inline Links links_of(nb::handle rows) {
    Links found;
    for (PyObject *row : Items(rows.ptr())) {
        found.emplace_back();
        for (PyObject *link : Items(row)) {
            const auto [latency_us, bytes_per_us] = nb::cast<std::pair<double, double>>(nb::handle(link));
            found.back().push_back({latency_us, bytes_per_us});
        }
    }
    return found;
}

// Calls `visit(span)` for the spans of memory that has a number.
template <class Visit> void each_span(nb::handle spans, Visit &&visit) {
    for (PyObject *one : Items(spans.ptr())) {
        const Span span = span_of(one);
        if (span.base > EVERYTHING) visit(span);
    }
}

void add_coherence(nb::module_ &module);
void add_making(nb::module_ &module);

}  // namespace acs_cl
