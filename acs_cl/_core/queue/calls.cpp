// Commands of an `acs.Queue` that PyOpenCL's own functions make on a lane: images, rectangles, maps, and maps and frees of
// shared memory. Each counts with all bytes of its memory objects. tracking.hpp says what and when.

#include <utility>

#include "queue/tracking.hpp"

namespace acs_cl {

namespace {

constexpr const char *NAMES[] = {"read_image", "write_image", "copy_image", "copy_image_to_buffer",
                                 "copy_buffer_to_image", "fill_image", "read_buffer_rect", "write_buffer_rect",
                                 "copy_buffer_rect", "map", "map", "unmap", "map", "unmap", "free"};
static_assert(std::size(NAMES) == ALL_TRACKED - READ_IMAGE);

PyObject *native_name, *release_name;
PyObject *make_mapped, *await_map, *give_up_map;  // as in `use_maps`

PyObject *name_of(int tracked) {
    static const auto all = [] {
        std::array<PyObject *, std::size(NAMES)> names;
        for (std::size_t at = 0; at < names.size(); at++) names[at] = PyUnicode_InternFromString(NAMES[at]);
        return names;
    }();
    return all[std::size_t(tracked - READ_IMAGE)];
}

// Whether the flags of a map are `map_flags.READ`.
bool is_read_only(PyObject *flags) {
    constexpr std::int64_t MAP_READ = 1;
    std::int64_t found;
    return take_number(flags, 0, found) && found == MAP_READ;
}

// Calls `visit(object, written)` for the memory objects of a call, until it returns false. Returns whether it never did.
template <typename Visit>
bool all_memory(const Form &form, PyObject *const *args, Visit &&visit) {
    const bool only_read = form.flags >= 0 && is_read_only(args[form.flags]);
    for (const auto &[at, written] : {std::pair(form.read, false), std::pair(form.written, !only_read)})
        if (at >= 0 && !visit(args[at], written)) return false;
    return true;
}

// What a call touches.
struct Sides {
    nb::object known[2];  // `Memory` of its objects
    Bytes program;        // the program's memory
    NodePointer nodes[3];
    Touched touched;
    bool blocks = false;

    // Returns false for an unusual call.
    bool bind(Tracker *self, const Form &form, PyObject *const *args) {
        if (form.blocks >= 0 && !take_truth(args[form.blocks], blocks)) return false;
        const bool are_known = all_memory(form, args, [&](PyObject *object, bool written) {
            nb::object &memory = known[written];
            memory = known_memory(self, object);
            Node *node = memory.is_valid() ? memory_in(memory)->node_in(*self->table->hazards) : nullptr;
            if (!node) return false;
            nodes[touched.many] = memory_in(memory)->node;
            touched.add(node, !written, written);
            return true;
        });
        if (!are_known || form.host < 0) return are_known;
        const bool fills_host = form.read >= 0;
        if (!program.take(args[form.host], PyBUF_ANY_CONTIGUOUS | (fills_host ? PyBUF_WRITABLE : 0))) return false;
        NodePointer &host = nodes[touched.many] =
            self->table->hazards->node(interval_at(program.view.buf, program.view.len));
        touched.add(host.get(), !fills_host, fills_host);
        return true;
    }
};

// Calls PyOpenCL's function on another queue, with a wait list. Null with an error.
nb::object call(int tracked, PyObject *original, PyObject *const *args, const nb::object &queue,
                const nb::object &wait_list, bool blocks, PyObject *parameters) {
    const Form &form = FORMS[tracked];
    if (tracked == UNMAP) {
        const nb::object mapped = nb::steal(PyObject_GetAttr(args[form.written], native_name));
        if (!mapped.is_valid()) return {};
        PyObject *const all[] = {mapped.ptr(), queue.ptr(), wait_list.ptr()};
        return nb::steal(PyObject_VectorcallMethod(release_name, all, std::size(all), nullptr));
    }
    PyObject *all[MOST_PLACED], *names[MOST_PLACED];
    std::size_t many = 0, positional = 0;
    for (int at = 0; at < form.all; at++) {
        PyObject *const one = at == form.queue     ? queue.ptr()
                              : at == form.waits  ? wait_list.ptr()
                              : at == form.blocks ? (blocks ? Py_True : Py_False)
                                                  : args[at];
        if (!one) continue;
        if (many == std::size_t(at)) positional++;
        names[many] = PyTuple_GET_ITEM(parameters, at);
        all[many++] = one;
    }
    nb::object keywords;
    if (many > positional) {
        keywords = nb::steal(PyTuple_New(Py_ssize_t(many - positional)));
        if (!keywords.is_valid()) return {};
        for (std::size_t at = positional; at < many; at++)
            PyTuple_SET_ITEM(keywords.ptr(), Py_ssize_t(at - positional), Py_NewRef(names[at]));
    }
    return nb::steal(PyObject_Vectorcall(original, all, positional, keywords.ptr()));
}

// Calls a function of Python with the queue first. Null with an error.
template <typename... Objects>
nb::object ask(Tracker *self, PyObject *function, const Objects &...objects) {
    return nb::steal(PyObject_CallFunctionObjArgs(function, self->queue, objects.ptr()..., nullptr));
}

// A map that was launched. The program gets an array, or the memory is unmapped again. `record()` makes its record.
template <typename Record>
struct Map {
    Tracker *self;
    Sides &sides;
    Launched &launched;
    UnderWay &under_way;
    nb::object event, returned;
    Record record;
    bool is_on_lane;

    nb::object memory() const { return sides.known[sides.touched.writes != 0]; }

