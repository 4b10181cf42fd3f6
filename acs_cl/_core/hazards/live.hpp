// Live launches and replay records: which are live, and what each launch waits for.

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_set>
#include <utility>
#include <vector>

#include "hazards/bits.hpp"

namespace acs_cl {

constexpr std::int64_t REMEMBERED = 1024;
constexpr int WORDS = REMEMBERED / 64;

// The launches that one waits for: bit k is launch `number - 1 - k`. Bits of launches that had ended when it
// entered may be anything, since nobody asks for them again.
struct alignas(64) Ancestors {
    std::uint64_t words[WORDS];
};

// A check asks for many launches, most of which ended. So each of the latest numbers has a bit, which stays in the
// cache. Older launches that still live, and replay records, are few and in a set.
class Live {
public:
    Live() : ancestors_(LEAST + 1) {}

    std::size_t size() const { return size_; }
    std::int64_t newest() const { return newest_; }  // number that ever entered
    // Live ones among the latest numbers are no older than this, as far back as anybody asks.
    std::int64_t oldest() const { return oldest_; }

    // Whether a launch may live: a bit may be another launch's. Cheaper than the others, and without a branch.
    std::uint32_t may_have(std::int64_t number) const {
        const std::uint64_t at = std::uint64_t(number) % RING;
        return (bits_[at / 64] >> at % 64 & 1) | has_others_;
    }
    // Whether a launch is among the latest numbers, and lives.
    bool has_recent(std::int64_t number) const {
        const std::uint64_t at = std::uint64_t(number) % RING;
        return (std::uint64_t(number - first_) < RING) & (bits_[at / 64] >> at % 64 & 1);
    }
    bool has_others() const { return has_others_; }
    bool has(std::int64_t number) const {
        return has_recent(number) || (number < first_ && number && has_others_ && others_.count(number));
    }

    // Valid for one of the latest `REMEMBERED` launches that lived when the newest one entered. The word behind the
    // last one may be read: it is another launch's.
    std::uint64_t *ancestors(std::int64_t number) {
        return reinterpret_cast<std::uint64_t *>(&ancestors_[std::size_t(number) & mask_]);
    }

    // Whether one of the latest `REMEMBERED` launches is sure to follow another one that lives. Without a branch.
    bool follows(std::int64_t number, std::int64_t other) const {
        const std::uint64_t distance = std::uint64_t(number - 1 - other);
        const std::uint64_t *words = ancestors_[std::size_t(number) & mask_].words;
        const bool is_near = (distance < REMEMBERED) & (std::uint64_t(newest_ - number) < REMEMBERED);
        return is_near & has_recent(other) & (words[distance / 64 % WORDS] >> distance % 64 & 1);
    }

    // Adds a number that is not there yet: a replay record, or a launch after all others.
    void add(std::int64_t number) {
        size_++;
        if (number < 0) {
            add_other(number);
            return;
        }
        const std::int64_t latest = newest_;
        advance(number);
        flip(number);
        while (std::size_t(number - oldest_) > mask_ && mask_ + 1 < REMEMBERED) widen(latest);
    }

    void remove(std::int64_t number) {
        if (has_recent(number))
            flip(number);
        else if (!others_.erase(number))
            return;
        has_others_ = !others_.empty();
        size_--;
    }

    template <typename Visit>
    void each(Visit &&visit) const {
        for (std::int64_t number : others_) visit(number);
        for (std::int64_t number = first_; number <= newest_; number++) {
            const std::uint64_t at = std::uint64_t(number) % RING, word = bits_[at / 64] >> at % 64;
            number += word ? lowest_bit(word) : 63 - std::int64_t(at % 64);
            if (word && number <= newest_) visit(number);
        }
    }

private:
    static constexpr std::uint64_t RING = 1 << 14;
    static constexpr std::size_t LEAST = 64;

    void flip(std::int64_t number) {
        const std::uint64_t at = std::uint64_t(number) % RING;
        bits_[at / 64] ^= std::uint64_t(1) << at % 64;
    }

    void add_other(std::int64_t number) {
        others_.insert(number);
        has_others_ = 1;
    }

    // Makes the numbers up to this one the latest ones.
    void advance(std::int64_t number) {
        const std::int64_t first = number - std::int64_t(RING) + 1;
        for (; first_ < first && first_ <= newest_; first_++)
            if (has_recent(first_)) {
                add_other(first_);
                flip(first_);
            }
        first_ = std::max(first_, first);
        newest_ = number;
        oldest_ = std::max(oldest_, number - REMEMBERED);
        while (oldest_ < number && !has_recent(oldest_)) oldest_++;
    }

    // `latest`: the last launch that is there.
    void widen(std::int64_t latest) {
        const std::size_t many = mask_ + 1;
        const std::vector<Ancestors> before = std::exchange(ancestors_, std::vector<Ancestors>(2 * many + 1));
        mask_ = 2 * many - 1;
        for (std::int64_t number = latest + 1 - std::int64_t(many); number <= latest; number++)
            ancestors_[std::size_t(number) & mask_] = before[std::size_t(number) % many];
    }

    std::int64_t first_ = 1;  // of the latest numbers
    std::int64_t newest_ = 0, oldest_ = 1;
    std::size_t size_ = 0, mask_ = LEAST - 1;
    std::uint32_t has_others_ = 0;
    std::array<std::uint64_t, RING / 64> bits_ = {};  // by number
    std::unordered_set<std::int64_t> others_;
    std::vector<Ancestors> ancestors_;  // by number, as far back as launches live; one more at the end
};

}  // namespace acs_cl
