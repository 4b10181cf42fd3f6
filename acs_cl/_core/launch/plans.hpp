// The launch plan of a kernel: its parameters, the bytes that it reaches, and where its launches may go.
// acs_cl/plans.py makes it.

#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "driver/queues.hpp"
#include "launch/binder.hpp"
#include "launch/cuts.hpp"
#include "launch/declared.hpp"
#include "launch/reach.hpp"

namespace acs_cl {

constexpr std::size_t MOST_SIZES = 4096, MOST_PARAMETERS = 64, MOST_NEEDED = 64;
constexpr std::size_t MOST_BLOB = 1024;  // as epochs.MOST_ARGS_BYTES

// A thing that may be replaced or forgotten while it is in use: when the GIL is given away, or Python is called. It
// then goes with its last use.
template <typename What>
class Forgettable {
public:
    struct Use : Single {
        What &what;
        explicit Use(What &used) : what(used) { what.users_++; }
        ~Use() {
            if (!--what.users_ && what.is_forgotten_) delete &what;
        }
    };
    bool is_used() const { return users_; }
    bool is_forgotten() const { return is_forgotten_; }
    static void forget(What *what) {
        if (what && what->is_used()) what->is_forgotten_ = true;
        else delete what;
    }

private:
    int users_ = 0;
    bool is_forgotten_ = false;
};

constexpr int TURNS = 4;  // sizes of a kernel that a program may launch in turn

// Values by the sizes of launches. The sizes of the latest requests are found at once.
template <typename Value>
class BySizes {
public:
    Value *find(const Sizes &sizes) {
        const std::uint64_t mixed = sizes[1] * 0x9E3779B97F4A7C15u + sizes[2] * 0xC2B2AE3D27D4EB4Fu +
                                    sizes[3] * 0x165667B19E3779F9u + sizes[5] * 0xD6E8FEB86659FD93u +
                                    sizes[9] * 0xA0761D6478BD642Fu;
        std::pair<const Sizes, Value> *&latest = latest_[mixed >> 32 & (TURNS - 1)];
        if (!latest || !are_alike(latest->first, sizes)) {
            auto found = known_.find(sizes);
            latest = found == known_.end() ? nullptr : &*found;
        }
        return latest ? &latest->second : nullptr;
    }

    // Returns the value of these sizes, and makes one if needed.
    Value &make(const Sizes &sizes) {
        if (known_.size() >= MOST_SIZES) {
            latest_ = {};
            known_.clear();
        }
        return known_[sizes];
    }

private:
    std::map<Sizes, Value> known_;
    std::array<std::pair<const Sizes, Value> *, TURNS> latest_ = {};
};

// How launches of one axis are cut into tiles: into as few groups more as there would be too many tiles otherwise.
struct Tiling {
    std::uint32_t least = 0;  // work-items of a tile at least; 0: it is not known
    std::uint32_t group = 0, most_tiles = 0;
    std::uint32_t limit = 0;  // with more tiles, Python decides
};

// The part that records of one size share in one scheduler, without arguments.
struct Head {
    nb::object scheduler;
    std::uint64_t version = new_version();  // no other head ever has it, and this one has another when it changes
    std::uint64_t arena_bytes = 0;  // all local memory
    RecordWords words{};
    std::optional<std::string> shape;
    Tiling tiling;

    // Becomes the head of a launch of so many work-items on one axis. False: Python has to make that.
    bool resize(std::uint64_t items) {
        if (!tiling.least || shape || items >= std::uint64_t(1) << 31) return false;
        const std::uint64_t most = std::uint64_t(tiling.most_tiles) * tiling.group;
        const std::uint64_t tile = std::max<std::uint64_t>(tiling.least, (items + most - 1) / most * tiling.group);
        const std::uint64_t tiles = (items + tile - 1) / tile;
        words[TILES] = std::uint32_t(tiles);
        words[ITEMS] = std::uint32_t(items);
        words[TILE_ITEMS] = std::uint32_t(tile);
        version = new_version();
        return tiles <= tiling.limit;
    }

    // The GIL is held.
    static std::uint64_t new_version() {
        static std::uint64_t newest = 0;
        return ++newest;
    }
};

// How long launches go to lanes before Python decides again: as in acs_cl/launch/backend.py.
struct Lease {
    std::int64_t launches = -1;  // how many more; below 0: no limit
    std::int64_t last = 0;       // the last launch of the lease; 0: no limit
    nb::object reason;
    std::uint64_t items = NO_ITEMS;  // work-items from which on it is for sizes that nobody has seen, too

