// Counts that guarded kernels on lanes refuse: each launch has a word for that. The host can see the words without a
// transfer, since they are fine-grained shared memory. `words_for` in acs_cl/launch/decision.py makes them.
//
// A word is zero until a kernel stores a count there that was not allowed. It is looked at once, when its launch has
// ended, and then serves another one.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "python/nb.hpp"

namespace acs_cl {

// What a count may be: up to a bound, and a multiple of a group.
struct Allowed {
    std::uint32_t upto = 0, group = 1;
    bool is_signed = false;
};

class Counts {
public:
    static constexpr std::int32_t REFUSED = -9001;  // as DECIDED in acs_cl/launch/backend.py

    // Says why such a launch goes to a lane, later, too.
    static nb::object why_on_lane() {
        static PyObject *const text = PyUnicode_InternFromString("a lane has the word for its count");
        return nb::borrow(text);
    }

    struct Word {
        nb::object memory;  // of PyOpenCL
        std::uint64_t address;

        std::uint32_t take() {
            volatile std::uint32_t *at = reinterpret_cast<std::uint32_t *>(address);
            const std::uint32_t got = *at;
            if (got) *at = 0;
            return got;
        }
    };

    // Adds a word. It has to stay where it is.
    void add(nb::object memory, std::uint64_t address) {
        words_.push_back({std::move(memory), address});
        words_.back().take();
        free_.push_back(words_.size() - 1);
    }
    std::size_t many() const { return words_.size(); }
    std::size_t free() const { return free_.size(); }

    // Returns the place of a word that nobody uses. Empty: there is none.
    std::optional<std::size_t> take() {
        if (free_.empty()) return std::nullopt;
        const std::size_t at = free_.back();
        free_.pop_back();
        return at;
    }
    void give_back(std::size_t at) { free_.push_back(at); }
    const Word &word(std::size_t at) const { return words_[at]; }

    // Notes which word a launch has, and what its count may be.
    void note(std::int64_t launch, std::size_t word, const Allowed &allowed) { launched_[launch] = {word, allowed}; }

    // Looks at the word of a launch that has ended. Returns whether its count was refused.
    bool end(std::int64_t launch) {
        if (launched_.empty()) return false;
        const auto found = launched_.find(launch);
        if (found == launched_.end()) return false;
        const auto [at, allowed] = found->second;
        launched_.erase(found);
        const std::uint32_t got = words_[at].take();
        free_.push_back(at);
        if (got) refused_[launch] = {got, allowed};
        return got;
    }

    // Frees the words of launches that are over without having run. `is_live`: tells whether a launch is not.
    template <typename IsLive>
    void sweep(IsLive &&is_live) {
        for (auto one = launched_.begin(); one != launched_.end();) {
            if (is_live(one->first)) {
                ++one;
            } else {
                free_.push_back(one->second.first);
                one = launched_.erase(one);
            }
        }
    }

    // Whether Python has not heard of all refused counts.
    bool has_refused() const { return !refused_.empty(); }

    // Returns the refused count of a launch once, and what it may have been.
    std::optional<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, bool>> refused(std::int64_t launch) {
        const auto found = refused_.find(launch);
        if (found == refused_.end()) return std::nullopt;
        const auto [got, allowed] = found->second;
        refused_.erase(found);
        return std::tuple{got, allowed.upto, allowed.group, allowed.is_signed};
    }

    void forget() {
        words_.clear();
        free_.clear();
        launched_.clear();
        refused_.clear();
    }

private:
    std::vector<Word> words_;
    std::vector<std::size_t> free_;
    std::unordered_map<std::int64_t, std::pair<std::size_t, Allowed>> launched_;
    std::map<std::int64_t, std::pair<std::uint32_t, Allowed>> refused_;
};

}  // namespace acs_cl
