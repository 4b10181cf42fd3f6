// Where a foreseen epoch is cut into sections. A program that waits after each step leaves the device idle until all
// launches of the step have come. In sections it has work from the first of these on, while the host goes on. But a
// section begins only when the one before has ended, so chains of tasks should not be cut across.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "epoch/recorder.hpp"

namespace acs_cl {

constexpr std::size_t MOST_SECTIONS = 4;
constexpr double SECTION_S = 20e-6;  // what one more costs the host, and again the device, or somewhat more

// When sections are tried, and when they stay.
struct Cutting {
    std::size_t least = 32;                 // tasks of a section
    double gain = 0.05, timed_gain = 0.03;  // least share of the time of the whole epoch, by the model and by the clock
    std::uint32_t runs = 5;                 // of the whole for the model, and of both for the clock; the least counts

    // Shorter epochs are not looked at.
    std::size_t least_whole() const { return 3 * least; }
};

// Returns how many tasks the longest chain has, of those in [first, end). `edges` are by downstream task.
inline std::uint32_t longest_chain(const std::vector<Graph::Edge> &edges, std::size_t first, std::size_t end) {
    const auto is_before = [](const Graph::Edge &edge, std::size_t task) { return edge.below < task; };
    auto edge = std::lower_bound(edges.begin(), edges.end(), first, is_before);
    std::vector<std::uint32_t> behind(end - first, 1);  // tasks of the longest chain up to each
    for (; edge != edges.end() && edge->below < end; ++edge)
        if (edge->above >= first)
            behind[edge->below - first] = std::max(behind[edge->below - first], behind[edge->above - first] + 1);
    return behind.empty() ? 0 : *std::max_element(behind.begin(), behind.end());
}

// Returns where the sections end that should take least: the number of tasks up to each, the last one being all.
// `host_s`: from the first launch until the whole epoch is sent. `device_s`: from then until it has ended.
inline std::vector<std::size_t> best_sections(std::size_t tasks, const std::vector<Graph::Edge> &edges, double host_s,
                                              double device_s, const Cutting &how) {
    const double launch_s = std::max(0.0, host_s - SECTION_S) / double(tasks);
    const double link_s = std::max(0.0, device_s - SECTION_S) / longest_chain(edges, 0, tasks);
    const auto takes_s = [&](const std::vector<std::size_t> &ends) {
        double sent_s = 0, ended_s = 0;
        std::size_t first = 0;
        for (std::size_t end : ends) {
            sent_s += launch_s * double(end - first) + SECTION_S;
            ended_s = std::max(sent_s, ended_s) + SECTION_S + link_s * longest_chain(edges, first, end);
            first = end;
        }
        return ended_s;
    };
    std::vector<std::size_t> best = {tasks};
    double best_s = takes_s(best) * (1 - how.gain);
    for (std::size_t share : {16, 12, 8, 6, 4, 3, 2})
        for (std::size_t growth = 1; growth <= 3; growth++) {
            std::vector<std::size_t> ends;
            std::size_t size = tasks / share, end = size;
            while (size >= how.least && end + how.least <= tasks && ends.size() + 1 < MOST_SECTIONS) {
                ends.push_back(end);
                size *= growth;
                end += size;
                std::vector<std::size_t> tried = ends;
                tried.push_back(tasks);
                const double tried_s = takes_s(tried);
                if (tried_s >= best_s) continue;
                best_s = tried_s;
                best = std::move(tried);
            }
        }
    return best;
}

}  // namespace acs_cl