    static constexpr std::uint64_t NO_ITEMS = std::uint64_t(1) << 63;
    bool takes_new(const Sizes &size) const {
        double many = 1;  // it cannot overflow
        for (std::size_t axis = 1; axis <= size[0]; axis++) many *= double(size[axis]);
        return items != NO_ITEMS && many >= double(items);
    }

    bool lasts(const Table &table) const { return launches && !(last && table.number >= last); }
    void use() { launches -= launches > 0; }
};

// Launches of one size.
struct Sized {
    std::list<Head> heads;  // one for each scheduler that takes them; their own scheduler comes first
    bool on_lanes = false;  // lanes take them
    bool is_tried = false;  // there was such a launch, so that heads and lanes are known
    std::size_t rounded = 0;  // the first global size of such launches with a count up to it; 0: lanes take none
    CutPlans cuts;
    Reaches reaches;

    const Head *in(PyObject *scheduler) const {
        for (const Head &one : heads)
            if (one.scheduler.ptr() == scheduler) return &one;
        return nullptr;
    }
    // Returns the head for a scheduler, and makes one if needed. `is_home`: that is their own scheduler.
    Head &make(nb::object scheduler, bool is_home) {
        auto found = std::find_if(heads.begin(), heads.end(),
                                  [&](const Head &one) { return one.scheduler.is(scheduler); });
        if (found == heads.end()) {
            found = heads.emplace(heads.end());
            found->scheduler = std::move(scheduler);
        }
        if (is_home) heads.splice(heads.begin(), heads, found);  // this moves no head in memory
        return *found;
    }
};

// What records of a kernel have in common in all schedulers.
struct ToEpoch {
    std::size_t blob_bytes;     // of all arguments
    std::uint64_t local_bytes;  // local memory of the kernel itself
    Addresses addresses;
};

// What a kernel needs on lanes: their queues, and its variants. After its own parameters, one for arrays that start
// inside their buffers takes the first byte of each, then one for `when=` takes the word that decides, and then one for
// `acs_cl.size` takes the word with the count, what that may be, and where it is stored if it is wrong.
struct ToLanes {
    Queues *queues = nullptr;  // the kernel holds it
    KernelVariant variants[2][2][2];  // by whether arrays start inside buffers, by `when=`, and by counts
    std::uint64_t starts = 0;  // bits of the parameters whose first byte is taken; 0: no such variant is known
    bool by_address = false;
    Lease lease;

    bool takes_start(std::size_t parameter) const { return starts >> parameter & 1; }
};

// The count of a launch on a lane.
struct CountedBy {
    Flag count;
    Allowed allowed;
    std::optional<std::size_t> word;  // for a wrong one
};

// What a launch on a lane takes besides its arguments: whether an array starts inside its buffer, and what decides. Null:
// nothing does.
struct Besides {
    bool is_inside = false;
    const Flag *flag = nullptr;
    const CountedBy *counted = nullptr;
};

inline std::string_view bytes_of(const std::uint64_t &number) { return {reinterpret_cast<const char *>(&number), 8}; }
inline std::string_view bytes_of(const std::uint32_t &number) { return {reinterpret_cast<const char *>(&number), 4}; }

// Takes the arguments of a launch for a driver's kernel. Functions return false if the driver refuses one.
struct ToKernel {
    QueueKernel *kernel;
    const Classes &classes;

    bool value(std::size_t index, std::string_view bytes) { return kernel->set_value(index, bytes); }
    // `address`: where it is, or none.
    bool object(std::size_t index, PyObject *object, std::optional<std::uint64_t> address) {
        return address ? kernel->set_address(index, *address, object) : kernel->set_memory(index, object, classes);
    }
};

// Takes them for a record: indices, each with its argument.
struct ToRecord {
    nb::list objects, values;