    // Null with an error.
    nb::object end() {
        if (!is_on_lane) return awaited();
        bool has_to_wait = false;
        const bool is_well = guarded([&] {
            if (sides.blocks) wait_here(self, launched, under_way, Py_None);
            has_to_wait = std::exchange(launched.settles, false);
            launched.waited = false;  // a bypass that begins now would end with the unmap
            return after(self, launched) && (has_to_wait || !sides.blocks || pretend(self, launched.number_object));
        });
        if (!is_well) {
            const nb::error_scope raised;
            if (!ask(self, give_up_map, record(), memory()).is_valid()) PyErr_Clear();
            return {};
        }
        if (has_to_wait) return awaited();
        return mapped_by(self->queue, returned, nb::steal(told(event, launched)), memory());
    }

private:
    nb::object awaited() {
        return ask(self, await_map, record(), nb::steal(told(event, launched)), memory(), nb::bool_(sides.blocks));
    }
};

}  // namespace

nb::object mapped_by(PyObject *queue, const nb::object &returned, const nb::object &event, const nb::object &memory) {
    return nb::steal(PyObject_CallFunctionObjArgs(make_mapped, queue, returned.ptr(), event.ptr(), memory.ptr(), nullptr));
}

PyObject *track_call(Tracker *self, int tracked, PyObject *original, PyObject *const *args, PyObject *parameters) {
    const Form &form = FORMS[tracked];
    Table &table = *self->table;
    Upstream upstream;
    if (table.lock->is_owned()) return nullptr;  // a finalizer may free memory anywhere in this thread
    if (!is_plain(self) || !take_upstream(self, args[form.waits], upstream)) return nullptr;
    const nb::object lives = nb::borrow(reinterpret_cast<PyObject *>(self));
    Sides sides;
    if (!sides.bind(self, form, args) || (sides.blocks && runs_host_task)) return nullptr;
    PyObject *const kept = form.host >= 0 ? args[form.host] : form.kept >= 0 ? args[form.kept] : Py_None;
    nb::object event = new_event(self, tracked, kept), returned, record;
    if (sides.blocks && self->waits_first) wait_ahead(self, sides.touched);
    Launched launched;
    UnderWay under_way;
    bool is_on_lane;
    const auto made_record = [&] {
        if (!record.is_valid()) record = record_of(tracked, name_of(tracked), original, args);
        if (returned.is_valid()) nb::setattr(record, "returned", returned);
        return record;
    };
    {
        // again, because code may have run that made the event or the bytes
        if (!is_plain(self) || !table.lock->try_take()) return nullptr;
        Taken taken(table.lock);
        const Holding holding(sides.touched);
        self->queues->follow(upstream, watch(self));
        is_on_lane = self->queues->launch_call(
            sides.touched, name_of(tracked), sides.blocks ? &under_way : nullptr,
            [&](const nb::object &queue, const nb::object &wait_list, bool blocks) -> nb::object {
                returned = call(tracked, original, args, queue, wait_list, blocks, parameters);
                if (!returned.is_valid()) return PyErr_Clear(), nb::object();  // Python makes it, and says what is wrong
                return PyTuple_Check(returned.ptr()) ? nb::borrow(PyTuple_GET_ITEM(returned.ptr(), 1)) : returned;
            },
            made_record);
        if (is_on_lane && form.kept >= 0) self->queues->keep(table.number, kept);
        if (!note(self, is_on_lane, true, launched, under_way.event)) return nullptr;
    }
    if (is_map(tracked)) {
        Map<decltype(made_record)> map{self, sides, launched, under_way, event, returned, made_record, is_on_lane};
        return map.end().release().ptr();
    }
    if (sides.blocks) wait_here(self, launched, under_way, kept);
    if (!after(self, launched) || (sides.blocks && !pretend(self, launched.number_object))) return nullptr;
    return told(std::move(event), launched);
}

namespace {

// Binds a call for Python. Returns its name, the kind of its event, and the spans that it reads and writes. `host`: the
// program's memory, or none. Returns none if some of it is no memory.
nb::object bind_call(int tracked, const nb::tuple &args, nb::handle host, nb::handle store) {
    if (tracked < READ_IMAGE || tracked >= ALL_TRACKED || Py_ssize_t(nb::len(args)) != FORMS[tracked].all) return nb::none();
    const Form &form = FORMS[tracked];
    nb::list spans[2];  // read, written
    const Items given(args.ptr());
    const bool are_known = all_memory(form, given.begin(), [&](PyObject *object, bool written) {
        const nb::object memory = memory_of(object, store);
        if (!memory.is_none()) spans[written].append(object_of(memory_in(memory)->span));
        return !memory.is_none();
    });
    Bytes program;
    if (!are_known || (form.host >= 0 && !program.take(host.ptr(), PyBUF_ANY_CONTIGUOUS))) return nb::none();
    if (form.host >= 0) spans[form.read >= 0].append(object_of(interval_at(program.view.buf, program.view.len)));
    return nb::make_tuple(nb::handle(name_of(tracked)), kind_of_event(tracked), nb::tuple(spans[0]), nb::tuple(spans[1]));
}

}  // namespace

void add_calls(nb::module_ &module) {
    module.def("bind_call", bind_call, "tracked"_a, "args"_a, "host"_a.none(), "store"_a);
}

void use_maps(nb::object made, nb::object awaited, nb::object given_up) {
    native_name = PyUnicode_InternFromString("acs_native");
    release_name = PyUnicode_InternFromString("release");
    Py_XSETREF(make_mapped, made.release().ptr());
    Py_XSETREF(await_map, awaited.release().ptr());
    Py_XSETREF(give_up_map, given_up.release().ptr());
}

}  // namespace acs_cl
