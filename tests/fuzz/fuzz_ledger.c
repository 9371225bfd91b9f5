/* A store's ledger from anywhere.  The input is the text before the checksum, which is added: random bytes
 * would not come past it.  What is accepted is printed the same again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/ledger.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 64), *again = NULL;
    if (!text) return 0;
    if (size > 0) memcpy(text, data, size);
    size_t total = size + (size_t)snprintf(text + size, 64, "check %016llx\n", (unsigned long long)XXH3_64bits(data, size));
    plumb_ledger ledger = {0};
    plumb_error err;
    if (plumb__ledger_parse(text, total, "ledger", &ledger, &err) != PLUMB_OK) {
        if (!err.found[0] || !err.expected[0] || ledger.entry) abort();
    } else {
        size_t again_size = 0;
        if (plumb__ledger_print(&ledger, &again, &again_size, &err) != PLUMB_OK) abort();
        if (again_size != total || memcmp(text, again, total) != 0) abort();
        plumb__ledger_count(&ledger, ledger.day * 86400, 1 << 30);
        free(again);
    }
    plumb__ledger_free(&ledger);
    free(text);
    return 0;
}