    bool value(std::size_t index, std::string_view bytes) {
        values.append(index);
        values.append(nb::bytes(bytes.data(), bytes.size()));
        return true;
    }
    bool object(std::size_t index, PyObject *object, std::optional<std::uint64_t>) {
        objects.append(index);
        objects.append(nb::handle(object));
        return true;
    }
};

// A kernel for queues, and the kinds of the arguments that it takes.
struct ByKinds {
    std::string kinds;
    KernelVariant kernel;
    static constexpr std::size_t MOST = 4;
};

// The launch plan. Arguments are bound in one way for epochs and for lanes: each has a place among bytes. If a
// scheduler has the kernel, that is its place in a record.
struct LaunchPlan : Forgettable<LaunchPlan> {
    // Points to the plan until that is gone, for those that hold neither the plan nor its kernel.
    const std::shared_ptr<LaunchPlan *> place = std::make_shared<LaunchPlan *>(this);
    nb::object name;
    Table *table;  // the kernel holds it
    std::uint64_t generation;
    std::vector<Parameter> parameters;
    std::size_t end = HEAD_BYTES;  // of the arguments' bytes
    Owned<Binder> binder;  // the kernel's binder, if it or the program knows which bytes launches reach
    std::optional<ToEpoch> epoch;
    bool knows_records = false;  // a scheduler has the kernel
    bool overwrites = false;     // launches may overwrite some of their parameters
    ToLanes lanes;
    std::vector<ByKinds> queued;  // for commands of an `acs.Queue`
    bool is_cut = false;  // some launches go in bands
    std::optional<access::Launched::Three> required;  // the local size of launches that give none
    BySizes<Sized> sizes;
    std::vector<Sizes> groups;  // local sizes that fit the device and the kernel, without global ones
    std::vector<std::pair<Sizes, std::list<Head>>> like;  // by local size: heads of launches of one axis

    LaunchPlan(nb::handle with, nb::object called)
        : name(std::move(called)), table(nb::cast<Table *>(with)), generation(table->generation) {}
    ~LaunchPlan() { *place = nullptr; }

    bool is_current() const { return !is_forgotten() && generation == table->generation; }

    // Takes the sizes of a launch, and its offset. None: it has none.
    bool take_sizes(PyObject *global, PyObject *local, PyObject *offset, Sizes &to) {
        return take_sizes(global, local, to) && take_offset(offset, to);
    }
    // Does so without an offset. A loop often gives the same tuples as before, which nobody can change.
    bool take_sizes(PyObject *global, PyObject *local, Sizes &to) {
        Given &before = given_[reinterpret_cast<std::uintptr_t>(global) / 64 & (TURNS - 1)];
        if (global == before.global.ptr() && local == before.local.ptr()) return to = before.sizes, true;
        if (!acs_cl::take_sizes(global, local, to)) return false;
        if (local == Py_None) require(to);
        if (PyList_CheckExact(global) || PyList_CheckExact(local)) return true;
        before = {nb::borrow(global), nb::borrow(local), to};
        return true;
    }

    // Takes the sizes of a launch with a count, and the count's array. `size`: the `acs_cl.size` in its global size.
    bool take_counted(PyObject *size, PyObject *global, PyObject *local, PyObject *offset, Sizes &to,
                      nb::object &count) const {
        static PyObject *const count_name = PyUnicode_InternFromString("count");
        static PyObject *const upto_name = PyUnicode_InternFromString("upto");
        count = nb::steal(PyObject_GetAttr(size, count_name));
        const nb::object upto = nb::steal(PyObject_GetAttr(size, upto_name));
        if (!count.is_valid() || !upto.is_valid()) return PyErr_Clear(), false;
        if (!take_counted_sizes(global, upto.ptr(), local, to)) return false;
        if (local == Py_None) require(to);
        return take_offset(offset, to);
    }

    // Makes what is known of launches of new sizes, if a driver can have these and Python need not decide about them.
    // Null: it has to.
    Sized *make_new(const Sizes &size) {
        if (is_cut || !fits(size)) return nullptr;
        std::list<Head> heads = heads_of_new(size);
        if (heads.empty() && !lanes.lease.takes_new(size)) return nullptr;
        Sized &made = sizes.make(size);
        made.heads = std::move(heads);
        return &made;
    }
    // Keeps what holds for launches of other global sizes, too.
    void learn_from(const Sizes &size, const Sized &known) {
        constexpr std::size_t MOST = 64;
        if (groups.size() == MOST) return;
        const Sizes own = group_of(size);
        if (std::find(groups.begin(), groups.end(), own) == groups.end()) groups.push_back(own);
        if (size[0] != 1 || known.heads.empty() || !known.heads.front().tiling.least) return;
        auto found = std::find_if(like.begin(), like.end(), [&](const auto &one) { return one.first == own; });
        if (found == like.end()) found = like.insert(like.end(), {own, {}});
        found->second = known.heads;
    }

