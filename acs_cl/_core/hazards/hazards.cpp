#include "hazards/hazards.hpp"

#include <algorithm>
#include <stdexcept>

#include "hazards/bits.hpp"

namespace acs_cl {

namespace {

// Adds the bits of groups of words to those behind the first word, shifted up by 1 to 64. The caller does the first
// word, which is often the only one.
inline void add_shifted(std::uint64_t *__restrict to, const std::uint64_t *__restrict from, int groups, int bit) {
    for (int at = 0; at < GROUP * groups; at++)
        to[at + 1] |= from[at + 1] << 1 << bit | from[at] >> (63 - bit);
}

}  // namespace

// ---- footprints ---------------------------------------------------------------------------------

Footprint::Footprint(std::int64_t of, const std::vector<Span> &reads,
                     const std::vector<Span> &writes, std::shared_ptr<ReplayRecords> records)
    : record(of), records_(std::move(records)) {
    std::unordered_set<Span, HashOfSpan> written(writes.begin(), writes.end());
    for (const Span &span : reads)
        if (!written.count(span)) fresh.emplace_back(span, false);
    for (const Span &span : writes)
        if (written.erase(span)) fresh.emplace_back(span, true);
    for (const auto &[span, _] : fresh) bases.insert(span.base);
}

Footprint::~Footprint() {
    records_->dropped.push_back({record, {bases.begin(), bases.end()}});
    auto found = records_->by_number.find(record);
    if (found != records_->by_number.end()) found->second.footprint = nullptr;
}

std::unique_ptr<Footprint> Hazards::footprint(const std::vector<Span> &reads,
                                              const std::vector<Span> &writes,
                                              const Footprint *before) {
    forget_dropped();
    auto made = std::make_unique<Footprint>(newest_record_ - 1, reads, writes, records_);
    std::int64_t last = before ? records_->by_number.at(before->record).last : 0;
    newest_record_--;
    live_.add(made->record);
    records_->by_number[made->record] = {last, made.get()};
    return made;
}

Edges Hazards::enter_footprint(std::int64_t number, Footprint &footprint) {
    ReplayRecords::Record &record = record_of(footprint);
    begin(number);
    for (std::int64_t base : footprint.bases) find_reuse(base);
    find(barrier_, ANY);
    find(record.last, WAW);
    if (footprint.met_all || !footprint.met.empty() || !footprint.fresh.empty())
        look_again(footprint);
    footprint.met_all = false;
    footprint.met.clear();
    record.last = number;
    tidy();
    settle();
    prune();
    return kept();
}

void Hazards::move(Footprint &footprint, std::int64_t base,
                   const std::vector<std::pair<Span, bool>> &spans) {
    const std::int64_t last = record_of(footprint).last;
    for (const auto &[own, _] : std::vector(footprint.nodes.items)) {
        if (!own || own->span().base != base) continue;
        footprint.nodes.erase(own.get());
        footprint.met.erase(own.get());
        if (own->writer == footprint.record) own->writer = last;
        std::replace(own->readers.begin(), own->readers.end(), footprint.record, last);
    }
    auto &fresh = footprint.fresh;
    auto moved = [&](const std::pair<Span, bool> &one) { return one.first.base == base; };
    fresh.erase(std::remove_if(fresh.begin(), fresh.end(), moved), fresh.end());
    fresh.insert(fresh.end(), spans.begin(), spans.end());
    footprint.bases.erase(base);
    for (const auto &[span, _] : spans) footprint.bases.insert(span.base);
}

ReplayRecords::Record &Hazards::record_of(Footprint &footprint) {
    auto record = records_->by_number.find(footprint.record);
    if (record == records_->by_number.end() || record->second.footprint != &footprint)
        throw std::invalid_argument("a footprint belongs to the hazards that made it");
    return record->second;
}

void Hazards::look_again(Footprint &footprint) {
    NodeMap met = footprint.met_all ? footprint.nodes : std::move(footprint.met);
    auto spans = std::exchange(footprint.fresh, {});
    for (auto [node, written] : std::vector(met.items))
        if (node && !has(*node)) {  // it was swept when it had lost its replay record
            spans.emplace_back(node->span(), written);
            met.erase(node.get());
            footprint.nodes.erase(node.get());
        }
    for (const auto &[span, written] : spans) {
        const NodePointer own = node(span);
        footprint.nodes.set(own, written);
        met.set(own, written);
    }
    std::vector<Node *> looked_at;
    for (const auto &[node, written] : met.items)
        if (node) {
            looked_at.push_back(node.get());
            if (node->near.is_crowded()) let_rest(*node);
            if (!written) find_writers(*node, RAW);
        }
    for (const auto &[node, written] : met.items)
        if (node && written) find_writers(*node, WAW);
    for (const auto &[node, written] : met.items)
        if (node && written) find_readers(*node);
    const std::int64_t record = footprint.record;
    settle();
    auto is_own = [&](const auto &one) { return one.first == record; };
    met_.erase(std::remove_if(met_.begin(), met_.end(), is_own), met_.end());
    const Nodes looked(looked_at);
    resolve(&looked, {});
    for (const auto &[node, written] : met.items)
        if (node && written) write(*node, 0);  // all before the first replay record, whatever covers what
    for (const auto &[node, written] : met.items) {
        if (!node) continue;
        if (node->near.is_asleep()) listed += node->wake();
        auto &readers = node->readers;
        if (written)
            node->writer = record;
        else if (std::find(readers.begin(), readers.end(), record) == readers.end())
            read(*node, record);
    }
}

// Replaces replay records by launches. Footprints are told where their records were met. No nodes: anywhere.
void Hazards::resolve(const Nodes *read, Nodes written) {
    for (const auto &[number, kind] : met_) {
        auto [last, footprint] = records_->by_number.at(number);
        find(last, kind);
        met_dropped_ |= !footprint;
        if (!footprint || footprint->met_all) continue;
        if (!read) {
            footprint->met_all = true;
            continue;
        }
        auto note = [to = footprint, record = number](const Node *node) {
            const auto &readers = node->readers;
            if (node->writer != record && std::find(readers.begin(), readers.end(), record) == readers.end()) return;
            if (auto own = to->nodes.find(node)) to->met.set(own->first, own->second);
        };
        for (const Nodes &nodes : {*read, written})
            for (const Node *node : nodes) {
                note(node);
                for (auto near : node->near) note(near.node());
            }
    }
}

// Handles footprints that are gone: their replay records go with the latest launch that they stand for. Their spans
// may be hulls, at which everything near would have to look, so they are swept.
void Hazards::forget_dropped() {
    auto &[by_number, dropped] = *records_;
    met_dropped_ = false;
    for (std::size_t left = dropped.size(); left; left--) {
        ReplayRecords::Dropped one = std::move(dropped.front());
        dropped.pop_front();
        auto found = by_number.find(one.number);
        if (found == by_number.end()) continue;
        if (is_live(found->second.last)) {
            dropped.push_back(std::move(one));
        } else {
            by_number.erase(found);
            live_.remove(one.number);
            deserted_.insert(deserted_.end(), one.bases.begin(), one.bases.end());
        }
    }
}

// ---- launches -----------------------------------------------------------------------------------

// Finds the launches that share bytes with this one.
inline void Hazards::search(std::int64_t number, Nodes reads, Nodes writes, std::uint32_t read_too) {
    begin(number);
    if (has_wide_)
        for (const Nodes &nodes : {reads, writes}) let_rest(nodes);
    fetch(reads);
    fetch(writes);
    for (const Node *node : reads) find_writers(*node, RAW);
    if (!recycled_.empty())
        for (const Nodes &nodes : {reads, writes})
            for (const Node *node : nodes) find_reuse(node->span().base);
    find(barrier_, ANY);
    for (std::size_t at = 0; at < writes.many; at++) {
        // all writers first, so that kinds do not depend on the order of neighbours
        if (at >= MOST_KNOWN || !(read_too >> at & 1)) find_writers(*writes.first[at], WAW);
        find_readers(*writes.first[at]);
    }
    settle();
    if (!met_.empty()) {
        resolve(&reads, writes);
        settle();
    }
}

// Makes the launch live, before any node knows it.
inline void Hazards::follow(std::int64_t number, Nodes reads, Nodes writes, std::uint32_t read_too) {
    search(number, reads, writes, read_too);
    prune();
}

std::vector<std::int64_t> Hazards::sharers(Nodes reads, Nodes writes) {
    search(live_.newest() + 1, reads, writes, 0);
    if (has_wide_)
        for (const Nodes &nodes : {reads, writes}) wake(nodes);
    std::vector<std::int64_t> found;
    for (int word = 0; word < words_; word++)
        for (std::uint64_t bits = near_[word]; bits; bits &= bits - 1)
            found.push_back(number_ - 1 - (64 * word + lowest_bit(bits)));
    for (const auto &[upstream, _] : far_) found.push_back(upstream);
    std::sort(found.rbegin(), found.rend());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
}

Edges Hazards::enter(std::int64_t number, Nodes reads, Nodes writes, std::uint32_t read_too) {
    follow(number, reads, writes, read_too);
    if (has_wide_)
        for (const Nodes &nodes : {reads, writes}) wake(nodes);
    for (Node *node : reads) read(*node, number);
    for (Node *node : writes) write(*node, number);
    tidy();
    return kept();
}

std::vector<std::vector<Edge>> Hazards::enter_many(std::int64_t first,
                                                   const std::vector<Band> &bands) {
    std::unordered_set<const Node *> written;
    for (const Band &band : bands) {
        std::unordered_set<const Node *> own(band.writes.begin(), band.writes.end());
        for (const Node *node : own)
            if (!written.insert(node).second)
                throw std::invalid_argument("two bands of a launch write the same bytes");
    }
    std::vector<std::vector<Edge>> found;
    std::int64_t number = first;
    for (const Band &band : bands) {
        follow(number++, band.reads, band.writes, 0);
        found.emplace_back(kept().begin(), kept().end());
    }
    if (has_wide_)
        for (const Band &band : bands) {
            wake(band.reads);
            wake(band.writes);
        }
    // everything before leaves all nodes first, because one band may cover what another writes
    for (const Band &band : bands)
        for (Node *node : band.writes) write(*node, 0);
    number = first;
    for (const Band &band : bands) {
        for (Node *node : band.reads) read(*node, number);
        for (Node *node : band.writes) node->writer = number;
        number++;
    }
    tidy();
    return found;
}

Edges Hazards::enter_barrier(std::int64_t number) {
    begin(number);
    live_.each([&](std::int64_t other) { find(other, ANY); });
    settle();
    resolve(nullptr, {});
    settle();
    prune();
    barrier_ = number;
    return kept();
}

void Hazards::retire(std::int64_t number) {
    live_.remove(number);
    if (live() == 0) {
        barrier_ = 0;
        recycled_.clear();
    }
}

template <typename Visit> void Hazards::each_user(std::int64_t base, Visit &&visit) {
    auto may_go_on = [&](std::int64_t user) {
        auto record = records_->by_number.find(user);
        std::int64_t number = record == records_->by_number.end() ? user : record->second.last;
        return !is_live(number) || visit(number);
    };
    auto recycled = recycled_.find(base);
    if (recycled != recycled_.end() && !std::all_of(recycled->second.begin(), recycled->second.end(), may_go_on)) return;
    bool goes_on = may_go_on(barrier_);  // a launch that may have touched any memory
    auto index = bases_.find(base);
    if (index == bases_.end()) return;
    index->second.each([&](const Node *node) {
        goes_on = goes_on && may_go_on(node->writer) &&
                  std::all_of(node->readers.begin(), node->readers.end(), may_go_on);
    });
}

std::vector<std::int64_t> Hazards::users(std::int64_t base) {
    std::vector<std::int64_t> users;
    each_user(base, [&](std::int64_t number) {
        users.push_back(number);
        return true;
    });
    std::sort(users.begin(), users.end());
    users.erase(std::unique(users.begin(), users.end()), users.end());
    return users;
}

bool Hazards::is_used(std::int64_t base) {
    bool found = false;
    each_user(base, [&](std::int64_t) { return !(found = true); });
    return found;
}

void Hazards::forget(std::int64_t base) {
    recycled_.erase(base);
    left_.erase(base);
    auto index = bases_.find(base);
    if (index == bases_.end()) return;
    index->second.each([&](Node *node) {
        node->index = 0;
        nodes_.erase(node);
    });
    bases_.erase(index);
}

void Hazards::inherit(std::int64_t base, const std::vector<std::int64_t> &users) {
    std::vector<std::int64_t> live(users);
    keep_live(live);
    if (!live.empty()) recycled_[base] = std::move(live);
}

std::size_t Hazards::held() const {
    std::size_t held = 0;
    nodes_.each([&](const Node *node) { held += node->readers.size() + node->every().size(); });
    return held;
}

// ---- the search for edges -----------------------------------------------------------------------

// The kind of an edge is the first kind by which its launch is found.
void Hazards::begin(std::int64_t number) {
    if (number <= live_.newest())
        throw std::invalid_argument("launches enter in order of their numbers");
    number_ = number;
    const std::int64_t reach = std::clamp<std::int64_t>(number - live_.oldest(), 0, REMEMBERED);
    words_ = int((reach + 63) / 64);
    if (near_words_) near_.fill(0);  // the search before ended early
    near_words_ = near_launches_ = 0;
    far_.clear();
    met_.clear();
}

// Adds an edge to a live launch, if there is none yet. Without branches, because it is as good as random which of
// the launches that nodes remember are live.
inline void Hazards::find(std::int64_t number, Kind kind) {
    candidates_[many_] = number;
    their_kinds_[many_] = kind;
    many_ += live_.may_have(number);
    if (many_ == candidates_.size()) settle();
}

// Finds which candidates are edges: each once, with the kind by which it was found first.
void Hazards::settle() {
    const bool has_others = live_.has_others();
    for (std::uint32_t at = 0; at < many_; at++) {
        const std::int64_t number = candidates_[at];
        const std::uint64_t distance = std::uint64_t(number_ - 1 - number);
        if (has_others && !live_.has(number)) continue;
        if ((distance >= REMEMBERED) | (number <= 0)) {
            find_far(number, their_kinds_[at]);
            continue;
        }
        const std::uint64_t bit = std::uint64_t(1) << distance % 64;
        const bool is_new = !(near_[distance / 64] & bit);
        near_[distance / 64] |= bit;
        near_words_ |= std::uint64_t(1) << distance / 64;
        kinds_[distance] = is_new ? their_kinds_[at] : kinds_[distance];
        near_launches_ += is_new;
    }
    many_ = 0;
}

void Hazards::find_far(std::int64_t number, Kind kind) {
    auto is_same = [&](const auto &one) { return one.first == number; };
    if (!live_.has(number)) return;
    if (number > 0)
        far_.emplace_back(number, kind);
    else if (std::none_of(met_.begin(), met_.end(), is_same))
        met_.emplace_back(number, kind);
}

inline void Hazards::find_writers(const Node &node, Kind kind) {
    find(node.writer, kind);
    for (auto near : node.near) find(near.node()->writer, kind);
}

inline void Hazards::find_readers(const Node &node) {
    auto find_in = [&](const Node &other) {
        const std::int64_t *reader = other.readers.begin();
        do find(*reader, WAR);
        while (++reader != other.readers.end());
    };
    find_in(node);
    for (auto near : node.near) find_in(*near.node());
}

// If launches have many neighbours, a check takes as long as memory does, so this asks for all at once.
inline void Hazards::fetch(const Nodes &nodes) {
    for (const Node *node : nodes)
        if (!node->near.empty()) prefetch(node->near.begin());
    for (const Node *node : nodes)
        for (auto near : node->near) prefetch(near.node());
}

void Hazards::find_reuse(std::int64_t base) {
    auto recycled = recycled_.find(base);
    if (recycled == recycled_.end()) return;
    keep_live(recycled->second);
    for (std::int64_t user : recycled->second) find(user, REUSE);
    if (recycled->second.empty()) recycled_.erase(recycled);
}

// Makes the launch live. Drops edges that another upstream implies, and remembers what the launch waits for. It
// does so only as far back as launches live, since nobody asks for older ones.
//
// A processor cannot foresee which launches were found, nor how far away they are. A branch on that costs it as much
// as all words of a launch. So each launch that was found is added, implied or not, and for as many words as the
// farthest could need. What goes too far falls off behind the last word.
ACS_CL_WIDE void Hazards::prune() {
    live_.add(number_);
    const int groups = (words_ + GROUP - 2) / GROUP;  // behind the first word
    if (kept_.size() < near_launches_) kept_.resize(2 * near_launches_);
    Edge *kept = kept_.data();
    std::uint64_t *ancestors = ancestors_.data();
    ancestors[0] = 0;
    for (int at = 0; at < GROUP * groups; at++) ancestors[at + 1] = 0;
    for (std::uint64_t words = std::exchange(near_words_, 0); words;) {
        const int word = lowest_bit(words);
        const std::uint64_t found = near_[word], rest = found & (found - 1);
        near_[word] = rest;
        words = rest ? words : words & (words - 1);

        const int bit = lowest_bit(found), distance = 64 * word + bit;
        std::uint64_t *own = ancestors + word;
        const bool is_kept = !(*own >> bit & 1);
        const Kind kind = kinds_[distance];
        kept->upstream = number_ - 1 - distance;
        kept->kind = kind;
        const std::uint64_t *its = live_.ancestors(kept->upstream);
        kept += is_kept;
        edges[kind] += is_kept;
        *own |= (its[0] << 1 | 1) << bit;
        add_shifted(own, its, groups, bit);
    }
    many_kept_ = std::size_t(kept - kept_.data());
    pruned += near_launches_ - many_kept_;
    std::uint64_t *to = live_.ancestors(number_);
    to[0] = ancestors[0];  // apart, as it was written: a processor waits where it reads words together that it did not
    for (int at = 1; at < words_; at++) to[at] = ancestors[at];
    if (!far_.empty()) keep_far();
}

void Hazards::keep_far() {
    std::stable_sort(far_.begin(), far_.end(), [](const auto &a, const auto &b) {
        return a.first > b.first;
    });
    const auto is_same = [](const auto &a, const auto &b) { return a.first == b.first; };
    far_.erase(std::unique(far_.begin(), far_.end(), is_same), far_.end());
    kept_.resize(std::max(kept_.size(), many_kept_ + far_.size()));
    for (const auto &[upstream, kind] : far_) {
        kept_[many_kept_++] = {upstream, kind};
        edges[kind]++;
    }
}

inline void Hazards::let_rest(Nodes nodes) {
    for (Node *node : nodes)
        if (node->near.is_crowded()) let_rest(*node);
}

// Puts the nodes near a wide node to sleep on which no live launch stands.
void Hazards::let_rest(Node &node) {
    if (!node.is_wide()) node.widen();
    if (!node.is_time_to_rest(REST_EACH)) return;
    node.let_rest([&](Node *other) {
        if (live_.has(other->writer)) return false;
        other->writer = 0;
        keep_live(other->readers);
        other->near.set_asleep(other->readers.empty());
        return other->near.is_asleep();
    });
    node.near.set_crowded(!node.near.empty());
}

void Hazards::note_width(Node &node) {
    if (node.near.size() < wide) return;
    node.near.set_crowded(true);
    has_wide_ = true;
}

// Wakes nodes, because a launch stands on them now.
inline void Hazards::wake(Nodes nodes) {
    for (Node *node : nodes)
        if (node->near.is_asleep()) listed += node->wake();
}

// Where parts of a node are written between its readers, each reader follows all before that write, and stands for
// them. Otherwise they would pile up for as long as they live, since nobody writes the node as a whole.
inline void Hazards::read(Node &node, std::int64_t number) {
    Uses &readers = node.readers;
    auto goes = [&](std::int64_t latest) { return !live_.has(latest) || live_.follows(number, latest); };
    while (readers.size() > 1 && goes(readers.latest())) readers.drop_latest();
    if (readers.is_full()) {
        keep_live(readers);
        readers.make_room();
    }
    const std::int64_t latest = readers.latest();
    readers.add(number, (live_.has_recent(latest) | live_.has_others()) & !live_.follows(number, latest));
}

void Hazards::write(Node &node, std::int64_t number) {
    node.writer = number;
    node.readers.clear();
    for (auto near : node.near) {
        if (!near.is_covered()) continue;
        near.node()->writer = 0;
        near.node()->readers.clear();
    }
}

// ---- the index ----------------------------------------------------------------------------------

NodePointer Hazards::node(const Span &span, const Node *before) {
    Node *known = nodes_.find(span);
    if (known) return NodePointer(known);
    NodePointer made = new_node(span);
    if (before) bases_[span.base].again++;
    return made;
}

NodePointer Hazards::new_node(const Span &span) {
    if (span.base == EVERYTHING)
        throw std::invalid_argument("memory that nobody can name has no place in an index");
    Base &index = bases_[span.base];
    if (index.count >= index.sweep_at || nodes_.size() >= sweep_at_) crowded_.push_back(span.base);
    NodePointer made(new Node(span, index_));
    index.search(span, [&](Node *other) {
        compared++;
        if (!overlap(span, other->span())) return;
        made->near.add(other, covers(span, other->span()));
        other->meet(made.get(), covers(other->span(), span));
        note_width(*other);
    });
    note_width(*made);
    index.add(made.get());
    nodes_.add(made.get());
    return made;
}

inline void Hazards::tidy() {
    if (met_dropped_) forget_dropped();
    if (!crowded_.empty() || !deserted_.empty()) make_room();
}

// Sweeps bases that grew past their limit, and of footprints that are gone. Never while a launch is half entered.
void Hazards::make_room() {
    for (std::int64_t base : std::exchange(deserted_, {})) sweep(base, SIZE_MAX);
    auto crowded = std::exchange(crowded_, {});
    if (nodes_.size() < sweep_at_) {
        for (std::int64_t base : crowded) sweep(base);
        return;
    }
    crowded.clear();
    for (const auto &[base, _] : bases_) crowded.push_back(base);
    std::size_t back = 0;
    for (std::int64_t base : crowded) back += sweep(base);
    sweep_at_ = std::max(SWEPT_AT, 2 * (nodes_.size() + back));
}

// Drops the nodes of `base` on which no live launch stands. Nodes of live arrays stay if few others have to look at
// them, because the next launch would make them again. Returns how many of the others will be back: as many as came
// back since the last sweep. They count as if they were there. Otherwise a program that uses its arrays in turns would
// have them swept in each turn.
std::size_t Hazards::sweep(std::int64_t base, std::size_t most_near) {
    auto place = bases_.find(base);
    if (place == bases_.end()) return 0;
    Base &index = place->second;
    std::vector<Node *> idle;
    std::size_t wanted = 0;  // that go, although an array lives
    index.each([&](Node *node) {
        if (!live_.has(node->writer)) node->writer = 0;
        keep_live(node->readers);
        const bool is_wanted = node->details().arrays;
        if (node->writer || !node->readers.empty() || (is_wanted && node->every().size() <= most_near)) return;
        wanted += is_wanted;
        node->index = 0;
        idle.push_back(node);
    });
    auto gone = [](const Node *node) { return !node->index; };
    if (!idle.empty()) {
        index.remove(gone);
        index.count -= idle.size();
        index.each([&](Node *node) { node->forget(gone); });
    }
    for (Node *node : idle) nodes_.erase(node);
    const std::size_t back = std::min(wanted, std::exchange(index.again, 0));
    index.sweep_at = std::max<std::size_t>(64, 2 * (index.count + back));
    if (!index.count && !back) bases_.erase(place);
    return back;
}

template <typename Uses>
void Hazards::keep_live(Uses &uses) const {
    auto to = uses.begin();
    for (std::int64_t use : uses) {
        *to = use;
        to += live_.has(use);
    }
    uses.erase(to, uses.end());
}

}  // namespace acs_cl
