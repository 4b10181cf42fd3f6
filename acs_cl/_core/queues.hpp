// Queues of one device and what is in flight on them: the twin of acs_cl/backends/{serial,
// out_of_order,lanes}.py, which say what each does. `serial` is lanes, one of them.
//
// Kernel commands are set and enqueued here, through the loader that PyOpenCL has loaded. Every
// other command, and whatever the driver refuses, goes by the command's own `enqueue` in Python,
// which knows every case and raises PyOpenCL's errors.
//
// A caller holds the runtime's lock. The GIL is let go around what may block: a flush, and the
// enqueue behind so many launches that the driver's queue may be full.

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include <nanobind/nanobind.h>

namespace acs_cl {

// The functions of the driver that are called, in the order in which `open_driver` takes them.
struct Driver {
    std::int32_t (*set_argument)(void *, std::uint32_t, std::size_t, const void *);
    std::int32_t (*set_svm_argument)(void *, std::uint32_t, const void *);
    std::int32_t (*enqueue)(void *, void *, std::uint32_t, const std::size_t *,
                            const std::size_t *, const std::size_t *, std::uint32_t,
                            void *const *, void **);
    std::int32_t (*event_info)(void *, std::uint32_t, std::size_t, void *, std::size_t *);
    std::int32_t (*release_event)(void *);
    std::int32_t (*flush)(void *);
    std::int32_t (*kernel_info)(void *, std::uint32_t, std::size_t, void *, std::size_t *);
    void *(*create_kernel)(void *, const char *, std::int32_t *);
    std::int32_t (*release_kernel)(void *);
};

void open_driver(const std::vector<std::uintptr_t> &functions);

// Python's classes, by what an argument or a command is.
struct Classes {
    nanobind::object svm, memory, local, sampler, kernel_command;
};

// A kernel of the driver's that nobody else sets arguments of, so that those which stay the same
// need not be set again. It keeps what they refer to alive: OpenCL does not.
class QueueKernel {
public:
    explicit QueueKernel(std::uintptr_t like);
    ~QueueKernel();
    QueueKernel(const QueueKernel &) = delete;
    QueueKernel &operator=(const QueueKernel &) = delete;

    static QueueKernel *of(nanobind::handle kernel);
    void *get() const { return kernel_; }
    // False where an argument is of no known kind, or the driver refuses it.
    bool set_memory(PyObject *indices_and_objects, const Classes &classes);
    bool set_values(PyObject *indices_and_bytes);

private:
    nanobind::object &slot(std::size_t index);

    void *kernel_;
    std::vector<nanobind::object> slots_;  // what each argument was set from; none: not known
};

// Launches in flight by number.
class Flying {
public:
    struct Entry {
        std::int64_t number = 0;  // 0: nobody
        void *event = nullptr;
        PyObject *owner = nullptr;  // Python's event, where that keeps host memory alive
        std::uint32_t lane = 0;
    };

    Flying() : table_(64) {}
    std::size_t size() const { return size_; }
    Entry *find(std::int64_t number);
    void add(const Entry &entry);
    void remove(Entry *entry);
    std::vector<Entry> clear();

private:
    std::size_t home(std::int64_t number) const {
        return std::size_t(std::uint64_t(number) * 0x9E3779B97F4A7C15u >> 32) & (table_.size() - 1);
    }

    std::vector<Entry> table_;
    std::size_t size_ = 0;
};

class Queues {
public:
    // `event`: makes Python's event of the driver's, and whether to retain it.
    Queues(nanobind::list queues, bool out_of_order, bool profiling, nanobind::tuple classes,
           nanobind::object event);
    ~Queues() { forget(); }

    void submit(nanobind::handle launch, nanobind::handle behind);
    nanobind::object event(std::int64_t number);
    nanobind::object oldest();
    nanobind::list poll(std::size_t most);
    nanobind::list poll_up_to(std::int64_t number);
    void flush();
    void forget();

    std::size_t in_flight() const { return flying_.size(); }
    nanobind::list used() const;
    std::int64_t waits = 0;

private:
    struct Lane {
        void *queue;
        nanobind::object python;
        std::deque<std::int64_t> queued;  // launches in flight, in the order of submission
        std::int64_t used = 0;
        bool unflushed = false;
    };
    struct Ended {
        Flying::Entry entry;
        std::int32_t status;
    };

    std::size_t choose();
    void start(Lane &lane);
    void *enqueue(Lane &lane, PyObject *command);
    std::int32_t status(const Flying::Entry &entry) const;
    bool collect_heads(std::size_t most);
    void collect(Lane &lane, std::size_t most);
    nanobind::list ended();
    void release(const Flying::Entry &entry);

    std::vector<Lane> lanes_;
    bool out_of_order_, profiling_;
    Classes classes_;
    nanobind::object event_;
    Flying flying_;
    std::size_t latest_ = 0;
    std::vector<Flying::Entry> upstream_;  // of the launch being submitted, in flight
    std::vector<void *> wait_for_;
    std::vector<Ended> ended_;
};

}  // namespace acs_cl
