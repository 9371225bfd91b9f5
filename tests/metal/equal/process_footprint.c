#include "metal/equal/process_footprint.h"

#include <mach/mach.h>

int64_t process_footprint(void) {
    task_vm_info_data_t info;
    mach_msg_type_number_t count = TASK_VM_INFO_COUNT;
    if (task_info(mach_task_self(), TASK_VM_INFO, (task_info_t)&info, &count) != KERN_SUCCESS) return 0;
    return (int64_t)info.phys_footprint;
}
