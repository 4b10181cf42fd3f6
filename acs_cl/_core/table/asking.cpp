// What may be asked of the launch table.

#include "table/table.hpp"

#include <algorithm>
#include <unordered_map>

namespace acs_cl {

nb::list Table::live() {
    tell_apart();
    nb::list numbers;
    rows_.each(-1, [&](std::int64_t number, Row &) { return numbers.append(number), true; });
    return numbers;
}

std::int64_t Table::nth(std::size_t place) {
    std::int64_t found = 0;
    rows_.each(-1, [&](std::int64_t number, Row &row) {
        found = number;
        const std::size_t many = weight(number, row);
        if (place < many) return false;
        place -= many;
        found = 0;
        return true;
    });
    return found;
}

nb::object Table::record_of(std::int64_t launch) {
    if (stands_for(launch) != launch || is_foreseen(launch)) tell_apart();
    const Row *row = rows_.find(launch);
    return row ? record(launch, *row) : nb::none();
}

nb::list Table::later(std::int64_t launch) {
    tell_apart();
    std::vector<std::int64_t> numbers;  // all of them first, because making a record may run any code
    rows_.each(launch, [&](std::int64_t one, Row &) { return numbers.push_back(one), true; });
    nb::list launches;
    for (std::int64_t one : numbers)
        if (const Row *row = rows_.find(one)) launches.append(record(one, *row));
    return launches;
}

std::vector<std::int64_t> Table::blockers(std::int64_t launch) const {
    std::vector<std::int64_t> found;
    for (const auto &[other, waits] : watched_)
        for (const Upstream *list : {&waits.dependants, &waits.waiting_on_host})
            if (std::find(list->begin(), list->end(), launch) != list->end())
                found.push_back(other);
    std::sort(found.begin(), found.end());
    return found;
}

void Table::add_of_queue(std::uint32_t queue, std::int64_t first, std::int64_t last, bool shown,
                         std::vector<std::int64_t> &to) {
    if (shown && !shown_) return;
    rows_.each(first, [&](std::int64_t number, Row &row) {
        if (number <= last && row.owner == queue && (row.is_shown || !shown)) to.push_back(number);
        return number < last;
    });
}

bool Table::shows(std::uint32_t queue, std::int64_t last) {
    bool found = false;
    if (shown_)
        rows_.each(-1, [&](std::int64_t number, Row &row) {
            found = number <= last && row.is_shown && row.owner == queue;
            return !found && number < last;
        });
    return found;
}

std::vector<std::int64_t> Table::of_epoch(std::uint32_t epoch) {
    auto batch = batches_.find(epoch);
    if (batch != batches_.end() && batch->second.numbers.size() == 1 &&
        is_foreseen(batch->second.numbers[0]))
        tell_apart();
    return batch == batches_.end() ? std::vector<std::int64_t>() : batch->second.numbers;
}

nb::dict Table::names(std::uint32_t epoch) const {
    std::unordered_map<PyObject *, std::size_t> many;  // one kernel has one string
    auto batch = batches_.find(epoch);
    if (batch != batches_.end())
        for (std::int64_t launch : batch->second.numbers) {
            const Row *row = rows_.find(launch);
            if (row && row->is_foreseen)
                for (const Expected &task : foreseen_.at(launch).like->tasks) many[task.name]++;
            else if (row && !row->has_record())
                many[row->object]++;
        }
    nb::dict names;
    for (auto [name, count] : many)
        names[name] = nb::cast<std::size_t>(names.attr("get")(nb::handle(name), 0)) + count;
    return names;
}

bool Table::comes_next(std::uint32_t epoch) {
    auto found = batches_.find(epoch);
    if (found == batches_.end() || poisoned || !stand_ins_.empty()) return false;
    const Batch &batch = found->second;
    if (batch.numbers.empty() || batch.many != batch.numbers.size()) return false;
    bool is_all = true;
    rows_.each(-1, [&](std::int64_t number, Row &row) {
        return number <= batch.numbers.back() && (is_all = row.epoch == epoch);
    });
    return is_all;
}

nb::object Table::record(std::int64_t launch, const Row &row) {
    if (row.has_record()) return nb::borrow(row.object);
    static nb::handle made_by_core = nb::object(nb::module_::import_("acs_cl.launch.commands")
                                                    .attr("CoreCommand")).release();
    const nb::object name = nb::borrow(row.object);
    Touched touched;  // a copy, because making a record may run any code
    touched.many = row.many, touched.reads = row.reads, touched.writes = row.writes;
    touched.overwrites = row.overwrites;
    for (std::uint32_t at = 0; at < touched.many; at++)
        touched.nodes[at] = row.epoch ? batches_.find(row.epoch)->second.nodes[row.first + at].get()
                                      : on_lanes_[row.first].touched.nodes[at];
    const Holding holding(touched);
    return new_record(launch, made_by_core(name), access_of(touched), nb::tuple());
}

}  // namespace acs_cl
