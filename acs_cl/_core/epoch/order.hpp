// Sequences of tasks: list scheduling by keys, with two classes that take turns. acs_cl/scheduler/orders.py has the
// policies; the slow part is here.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <queue>
#include <stdexcept>
#include <utility>
#include <vector>

namespace acs_cl {

using Tasks = std::vector<std::uint32_t>;

inline void check_edges(const Tasks &upstream, const Tasks &downstream, std::size_t tasks) {
    if (upstream.size() != downstream.size())
        throw std::invalid_argument("an edge has two ends");
    for (std::size_t edge = 0; edge < upstream.size(); edge++)
        if (upstream[edge] >= downstream[edge] || downstream[edge] >= tasks)
            throw std::out_of_range("a task follows only those before it");
}

// Edges come in the order of `downstream`. In reverse, all edges that leave a task's successor were seen before.
inline std::vector<double> heights(const Tasks &upstream, const Tasks &downstream,
                                   const std::vector<double> &took, double edge) {
    check_edges(upstream, downstream, took.size());
    if (!std::is_sorted(downstream.begin(), downstream.end()))
        throw std::invalid_argument("edges have to come in the order of downstream");
    std::vector<double> longest = took;
    for (std::size_t at = upstream.size(); at-- > 0;) {
        double &above = longest[upstream[at]];
        above = std::max(above, longest[downstream[at]] + took[upstream[at]] + edge);
    }
    return longest;
}

inline Tasks sequence(const Tasks &upstream, const Tasks &downstream,
                      const std::vector<double> &keys, const std::vector<std::uint8_t> &classes) {
    std::size_t tasks = keys.size();
    check_edges(upstream, downstream, tasks);
    if (classes.size() != tasks) throw std::invalid_argument("each task has a key and a class");
    Tasks first(tasks + 1), below(downstream.size()), waits(tasks);
    for (std::uint32_t above : upstream) first[above + 1]++;
    for (std::size_t task = 0; task < tasks; task++) first[task + 1] += first[task];
    Tasks next(first.begin(), first.end());
    for (std::size_t edge = 0; edge < upstream.size(); edge++) {
        below[next[upstream[edge]]++] = downstream[edge];
        waits[downstream[edge]]++;
    }
    using Entry = std::pair<double, std::uint32_t>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> ready[2];
    auto add = [&](std::uint32_t task) { ready[classes[task] & 1].emplace(keys[task], task); };
    for (std::uint32_t task = 0; task < tasks; task++)
        if (!waits[task]) add(task);
    Tasks found;
    found.reserve(tasks);
    int turn = 0;
    while (!ready[0].empty() || !ready[1].empty()) {
        auto &queue = ready[ready[turn].empty() ? 1 - turn : turn];
        std::uint32_t task = queue.top().second;
        queue.pop();
        found.push_back(task);
        turn = 1 - (classes[task] & 1);
        for (std::uint32_t at = first[task]; at < first[task + 1]; at++)
            if (!--waits[below[at]]) add(below[at]);
    }
    return found;
}

}  // namespace acs_cl
