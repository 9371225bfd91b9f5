#include "convert/zeros.h"

void plumb__zeros_open(plumb_zeros *zeros) {
    *zeros = (plumb_zeros){0};
    pthread_mutex_init(&zeros->lock, NULL);
}

void plumb__zeros_close(plumb_zeros *zeros) { pthread_mutex_destroy(&zeros->lock); }

static bool recall(plumb_zeros *z, int64_t bytes, XXH128_hash_t *digest) {
    bool found = false;
    pthread_mutex_lock(&z->lock);
    for (int i = 0; i < z->known && !found; i++) {
        found = z->bytes[i] == bytes;
        if (found) *digest = z->digest[i];
    }
    pthread_mutex_unlock(&z->lock);
    return found;
}

/* Two threads may have worked out the same; when all places are taken, others are worked out again. */
static void remember(plumb_zeros *z, int64_t bytes, XXH128_hash_t digest) {
    pthread_mutex_lock(&z->lock);
    if (z->known < PLUMB_ZEROS_KNOWN) {
        z->bytes[z->known] = bytes;
        z->digest[z->known++] = digest;
    }
    pthread_mutex_unlock(&z->lock);
}

plumb_status plumb__zeros_digest(plumb_zeros *zeros, int64_t bytes, plumb_jobs *jobs, int64_t item,
                                 XXH128_hash_t *digest, plumb_error *err) {
    enum { STRIP = 16 << 10, LOOK_EVERY = 64 << 20 };
    const uint8_t strip[STRIP] = {0}; /* stays in the first cache */
    if (recall(zeros, bytes, digest)) return PLUMB_OK;
    XXH3_state_t hash;
    (void)XXH3_128bits_reset(&hash);
    for (int64_t done = 0; done < bytes; done += STRIP) {
        int64_t size = bytes - done < STRIP ? bytes - done : STRIP;
        (void)XXH3_128bits_update(&hash, strip, (size_t)size);
        plumb_status status =
            done % LOOK_EVERY == 0 ? plumb__jobs_add(jobs, item, 0, err) : PLUMB_OK;
        if (status != PLUMB_OK) return status;
    }
    *digest = XXH3_128bits_digest(&hash);
    remember(zeros, bytes, *digest);
    return PLUMB_OK;
}

bool plumb__zeros_stay(const plumb_stored_units *units) { return !units->tiles; }
