/* The root of all fake objects: they are counted while they live, and when they die they become
 * zombies, whose every message is recorded as a use after release. */
#ifndef PLUMB_TESTS_METAL_FAKE_OBJECT_H
#define PLUMB_TESTS_METAL_FAKE_OBJECT_H

#import <Metal/Metal.h>

#include "fake_state.h"

/* For -init, -autorelease and -dealloc of every fake object. `fake_died` takes the place of
 * [super dealloc]. */
void fake_born(void);
void fake_autoreleased(bool *already);
void fake_died(id object, bool autoreleased);

@interface FakeObject : NSObject {
    bool autoreleased; /* at least once: counted until it is deallocated */
}
@end

/* An autoreleased object, where the options want it: whoever sends the method needs a pool. */
void fake_leave_behind(void);

@interface FakeError : NSError {
    bool autoreleased;
}
/* Sets *error, when the caller gave it, to an autoreleased error. */
+ (void)set:(NSError **)error domain:(NSErrorDomain)domain code:(NSInteger)code text:(NSString *)text;
@end

/* Whether the object is one that was deallocated. */
bool fake_is_zombie(id object);

#endif
