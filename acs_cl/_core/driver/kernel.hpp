// Kernels for queues: takes arguments and sizes from Python to the driver, through the loader of PyOpenCL.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "launch/sizes.hpp"
#include "python/leftovers.hpp"
#include "python/nb.hpp"

namespace acs_cl {

// The functions of the driver, in the order of `functions` in acs_cl/devices/driver.py.
struct Driver {
    using Info = std::int32_t (*)(void *, std::uint32_t, std::size_t, void *, std::size_t *);
    std::int32_t (*set_argument)(void *, std::uint32_t, std::size_t, const void *);
    std::int32_t (*set_svm_argument)(void *, std::uint32_t, const void *);
    std::int32_t (*enqueue)(void *, void *, std::uint32_t, const std::size_t *,
                            const std::size_t *, const std::size_t *, std::uint32_t,
                            void *const *, void **);
    Info event_info;
    std::int32_t (*release_event)(void *);
    std::int32_t (*flush)(void *);
    Info kernel_info;
    void *(*create_kernel)(void *, const char *, std::int32_t *);
    std::int32_t (*release_kernel)(void *);
    std::int32_t (*marker)(void *, std::uint32_t, void *const *, void **);
    std::int32_t (*read_buffer)(void *, void *, std::uint32_t, std::size_t, std::size_t, void *,
                                std::uint32_t, void *const *, void **);
    std::int32_t (*copy_svm)(void *, std::uint32_t, void *, const void *, std::size_t,
                             std::uint32_t, void *const *, void **);
    std::int32_t (*retain_event)(void *);
    std::int32_t (*wait_for_events)(std::uint32_t, void *const *);
    std::int32_t (*write_buffer)(void *, void *, std::uint32_t, std::size_t, std::size_t,
                                 const void *, std::uint32_t, void *const *, void **);
    Info queue_info, device_info;
    std::int32_t (*copy_buffer)(void *, void *, void *, std::size_t, std::size_t, std::size_t,
                                std::uint32_t, void *const *, void **);
    std::int32_t (*fill_buffer)(void *, void *, const void *, std::size_t, std::size_t, std::size_t,
                                std::uint32_t, void *const *, void **);
    std::int32_t (*fill_svm)(void *, void *, const void *, std::size_t, std::size_t, std::uint32_t,
                             void *const *, void **);
    std::int32_t (*set_event_callback)(void *, std::int32_t, void (*)(void *, std::int32_t, void *),
                                       void *);
    Info memory_info;
    std::int32_t (*set_kernel_info)(void *, std::uint32_t, std::size_t, const void *);
    std::int32_t (*finish)(void *);
    std::int32_t (*set_user_event_status)(void *, std::int32_t);
    void *(*create_user_event)(void *, std::int32_t *);
    Info program_info;
    std::int32_t (*build_info)(void *, void *, std::uint32_t, std::size_t, void *, std::size_t *);
    Info image_info;
};

inline Driver driver;

inline void open_driver(const std::vector<std::uintptr_t> &functions) {
    if (functions.size() * sizeof(functions[0]) != sizeof(driver))
        throw std::invalid_argument("these are not the functions of the driver");
    std::memcpy(&driver, functions.data(), sizeof(driver));
}

// From CL/cl.h.
constexpr std::uint32_t KERNEL_FUNCTION_NAME = 0x1190, KERNEL_PROGRAM = 0x1194, KERNEL_SVM_POINTERS = 0x11B6,
                        EVENT_QUEUE = 0x11D0, EVENT_STATUS = 0x11D3, QUEUE_CONTEXT = 0x1090, QUEUE_DEVICE = 0x1091,
                        DEVICE_TYPE = 0x1000, DEVICE_C_VERSION = 0x103D;
constexpr std::int32_t EVENT_COMPLETE = 0, OUT_OF_RESOURCES = -5;
constexpr std::uint32_t PROGRAM_SOURCE = 0x1164, PROGRAM_BUILD_OPTIONS = 0x1182;
constexpr std::uint64_t DEVICE_IS_CPU = 1 << 1;

inline std::int32_t event_status(void *event) {
    std::int32_t status = 0;
    std::int32_t failed = driver.event_info(event, EVENT_STATUS, sizeof(status), &status, nullptr);
    return failed ? failed : status;
}

// An event of the driver, or null, which is released at the end of the block.
struct HeldEvent : Single {
    explicit HeldEvent(void *of) : event(of) {}
    ~HeldEvent() {
        if (event) driver.release_event(event);
    }

