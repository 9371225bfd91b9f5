/* Zombies: what is deallocated keeps its memory for a while but loses its class, so that a message
 * to it is noticed, named after the class it had, and answered with zero. The oldest are given
 * back. */
#import "fake_object.h"

#include <objc/runtime.h>
#include <string.h>

enum { GRAVES = 1 << 14 };

static struct {
    pthread_mutex_t lock;
    struct {
        id object;
        Class lived_as;
    } grave[GRAVES];
    unsigned next;
} quarantine = {.lock = PTHREAD_MUTEX_INITIALIZER};

__attribute__((objc_root_class))
@interface FakeZombie {
    Class isa;
}
@end

static Class lived_as(id zombie) {
    Class found = [NSObject class];
    pthread_mutex_lock(&quarantine.lock);
    for (unsigned i = 0; i < GRAVES; i++) {
        if (quarantine.grave[i].object == zombie) found = quarantine.grave[i].lived_as;
    }
    pthread_mutex_unlock(&quarantine.lock);
    return found;
}

@implementation FakeZombie

- (NSMethodSignature *)methodSignatureForSelector:(SEL)selector {
    return [lived_as((id)self) instanceMethodSignatureForSelector:selector];
}

- (void)forwardInvocation:(NSInvocation *)invocation {
    fake_object_to("%s sent to a %s that was deallocated", sel_getName([invocation selector]),
                   class_getName(lived_as((id)self)));
    char nothing[64] = {0};
    if ([[invocation methodSignature] methodReturnLength] > 0) [invocation setReturnValue:nothing];
}

@end

bool fake_is_zombie(id object) {
    return object && object_getClass(object) == objc_getClass("FakeZombie");
}

static void bury(id object) {
    pthread_mutex_lock(&quarantine.lock);
    unsigned place = quarantine.next++ % GRAVES;
    id oldest = quarantine.grave[place].object;
    quarantine.grave[place].lived_as = object_getClass(object);
    quarantine.grave[place].object = object;
    object_setClass(object, objc_getClass("FakeZombie"));
    pthread_mutex_unlock(&quarantine.lock);
    if (oldest) NSDeallocateObject(oldest);
}

static void count(int64_t objects, int64_t autoreleases) {
    fake_state *state = fake_lock();
    state->counters.live_objects += objects;
    state->counters.autoreleased += autoreleases;
    if (state->counters.autoreleased > state->counters.most_autoreleased)
        state->counters.most_autoreleased = state->counters.autoreleased;
    fake_unlock();
}

void fake_born(void) {
    count(1, 0);
}

void fake_autoreleased(bool *already) {
    if (!*already) count(0, 1);
    *already = true;
}

void fake_died(id object, bool autoreleased) {
    count(-1, autoreleased ? -1 : 0);
    bury(object);
}

/* Their memory is not given back in -dealloc, hence no [super dealloc]. */
#pragma clang diagnostic ignored "-Wobjc-missing-super-calls"

@implementation FakeObject

- (instancetype)init {
    self = [super init];
    if (self) fake_born();
    return self;
}

- (instancetype)autorelease {
    fake_autoreleased(&autoreleased);
    return [super autorelease];
}

- (void)dealloc {
    fake_died(self, autoreleased);
}

@end

void fake_leave_behind(void) {
    bool litters = fake_lock()->options.litters;
    fake_unlock();
    if (litters) [[[FakeObject alloc] init] autorelease];
}

@implementation FakeError

+ (void)set:(NSError **)error
     domain:(NSErrorDomain)domain
       code:(NSInteger)code
       text:(NSString *)text {
    if (!error) return;
    NSDictionary *info = @{NSLocalizedDescriptionKey : text};
    *error = [[[FakeError alloc] initWithDomain:domain code:code userInfo:info] autorelease];
}

- (id)initWithDomain:(NSErrorDomain)domain code:(NSInteger)code userInfo:(NSDictionary *)info {
    self = [super initWithDomain:domain code:code userInfo:info];
    if (self) fake_born();
    return self;
}

- (instancetype)autorelease {
    fake_autoreleased(&autoreleased);
    return [super autorelease];
}

- (void)dealloc {
    fake_died(self, autoreleased);
}

@end