    // Ends the lease if a launch that no lane took went to a scheduler. The next one then goes through Python, too,
    // from which the plan knows the scheduler.
    void is_back(std::int64_t launch) {
        if (table->epoch(launch)) lanes.lease.launches = 0;
    }

    bool has_local() const {
        return std::any_of(parameters.begin(), parameters.end(),
                           [](const Parameter &one) { return one.code == 'L'; });
    }

    // Whether the program declares ranges. Python evaluates them, once for the same sizes, numbers and lengths.
    bool is_told() const { return binder && binder->is_told; }

    // Narrows whole arrays to the bytes that a launch touches, and returns what it reaches. Null: that is not known, as
    // for new ranges that the program declares, and for those of several rows. `leaves`: set if Python has to
    // say that the launch leaves one of its arrays.
    Reach *narrow(Sized &size, const Sizes &sizes, const char *bytes, PyObject *const *args, Touched &touched,
                  bool &leaves) const {
        if (!binder) return nullptr;
        if (is_told())
            for (const Binder::Needed &one : binder->numbers)
                if (one.code == 'P' && own(args, one.parameter).rows > 1) return nullptr;
        char values[8 * MOST_NEEDED];
        const std::string_view key = numbers(bytes, args, values);
        Reach *reach = size.reaches.find(key);
        if (!reach) reach = new_reach(size, key, sizes, bytes, args, touched);
        if (!reach || reach->is_for_python) return nullptr;
        const bool are_inside = reach->narrow(touched, *table->hazards);
        leaves = !(size.is_tried && are_inside) && leaves_array(*reach, args, size.is_tried);
        return reach;
    }

    // Does the same for each band of a launch. False: the bytes are unknown, or two bands write the same ones. The
    // launch then stays whole.
    bool share_out(CutPlan &cut, const char *bytes, const Touched &touched, std::vector<Touched> &shares) const {
        if (!binder) return false;
        char values[8 * MOST_NEEDED];
        const std::string_view key = numbers(bytes, nullptr, values);
        std::vector<const Node *> written;
        shares.reserve(cut.bands.size());
        for (BandPlan &band : cut.bands) {
            Reach *reach = band.reaches.find(key);
            if (!reach) {
                std::vector<access::Outcome> outcomes;
                for (access::Launched box : band.boxes) {
                    put_numbers(box, bytes, nullptr);
                    std::optional<access::Outcome> reached = binder->reach_part(box);
                    if (!reached) return false;
                    outcomes.push_back(std::move(*reached));
                }
                reach = &band.reaches.make(key, reach_of(outcomes));
            }
            Touched &own = shares.emplace_back(touched);
            reach->narrow(own, *table->hazards);
            const std::size_t before = written.size();
            for (std::uint32_t at = 0; at < own.many; at++)
                if (own.writes >> at & 1 &&
                    std::find(written.begin() + std::ptrdiff_t(before), written.end(), own.nodes[at]) == written.end())
                    written.push_back(own.nodes[at]);
        }
        std::sort(written.begin(), written.end());
        return std::adjacent_find(written.begin(), written.end()) == written.end();
    }

    // Makes the reach for new sizes and numbers. Null: too many others were made, or Python has to.
    Reach *new_reach(Sized &size, std::string_view key, const Sizes &sizes, const char *bytes, PyObject *const *args,
                     const Touched &views) const {
        access::Launched launch = launched_of(sizes);
        put_numbers(launch, bytes, args);
        Binder::Known *known = binder->reach(launch);
        if (!known) return nullptr;
        Binder::Views told;
        for (std::uint32_t at = 0; at < views.many; at++) told.push_back(views.nodes[at]->span());
        binder->access(*known, told);
        return &size.reaches.make(key, reach_of({known->reached}));
    }