    void *const event;
};

inline void *address(nb::handle number) {
    void *found = PyLong_AsVoidPtr(number.ptr());
    if (!found && PyErr_Occurred()) throw nb::python_error();
    return found;
}

// The Python classes of arguments and of commands.
struct Classes {
    explicit Classes(nb::tuple all)
        : svm(all[0]), memory(all[1]), local(all[2]), sampler(all[3]), command(all[4]),
          transfer(all[5]) {}
    PyTypeObject *local_type() const { return reinterpret_cast<PyTypeObject *>(local.ptr()); }

    nb::object svm, memory, local, sampler, command, transfer;
};

inline bool is_a(nb::handle object, const nb::object &type) {
    return PyObject_TypeCheck(object.ptr(), reinterpret_cast<PyTypeObject *>(type.ptr()));
}

// Tells the driver all allocations that a kernel may reach by pointers in memory. NVIDIA's refuses an empty list.
inline std::int32_t declare_memory(void *kernel, const std::vector<void *> &all) {
    return all.empty() ? 0 : driver.set_kernel_info(kernel, KERNEL_SVM_POINTERS, all.size() * sizeof(all[0]), all.data());
}

// Returns the driver's handle of a PyOpenCL object. Null without an error: it has none.
inline void *handle_of(PyObject *object) {
    static PyObject *name = PyUnicode_InternFromString("int_ptr");
    PyObject *number = PyObject_GetAttr(object, name);
    void *found = number ? PyLong_AsVoidPtr(number) : nullptr;
    Py_XDECREF(number);
    if (PyErr_Occurred()) PyErr_Clear();
    return found;
}

// The driver's memory behind a PyOpenCL object: the handle of a buffer, or an address. Null: the object is neither.
struct DriverMemory {
    void *start = nullptr;
    bool is_svm = false;

    DriverMemory() = default;
    DriverMemory(const Classes &classes, PyObject *object) : is_svm(is_a(object, classes.svm)) {
        static PyObject *const name = PyUnicode_InternFromString("svm_ptr");
        if (!is_svm) {
            if (is_a(object, classes.memory)) start = handle_of(object);
            return;
        }
        const nb::object number = nb::steal(PyObject_GetAttr(object, name));
        if (number.is_valid()) start = PyLong_AsVoidPtr(number.ptr());
        if (PyErr_Occurred()) PyErr_Clear();
    }
};

// The fields of a `commands.KernelCommand`. It is plain if all its sizes have the same one to three dimensions.
struct KernelFields : Single {
    explicit KernelFields(nb::handle command)
        : kernel(field(command, 1)), pointers(field(command, 4)), values(field(command, 5)) {
        nb::handle first = field(command, 6);
        plain = take_sizes(field(command, 2).ptr(), field(command, 3).ptr(), sizes) &&
                (first.is_none() || (take_size(first.ptr(), numbers_, 0) && numbers_[0] == sizes[0]));
        offset = first.is_none() ? nullptr : &numbers_[1];
    }

    nb::handle kernel, pointers, values;
    Sizes sizes;
    const std::size_t *offset;
    bool plain;

private:
    static nb::handle field(nb::handle command, int at) {
        return PyTuple_GET_ITEM(command.ptr(), at);
    }

    std::size_t numbers_[4];
};

// Hashes the program's text, its options except those of OpenCL itself, and the name. What the driver does not tell
// counts as empty. Kernels of the same machine code have the same hash; others may have it, too.
inline std::size_t code_of(void *kernel, void *device) {
    void *program = nullptr;
    driver.kernel_info(kernel, KERNEL_PROGRAM, sizeof(program), &program, nullptr);
    const auto text = [](auto &&ask) {
        std::size_t nbytes = 0;
        std::string found;
        if (ask(std::size_t(0), nullptr, &nbytes) || !nbytes) return found;
        found.resize(nbytes);
        if (ask(nbytes, found.data(), nullptr)) found.clear();
        return found;
    };
    std::string all =
        text([&](auto... into) { return driver.kernel_info(kernel, KERNEL_FUNCTION_NAME, into...); }) + '\n' +
        text([&](auto... into) { return driver.program_info(program, PROGRAM_SOURCE, into...); });
    std::istringstream words(
        text([&](auto... into) { return driver.build_info(program, device, PROGRAM_BUILD_OPTIONS, into...); }).c_str());
    for (std::string word; words >> word;)
        if (word.rfind("-cl-", 0)) all += '\n' + word;
    return std::max<std::size_t>(1, std::hash<std::string>()(all));
}

// A driver's kernel whose arguments nobody else sets. An argument that stays the same is not set again. It keeps the
// memory of its arguments alive, which OpenCL does not.
class QueueKernel : Single {
public:
    // Creates another kernel of the same program and name.
    explicit QueueKernel(void *kernel) {
        void *program = nullptr;
        char name[1024];
        std::int32_t failed =
            driver.kernel_info(kernel, KERNEL_PROGRAM, sizeof(program), &program, nullptr) |
            driver.kernel_info(kernel, KERNEL_FUNCTION_NAME, sizeof(name), name, nullptr);
        if (!failed) kernel_ = driver.create_kernel(program, name, &failed);
        if (failed) throw std::runtime_error("the driver makes no second kernel");
    }
    // Uses the kernel of a Python object itself. Nobody else sets its arguments from now on.
    explicit QueueKernel(nb::object kernel)
        : kernel_(address(kernel.attr("int_ptr"))), adopted_(std::move(kernel)) {}
    ~QueueKernel() {
        if (!adopted_.is_valid()) driver.release_kernel(kernel_);
    }

