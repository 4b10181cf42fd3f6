// Calls of kernels. The type is one of Python's own kind, so that a call needs no descriptor and no tuple. Calls that
// are not plain go to `_call` of the Python class that inherits from it.

#pragma once

#include "launch/declared.hpp"
#include "launch/events.hpp"
#include "launch/plans.hpp"
#include "python/handle.hpp"

namespace acs_cl {

struct Caller {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *engine, *table, *queues;
    LaunchPlan *plan;
    long long forgets;  // how often the plan was forgotten, so that none is made of what held before

    auto objects() { return std::array{&engine, &table, &queues}; }
    void end() { forget(); }
    void forget() {
        forgets++;
        LaunchPlan::forget(std::exchange(plan, nullptr));
    }
};

// Returns a kernel. Raises if the object is none.
Caller *caller(nb::handle object);

// Binds the arguments of a launch, and makes it: as a task of the open epoch, whose arguments go right into its record,
// or on a lane. If a step returns false, nothing has changed, except for the last step.
class Bound {
public:
    LaunchPlan &plan;
    Table &table;
    const Home home;
    Touched touched;
    PyObject *args[MOST_PARAMETERS];

    Bound(LaunchPlan &of, PyObject *engine)
        : plan(of), table(*of.table), home{engine, *table.hazards}, use_(of) {}

    // Begins with the sizes. False: launches of these sizes are unknown. `offset`: None for none. `decides`: with
    // `when=`. `declared`: what it says of the bytes that it touches. `size`: the `acs_cl.size` in the global size, if the
    // device decides about that, or null.
    bool begin(PyObject *global, PyObject *local, PyObject *offset, bool decides,
               const Declared &declared = {nullptr, nullptr}, PyObject *size = nullptr) {
        decides_ = decides;
        declared_ = declared;
        if (!size) return begin(global, local, offset);
        return plan.is_current() && plan.take_counted(size, global, local, offset, sizes_, count_object_) && look_up() &&
               size_->rounded;
    }
    bool counts() const { return count_object_.is_valid(); }
    // Does the same for a PyOpenCL kernel, which has its arguments already. `kernel`: the one for queues.
    bool begin(PyObject *global, PyObject *local, PyObject *offset, const KernelVariant &kernel) {
        variant_ = kernel;
        are_views_ = false;
        return begin(global, local, offset);
    }
    // Whether it may be a task now: of the open epoch, or of one that is opened for its own scheduler.
    bool may_record() {
        if (size_->heads.empty()) return false;
        head_ = size_->in(table.scheduler.ptr());
        if (head_) return table.takes_more();
        if (!table.open_for(size_->heads.front().scheduler) || !look_up()) return false;
        head_ = size_->in(table.scheduler.ptr());
        return head_ && table.takes_more();
    }
    bool may_enqueue() const {
        return plan.is_current() && plan.lanes.lease.lasts(table);
    }
    bool is_on_lanes() const {
        if (counts()) return may_enqueue();
        return size_ && (size_->is_tried ? size_->on_lanes : plan.lanes.lease.takes_new(sizes_)) && may_enqueue();
    }

    // Starts a launch, before its arguments. False: its sizes are no longer known.
    bool start(bool in_epoch) {
        touched = Touched();
        bytes_ = own_;
        in_epoch_ = in_epoch;
        may_start_inside_ = !in_epoch;
        is_inside_ = false;
        if (!in_epoch) return look_up();
        const std::size_t nbytes = plan.epoch->blob_bytes;
        arena_ = {plan.epoch->local_bytes, head_->arena_bytes};
        char *record = table.recorder->place(head_->words);
        if (fits()) {
            bytes_ = record;
        } else {
            std::memset(own_, 0, HEAD_BYTES + nbytes);
            std::memcpy(own_, head_->words.data(), HEAD_BYTES);
        }
        return true;
    }

    // Does the same for a launch in bands, whose records get all arguments at the end.
    bool start(const CutPlan &cut) {
        start(false);
        may_start_inside_ = false;
        in_epoch_ = cut.is_recorded();
        if (!in_epoch_) return look_up();
        arena_ = {plan.epoch->local_bytes, cut.arena_bytes};
        std::memset(own_, 0, HEAD_BYTES + plan.epoch->blob_bytes);
        return look_up();
    }

