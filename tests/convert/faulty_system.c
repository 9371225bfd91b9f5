#include "convert/faulty_system.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

faulty_call faulty_fsync, faulty_link, faulty_flock;

void faulty_system_reset(void) {
    faulty_fsync = faulty_link = faulty_flock = (faulty_call){0};
}

static bool fails(faulty_call *call) {
    call->calls++;
    if (call->calls == call->disturbed) call->before();
    if (call->calls != call->failing) return false;
    errno = call->error;
    return true;
}

int fsync(int fd) { return fails(&faulty_fsync) ? -1 : (int)syscall(SYS_fsync, fd); }

int flock(int fd, int operation) {
    return fails(&faulty_flock) ? -1 : (int)syscall(SYS_flock, fd, operation);
}

int link(const char *from, const char *to) {
    return fails(&faulty_link) ? -1 : linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
}
