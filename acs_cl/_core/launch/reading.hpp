// Reads that the program waits for at once: a launch of the core's own and the wait for it, in one
// call. acs_cl/calls.py says when.

#pragma once

#include <utility>

#include "driver/queues.hpp"
#include "launch/arguments.hpp"
#include "python/waiting.hpp"
#include "table/ends.hpp"

namespace acs_cl {

// Waits for a read of the core's own into `host` by its event, which is given back, and has what ended
// told. Whether it ended well. Where a signal's handler raises meanwhile, the driver still has the
// memory, which lives until then.
inline bool wait_for(Queues &queues, nb::handle engine, std::int64_t number, void *event,
                     nb::handle host) {
    struct Given {
        void *event;
        ~Given() { driver.release_event(event); }
    } given{event};
    queues.flush_for(number);
    if (wait_for_event(event) == Wait::RAISED) {
        queues.keep(number, host);
        throw PythonError();
    }
    bool has_ended_well = !event_status(event);
    Table &table = *queues.table();
    if (table.lock->try_take()) {
        Taken taken(table.lock);
        nb::list ended = queues.poll_up_to(number);
        if ((ended.size() || table.has_ready() || !table.is_simple()) &&
            !completed(engine.ptr(), ended.ptr()))
            throw PythonError();
    }
    return has_ended_well;
}

// True: `host` has the values of `array`, which is in one piece. False: the driver has failed. None:
// it is no plain read, and nothing has changed. A number: it is a launch, and has to be waited for.
inline nb::object read_now(Queues &queues, nb::handle engine, nb::handle array, nb::handle host) {
    static PyObject *const name = PyUnicode_InternFromString("read");
    Table *table = queues.table();
    View *view = view_of(array.ptr());
    if (!table || !table->is_plain() || !view || view->engine != engine.ptr()) return nb::none();
    struct Buffer {
        Py_buffer view = {};
        ~Buffer() { PyBuffer_Release(&view); }
    } to;
    if (PyObject_GetBuffer(host.ptr(), &to.view, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE)) {
        PyErr_Clear();  // a type of elements that buffers do not have
        return nb::none();
    }
    nb::object place = nb::borrow(view->place);
    if (!PyTuple_Check(place.ptr())) return nb::none();
    From from{PyTuple_GET_ITEM(place.ptr(), 0), nb::cast<std::size_t>(place[1]), to.view.buf,
              std::size_t(to.view.len)};
    if (to.view.len != view->nbytes) return nb::none();
    if (!from.find(queues.classes())) return nb::none();
    Node *node = view->node_in(*table->hazards);
    if (!node) return nb::none();
    Touched touched;
    touched.add(node, true, false);
    void *event = nullptr;
    std::int64_t number = 0;
    {
        // again, for whoever made the buffer may have run code
        if (!table->is_plain() || !table->lock->try_take()) return nb::none();
        Taken taken(table->lock);
        bool is_on_queue = queues.launch(touched, from, event, name, [&] {
            return nb::object(queues.classes().read(host, place));
        });
        number = table->number;
        if (!is_on_queue) {
            if (!completed(engine.ptr(), nullptr, number)) throw PythonError();
            return nb::int_(number);
        }
    }
    bool has_ended_well = wait_for(queues, engine, number, event, host);
    if (table->should_look() && !completed(engine.ptr(), nullptr)) throw PythonError();
    return nb::bool_(has_ended_well);
}

}  // namespace acs_cl
