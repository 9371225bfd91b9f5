/* A receipt from anywhere.  The input is the text before the digest, which is added: random bytes would
 * not come past it. */
#include "convert/receipt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 64);
    if (!text) return 0;
    if (size > 0) memcpy(text, data, size);
    size_t total = size + (size_t)snprintf(text + size, 64, ",\n  \"digest\": \"%s\"\n}\n",
                                           plumb__digest_text(XXH3_128bits(data, size)).hex);
    plumb_receipt *receipt = NULL;
    plumb_error err;
    if (plumb__receipt_parse(text, total, "receipt", &receipt, &err) != PLUMB_OK) {
        if (!err.found[0] || !err.expected[0]) abort();
    } else if (!plumb__receipt_made(receipt) || !plumb__receipt_release(receipt) ||
               !plumb__receipt_evidence(receipt) || plumb__receipt_tensors(receipt) < 0) {
        abort();
    }
    plumb__receipt_destroy(receipt);
    free(text);
    return 0;
}
