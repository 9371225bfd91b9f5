/* The documentation does not say that a set retains what is in it, and a set that does would hide a
 * buffer that the host forgot: here a buffer that dies in a set is an error. */
#import "fake_residency.h"

static fake_membership *place_in(FakeBuffer *buffer, const FakeResidencySet *set) {
    for (int i = 0; i < FAKE_SETS; i++) {
        if (buffer->sets[i].set == set) return &buffer->sets[i];
    }
    return NULL;
}

bool fake_was_resident(const FakeBuffer *buffer, const FakeResidencySet *set, uint64_t time) {
    for (int i = 0; i < FAKE_SETS; i++) {
        const fake_membership *place = &buffer->sets[i];
        if (place->set == set && place->since && place->since < time) return true;
    }
    return false;
}

static void leave_set(FakeBuffer *buffer, id set) {
    fake_membership *place = place_in(buffer, set);
    if (place) *place = (fake_membership){nil, 0, false};
}

static void commit_place(FakeBuffer *buffer, id set) {
    fake_membership *place = place_in(buffer, set);
    if (!place) return;
    if (place->leaving) {
        if (buffer->reached > 0) {
            fake_object_to(
                "a buffer leaves a residency set while a command buffer that has its address runs");
        }
        *place = (fake_membership){nil, 0, false};
    } else if (!place->since) {
        place->since = fake_clock_tick();
    }
}

@implementation FakeResidencySet

- (void)addAllocation:(id<MTLAllocation>)allocation {
    fake_leave_behind();
    if (fake_is_zombie(allocation) || ![(id)allocation isKindOfClass:[FakeBuffer class]]) {
        fake_object_to("addAllocation: not a live buffer");
        return;
    }
    FakeBuffer *buffer = (FakeBuffer *)allocation;
    fake_lock();
    fake_membership *place = place_in(buffer, self);
    if (place)
        place->leaving = false;
    else
        place = place_in(buffer, nil);
    if (place) place->set = self;
    fake_unlock();
    if (!place)
        fake_object_to("addAllocation: a buffer is in more than %d residency sets", FAKE_SETS);
}

- (void)removeAllocation:(id<MTLAllocation>)allocation {
    fake_leave_behind();
    if (fake_is_zombie(allocation) || ![(id)allocation isKindOfClass:[FakeBuffer class]]) {
        fake_object_to("removeAllocation: not a live buffer");
        return;
    }
    fake_lock();
    fake_membership *place = place_in((FakeBuffer *)allocation, self);
    if (place && place->since)
        place->leaving = true;
    else if (place)
        *place = (fake_membership){nil, 0, false};
    fake_unlock();
    if (!place) fake_object_to("removeAllocation: the residency set does not have this buffer");
}

- (void)commit {
    fake_leave_behind();
    fake_lock();
    fake_each_buffer(commit_place, self);
    fake_unlock();
}

- (void)requestResidency {
    fake_leave_behind();
    requests++;
}

- (void)endResidency {
    fake_leave_behind();
    if (requests-- <= 0) fake_object_to("endResidency without requestResidency");
}

- (void)dealloc {
    fake_lock();
    fake_each_buffer(leave_set, self);
    fake_unlock();
    [super dealloc];
}

@end