    bool take(std::size_t at, PyObject *value) {
        const Parameter &parameter = plan.parameters[at];
        args[at] = value;
        if (parameter.code == 'P') {
            const bool may_start_inside = may_start_inside_ && plan.lanes.takes_start(at);
            View *const view = view_of(value);
            if (!take_array(parameter, view, home, bytes_, touched, may_start_inside)) return false;
            is_inside_ |= view->is_inside;
            return in_epoch_ || has_driven(value);
        }
        if (parameter.code != 'L') return put_value(parameter, value, bytes_ + parameter.at);
        return in_epoch_ ? arena_.take(parameter, value, bytes_) : local_bytes(value) > 0;
    }
    // Takes the bytes of all arguments of a PyOpenCL kernel, in their places.
    void take_bytes(const std::string &bytes) { std::memcpy(own_ + HEAD_BYTES, bytes.data(), bytes.size()); }
    // Takes an object of the driver, such as memory. `node`: what it touches, or null. `is_placed`: its first byte is
    // known.
    void take_object(std::size_t at, PyObject *object, Node *node, bool is_placed) {
        args[at] = object;
        const Parameter &one = plan.parameters[at];
        if (node) touched.add(node, one.read, one.written);
        is_narrow_ &= one.is_memory() ? node && (is_placed || one.code == 'M') : !node;
    }
    // Returns the place for the bytes of a number.
    char *place_of(std::size_t at) { return bytes_ + plan.parameters[at].at; }

    // Ends the arguments. `when` is there if it decides.
    bool finish(PyObject *when) {
        const Reach *reach = nullptr;
        const bool is_told = plan.is_told();
        bool leaves = false;
        if (is_narrow_ && (is_told || !counts()))  // with a count the size is not known, so that views count as a whole
            reach = plan.narrow(*size_, sizes_, bytes_, args, touched, leaves);
        if (is_told && !reach) return false;
        if (leaves && !decides_ && !declared_.is_there()) return false;  // Python says how
        if (!size_->is_tried && !counts()) {
            size_->is_tried = !leaves;
            size_->on_lanes = plan.lanes.lease.takes_new(sizes_);
        }
        if (declared_.is_there()) {
            if (!declared_.replace(touched, plan.parameters, args, home, decides_ || counts())) return false;
        } else if (plan.overwrites &&
                   !overwrite(touched, plan.parameters, args, decides_ || counts(), reach)) {
            return false;
        }
        if (!in_epoch_ && are_views_) take_variant();
        if (!in_epoch_ && !variant_.kernel) return false;
        if (decides_ && !(in_epoch_ ? take_flag(when, home, bytes_, touched)
                                    : flag_.take(when, home, plan.lanes.by_address, touched)))
            return false;
        return !counts() || counted_.count.take(count_object_.ptr(), home, plan.lanes.by_address, touched);
    }

    // Takes a word for a wrong count. False: there is none, so that Python makes the launch. The caller has the lock.
    bool take_word() {
        const bool is_signed = view_of(count_object_.ptr())->dtype == flag_types[1];
        counted_.allowed = {std::uint32_t(sizes_[1]), sizes_[4] ? std::uint32_t(sizes_[5]) : 1, is_signed};
        return bool(counted_.word = plan.lanes.queues->take_word());
    }
    void give_word_back() {
        if (counted_.word) plan.lanes.queues->counts.give_back(*counted_.word);
        counted_.word.reset();
    }

    // Enters the launch into the hazards and the open epoch.
    void record() const {
        if (!fits()) std::memcpy(table.recorder->place({}), bytes_, HEAD_BYTES);
        record(head_->shape, bytes_, touched);
    }

