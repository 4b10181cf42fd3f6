// Live launches, and marks that stand for replays: what each of them waits for, and a look-up by
// number that costs the same whatever has gone before.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace acs_cl {

constexpr std::int64_t REMEMBERED = 1024;
constexpr int WORDS = REMEMBERED / 64;
constexpr std::uint32_t NOBODY = UINT32_MAX;

// A launch as others remember it: good for as long as the place is still its own.
struct Use {
    std::int64_t number = 0;
    std::uint32_t place = 0;
};

// What a live launch waits for, and its neighbours.
struct Waits {
    int words = 0;  // how many of `ancestors` are in use
    std::uint32_t before = NOBODY, after = NOBODY;  // launches in the order in which they entered
    std::array<std::uint64_t, WORDS> ancestors;  // bit k: launch `number - 1 - k` is waited for
};

class Live {
public:
    Live() : numbers_{INT64_MIN}, waits_(1), table_(64, 0) {}  // place 0 is nobody's

    std::size_t size() const { return size_; }
    std::int64_t number(std::uint32_t place) const { return numbers_[place]; }
    Waits &waits(std::uint32_t place) { return waits_[place]; }
    bool has(const Use &use) const { return numbers_[use.place] == use.number; }
    // The launches, not the marks, by `Waits::after`; `NOBODY` where there are none.
    std::uint32_t oldest() const { return oldest_; }
    std::int64_t newest_number() const { return newest_ == NOBODY ? 0 : numbers_[newest_]; }

    // Its place, or 0.
    std::uint32_t find(std::int64_t number) const {
        for (std::size_t at = home(number); table_[at]; at = (at + 1) & (table_.size() - 1))
            if (numbers_[table_[at]] == number) return table_[at];
        return 0;
    }

    Use find_use(std::int64_t number) const {
        std::uint32_t place = find(number);
        return place ? Use{number, place} : Use{};
    }

    // The place of one that is not there yet.
    std::uint32_t add(std::int64_t number) {
        if (4 * (size_ + 1) > table_.size()) grow();
        std::uint32_t place = unused_;
        if (place) {
            unused_ = waits_[place].after;
        } else {
            place = std::uint32_t(numbers_.size());
            numbers_.emplace_back();
            waits_.emplace_back();
        }
        numbers_[place] = number;
        Waits &waits = waits_[place];
        waits.words = 0;
        if (number > 0) {
            waits.before = newest_;
            waits.after = NOBODY;
            (newest_ == NOBODY ? oldest_ : waits_[newest_].after) = place;
            newest_ = place;
        }
        put(place);
        size_++;
        return place;
    }

    void remove(std::int64_t number) {
        std::size_t mask = table_.size() - 1, hole = home(number);
        for (; table_[hole]; hole = (hole + 1) & mask)
            if (numbers_[table_[hole]] == number) break;
        std::uint32_t place = table_[hole];
        if (!place) return;
        // what was pushed on past the hole moves back, or it would not be found any more
        for (std::size_t at = (hole + 1) & mask; table_[at]; at = (at + 1) & mask) {
            std::size_t wanted = home(numbers_[table_[at]]);
            if (((at - wanted) & mask) >= ((at - hole) & mask)) {
                table_[hole] = table_[at];
                hole = at;
            }
        }
        table_[hole] = 0;
        Waits &waits = waits_[place];
        if (number > 0) {
            (waits.before == NOBODY ? oldest_ : waits_[waits.before].after) = waits.after;
            (waits.after == NOBODY ? newest_ : waits_[waits.after].before) = waits.before;
        }
        numbers_[place] = 0;
        waits.after = unused_;
        unused_ = place;
        size_--;
    }

private:
    std::size_t home(std::int64_t number) const {
        return std::size_t(std::uint64_t(number) * 0x9E3779B97F4A7C15u >> 32) & (table_.size() - 1);
    }

    void put(std::uint32_t place) {
        std::size_t at = home(numbers_[place]);
        while (table_[at]) at = (at + 1) & (table_.size() - 1);
        table_[at] = place;
    }

    void grow() {
        table_.assign(2 * table_.size(), 0);
        for (std::uint32_t place = 1; place < numbers_.size(); place++)
            if (numbers_[place]) put(place);
    }

    std::vector<std::int64_t> numbers_;  // by place; 0: it is free
    std::vector<Waits> waits_;
    std::vector<std::uint32_t> table_;  // places, at or after where the hash of a number says
    std::size_t size_ = 0;
    std::uint32_t unused_ = 0, oldest_ = NOBODY, newest_ = NOBODY;
};

}  // namespace acs_cl
