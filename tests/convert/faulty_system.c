#include "convert/faulty_system.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

faulty_call faulty_fsync, faulty_link, faulty_flock;
faulty_disk faulty_disk_now;

void faulty_system_reset(void) {
    faulty_fsync = faulty_link = faulty_flock = (faulty_call){0};
    faulty_disk_now = (faulty_disk){0};
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

static int copy_range(int to, const struct file_clone_range *range) {
    char bytes[4096];
    for (uint64_t done = 0; done < range->src_length; done += sizeof bytes)
        if (pread((int)range->src_fd, bytes, sizeof bytes, (off_t)(range->src_offset + done)) !=
                (ssize_t)sizeof bytes ||
            pwrite(to, bytes, sizeof bytes, (off_t)(range->dest_offset + done)) !=
                (ssize_t)sizeof bytes)
            return -1;
    faulty_disk_now.shared++;
    return 0;
}

int ioctl(int fd, unsigned long request, ...) {
    va_list arguments;
    va_start(arguments, request);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    if (request == FICLONERANGE && faulty_disk_now.shares) return copy_range(fd, argument);
    return (int)syscall(SYS_ioctl, fd, request, argument);
}

/* Only what is free is filled in. */
int fstatvfs(int fd, struct statvfs *about) {
    struct statfs found;
    if (fstatfs(fd, &found) != 0) return -1;
    *about = (struct statvfs){.f_frsize = (unsigned long)found.f_bsize, .f_bavail = found.f_bavail};
    if (faulty_disk_now.is_small) {
        about->f_frsize = 1;
        about->f_bavail = (fsblkcnt_t)faulty_disk_now.available;
    }
    return 0;
}