    // Returns what the parts of a launch with these outcomes reach together.
    Reach reach_of(const std::vector<access::Outcome> &outcomes) const {
        Reach made;
        std::size_t spans = 0;
        for (std::size_t index = 0; index < parameters.size(); index++) {
            const Parameter &one = parameters[index];
            if (!one.is_memory()) continue;
            Part reads(std::in_place), writes(std::in_place);
            for (const access::Outcome &outcome : outcomes) {
                const access::Reached &reached = binder->reached_of(outcome, index);
                add_to(reads, part_of(!one.read || reached.is_whole, reached.reads));
                add_to(writes, part_of(!one.written || reached.is_whole, reached.writes));
                spans += reached.is_whole ? 1 : reached.reads.size() + reached.writes.size();
                if (!is_told() || reached.is_whole) continue;
                const auto bit = [&](bool is_set) { return std::uint64_t(is_set) << index; };
                const bool are_all = reached.overwritten.size() == reached.writes.size();
                made.told |= bit(true);
                made.writes |= bit(!reached.writes.empty());
                made.overwrites |= bit(are_all);
                made.is_for_python |= !are_all && !reached.overwritten.empty();
            }
            const bool is_one = outcomes.size() == 1 && !is_told();
            const access::Reached &sure = is_one ? binder->reached_of(outcomes[0], index) : access::WHOLE;
            made.add(std::move(reads), std::move(writes), sure.surely_read, sure.surely_written);
        }
        made.is_for_python |= is_told() && spans >= MOST_SPANS;  // leaves room for the word that decides
        return made;
    }

    // Whether a launch surely leaves one of its arrays. `is_tried`: Python has seen launches of these sizes. Then only a
    // write counts that leaves the memory, too, of which the array is a view.
    bool leaves_array(const Reach &reach, PyObject *const *args, bool is_tried) const {
        std::size_t at = 0;
        for (std::size_t index = 0; index < parameters.size(); index++) {
            if (!parameters[index].is_memory()) continue;
            const auto &[read, written] = reach.surely(at++);
            const View *view = view_of(args[index]);
            if (!view || !view->base || view->span.base <= 0) continue;  // memory that the program allocated
            if (!is_tried && read.outside(view->span)) return true;
            if (!written.outside(view->span)) continue;
            if (!is_tried) return true;
            const nb::object nbytes = nb::steal(PyObject_GetAttrString(view->base, "nbytes"));
            const long long whole = nbytes.is_valid() ? PyLong_AsLongLong(nbytes.ptr()) : -1;
            if (whole < 0) PyErr_Clear();
            else if (written.outside({view->span.base, 0, whole, 1, whole}, view->offset)) return true;
        }
        return false;
    }

    static const Span &own(PyObject *const *args, std::size_t at) { return reinterpret_cast<View *>(args[at])->span; }

    // Returns the place of a number among the bytes of a launch.
    std::size_t at(const Binder::Needed &number) const { return parameters[number.parameter].at + number.offset; }

    // Puts what ranges depend on: numbers, and the lengths of arguments where a program declares theirs.
    void put_numbers(access::Launched &launch, const char *bytes, PyObject *const *args) const {
        for (const Binder::Needed &one : binder->numbers)
            launch.numbers[one.place()] = one.code == 'P' ? Wide(own(args, one.parameter).width)
                                                          : number_of(one.code, bytes + at(one));
    }
    // Returns the same as bytes, one behind the other.
    std::string_view numbers(const char *bytes, PyObject *const *args, char *values) const {
        std::size_t many = 0;
        for (const Binder::Needed &one : binder->numbers) {
            const std::size_t nbytes = number_bytes(one.code);
            if (one.code == 'P') put(values + many, own(args, one.parameter).width);
            else std::memcpy(values + many, bytes + at(one), nbytes);
            many += nbytes;
        }
        return {values, many};
    }

    // Returns the driver's object for an argument in memory. `are_views`: arguments are arrays.
    PyObject *driven(std::size_t at, PyObject *const *args, bool are_views) const {
        if (!are_views || parameters[at].code != 'P') return args[at];
        return reinterpret_cast<View *>(args[at])->driven();  // which it has since it was taken
    }