    // Whether the forecast expects this launch: by the same call, with the same arrays and numbers. `given`: its
    // arguments. `when`: an array that decides, or null. If so, `touched` is set, and nothing else is needed of it.
    bool is_expected(PyObject *const *given, PyObject *when) {
        const Expected *task = table.forecast.next_counted();
        if (!task || !task->call) return false;
        const Call &call = *task->call;
        if (call.head != head_->version || !size_->is_tried) return false;
        auto array = call.arrays.begin();
        const auto is_next = [&](View *view) {
            return array != call.arrays.end() && view && view->home == home.engine &&
                   view->node_in(home.hazards) == (array++)->get();
        };
        const std::size_t nbytes = task->argument_bytes();
        char bytes[MOST_BLOB];
        std::memcpy(bytes, task->arguments(), nbytes);
        for (std::size_t at = 0; at < plan.parameters.size(); at++) {
            const Parameter &one = plan.parameters[at];
            char *const own = bytes + (one.at - HEAD_BYTES);
            if (one.code != 'P') {
                if (!put_value(one, given[at], own)) return false;
                continue;
            }
            View *view = view_of(given[at]);
            if (!is_next(view) || !one.elements.has(view->dtype) || (one.overwritten && !is_exact(*view)))
                return false;
            put(own, view->address);
        }
        if (std::memcmp(task->arguments(), bytes, nbytes)) return false;
        if (when) {
            View *flag = view_of(when);
            if (!is_next(flag) || !is_flag(flag)) return false;
            char head[HEAD_BYTES];
            std::memcpy(head, head_->words.data(), HEAD_BYTES);
            put_flag(flag->address, head);
            if (std::memcmp(task->head(), head, HEAD_BYTES)) return false;
        }
        if (array != call.arrays.end()) return false;
        touched = table.forecast.followed()->touched(*task);
        touched.overwrites = call.overwrites;
        for (std::uint32_t at = 0; at < touched.many; at++)
            if (!home.hazards.has(*touched.nodes[at])) return false;  // it comes back as another one
        return true;
    }

    // Keeps the call of a launch that was counted, so that the next one like it is known by its call.
    void remember(PyObject *when) const {
        Expected *task = table.forecast.last_counted();
        if (!task || plan.has_local() || !are_exact()) return;
        if (task->call && is_call(*task->call, when)) return;  // only its numbers are others
        std::vector<NodePointer> arrays;
        each_array(when, [&](const NodePointer &node) { return arrays.push_back(node), true; });
        task->call = std::make_shared<const Call>(Call{head_->version, std::move(arrays), touched.overwrites});
    }

    // Returns how launches of these sizes are cut for `said`, the value of `bands=`. None: the default. Null: unknown.
    template <typename MayGo>
    std::shared_ptr<CutPlan> cut(PyObject *said, MayGo &&may_go) const { return size_->cuts.find(said, may_go); }

    // Finds what each band touches, once all arguments are there. False: as for the plan.
    bool share_out(CutPlan &cut, std::vector<Touched> &shares) const {
        return plan.share_out(cut, bytes_, touched, shares);
    }

    // Enters a band into the hazards and the open epoch.
    void record(const CutPlan &cut, const BandPlan &band, const Touched &own) const {
        char *place = table.recorder->place(band.words);
        if (fits()) std::memcpy(place + HEAD_BYTES, own_ + HEAD_BYTES, plan.epoch->blob_bytes);
        record(cut.shape, own_, own);
    }

    // Sets the arguments of the driver's kernel. The caller has the runtime's lock, so that the GIL may be given away
    // while the driver makes it wait.
    bool set() const {
        return plan.set(variant_.kernel, bytes_, args, are_views_, besides());
    }

    // Enters the launch into the hazards, and sends it to a lane. False: no lane took it, and it is in the table. One with
    // a count goes with the upper bound, and it is noted where a wrong count would be found. Only lanes look there, so that
    // it goes to one later, too.
    bool enqueue() {
        ToLanes &lanes = plan.lanes;
        const std::int64_t number = table.number + 1;
        lanes.lease.use();
        if (counts()) {
            sizes_[1] = size_->rounded;
            lanes.queues->counts.note(number, *counted_.word, counted_.allowed);
        }
        const bool is_on_lane = lanes.queues->launch(
            touched, variant_.kernel, sizes_, sizes_[8] ? &sizes_[9] : nullptr, plan.name.ptr(), lanes.lease.reason,
            [&] {
                return plan.command(variant_.object, sizes_, bytes_, args, are_views_, besides(), {},
                                    counts() ? Counts::why_on_lane() : nb::object());
            });
        if (counts()) table.count(number);
        return is_on_lane;
    }

