// The tasks of an epoch as they come: the twin of `Recorder.add` in acs_cl/epochs.py. What makes an
// image of them is there, and reads the same columns here.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace acs_cl {

constexpr std::size_t RECORD_BYTES = 128, HEAD_BYTES = 64, INLINE_BYTES = RECORD_BYTES - HEAD_BYTES;
constexpr std::uint32_t RECORD_WORDS = RECORD_BYTES / 4, TILES = 4, ARGS = 7, SHAPE = 8, WHEN = 10;
constexpr std::uint32_t PLAIN = 0x400;  // in the first word

class Recorder {
public:
    std::string records, extra;
    std::size_t entries = 0;  // tiles of all tasks
    std::vector<std::uint32_t> heirs, counts, initial, upstream, downstream;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> patches;

    std::uint32_t tasks() const { return std::uint32_t(heirs.size()); }

    // A task behind those of `others`; its number. Null: the record has its arguments, or no shape.
    std::uint32_t add(std::string_view record, const std::string_view *blob,
                      const std::string_view *shape, const std::vector<std::uint32_t> &others) {
        std::uint32_t task = tasks();
        if (record.size() != (blob ? HEAD_BYTES : RECORD_BYTES))
            throw std::invalid_argument("a record has 128 bytes, a head 64");
        for (std::uint32_t other : others)
            if (other >= task) throw std::out_of_range("a task follows only those before it");
        records += record;
        std::uint32_t tiles;
        std::memcpy(&tiles, record.data() + 4 * TILES, sizeof(tiles));
        entries += tiles;
        if (blob) {
            bool fits = blob->size() <= INLINE_BYTES;
            if (fits) records += *blob;
            else patches.emplace_back(task * RECORD_WORDS + ARGS, put(*blob));
            records.append(INLINE_BYTES - (fits ? blob->size() : 0), '\0');
        }
        if (shape) {
            auto [place, is_new] = shapes_.try_emplace(std::string(*shape), 0);
            if (is_new) place->second = put(*shape);
            patches.emplace_back(task * RECORD_WORDS + SHAPE, place->second);
        }
        heirs.push_back(0);
        counts.push_back(0);
        if (others.empty()) {
            initial.push_back(task);
        } else if (others.size() == 1 && !heirs[others[0]]) {
            heirs[others[0]] = task + 1;
        } else {
            counts.back() = std::uint32_t(others.size());
            upstream.insert(upstream.end(), others.begin(), others.end());
            downstream.insert(downstream.end(), others.size(), task);
        }
        return task;
    }

private:
    // Where it is, in words.
    std::uint32_t put(std::string_view data) {
        std::uint32_t place = std::uint32_t(extra.size() / 4);
        extra += data;
        extra.resize((extra.size() + 15) / 16 * 16, '\0');
        return place;
    }

    std::unordered_map<std::string, std::uint32_t> shapes_;
};

}  // namespace acs_cl
