// The launches of an epoch: how they leave it, and epochs that come as foreseen.

#include "table/table.hpp"

#include <chrono>
#include <cstring>

namespace acs_cl {

std::vector<std::int64_t> Table::leave(std::uint32_t epoch, bool one_by_one) {
    std::vector<std::int64_t> told;
    if (one_by_one) tell_apart();
    auto found = batches_.find(epoch);
    if (found == batches_.end()) return told;
    Batch &batch = found->second;
    for (std::int64_t launch : batch.numbers) in_epochs_ -= weight(launch, known(launch));
    for (std::int64_t launch : batch.numbers) {
        Row &row = known(launch);
        row.is_left = true;
        if (!row.by_core) row.epoch = 0;  // it may go to another one, or to a lane
        if (!row.by_core || one_by_one) told.push_back(launch);
    }
    if (!batch.many) end_batch(found);
    else if (one_by_one) batch.numbers.clear();
    return told;
}

void Table::end_epoch(std::uint32_t epoch) {
    auto found = batches_.find(epoch);
    if (found == batches_.end()) return;
    Batch &batch = found->second;
    const leftovers::Kept kept;  // until all is as it should be
    for (std::int64_t launch : batch.numbers) {
        Row *row = rows_.find(launch);
        if (!row || !row->by_core || row->epoch != epoch) continue;
        go(launch, *row, row->is_lost ? State::FAILED : State::ENDED);
        give_up(launch, *row, true);
        batch.many--;
    }
    end_batch(found);
    let_others_in();
}

std::vector<std::int64_t> Table::enter_replay(std::uint32_t epoch, const nb::object &command, const nb::object &access,
                                              Footprint &footprint) {
    const nb::object record = new_record(number + 1, command, access, nb::tuple());
    number++;
    std::vector<std::int64_t> upstream;
    for (const Edge &edge : hazards->Hazards::enter_footprint(number, footprint)) upstream.push_back(edge.upstream);
    Row &row = make(number, record.ptr(), Touched());
    row.is_replay = true;
    row.epoch = epoch;
    Batch &in = batch(epoch);
    in.numbers.push_back(number);
    in.many++;
    in_epochs_++;
    return upstream;
}

void Table::record_counted() {
    const std::size_t many = forecast.counted();
    const RememberedPointer known = forecast.followed();
    forecast.give_up();
    number -= std::int64_t(many);
    for (std::size_t at = 0; at < many; at++) {
        const Expected &task = known->tasks[at];
        const std::string_view blob(task.blob), shape(task.shape);
        recorder->place(task.words);
        record_task(task.blob.empty() ? nullptr : &blob,
                    task.shape.empty() ? nullptr : &shape, known->touched(task), task.name,
                    task.addresses);
    }
}

bool Table::remember() {
    kept_.reset();
    auto found = batches_.find(open);
    const std::size_t tasks = recorder->tasks();
    if (found == batches_.end() || found->second.many != tasks || besides_.size() != tasks) {
        forecast.leave_alone();
        return false;
    }
    kept_ = forecast.remember(tasks, scheduler.ptr(), [&](RememberedEpoch &made) { fill(made, found->second); });
    return kept_ != nullptr;
}

void Table::keep_on_device(nb::object resident, const void *words, std::size_t many, const Graph &graph) {
    if (!kept_) return;
    kept_->words.resize(many);
    std::memcpy(kept_->words.data(), words, 4 * many);
    kept_->resident = std::move(resident);
    forecast.keep(*kept_, *hazards, graph);
    kept_.reset();
}

void Table::enter_foreseen() {
    const RememberedPointer &known = forecast.followed();
    const std::size_t many = known->size();
    const auto began = std::chrono::steady_clock::now();
    for (const Edge &edge : hazards->Hazards::enter_footprint(number, *known->joint->footprint)) {
        const Row *row = rows_.find(edge.upstream);
        if (!row || !row->is_in_epoch()) external.push_back(edge.upstream);
    }
    forecast.entered(std::chrono::nanoseconds(std::chrono::steady_clock::now() - began).count());
    Batch &in = batch(open);
    Row &row = make(number, known->tasks.back().name, Touched());
    row.epoch = open;
    row.is_foreseen = true;
    foreseen_[number] = {number - std::int64_t(many) + 1, known};
    in.numbers.push_back(number);
    in.many++;
    by_core += std::int64_t(many) - 1;
    in_flight_ += many - 1;
    inside_ += many - 1;
    most = std::max(most, inside_);
    in_epochs_ += many;
    past_.emplace_back(number - std::int64_t(many) + 1, number);
    if (past_.size() > MOST_PAST) past_.pop_front();
}

void Table::tell_apart() {
    for (auto &[last, one] : std::exchange(foreseen_, {})) {
        const Row own = known(last);
        Batch &in = batch(own.epoch);
        in.numbers.clear();
        in.many = 0;
        for (std::size_t at = 0; at < one.like->size(); at++) {
            const std::int64_t launch = one.first + std::int64_t(at);
            const Expected &task = one.like->tasks[at];
            Row &row = launch == last ? known(launch) : rows_.make(launch);
            row = own;
            row.is_foreseen = false;
            if (launch != last) row.is_watched = false;
            row.object = launch == last ? own.object : Py_NewRef(task.name);
            row.task = std::uint32_t(at);
            row.first = std::uint32_t(in.nodes.size());
            row.many = std::uint8_t(task.many);
            row.reads = task.reads;
            row.writes = task.writes;
            for (std::uint32_t node = 0; node < task.many; node++) in.nodes.push_back(one.like->nodes[task.first + node]);
            in.numbers.push_back(launch);
            in.many++;
        }
    }
}

void Table::fill(RememberedEpoch &made, const Batch &in) {
    made.nodes = in.nodes;
    made.tasks.reserve(in.numbers.size());
    for (std::size_t at = 0; at < in.numbers.size(); at++) {
        const Row &row = known(in.numbers[at]);
        Expected &task = made.tasks.emplace_back();
        task.words = recorder->records[at];
        task.first = row.first;
        task.many = row.many;
        task.reads = row.reads;
        task.writes = row.writes;
        task.addresses = besides_[at].addresses;
        task.name = Py_NewRef(row.object);
    }
    for (auto [place, put] : recorder->patches) {
        const std::uint32_t at = place / RECORD_WORDS;
        const char *from = recorder->extra.data() + 4 * std::size_t(put);
        if (place % RECORD_WORDS == ARGS)
            made.tasks[at].blob.assign(from, besides_[at].blob_bytes);
        else
            made.tasks[at].shape.assign(from, SHAPE_BYTES);
    }
}

}  // namespace acs_cl
