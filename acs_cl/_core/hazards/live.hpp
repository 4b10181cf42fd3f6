// Live launches, and marks that stand for replays: what each of them waits for, and a look-up by
// number that costs the same whatever has gone before.

#pragma once

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

// What a live launch waits for: bit k is launch `number - 1 - k`.
struct alignas(64) Ancestors {
    std::uint64_t words[WORDS];
};

class Live {
public:
    Live() : numbers_{INT64_MIN}, rows_(1), ancestors_(1), table_(64, 0) {}  // place 0 is nobody's

    std::size_t size() const { return size_; }
    std::int64_t number(std::uint32_t place) const { return numbers_[place]; }
    std::uint64_t *ancestors(std::uint32_t place) { return ancestors_[place].words; }
    int &words(std::uint32_t place) { return rows_[place].words; }  // those that are in use
    bool has(const Use &use) const { return numbers_[use.place] == use.number; }
    // The launches, not the marks, in the order in which they entered; `NOBODY` at the end.
    std::uint32_t oldest() const { return oldest_; }
    std::uint32_t after(std::uint32_t place) const { return rows_[place].after; }
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
            unused_ = rows_[place].after;
        } else {
            place = std::uint32_t(numbers_.size());
            numbers_.emplace_back();
            rows_.emplace_back();
            ancestors_.emplace_back();
        }
        numbers_[place] = number;
        Row &row = rows_[place];
        row.words = 0;
        if (number > 0) {
            row.before = newest_;
            row.after = NOBODY;
            (newest_ == NOBODY ? oldest_ : rows_[newest_].after) = place;
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
        Row &row = rows_[place];
        if (number > 0) {
            (row.before == NOBODY ? oldest_ : rows_[row.before].after) = row.after;
            (row.after == NOBODY ? newest_ : rows_[row.after].before) = row.before;
        }
        numbers_[place] = 0;
        row.after = unused_;
        unused_ = place;
        size_--;
    }

private:
    struct Row {
        std::uint32_t before = NOBODY, after = NOBODY;
        int words = 0;
    };

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
    std::vector<Row> rows_;
    std::vector<Ancestors> ancestors_;
    std::vector<std::uint32_t> table_;  // places, at or after where the hash of a number says
    std::size_t size_ = 0;
    std::uint32_t unused_ = 0, oldest_ = NOBODY, newest_ = NOBODY;
};

}  // namespace acs_cl
