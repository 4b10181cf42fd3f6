// Where launches wait on the host: what holds a launch, and the window.

#include "table/table.hpp"

#include <algorithm>

namespace acs_cl {

bool Table::insert(nb::handle launch, bool blocks_on_host, bool has_foreign, bool waits_on_host, bool counted) {
    const std::int64_t number = whole_number(PyTuple_GET_ITEM(launch.ptr(), 0));
    if (rows_.find(number)) throw std::invalid_argument("this launch is in the table already");
    Upstream upstream;
    for (PyObject *other : Items(PyTuple_GET_ITEM(launch.ptr(), 3)))
        upstream.push_back(stands_for(whole_number(other)));
    Row &row = rows_.make(number);
    row.object = launch.inc_ref().ptr();
    row.blocks_on_host = blocks_on_host;
    row.is_counted = counted;
    counted_ += counted;
    in_flight_++;
    if (!outside_.empty() || inside_ >= window) {
        go(number, row, State::HELD);
        outside_.push_back({number, std::move(upstream), has_foreign, waits_on_host});
        full++;
        return false;
    }
    return enter(number, row, upstream, has_foreign, waits_on_host);
}

void Table::keep(const nb::object &command, const Touched &touched, Edges edges) {
    nb::list upstream;
    for (const Edge &edge : edges) upstream.append(edge.upstream);
    const nb::object launch = new_record(number, command, access_of(touched), nb::tuple(upstream));
    if (insert(launch, false, false, ready_first, false)) ready_.push_back(number);
}

void Table::end(std::int64_t launch, bool failed) {
    Row &row = known(launch);
    if (flying(launch)) throw std::logic_error("a lane has this launch, which has not ended");
    const std::uint32_t epoch = row.by_core ? row.epoch : 0;
    go(launch, row, failed || row.is_lost ? State::FAILED : State::ENDED);
    const leftovers::Kept kept;  // until all is as it should be
    give_up(launch, row, true);
    if (epoch) end_in_batch(epoch);
    let_others_in();
}

void Table::never_ran(std::int64_t launch, const std::vector<std::int64_t> &upstream) {
    Row &row = known(launch);
    go(launch, row, State::NEVER_RAN);
    Upstream left;
    for (std::int64_t other : expand(upstream))
        if (other != launch && rows_.find(other)) left.push_back(other);
    const leftovers::Kept kept;  // until all is as it should be
    give_up(launch, row, left.empty());
    if (!left.empty()) stand_ins_[launch] = std::move(left);
    let_others_in();
}

std::vector<std::int64_t> Table::expand(const std::vector<std::int64_t> &upstream) const {
    if (stand_ins_.empty()) return upstream;
    std::vector<std::int64_t> found;
    auto add = [&](std::int64_t one) {
        if (std::find(found.begin(), found.end(), one) == found.end()) found.push_back(one);
    };
    for (std::int64_t other : upstream) {
        auto stands_in = stand_ins_.find(other);
        if (stands_in == stand_ins_.end()) add(other);
        else std::for_each(stands_in->second.begin(), stands_in->second.end(), add);
    }
    return found;
}

void Table::foreign_ended(std::int64_t launch) {
    Row &row = known(launch);
    if (row.state != State::HELD) {
        unblock(launch);
        return;
    }
    for (Outside &one : outside_)
        if (one.number == launch) one.has_foreign = false;
}

bool Table::enter(std::int64_t launch, Row &row, const Upstream &upstream, bool has_foreign, bool waits_on_host) {
    most = std::max(most, ++inside_);
    std::uint32_t blockers = has_foreign;
    for (std::int64_t other : upstream) {
        Row *above = other == launch ? nullptr : rows_.find(other);
        if (!above) continue;
        if (waits_on_host) watch(other, *above).waiting_on_host.push_back(launch);
        else if (above->blocks_on_host || !above->is_handed_out())
            watch(other, *above).dependants.push_back(launch);
        else continue;
        blockers++;
    }
    if (row.blocks_on_host || blockers) watch(launch, row).blockers = blockers;
    pending_++;
    if (blockers) {
        go(launch, row, State::PENDING);
        return false;
    }
    hand_out(launch, row);
    return true;
}

void Table::unblock(std::int64_t launch) {
    std::deque<std::int64_t> come{launch};
    for (; !come.empty(); come.pop_front()) {
        Row &row = known(come.front());
        if (--watched_[come.front()].blockers) continue;
        hand_out(come.front(), row);
        ready_.push_back(come.front());
        let_pass(come.front(), row, come);
    }
}

void Table::let_pass(std::int64_t launch, Row &row, std::deque<std::int64_t> &come) {
    if (row.blocks_on_host || !row.is_watched) return;
    Watched &waits = watched_[launch];
    come.insert(come.end(), waits.dependants.begin(), waits.dependants.end());
    waits.dependants.clear();
    if (waits.waiting_on_host.empty()) forget(launch, row);
}

void Table::let_others_in() {
    while (!outside_.empty() && inside_ < window) {
        const Outside one = std::move(outside_.front());
        outside_.pop_front();
        Row &row = known(one.number);
        if (!enter(one.number, row, one.upstream, one.has_foreign, one.waits_on_host)) continue;
        ready_.push_back(one.number);
        std::deque<std::int64_t> come;
        let_pass(one.number, row, come);
        for (std::int64_t other : come) unblock(other);
    }
    for (auto one = stand_ins_.begin(); one != stand_ins_.end();) {
        Upstream &left = one->second;
        left.erase(std::remove_if(left.begin(), left.end(),
                                  [this](std::int64_t other) { return !rows_.find(other); }),
                   left.end());
        if (left.empty() && hazards) hazards->retire(one->first);
        one = left.empty() ? stand_ins_.erase(one) : std::next(one);
    }
}

}  // namespace acs_cl
