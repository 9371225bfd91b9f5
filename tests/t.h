/* The test harness: a test program is a list of functions, checks count and go on, the exit status
 * says whether all passed.  Usage: prog [name...] runs the named tests only. */
#ifndef PLUMB_TESTS_T_H
#define PLUMB_TESTS_T_H

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Whether a sanitizer slows the program down and keeps memory back. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define T_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define T_SANITIZED 1
#endif
#endif
#ifndef T_SANITIZED
#define T_SANITIZED 0
#endif

typedef struct t_test {
    const char *name;
    void (*run)(void);
} t_test;

static int t_failures, t_checks;

/* A check that prints the place and a formatted reason when it fails. */
#define T_CHECK(condition, ...)                                              \
    do {                                                                     \
        t_checks++;                                                          \
        if (!(condition)) {                                                  \
            t_failures++;                                                    \
            if (t_failures <= 20) {                                          \
                fprintf(stderr, "%s:%d: %s", __FILE__, __LINE__, #condition); \
                fprintf(stderr, " " __VA_ARGS__);                            \
                fputc('\n', stderr);                                         \
            }                                                                \
        }                                                                    \
    } while (0)

/* Runs the tests; the last line is "N passed, N failed". */
static inline int t_main(int argc, char **argv, const t_test *tests, int count) {
    int passed = 0, failed = 0;
    for (int i = 0; i < count; i++) {
        int wanted = argc < 2;
        for (int a = 1; a < argc; a++) wanted |= !strcmp(argv[a], tests[i].name);
        if (!wanted) continue;
        int before = t_failures, checks_before = t_checks;
        tests[i].run();
        /* A test that checked nothing has not passed. */
        if (t_checks == checks_before) {
            fprintf(stderr, "%s: no check ran\n", tests[i].name);
            t_failures++;
        }
        int ok = t_failures == before;
        printf("%s %s (%d checks)\n", ok ? "ok  " : "FAIL", tests[i].name, t_checks - checks_before);
        if (ok) passed++;
        else failed++;
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed || passed == 0;
}

#define T_MAIN(...)                                                                 \
    int main(int argc, char **argv) {                                               \
        static const t_test tests[] = {__VA_ARGS__};                                \
        return t_main(argc, argv, tests, (int)(sizeof tests / sizeof tests[0]));    \
    }

#endif
