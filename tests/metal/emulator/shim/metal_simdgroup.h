/* Barriers and simdgroup functions of MSL (sections 6.9 and 6.11 of its specification).
 *
 * Every thread of the simdgroup must call them together, and what MSL leaves undefined is a fault:
 * a lane that is none, distances that differ from lane to lane.  Reductions are those that no order
 * changes. */
#ifndef PLUMB_EMULATED_METAL_SIMDGROUP_H
#define PLUMB_EMULATED_METAL_SIMDGROUP_H

/* Where the call stands, for messages. */
#define EMULATED_LINE int line = __builtin_LINE()

namespace emulated {

template <typename T> lane_value to_lane(T x) {
    static_assert(sizeof(T) <= sizeof(lane_value));
    lane_value value{};
    __builtin_memcpy(&value, &x, sizeof x);
    return value;
}
template <typename T> T from_lane(const lanes &l, uint32_t lane) {
    T x;
    __builtin_memcpy(&x, &l.value[lane], sizeof x);
    return x;
}
template <typename T> T from_valid_lane(operation what, const lanes &l, uint32_t lane, int line) {
    if (lane >= l.width) fault_lane(what, lane, line);
    return from_lane<T>(l, lane);
}

} // namespace emulated

namespace metal {

enum class mem_flags : uint { mem_device = 1, mem_threadgroup = 2 };
constexpr mem_flags operator|(mem_flags a, mem_flags b) {
    return static_cast<mem_flags>(static_cast<uint>(a) | static_cast<uint>(b));
}

EMULATED_MEETING inline void threadgroup_barrier(mem_flags flags, EMULATED_LINE) {
    emulated::meet_threadgroup(static_cast<uint>(flags), line);
}
EMULATED_MEETING inline void simdgroup_barrier(mem_flags flags, EMULATED_LINE) {
    emulated::meet_simdgroup(emulated::operation::barrier, static_cast<uint>(flags), {}, line);
}

/* Lanes that have no source keep their own value. */
template <typename T> EMULATED_MEETING T simd_shuffle_down(T x, ushort delta, EMULATED_LINE) {
    const emulated::lanes l = emulated::meet_simdgroup(emulated::operation::shuffle_down, delta,
                                                       emulated::to_lane(x), line);
    return l.self + delta < l.width ? emulated::from_lane<T>(l, l.self + delta) : x;
}
template <typename T> EMULATED_MEETING T simd_shuffle_up(T x, ushort delta, EMULATED_LINE) {
    const emulated::lanes l = emulated::meet_simdgroup(emulated::operation::shuffle_up, delta,
                                                       emulated::to_lane(x), line);
    return delta <= l.self ? emulated::from_lane<T>(l, l.self - delta) : x;
}
template <typename T> EMULATED_MEETING T simd_shuffle_xor(T x, ushort mask, EMULATED_LINE) {
    const emulated::operation what = emulated::operation::shuffle_xor;
    const emulated::lanes l = emulated::meet_simdgroup(what, mask, emulated::to_lane(x), line);
    return emulated::from_valid_lane<T>(what, l, l.self ^ mask, line);
}
template <typename T> EMULATED_MEETING T simd_shuffle(T x, ushort lane, EMULATED_LINE) {
    const emulated::operation what = emulated::operation::shuffle;
    const emulated::lanes l = emulated::meet_simdgroup(what, 0, emulated::to_lane(x), line);
    return emulated::from_valid_lane<T>(what, l, lane, line);
}
template <typename T> EMULATED_MEETING T simd_broadcast(T x, ushort lane, EMULATED_LINE) {
    const emulated::operation what = emulated::operation::broadcast;
    const emulated::lanes l = emulated::meet_simdgroup(what, lane, emulated::to_lane(x), line);
    return emulated::from_valid_lane<T>(what, l, lane, line);
}

/* One bit a lane; converts to an integer as MSL's simd_vote does. */
class simd_vote {
  public:
    using vote_t = ulong;
    constexpr explicit simd_vote(vote_t bits) : bits(bits) {}
    constexpr explicit operator vote_t() const { return bits; }

  private:
    vote_t bits;
};

EMULATED_MEETING inline uint emulated_votes(bool x, uint *all, int line) {
    const emulated::lanes l =
        emulated::meet_simdgroup(emulated::operation::vote, 0, emulated::to_lane(x), line);
    uint votes = 0;
    for (uint i = 0; i < l.width; i++)
        votes |= static_cast<uint>(emulated::from_lane<bool>(l, i)) << i;
    *all = l.width == 32 ? ~0u : (1u << l.width) - 1;
    return votes;
}
EMULATED_MEETING inline simd_vote simd_ballot(bool x, EMULATED_LINE) {
    uint all;
    return simd_vote(emulated_votes(x, &all, line));
}
EMULATED_MEETING inline bool simd_any(bool x, EMULATED_LINE) {
    uint all;
    return emulated_votes(x, &all, line) != 0;
}
EMULATED_MEETING inline bool simd_all(bool x, EMULATED_LINE) {
    uint all;
    return emulated_votes(x, &all, line) == all;
}

template <typename T> EMULATED_MEETING T simd_max(T x, EMULATED_LINE) {
    const emulated::lanes l =
        emulated::meet_simdgroup(emulated::operation::reduce, 0, emulated::to_lane(x), line);
    for (uint i = 0; i < l.width; i++) x = max(x, emulated::from_lane<T>(l, i));
    return x;
}
template <typename T> EMULATED_MEETING T simd_min(T x, EMULATED_LINE) {
    const emulated::lanes l =
        emulated::meet_simdgroup(emulated::operation::reduce, 1, emulated::to_lane(x), line);
    for (uint i = 0; i < l.width; i++) x = min(x, emulated::from_lane<T>(l, i));
    return x;
}

} // namespace metal

#undef EMULATED_LINE

#endif
