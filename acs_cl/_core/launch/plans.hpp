// What kernels were taught: the ways that launches of them take, and what is known of their sizes.

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "driver/queues.hpp"
#include "launch/arguments.hpp"
#include "launch/reach.hpp"

namespace acs_cl {

constexpr std::size_t MOST_SIZES = 4096, MOST_NUMBERS = 4096, MOST_PARAMETERS = 64;
constexpr std::size_t MOST_BLOB = 1024;  // as epochs.MOST_ARGS_BYTES

// What is known of a kernel. While the GIL is given up, or Python is called, others may teach the
// kernel anew, or have it forget: then it goes with its last use.
template <typename What>
class Forgettable {
public:
    struct Use {
        What &what;
        explicit Use(What &used) : what(used) { what.users_++; }
        ~Use() {
            if (!--what.users_ && what.is_forgotten_) delete &what;
        }
        Use(const Use &) = delete;
        Use &operator=(const Use &) = delete;
    };
    bool is_used() const { return users_; }
    static void forget(What *what) {
        if (what && what->is_used()) what->is_forgotten_ = true;
        else delete what;
    }

private:
    int users_ = 0;
    bool is_forgotten_ = false;
};

// One of the ways that launches of a kernel take.
struct Route {
    nb::object name;
    Table *table;  // which the caller holds, as the queues
    std::uint64_t generation;
    std::vector<Parameter> parameters;

    Route(nb::handle with, nb::object called)
        : name(std::move(called)), table(nb::cast<Table *>(with)), generation(table->generation) {}

    Home home(PyObject *engine) const { return {engine, *table->hazards}; }
    bool is_new() const { return generation == table->generation; }

    void add(const std::string &code, std::size_t at, const std::string &mode) {
        auto has = [&](char one) { return mode.find(one) != std::string::npos; };
        parameters.push_back({code[0], at, has('r'), has('w')});
    }
};

// Things that are known of some sizes; the last ones that were asked for are found at once.
template <typename Value>
class BySizes {
public:
    Value *find(const Sizes &sizes) {
        if (!last_ || last_->first != sizes) {
            auto found = known_.find(sizes);
            last_ = found == known_.end() ? nullptr : &*found;
        }
        return last_ ? &last_->second : nullptr;
    }

    // The value of these sizes, new or not.
    Value &make(const Sizes &sizes) {
        if (known_.size() >= MOST_SIZES) {
            last_ = nullptr;
            known_.clear();
        }
        return known_[sizes];
    }

private:
    std::map<Sizes, Value> known_;
    std::pair<const Sizes, Value> *last_ = nullptr;
};

// What records of one size have in common; no arguments.
struct Head {
    RecordWords words{};
    std::optional<std::string> shape;
};

// Into the open epoch of a scheduler.
struct ToScheduler : Route {
    using Route::Route;

    nb::object scheduler;
    std::size_t blob_bytes = 0;  // of all arguments
    Arena arena{};
    Addresses addresses;
    BySizes<Head> heads;

    bool has_local() const {
        return std::any_of(parameters.begin(), parameters.end(),
                           [](const Parameter &one) { return one.code == 'L'; });
    }
    bool may_launch() const { return is_new() && table->takes(scheduler.ptr()); }
};

// What launches of one size touch on queues, by the numbers that this depends on.
struct OnQueues {
    std::map<std::string, Reach> reaches;
    std::pair<const std::string, Reach> *last = nullptr;
};

// How long launches go to queues before Python decides again.
struct Stay {
    std::int64_t left = -1;  // launches until then; below 0: all
    std::int64_t until = 0;  // the last launch that it is not asked about; 0: none
    nb::object reason;

    bool lasts(const Table &table) const { return left && !(until && table.number >= until); }
    void use() { left -= left > 0; }
};

// To the queues of a host backend.
struct ToQueues : Route, Forgettable<ToQueues> {
    using Route::Route;

    nb::object kernel_object, gated_object;
    Queues *queues = nullptr;
    QueueKernel *kernel = nullptr, *gated = nullptr;  // as it is; the variant for `when=`
    bool by_address = false;
    std::optional<std::vector<std::uint16_t>> numbers;  // parameters that ranges depend on, if any do
    Stay stay;
    BySizes<OnQueues> known;

    std::string key(const char *values) const {
        std::string key;
        for (std::uint16_t index : *numbers) key.append(values + 8 * index, 8);
        return key;
    }

    // From all of a launch's arrays to what it touches of them; false where that is not known.
    bool narrow(OnQueues &size, const char *values, PyObject *const *args, Touched &touched) const {
        if (!numbers) return true;
        std::string key = this->key(values);
        if (!size.last || size.last->first != key) {
            auto known = size.reaches.find(key);
            size.last = known == size.reaches.end() ? nullptr : &*known;
        }
        if (!size.last) return false;
        Reach &reach = size.last->second;
        if (is_covered(reach, args)) return true;
        const Touched *found = reach.find(touched, *table->hazards);
        if (found) touched = *found;
        return found;
    }

    bool is_covered(const Reach &reach, PyObject *const *args) const {
        auto most = reach.covers.begin();
        for (std::size_t at = 0; at < parameters.size(); at++)
            if (parameters[at].code == 'P' && (most == reach.covers.end() ||
                                               reinterpret_cast<View *>(args[at])->nbytes > *most++))
                return false;
        return true;
    }

    // False where the driver refuses one.
    bool set(QueueKernel *kernel, const char *values, PyObject *const *args) const {
        for (std::size_t at = 0; at < parameters.size(); at++) {
            char code = parameters[at].code;
            auto *view = reinterpret_cast<View *>(args[at]);
            bool is_set =
                code == 'L'   ? kernel->set_memory(at, args[at], queues->classes())
                : code != 'P' ? kernel->set_value(at, {values + 8 * at, number_bytes(code)})
                : by_address  ? kernel->set_address(at, view->address, view->argument)
                              : kernel->set_memory(at, view->argument, queues->classes());
            if (!is_set) return false;
        }
        return true;
    }

    // A `commands.KernelCommand` of such a launch.
    nb::object command(PyObject *global, PyObject *local, const char *values, PyObject *const *args,
                       const Flag *flag) const {
        nb::list memory, numbers;
        for (std::size_t at = 0; at < parameters.size(); at++) {
            const char code = parameters[at].code;
            nb::list &turns = code == 'L' || code == 'P' ? memory : numbers;
            turns.append(at);
            if (code == 'L') turns.append(nb::handle(args[at]));
            else if (code == 'P') turns.append(nb::handle(reinterpret_cast<View *>(args[at])->argument));
            else turns.append(nb::bytes(values + 8 * at, number_bytes(code)));
        }
        if (flag) {
            memory.append(parameters.size());
            memory.append(nb::handle(flag->memory));
            numbers.append(parameters.size() + 1);
            numbers.append(nb::bytes(reinterpret_cast<const char *>(&flag->offset),
                                     sizeof(flag->offset)));
        }
        return queues->classes().command(name, flag ? gated_object : kernel_object,
                                         nb::handle(global), nb::handle(local), nb::tuple(memory),
                                         nb::tuple(numbers), nb::none());
    }

    // The same, behind the other parameters of the variant.
    bool set(const Flag &flag) const {
        std::size_t first = parameters.size();
        bool is_set = by_address ? gated->set_address(first, flag.address, flag.memory)
                                 : gated->set_memory(first, flag.memory, queues->classes());
        return is_set && gated->set_value(first + 1, {reinterpret_cast<const char *>(&flag.offset),
                                                      sizeof(flag.offset)});
    }
};

}  // namespace acs_cl
