/* Host threads that sleep between grids. */
#include "crew.h"

namespace emulated {

crew::~crew() {
    {
        std::lock_guard<std::mutex> lock(mutex);
        closing = true;
    }
    begin.notify_all();
    for (std::thread &t : threads) t.join();
}

void crew::run(int others, const std::function<void()> &given) {
    while (threads.size() < static_cast<size_t>(others)) {
        const int number = static_cast<int>(threads.size());
        threads.emplace_back([this, number] { sleep_and_work(number); });
    }
    {
        std::lock_guard<std::mutex> lock(mutex);
        work = &given;
        wanted = running = others;
        grid++;
    }
    begin.notify_all();
    given();
    std::unique_lock<std::mutex> lock(mutex);
    end.wait(lock, [this] { return running == 0; });
    wanted = 0;
}

void crew::sleep_and_work(int number) {
    std::unique_lock<std::mutex> lock(mutex);
    for (uint64_t seen = 0;;) {
        begin.wait(lock, [&] { return closing || (grid != seen && number < wanted); });
        if (closing) return;
        seen = grid;
        lock.unlock();
        (*work)();
        lock.lock();
        if (--running == 0) end.notify_one();
    }
}

} // namespace emulated