    // Gives all arguments of a launch on a lane, in the order of the kernel's parameters, until one is refused. Returns
    // whether none is.
    template <typename To>
    bool give(To &to, const char *bytes, PyObject *const *args, bool are_views, const Besides &besides) const {
        for (std::size_t at = 0; at < parameters.size(); at++) {
            const Parameter &one = parameters[at];
            std::optional<std::uint64_t> address;
            if (are_views && one.code == 'P' && lanes.by_address) address = reinterpret_cast<View *>(args[at])->address;
            const bool is_given = one.is_object() ? to.object(at, driven(at, args, are_views), address)
                                                  : to.value(at, {bytes + one.at, one.nbytes});
            if (!is_given) return false;
        }
        std::size_t next = parameters.size();
        for (std::size_t at = 0; besides.is_inside && at < parameters.size(); at++) {
            if (!lanes.takes_start(at)) continue;
            const View *view = reinterpret_cast<View *>(args[at]);
            const std::uint64_t start = view->is_inside ? view->address : 0;
            if (!to.value(next++, bytes_of(start))) return false;
        }
        const CountedBy *const counted = besides.counted;
        for (const Flag *cell : {besides.flag, counted ? &counted->count : nullptr}) {
            if (!cell) continue;
            const auto address = lanes.by_address ? std::optional(cell->address) : std::nullopt;
            if (!to.object(next, cell->memory, address)) return false;
            if (!to.value(next + 1, bytes_of(cell->offset))) return false;
            next += 2;
        }
        if (!counted) return true;
        const Counts::Word &fault = lanes.queues->counts.word(*counted->word);
        return to.value(next, bytes_of(counted->allowed.upto)) && to.value(next + 1, bytes_of(counted->allowed.group)) &&
               to.object(next + 2, fault.memory.ptr(), fault.address);
    }

    // Sets the arguments of a driver's kernel. False: the driver refuses one.
    bool set(QueueKernel *kernel, const char *bytes, PyObject *const *args, bool are_views, const Besides &besides) const {
        ToKernel to{kernel, lanes.queues->classes()};
        return give(to, bytes, args, are_views, besides);
    }

    // Makes a `commands.KernelCommand` of such a launch. `lane`: why it has to go to a lane; null: it need not. `offset`:
    // null for that of the sizes.
    nb::object command(nb::handle kernel, const Sizes &size, const char *bytes, PyObject *const *args, bool are_views,
                       const Besides &besides, nb::handle offset, const nb::object &lane) const {
        ToRecord to;
        give(to, bytes, args, are_views, besides);
        const nb::object &type = lanes.queues->classes().command;
        const nb::object start = offset.is_valid() ? nb::borrow(offset) : numbers_at(&size[8]);
        const nb::tuple first = nb::make_tuple(name, kernel, numbers_at(&size[0]), numbers_at(&size[4]),
                                               nb::tuple(to.objects), nb::tuple(to.values), start);
        return lane.is_valid() ? type(*first, nb::none(), nb::none(), lane) : type(*first);
    }

private:
    // Fills in the local size that the kernel requires.
    void require(Sizes &to) const {
        if (!required) return;
        to[4] = to[0];
        for (std::size_t axis = 0; axis < to[0]; axis++) to[axis + 5] = std::size_t((*required)[axis]);
    }

    static Sizes group_of(const Sizes &size) { return {0, 0, 0, 0, size[4], size[5], size[6], size[7]}; }

    // Whether the local size is known to fit, and divides the global one.
    bool fits(const Sizes &size) const {
        if (!size[4]) return true;
        for (std::size_t axis = 1; axis <= size[0]; axis++)
            if (size[axis] % size[axis + 4]) return false;
        return std::find(groups.begin(), groups.end(), group_of(size)) != groups.end();
    }

    // Returns the heads of launches of a new size. Empty: they are not known.
    std::list<Head> heads_of_new(const Sizes &size) const {
        for (const auto &[group, heads] : like) {
            if (size[0] != 1 || size[8] || group != group_of(size)) continue;
            std::list<Head> made;
            for (const Head &one : heads) {
                made.push_back(one);
                if (!made.back().resize(size[1])) made.pop_back();
                if (made.empty()) break;  // their own scheduler does not take them
            }
            return made;
        }
        return {};
    }

    // Python's numbers of a size; None where there are none.
    static nb::object numbers_at(const std::size_t *from) {
        nb::list made;
        for (std::size_t at = 1; at <= from[0]; at++) made.append(from[at]);
        return from[0] ? nb::object(nb::tuple(made)) : nb::object(nb::none());
    }

    // Sizes as a program gave them.
    struct Given {
        nb::object global, local;
        Sizes sizes;
    };

    std::array<Given, TURNS> given_;
};

}  // namespace acs_cl