    // Does the same for a band. The bands before it are under way, so it gets into the table whatever happens.
    bool enqueue(const CutPlan &cut, const BandPlan &band, const Touched &own) {
        const KernelVariant &by = band.has_offset() ? cut.with_offset : variant_;
        const bool may_go = table.may_go_on() && plan.set(by.kernel, bytes_, args, true, {});
        return plan.lanes.queues->launch(
            own, may_go ? by.kernel : nullptr, band.sizes, &band.offset[1], plan.name.ptr(), cut.reason, [&] {
                return plan.command(by.object, band.sizes, bytes_, args, true, {}, band.python_offset, cut.reason);
            });
    }

private:
    Besides besides() const { return {is_inside_, decides_ ? &flag_ : nullptr, counts() ? &counted_ : nullptr}; }
    void record(const std::optional<std::string> &with_shape, const char *bytes, const Touched &of) const {
        const std::string_view blob{bytes + HEAD_BYTES, plan.epoch->blob_bytes};
        const std::string_view shape = with_shape ? std::string_view(*with_shape) : "";
        table.launch(fits() ? nullptr : &blob, with_shape ? &shape : nullptr, of, plan.name.ptr(), plan.epoch->addresses);
    }
    bool begin(PyObject *global, PyObject *local, PyObject *offset) {
        if (!plan.is_current() || !plan.take_sizes(global, local, offset, sizes_)) return false;
        look_up();
        if (size_ && size_->is_tried) return true;
        return are_views_ && (size_ = plan.make_new(sizes_));
    }
    // Gives the nodes of its arrays, in order, until the function returns false. Returns whether it never did.
    template <typename Take>
    bool each_array(PyObject *when, Take &&take) const {
        for (std::size_t at = 0; at < plan.parameters.size(); at++)
            if (plan.parameters[at].code == 'P' && !take(view_of(args[at])->node)) return false;
        return !when || take(view_of(when)->node);
    }
    // Whether nothing but its arrays' spans says what it overwrites: a call is known by these.
    bool are_exact() const {
        for (std::size_t at = 0; at < plan.parameters.size(); at++)
            if (plan.parameters[at].overwritten && !is_exact(*view_of(args[at]))) return false;
        return true;
    }
    // Whether the launch is one of this call.
    bool is_call(const Call &call, PyObject *when) const {
        if (call.head != head_->version) return false;
        auto array = call.arrays.begin();
        const auto is_next = [&](const NodePointer &node) { return array != call.arrays.end() && node.get() == (array++)->get(); };
        return each_array(when, is_next) && array == call.arrays.end();
    }
    // Has an array's argument for the driver made. False with an error.
    static bool has_driven(PyObject *array) { return reinterpret_cast<View *>(array)->driven(); }
    // Takes the driver's kernel for the arguments that were taken. While a driver is called without the GIL, another
    // thread may give the plan another one.
    void take_variant() {
        const KernelVariant &now = plan.lanes.variants[is_inside_][decides_][counts()];
        if (variant_.object.is(now.object)) return;
        leftovers::drop(variant_.object.release().ptr());
        variant_ = now;
    }
    bool fits() const { return plan.epoch->blob_bytes <= INLINE_BYTES; }
    bool look_up() { return (size_ = plan.sizes.find(sizes_)); }

    LaunchPlan::Use use_;
    KernelVariant variant_;  // the driver's kernel for this launch
    Sizes sizes_;
    Sized *size_ = nullptr;
    const Head *head_ = nullptr;
    Arena arena_{};
    Flag flag_;
    nb::object count_object_;  // the array with its count; or null
    CountedBy counted_;
    Declared declared_{nullptr, nullptr};
    bool decides_ = false, in_epoch_ = false, are_views_ = true, is_narrow_ = true;
    bool may_start_inside_ = false, is_inside_ = false;
    char *bytes_ = nullptr, own_[HEAD_BYTES + MOST_BLOB];
};

// Launches all bands of a launch, and returns a handle; `made` of them. `asked`: the value of `bands=`, None: the
// default. Null without an error: the core cannot make them by itself, and nothing has changed.
PyObject *launch_bands(Caller *self, PyObject *const *args, std::size_t many, PyObject *asked, std::size_t &made);

void add_caller(nb::module_ &module);
void add_plans(nb::module_ &module);
void add_many(nb::module_ &module);
void add_prepared(nb::module_ &module);

}  // namespace acs_cl
