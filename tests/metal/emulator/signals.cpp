/* Signals inside a kernel: an access that the processor refuses ends the run with a fault that
 * names it.
 *
 * The handlers are the process's and stay installed; signals that come from elsewhere go to whoever
 * handled them before.  They run on a stack of their own, since a full stack is one of the reasons.
 */
#include "scheduler.h"

#include <signal.h>
#include <sys/mman.h>

#include <mutex>
#include <new>

namespace emulated {
namespace {

constexpr int SIGNALS[] = {SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGFPE};
constexpr int N_SIGNALS = sizeof SIGNALS / sizeof SIGNALS[0];
struct sigaction before[N_SIGNALS];

/* The instruction that was refused, and what it wanted with memory. */
struct refused {
    uintptr_t code;
    const char *access;
};

refused refused_by(const void *context) {
    const mcontext_t &machine = static_cast<const ucontext_t *>(context)->uc_mcontext;
#if defined(__x86_64__)
    return {static_cast<uintptr_t>(machine.gregs[REG_RIP]),
            machine.gregs[REG_ERR] & 2 ? "write" : "read"};
#else
    return {machine.pc, "access"};
#endif
}

void handle(int number, siginfo_t *info, void *context) {
    if (current && current->is_running()) {
        const refused r = refused_by(context);
        if (number == SIGSEGV || number == SIGBUS)
            current->fail_at(reinterpret_cast<uintptr_t>(info->si_addr), r.access, r.code);
        current->fail_undefined(r.code);
    }
    for (int i = 0; i < N_SIGNALS; i++) /* again, and this time it is theirs */
        if (SIGNALS[i] == number) sigaction(number, &before[i], nullptr);
}

/* A stack for the handlers, as long as the thread lives. */
class signal_stack {
  public:
    signal_stack() {
        stack_t old;
        if (sigaltstack(nullptr, &old) == 0 && !(old.ss_flags & SS_DISABLE)) return;
        void *at = mmap(nullptr, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) throw std::bad_alloc();
        mine.ss_sp = at;
        mine.ss_size = BYTES;
        sigaltstack(&mine, nullptr);
    }
    ~signal_stack() {
        if (!mine.ss_sp) return;
        stack_t none = {};
        none.ss_flags = SS_DISABLE;
        sigaltstack(&none, nullptr);
        munmap(mine.ss_sp, BYTES);
    }
    signal_stack(const signal_stack &) = delete;
    signal_stack &operator=(const signal_stack &) = delete;

  private:
    static constexpr size_t BYTES = 64 * 1024;
    stack_t mine = {};
};

void install() {
    struct sigaction action = {};
    action.sa_sigaction = handle;
    /* NODEFER: the handler is left by a change of stacks, which restores no mask. */
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < N_SIGNALS; i++) sigaction(SIGNALS[i], &action, &before[i]);
}

} // namespace

void catch_signals() {
    static std::once_flag once;
    std::call_once(once, install);
    static thread_local signal_stack stack;
}

} // namespace emulated
