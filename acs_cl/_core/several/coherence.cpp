// Coherence for Python: spans, pieces and links are named tuples there.

#include "several/coherence.hpp"

#include <nanobind/stl/vector.h>

#include "several/objects.hpp"

namespace acs_cl {

namespace {

std::int64_t field(nb::handle tuple, int index) {
    if (!PyTuple_Check(tuple.ptr()) || PyTuple_GET_SIZE(tuple.ptr()) <= index)
        throw std::invalid_argument("expected a piece");
    return whole_number(PyTuple_GET_ITEM(tuple.ptr(), index));
}

Piece piece_of(nb::handle piece) {
    return {field(piece, 0), field(piece, 1), field(piece, 2), Devices(field(piece, 3))};
}

bool is_there(const Coherence &self, nb::handle spans, int device) {
    bool is = true;
    each_span(spans, [&](const Span &span) { is = is && self.is_there(span, device); });
    return is;
}

// Links are only read if something is missing, which is rare.
nb::list bring(Coherence &self, nb::handle spans, int device, nb::handle links, std::int64_t prefetch) {
    if (is_there(self, spans, device)) return nb::list();
    const Links known = links_of(links);
    std::vector<Parcel> found;
    each_span(spans, [&](const Span &span) { self.bring(span, device, known, prefetch, found); });
    return listed(found);
}

nb::tuple lacking(const Coherence &self, nb::handle spans, int devices) {
    static nb::handle type = named_tuple("acs_cl.several.policies", "Lack");
    nb::list all;
    for (int device = 0; device < devices; device++) {
        nb::list lacks;
        each_span(spans, [&](const Span &span) {
            self.each_missing(span, device, [&](const Piece &piece) {
                lacks.append(named(type, nb::make_tuple(piece.nbytes(), piece.devices)));
            });
        });
        all.append(nb::tuple(lacks));
    }
    return nb::tuple(all);
}

nb::list unwritten(const Coherence &self, nb::handle span) {
    nb::list made;
    for (const Piece &piece : self.unwritten(span_of(span.ptr())))
        made.append(object_of(Span{piece.base, piece.start, piece.nbytes(), 1, piece.nbytes()}));
    return made;
}

}  // namespace

void add_coherence(nb::module_ &module) {
    module.attr("MOST_ROWS") = MOST_ROWS;
    nb::class_<Coherence>(module, "Coherence")
        .def(nb::init<>())
        .def("missing", [](const Coherence &self, nb::handle span, int device) {
            return listed(self.missing(span_of(span.ptr()), device));
        }, "span"_a, "device"_a)
        .def("is_there", &is_there, "spans"_a, "device"_a)
        .def("lacking", &lacking, "spans"_a, "devices"_a)
        .def("bring", &bring, "spans"_a, "device"_a, "links"_a, "prefetch"_a)
        .def("cover", [](const Coherence &self, nb::handle span) {
            return listed(self.cover(span_of(span.ptr())));
        }, "span"_a)
        .def("everywhere", [](const Coherence &self, nb::handle span) {
            return self.everywhere(span_of(span.ptr()));
        }, "span"_a)
        .def("unwritten", &unwritten, "span"_a)
        .def("moved", [](Coherence &self, nb::handle piece, int device) {
            self.moved(piece_of(piece), device);
        }, "piece"_a, "device"_a)
        .def("lost", [](Coherence &self, nb::handle piece, int device) {
            self.lost(piece_of(piece), device);
        }, "piece"_a, "device"_a)
        .def("put", [](Coherence &self, nb::handle piece) { self.put(piece_of(piece)); }, "piece"_a)
        .def("written", [](Coherence &self, nb::handle span, int device) {
            self.written(span_of(span.ptr()), device);
        }, "span"_a, "device"_a)
        .def("settle", &Coherence::settle, "base"_a, "nbytes"_a)
        .def("forget", &Coherence::forget, "base"_a)
        .def("all_of", [](const Coherence &self, std::int64_t base) { return listed(self.all_of(base)); }, "base"_a)
        .def("copy", [](const Coherence &self) { return Coherence(self); })
        .def_prop_ro("bases", &Coherence::bases)
        .def_prop_ro("intervals", &Coherence::intervals);
}

}  // namespace acs_cl