    // Returns the one that a kernel of acs_cl keeps, made for its first launch. It keeps False if there can be none.
    // Null: there is none, or it is a kernel of others.
    static QueueKernel *of(nb::handle kernel) {
        nb::object kept = nb::getattr(kernel, "queued", nb::borrow(Py_False));
        if (kept.is_none()) {
            try {
                kept = nb::cast(new QueueKernel(address(kernel.attr("int_ptr"))),
                                nb::rv_policy::take_ownership);
            } catch (const std::runtime_error &) {
                kept = nb::borrow(Py_False);
            }
            nb::setattr(kernel, "queued", kept);
        }
        QueueKernel *found = nullptr;
        nb::try_cast(kept, found);
        return found;
    }

    // Sets arguments from tuples of index, argument, index, argument and so on. False: the kind of an argument is
    // unknown, or the driver refuses it.
    bool set(nb::handle pointers, nb::handle values, const Classes &classes) {
        auto each = [](nb::handle turns, auto &&set_one) {
            for (Py_ssize_t at = 0; at + 1 < PyTuple_GET_SIZE(turns.ptr()); at += 2)
                if (!set_one(PyLong_AsUnsignedLong(PyTuple_GET_ITEM(turns.ptr(), at)),
                             nb::handle(PyTuple_GET_ITEM(turns.ptr(), at + 1))))
                    return false;
            return true;
        };
        return each(pointers,
                    [&](std::size_t at, nb::handle one) { return set_memory(at, one, classes); }) &&
               each(values, [&](std::size_t at, nb::handle one) {
                   return PyBytes_CheckExact(one.ptr()) &&
                          set_value(at, {PyBytes_AS_STRING(one.ptr()),
                                         std::size_t(PyBytes_GET_SIZE(one.ptr()))});
               });
    }

    bool set_memory(std::size_t index, nb::handle object, const Classes &classes) {
        Slot &slot = this->slot(index);
        if (slot.memory.is(object)) return true;
        forget(slot);
        std::int32_t failed;
        if (is_a(object, classes.svm)) {
            void *pointer = address(object.attr("svm_ptr"));
            failed = driver.set_svm_argument(kernel_, std::uint32_t(index), pointer);
        } else if (is_a(object, classes.local)) {
            std::size_t nbytes = nb::cast<std::size_t>(object.attr("size"));
            failed = driver.set_argument(kernel_, std::uint32_t(index), nbytes, nullptr);
        } else if (object.is_none()) {
            void *const no_memory = nullptr;
            failed = driver.set_argument(kernel_, std::uint32_t(index), sizeof(no_memory), &no_memory);
        } else if (is_a(object, classes.memory) || is_a(object, classes.sampler)) {
            void *handle = address(object.attr("int_ptr"));
            failed = driver.set_argument(kernel_, std::uint32_t(index), sizeof(handle), &handle);
        } else {
            return false;
        }
        if (!failed) slot.memory = nb::borrow(object);
        return !failed;
    }

    // Sets memory at an address, which `owner` keeps alive.
    bool set_address(std::size_t index, std::uint64_t address, PyObject *owner) {
        Slot &slot = this->slot(index);
        if (slot.memory.is_valid() && slot.address == address) return true;
        forget(slot);
        if (driver.set_svm_argument(kernel_, std::uint32_t(index), reinterpret_cast<void *>(address)))
            return false;
        slot.memory = nb::borrow(owner);
        slot.address = address;
        return true;
    }

