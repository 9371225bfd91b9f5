/* Host threads that share the groups of a grid: one beside the caller's is enough to run two groups
 * at once.
 *
 * They are made when they are first wanted and sleep between grids, so that a grid costs no
 * creation of threads and stacks.  A crew belongs to the thread that made it. */
#ifndef PLUMB_TESTS_METAL_EMULATOR_CREW_H
#define PLUMB_TESTS_METAL_EMULATOR_CREW_H

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace emulated {

class crew {
  public:
    crew() = default;
    ~crew();
    crew(const crew &) = delete;
    crew &operator=(const crew &) = delete;

    /* Calls work on this thread and on `others` more, and returns when all have. */
    void run(int others, const std::function<void()> &work);

  private:
    void sleep_and_work(int number);

    std::mutex mutex;
    std::condition_variable begin, end;
    std::vector<std::thread> threads;
    const std::function<void()> *work = nullptr;
    int wanted = 0, running = 0;
    uint64_t grid = 0;
    bool closing = false;
};

} // namespace emulated

#endif
