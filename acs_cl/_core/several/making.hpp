// Launches on several devices that come again: the parts of a launch, and copies from one device to another. What stays
// the same is looked up once. acs_cl/several/engine.py and copies.py make them, under the runtime's lock. They return
// numbers as `Prepared` does.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "launch/prepared.hpp"
#include "python/waiting.hpp"
#include "several/clock.hpp"
#include "several/coherence.hpp"

namespace acs_cl {

// Launches that are made together, none of which touches what another one writes: the parts of a launch, or all of it
// on each device.
class Together {
public:
    struct One {
        nb::object held;  // keeps `launch`, whatever becomes of the list that it came in
        const Prepared &launch;
        int device;
        std::vector<Span> needs, writes;
    };

    explicit Together(std::vector<One> launches) : launches_(std::move(launches)) {}

    // Returns the copies that they need, and notes that these are made.
    std::vector<Parcel> bring(Coherence &coherence, const Links &links, std::int64_t prefetch) const {
        std::vector<Parcel> found;
        for (const One &one : launches_)
            for (const Span &span : one.needs) coherence.bring(span, one.device, links, prefetch, found);
        return found;
    }
    bool has_all(const Coherence &coherence) const {
        for (const One &one : launches_)
            for (const Span &span : one.needs)
                if (!coherence.is_there(span, one.device)) return false;
        return true;
    }

    // Makes them from the one at `first` on, up to one that no lane took, and returns the number of the last one, as
    // `Prepared` does. What that one writes is not noted here, since it may be refused. `took_us`: how long each takes.
    std::int64_t launch(std::size_t first, Coherence &coherence, Clock &clock, const std::vector<Queues *> &lanes,
                        double now_us, const std::vector<double> &took_us) const {
        std::int64_t number = 0;
        for (std::size_t at = first; at < launches_.size(); at++) {
            const One &one = launches_[at];
            Queues &queues = *lanes.at(std::size_t(one.device));
            const double start_us = queues.in_flight() ? std::max(clock.free_us(one.device), now_us) : now_us;
            number = one.launch.launch(queues);
            if (number < 0) break;
            for (const Span &span : one.writes) coherence.written(span, one.device);
            clock.runs(one.writes, one.device, start_us, took_us.at(at), number);
        }
        return number;
    }

private:
    std::vector<One> launches_;
};

// The memory at one end of a copy: the driver's handle of a buffer and an offset, or an address.
struct DevicePlace {
    void *memory;
    std::size_t offset;
};

// Memory of the host that a copy goes through.
class Stage {
public:
    Stage(PythonHazards &hazards, std::uintptr_t start, nb::handle span)
        : start(reinterpret_cast<void *>(start)), held_(hazards) {
        if (!held_.add(span_of(span.ptr()), true)) throw std::invalid_argument("expected memory of the host");
    }
    Node *node() const { return held_.touched.nodes[0]; }

    void *const start;

private:
    Held held_;
};

// A copy from one device to another one: a read into memory of the host, and a write from there.
class Crossing {
public:
    Crossing(PythonHazards &hazards, bool is_svm, DevicePlace source, DevicePlace target, std::size_t nbytes, nb::handle read,
             nb::handle written)
        : hazards_(hazards), reads_(hazards), writes_(hazards), is_svm_(is_svm), source_(source), target_(target), nbytes_(nbytes) {
        if (!reads_.add(span_of(read.ptr()), false) || !writes_.add(span_of(written.ptr()), true))
            throw std::invalid_argument("expected memory of devices");
    }

    // Whether launches may be under way that use the memory at either end.
    bool is_used() const {
        return hazards_.is_used(reads_.touched.nodes[0]->span().base) ||
               hazards_.is_used(writes_.touched.nodes[0]->span().base);
    }

    // Launches the read and, unless no lane took that, the write behind it. Returns the number of the last one.
    std::int64_t launch(Queues &from, Queues &to, const Stage &stage, nb::object read_command, nb::object write_command) const {
        const std::int64_t number = read(from, stage, std::move(read_command));
        return number < 0 ? number : write(to, stage, std::move(write_command), from, number);
    }
    // Launches the read. `command` makes its record, if that is needed.
    std::int64_t read(Queues &queues, const Stage &stage, nb::object command) const {
        static PyObject *const name = PyUnicode_InternFromString("read");
        Touched touched = reads_.touched;
        touched.add(stage.node(), false, true);
        touched.overwrites = true;
        Transfer one{is_svm_ ? Transfer::SVM_COPY : Transfer::READ, source_.memory, stage.start, source_.offset, 0,
                     nbytes_, {}};
        if (is_svm_) one.source = static_cast<char *>(one.source) + one.from;
        Queues::Waited waited;  // so that it has an event
        waited.may_block = false;
        const bool may_make = queues.table()->may_make();
        const bool is_on_lane = queues.launch(touched, one, name, nullptr, &waited, command, nullptr, may_make);
        const HeldEvent given(waited.event);
        return made(queues, is_on_lane);
    }

    // Launches the write behind the read, which is launch `number` of `from` unless it has ended.
    std::int64_t write(Queues &queues, const Stage &stage, nb::object command, Queues &from, std::int64_t number) const {
        static PyObject *const name = PyUnicode_InternFromString("write");
        Touched touched;
        touched.add(stage.node(), true, false);
        touched.add(writes_.touched.nodes[0], false, true);
        touched.overwrites = true;
        Transfer one{is_svm_ ? Transfer::SVM_COPY : Transfer::WRITE, stage.start, target_.memory, 0, target_.offset,
                     nbytes_, {}};
        one.is_upload = true;
        if (is_svm_) one.target = static_cast<char *>(one.target) + one.to;
        std::int32_t failed = 0;
        const HeldEvent read(from.event_to_wait_for(number));
        const HeldEvent behind(read.event ? driver.create_user_event(queues.context(), &failed) : nullptr);
        if (behind.event) bridge(read.event, behind.event);
        const bool may_make = queues.table()->may_make() && !read.event == !behind.event;
        return made(queues, queues.launch(touched, one, name, nullptr, nullptr, command, nullptr, may_make, behind.event));
    }

private:
    PythonHazards &hazards_;
    Held reads_, writes_;
    bool is_svm_;
    DevicePlace source_, target_;
    std::size_t nbytes_;
};

}  // namespace acs_cl
