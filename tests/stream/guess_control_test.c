/* When guessing goes on, pauses and is tried again (stream/guess_control.h). */
#include "stream/guess_control.h"

#include "t.h"

enum { PAUSE = 2000 };

/* One judgement after 64 guessed experts, on the line and on both sides of it. */
static void judgement(void) {
    static const struct {
        int64_t useful, wasted;
        bool pays;
    } cases[] = {
        {0, 0, true},   {0, 63, true},  {0, 64, false},  {64, 0, true},   {22, 44, true},
        {21, 43, false}, {22, 42, true}, {100, 200, true}, {100, 201, false}, {1, 62, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        plumb_guess_control control = {0};
        T_CHECK(plumb__guess_pays(&control, 0, 0), "at first");
        T_CHECK(plumb__guess_pays(&control, cases[i].useful, cases[i].wasted) == cases[i].pays,
                "%" PRId64 " useful, %" PRId64 " wasted", cases[i].useful, cases[i].wasted);
    }
}

/* A trial is judged by its own guesses: what went well before does not excuse it. */
static void trials_are_separate(void) {
    plumb_guess_control control = {0};
    T_CHECK(plumb__guess_pays(&control, 1000, 0), "good");
    T_CHECK(plumb__guess_pays(&control, 1000, 63), "too few to judge");
    T_CHECK(!plumb__guess_pays(&control, 1000, 64), "bad");
}

/* A pause lasts its layers, then there is a new trial, which begins with the totals of that moment. */
static void pause_ends(void) {
    plumb_guess_control control = {0};
    T_CHECK(!plumb__guess_pays(&control, 0, 100), "bad");
    int64_t silent = 0;
    while (!plumb__guess_pays(&control, 7, 300)) silent++;
    T_CHECK(silent == PAUSE, "%" PRId64 " layers", silent);
    T_CHECK(plumb__guess_pays(&control, 7 + 30, 300 + 33), "too few to judge");
    T_CHECK(plumb__guess_pays(&control, 7 + 30, 300 + 60), "two for each");
    T_CHECK(!plumb__guess_pays(&control, 7 + 30, 300 + 60 + 64), "bad again");
}

T_MAIN({"judgement", judgement}, {"trials_are_separate", trials_are_separate},
       {"pause_ends", pause_ends})