    bool set_value(std::size_t index, std::string_view bytes) { return !put_value(index, bytes); }

    // Returns the driver's status, like the functions below.
    std::int32_t put_value(std::size_t index, std::string_view bytes) {
        Slot &slot = this->slot(index);
        if (slot.value == bytes) return 0;
        std::int32_t failed =
            driver.set_argument(kernel_, std::uint32_t(index), bytes.size(), bytes.data());
        slot.value = failed ? "" : bytes;
        return failed;
    }

    std::int32_t put_buffer(std::size_t index, void *buffer, PyObject *owner) {
        Slot &slot = this->slot(index);
        if (slot.memory.is(owner)) return 0;
        forget(slot);
        std::int32_t failed =
            driver.set_argument(kernel_, std::uint32_t(index), sizeof(buffer), &buffer);
        if (!failed) slot.memory = nb::borrow(owner);
        return failed;
    }

    std::int32_t declare(const std::vector<void *> &all) { return declare_memory(kernel_, all); }

    // Stands for the program's text and options, and the name: a driver may have one machine code for all such kernels.
    std::size_t code(void *device) const {
        if (!code_) code_ = code_of(kernel_, device);
        return code_;
    }

    std::int32_t enqueue(void *queue, const Sizes &sizes, const std::vector<void *> &wait_for,
                         void **event, const std::size_t *offset = nullptr) const {
        return driver.enqueue(queue, kernel_, std::uint32_t(sizes[0]), offset, &sizes[1],
                              sizes[4] ? &sizes[5] : nullptr, std::uint32_t(wait_for.size()),
                              wait_for.empty() ? nullptr : wait_for.data(), event);
    }

private:
    struct Slot {
        nb::object memory;
        std::uint64_t address = 0;  // of `memory`; 0: unknown
        std::string value;  // instead of `memory`; neither: nobody knows what is set
    };

    static void forget(Slot &slot) {
        const nb::handle memory = slot.memory.release();
        slot = Slot();
        leftovers::drop(memory.ptr());
    }

    Slot &slot(std::size_t index) {
        if (index >= slots_.size()) slots_.resize(index + 1);
        return slots_[index];
    }

    void *kernel_ = nullptr;
    nb::object adopted_;
    std::vector<Slot> slots_;
    mutable std::size_t code_ = 0;  // 0: not asked yet
};

// A kernel of the driver for some launches of a kernel: its own, or a variant.
struct KernelVariant {
    nb::object object;
    QueueKernel *kernel = nullptr;  // of `object`; null: there is none yet

    void become(nb::object other) {
        kernel = QueueKernel::of(other);
        object = std::move(other);
    }
};

// Enqueues from C, which benchmarks compare with. Each launch has one work-item, its memory and a value, and takes the
// next queue. `events`: each has an event, which is polled and released like in a runtime.
class FromC {
public:
    FromC(std::vector<std::uintptr_t> queues, std::uintptr_t kernel, bool svm,
          std::vector<std::vector<std::uintptr_t>> memory, std::uint32_t value, bool events)
        : queues_(std::move(queues)), memory_(std::move(memory)),
          kernel_(reinterpret_cast<void *>(kernel)), value_(value), svm_(svm), events_(events) {}

    std::int32_t run() const {
        std::int32_t failed = 0;
        std::size_t one = 1, turn = 0;
        for (const auto &launch : memory_) {
            std::uint32_t index = 0;
            for (const std::uintptr_t &memory : launch) {
                auto *pointer = reinterpret_cast<void *>(memory);
                failed |= svm_ ? driver.set_svm_argument(kernel_, index, pointer)
                               : driver.set_argument(kernel_, index, sizeof(memory), &memory);
                index++;
            }
            failed |= driver.set_argument(kernel_, index, sizeof(value_), &value_);
            auto *queue = reinterpret_cast<void *>(queues_[turn++ % queues_.size()]);
            void *event = nullptr;
            failed |= driver.enqueue(queue, kernel_, 1, nullptr, &one, &one, 0, nullptr,
                                     events_ ? &event : nullptr);
            if (event) event_status(event), driver.release_event(event);
        }
        return failed;
    }

private:
    std::vector<std::uintptr_t> queues_;
    std::vector<std::vector<std::uintptr_t>> memory_;
    void *kernel_;
    std::uint32_t value_;
    bool svm_, events_;
};

}  // namespace acs_cl
